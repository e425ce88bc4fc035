"""Memories: one statement each, dated, with the messages that it came from. What no longer holds is kept as the past.

It does not decide what is worth keeping, and does not extract: texts come in, hits come out.
"""

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import date, datetime
from itertools import pairwise
from typing import Any

from langgraph.store.base import BaseStore, SearchItem

from memory.closeness import Judged, Wanted, judged
from memory.editing import Value, edit
from memory.frames import frame_of
from memory.ledger import Ledger
from memory.owner import Team, everything, owned
from memory.sameness import canonical, wording
from memory.text import clean, is_bare
from memory.times import as_of, clock_of, stamp

BLANK: Value = {
    "about": None,
    "sources": [],
    "seen": 1,
    "until": None,
    "superseded_by": "",
    "past": [],
    "variants": [],
    "frame": "",
}
"""What a memory holds beside its text and times, if nothing is known."""

MOST_KEPT = 16
"""Sources and wordings that a memory keeps: the first, and the newest after it."""


class Forgotten(ValueError):
    """A statement that the user wished forgotten after it was made."""


@dataclass(frozen=True, kw_only=True)
class Source:
    """Where a statement was made; `by` whom, if not by the one whose memory it is: a user of a team, or a tool."""

    thread: str
    message: str
    by: str = ""


@dataclass(frozen=True, kw_only=True)
class Memory:
    """One statement. Times are ISO-8601 in UTC; `score` is the cosine to the query, None if not searched by one.

    It holds from `at` until `until`, None for what still holds, and held before in the intervals of `past`. `variants`
    are other wordings that were merged into it.
    """

    id: str
    text: str
    at: str
    about: str = ""
    sources: tuple[Source, ...] = ()
    seen: int = 1
    until: str | None = None
    superseded_by: str = ""
    past: tuple[tuple[str, str], ...] = ()
    variants: tuple[str, ...] = ()
    score: float | None = None
    why: str = ""

    @property
    def origin(self) -> str:
        """Who said it, if not the one whose memory it is."""
        return ", ".join(dict.fromkeys(source.by for source in self.sources if source.by))


class Memories:
    """The statements kept for one user, or shared by a team."""

    def __init__(self, store: BaseStore, *, user: str | Team, clock: Callable[[], datetime] | None = None) -> None:
        self.store = store
        self.namespace = owned(user, "memories")
        self.ledger = Ledger(store, user=user)
        self.clock = clock or clock_of(store)

    def save(
        self,
        text: str,
        *,
        sources: Sequence[Source] = (),
        at: datetime | None = None,
        about: str = "",
        replaces: str = "",
    ) -> tuple[Memory, bool]:
        """Keep a statement made at a time, now by default; return it and whether it is new.

        The same again is counted, in other words merged: nothing is stored twice. What it `replaces` by id, other words
        for the same too, and what it contradicts (memory/frames.py), is the past from then on. Raises ValueError for a
        blank text, Forgotten for what was said before the user wished it forgotten.
        """
        text, replaces, moment = clean(text).strip(), clean(replaces), stamp(at or self.clock())
        if is_bare(text):
            raise ValueError("a memory must be a non-blank text, got an empty one")
        ids = [exact_id(text), memory_id(text)]
        if any(moment <= gone for gone in self.ledger.forgotten(ids)):
            raise Forgotten("the user wished this forgotten")
        said = Said(text=text, at=moment, about=clean(about).strip(), sources=tuple(sources))
        was_there: list[bool] = []

        def change(seen: Mapping[str, Value | None]) -> dict[str, Value | None]:
            old = seen.get(replaces)
            is_reworded = ids[1] == replaces and old is not None and wording(old["text"]) != wording(text)
            key = ids[0] if seen[ids[0]] or is_reworded else ids[1]
            was_there[:] = [seen[key] is not None]
            written: dict[str, Value | None] = {key: said.into(seen[key])}
            if old and replaces != key:
                written[replaces] = ended(old, by=key, at=moment)
            return written

        written = self.edit([*ids, *([replaces] if replaces else [])], change)
        key = next(iter(written))
        self.settle(frame_of(text))
        return self.get(key) or memory_of(key, written[key] or {}), not was_there[0]

    def settle(self, frame: str) -> None:
        """Of several statements of which only one can hold, let the last one said hold."""
        if not frame:
            return
        holders = [item.key for item in everything(self.store, self.namespace, {"frame": frame, "until": None})]

        def change(seen: Mapping[str, Value | None]) -> dict[str, Value | None]:
            held = [(key, value) for key, value in seen.items() if value and not value.get("until")]
            held.sort(key=lambda pair: pair[1]["last_seen"])
            pairs = pairwise(held)
            return {key: ended(value, by=later, at=next_["at"]) for (key, value), (later, next_) in pairs}

        if len(holders) > 1:
            self.edit(holders, change)

    def search(
        self, query: str, *, limit: int, threshold: float | None = None, when: str | date | None = None
    ) -> list[Memory]:
        """Find what is close to the query and holds, or held `when` it is asked for, best first; each thing once."""
        found_ = self.judged(query, limit=limit, threshold=threshold, when=when)
        return [found(one.hit) for one in found_ if not one.left_out]

    def judged(
        self, query: str, *, limit: int, threshold: float | None = None, when: str | date | None = None
    ) -> list[Judged]:
        """As `search`, with what was found and left out after it, and why."""
        moment = None if when is None else as_of(when)
        wanted = Wanted(limit=limit, threshold=threshold, objection=lambda value: not_holding(value, moment))
        return judged(self.store, self.namespace, query, wanted)

    def get(self, key: str) -> Memory | None:
        """Return one memory of this user by its id, the past too."""
        item = self.store.get(self.namespace, key)
        return memory_of(key, item.value) if item else None

    def all(self, *, past: bool = False, when: str | date | None = None) -> list[Memory]:
        """Return every memory of this user that holds, or held at a time, or ever; newest first."""
        moment = None if when is None else as_of(when)
        items = [one for one in everything(self.store, self.namespace) if past or not not_holding(one.value, moment)]
        return sorted((memory_of(item.key, item.value) for item in items), key=lambda m: (m.at, m.id), reverse=True)

    def split(self, key: str) -> list[Memory]:
        """Undo merging: make each other wording a memory of its own, for good; return them."""
        key, made = clean(key), list[str]()

        def change(seen: Mapping[str, Value | None]) -> dict[str, Value | None]:
            value = seen[key]
            variants = value.get("variants", []) if value else []
            own = {exact_id(one["text"]): Said.again(one).into(None) for one in variants}
            made[:] = own
            left = value and {**value, "variants": [], "seen": max(value["seen"] - len(own), 1)}
            return {**({key: left} if own else {}), **own}

        self.edit([key], change)
        return [memory for one in made if (memory := self.get(one))]

    def forget(self, key: str) -> bool:
        """Delete a memory with its wordings and past, and see to it that nothing brings it back; whether it was there.

        What stays is its id and when it was forgotten. The transcript keeps the messages.
        """
        item = self.store.get(self.namespace, key)
        if item is None:
            return False
        memory = memory_of(key, item.value)
        texts = [memory.text, *memory.variants]
        self.ledger.forget({key, *map(exact_id, texts), *map(memory_id, texts)}, stamp(self.clock()))
        for source in memory.sources:
            self.ledger.note(source.thread, [source.message])
        self.edit([key], lambda seen: {key: None})
        return True

    def edit(self, keys: Sequence[str], change: Callable[[Mapping[str, Value | None]], Any]) -> Mapping[str, Any]:
        """Change memories as one step; what they say and are about is searched."""
        return edit(self.store, self.namespace, list(dict.fromkeys(keys)), change, index=["text", "about"])


@dataclass(frozen=True, kw_only=True)
class Said:
    """One saying of a statement."""

    text: str
    at: str
    about: str = ""
    sources: tuple[Source, ...] = ()

    @classmethod
    def again(cls, variant: Mapping[str, Any]) -> "Said":
        """Read a wording that was merged."""
        return cls(text=variant["text"], at=variant["at"], sources=tuple(Source(**one) for one in variant["sources"]))

    def into(self, value: Value | None) -> Value:
        """Write it as a new memory, or count it in one that says the same."""
        sources = [asdict(source) for source in self.sources]
        if value is None:
            fresh = {"text": self.text, "about": self.about or None, "at": self.at, "last_seen": self.at}
            return {**BLANK, **fresh, "sources": sources, "frame": frame_of(self.text)}
        value = BLANK | value
        if sources and all(source in value["sources"] for source in sources):
            return value  # the same message again says nothing more
        value = {**value, "sources": bounded([*value["sources"], *(s for s in sources if s not in value["sources"])])}
        value |= {"seen": value["seen"] + 1, "last_seen": max(value["last_seen"], self.at)}
        value["about"] = value["about"] or self.about or None
        if value["until"] and self.at > value["until"]:  # it holds again
            value |= {"past": [*value["past"], [value["at"], value["until"]]], "at": self.at}
            value |= {"until": None, "superseded_by": ""}
        known = {wording(one["text"]) for one in [value, *value["variants"]]}
        if wording(self.text) not in known:
            variant = {"text": self.text, "at": self.at, "sources": sources}
            value["variants"] = bounded([*value["variants"], variant])
        return value


def bounded(entries: list[Any]) -> list[Any]:
    """Keep the first entry and the newest ones: a statement that is made a thousand times does not grow."""
    return entries if len(entries) <= MOST_KEPT else [entries[0], *entries[1 - MOST_KEPT :]]


def ended(value: Value, *, by: str, at: str) -> Value:
    """Let a statement hold no longer than until another one took its place."""
    return value if value.get("until") else {**value, "until": max(at, value["at"]), "superseded_by": by}


def not_holding(value: Mapping[str, Any], moment: str | None) -> str:
    """Say why a statement does not hold, now or at a moment; empty if it does."""
    value = {**BLANK, **value}
    if moment is None:
        return f"superseded on {value['until'][:10]} by {value['superseded_by']}" if value["until"] else ""
    intervals = [*value["past"], (value["at"], value["until"])]
    held = any(start <= moment and (end is None or moment < end) for start, end in intervals)
    return "" if held else f"did not hold on {moment[:10]}"


def memory_id(text: str) -> str:
    """Name a statement by what it says, so that the same one never has two ids."""
    return "m-" + hashlib.sha256(canonical(text).encode()).hexdigest()[:12]


def exact_id(text: str) -> str:
    """Name a statement by its wording, for one that was split from those that say the same."""
    return "m-" + hashlib.sha256(f"={wording(text)}".encode()).hexdigest()[:12]


def memory_of(key: str, value: Mapping[str, Any]) -> Memory:
    """Read a stored value."""
    value = {**BLANK, **value}
    same = ("text", "at", "seen", "until", "superseded_by")
    return Memory(
        id=key,
        about=value["about"] or "",
        sources=tuple(Source(**source) for source in value["sources"]),
        past=tuple((start, end) for start, end in value["past"]),
        variants=tuple(one["text"] for one in value["variants"]),
        **{name: value[name] for name in same},
    )


def found(hit: SearchItem) -> Memory:
    """Read a search hit with its score and its reason."""
    why = "closest in meaning" if hit.score is not None else "listed"
    return replace(memory_of(hit.key, hit.value), score=hit.score, why=why)

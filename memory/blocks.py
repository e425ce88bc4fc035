"""Core memory: blocks of text that are always in the prompt, edited through gates by the model and by people.

What a block is like comes from the configuration; its text and every version of it lie in the store. Each edit is one
step that no other writer comes between. A seed is not stored before the first edit, so it never covers what is there.
"""

import difflib
import json
import unicodedata
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, fields
from datetime import UTC, datetime
from typing import Any, Literal

from langgraph.store.base import BaseStore, GetOp, Item

from memory.block_specs import DEFAULT_BLOCKS, MAX_LIMIT, BlockRefused, BlockSpec, checked, distinct
from memory.editing import Value, Values, edit
from memory.labels import label as as_label
from memory.matching import closest, places, uniform
from memory.owner import owned
from memory.text import is_bare
from memory.times import clock_of

BLANK = "the text is blank; write what the block shall say"
UNKNOWN = "there is no block {label!r}{hint}. The blocks are, to the letter: {known}"
READ_ONLY = "the block {label!r} is read-only for the agent; only a person can edit it. Writable are: {writable}"
NOTHING_OLD = "the text to replace is empty; give the text as it stands in the block, or append"
ABSENT = "this text does not stand in the block {label!r}; {closest}. Copy the text as it stands there, or append"
MANY = "this text stands {count} times in the block {label!r}: {places}. Give more of what is around the one you mean"
MOVED = "the block {label!r} was edited meanwhile (it is at version {now}, not {seen}); look at it again"
NO_VERSION = "the block {label!r} has no version {version}; it has 0 to {last}"
MOST_PLACES = 5
PLACE_CHARS = 40
KNOWN_CALLS = 50
"""Calls whose edits are recognised when a turn that was cut off runs them again."""


@dataclass(frozen=True, kw_only=True)
class Author:
    """Who edits, and in which thread on which message of the user; `call` names the very call of a tool."""

    by: Literal["agent", "person"]
    thread: str = ""
    message: str = ""
    call: str = ""


@dataclass(frozen=True, kw_only=True)
class Block:
    """A block as it is, or as one of its versions was. `at` is ISO-8601 in UTC; version 0 is the seed."""

    spec: BlockSpec
    text: str
    version: int = 0
    action: str = "seed"
    at: str = ""
    by: str = "configuration"
    thread: str = ""
    message: str = ""

    @property
    def fill(self) -> str:
        """How full it is, as in `human 312/2000`."""
        return f"{self.spec.label} {len(self.text)}/{self.spec.limit}"


@dataclass(frozen=True, kw_only=True)
class Edit:
    """What became of an edit: the block after it, and whether it says anything else than before."""

    block: Block
    changed: bool


KEPT = tuple(field.name for field in fields(Block) if field.name != "spec")


class Blocks:
    """The blocks of one user. A version that was replaced stays, in an item of its own: `human.3` beside `human`."""

    def __init__(
        self,
        store: BaseStore,
        *,
        user: str,
        specs: tuple[BlockSpec, ...] = DEFAULT_BLOCKS,
        clock: Callable[[], datetime] | None = None,
    ) -> None:
        self.store = store
        self.namespace = owned(user, "blocks")
        self.specs = {spec.label: spec for spec in distinct(specs)}
        self.clock = clock or clock_of(store)

    def all(self) -> list[Block]:
        """Return every block that is configured, in that order."""
        keys = [as_label(name) for name in self.specs]
        return [block_of(spec, value) for spec, value in zip(self.specs.values(), self._values(keys), strict=True)]

    def get(self, label: str) -> Block:
        """Return one block. Raises BlockRefused for a label that is none."""
        spec = self._spec(label)
        return block_of(spec, self._values([as_label(spec.label)])[0])

    def history(self, label: str) -> list[Block]:
        """Return the versions of a block, oldest first; the last is what it says now."""
        block = self.get(label)
        past = self._values([version_key(block.spec, n) for n in range(block.version)])
        return [*(block_of(block.spec, value) for value in past if value), block]

    def append(self, label: str, content: str, *, author: Author) -> Edit:
        """Add lines at the end; lines that stand there already are not added again. Raises BlockRefused."""
        content = uniform(content).strip("\n")
        if is_bare(content):
            raise BlockRefused("arguments valid", BLANK)
        return self._edit(label, lambda block: with_lines(block.text, content), author, "append")

    def replace(self, label: str, old: str, new: str, *, author: Author) -> Edit:
        """Replace `old` where it stands, at one place alone; an empty `new` removes it. Raises BlockRefused."""
        old, new = uniform(old), uniform(new)
        if not old:
            raise BlockRefused("arguments valid", NOTHING_OLD)
        return self._edit(label, lambda block: replaced(block, old, new), author, "replace")

    def rewrite(
        self, label: str, text: str, *, author: Author, seen: int | None = None, action: str = "rewrite"
    ) -> Edit:
        """Replace the whole text, if the block is still at the version that was `seen`. Raises BlockRefused."""

        def whole(block: Block) -> str:
            if seen is not None and block.version != seen:
                raise BlockRefused("not changed meanwhile", MOVED.format(label=label, now=block.version, seen=seen))
            return text

        return self._edit(label, whole, author, action)

    def undo(self, label: str = "", *, author: Author, version: int | None = None) -> Edit:
        """Bring back the version before the last, or the one named; of the block edited last, if none is named.

        It is an edit like any other: it can be undone. Raises BlockRefused.
        """
        block = self.get(label) if label else max(self.all(), key=lambda one: (one.at, one.version))
        target = block.version - 1 if version is None else version
        past = next((one for one in self.history(block.spec.label) if one.version == target), None)
        if past is None:
            told = NO_VERSION.format(label=block.spec.label, version=target, last=block.version)
            raise BlockRefused("arguments valid", told)
        return self.rewrite(block.spec.label, past.text, author=author, seen=block.version, action="undo")

    def _edit(self, label: str, make: Callable[[Block], str], author: Author, action: str) -> Edit:
        """Take an edit through the gates and write it, with the version that it replaces beside it."""
        spec = self._spec(label)
        if spec.read_only and author.by == "agent":
            writable = [one.label for one in self.specs.values() if not one.read_only]
            told = READ_ONLY.format(label=label, writable=", ".join(map(repr, writable)) or "none")
            raise BlockRefused("block exists and is writable", told)
        key, done = as_label(spec.label), []

        def change(seen: Values) -> Values:
            before, calls = block_of(spec, seen[key]), list((seen[key] or {}).get("calls", []))
            text = before.text if author.call and author.call in calls else checked(spec, make(before), before.text)
            after = Block(spec=spec, text=text, version=before.version + 1, action=action, at=self._at(),
                          by=author.by, thread=author.thread, message=author.message)  # fmt: skip
            done.append(Edit(block=before if text == before.text else after, changed=text != before.text))
            if text == before.text:
                return {}
            written = {**stored(after), "calls": [*calls, author.call][-KNOWN_CALLS:]}
            return {key: written, version_key(spec, before.version): stored(before)}

        edit(self.store, self.namespace, [key], change)
        return done[-1]

    def _spec(self, label: str) -> BlockSpec:
        if spec := self.specs.get(unicodedata.normalize("NFC", label)):
            return spec
        known = {name.casefold(): name for name in self.specs}
        near = difflib.get_close_matches(label[:80].strip().casefold(), known, n=1)
        told = UNKNOWN.format(
            label=label[:80],
            hint=f"; closest is {known[near[0]]!r}" if near else "",
            known=", ".join(map(repr, self.specs)) or "none",
        )
        raise BlockRefused("block exists and is writable", told)

    def _values(self, keys: Sequence[str]) -> list[Value | None]:
        items = self.store.batch([GetOp(self.namespace, key) for key in keys]) if keys else []
        return [item.value if isinstance(item, Item) else None for item in items]

    def _at(self) -> str:
        return self.clock().astimezone(UTC).isoformat(timespec="microseconds")


def with_lines(text: str, content: str) -> str:
    """Add lines at the end of a text, unless they stand in it already."""
    if f"\n{content}\n" in f"\n{text}\n":
        return text
    return f"{text}{'' if not text or text.endswith(chr(10)) else chr(10)}{content}"


def replaced(block: Block, old: str, new: str) -> str:
    """Replace the one place of a text. Raises BlockRefused if there is none, or several."""
    found = places(block.text, old)
    if len(found) == 1:
        start, end = found[0]
        return block.text[:start] + new + block.text[end:]
    label = block.spec.label
    if found:
        told = MANY.format(label=label, count=len(found), places=told_places(block.text, found))
    else:
        near = closest(block.text[:MAX_LIMIT], old)
        hint = f"closest is {quoted(near)}" if near else "nothing in it is like it" if block.text else "it is empty"
        told = ABSENT.format(label=label, closest=hint)
    raise BlockRefused("old text present exactly once", told)


def told_places(text: str, found: Sequence[tuple[int, int]]) -> str:
    """Name places by their lines, with what stands there."""
    told = []
    for start, _ in found[:MOST_PLACES]:
        line_start = text.rfind("\n", 0, start) + 1
        line = text[line_start:].split("\n", 1)[0]
        shown = line if len(line) <= PLACE_CHARS else text[start : start + PLACE_CHARS]
        told.append(f"line {text.count(chr(10), 0, start) + 1} ({quoted(shown)})")
    return ", ".join(told) + (f" and {len(found) - MOST_PLACES} more" if len(found) > MOST_PLACES else "")


def quoted(text: str) -> str:
    """Write a text as a model writes it into the arguments of a call."""
    return json.dumps(text, ensure_ascii=False)


def stored(block: Block) -> dict[str, Any]:
    """Write a version as the store keeps it; what a block is like is not kept, the configuration says it."""
    value = asdict(block)
    return {"label": value.pop("spec")["label"], **value}


def block_of(spec: BlockSpec, value: Value | None) -> Block:
    """Read a stored version; without one, the seed."""
    if value is None:
        return Block(spec=spec, text=spec.text)
    kept = {name: value[name] for name in KEPT if name in value}
    return Block(spec=spec, **{**kept, "text": uniform(str(value.get("text", spec.text)))})


def version_key(spec: BlockSpec, version: int) -> str:
    """Name the item of an earlier version; no label has a full stop once it is encoded."""
    return f"{as_label(spec.label)}.{version}"

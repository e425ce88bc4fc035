"""The transcript: every message ever exchanged in a thread, verbatim. Filing again what is filed changes nothing.

It does not know message classes: an `Entry` comes in, with the whole message as plain data beside its text.
"""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from langgraph.store.base import BaseStore, GetOp, Item, PutOp, SearchItem

from memory.closeness import search_in
from memory.labels import unlabel
from memory.owner import erase, everything, owned

DEPTH = 20
"""Times as many hits are looked at as are wanted where a thread is left out: it may hold most of them."""


@dataclass(frozen=True, kw_only=True)
class Entry:
    """One message. `role` is human, ai or tool; `at` is when it was filed, ISO-8601 in UTC; `data` is all of it.

    What only repeats the record is not `searched`: a search that finds earlier searches would grow without end.
    """

    id: str
    role: str
    text: str
    at: str
    data: dict[str, Any]
    searched: bool = True


@dataclass(frozen=True, kw_only=True)
class Found:
    """An entry that a search found, with its neighbours; `score` is the cosine to the query."""

    thread: str
    entry: Entry
    before: Entry | None
    after: Entry | None
    score: float | None


class Transcript:
    """What was said in one thread of one user."""

    def __init__(self, store: BaseStore, *, user: str, thread: str) -> None:
        self.store = store
        self.namespace = owned(user, "transcript", thread)

    def file(self, entries: Sequence[Entry], *, beside: Sequence[PutOp] = ()) -> list[str]:
        """File what is not filed yet, and write what goes `beside` it in the same step; return the ids of what was new.

        A message that was edited under its old id (a fork) is filed beside the older version, never over it.
        """
        missing = self.missing(entries)
        puts = [
            PutOp(
                self.namespace,
                key_of(entry),
                {**vars(entry), "n": n},
                index=["text"] if entry.searched and entry.text.strip() else False,
            )
            for n, entry in enumerate(missing)
        ]
        if puts or beside:
            self.store.batch([*puts, *beside])
        return [entry.id for entry in missing]

    def missing(self, entries: Sequence[Entry]) -> list[Entry]:
        """Return those entries that are not in the transcript word for word."""
        return [entry for entry, item in self._filed(entries) if item is None]

    def stored(self, entries: Sequence[Entry]) -> list[Entry]:
        """Return entries as they were filed, with the times of that; those that were not, as they are."""
        return [replace(entry, at=item.value["at"]) if item else entry for entry, item in self._filed(entries)]

    def _filed(self, entries: Sequence[Entry]) -> list[tuple[Entry, Item | None]]:
        """Return each entry with what is filed of it, if it is."""
        found: list[Any] = self.store.batch([GetOp(self.namespace, key_of(one)) for one in entries]) if entries else []
        return list(zip(entries, found, strict=True))

    def entries(self) -> list[Entry]:
        """Return everything that was said, oldest first."""
        values = [item.value for item in everything(self.store, self.namespace)]
        values.sort(key=lambda value: (value["at"], value["n"]))
        return [Entry(**{name: value for name, value in one.items() if name != "n"}) for one in values]

    def erase(self) -> int:
        """Delete every entry; return how many there were."""
        return erase(self.store, self.namespace)


def search_said(
    store: BaseStore, *, user: str, query: str, limit: int, thread: str | None = None, but: str | None = None
) -> list[Found]:
    """Find what was said in one thread of a user, or in all `but` one, with what stood around it; best first."""
    namespace = owned(user, "transcript", *([] if thread is None else [thread]))
    depth = limit if but is None else DEPTH * limit
    hits = search_in(store, namespace, query=query, limit=depth, neighbours=True)
    said: dict[str, list[Entry]] = {}
    elsewhere = [hit for hit in hits if but is None or unlabel(hit.namespace[-1]) != but]
    return [found(store, user, hit, said) for hit in elsewhere[:limit]]


def found(store: BaseStore, user: str, hit: SearchItem, said: dict[str, list[Entry]]) -> Found:
    """Return a hit between its neighbours; `said` holds the threads that were read already."""
    thread = unlabel(hit.namespace[-1])
    if thread not in said:
        said[thread] = Transcript(store, user=user, thread=thread).entries()
    entries = said[thread]
    n = next(n for n, entry in enumerate(entries) if key_of(entry) == hit.key)
    before = entries[n - 1] if n > 0 else None
    after = entries[n + 1] if n + 1 < len(entries) else None
    return Found(thread=thread, entry=entries[n], before=before, after=after, score=hit.score)


def key_of(entry: Entry) -> str:
    """Name an entry by its message and what it says: equal content, equal key."""
    content = json.dumps([entry.role, entry.data], ensure_ascii=False, sort_keys=True)
    return f"{entry.id}~{hashlib.sha256(content.encode()).hexdigest()[:8]}"

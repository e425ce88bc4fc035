"""The catalogue: which threads a user has, what each began with, when it was last used, what ended ones were about."""

from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from typing import Literal

from langgraph.store.base import BaseStore, PutOp

from memory.closeness import Wanted, close_hits
from memory.labels import label
from memory.owner import everything, owned
from memory.secrets import mask
from memory.text import clean
from memory.times import clock_of, stamp

TITLE_CHARS = 80


@dataclass(frozen=True, kw_only=True)
class Thread:
    """One conversation. `began` and `used` are ISO-8601 in UTC; `title` is the start of the first message.

    `abstract` tells what it was about once it was `closed`, empty before.
    """

    id: str
    title: str
    began: str
    used: str
    turns: int
    abstract: str = ""
    closed: str = ""

    @property
    def is_open(self) -> bool:
        """Whether something was said since it was closed, or it never was."""
        return not self.closed or self.used > self.closed


class Catalogue:
    """The threads of one user."""

    def __init__(self, store: BaseStore, *, user: str, clock: Callable[[], datetime] | None = None) -> None:
        self.store = store
        self.user, self.namespace = user, owned(user, "threads")
        self.clock = clock or clock_of(store)

    def noting(self, thread: str, first: str) -> PutOp:
        """Return what notes a turn of a thread; `first` is what a new thread begins with."""
        at = stamp(self.clock())
        known = self.get(thread) or Thread(id=thread, title=title_of(first), began=at, used=at, turns=0)
        return self.writing(replace(known, used=at, turns=known.turns + 1))

    def note(self, thread: str, first: str) -> None:
        """Note a turn of a thread."""
        self.store.batch([self.noting(thread, first)])

    def close(self, thread: str, abstract: str) -> None:
        """Write the abstract of a thread that has ended."""
        at = stamp(self.clock())
        known = self.get(thread) or Thread(id=thread, title="", began=at, used=at, turns=0)
        self.store.batch([self.writing(replace(known, abstract=mask(clean(abstract)), closed=at))])

    def writing(self, thread: Thread) -> PutOp:
        """Return what writes an entry; what can be searched of it is its abstract."""
        index: Literal[False] | list[str] = ["abstract"] if thread.abstract else False
        return PutOp(self.namespace, label(thread.id), asdict(thread), index=index)

    def search(self, query: str, *, limit: int, but: str = "") -> list[Thread]:
        """Find ended threads by what they were about, all but the one of this id; best first."""
        hits = close_hits(self.store, self.namespace, query, Wanted(limit=limit + 1, path="abstract"))
        threads = [Thread(**hit.value) for hit in hits if hit.value.get("abstract")]
        return [thread for thread in threads if thread.id != but][:limit]

    def get(self, thread: str) -> Thread | None:
        """Return one thread of this user by its id."""
        item = self.store.get(self.namespace, label(thread))
        return Thread(**item.value) if item else None

    def all(self) -> list[Thread]:
        """Return the user's threads, the last used first."""
        threads = [Thread(**item.value) for item in everything(self.store, self.namespace)]
        return sorted(threads, key=lambda thread: (thread.used, thread.id), reverse=True)

    def forget(self, thread: str) -> None:
        """Take a thread out of the catalogue."""
        self.store.delete(self.namespace, label(thread))


def title_of(first: str) -> str:
    """Name a thread by what it begins with."""
    return " ".join(mask(clean(first)).split())[:TITLE_CHARS]

"""The catalogue: which threads a user has, what each began with, and when it was last used."""

from collections.abc import Callable
from dataclasses import asdict, dataclass
from datetime import UTC, datetime

from langgraph.store.base import BaseStore, Item

from memory.labels import label
from memory.memories import LISTED_AT_ONCE, now
from memory.owner import owned
from memory.text import clean

TITLE_CHARS = 80


@dataclass(frozen=True, kw_only=True)
class Thread:
    """One conversation. `began` and `used` are ISO-8601 in UTC; `title` is the start of the first message."""

    id: str
    title: str
    began: str
    used: str
    turns: int


class Catalogue:
    """The threads of one user."""

    def __init__(self, store: BaseStore, *, user: str, clock: Callable[[], datetime] = now) -> None:
        self.store = store
        self.namespace = owned(user, "threads")
        self.clock = clock

    def note(self, thread: str, first: str) -> Thread:
        """Note a turn of a thread; `first` is what a new thread begins with."""
        stamp = self.clock().astimezone(UTC).isoformat(timespec="seconds")
        known = self.get(thread)
        title = known.title if known else " ".join(clean(first).split())[:TITLE_CHARS]
        noted = Thread(
            id=thread,
            title=title,
            began=known.began if known else stamp,
            used=stamp,
            turns=known.turns + 1 if known else 1,
        )
        self.store.put(self.namespace, label(thread), asdict(noted), index=False)
        return noted

    def get(self, thread: str) -> Thread | None:
        """Return one thread of this user by its id."""
        item = self.store.get(self.namespace, label(thread))
        return Thread(**item.value) if item else None

    def all(self) -> list[Thread]:
        """Return the user's threads, the last used first."""
        items: list[Item] = []
        while page := self.store.search(self.namespace, limit=LISTED_AT_ONCE, offset=len(items)):
            items += page
        return sorted(
            (Thread(**item.value) for item in items), key=lambda thread: (thread.used, thread.id), reverse=True
        )

    def forget(self, thread: str) -> None:
        """Take a thread out of the catalogue."""
        self.store.delete(self.namespace, label(thread))

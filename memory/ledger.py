"""The ledger of extraction: which messages were read, where it failed, and what must never come back.

It holds ids and times, no word that the user said.
"""

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from langgraph.store.base import BaseStore, GetOp, Item, PutOp

from memory.editing import edit_one
from memory.labels import label
from memory.owner import Team, erase, everything, owned


@dataclass(frozen=True, kw_only=True)
class Failing:
    """A thread in which extraction fails: why, since when the last time, and how often in a row."""

    thread: str
    why: str
    at: str
    times: int


class Ledger:
    """What extraction did for one user."""

    def __init__(self, store: BaseStore, *, user: str | Team) -> None:
        self.store = store
        self.user = user
        self.gone = owned(user, "forgotten")
        self.failing = owned(user, "failing")

    def read(self, thread: str) -> tuple[str, ...]:
        """Name the place where a thread's read messages are noted."""
        return owned(self.user, "extracted", thread)

    def note(self, thread: str, messages: Iterable[str]) -> None:
        """Note messages, by id or by id and content, as read: nothing is extracted from them again."""
        self.store.batch([PutOp(self.read(thread), label(message), {}, index=False) for message in messages])

    def unread(self, thread: str, messages: Sequence[Sequence[str]]) -> list[int]:
        """Return the places of those messages of which none of the names is noted."""
        names = [(n, name) for n, known in enumerate(messages) for name in known]
        found = self.store.batch([GetOp(self.read(thread), label(name)) for _, name in names]) if names else []
        done = {n for (n, _), item in zip(names, found, strict=True) if isinstance(item, Item)}
        return [n for n in range(len(messages)) if n not in done]

    def failed(self, thread: str, why: str, at: str) -> None:
        """Record that extraction failed; it stays until it succeeds."""

        def more(old: dict[str, Any] | None) -> dict[str, Any]:
            return asdict(Failing(thread=thread, why=why, at=at, times=(old["times"] if old else 0) + 1))

        edit_one(self.store, self.failing, label(thread), more)

    def succeeded(self, thread: str) -> None:
        """Take back that extraction failed."""
        if self.store.get(self.failing, label(thread)):
            self.store.delete(self.failing, label(thread))

    def failures(self) -> list[Failing]:
        """Return the threads in which extraction fails, the latest first."""
        found = [Failing(**item.value) for item in everything(self.store, self.failing)]
        return sorted(found, key=lambda one: one.at, reverse=True)

    def forget(self, ids: Iterable[str], at: str) -> None:
        """Note the ids of what the user wished forgotten."""
        self.store.batch([PutOp(self.gone, id, {"at": at}, index=False) for id in ids])

    def forgotten(self, ids: Sequence[str]) -> list[str]:
        """Return when those of these ids that were forgotten were."""
        found = self.store.batch([GetOp(self.gone, id) for id in ids])
        return [item.value["at"] for item in found if isinstance(item, Item)]

    def erase(self, thread: str) -> None:
        """Delete what is noted of a thread."""
        erase(self.store, self.read(thread))
        self.store.delete(self.failing, label(thread))

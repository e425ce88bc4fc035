"""Facts: key → value with a history, for what must never blur. The newest value holds; older ones keep their time.

They are few and always in the prompt, so they are listed and never searched.
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from langgraph.store.base import BaseStore

from memory.labels import label
from memory.memories import LISTED_AT_ONCE, now
from memory.owner import owned
from memory.text import clean


@dataclass(frozen=True, kw_only=True)
class Fact:
    """One value of one key. `since` and `until` are ISO-8601 in UTC; `until` is None for what holds now."""

    key: str
    value: str
    since: str
    until: str | None = None


class Facts:
    """What is settled about one user."""

    def __init__(self, store: BaseStore, *, user: str, clock: Callable[[], datetime] = now) -> None:
        self.store = store
        self.namespace = owned(user, "facts")
        self.clock = clock

    def set(self, key: str, value: str) -> Fact:
        """Make `value` the present value of `key`; the old one goes to the history. Raises ValueError for a blank."""
        key, value = clean(key).strip(), clean(value).strip()
        if not key or not value:
            raise ValueError(f"a fact needs a key and a value, got {key!r}: {value!r}")
        item = self.store.get(self.namespace, label(key))
        past = list(item.value["history"]) if item else []
        if past and past[-1]["value"] == value:
            return Fact(key=key, value=value, since=past[-1]["since"])
        since = self.clock().astimezone(UTC).isoformat(timespec="seconds")
        past.append({"value": value, "since": since})
        self.store.put(self.namespace, label(key), {"key": key, "value": value, "history": past}, index=False)
        return Fact(key=key, value=value, since=since)

    def all(self) -> list[Fact]:
        """Return what holds now, by key."""
        items = self.store.search(self.namespace, limit=LISTED_AT_ONCE)
        return sorted((history_of(item.value)[-1] for item in items), key=lambda fact: fact.key)

    def history(self, key: str) -> list[Fact]:
        """Return every value that the key had, oldest first."""
        item = self.store.get(self.namespace, label(key))
        return history_of(item.value) if item else []


def history_of(value: dict[str, Any]) -> list[Fact]:
    """Read a stored history: each value holds until the next one starts."""
    past = value["history"]
    ends = [later["since"] for later in past[1:]] + [None]
    return [
        Fact(key=value["key"], value=one["value"], since=one["since"], until=end)
        for one, end in zip(past, ends, strict=True)
    ]

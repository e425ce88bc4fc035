"""Facts: key → values with a history, for what must never blur. What holds no more keeps its time.

A key's history is a list of events; what holds when is worked out from it. So an event that is learnt of late finds its
place by its time, and nothing is ever overwritten. Facts are few and always in the prompt: listed, never searched.
"""

import re
import unicodedata
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime
from typing import Any, Literal

from langgraph.store.base import BaseStore

from memory.editing import Value, edit_one
from memory.labels import label
from memory.owner import everything, owned
from memory.text import clean, is_bare
from memory.times import as_of, clock_of, stamp

Event = dict[str, Any]
"""A value, how it holds, since when and where that was said, and `again` when it was said the last time."""

How = Literal["now", "also", "no longer"]
"""A value is the one that holds `now`, holds `also` beside the others, or holds `no longer`."""

ADDS_UP = re.compile(r"allerg|intoleran|过敏|不耐受|忌口", re.IGNORECASE)
"""Keys whose values are never replaced, only ended one by one: a second allergy does not heal the first."""


@dataclass(frozen=True, kw_only=True)
class Fact:
    """One value of one key, and where it was stated. Times are ISO-8601 in UTC; `until` is None for what holds now."""

    key: str
    value: str
    since: str
    until: str | None = None
    thread: str = ""
    message: str = ""


class NothingToEnd(ValueError):
    """A value that is to hold no longer and does not hold; `holding` are those that do."""

    def __init__(self, key: str, value: str, holding: Sequence[str]) -> None:
        super().__init__(f"{key!r} has no value {value!r}; what holds is: {', '.join(map(repr, holding)) or 'nothing'}")
        self.holding = list(holding)


class Facts:
    """What is settled about one user."""

    def __init__(self, store: BaseStore, *, user: str, clock: Callable[[], datetime] | None = None) -> None:
        self.store = store
        self.namespace = owned(user, "facts")
        self.clock = clock or clock_of(store)

    def set(
        self,
        key: str,
        value: str,
        how: How = "now",
        *,
        at: datetime | None = None,
        thread: str = "",
        message: str = "",
    ) -> list[Fact]:
        """Write what was stated of a key at a time, now by default; return what holds of it now.

        What holds already is left as it is, and so is what stands beside it: to repeat a value ends no other.
        Raises ValueError for a blank, and NothingToEnd.
        """
        key, value = " ".join(clean(key).split()), clean(value).strip()
        if is_bare(key) or is_bare(value):
            raise ValueError(f"a fact needs a key and a value, got {key!r}: {value!r}")
        if how == "now" and ADDS_UP.search(key):
            how = "also"
        event = {"value": value, "how": how, "at": stamp(at or self.clock()), "thread": thread, "message": message}

        def change(old: Value | None) -> Value:
            known = old or {"key": key, "events": []}
            events, changed = with_event(known["events"], event)
            if how == "no longer" and not changed:
                raise NothingToEnd(key, value, [fact.value for fact in holding(history_of(known))])
            return {**known, "events": events}

        return holding(history_of(edit_one(self.store, self.namespace, label(folded(key)), change)))

    def all(self, *, when: str | date | None = None) -> list[Fact]:
        """Return what holds, or held at a time, by key."""
        moment = None if when is None else as_of(when)
        items = everything(self.store, self.namespace)
        facts = [fact for item in items for fact in holding(history_of(item.value), moment)]
        return sorted(facts, key=lambda fact: (folded(fact.key), fact.since))

    def get(self, key: str, *, when: str | date | None = None) -> list[Fact]:
        """Return the values of a key that hold, or held at a time."""
        return holding(self.history(key), None if when is None else as_of(when))

    def history(self, key: str) -> list[Fact]:
        """Return every value that the key had, the first to hold first."""
        item = self.store.get(self.namespace, label(folded(key)))
        return history_of(item.value) if item else []


def folded(text: str) -> str:
    """Fold case, width, spaces, a final stop and what nobody sees away, which make no other key and no other value."""
    seen = "".join(char for char in unicodedata.normalize("NFKC", text) if unicodedata.category(char) != "Cf")
    return " ".join(seen.casefold().split()).rstrip(".。!！ ") or text


def holding(facts: Sequence[Fact], moment: str | None = None) -> list[Fact]:
    """Return those facts that hold, or held at a moment."""
    if moment is None:
        return [fact for fact in facts if fact.until is None]
    return [fact for fact in facts if fact.since <= moment and (fact.until is None or moment < fact.until)]


def history_of(value: Value) -> list[Fact]:
    """Work out from a key's events which values held when."""
    facts: list[Fact] = []
    for event in in_time(value["events"]):
        facts = after(facts, event, value["key"])
    return facts


def in_time(events: Sequence[Event]) -> list[Event]:
    """Order events by their time, what was last said again too."""
    said = [*events, *({**event, "at": event["again"]} for event in events if "again" in event)]
    return sorted(said, key=lambda event: str(event["at"]))


def with_event(events: Sequence[Event], event: Event) -> tuple[list[Event], bool]:
    """Return a key's events with one more, and whether it changed something.

    Of what only repeats what holds, the last time is kept, and nothing else: a later event may fall before it.
    """
    facts: list[Fact] = []
    kept: list[Event] = []
    changed = False
    for one in in_time([*events, event]):
        later = after(facts, one, "")
        if later != facts:
            changed = changed or one is event
            kept.append({name: part for name, part in one.items() if name != "again"})
        elif one["how"] != "no longer":
            last = next(known for known in reversed(kept) if folded(known["value"]) == folded(one["value"]))
            last["again"] = one["at"]
        facts = later
    return kept, changed


def after(facts: list[Fact], event: Event, key: str) -> list[Fact]:
    """Return the history after one more event."""
    at, holds = event["at"], [fact.until is None for fact in facts]
    same = [folded(fact.value) == folded(event["value"]) for fact in facts]
    is_known = any(one and other for one, other in zip(holds, same, strict=True))
    if is_known == (event["how"] != "no longer"):
        return facts
    ends = same if event["how"] == "no longer" else [event["how"] == "now"] * len(facts)
    facts = [replace(f, until=at) if held and end else f for f, held, end in zip(facts, holds, ends, strict=True)]
    if event["how"] == "no longer":
        return facts
    made = Fact(key=key, value=event["value"], since=at, thread=event["thread"], message=event["message"])
    return [*facts, made]

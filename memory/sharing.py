"""A user's part in what teams share: found by who said it, and taken out again."""

from collections.abc import Mapping
from typing import Any

from langgraph.store.base import BaseStore

from memory.editing import Value, Values, edit
from memory.owner import SHARED, everything


def withdraw(store: BaseStore, user: str) -> int:
    """Take out of every team's memory what this user alone said, and the user's name from the rest; return how many."""
    items = [item for item in everything(store, (SHARED,)) if said_by(user, item.value)]
    for item in items:

        def change(seen: Values, key: str = item.key) -> Values:
            value = seen[key]
            return {key: without(user, value)} if value else {}

        edit(store, item.namespace, [item.key], change, index=["text", "about"])
    return len(items)


def said_by(user: str, value: Mapping[str, Any]) -> bool:
    """Whether a user is among the sources of a statement or of its other wordings."""
    wordings = [value, *value.get("variants", ())]
    return any(source.get("by") == user for one in wordings for source in one.get("sources", ()))


def without(user: str, value: Value) -> Value | None:
    """Return a statement as it is without a user's sources; None if nobody else said it."""
    left = others(user, value)
    if not left:
        return None
    variants = [{**one, "sources": others(user, one)} for one in value.get("variants", ())]
    return {**value, "sources": left, "variants": [one for one in variants if one["sources"]]}


def others(user: str, value: Mapping[str, Any]) -> list[Any]:
    """Return the sources that are not the user's."""
    return [source for source in value.get("sources", ()) if source.get("by") != user]

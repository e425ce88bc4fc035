"""Whose memory: the namespaces of a user, of which every one starts with the user's own label, or of a team."""

from dataclasses import dataclass
from typing import Any

from langgraph.store.base import BaseStore, Item, PutOp

from memory.labels import label

Namespace = tuple[str, ...]

LISTED_AT_ONCE = 200

ROOTS = ("users", "documents")
"""What is a user's own lies under `(root, U)`, and nowhere else."""

SHARED = "shared"


class BadUser(ValueError):
    """A user id that is no text or is blank."""


@dataclass(frozen=True)
class Team:
    """A team that shares memories, in the place of a user."""

    name: str


def owned(user: str | Team, *kind: str) -> Namespace:
    """Name the place of one kind of memory: `("users", U, kind…)` or `("shared", T, kind…)`, ids encoded as labels."""
    root, name = (SHARED, user.name) if isinstance(user, Team) else (ROOTS[0], user)
    if not isinstance(name, str) or not name.strip():
        raise BadUser(f"a user id must be a non-blank text, got {name!r}; pass one with --user or Context(user=…)")
    return (root, label(name), *(label(part) for part in kind))


def places_of(user: str) -> list[Namespace]:
    """Name the prefixes of all that is a user's own."""
    _, name = owned(user)
    return [(root, name) for root in ROOTS]


def everything(store: BaseStore, namespace: Namespace, condition: dict[str, Any] | None = None) -> list[Item]:
    """Return all items under a namespace that fulfil a condition, the last updated first."""
    items: list[Item] = []
    while page := store.search(namespace, filter=condition, limit=LISTED_AT_ONCE, offset=len(items)):
        items += page
    return items


def erase(store: BaseStore, namespace: Namespace) -> int:
    """Delete all items under a namespace; return how many there were."""
    gone = 0
    while page := store.search(namespace, limit=LISTED_AT_ONCE):
        store.batch([PutOp(item.namespace, item.key, None) for item in page])
        gone += len(page)
    return gone

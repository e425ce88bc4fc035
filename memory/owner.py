"""Whose memory: the namespaces of a user, of which every one starts with the user's own label."""

from typing import Any

from langgraph.store.base import BaseStore, Item, PutOp

from memory.labels import label

Namespace = tuple[str, ...]

LISTED_AT_ONCE = 200

ROOTS = ("users", "documents")
"""What is a user's own lies under `(root, U)`, and nowhere else."""


class BadUser(ValueError):
    """A user id that is no text or is blank."""


def owned(user: str, *kind: str) -> Namespace:
    """Name the place of one kind of memory of one user: `("users", U, kind…)`, ids encoded as labels."""
    if not isinstance(user, str) or not user.strip():
        raise BadUser(f"a user id must be a non-blank text, got {user!r}; pass one with --user or Context(user=…)")
    return (ROOTS[0], label(user), *(label(part) for part in kind))


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

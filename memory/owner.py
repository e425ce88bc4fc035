"""Whose memory: the namespaces of a user, of which every one starts with the user's own label."""

from memory.labels import label

Namespace = tuple[str, ...]


class BadUser(ValueError):
    """A user id that is no text or is blank."""


def owned(user: str, *kind: str) -> Namespace:
    """Name the place of one kind of memory of one user: `("users", U, kind…)`, ids encoded as labels."""
    if not isinstance(user, str) or not user.strip():
        raise BadUser(f"a user id must be a non-blank text, got {user!r}; pass one with --user or Context(user=…)")
    return ("users", label(user), *(label(part) for part in kind))

"""Whole results of tools that were too long for the page: kept by call, read on in pieces. They are not searched."""

from dataclasses import dataclass

from langgraph.store.base import BaseStore, PutOp

from memory.labels import label
from memory.owner import owned
from memory.text import clean


@dataclass(frozen=True, kw_only=True)
class Piece:
    """A piece of a whole: `total` characters in all, `next_offset` where the rest begins, None at the end."""

    text: str
    total: int
    next_offset: int | None


class Outputs:
    """What the tools of one thread of one user gave in full."""

    def __init__(self, store: BaseStore, *, user: str, thread: str) -> None:
        self.store = store
        self.namespace = owned(user, "outputs", thread)

    def keeping(self, call_id: str, text: str) -> PutOp:
        """Return the operation that keeps a whole result under its call's id."""
        return PutOp(self.namespace, label(call_id), {"text": clean(text)}, index=False)

    def read(self, call_id: str, *, offset: int, limit: int) -> Piece | None:
        """Return a piece of a kept result from `offset` on, None if there is none of this id."""
        item = self.store.get(self.namespace, label(call_id))
        if item is None:
            return None
        text = item.value["text"]
        end = offset + limit
        return Piece(text=text[offset:end], total=len(text), next_offset=end if end < len(text) else None)

    def erase(self) -> None:
        """Delete everything that was kept for this thread."""
        while page := self.store.search(self.namespace, limit=100):
            self.store.batch([PutOp(item.namespace, item.key, None) for item in page])

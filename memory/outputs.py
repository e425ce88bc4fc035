"""Whole results of tools that were too long for the page: kept by content, read on in pieces. They are not searched."""

import hashlib

from langgraph.store.base import BaseStore, PutOp

from memory.labels import label
from memory.owner import erase, owned
from memory.text import clean


class Outputs:
    """What the tools of one thread of one user gave in full."""

    def __init__(self, store: BaseStore, *, user: str, thread: str) -> None:
        self.store = store
        self.namespace = owned(user, "outputs", thread)

    def keeping(self, text: str) -> tuple[str, PutOp]:
        """Return the id under which a whole result can be read again, and the operation that keeps it.

        Servers that count from one use the ids of calls again; two results with one id have the same text here.
        """
        text = clean(text)
        id = "r-" + hashlib.sha256(text.encode()).hexdigest()[:12]
        return id, PutOp(self.namespace, id, {"text": text}, index=False)

    def read(self, id: str) -> str | None:
        """Return a kept result, None if there is none of this id."""
        item = self.store.get(self.namespace, label(id))
        return item.value["text"] if item else None

    def erase(self) -> None:
        """Delete everything that was kept for this thread."""
        erase(self.store, self.namespace)

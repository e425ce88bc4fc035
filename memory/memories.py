"""Memories: one statement each, dated, with the messages that it came from.

It does not decide what is worth keeping, and does not extract: texts come in, hits come out.
"""

import hashlib
import unicodedata
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from langgraph.store.base import BaseStore, Item, SearchItem

from memory.owner import owned
from memory.text import clean

LISTED_AT_ONCE = 200
NEAR_BEST = 0.6
"""A hit below this share of the best one's cosine is chance (measured: DECISIONS.md)."""


def now() -> datetime:
    """Return the present in UTC; the default clock."""
    return datetime.now(UTC)


@dataclass(frozen=True, kw_only=True)
class Source:
    """Where a statement was made."""

    thread: str
    message: str


@dataclass(frozen=True, kw_only=True)
class Memory:
    """One statement. `at` is ISO-8601 in UTC; `score` is the cosine to the query, None if not searched by one."""

    id: str
    text: str
    at: str
    sources: tuple[Source, ...] = ()
    seen: int = 1
    score: float | None = None
    why: str = ""


class Memories:
    """The statements kept for one user."""

    def __init__(self, store: BaseStore, *, user: str, clock: Callable[[], datetime] = now) -> None:
        self.store = store
        self.namespace = owned(user, "memories")
        self.clock = clock

    def save(self, text: str, *, sources: Sequence[Source] = ()) -> tuple[Memory, bool]:
        """Keep a statement; return it and whether it is new. The same statement again is counted, not stored twice.

        Raises ValueError for a blank text.
        """
        text = clean(text).strip()
        if not text:
            raise ValueError("a memory must be a non-blank text, got an empty one")
        key = memory_id(text)
        known = self.store.get(self.namespace, key)
        value: dict[str, Any] = (
            dict(known.value) if known else {"text": text, "at": self.at(), "sources": [], "seen": 0}
        )
        fresh = [{"thread": s.thread, "message": s.message} for s in sources]
        value["sources"] += [source for source in fresh if source not in value["sources"]]
        value |= {"seen": value["seen"] + 1, "last_seen": self.at()}
        self.store.put(self.namespace, key, value, index=["text"])
        return memory_of(key, value), known is None

    def search(self, query: str, *, limit: int, threshold: float | None = None) -> list[Memory]:
        """Find what is close to the query, best first. `threshold` is the least cosine; None: the embedder's own."""
        return [found(hit) for hit in close_hits(self.store, self.namespace, query, limit=limit, threshold=threshold)]

    def get(self, key: str) -> Memory | None:
        """Return one memory of this user by its id."""
        item = self.store.get(self.namespace, key)
        return memory_of(key, item.value) if item else None

    def all(self) -> list[Memory]:
        """Return every memory of this user, newest first."""
        items: list[Item] = []
        while page := self.store.search(self.namespace, limit=LISTED_AT_ONCE, offset=len(items)):
            items += page
        return sorted((memory_of(item.key, item.value) for item in items), key=lambda m: (m.at, m.id), reverse=True)

    def at(self) -> str:
        """Return the clock's time in UTC, to the second."""
        return self.clock().astimezone(UTC).isoformat(timespec="seconds")


def close_hits(
    store: BaseStore, namespace: tuple[str, ...], query: str, *, limit: int, threshold: float | None = None
) -> list[SearchItem]:
    """Search a namespace and leave out chance: what is under the threshold, or far under the best hit."""
    query = clean(query)
    if limit <= 0 or not query.strip():
        return []
    look = getattr(store, "find", store.search)  # `find` leaves out what matched in neither leg
    hits: list[SearchItem] = look(namespace, query=query, limit=limit)
    floor = getattr(store, "threshold", 0.0) if threshold is None else threshold
    best = max((hit.score for hit in hits if hit.score is not None), default=0.0)
    return [hit for hit in hits if hit.score is None or hit.score >= max(floor, NEAR_BEST * best)]


def memory_id(text: str) -> str:
    """Name a statement by its content, so that the same one never has two ids: case and spacing aside."""
    plain = " ".join(unicodedata.normalize("NFC", text).casefold().split()).rstrip(".。!！")
    return "m-" + hashlib.sha256(plain.encode()).hexdigest()[:12]


def memory_of(key: str, value: dict[str, Any]) -> Memory:
    """Read a stored value."""
    sources = tuple(Source(thread=s["thread"], message=s["message"]) for s in value.get("sources", ()))
    return Memory(id=key, text=value["text"], at=value["at"], sources=sources, seen=value.get("seen", 1))


def found(hit: SearchItem) -> Memory:
    """Read a search hit with its score and its reason."""
    memory = memory_of(hit.key, hit.value)
    why = "closest in meaning" if hit.score is not None else "listed"
    return Memory(**{**vars(memory), "score": hit.score, "why": why})

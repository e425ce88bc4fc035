"""ChromaStore: a LangGraph store whose record is SQL, and whose search goes by meaning and by words.

This module is the interface: operations in, items out. The record is memory/record.py, how a search works
memory/search.py, what keeps the indexes in step memory/upkeep.py. It opens nothing at import.
"""

import asyncio
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any

from langgraph.store.base import BaseStore, GetOp, Item, ListNamespacesOp, Op, PutOp, Result, SearchOp, TTLConfig

from memory import filters
from memory.chroma import Chroma
from memory.editing import Change, Values
from memory.embedding import Embedder
from memory.errors import BadValue, EmbedderChanged, NewerVersion, StoreError, Unreadable, Unwritable
from memory.estate import Estate
from memory.indexing import BUILT_IN, Entry, Index, StoreIndex, index_from
from memory.legs import EXACT_MAX, Legs, Matrix
from memory.record import Place, Record, Stored
from memory.schema import prepare
from memory.search import Hit, Question, Search, allow
from memory.sql import Database, Sqlite
from memory.times import now
from memory.upkeep import AT_ONCE, Progress, Upkeep
from memory.values import checked, encode, is_storable

__all__ = ["BadValue", "ChromaStore", "EmbedderChanged", "Hit", "NewerVersion"]
__all__ += ["StoreError", "Unreadable", "Unwritable", "open_store"]


@contextmanager
def open_store(
    home: str | Path | None = None,
    *,
    index: StoreIndex | None = BUILT_IN,
    ttl: TTLConfig | None = None,
    database_url: str | None = None,
    chroma_url: str | None = None,
    embedder: Embedder | None = None,
    exact_max: int = EXACT_MAX,
    clock: Callable[[], datetime] = now,
) -> "Iterator[ChromaStore]":
    """Open the store in a folder, made if need be; without one, in a temporary folder.

    `index` is LangGraph's configuration: None for no search, with "embed" for the order by cosine alone unless
    "hybrid" is set; left out, the bundled embedder (or `embedder`) and both legs. `database_url` keeps the
    record in Postgres, `chroma_url` the vector index on a Chroma server; up to `exact_max` vectors a search
    compares all, beyond it asks Chroma. `clock` dates what is said and kept. Raises StoreError.
    """
    with ExitStack() as stack:
        if home is None:
            home = stack.enter_context(tempfile.TemporaryDirectory(prefix="palimpsest-", ignore_cleanup_errors=True))
        place = Path(home).expanduser()
        db = open_database(place, database_url)
        stack.callback(db.close)
        prepare(db)
        chroma = Chroma(db, place / "chroma" if chroma_url is None else chroma_url)
        legs = Legs(db, chroma, exact_max=exact_max)
        store = ChromaStore(db, index_from(index, embedder), legs, chroma, ttl=ttl, clock=clock)
        stack.callback(store.close)
        yield store


def open_database(home: Path, url: str | None) -> Database:
    """Open the database of the record."""
    if url is None:
        return Sqlite(home / "memory.sqlite3")
    from memory.postgres import Postgres  # needs the extra `postgres`

    return Postgres(url)


class ChromaStore(BaseStore):
    """A complete LangGraph store. Made by `open_store`; safe to use from any thread."""

    supports_ttl = True

    def __init__(
        self,
        db: Database,
        index: Index | None,
        legs: Legs,
        chroma: Chroma,
        *,
        ttl: TTLConfig | None = None,
        clock: Callable[[], datetime] = now,
    ) -> None:
        self.ttl_config = ttl
        self.clock = clock
        self._db = db
        self._index = index
        self._record = Record(db)
        self._legs = legs
        self._upkeep = Upkeep(db, index, self._legs, chroma)
        self._search = Search(self._record, index, self._legs) if index else None
        self.estate = Estate(db, self._record, self._legs, chroma, self._upkeep)
        with db.writing() as session:
            self._record.sweep(session)
        self._upkeep.wake()

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        """Run operations: all reads see the store before all writes; of two writes to a place the later wins."""
        ops = [checked(op) for op in ops]
        results: list[Result] = [None] * len(ops)
        gets = [(n, op) for n, op in enumerate(ops) if isinstance(op, GetOp)]
        for (n, _), item in zip(gets, self._get([op for _, op in gets]), strict=True):
            results[n] = item
        for n, op in enumerate(ops):
            if isinstance(op, SearchOp):
                results[n] = self._answer(op)
            elif isinstance(op, ListNamespacesOp):
                results[n] = self._record.namespaces(op)
        if puts := {(op.namespace, op.key): op for op in ops if isinstance(op, PutOp)}:
            self._write(list(puts.values()))
        return results

    def edit(self, namespace: Sequence[str], keys: Sequence[str], change: Change, *, index: Any = None) -> Values:
        """Change items as one step that no writer of any process comes between: see memory/editing.py."""
        places = [(tuple(namespace), key) for key in keys]
        while True:
            seen = dict(zip(places, self._record.get(places), strict=True))
            values = change({key: item.value if item else None for (_, key), item in seen.items()})
            ops = [checked(PutOp(tuple(namespace), key, value, index)) for key, value in values.items()]
            if self._write(ops, expecting=seen):
                return values

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        """Run operations in a worker thread."""
        return await asyncio.to_thread(self.batch, list(ops))

    @property
    def threshold(self) -> float:
        """The cosine under which the embedder's likeness is chance."""
        return self._index.embedder.threshold if self._index and self._index.embedder else 0.0

    @property
    def words_alone(self) -> bool:
        """Whether keywords alone are searched, because no embedder could be loaded."""
        return self._index is not None and self._index.embedder is None

    def find(
        self,
        namespace_prefix: Sequence[str],
        query: str,
        *,
        limit: int = 5,
        filter: Mapping[str, Any] | None = None,
        neighbours: bool = False,
        beside: Sequence[Sequence[str]] = (),
    ) -> list[Hit]:
        """Search by meaning and words and return what matched, nothing else, best first.

        With `neighbours` items lend those written before and after them a share: what a turn of a talk is about often
        stands in the turn before. What is under the prefixes `beside` is in the same order. Raises EmbedderChanged.
        """
        if self._search is None:
            raise StoreError("this store was opened with index=None and cannot search; open it with an index")
        how = {"limit": limit, "neighbours": neighbours}
        question = self._question(namespace_prefix, *beside, text=query, condition=filter, **how)
        asks = limit > 0 and query.strip() and (question.scope.documents or question.scope.vectors)
        return self._search.find(question) if asks else []

    def explain(
        self,
        namespace_prefix: Sequence[str],
        query: str,
        *,
        limit: int = 5,
        filter: Mapping[str, Any] | None = None,
    ) -> list[dict[str, Any]]:
        """Tell, as plain data, what `find` returns and why: each leg's score and rank, and the fused value."""
        hits = self.find(namespace_prefix, query, limit=limit, filter=filter)
        return [{"namespace": list(hit.namespace), "key": hit.key, "score": hit.score, **hit.parts} for hit in hits]

    def likeness(self, hits: Sequence[Hit]) -> Matrix:
        """Return the cosines of hits to each other, zeros without an embedder."""
        dims = self._index.embedder.dims if self._index and self._index.embedder else 0
        return self._legs.between([hit.id for hit in hits], dims)

    def reindex(self, progress: Progress = lambda done, total: None) -> int:
        """Rebuild both legs and Chroma from the record; return how many items. Killed, it goes on where it was."""
        return self._upkeep.reindex(progress)

    def flush(self) -> None:
        """Bring Chroma up to date now, rather than a moment later."""
        self._upkeep.settle()

    def stats(self) -> dict[str, Any]:
        """Count what is stored, what is indexed, and what is still due."""
        return self._upkeep.stats()

    def sweep_ttl(self) -> int:
        """Delete what has expired, as opening does; return how many items. Nobody sees them in any case."""
        with self._db.writing() as session:
            swept = self._record.sweep(session)
        self._upkeep.notify()
        return swept

    def close(self) -> None:
        """Finish what is due. `open_store` calls it."""
        self._upkeep.close()

    def _question(
        self, *prefixes: Sequence[str], text: str, condition: Mapping[str, Any] | None, **how: Any
    ) -> Question:
        filters.check(condition or {})
        if text.strip():
            self._upkeep.check()
            self._upkeep.catch_up(AT_ONCE)
        return Question(scope=self._record.scope(*prefixes), text=text, condition=condition or {}, **how)

    def _get(self, ops: Sequence[GetOp]) -> list[Item | None]:
        askable = [op for op in ops if isinstance(op.key, str) and is_storable(op.key)]
        found = dict(zip(askable, self._record.get([(op.namespace, op.key) for op in askable]), strict=True))
        self._refresh([stored for op, stored in found.items() if stored and op.refresh_ttl])
        # No subclass: a checkpoint gives back LangGraph's own items alone as what they were.
        return [one and Item(**{name: getattr(one, name) for name in Item.__slots__}) for one in map(found.get, ops)]

    def _answer(self, op: SearchOp) -> list[Any]:
        if op.limit <= 0:
            return []
        text = op.query if op.query and self._search else ""
        how = {"limit": op.limit, "offset": max(op.offset, 0), "hybrid": self._index is not None and self._index.hybrid}
        question = self._question(op.namespace_prefix, text=text, condition=op.filter, **how)
        hits = self._search.page(question) if self._search and text.strip() else self._list(question)
        if op.refresh_ttl:
            self._refresh(hits)
        return hits

    def _list(self, question: Question) -> list[Hit]:
        allowed = allow(self._record, question)
        if allowed is not None:
            found = list(allowed.values())[question.offset : question.offset + question.limit]
        else:
            found = self._record.page(question.scope, limit=question.limit, offset=question.offset)
        return [Hit(stored) for stored in found]

    def _write(self, ops: Sequence[Any], *, expecting: Mapping[Place, Stored | None] | None = None) -> bool:
        """Write record, keywords and vectors in one transaction, after everything was checked and embedded.

        Nothing is written, and False returned, if what is there is not what was expected, once nobody else can write.
        """
        puts = [op for op in ops if op.value is not None]
        values = [encode(_name(op), op.value) for op in puts]
        entries = self._entries(puts)
        gone = [(op.namespace, op.key) for op in ops if op.value is None]
        with self._db.writing() as session:
            if expecting and self._record.get(list(expecting)) != list(expecting.values()):
                return False
            removed = [item for item, _ in self._record.find(session, gone).values()]
            self._record.delete(session, gone)
            self._legs.remove(session, removed)
            ids = self._record.put(session, puts, values)
            if entries is not None and self._upkeep.is_current(session):
                placed = [(*place, entry) for place, entry in zip(ids, entries, strict=True)]
                self._legs.replace(session, placed, embedded=not self.words_alone)
        self._upkeep.notify()
        return True

    def _entries(self, puts: Sequence[PutOp]) -> list[Entry] | None:
        """Derive what is searched; None if another index than this one is in use, which will do it itself."""
        if self._index is None or not self._upkeep.fits():
            return None
        return self._index.entries([(_name(op), op.value or {}, op.index) for op in puts])

    def _refresh(self, items: Iterable[Stored | Hit]) -> None:
        if not (self.ttl_config or {}).get("refresh_on_read"):
            return
        if mortal := [item for item in items if item.ttl is not None]:
            self._record.refresh([((item.namespace, item.key), float(item.ttl or 0)) for item in mortal])


def _name(op: PutOp) -> str:
    return f"{'/'.join(op.namespace)}/{op.key}"

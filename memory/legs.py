"""Both legs of a search over one database: the terms of items, and their vectors.

Postings are clustered by namespace and term, vectors lie a namespace's side by side: a search reads its own namespaces
and their statistics, so cost and scores do not depend on other people's data. (FTS5 ranks over the whole table, and
cannot read two Chinese characters.) A scope of a few thousand items is compared whole, exactly; for a larger one
Chroma names the candidates (memory/chroma.py) and the vectors here have the last word, so that a hit is never scored by
what it used to be. Reading a user's 100 or 1,000 vectors takes 0.5 or 3 ms here, by id from Chroma 4 or 40 ms.
"""

from collections.abc import Iterable, Sequence
from itertools import groupby

import numpy as np
from numpy.typing import NDArray

from memory.chroma import Chroma
from memory.indexing import Placed
from memory.record import Scope
from memory.schema import CHANGED, DERIVED, GONE, IN_CHROMA, SPACE, WORDED
from memory.sql import Database, Row, Session
from memory.words import bm25, query_terms

EXACT_MAX = 5000
"""Up to so many vectors a scope is compared whole: about 10 ms; Chroma with a filter is slower from 10,000 on."""
CANDIDATES = 200
"""So many of each leg are fused in a large scope, or as many as a page holds."""

Matrix = NDArray[np.float32]


class Legs:
    """What is searched of items: written and counted together, read by each leg."""

    def __init__(self, db: Database, chroma: Chroma, *, exact_max: int) -> None:
        self._db = db
        self._chroma = chroma
        self._exact_max = exact_max

    def by_words(self, scope: Scope, query: str, *, threads: Sequence[Sequence[int]] = ()) -> dict[int, float]:
        """Score every item of the scope that holds a term of the query, 0 to 1; the others are absent.

        With `threads`, items in the order of a talk, each also counts a share of its neighbours' terms.
        """
        postings: dict[str, dict[int, int]] = {term: {} for term in query_terms(query)}
        if not postings or not scope.documents:
            return {}
        inside, spaces = self._db.among("space", scope.spaces)
        holding, terms = self._db.among("term", postings)
        with self._db.reading() as session:
            sql = f"SELECT term, item, count, length FROM mem_postings WHERE {inside} AND {holding}"
            rows = session.run(sql, (spaces, terms))
            lengths = {row[1]: row[3] for row in rows}
            if threads:
                lengths = dict(session.run(f"SELECT id, length FROM mem_items WHERE {inside}", (spaces,)))
        for term, item, count, _ in rows:
            postings[term][item] = count
        mean_length = scope.terms / scope.documents
        return bm25(postings, lengths, documents=scope.documents, mean_length=mean_length, threads=threads)

    def is_exact(self, scope: Scope) -> bool:
        """Whether the scope is small enough to be compared whole."""
        return scope.vectors <= self._exact_max

    def by_meaning(self, scope: Scope, query: Matrix, *, wanted: int) -> dict[int, float]:
        """Return the cosine of every item of the scope, or of the closest ones if it is large."""
        if self.is_exact(scope):
            return self._whole(scope, query)
        near = self._chroma.nearest(query, wanted, scope)
        if near is None:
            return self._whole(scope, query)
        return self.of([*near, *self._pending(scope)], query)

    def of(self, ids: Iterable[int], query: Matrix) -> dict[int, float]:
        """Return the cosines of these items, without those that have no vector."""
        return _cosines(self._rows(ids), query)

    def between(self, ids: Sequence[int], dims: int) -> Matrix:
        """Return the cosines of items to each other, by their first parts; 0 for those without a vector."""
        first = {row[0] % SPACE: np.frombuffer(row[1], dtype=np.float32, count=dims) for row in self._rows(ids)}
        matrix = np.zeros((len(ids), dims), dtype=np.float32)
        for n, item in enumerate(ids):
            matrix[n] = first.get(item, 0)
        return matrix @ matrix.T

    def _rows(self, ids: Iterable[int]) -> list[Row]:
        condition, array = self._db.among("i.id", ids)
        sql = (
            "SELECT v.id, v.vectors FROM mem_items i JOIN mem_vectors v "
            f"ON v.id = i.space * {SPACE} + i.id WHERE i.parts > 0 AND {condition}"
        )
        with self._db.reading() as session:
            return session.run(sql, (array,))

    def _whole(self, scope: Scope, query: Matrix) -> dict[int, float]:
        condition, spaces = self._db.among("p.id", scope.spaces)
        sql = (
            "SELECT v.id, v.vectors FROM mem_spaces p JOIN mem_vectors v "
            f"ON v.id >= p.id * {SPACE} AND v.id < (p.id + 1) * {SPACE} WHERE p.vectors > 0 AND {condition}"
        )
        with self._db.reading() as session:
            return _cosines(session.run(sql, (spaces,)), query)

    def _pending(self, scope: Scope) -> list[int]:
        """Items that Chroma does not know yet."""
        condition, spaces = self._db.among("space", scope.spaces)
        sql = f"SELECT id FROM mem_items WHERE state IN ({CHANGED}, {DERIVED}) AND state <> {IN_CHROMA}"
        with self._db.reading() as session:
            return [row[0] for row in session.run(f"{sql} AND {condition}", (spaces,))]

    def replace(self, session: Session, placed: Sequence[Placed], *, embedded: bool) -> None:
        """Write what is searched of items; unless `embedded`, vectors are still due."""
        self._clear(session, [item for item, _, _ in placed])
        new = [(item, space, entry.terms, entry.terms.total(), entry.vectors) for item, space, entry in placed]
        session.run_many(
            "INSERT INTO mem_postings (space, term, item, count, length) VALUES (?, ?, ?, ?, ?)",
            (
                (space, term, item, count, length)
                for item, space, terms, length, _ in new
                for term, count in sorted(terms.items())
            ),
        )
        session.run_many(
            "INSERT INTO mem_vectors (id, vectors) VALUES (?, ?)",
            [(space * SPACE + item, vectors.tobytes()) for item, space, _, _, vectors in new if len(vectors)],
        )
        session.run_many(
            "UPDATE mem_items SET terms = ?, length = ?, parts = ?, "
            f"state = CASE WHEN {not embedded} THEN {WORDED} "
            f"WHEN ? > 0 OR in_chroma > 0 THEN {DERIVED} ELSE {IN_CHROMA} END WHERE id = ?",
            [(" ".join(terms), length, len(rows), len(rows), item) for item, _, terms, length, rows in new],
        )
        _count(session, [(space, length > 0, length, len(rows)) for _, space, _, length, rows in new])

    def remove(self, session: Session, items: Sequence[int]) -> None:
        """Remove what was searched of items that are gone from the record."""
        self._clear(session, items)
        session.run_many(
            f"DELETE FROM mem_items WHERE id = ? AND state = {GONE} AND in_chroma = 0", [(item,) for item in items]
        )

    def _clear(self, session: Session, items: Sequence[int]) -> None:
        condition, ids = self._db.among("id", items)
        sql = f"SELECT id, space, terms, length, parts FROM mem_items WHERE (length > 0 OR parts > 0) AND {condition}"
        if not (old := session.run(sql, (ids,))):
            return
        session.run_many(
            "DELETE FROM mem_postings WHERE space = ? AND term = ? AND item = ?",
            ((space, term, item) for item, space, terms, _, _ in old for term in terms.split()),
        )
        session.run_many("DELETE FROM mem_vectors WHERE id = ?", [(row[1] * SPACE + row[0],) for row in old if row[4]])
        session.run_many(
            "UPDATE mem_items SET terms = '', length = 0, parts = 0 WHERE id = ?", [row[:1] for row in old]
        )
        _count(session, [(space, -(length > 0), -length, -parts) for _, space, _, length, parts in old])


def _count(session: Session, changes: Sequence[tuple[int, int, int, int]]) -> None:
    """Add documents, terms and vectors to what is counted of namespaces."""
    spaces = groupby(sorted(changes), key=lambda change: change[0])
    session.run_many(
        "UPDATE mem_spaces SET documents = documents + ?, terms = terms + ?, vectors = vectors + ? WHERE id = ?",
        [(*(sum(column) for column in list(zip(*rows, strict=True))[1:]), space) for space, rows in spaces],
    )


def _cosines(rows: Sequence[Row], query: Matrix) -> dict[int, float]:
    """Compare rows of (id, vectors of one item) with the query; an item counts as its best part."""
    if not rows:
        return {}
    matrix = np.frombuffer(b"".join(row[1] for row in rows), dtype=np.float32).reshape(-1, len(query))
    parts = np.array([len(row[1]) // (4 * len(query)) for row in rows])
    best = np.maximum.reduceat(matrix @ query, np.concatenate(([0], np.cumsum(parts)[:-1])))
    return {row[0] % SPACE: float(score) for row, score in zip(rows, best, strict=True)}

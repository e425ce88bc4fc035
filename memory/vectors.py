"""The vector leg: cosines of a scope's items to a query.

The vectors themselves lie in the record's database, a namespace's side by side. A scope of a few thousand
items is read and compared whole, exactly; for a larger one Chroma names the candidates (memory/chroma.py) and
the vectors here have the last word, so that a hit is never scored by what it used to be. Reading a user's 100
or 1,000 vectors takes 0.5 or 3 ms here, by id from Chroma 4 or 40 ms, and needs no care for other processes.
"""

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from memory.chroma import Chroma
from memory.record import Scope
from memory.schema import CHANGED, DERIVED, IN_CHROMA, SPACE
from memory.sql import Database, Row

EXACT_MAX = 5000
"""Up to so many vectors a scope is compared whole: about 10 ms; Chroma with a filter is slower from 10,000 on."""
CANDIDATES = 200
"""So many of each leg are fused in a large scope, or as many as a page holds."""

Matrix = NDArray[np.float32]


class Vectors:
    """Vectors beside the record, and the plan how to search them."""

    def __init__(self, db: Database, chroma: Chroma, *, exact_max: int) -> None:
        self._db = db
        self._chroma = chroma
        self._exact_max = exact_max

    def is_exact(self, scope: Scope) -> bool:
        """Whether the scope is small enough to be compared whole."""
        return scope.vectors <= self._exact_max

    def scores(self, scope: Scope, query: Matrix, *, wanted: int) -> dict[int, float]:
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


def _cosines(rows: Sequence[Row], query: Matrix) -> dict[int, float]:
    """Compare rows of (id, vectors of one item) with the query; an item counts as its best part."""
    if not rows:
        return {}
    matrix = np.frombuffer(b"".join(row[1] for row in rows), dtype=np.float32).reshape(-1, len(query))
    parts = np.array([len(row[1]) // (4 * len(query)) for row in rows])
    best = np.maximum.reduceat(matrix @ query, np.concatenate(([0], np.cumsum(parts)[:-1])))
    return {row[0] % SPACE: float(score) for row, score in zip(rows, best, strict=True)}

"""One search, from a query to an order of items: both legs over one scope, after the filter, fused.

The record has the last word: what is gone or expired is in no answer.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from heapq import nlargest
from typing import Any

from langgraph.store.base import SearchItem

from memory import filters
from memory.fusion import Fused, fuse
from memory.indexing import Index
from memory.legs import CANDIDATES, Legs, Matrix
from memory.record import Record, Scope, Stored

Allowed = dict[int, Stored]
"""What a filter leaves of a scope, last updated first."""


class Hit(SearchItem):
    """A search result. `score` is the cosine to the query, `parts` says why it is where it is, `among` of how many."""

    __slots__ = ("among", "id", "parts", "ttl")

    def __init__(
        self, stored: Stored, score: float | None = None, found: Fused[int] | None = None, *, among: int = 0
    ) -> None:
        place = (stored.namespace, stored.key, stored.value, stored.created_at, stored.updated_at)
        super().__init__(*place, score)
        self.among, self.id = among, stored.id
        self.ttl = stored.ttl
        self.parts: dict[str, float | int | None] = (
            {k: v for k, v in vars(found).items() if k != "key"} if found else {}
        )


@dataclass(frozen=True, kw_only=True)
class Question:
    """What is asked: of which namespaces, in which words, under which conditions, and how much of the answer.

    Words count beside meaning if `hybrid`; with `neighbours`, those in time lend each other a share.
    """

    scope: Scope
    text: str
    condition: Mapping[str, Any]
    limit: int
    offset: int = 0
    hybrid: bool = True
    neighbours: bool = False


class Search:
    """Searches one record by one index."""

    def __init__(self, record: Record, index: Index, legs: Legs) -> None:
        self._record = record
        self._index = index
        self._legs = legs

    def page(self, question: Question) -> list[Hit]:
        """Answer by what was found, best first, and after it everything else, until the page is full."""
        meaning = self._index.query(question.text)
        allowed = allow(self._record, question)
        ranking = self._rank(question, meaning, allowed)
        hits = self._read(ranking[question.offset :], question.scope)
        missing = question.limit - len(hits)
        if missing <= 0 or len(ranking) >= question.offset + question.limit:
            return hits
        start = max(0, question.offset - len(ranking))
        rest = self._rest(question.scope, allowed, {fused.key for fused in ranking}, start, missing)
        scores = {} if meaning is None else self._legs.of([stored.id for stored in rest], meaning)
        return [*hits, *(Hit(stored, scores.get(stored.id)) for stored in rest)]

    def find(self, question: Question) -> list[Hit]:
        """Answer by what either leg found, in the fused order."""
        meaning = self._index.query(question.text)
        return self._read(self._rank(question, meaning, allow(self._record, question)), question.scope)

    def _read(self, ranking: list[Fused[int]], scope: Scope) -> list[Hit]:
        rows = self._record.rows([fused.key for fused in ranking])
        found = [fused for fused in ranking if fused.key in rows]
        return [Hit(rows[fused.key], fused.vector, fused, among=scope.documents) for fused in found]

    def _rest(self, scope: Scope, allowed: Allowed | None, found: set[int], start: int, missing: int) -> list[Stored]:
        if allowed is None:
            return self._record.page(scope, limit=missing, offset=start, without=found)
        return [stored for item, stored in allowed.items() if item not in found][start : start + missing]

    def _rank(self, question: Question, meaning: Matrix | None, allowed: Allowed | None) -> list[Fused[int]]:
        threads = self._record.threads(question.scope) if question.neighbours else ()
        vector, keyword = self._scores(question, meaning, allowed, threads)
        kept = vector.keys() | keyword.keys()
        kept = kept & allowed.keys() if allowed is not None else kept - self._record.expired(question.scope)
        return fuse(
            {item: score for item, score in vector.items() if item in kept},
            {item: score for item, score in keyword.items() if item in kept},
            threads=threads,
            limit=question.offset + question.limit,
        )

    def _scores(
        self, question: Question, meaning: Matrix | None, allowed: Allowed | None, threads: Sequence[Sequence[int]]
    ) -> tuple[dict[int, float], dict[int, float]]:
        """Score by each leg, exactly: everything in a small scope or under a filter, else the best of each."""
        scope, legs = question.scope, self._legs
        is_worded = question.hybrid or meaning is None
        keyword = legs.by_words(scope, question.text, threads=threads) if is_worded else {}
        if meaning is None:
            return {}, keyword
        if allowed is not None:
            return legs.of(allowed, meaning), keyword
        # Whatever the offset: all pages are cut from one ranking, and go on with the rest by time.
        wanted = max(CANDIDATES, question.limit)
        vector = legs.by_meaning(scope, meaning, wanted=wanted)
        if not legs.is_exact(scope):
            keyword = dict(nlargest(wanted, keyword.items(), key=lambda pair: pair[1]))
            vector |= legs.of(keyword.keys() - vector.keys(), meaning)
        return vector, keyword


def allow(record: Record, question: Question) -> Allowed | None:
    """Apply the filter to the scope; None if there is none."""
    if not question.condition:
        return None
    everything = record.all(question.scope)
    return {stored.id: stored for stored in everything if filters.matches(stored.value, question.condition)}

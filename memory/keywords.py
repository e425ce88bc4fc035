"""The keyword leg: which items of a scope hold a query's terms, scored by BM25.

One table of postings, clustered by namespace and term, the same in SQLite and Postgres: a search reads the
postings of its own namespaces and its statistics are theirs too, so cost and scores do not depend on other
people's data. (FTS5 ranks over the whole table, and cannot read two Chinese characters.) Cutting texts into
terms is memory/words.py's work.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from memory.record import Scope
from memory.sql import Database, Session
from memory.words import bm25, query_terms


@dataclass(frozen=True, kw_only=True)
class Posted:
    """The terms of one item."""

    item: int
    space: int
    terms: Counter[str]


class Keywords:
    """Postings beside the record."""

    def __init__(self, db: Database) -> None:
        self._db = db

    def scores(self, scope: Scope, query: str, *, threads: Sequence[Sequence[int]] = ()) -> dict[int, float]:
        """Score every item of the scope that holds a term of the query, 0 to 1; the others are absent.

        With `threads`, items in the order of a talk, each also counts a share of its neighbours' terms.
        """
        postings: dict[str, dict[int, int]] = {term: {} for term in query_terms(query)}
        if not postings or not scope.documents:
            return {}
        inside, spaces = self._db.among("space", scope.spaces)
        holding, terms = self._db.among("term", postings)
        with self._db.reading() as session:
            rows = session.run(
                f"SELECT term, item, count, length FROM mem_postings WHERE {inside} AND {holding}", (spaces, terms)
            )
            lengths = {row[1]: row[3] for row in rows}
            if threads:
                lengths = dict(session.run(f"SELECT id, length FROM mem_items WHERE {inside}", (spaces,)))
        for term, item, count, _ in rows:
            postings[term][item] = count
        mean_length = scope.terms / scope.documents
        return bm25(postings, lengths, documents=scope.documents, mean_length=mean_length, threads=threads)

    def replace(self, session: Session, posted: Sequence[Posted]) -> None:
        """Write items' postings over their old ones, and keep count."""
        self.remove(session, [entry.item for entry in posted])
        new = [entry for entry in posted if entry.terms]
        lengths = {entry.item: entry.terms.total() for entry in new}
        session.run_many(
            "INSERT INTO mem_postings (space, term, item, count, length) VALUES (?, ?, ?, ?, ?)",
            (
                (entry.space, term, entry.item, count, lengths[entry.item])
                for entry in new
                for term, count in sorted(entry.terms.items())
            ),
        )
        session.run_many(
            "UPDATE mem_items SET terms = ?, length = ? WHERE id = ?",
            [(" ".join(entry.terms), lengths[entry.item], entry.item) for entry in new],
        )
        _count(session, [(entry.space, 1, lengths[entry.item]) for entry in new])

    def remove(self, session: Session, items: Iterable[int]) -> None:
        """Remove items' postings."""
        condition, ids = self._db.among("id", items)
        old = session.run(f"SELECT id, space, terms, length FROM mem_items WHERE length > 0 AND {condition}", (ids,))
        if not old:
            return
        session.run_many(
            "DELETE FROM mem_postings WHERE space = ? AND term = ? AND item = ?",
            ((space, term, item) for item, space, terms, _ in old for term in terms.split(" ")),
        )
        session.run_many("UPDATE mem_items SET terms = '', length = 0 WHERE id = ?", [(row[0],) for row in old])
        _count(session, [(space, -1, -length) for _, space, _, length in old])


def _count(session: Session, changes: Iterable[tuple[int, int, int]]) -> None:
    documents: Counter[int] = Counter()
    terms: Counter[int] = Counter()
    for space, more_documents, more_terms in changes:
        documents[space] += more_documents
        terms[space] += more_terms
    session.run_many(
        "UPDATE mem_spaces SET documents = documents + ?, terms = terms + ? WHERE id = ?",
        [(documents[space], terms[space], space) for space in sorted(documents)],
    )

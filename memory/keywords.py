"""The keyword leg: which items of a scope hold a query's terms, scored by BM25.

One table of postings, clustered by namespace and term, the same in SQLite and Postgres: a search reads the
postings of its own namespaces and its statistics are theirs too, so cost and scores do not depend on other
people's data. (FTS5 ranks over the whole table, and cannot read two Chinese characters.) Cutting texts into
terms is memory/words.py's work.
"""

from collections.abc import Iterable, Sequence

from memory.indexing import Placed
from memory.record import Scope
from memory.schema import add_up
from memory.sql import Database, Session
from memory.words import bm25, query_terms


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

    def replace(self, session: Session, placed: Sequence[Placed]) -> None:
        """Write items' postings over their old ones, and keep count."""
        self.remove(session, [item for item, _, _ in placed])
        new = [(item, space, entry.terms, entry.terms.total()) for item, space, entry in placed if entry.terms]
        session.run_many(
            "INSERT INTO mem_postings (space, term, item, count, length) VALUES (?, ?, ?, ?, ?)",
            (
                (space, term, item, count, length)
                for item, space, terms, length in new
                for term, count in sorted(terms.items())
            ),
        )
        session.run_many(
            "UPDATE mem_items SET terms = ?, length = ? WHERE id = ?",
            [(" ".join(terms), length, item) for item, _, terms, length in new],
        )
        _count(session, [(space, 1, length) for _, space, _, length in new])

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
    changes = list(changes)
    add_up(session, "documents", ((space, documents) for space, documents, _ in changes))
    add_up(session, "terms", ((space, terms) for space, _, terms in changes))

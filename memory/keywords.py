"""The keyword leg: which items of a scope hold a query's terms, scored by BM25.

One table of postings, clustered by namespace and term, the same in SQLite and Postgres: a search reads the
postings of its own namespaces and its statistics are theirs too, so cost and scores do not depend on other
people's data. (FTS5 ranks over the whole table, and cannot read two Chinese characters.) Cutting texts into
terms is memory/words.py's work.
"""

from collections.abc import Sequence

from memory.record import Scope
from memory.sql import Database
from memory.words import bm25, query_terms


def keyword_scores(
    db: Database, scope: Scope, query: str, *, threads: Sequence[Sequence[int]] = ()
) -> dict[int, float]:
    """Score every item of the scope that holds a term of the query, 0 to 1; the others are absent.

    With `threads`, items in the order of a talk, each also counts a share of its neighbours' terms.
    """
    postings: dict[str, dict[int, int]] = {term: {} for term in query_terms(query)}
    if not postings or not scope.documents:
        return {}
    inside, spaces = db.among("space", scope.spaces)
    holding, terms = db.among("term", postings)
    with db.reading() as session:
        sql = f"SELECT term, item, count, length FROM mem_postings WHERE {inside} AND {holding}"
        rows = session.run(sql, (spaces, terms))
        lengths = {row[1]: row[3] for row in rows}
        if threads:
            lengths = dict(session.run(f"SELECT id, length FROM mem_items WHERE {inside}", (spaces,)))
    for term, item, count, _ in rows:
        postings[term][item] = count
    mean_length = scope.terms / scope.documents
    return bm25(postings, lengths, documents=scope.documents, mean_length=mean_length, threads=threads)

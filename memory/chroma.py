"""Chroma, embedded in a folder or served at a URL: the index over all vectors, brought up to date in strokes.

It holds nothing that the record lacks: ids, vectors and namespaces. What it does not know yet is noted in
mem_items, so it may be late, killed or deleted at any instant without a wrong answer. One process at a time
writes; a counter in the record tells the others to open the folder anew, for Chroma never notices by itself.
"""

import hashlib
import logging
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from threading import RLock
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from memory.clients import close_client, open_client
from memory.errors import StoreError, Unwritable
from memory.record import Scope
from memory.schema import DERIVED, GONE, IN_CHROMA, SPACE, get_meta, set_meta
from memory.sql import Database, Row, Session

if TYPE_CHECKING:
    from chromadb.api import ClientAPI
    from chromadb.api.models.Collection import Collection

STROKE = 1000
OVERSAMPLED_MAX = 2000
"""Beyond so many results a filtered query is the cheaper one."""

PATIENCE_S = 0.5
"""A search waits no longer for another process: it compares the scope's vectors whole instead."""
WORN_MIN = 4000
"""Fewer deleted vectors than this are not worth a new folder."""
# "state <> 2" lets both databases use the partial index over what is due.
_DUE = (
    f"i.state IN ({DERIVED}, {GONE}) AND i.state <> {IN_CHROMA} "
    f"AND (i.state = {DERIVED} OR (i.parts = 0 AND i.length = 0))"
)

log = logging.getLogger(__name__)


class Chroma:
    """The collection of one record, in a folder or on a server at a URL, opened at its first use.

    A folder is ours alone, but its client does not notice what other processes write.
    """

    def __init__(self, db: Database, place: Path | str) -> None:
        self._db = db
        self._place = place
        self._folder = place if isinstance(place, Path) else None
        self._lock = RLock()
        self._client: ClientAPI | None = None
        self._collection: Collection | None = None
        self._generation = -1

    def nearest(self, query: NDArray[np.float32], wanted: int, scope: Scope) -> list[int] | None:
        """Name about `wanted` items of the scope that are closest to the query; None if Chroma cannot tell."""
        for level in (logging.INFO, logging.WARNING):
            try:
                return self._nearest(self._current(), query, wanted, scope)
            except Unwritable:
                return None  # another process is filling the folder
            except Exception as error:  # whatever it is: the vectors in the record can answer
                log.log(level, "Chroma could not search (%s); opening it anew", error)
                self.close()
        return None

    def _nearest(self, collection: "Collection", query: Any, wanted: int, scope: Scope) -> list[int]:
        with self._db.reading() as session:
            total = int(session.run("SELECT coalesce(sum(vectors), 0) FROM mem_spaces")[0][0])
        oversampled = wanted * total // max(scope.vectors, 1)
        if oversampled <= OVERSAMPLED_MAX:
            answer = collection.query(query_embeddings=[query], n_results=oversampled, include=["metadatas"])
            spaces = set(scope.spaces)
            found = [
                name
                for name, meta in zip(answer["ids"][0], (answer["metadatas"] or [[]])[0], strict=True)
                if meta and meta["space"] in spaces  # none: another process has just deleted it
            ]
            if len(found) >= wanted // 2 or oversampled >= total:
                return _items(found)
        where: Any = {"space": {"$in": list(scope.spaces)}}
        answer = collection.query(query_embeddings=[query], n_results=wanted, where=where, include=[])
        return _items(answer["ids"][0])

    def flush(self, *, stroke: int = STROKE, go_on: Callable[[int], bool] = bool) -> None:
        """Bring Chroma up to date with the record, a stroke of items at a time, as long as it should go on.

        `go_on` is told how many items are due. Chroma holds the interpreter during a stroke: nothing else runs.
        """
        while go_on(self.count_due()):
            self._stroke(stroke)
            if self._is_worn():
                with self._lock, self._db.indexing():
                    self._start_anew()

    def count_due(self) -> int:
        """Count the items that Chroma does not know as they are."""
        with self._db.reading() as session:
            return int(session.run(f"SELECT count(*) FROM mem_items i WHERE {_DUE}")[0][0])

    def _is_worn(self) -> bool:
        """Whether most of the folder is what was deleted: Chroma never gives that space back."""
        with self._db.reading() as session:
            worn = int(get_meta(session, "chroma_worn") or 0)
            living = int(session.run("SELECT coalesce(sum(vectors), 0) FROM mem_spaces")[0][0])
        return self._folder is not None and worn > max(WORN_MIN, 2 * living)

    def _stroke(self, most: int) -> None:
        with self._lock, self._db.indexing():
            collection = self._opened()
            rows = self._begin(most)
            try:
                self._write(collection, rows)
            except BaseException:
                self.close()
                raise
            self._end(rows)

    def _begin(self, most: int) -> list[Row]:
        """Take what is due, noting that Chroma may hold it from now on: killed, we know what to delete there."""
        sql = (
            "SELECT i.id, i.space, i.revision, i.state, i.parts, i.in_chroma, v.vectors FROM mem_items i "
            f"LEFT JOIN mem_vectors v ON v.id = i.space * {SPACE} + i.id "
            f"WHERE {_DUE} ORDER BY i.state, i.id LIMIT ?"
        )
        with self._db.writing() as session:
            rows = session.run(sql, (most,))
            self._advance(session)
            worn = int(get_meta(session, "chroma_worn") or 0) + sum(row[5] for row in rows)
            set_meta(session, "chroma_worn", str(worn))
            session.run_many(
                "UPDATE mem_items SET in_chroma = ? WHERE id = ?", [(max(row[4], row[5]), row[0]) for row in rows]
            )
        return rows

    def _end(self, rows: Sequence[Row]) -> None:
        """Note what Chroma holds now, and what has not changed meanwhile as done."""
        with self._db.writing() as session:
            self._advance(session)
            session.run_many("UPDATE mem_items SET in_chroma = ? WHERE id = ?", [(row[4], row[0]) for row in rows])
            same = [(row[0], row[2]) for row in rows]
            session.run_many(
                f"UPDATE mem_items SET state = {IN_CHROMA} WHERE id = ? AND revision = ? AND state = {DERIVED}", same
            )
            session.run_many(f"DELETE FROM mem_items WHERE id = ? AND revision = ? AND state = {GONE}", same)

    def _advance(self, session: Session) -> None:
        """Count a change of the folder: before and after it, so that who opens it in between opens it again."""
        self._generation = int(get_meta(session, "chroma") or 0) + 1
        set_meta(session, "chroma", str(self._generation))

    def _write(self, collection: "Collection", rows: Sequence[Row]) -> None:
        ids, vectors, spaces, stale = [], [], [], []
        for item, space, _, _, parts, in_chroma, blob in rows:
            if parts and blob:
                ids += [f"{item}.{part}" for part in range(parts)]
                vectors.append(np.frombuffer(blob, dtype=np.float32).reshape(parts, -1))
                spaces += [{"space": space}] * parts
            stale += [f"{item}.{part}" for part in range(in_chroma)]
        assert self._client is not None
        most = self._client.get_max_batch_size()
        # Changed vectors too: moving one within Chroma's index takes four times as long as adding it again.
        for start in range(0, len(stale), most):
            collection.delete(ids=stale[start : start + most])
        matrix = np.concatenate(vectors) if vectors else np.empty((0, 0), dtype=np.float32)
        for start in range(0, len(ids), most):
            end = start + most
            collection.upsert(ids=ids[start:end], embeddings=matrix[start:end], metadatas=list(spaces[start:end]))

    def _current(self) -> "Collection":
        """Return the collection as it is now."""
        if self._collection is not None and self._is_fresh():
            return self._collection
        with self._lock, self._db.indexing(wait_s=PATIENCE_S):
            return self._opened()

    def _is_fresh(self) -> bool:
        return self._folder is None or self._read_generation() == self._generation

    def _opened(self) -> "Collection":
        """Open the folder, anew if another process has written; only while no other process may write."""
        if self._collection is None or not self._is_fresh():
            try:
                self._open()
            except StoreError:
                raise  # the record's trouble, not the folder's
            except Exception as error:
                if self._folder is None:
                    raise
                log.warning("Chroma could not open %s (%s); making it anew from the record", self._folder, error)
                self._start_anew()
                self._open()
        assert self._collection is not None
        return self._collection

    def _open(self) -> None:
        self.close()
        self._client = open_client(self._place)
        self._collection = self._checked(self._client)
        self._generation = self._read_generation()

    def _start_anew(self) -> None:
        """Empty the folder, and note that Chroma holds nothing."""
        self.close()
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)
        self._note_empty()

    def empty(self) -> None:
        """Delete everything, so that no file holds what was deleted before; the record fills it again."""
        with self._lock, self._db.indexing():
            if self._folder is None:
                self._client = self._client or open_client(self._place)
                for name in self._collections(self._client):
                    self._client.delete_collection(name)
            self._start_anew()
        if self._folder is not None and self._folder.exists():
            raise Unwritable(f"{self._folder} cannot be deleted: another program holds its files; end it and try again")

    def _collections(self, client: "ClientAPI", *, but: str = "") -> list[str]:
        """Name the collections of this record, and in a folder of ours all others."""
        with self._db.reading() as session:
            family = family_of(get_meta(session, "record") or "")
        names = [one.name for one in client.list_collections() if one.name != but]
        return [name for name in names if self._folder or name.startswith(family)]

    def _note_empty(self) -> None:
        with self._db.writing() as session:
            self._advance(session)
            set_meta(session, "chroma_worn", "0")
            session.run("UPDATE mem_items SET in_chroma = 0")
            session.run(f"UPDATE mem_items SET state = {DERIVED} WHERE state = {IN_CHROMA} AND parts > 0")
            session.run(f"DELETE FROM mem_items WHERE state = {GONE} AND parts = 0 AND length = 0")

    def _checked(self, client: "ClientAPI") -> "Collection":
        """Open the collection; if it lost something or holds too much, start it anew from the record."""
        with self._db.reading() as session:
            record, fingerprint = get_meta(session, "record") or "", get_meta(session, "fingerprint") or ""
            known, pending = session.run(
                f"SELECT coalesce(sum(CASE WHEN state = {IN_CHROMA} THEN in_chroma ELSE 0 END), 0), "
                f"coalesce(sum(CASE WHEN state = {IN_CHROMA} THEN 0 ELSE in_chroma + parts END), 0) FROM mem_items"
            )[0]
        name = family_of(record) + hashlib.sha256(fingerprint.encode()).hexdigest()[:8]
        for other in self._collections(client, but=name):
            client.delete_collection(other)
        options: Any = {"embedding_function": None, "configuration": {"hnsw": {"space": "cosine"}}}
        collection = client.get_or_create_collection(name, **options)
        if not known <= collection.count() <= known + pending:
            client.delete_collection(name)
            collection = client.create_collection(name, **options)
            self._note_empty()
        return collection

    def _read_generation(self) -> int:
        with self._db.reading() as session:
            return int(get_meta(session, "chroma") or 0)

    def close(self) -> None:
        """Let go of the folder or server."""
        with self._lock:
            client, self._client, self._collection = self._client, None, None
            if client is not None:
                close_client(client)


def family_of(record: str) -> str:
    """Name what the collections of one record have in common, whatever the embedder."""
    return f"palimpsest-{record[:16]}-"


def _items(names: Sequence[str]) -> list[int]:
    return list(dict.fromkeys(int(name.partition(".")[0]) for name in names))

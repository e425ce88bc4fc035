"""Keeping the two legs and Chroma in step with the record, whoever wrote it and whenever we were killed.

A put writes record, keywords and vectors in one transaction; only Chroma follows later, from a thread of its
own. What else is noted as changed (by a plain LangGraph store, or because the embedder is another) is derived
here. mem_items is the log of what is due, so all of this can stop at any instant and go on.
"""

import logging
import time
from collections.abc import Callable, Sequence
from threading import Event, Thread
from typing import Any

import orjson

from memory.chroma import STROKE, Chroma
from memory.errors import BadValue, EmbedderChanged
from memory.indexing import Entry, Index
from memory.legs import Legs
from memory.schema import CHANGED, GONE, IN_CHROMA, WORDED, get_meta, note_all, set_meta
from memory.sql import Database, Row, Session

AT_ONCE = 256
PAUSE_S = 0.2
"""Chroma follows this long after the last write."""
CLOSING_S = 5
GENTLE = 50
"""Items in one stroke of the background: a stroke stops all other threads, for some 20 to 100 ms."""
GATHERED_MAX = 5000
"""More than this does not wait for a pause: until Chroma has them, they are compared one by one."""

log = logging.getLogger(__name__)
Progress = Callable[[int, int], None]
"""(items done, items in all)."""


class Upkeep:
    """Does what is due for one store."""

    def __init__(self, db: Database, index: Index | None, legs: Legs, chroma: Chroma) -> None:
        self._db = db
        self._index = index
        self._legs = legs
        self._chroma = chroma
        self._due = Event()
        self._closing = Event()
        self._thread: Thread | None = None

    @property
    def _mine(self) -> str:
        """The name of the embedder of this store; empty without one."""
        return self._index.embedder.fingerprint.text if self._index and self._index.embedder else ""

    def _foreign(self, session: Session) -> str:
        """Name the embedder of the stored vectors if it is another than this one; words fit any."""
        theirs = get_meta(session, "fingerprint")
        return theirs if theirs and self._mine and theirs != self._mine else ""

    def is_current(self, session: Session) -> bool:
        """Whether what this index derives may be stored beside what is there; a new record's vectors are this one's."""
        if self._mine and get_meta(session, "fingerprint") is None:
            set_meta(session, "fingerprint", self._mine)
        return self._index is not None and not self._foreign(session)

    def fits(self) -> bool:
        """As `is_current`, without writing."""
        with self._db.reading() as session:
            return self._index is not None and not self._foreign(session)

    def check(self) -> None:
        """Raise EmbedderChanged if the stored vectors are another embedder's."""
        with self._db.reading() as session:
            theirs = self._foreign(session)
        if theirs:
            raise EmbedderChanged(
                f"the vectors in {self._db.name} were made by {theirs}, this embedder is {self._mine}; "
                "run `palimpsest memory reindex`, or set the former embedder"
            )

    def catch_up(self, limit: int) -> int:
        """Index up to `limit` items that others wrote to the record, or removed from it; return how many."""
        rows = self._changed(limit)
        if not rows or self._index is None or not self.fits():
            return 0
        living = [row for row in rows if row[6] is not None]
        entries = self._entries(self._index, living)
        with self._db.writing() as session:
            if not self.is_current(session):
                return 0
            condition, ids = self._db.among("id", [row[0] for row in rows])
            now: dict[int, int] = dict(session.run(f"SELECT id, revision FROM mem_items WHERE {condition}", (ids,)))
            still = [(r[0], r[1], e) for r, e in zip(living, entries, strict=True) if now.get(r[0]) == r[2]]
            self._legs.replace(session, still, embedded=bool(self._mine))
            self._legs.remove(session, [row[0] for row in rows if row[6] is None and now.get(row[0]) == row[2]])
        return len(rows)

    def _changed(self, limit: int) -> list[Row]:
        due = f"{CHANGED}, {WORDED}" if self._mine else f"{CHANGED}"
        sql = (
            "SELECT i.id, i.space, i.revision, i.paths, p.prefix, i.key, s.value FROM mem_items i "
            "JOIN mem_spaces p ON p.id = i.space LEFT JOIN store s ON s.prefix = p.prefix AND s.key = i.key "
            f"WHERE i.state IN ({due}, {GONE}) AND i.state <> {IN_CHROMA} "
            f"AND (i.state <> {GONE} OR i.parts > 0 OR i.length > 0) "
            "ORDER BY i.state, i.id LIMIT ?"
        )
        with self._db.reading() as session:
            return session.run(sql, (limit,))

    def _entries(self, index: Index, rows: Sequence[Row]) -> list[Entry]:
        items = [(f"{row[4]}/{row[5]}", _decode(row[6]), _decode(row[3])) for row in rows]
        try:
            return index.entries(items)
        except BadValue as error:
            if len(items) == 1:
                # It is in the record already: better found by nothing than in the way of all others.
                log.warning("an item cannot be searched: %s", error)
                return index.entries([(items[0][0], items[0][1], False)])
            return [entry for row in rows for entry in self._entries(index, [row])]

    def reindex(self, progress: Progress) -> int:
        """Derive everything from the record anew; return how many items. Killed, it goes on where it was."""
        if not self._mine:
            raise BadValue("a store without an index or embedder has nothing to reindex with; open it with one")
        self._begin(self._mine)
        with self._db.reading() as session:
            sql = f"SELECT count(*) FROM mem_items WHERE state = {CHANGED} AND state <> {IN_CHROMA}"
            done, total = 0, int(session.run(sql)[0][0])
        while step := self.catch_up(AT_ONCE):
            done += step
            progress(done, max(total, done))
        with self._db.writing() as session:
            set_meta(session, "reindex", "done")
        self._chroma.flush()
        return done

    def _begin(self, fingerprint: str) -> None:
        with self._db.writing() as session:
            if get_meta(session, "reindex") == fingerprint:
                return  # it is under way
            set_meta(session, "reindex", fingerprint)
            set_meta(session, "fingerprint", fingerprint)
            for table in ("mem_vectors", "mem_postings"):
                session.run(f"DELETE FROM {table}")
            session.run("UPDATE mem_items SET terms = '', length = 0, parts = 0")
            session.run("UPDATE mem_spaces SET documents = 0, terms = 0, vectors = 0")
            note_all(session)
            session.run(f"DELETE FROM mem_items WHERE state = {GONE} AND in_chroma = 0")

    def wake(self) -> None:
        """Do what an earlier process left undone."""
        with self._db.reading() as session:
            left = session.run(f"SELECT 1 FROM mem_items WHERE state <> {IN_CHROMA} LIMIT 1")
        if left and self._index is not None:
            self.notify()

    def notify(self) -> None:
        """Let Chroma follow soon."""
        if self._thread is None:
            self._thread = Thread(target=self._follow, name="palimpsest-chroma", daemon=True)
            self._thread.start()
        self._due.set()

    def _follow(self) -> None:
        while not self._closing.is_set():
            self._due.wait()
            self._due.clear()
            self._closing.wait(PAUSE_S)
            # While more is being written, that comes first, unless much has gathered.
            if not self._due.is_set() or self._chroma.count_due() > GATHERED_MAX:
                self.settle(stroke=GENTLE, go_on=self._may_go_on)

    def _may_go_on(self, due: int) -> bool:
        return due > 0 and not self._closing.is_set() and (due > GATHERED_MAX or not self._due.is_set())

    def settle(self, *, stroke: int = STROKE, go_on: Callable[[int], bool] = bool) -> None:
        """Do all that is due. What fails stays due, and every search is right without it."""
        try:
            while go_on(1) and self.catch_up(AT_ONCE):
                pass
            self._chroma.flush(stroke=stroke, go_on=go_on)
        except Exception as error:
            log.warning("the index could not be brought up to date (%s); it will be, later", error)

    def stats(self) -> dict[str, Any]:
        """Count what is stored, what is indexed, and what is due."""
        sql = (
            "SELECT (SELECT count(*) FROM store), count(*), coalesce(sum(documents), 0), coalesce(sum(terms), 0), "
            f"coalesce(sum(vectors), 0), (SELECT count(*) FROM mem_items WHERE state <> {IN_CHROMA}) FROM mem_spaces"
        )
        with self._db.reading() as session:
            counts, embedder = session.run(sql)[0], get_meta(session, "fingerprint")
        names = ("items", "namespaces", "documents", "terms", "vectors", "due")
        return {**dict(zip(names, map(int, counts), strict=True)), "embedder": embedder, "bytes": self._db.size()}

    def rest(self) -> None:
        """Do nothing more: what is due is the next opening's."""
        self._closing.set()
        self._due.set()
        if self._thread is not None:
            self._thread.join()

    def close(self) -> None:
        """Do what is due, unless it rests, or leave it to the next opening if it takes long; then let go of Chroma."""
        if self._closing.is_set():
            return self._chroma.close()
        self.rest()
        end = time.monotonic() + CLOSING_S
        self.settle(stroke=AT_ONCE, go_on=lambda due: due > 0 and time.monotonic() < end)
        self._chroma.close()


def _decode(stored: Any) -> Any:
    return orjson.loads(stored) if isinstance(stored, str | bytes) else stored

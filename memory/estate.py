"""Everything under a few prefixes as it lies in the record: read out, put back as it was, erased for good.

What files of SQLite and of an embedded Chroma hold of deleted items until they are written over is erased as well; what
a server of either, a file system or a backup keeps of them is theirs to erase.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import orjson

from memory.chroma import Chroma
from memory.errors import BadValue
from memory.legs import Legs
from memory.record import Namespace, Record, Stored
from memory.schema import GONE
from memory.sql import Database
from memory.upkeep import Upkeep
from memory.values import encode

Prefixes = Sequence[Namespace]


@dataclass(frozen=True, kw_only=True)
class Kept:
    """An item, and what is searched of it as `put` takes it; `ttl` in minutes."""

    namespace: Namespace
    key: str
    value: dict[str, Any]
    created_at: datetime
    updated_at: datetime
    index: bool | list[str] | None = None
    ttl: float | None = None


class Estate:
    """What lies under prefixes of one store."""

    def __init__(self, db: Database, record: Record, legs: Legs, chroma: Chroma, upkeep: Upkeep) -> None:
        self._db, self._record, self._legs, self._chroma, self._upkeep = db, record, legs, chroma, upkeep

    def items(self, prefixes: Prefixes) -> list[Kept]:
        """Return every item, in the order in which they were first written."""
        spaces = self._spaces(prefixes)
        condition, params = self._db.among("space", spaces)
        with self._db.reading() as session:
            paths: dict[int, str | None] = dict(
                session.run(f"SELECT id, paths FROM mem_items WHERE {condition}", (params,))
            )
        stored = [one for prefix in prefixes for one in self._record.all(self._record.scope(prefix))]
        return [kept_of(one, paths.get(one.id)) for one in sorted(stored, key=lambda one: one.id)]

    def restore(self, prefixes: Prefixes, items: Sequence[Kept]) -> None:
        """Write items as they were, all or none, where nothing lies yet; they are indexed a moment later.

        Raises BadValue.
        """
        rows = [self._row(one) for one in items]
        with self._db.writing() as session:
            self._record.sweep(session)
            if self.items(prefixes):
                raise BadValue("there is something already; nothing was written")
            session.run_many(
                "INSERT INTO store (prefix, key, value, created_at, updated_at, expires_at, ttl_minutes) "
                f"VALUES (?, ?, {self._db.json}, ?, ?, ?, ?)",
                rows,
            )
            ids = self._record.find(session, [(one.namespace, one.key) for one in items])
            session.run_many(
                "UPDATE mem_items SET paths = ? WHERE id = ?",
                [
                    (None if one.index is None else orjson.dumps(one.index).decode(), ids[one.namespace, one.key][0])
                    for one in items
                ],
            )
        self._upkeep.notify()

    def _row(self, one: Kept) -> tuple[Any, ...]:
        expires = None if one.ttl is None else self._db.moment(one.updated_at + timedelta(minutes=one.ttl))
        times = self._db.moment(one.created_at), self._db.moment(one.updated_at)
        value = encode(f"{'/'.join(one.namespace)}/{one.key}", one.value).decode()
        return (".".join(one.namespace), one.key, value, *times, expires, one.ttl)

    def count(self, prefixes: Prefixes) -> dict[str, int]:
        """Count what is derived: vectors, and rows of keywords."""
        condition, params = self._db.among("space", self._spaces(prefixes))
        vectors = sum(self._record.scope(prefix).vectors for prefix in prefixes)
        with self._db.reading() as session:
            rows = session.run(f"SELECT count(*) FROM mem_postings WHERE {condition}", (params,))
        return {"vectors": vectors, "keyword rows": int(rows[0][0])}

    def erase(self, prefixes: Prefixes) -> None:
        """Delete every item with what was derived from it, in one transaction. `scrub` is still to follow."""
        condition, params = self._db.among("id", self._spaces(prefixes))
        with self._db.writing() as session:
            session.run(
                f"DELETE FROM store WHERE prefix IN (SELECT prefix FROM mem_spaces WHERE {condition})", (params,)
            )
            inside, spaces = self._db.among("space", self._spaces(prefixes))
            items = session.run(f"SELECT id FROM mem_items WHERE state = {GONE} AND {inside}", (spaces,))
            self._legs.remove(session, [row[0] for row in items])

    def scrub(self) -> None:
        """Rid the files of whatever was ever deleted. Chroma's folder is made anew from the record by the next opening:
        into the unused room of a new index it writes what this process held in memory before.
        """
        self._upkeep.rest()
        with self._db.writing() as session:
            self._record.sweep(session)
            gone = session.run(f"SELECT id FROM mem_items WHERE state = {GONE}")
            self._legs.remove(session, [row[0] for row in gone])
        self._chroma.empty()
        with self._db.writing() as session:
            session.run(
                "DELETE FROM mem_spaces WHERE NOT EXISTS (SELECT 1 FROM mem_items i WHERE i.space = mem_spaces.id) "
                "AND NOT EXISTS (SELECT 1 FROM store s WHERE s.prefix = mem_spaces.prefix)"
            )
        self._db.scrub()

    def _spaces(self, prefixes: Prefixes) -> list[int]:
        return [space for prefix in prefixes for space in self._record.scope(prefix).spaces]


def kept_of(stored: Stored, paths: str | None) -> Kept:
    """Read a stored item and what is searched of it."""
    index = None if paths is None else orjson.loads(paths)
    return Kept(
        namespace=stored.namespace,
        key=stored.key,
        value=stored.value,
        created_at=stored.created_at,
        updated_at=stored.updated_at,
        index=index,
        ttl=stored.ttl,
    )

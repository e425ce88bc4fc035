"""The record of truth: LangGraph's own `store` table, in SQLite or Postgres.

The table is created and migrated by LangGraph's SqliteStore or PostgresStore. The statements are ours, because
theirs reset `created_at`, count whole seconds and commit half a batch on an error. Vectors and keywords are not
this module's; it only tells which items have changed (memory/schema.py).
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from threading import Lock
from typing import Any

import orjson
from langgraph.store.base import Item, ListNamespacesOp, MatchCondition, PutOp

from memory.sql import Database, Row, Session

Namespace = tuple[str, ...]
Place = tuple[Namespace, str]
"""A namespace and a key."""

_ROWS = (
    "SELECT i.id, p.prefix, s.key, s.value, s.created_at, s.updated_at, s.ttl_minutes FROM mem_spaces p "
    "JOIN store s ON s.prefix = p.prefix JOIN mem_items i ON i.space = p.id AND i.key = s.key "
    "WHERE (s.expires_at IS NULL OR s.expires_at > ?) AND "
)


@dataclass(frozen=True, kw_only=True)
class Scope:
    """The namespaces under a prefix, and how much of them is indexed."""

    spaces: tuple[int, ...]
    documents: int
    terms: int
    vectors: int


class Stored(Item):
    """One item of the record; `ttl` is in minutes since the last reading."""

    __slots__ = ("id", "ttl")

    def __init__(self, *, id: int, ttl: float | None, **item: Any) -> None:
        super().__init__(**item)
        self.id, self.ttl = id, ttl


class Clock:
    """The time in UTC, later at each call: of two writes the later one has the later time."""

    def __init__(self) -> None:
        self._last = datetime.min.replace(tzinfo=UTC)
        self._lock = Lock()

    def __call__(self) -> datetime:
        """Return the present."""
        with self._lock:
            self._last = max(datetime.now(UTC), self._last + timedelta(microseconds=1))
            return self._last


class Record:
    """What the store's items are. Reads never see what has expired."""

    def __init__(self, db: Database) -> None:
        self.db = db
        self._clock = Clock()

    def get(self, places: Sequence[Place]) -> list[Stored | None]:
        """Return the items at the places, in their order."""
        keys: dict[str, list[str]] = {}
        for namespace, key in places:
            keys.setdefault(_text(namespace), []).append(key)
        found = {}
        with self.db.reading() as session:
            for prefix, wanted in keys.items():
                condition, array = self.db.among("s.key", wanted)
                rows = session.run(f"{_ROWS} p.prefix = ? AND {condition}", (self._now(), prefix, array))
                found.update({(prefix, row[2]): _stored(row) for row in rows})
        return [found.get((_text(namespace), key)) for namespace, key in places]

    def rows(self, ids: Iterable[int]) -> dict[int, Stored]:
        """Return the living among these items, by id."""
        condition, array = self.db.among("i.id", ids)
        with self.db.reading() as session:
            return {row[0]: _stored(row) for row in session.run(_ROWS + condition, (self._now(), array))}

    def page(self, scope: Scope, *, limit: int, offset: int, without: Iterable[int] = ()) -> list[Stored]:
        """List the scope's items, last updated first, leaving some out."""
        inside, spaces = self.db.among("p.id", scope.spaces)
        outside, ids = self.db.among("i.id", without)
        sql = f"{_ROWS} {inside} AND NOT {outside} ORDER BY s.updated_at DESC, i.id DESC LIMIT ? OFFSET ?"
        with self.db.reading() as session:
            return [_stored(row) for row in session.run(sql, (self._now(), spaces, ids, limit, offset))]

    def all(self, scope: Scope) -> list[Stored]:
        """List all of the scope's items, last updated first."""
        return self.page(scope, limit=2**62, offset=0)

    def expired(self, scope: Scope) -> set[int]:
        """Return the ids of what has expired and is not yet swept."""
        condition, spaces = self.db.among("p.id", scope.spaces)
        # CROSS JOIN: SQLite then starts from the index over what expires, not from everything in the scope.
        sql = (
            "SELECT i.id FROM store s CROSS JOIN mem_spaces p CROSS JOIN mem_items i "
            "WHERE p.prefix = s.prefix AND i.space = p.id AND i.key = s.key "
            f"AND s.expires_at IS NOT NULL AND s.expires_at <= ? AND {condition}"
        )
        with self.db.reading() as session:
            return {row[0] for row in session.run(sql, (self._now(), spaces))}

    def threads(self, scope: Scope) -> list[list[int]]:
        """List the items of each namespace in the order in which they were first written."""
        condition, spaces = self.db.among("space", scope.spaces)
        found: dict[int, list[int]] = {}
        with self.db.reading() as session:
            sql = f"SELECT space, id FROM mem_items WHERE length > 0 AND {condition} ORDER BY id"
            for space, item in session.run(sql, (spaces,)):
                found.setdefault(space, []).append(item)
        return list(found.values())

    def scope(self, *prefixes: Sequence[str]) -> Scope:
        """Find the namespaces that are one of the prefixes or lie under it."""
        column, texts = f"prefix {self.db.bytewise}", [_text(tuple(prefix)) for prefix in prefixes if prefix]
        # "/" is the character after ".": the range holds whole labels only.
        conditions = [f"prefix = ? OR ({column} > ? AND {column} < ?)" for _ in texts]
        sql, params = "SELECT id, documents, terms, vectors FROM mem_spaces", []
        if len(texts) == len(prefixes):
            sql += f" WHERE {' OR '.join(conditions)}"
            params = [value for text in texts for value in (text, f"{text}.", f"{text}/")]
        with self.db.reading() as session:
            rows = session.run(sql, params)
        sums = [sum(row[n] for row in rows) for n in (1, 2, 3)]
        return Scope(spaces=tuple(r[0] for r in rows), documents=sums[0], terms=sums[1], vectors=sums[2])

    def namespaces(self, op: ListNamespacesOp) -> list[Namespace]:
        """List the namespaces that hold a living item and are asked for, cut to the depth, sorted, each once."""
        sql = (
            "SELECT prefix FROM mem_spaces p WHERE EXISTS (SELECT 1 FROM store s WHERE s.prefix = p.prefix "
            "AND (s.expires_at IS NULL OR s.expires_at > ?))"
        )
        with self.db.reading() as session:
            living = [tuple(row[0].split(".")) for row in session.run(sql, (self._now(),))]
        asked = {one[: op.max_depth] for one in living if all(_matches(one, c) for c in op.match_conditions or ())}
        return sorted(asked)[max(op.offset, 0) :][: max(op.limit, 0)]

    def put(self, session: Session, puts: Sequence[PutOp], values: Sequence[bytes]) -> list[tuple[int, int]]:
        """Write items, given their encoded values; return each one's item and space id."""
        rows = []
        for op, value in zip(puts, values, strict=True):
            now = self._clock()
            expires = now + timedelta(minutes=op.ttl) if op.ttl is not None else None
            moments = (self.db.moment(now), self.db.moment(now), expires and self.db.moment(expires))
            rows.append((_text(op.namespace), op.key, value.decode(), *moments, op.ttl))
        session.run_many(
            "INSERT INTO store (prefix, key, value, created_at, updated_at, expires_at, ttl_minutes) "
            f"VALUES (?, ?, {self.db.json}, ?, ?, ?, ?) ON CONFLICT (prefix, key) DO UPDATE SET "
            "value = excluded.value, updated_at = excluded.updated_at, expires_at = excluded.expires_at, "
            "ttl_minutes = excluded.ttl_minutes, created_at = CASE WHEN store.expires_at <= excluded.created_at "
            "THEN excluded.created_at ELSE store.created_at END",
            rows,
        )
        found = self.find(session, [(op.namespace, op.key) for op in puts])
        session.run_many(
            "UPDATE mem_items SET paths = ? WHERE id = ?",
            [
                (None if op.index is None else orjson.dumps(op.index).decode(), found[op.namespace, op.key][0])
                for op in puts
            ],
        )
        return [found[op.namespace, op.key] for op in puts]

    def find(self, session: Session, places: Sequence[Place]) -> dict[Place, tuple[int, int]]:
        """Return the item and space ids of those places that hold, or lately held, an item."""
        keys: dict[Namespace, list[str]] = {}
        for namespace, key in places:
            keys.setdefault(namespace, []).append(key)
        ids: dict[Place, tuple[int, int]] = {}
        for namespace, wanted in keys.items():
            condition, array = self.db.among("i.key", wanted)
            sql = "SELECT i.id, i.space, i.key FROM mem_spaces p JOIN mem_items i ON i.space = p.id "
            for item, space, key in session.run(f"{sql} WHERE p.prefix = ? AND {condition}", (_text(namespace), array)):
                ids[namespace, key] = (item, space)
        return ids

    def delete(self, session: Session, places: Iterable[Place]) -> None:
        """Remove items."""
        rows = [(_text(namespace), key) for namespace, key in places]
        session.run_many("DELETE FROM store WHERE prefix = ? AND key = ?", rows)

    def sweep(self, session: Session) -> int:
        """Remove what has expired; return how many items."""
        condition = "WHERE expires_at IS NOT NULL AND expires_at <= ?"
        count = session.run(f"SELECT count(*) FROM store {condition}", (now := self._now(),))[0][0]
        session.run(f"DELETE FROM store {condition}", (now,))
        return int(count)

    def refresh(self, lives: Iterable[tuple[Place, float]]) -> None:
        """Restart the time to live of items, given in minutes."""
        now = self._clock()
        rows = [(self.db.moment(now + timedelta(minutes=ttl)), _text(place[0]), place[1]) for place, ttl in lives]
        with self.db.writing() as session:
            session.run_many("UPDATE store SET expires_at = ? WHERE prefix = ? AND key = ?", rows)

    def _now(self) -> Any:
        return self.db.moment(datetime.now(UTC))


def _matches(namespace: Namespace, condition: MatchCondition) -> bool:
    count = len(condition.path)
    labels = namespace[:count] if condition.match_type == "prefix" else namespace[-count:]
    pairs = zip(condition.path, labels, strict=False)
    return len(namespace) >= count and all(wanted in ("*", label) for wanted, label in pairs)


def _text(namespace: Namespace) -> str:
    return ".".join(namespace)


def _stored(row: Row) -> Stored:
    item, prefix, key, value, created, updated, ttl = row
    decoded = value if isinstance(value, Mapping) else orjson.loads(value)
    return Stored(
        id=item,
        namespace=tuple(prefix.split(".")),
        key=key,
        value=dict(decoded),
        created_at=_time(created),
        updated_at=_time(updated),
        ttl=ttl,
    )


def _time(written: str | datetime) -> datetime:
    """Read a time; LangGraph's SqliteStore writes UTC without saying so."""
    time = datetime.fromisoformat(written) if isinstance(written, str) else written
    return time.astimezone(UTC) if time.tzinfo else time.replace(tzinfo=UTC)

"""Postgres as the place of the record: what memory/sql.py is for SQLite. Needs the extra `postgres`."""

import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import datetime
from typing import Any
from urllib.parse import urlsplit

import psycopg
from langgraph.store.postgres import PostgresStore
from psycopg_pool import ConnectionPool, PoolTimeout

from memory.errors import Unwritable
from memory.sql import BUSY_TIMEOUT_S, Row, Session

# Advisory locks: numbers that mean the same to every process at this database.
_WRITING, _INDEXING, _CREATING = 5_209_001, 5_209_002, 5_209_003
CONNECTIONS_MAX = 10
_TABLES = ("store", "mem_meta", "mem_spaces", "mem_items", "mem_postings", "mem_vectors")


class Postgres:
    """A database behind a URL, over a pool that tests each connection before lending it."""

    json = "?::jsonb"
    bytewise = 'COLLATE "C"'

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        self.name = f"{parts.hostname or 'localhost'}{parts.path}"
        try:
            psycopg.connect(url, connect_timeout=10).close()
        except psycopg.Error as error:
            raise Unwritable(f"no Postgres answers at {self.name}; is it running, and is the URL right?") from error
        self._pool = ConnectionPool[psycopg.Connection[Row]](
            url,
            min_size=1,
            max_size=CONNECTIONS_MAX,
            timeout=BUSY_TIMEOUT_S,
            reconnect_timeout=BUSY_TIMEOUT_S,  # else it tries ever more rarely, and misses that all is well again
            check=ConnectionPool.check_connection,
            # No prepared statements: a pooler between us and the database may not know them.
            kwargs={"autocommit": True, "prepare_threshold": None},
            open=True,
        )

    @contextmanager
    def _connection(self) -> Iterator[psycopg.Connection[Row]]:
        try:
            with self._pool.connection() as connection:
                yield connection
        except (psycopg.OperationalError, PoolTimeout) as error:
            raise Unwritable(f"Postgres at {self.name} did not answer ({error}); nothing was lost") from error

    @contextmanager
    def _holding(self, lock: int, wait_s: float = BUSY_TIMEOUT_S) -> Iterator[psycopg.Connection[Row]]:
        with self._connection() as connection, connection.transaction():
            connection.execute(f"SET LOCAL lock_timeout = {int(wait_s * 1000)}".encode())
            connection.execute("SELECT pg_advisory_xact_lock(%s)", (lock,))
            yield connection

    @contextmanager
    def reading(self) -> Iterator[Session]:
        """Read what is committed."""
        with self._connection() as connection:
            yield Session(connection.cursor(), placeholder="%s")

    @contextmanager
    def writing(self) -> Iterator[Session]:
        """Write as one transaction, one process at a time as with SQLite: no deadlocks, no retries."""
        with self._holding(_WRITING) as connection:
            yield Session(connection.cursor(), placeholder="%s")

    @contextmanager
    def indexing(self, *, wait_s: float = BUSY_TIMEOUT_S) -> Iterator[None]:
        """Be the only process that writes to Chroma."""
        with self._holding(_INDEXING, wait_s):
            yield

    def among(self, column: str, values: Iterable[Any]) -> tuple[str, Any]:
        """Pass the values as one array."""
        return f"{column} = ANY(?)", list(values)

    def moment(self, at: datetime) -> datetime:
        """Pass a time as it is."""
        return at

    def create(self) -> None:
        """Run PostgresStore's own migrations, one process at a time.

        By trying, not waiting: a waiting statement would hold up their CREATE INDEX CONCURRENTLY for ever.
        """
        with self._connection() as connection:
            while connection.execute("SELECT pg_try_advisory_lock(%s)", (_CREATING,)).fetchone() != (True,):
                time.sleep(0.1)
            try:
                PostgresStore(self._pool).setup()  # type: ignore[arg-type]
            finally:
                connection.execute("SELECT pg_advisory_unlock(%s)", (_CREATING,))

    def scrub(self) -> None:
        """Let the server use the room of what was deleted again; when it does, is its own affair."""
        with self._connection() as connection:
            connection.execute(f"VACUUM {', '.join(_TABLES)}".encode())

    def size(self) -> int:
        """Measure our tables and LangGraph's."""
        sql = "SELECT coalesce(sum(pg_total_relation_size(to_regclass(name))), 0)::bigint FROM unnest(%s::text[]) name"
        with self._connection() as connection:
            row = connection.execute(sql, ([*_TABLES],)).fetchone()
        return int(row[0]) if row else 0

    def close(self) -> None:
        """Close the pool."""
        self._pool.close()

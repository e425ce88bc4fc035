"""Checkpoints on Postgres, over a pool that tests each connection before lending it. Needs the extra `postgres`."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from hashlib import sha256
from threading import Semaphore
from typing import Any, cast
from urllib.parse import urlsplit

from langgraph.checkpoint.postgres import PostgresSaver
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from psycopg import Connection, Cursor, OperationalError
from psycopg.rows import DictRow, dict_row
from psycopg_pool import ConnectionPool, PoolTimeout

from graph.locks import TURN_WAIT_S, Release, Take, ThreadLocks
from graph.savers import PARTS, InThreads, Rows
from graph.settings import CannotStart
from memory.text import clean

CONNECT_TIMEOUT_S = 10
RUNS_AT_ONCE = 32
"""Threads that one process may run at once; each holds a connection for its lock."""

KEEP_ALIVE = {"keepalives_idle": 30, "keepalives_interval": 10, "keepalives_count": 3}
TAKE = """
    SELECT set_config('idle_in_transaction_session_timeout', '0', true),
        pg_try_advisory_xact_lock(hashtextextended(current_schema(), {number})) AS taken"""
"""Without parameters, for with them a snapshot stays open, and holds up VACUUM and CREATE INDEX as long as the lock."""

SETUP = "\n"
"""The lock under which tables are made; no thread has this name."""

LOOSE_BLOBS = """
    DELETE FROM checkpoint_blobs b WHERE thread_id = ? AND NOT EXISTS (
        SELECT 1 FROM checkpoints c WHERE c.thread_id = b.thread_id AND c.checkpoint_ns = b.checkpoint_ns
            AND c.checkpoint -> 'channel_versions' ->> b.channel = b.version
    )"""
TABLES = ("checkpoints", "checkpoint_blobs", "checkpoint_writes", "checkpoint_parts")


class PgSaver(InThreads, PostgresSaver):
    """Checkpoints in one Postgres database, from any thread or event loop."""

    writes = "checkpoint_writes"
    run_id = "metadata ->> 'run_id'"

    @contextmanager
    def _cursor(self, *, pipeline: bool = False) -> Iterator[Cursor[DictRow]]:
        """Lend a cursor. Raises CannotStart if the database no longer answers."""
        with answering(), super()._cursor(pipeline=pipeline) as cursor:
            yield cursor

    def setup(self) -> None:
        """Make the tables."""
        super().setup()
        self.ask(PARTS.format(bytes="BYTEA"))

    def ask(self, sql: str, values: Sequence[Any] = ()) -> Rows:
        """Run a query with `?` for its values; return the rows."""
        with self._cursor() as cursor:
            cursor.execute(sql.replace("?", "%s").encode(), values)
            return [tuple(row.values()) for row in cursor.fetchall()] if cursor.description else []

    def tell(self, sql: str, rows: Iterable[Sequence[Any]]) -> None:
        """Run a statement with `?` for its values, once for each row."""
        with self._cursor() as cursor:
            cursor.executemany(sql.replace("?", "%s").encode(), [*rows])

    def drop_loose(self, thread: str) -> None:
        """Delete the parts and the values of a thread that none of its checkpoints holds."""
        super().drop_loose(thread)
        self.tell(LOOSE_BLOBS, [(thread,)])

    def compact(self) -> tuple[int, int]:
        """Give the room of what was deleted back to the disk; return the bytes before and after."""
        before = self.size()
        with self._cursor() as cursor:
            for table in TABLES:
                cursor.execute(f"VACUUM FULL {table}".encode())
        return before, self.size()

    def size(self) -> int:
        """Return the bytes of the tables with their indexes."""
        return sum(int(self.ask("SELECT pg_total_relation_size(?)", [table])[0][0]) for table in TABLES)


def advisory_locks(pool: ConnectionPool[Any]) -> Take:
    """Take locks of the database, each in a transaction that is open as long as it is held.

    So a lock ends with its connection, also behind a pooler that shares connections between transactions.
    """
    free = Semaphore(pool.max_size)

    def take(thread: str) -> Release | None:
        if not free.acquire(blocking=False):
            return None
        with ExitStack() as held:
            held.callback(free.release)
            with answering():
                connection = pool.getconn()
                held.callback(given_back, pool, connection)
                number = int.from_bytes(sha256(clean(thread).encode()).digest()[:8], signed=True)
                row = connection.execute(TAKE.format(number=number).encode()).fetchone()
            return held.pop_all().close if row and row[1] else None

    return take


def given_back(pool: ConnectionPool[Any], connection: Connection[Any]) -> None:
    """End the transaction that holds a lock, unless its connection broke, and give the connection back."""
    with suppress(OperationalError):
        connection.rollback()
    pool.putconn(connection)


@contextmanager
def answering() -> Iterator[None]:
    """Say in one line that the database does not answer any more. Raises CannotStart."""
    try:
        yield
    except (OperationalError, PoolTimeout) as error:
        why = " ".join(str(error).split())[:200]
        raise CannotStart(f"the database of the checkpoints does not answer ({why}); start it, and go on") from error


@contextmanager
def open_postgres_saver(url: str, *, wait_s: float = TURN_WAIT_S) -> Iterator[PgSaver]:
    """Open the checkpoints in a database. Raises CannotStart if it does not answer; the URL's password is not told.

    A run waits `wait_s` seconds for another one on its thread.
    """
    parts = urlsplit(url)
    name = f"{parts.hostname or 'localhost'}{parts.path}"
    try:
        Connection.connect(url, connect_timeout=CONNECT_TIMEOUT_S).close()
    except OperationalError as error:
        raise CannotStart(
            f"no Postgres answers at {name}; start it, or correct or unset PALIMPSEST_DATABASE_URL"
        ) from error
    # No prepared statements: a pooler between us and the database may not know them (B071).
    options: dict[str, Any] = {"prepare_threshold": None, **KEEP_ALIVE}
    kept: dict[str, Any] = {
        "check": ConnectionPool.check_connection,
        "timeout": CONNECT_TIMEOUT_S,
        "reconnect_timeout": CONNECT_TIMEOUT_S,  # else a pool tries ever more rarely, and misses that all is well again
    }
    of_rows = {**options, "autocommit": True, "row_factory": dict_row}
    with (
        ConnectionPool(url, kwargs=options, min_size=0, max_size=RUNS_AT_ONCE, **kept) as lock_pool,
        ConnectionPool(url, kwargs=of_rows, min_size=1, max_size=10, **kept) as pool,
    ):
        rows = cast("ConnectionPool[Connection[DictRow]]", pool)
        saver = PgSaver(rows, serde=JsonPlusSerializer(allowed_msgpack_modules=None))
        saver.locks = locks = ThreadLocks(advisory_locks(lock_pool), wait_s=wait_s)
        with locks.holding(SETUP):
            saver.setup()
        yield saver

"""Checkpoints on Postgres, over a pool that tests each connection before lending it. Needs the extra `postgres`."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, cast
from urllib.parse import urlsplit

from langgraph.checkpoint.postgres import PostgresSaver
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from psycopg import Connection, OperationalError
from psycopg.rows import DictRow, dict_row
from psycopg_pool import ConnectionPool

from graph.savers import InThreads
from graph.settings import CannotStart

CONNECT_TIMEOUT_S = 10

OLD_CHECKPOINTS = """
    DELETE FROM {table} WHERE thread_id = %s AND (checkpoint_ns, checkpoint_id) NOT IN (
        SELECT checkpoint_ns, checkpoint_id FROM (
            SELECT checkpoint_ns, checkpoint_id,
                row_number() OVER (PARTITION BY checkpoint_ns ORDER BY checkpoint_id DESC) AS age
            FROM checkpoints WHERE thread_id = %s
        ) AS aged WHERE age <= %s
    )"""
LOOSE_BLOBS = """
    DELETE FROM checkpoint_blobs b WHERE thread_id = %s AND NOT EXISTS (
        SELECT 1 FROM checkpoints c WHERE c.thread_id = b.thread_id AND c.checkpoint_ns = b.checkpoint_ns
            AND c.checkpoint -> 'channel_versions' ->> b.channel = b.version
    )"""
OF_RUNS = "metadata ->> 'run_id' = ANY(%s)"
TABLES = ("checkpoints", "checkpoint_blobs", "checkpoint_writes")


class PgSaver(InThreads, PostgresSaver):
    """Checkpoints in one Postgres database, from any thread or event loop."""

    def trim(self, thread_ids: Sequence[str], *, keep: int) -> int:
        """Delete all but the newest `keep` checkpoints of threads; return how many went."""
        gone = 0
        with self._cursor() as cursor:
            for thread in thread_ids:
                cursor.execute(OLD_CHECKPOINTS.format(table="checkpoint_writes").encode(), (thread, thread, keep))
                cursor.execute(OLD_CHECKPOINTS.format(table="checkpoints").encode(), (thread, thread, keep))
                gone += cursor.rowcount
                cursor.execute(LOOSE_BLOBS, (thread,))
        return gone

    def delete_for_runs(self, run_ids: Sequence[str]) -> None:
        """Delete the checkpoints that these runs wrote, as the server does to roll back."""
        with self._cursor() as cursor:
            cursor.execute(
                "DELETE FROM checkpoint_writes WHERE (thread_id, checkpoint_ns, checkpoint_id) IN "
                f"(SELECT thread_id, checkpoint_ns, checkpoint_id FROM checkpoints WHERE {OF_RUNS})",
                (list_of(run_ids),),
            )
            cursor.execute(f"DELETE FROM checkpoints WHERE {OF_RUNS}", (list_of(run_ids),))

    def compact(self) -> tuple[int, int]:
        """Give the room of what was deleted back to the disk; return the bytes before and after."""
        before = self.size()
        with self._cursor() as cursor:
            for table in TABLES:
                cursor.execute(f"VACUUM FULL {table}".encode())
        return before, self.size()

    def size(self) -> int:
        """Return the bytes of the tables with their indexes."""
        with self._cursor() as cursor:
            rows = [cursor.execute("SELECT pg_total_relation_size(%s) AS size", (t,)).fetchone() for t in TABLES]
        return sum(int(row["size"]) for row in rows if row)

    def threads(self) -> Sequence[str]:
        """Return the ids of all threads, the last written first."""
        with self._cursor() as cursor:
            cursor.execute("SELECT thread_id FROM checkpoints GROUP BY thread_id ORDER BY max(checkpoint_id) DESC")
            return [str(row["thread_id"]) for row in cursor.fetchall()]


def list_of(ids: Sequence[str]) -> Any:
    """Return a sequence as the list that the driver sends as an array."""
    return [*ids]


@contextmanager
def open_postgres_saver(url: str) -> Iterator[PgSaver]:
    """Open the checkpoints in a database. Raises CannotStart if it does not answer; the URL's password is not told."""
    parts = urlsplit(url)
    name = f"{parts.hostname or 'localhost'}{parts.path}"
    try:
        Connection.connect(url, connect_timeout=CONNECT_TIMEOUT_S).close()
    except OperationalError as error:
        raise CannotStart(
            f"no Postgres answers at {name}; start it, or correct or unset PALIMPSEST_DATABASE_URL"
        ) from error
    # No prepared statements: a pooler between us and the database may not know them (B071).
    options = {"autocommit": True, "prepare_threshold": None, "row_factory": dict_row}
    check = ConnectionPool.check_connection
    with ConnectionPool(url, kwargs=options, min_size=1, max_size=10, check=check) as pool:
        rows = cast("ConnectionPool[Connection[DictRow]]", pool)
        saver = PgSaver(rows, serde=JsonPlusSerializer(allowed_msgpack_modules=None))
        saver.setup()
        yield saver

"""Checkpoints in one SQLite file, which several processes may use at once."""

import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from threading import RLock
from typing import Any

from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.checkpoint.sqlite import SqliteSaver

from graph.locks import TURN_WAIT_S, ThreadLocks, file_locks
from graph.savers import PARTS, InThreads, Rows
from graph.settings import CannotStart
from memory.sql import scrub

LOCKS = "locks"
"""The folder of locks beside the file of checkpoints."""

BUSY_TIMEOUT_S = 30
SCHEMA = 2
"""Version of the file, kept in SQLite's `user_version`; a larger one was written by a newer Palimpsest."""


class Saver(InThreads, SqliteSaver):
    """Checkpoints in one SQLite file, from any thread or event loop."""

    def __init__(self, connection: sqlite3.Connection, **options: Any) -> None:
        super().__init__(connection, **options)
        self.lock = RLock()  # type: ignore[assignment]  # our blocks of several statements hold it throughout
        self.depth = 0

    def setup(self) -> None:
        """Make the tables."""
        if not self.is_setup:
            super().setup()
            self.conn.execute(PARTS.format(bytes="BLOB"))

    @contextmanager
    def cursor(self, transaction: bool = True) -> Iterator[sqlite3.Cursor]:
        """Lend a cursor; the outermost block commits what all in it wrote, or after an error none of it."""
        with self.lock, closing(self.conn.cursor()) as cursor:
            self.setup()
            self.depth += 1
            try:
                yield cursor
            except BaseException:
                self.conn.rollback()
                raise
            finally:
                self.depth -= 1
            if transaction and not self.depth:
                self.conn.commit()

    @contextmanager
    def in_one(self) -> Iterator[None]:
        """Make one transaction of this block, in which nobody else writes."""
        with self.cursor() as cursor:
            if not self.conn.in_transaction:
                cursor.execute("BEGIN IMMEDIATE")
            yield

    def ask(self, sql: str, values: Sequence[Any] = ()) -> Rows:
        """Run a query; return the rows."""
        with self.cursor(transaction=False) as cursor:
            return cursor.execute(sql, tuple(values)).fetchall()

    def tell(self, sql: str, rows: Iterable[Sequence[Any]]) -> None:
        """Run a statement once for each row."""
        with self.cursor() as cursor:
            cursor.executemany(sql, rows)

    def compact(self) -> tuple[int, int]:
        """Give the room of what was deleted back to the disk; return the file's bytes before and after."""
        with self.lock:
            before = self.size()
            scrub(self.conn, "the checkpoints")
            return before, self.size()

    def size(self) -> int:
        """Return the bytes of the file."""
        pages, size = (self.conn.execute(f"PRAGMA {name}").fetchone()[0] for name in ("page_count", "page_size"))
        return int(pages) * int(size)


@contextmanager
def open_saver(path: Path, *, wait_s: float = TURN_WAIT_S) -> Iterator[Saver]:
    """Open the file of checkpoints, made if it is missing. Raises CannotStart if it cannot be used.

    A run waits `wait_s` seconds for another one on its thread.
    """
    try:
        connection = sqlite3.connect(path, check_same_thread=False, timeout=BUSY_TIMEOUT_S)
    except sqlite3.Error as error:
        raise CannotStart(
            f"the checkpoints in {str(path)!r} cannot be opened ({error}); set PALIMPSEST_HOME to another folder"
        ) from error
    with closing(connection):
        saver = Saver(connection, serde=JsonPlusSerializer(allowed_msgpack_modules=None))
        saver.locks = ThreadLocks(file_locks(path.parent / LOCKS), wait_s=wait_s)
        try:
            check_version(connection, path)
            saver.setup()
        except sqlite3.Error as error:
            raise CannotStart(
                f"{str(path)!r} is not a usable file of checkpoints ({error}); move it away or set PALIMPSEST_HOME"
            ) from error
        yield saver


def check_version(connection: sqlite3.Connection, path: Path) -> None:
    """Mark a new file with the version of its form; refuse one that is newer than this program."""
    found = connection.execute("PRAGMA user_version").fetchone()[0]
    if found > SCHEMA:
        raise CannotStart(
            f"{str(path)!r} was written by a newer Palimpsest (form {found}, this one knows {SCHEMA}); "
            "update, or set PALIMPSEST_HOME to another folder"
        )
    if found < SCHEMA:
        connection.execute(f"PRAGMA user_version = {SCHEMA}")
        connection.commit()

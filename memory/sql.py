"""Two databases, one way to speak to them: SQLite in a file, Postgres behind a URL.

Statements are written once, with `?` for parameters. What differs is here; tables are memory/schema.py's.
"""

import sqlite3
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from datetime import datetime
from pathlib import Path
from threading import RLock
from typing import TYPE_CHECKING, Any, TypeAlias

import orjson
from langgraph.store.sqlite import SqliteStore

from memory.errors import StoreError, Unreadable, Unwritable

if TYPE_CHECKING:
    from memory.postgres import Postgres

Row = tuple[Any, ...]
BUSY_TIMEOUT_S = 60
PAGE_BYTES = 8192  # three vectors of 512 floats to a page; with SQLite's 4096 it is one


class Session:
    """Statements on one cursor, inside a transaction if it came from `writing`."""

    def __init__(self, cursor: Any, *, placeholder: str = "?") -> None:
        self._cursor, self._placeholder = cursor, placeholder

    def run(self, sql: str, params: Sequence[Any] = ()) -> list[Row]:
        """Run one statement and return its rows, if any."""
        self._cursor.execute(sql.replace("?", self._placeholder), *([params] if params else []))
        return self._cursor.fetchall() if self._cursor.description else []

    def run_many(self, sql: str, rows: Iterable[Sequence[Any]]) -> None:
        """Run one statement for each row of parameters."""
        self._cursor.executemany(sql.replace("?", self._placeholder), rows)


class Sqlite:
    """A SQLite file in WAL mode: one connection reads, one writes, so that a waiting writer stops no reader.

    Like Postgres (memory/postgres.py) it has a `name` that says where it is, without secrets; `json` is how a JSON
    parameter is written in a statement, `bytewise` what makes a comparison of texts go by code points.
    """

    json = "?"
    bytewise = ""

    def __init__(self, path: Path) -> None:
        self.name = str(path)
        self._path = path
        self._locks = {"read": RLock(), "write": RLock(), "index": RLock()}
        with _explained(path):
            path.parent.mkdir(parents=True, exist_ok=True)
            self._turnstile = self._connect(path.with_suffix(".lock"))
            self._writer = self._connect(path)
            if self._writer.execute("PRAGMA journal_mode").fetchone() != ("wal",):
                with _transaction(self._turnstile):  # SQLite does not wait while another process turns it on
                    self._writer.execute(f"PRAGMA page_size = {PAGE_BYTES}")
                    self._writer.execute("PRAGMA journal_mode = WAL")
            self._reader = self._connect(path)
        self._inode = path.stat().st_ino

    def _connect(self, path: Path) -> sqlite3.Connection:
        connection = sqlite3.connect(path, timeout=BUSY_TIMEOUT_S, isolation_level=None, check_same_thread=False)
        # A put that returned survives a power cut, not only a crash of the process.
        connection.execute("PRAGMA synchronous = FULL")
        return connection

    @contextmanager
    def reading(self) -> Iterator[Session]:
        """Read what is committed."""
        # Closed here, not by a thread that lets go of it later: cursors of one connection share their statements.
        with self._locks["read"], _explained(self._path), closing(self._reader.cursor()) as cursor:
            yield Session(cursor)

    @contextmanager
    def writing(self) -> Iterator[Session]:
        """Write as one transaction; SQLite lets one process write at a time."""
        with self._locks["write"], _explained(self._path), _transaction(self._writer):
            self._check_place()
            with closing(self._writer.cursor()) as cursor:
                yield Session(cursor)

    @contextmanager
    def indexing(self, *, wait_s: float = BUSY_TIMEOUT_S) -> Iterator[None]:
        """Be the only process that opens or changes the vector index. Raises Unwritable after the wait.

        An empty database's write lock is freed even if the process is killed, on every platform.
        """
        with self._locks["index"], _explained(self._path):
            self._turnstile.execute(f"PRAGMA busy_timeout = {int(wait_s * 1000)}")
            with _transaction(self._turnstile):
                yield

    def _check_place(self) -> None:
        """Refuse to write into a file that was deleted under us: SQLite itself would not notice."""
        try:
            there = self._path.stat().st_ino == self._inode
        except OSError:
            there = False
        if not there:
            raise Unwritable(f"{self._path} was deleted or replaced while open; open the store again")

    def among(self, column: str, values: Iterable[Any]) -> tuple[str, Any]:
        """Write `column IN (values)` as a condition and its one parameter: SQLite limits their number."""
        return f"{column} IN (SELECT value FROM json_each(?))", orjson.dumps(list(values)).decode()

    def moment(self, at: datetime) -> str:
        """Encode a time (UTC) in the form whose order as text is its order in time."""
        return at.isoformat(sep=" ", timespec="microseconds")

    def create(self) -> None:
        """Run SqliteStore's own migrations, one process at a time: two at once would fail."""
        with self.indexing(), self._locks["write"]:
            SqliteStore(self._writer).setup()

    def scrub(self) -> None:
        """Rewrite the file without what was deleted from it."""
        with self._locks["write"], _explained(self._path):
            scrub(self._writer, self.name)

    def size(self) -> int:
        """Return the bytes in use, derived indexes included."""
        return sum(file.stat().st_size for file in self._path.parent.rglob("*") if file.is_file())

    def close(self) -> None:
        """Close the connections."""
        for lock, connection in zip(self._locks.values(), (self._reader, self._writer, self._turnstile), strict=True):
            with lock:
                connection.close()


def scrub(connection: sqlite3.Connection, name: str) -> None:
    """Rewrite a database without what was deleted from it, and empty its log. Raises Unwritable if it is being read."""
    connection.execute("VACUUM")
    if connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]:
        raise Unwritable(f"the log of {name} was being read all the time and still holds old pages; try again")


Database: TypeAlias = "Sqlite | Postgres"
"""A place for the record."""


@contextmanager
def _transaction(connection: sqlite3.Connection) -> Iterator[None]:
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


_MENDS: dict[str, Callable[[Path], StoreError]] = {
    "readonly": lambda path: Unwritable(f"{path} is read-only; make its folder writable or choose another home"),
    "unable to open": lambda path: Unwritable(f"{path} cannot be opened; make its folder writable or choose another"),
    "full": lambda path: Unwritable(f"no space left for {path}; free some, nothing was lost"),
    "disk i/o": lambda path: Unwritable(f"{path} cannot be written (disk error or disk full); nothing was lost"),
    "locked": lambda path: Unwritable(f"{path} was in use elsewhere for {BUSY_TIMEOUT_S} s; try again"),
    "not a database": lambda path: Unreadable(f"{path} is not a SQLite database; restore it from a backup"),
    "malformed": lambda path: Unreadable(f"{path} is damaged; restore it from a backup"),
}


@contextmanager
def _explained(path: Path) -> Iterator[None]:
    """Turn SQLite's errors about the place into messages that name it and the mend."""
    try:
        yield
    except sqlite3.DatabaseError as error:
        for sign, explain in _MENDS.items():
            if sign in str(error).lower():
                raise explain(path) from error
        raise
    except OSError as error:
        raise Unwritable(f"{path} cannot be written: {error.strerror or error}; choose another home") from error

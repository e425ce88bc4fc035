"""Checkpoints for `invoke` and `ainvoke` alike: LangGraph's savers, their async half run in worker threads.

LangGraph has one saver for sync and one for async; the wrong one raises or hangs (B065). Ours serve both.
The one on SQLite is here, the one on Postgres in graph/postgres.py.
"""

import asyncio
import sqlite3
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import (
    BaseCheckpointSaver,
    ChannelVersions,
    Checkpoint,
    CheckpointMetadata,
    CheckpointTuple,
)
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.checkpoint.sqlite import SqliteSaver

from graph.locks import TURN_WAIT_S, ThreadLocks, file_locks
from graph.settings import CannotStart
from memory.sql import scrub

LOCKS = "locks"
"""The folder of locks beside the file of checkpoints."""

MAX_THREAD_CHARS = 512
BUSY_TIMEOUT_S = 30
SCHEMA = 1
"""Version of the file, kept in SQLite's `user_version`; a larger one was written by a newer Palimpsest."""


OLD_CHECKPOINTS = """
    DELETE FROM {table} WHERE thread_id = ? AND (checkpoint_ns, checkpoint_id) NOT IN (
        SELECT checkpoint_ns, checkpoint_id FROM (
            SELECT checkpoint_ns, checkpoint_id,
                row_number() OVER (PARTITION BY checkpoint_ns ORDER BY checkpoint_id DESC) AS age
            FROM checkpoints WHERE thread_id = ?
        ) WHERE age <= ?
    )"""


class BadThread(ValueError):
    """A thread id that no saver should be given."""


class InThreads(BaseCheckpointSaver[str]):
    """What every saver of ours has: checked thread ids, and the async half of the sync one, run in worker threads.

    With its `locks`, runs take turns on a thread: whoever shares the checkpoints shares them.
    """

    locks: ThreadLocks

    def get_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        """Return the checkpoint that the config names. Raises BadThread for an id that cannot be one."""
        check_thread(config["configurable"].get("thread_id"))
        return super().get_tuple(config)

    def list(
        self,
        config: RunnableConfig | None,
        *,
        filter: dict[str, Any] | None = None,
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> Iterator[CheckpointTuple]:
        """Return the checkpoints, newest first, all read at once.

        LangGraph's own holds the saver's lock until its last item is taken: whoever reads a state on the way hangs.
        """
        return iter([*super().list(config, filter=filter, before=before, limit=limit)])

    def trim(self, thread_ids: Sequence[str], *, keep: int) -> int:
        """Delete all but the newest `keep` checkpoints of threads; return how many went."""
        raise NotImplementedError

    def compact(self) -> tuple[int, int]:
        """Give the room of what was deleted back to the disk; return the bytes before and after."""
        raise NotImplementedError

    def threads(self) -> Sequence[str]:
        """Return the ids of all threads, the last written first."""
        raise NotImplementedError

    def prune(self, thread_ids: Sequence[str], *, strategy: str = "keep_latest") -> None:
        """Delete all but the newest checkpoint of threads, or with the strategy "delete" all of them."""
        self.trim(thread_ids, keep=0 if strategy == "delete" else 1)

    async def aget_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        """As `get_tuple`, in a worker thread."""
        return await asyncio.to_thread(self.get_tuple, config)

    async def alist(
        self,
        config: RunnableConfig | None,
        *,
        filter: dict[str, Any] | None = None,
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> AsyncIterator[CheckpointTuple]:
        """As `list`, in a worker thread."""
        for found in await asyncio.to_thread(self.list, config, filter=filter, before=before, limit=limit):
            yield found

    async def aput(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        """As `put`, in a worker thread."""
        return await asyncio.to_thread(self.put, config, checkpoint, metadata, new_versions)

    async def aput_writes(
        self, config: RunnableConfig, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str = ""
    ) -> None:
        """As `put_writes`, in a worker thread."""
        await asyncio.to_thread(self.put_writes, config, writes, task_id, task_path)

    async def adelete_thread(self, thread_id: str) -> None:
        """As `delete_thread`, in a worker thread."""
        await asyncio.to_thread(self.delete_thread, thread_id)

    async def aprune(self, thread_ids: Sequence[str], *, strategy: str = "keep_latest") -> None:
        """As `prune`, in a worker thread."""
        await asyncio.to_thread(self.prune, thread_ids, strategy=strategy)

    async def adelete_for_runs(self, run_ids: Sequence[str]) -> None:
        """As `delete_for_runs`, in a worker thread."""
        await asyncio.to_thread(self.delete_for_runs, run_ids)


class Saver(InThreads, SqliteSaver):
    """Checkpoints in one SQLite file, from any thread or event loop."""

    def delete_for_runs(self, run_ids: Sequence[str]) -> None:
        """Delete the checkpoints that these runs wrote, as the server does to roll back."""
        marks = ",".join("?" * len(run_ids))
        where = f"json_extract(CAST(metadata AS TEXT), '$.run_id') IN ({marks})"
        with self.cursor() as cursor:
            cursor.execute(
                "DELETE FROM writes WHERE (thread_id, checkpoint_ns, checkpoint_id) IN "
                f"(SELECT thread_id, checkpoint_ns, checkpoint_id FROM checkpoints WHERE {where})",
                tuple(run_ids),
            )
            cursor.execute(f"DELETE FROM checkpoints WHERE {where}", tuple(run_ids))

    def trim(self, thread_ids: Sequence[str], *, keep: int) -> int:
        """Delete all but the newest `keep` checkpoints of threads; return how many went."""
        gone = 0
        with self.cursor() as cursor:
            for thread in thread_ids:
                cursor.execute(OLD_CHECKPOINTS.format(table="writes"), (thread, thread, keep))
                cursor.execute(OLD_CHECKPOINTS.format(table="checkpoints"), (thread, thread, keep))
                gone += cursor.rowcount
        return gone

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

    def threads(self) -> Sequence[str]:
        """Return the ids of all threads, the last written first."""
        with self.cursor(transaction=False) as cursor:
            rows = cursor.execute(
                "SELECT thread_id FROM checkpoints GROUP BY thread_id ORDER BY max(checkpoint_id) DESC"
            )
            return [str(thread) for (thread,) in rows]


def check_thread(thread: object) -> None:
    """Raise BadThread unless this can name a thread in every saver (B072)."""
    if not isinstance(thread, str) or not thread.strip():
        raise BadThread(f"a thread id must be a non-blank text, got {thread!r}; give each conversation its own")
    if len(thread) > MAX_THREAD_CHARS:
        raise BadThread(
            f"a thread id has at most {MAX_THREAD_CHARS} characters, got {len(thread)}; use a short name or a UUID"
        )
    if any(ord(char) < 32 or 0xD800 <= ord(char) <= 0xDFFF or char == "\x7f" for char in thread):
        raise BadThread(f"a thread id holds no control characters or lone surrogates, got {thread[:40]!r}")


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

"""What our savers have in common: one for `invoke` and `ainvoke`, large values stored once, trimming, thread ids.

LangGraph has one saver for sync and one for async; the wrong one raises or hangs (B065). Ours serve both.
The one on SQLite is in graph/sqlite.py, the one on Postgres in graph/postgres.py.
"""

import asyncio
from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from random import getrandbits
from typing import Any

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import (
    BaseCheckpointSaver,
    ChannelVersions,
    Checkpoint,
    CheckpointMetadata,
    CheckpointTuple,
)

from graph.locks import ThreadLocks
from graph.parts import Part, names_in, put_together, taken_apart
from graph.settings import CannotStart

MAX_THREAD_CHARS = 512
READS = 3
"""Times that a checkpoint is read anew when it was trimmed while it was read."""

CALLED = ":"
"""What the name of a place holds that belongs to one call of a tool."""

PARTS = """
    CREATE TABLE IF NOT EXISTS checkpoint_parts (
        thread_id TEXT NOT NULL, name TEXT NOT NULL, type TEXT NOT NULL, value {bytes} NOT NULL,
        PRIMARY KEY (thread_id, name)
    )"""
ADD_PART = """
    INSERT INTO checkpoint_parts (thread_id, name, type, value) VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING"""

Rows = list[tuple[Any, ...]]


class BadThread(ValueError):
    """A thread id that no saver should be given."""


class InThreads(BaseCheckpointSaver[str]):
    """What every saver of ours has: checked thread ids, and the async half of the sync one, run in worker threads.

    A large value is stored once for all checkpoints that hold it (graph/parts.py). With its `locks`, runs take turns on
    a thread: whoever shares the checkpoints shares them.
    """

    locks: ThreadLocks
    writes = "writes"
    run_id = "json_extract(CAST(metadata AS TEXT), '$.run_id')"

    def ask(self, sql: str, values: Sequence[Any] = ()) -> Rows:
        """Run a query with `?` for its values; return the rows."""
        raise NotImplementedError

    def tell(self, sql: str, rows: Iterable[Sequence[Any]]) -> None:
        """Run a statement with `?` for its values, once for each row."""
        raise NotImplementedError

    def in_one(self) -> AbstractContextManager[object]:
        """Make one transaction of what is told in this block, where that is possible."""
        return nullcontext()

    def compact(self) -> tuple[int, int]:
        """Give the room of what was deleted back to the disk; return the bytes before and after."""
        raise NotImplementedError

    def put(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        """Store a checkpoint, and first those of its parts that are not stored yet."""
        thread, whole = str(config["configurable"]["thread_id"]), checkpoint["channel_values"]
        values, parts = taken_apart(whole, self.serde)
        with self.in_one():
            missing = parts.keys() - self.stored(thread, [*parts])
            for channel in values.keys() - new_versions.keys():  # an earlier version, stored in the form of then
                values[channel] = whole[channel] if missing & {*names_in([values[channel]])} else values[channel]
            new = missing & {*names_in(values.values())}
            self.tell(ADD_PART, [(thread, name, *parts[name]) for name in new])
            return super().put(config, {**checkpoint, "channel_values": values}, metadata, new_versions)

    def get_next_version(self, current: str | None, channel: None) -> str:
        """Return a version above the current one, different in each fork; a third as long as LangGraph's.

        A checkpoint names some thirty of them, and little else.
        """
        number = int(current.split(".")[0]) + 1 if current else 1
        return f"{number:08}.{getrandbits(48):012x}"

    def stored(self, thread: str, names: Sequence[str]) -> set[str]:
        """Return the names of those parts of a thread that are stored."""
        found = f"SELECT name FROM checkpoint_parts WHERE thread_id = ? AND name IN ({marks(names)})"
        return {name for (name,) in self.ask(found, [thread, *names])} if names else set()

    def parts(self, thread: str, names: Sequence[str]) -> dict[str, Part]:
        """Return parts of a thread."""
        found = f"SELECT name, type, value FROM checkpoint_parts WHERE thread_id = ? AND name IN ({marks(names)})"
        rows = self.ask(found, [thread, *names]) if names else []
        return {name: (type, bytes(value)) for name, type, value in rows}

    def get_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        """Return the checkpoint that the config names. Raises BadThread for an id that cannot be one."""
        check_thread(config["configurable"].get("thread_id"))
        for _ in range(READS):
            found = super().get_tuple(config)
            if found is None or (whole := self.whole(found)):
                return found and whole
        raise CannotStart(f"a checkpoint of {config['configurable']['thread_id']!r} lacks parts; restore a backup")

    def whole(self, found: CheckpointTuple) -> CheckpointTuple | None:
        """Return a checkpoint with its parts; None if it was trimmed while it was read."""
        values = found.checkpoint["channel_values"]
        parts = self.parts(found.config["configurable"]["thread_id"], sorted({*names_in(values.values())}))
        try:
            values = put_together(values, parts, self.serde)
        except KeyError:
            return None
        return found._replace(checkpoint={**found.checkpoint, "channel_values": values})

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
        found = [*super().list(config, filter=filter, before=before, limit=limit)]
        return iter([whole for one in found if (whole := self.whole(one))])

    def trim(self, thread_ids: Sequence[str], *, keep: int) -> int:
        """Delete all but the newest `keep` checkpoints of threads, which are at rest; return how many went.

        Those of a graph that a tool ran go with those of the thread, but where they are its memory of its own.
        """
        return sum(self.trimmed(thread, keep) for thread in thread_ids)

    def trimmed(self, thread: str, keep: int) -> int:
        """Trim one thread."""
        count, of_one = "SELECT count(*) FROM checkpoints WHERE thread_id = ?", "thread_id = ? AND checkpoint_ns = ?"
        oldest = f"SELECT checkpoint_id FROM checkpoints WHERE {of_one} ORDER BY checkpoint_id DESC LIMIT 1 OFFSET ?"
        ((before,),) = self.ask(count, [thread])
        if not keep:
            self.delete_thread(thread)
            return int(before)
        with self.in_one():
            for (place,) in self.ask("SELECT DISTINCT checkpoint_ns FROM checkpoints WHERE thread_id = ?", [thread]):
                lasting = "" if CALLED in place else place
                for (id,) in self.ask(oldest, [thread, lasting, keep - 1]):
                    for table in (self.writes, "checkpoints"):
                        self.tell(f"DELETE FROM {table} WHERE {of_one} AND checkpoint_id < ?", [(thread, place, id)])
            self.drop_loose(thread)
        ((after,),) = self.ask(count, [thread])
        return int(before - after)

    def drop_loose(self, thread: str) -> None:
        """Delete the parts of a thread that none of its checkpoints holds."""
        held = super().list({"configurable": {"thread_id": thread}})
        needed = {name for found in [*held] for name in names_in(found.checkpoint["channel_values"].values())}
        stored = {name for (name,) in self.ask("SELECT name FROM checkpoint_parts WHERE thread_id = ?", [thread])}
        loose = [(thread, name) for name in stored - needed]
        self.tell("DELETE FROM checkpoint_parts WHERE thread_id = ? AND name = ?", loose)

    def delete_thread(self, thread_id: str) -> None:
        """Delete all of a thread."""
        super().delete_thread(thread_id)
        self.tell("DELETE FROM checkpoint_parts WHERE thread_id = ?", [(thread_id,)])

    def delete_for_runs(self, run_ids: Sequence[str]) -> None:
        """Delete the checkpoints that these runs wrote, as the server does to roll back."""
        if not run_ids:
            return
        wrote = f"SELECT thread_id, checkpoint_ns, checkpoint_id FROM checkpoints WHERE {self.run_id} IN "
        rows = self.ask(f"{wrote} ({marks(run_ids)})", run_ids)
        for table in (self.writes, "checkpoints"):
            self.tell(f"DELETE FROM {table} WHERE thread_id = ? AND checkpoint_ns = ? AND checkpoint_id = ?", rows)

    def threads(self) -> Sequence[str]:
        """Return the ids of all threads, the last written first."""
        rows = self.ask("SELECT thread_id FROM checkpoints GROUP BY thread_id ORDER BY max(checkpoint_id) DESC")
        return [str(thread) for (thread,) in rows]

    def prune(self, thread_ids: Sequence[str], *, strategy: str = "keep_latest") -> None:
        """Delete all but the newest checkpoint of threads, or with the strategy "delete" all of them."""
        for thread in thread_ids:
            with self.locks.holding(thread):
                self.trim([thread], keep=0 if strategy == "delete" else 1)

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


def marks(values: Sequence[str]) -> str:
    """Write one question mark for each value."""
    return ",".join("?" * len(values))


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

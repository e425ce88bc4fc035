"""One run at a time on a thread, in one process and across several on one folder.

LangGraph lets two runs on one thread start from the same checkpoint, and the later one silently wins. Here the second
waits, and is refused with a clear error if it waited too long. The lock is a file's: the system drops it when its
process ends, however that happens.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from hashlib import sha256
from pathlib import Path
from threading import Lock
from typing import Any

from filelock import FileLock, Timeout
from langchain_core.runnables import RunnableConfig
from langgraph.graph.state import CompiledStateGraph

from memory.text import clean

PAUSE_S = 0.05


class ThreadBusy(RuntimeError):
    """Another run on the same thread did not end in time."""


class ThreadLocks:
    """The locks of one home."""

    def __init__(self, folder: Path, *, wait_s: float) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.folder, self.wait_s = folder, wait_s
        self.guard = Lock()
        self.held: dict[str, FileLock] = {}

    def take(self, thread: str) -> FileLock | None:
        """Take the lock of a thread if it is free."""
        with self.guard:
            if thread in self.held:
                return None
            lock = FileLock(self.folder / f"{sha256(clean(thread).encode()).hexdigest()[:32]}.lock", thread_local=False)
            try:
                lock.acquire(timeout=0)
            except Timeout:
                return None
            self.held[thread] = lock
            return lock

    def give_back(self, lock: FileLock) -> None:
        """Release a lock."""
        with self.guard:
            self.held = {thread: held for thread, held in self.held.items() if held is not lock}
            lock.release()

    @contextmanager
    def holding(self, thread: str) -> Iterator[None]:
        """Hold the lock of a thread. Raises ThreadBusy."""
        end = time.monotonic() + self.wait_s
        while (lock := self.take(thread)) is None:
            self.refuse_after(end, thread)
            time.sleep(PAUSE_S)
        try:
            yield
        finally:
            self.give_back(lock)

    @asynccontextmanager
    async def aholding(self, thread: str) -> AsyncIterator[None]:
        """As `holding`, awaited."""
        end = time.monotonic() + self.wait_s
        while (lock := await asyncio.to_thread(self.take, thread)) is None:
            self.refuse_after(end, thread)
            await asyncio.sleep(PAUSE_S)
        try:
            yield
        finally:
            await asyncio.to_thread(self.give_back, lock)

    def refuse_after(self, end: float, thread: str) -> None:
        """Raise ThreadBusy when the time has come."""
        if time.monotonic() >= end:
            raise ThreadBusy(
                f"another run on thread {thread!r} did not end within {self.wait_s:g} s; "
                "wait for it, or use another thread"
            )


class LockedGraph(CompiledStateGraph[Any, Any, Any, Any]):
    """A compiled graph whose runs take turns on a thread; `invoke`, `ainvoke`, `stream` and `astream` alike."""

    def __init__(self, *, locks: ThreadLocks | None = None, **attributes: Any) -> None:
        super().__init__(**attributes)
        self.locks = locks

    def stream(self, input: Any, config: RunnableConfig | None = None, **options: Any) -> Iterator[Any]:
        """Run while holding the thread."""
        thread = thread_in(config)
        if self.locks is None or thread is None:
            yield from super().stream(input, config, **options)
            return
        with self.locks.holding(thread):
            yield from super().stream(input, config, **options)

    async def astream(self, input: Any, config: RunnableConfig | None = None, **options: Any) -> AsyncIterator[Any]:
        """Run while holding the thread."""
        thread = thread_in(config)
        if self.locks is None or thread is None:
            async for part in super().astream(input, config, **options):
                yield part
            return
        async with self.locks.aholding(thread):
            async for part in super().astream(input, config, **options):
                yield part


def locked(graph: CompiledStateGraph[Any, Any, Any, Any], locks: ThreadLocks) -> LockedGraph:
    """Return the graph with its runs taking turns."""
    return LockedGraph(locks=locks, **{name: value for name, value in vars(graph).items() if name != "__orig_class__"})


def thread_in(config: RunnableConfig | None) -> str | None:
    """Return the thread that a config names."""
    thread = ((config or {}).get("configurable") or {}).get("thread_id")
    return thread if isinstance(thread, str) else None

"""One run at a time on a thread, in one process and across all that share its checkpoints, each step stored first.

LangGraph lets two runs on one thread start from the same checkpoint, and the later one silently wins. Here the second
waits, and is refused with a clear error if it waited too long. What keeps processes apart is a file's lock where the
checkpoints are a file, and the database's where they lie in one; the system drops either when its process ends,
however that happens.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import (
    AbstractAsyncContextManager,
    AbstractContextManager,
    asynccontextmanager,
    contextmanager,
    nullcontext,
)
from hashlib import sha256
from pathlib import Path
from threading import Lock
from typing import Any

from filelock import FileLock, Timeout
from langchain_core.runnables import RunnableConfig
from langchain_core.runnables.config import merge_configs
from langgraph.checkpoint.base import BaseCheckpointSaver, CheckpointTuple
from langgraph.graph import StateGraph
from langgraph.graph.state import CompiledStateGraph
from langgraph.types import StateUpdate

from graph.admission import admitted, user_in
from memory.text import clean

PAUSE_S = 0.05
TURN_WAIT_S = 300.0
"""How long a run waits for another one on the same thread before it is refused."""

Release = Callable[[], object]
Take = Callable[[str], Release | None]
"""From a thread to how to release its lock; None if another process holds it."""


class ThreadBusy(RuntimeError):
    """Another run on the same thread did not end in time."""


def file_locks(folder: Path) -> Take:
    """Take locks of files in a folder."""

    def take(thread: str) -> Release | None:
        folder.mkdir(parents=True, exist_ok=True)
        name = sha256(clean(thread).encode()).hexdigest()[:32]
        lock = FileLock(folder / f"{name}.lock", thread_local=False)
        try:
            lock.acquire(timeout=0)
        except Timeout:
            return None
        return lock.release

    return take


class Claim:
    """A run's wish for a thread's lock: how to release it once it is taken; `is_over` when the run waits no longer."""

    def __init__(self, thread: str) -> None:
        self.thread = thread
        self.release: Release | None = None
        self.is_over = False


class ThreadLocks:
    """The locks of all threads: `take_lock` keeps processes apart, `held` the runs of this one."""

    def __init__(self, take_lock: Take, *, wait_s: float = TURN_WAIT_S) -> None:
        self.take_lock, self.wait_s = take_lock, wait_s
        self.guard = Lock()
        self.held: set[str] = set()

    def take(self, claim: Claim) -> bool:
        """Take the lock of a thread if it is free; return whether the run may go on, or need wait no longer."""
        with self.guard:
            if claim.is_over or claim.thread in self.held:
                return claim.is_over
            self.held.add(claim.thread)
        release = None
        try:
            release = self.take_lock(claim.thread)
        finally:
            with self.guard:
                kept = release is not None and not claim.is_over
                if kept:
                    claim.release = release
                else:
                    self.held.remove(claim.thread)
        if release and not kept:
            release()
        return release is not None

    def end(self, claim: Claim) -> None:
        """Release the lock, or see to it that a take still under way, of a run that was cancelled, keeps none."""
        with self.guard:
            claim.is_over = True
            release, claim.release = claim.release, None
        if release:
            try:
                release()
            finally:
                with self.guard:
                    self.held.remove(claim.thread)

    @contextmanager
    def holding(self, thread: str) -> Iterator[None]:
        """Hold the lock of a thread. Raises ThreadBusy."""
        claim, end = Claim(thread), time.monotonic() + self.wait_s
        try:
            while not self.take(claim):
                self.refuse_after(end, thread)
                time.sleep(PAUSE_S)
            yield
        finally:
            self.end(claim)

    @asynccontextmanager
    async def aholding(self, thread: str) -> AsyncIterator[None]:
        """As `holding`, awaited."""
        claim, end = Claim(thread), time.monotonic() + self.wait_s
        try:
            while not await asyncio.to_thread(self.take, claim):
                self.refuse_after(end, thread)
                await asyncio.sleep(PAUSE_S)
            yield
        finally:
            await asyncio.to_thread(self.end, claim)

    def refuse_after(self, end: float, thread: str) -> None:
        """Raise ThreadBusy when the time has come."""
        if time.monotonic() >= end:
            raise ThreadBusy(
                f"another run on thread {thread!r} did not end within {self.wait_s:g} s; "
                "wait for it, or use another thread"
            )


class LockedGraph(CompiledStateGraph[Any, Any, Any, Any]):
    """A compiled graph whose writers take turns on a thread: runs of every kind, and updates of its state.

    A saver of ours brings its locks along; where it is set later, as the server does, they are given.
    A checkpoint is on disk before the next step begins. LangGraph's own "async" lets a tool run while the call is not
    stored: killed then, the turn goes on from before it, and what the tool did is done again.
    """

    def __init__(self, *, locks: ThreadLocks | None = None, **attributes: Any) -> None:
        super().__init__(**attributes)
        self.locks: ThreadLocks | None = locks or getattr(self.checkpointer, "locks", None)

    def alone(self, config: RunnableConfig | None) -> AbstractContextManager[None]:
        """Hold the thread that the config names, if it names one."""
        thread = thread_in(self.config, config)
        return self.locks.holding(thread) if self.locks and thread else nullcontext()

    def aalone(self, config: RunnableConfig | None) -> AbstractAsyncContextManager[None]:
        """As `alone`, awaited."""
        thread = thread_in(self.config, config)
        return self.locks.aholding(thread) if self.locks and thread else nullcontext()

    def newest(self, config: RunnableConfig | None) -> RunnableConfig | None:
        """Name the newest checkpoint of the thread of a run, None for one that is not stored or has no thread."""
        thread = thread_in(self.config, config)
        return {"configurable": {"thread_id": thread, "checkpoint_ns": ""}} if thread else None

    def admit(self, found: CheckpointTuple | None, config: RunnableConfig | None, context: Any) -> RunnableConfig:
        """Return the config with the user of the run. Raises NotYourThread."""
        return admitted(found, config, user_in(merge_configs(self.config, config), context))

    def stored_first(self, options: dict[str, Any]) -> dict[str, Any]:
        """Return the options of a run with "sync" durability, unless its steps are not to be stored at all."""
        stores = isinstance(self.checkpointer, BaseCheckpointSaver) and options.get("durability") != "exit"
        return {**options, "durability": "sync"} if stores else options

    def stream(self, input: Any, config: RunnableConfig | None = None, **options: Any) -> Iterator[Any]:
        """Run alone on the thread. Raises NotYourThread, with nothing of the run stored, if another user began it."""
        with self.alone(config):
            saver, newest = self.checkpointer, self.newest(config)
            found = saver.get_tuple(newest) if newest and isinstance(saver, BaseCheckpointSaver) else None
            config = self.admit(found, config, options.get("context"))
            yield from super().stream(input, config, **self.stored_first(options))

    async def astream(self, input: Any, config: RunnableConfig | None = None, **options: Any) -> AsyncIterator[Any]:
        """As `stream`, awaited."""
        async with self.aalone(config):
            saver, newest = self.checkpointer, self.newest(config)
            found = await saver.aget_tuple(newest) if newest and isinstance(saver, BaseCheckpointSaver) else None
            config = self.admit(found, config, options.get("context"))
            async for part in super().astream(input, config, **self.stored_first(options)):
                yield part

    def bulk_update_state(self, config: RunnableConfig, supersteps: Sequence[Sequence[StateUpdate]]) -> RunnableConfig:
        """Update the state alone on the thread; `update_state` does it by this."""
        with self.alone(config):
            return super().bulk_update_state(config, supersteps)

    async def abulk_update_state(
        self, config: RunnableConfig, supersteps: Sequence[Sequence[StateUpdate]]
    ) -> RunnableConfig:
        """As `bulk_update_state`, awaited."""
        async with self.aalone(config):
            return await super().abulk_update_state(config, supersteps)


def locked(graph: CompiledStateGraph[Any, Any, Any, Any], locks: ThreadLocks | None) -> LockedGraph:
    """Return the graph with its steps stored one before the next and, with locks, its runs taking turns."""
    attributes = {name: value for name, value in vars(graph).items() if name != "__orig_class__"}
    return LockedGraph(**{**attributes, "locks": locks})


class LockedBuilder(StateGraph[Any, Any, Any, Any]):
    """A graph under construction whose compiled form stores each step before the next."""

    def compile(self, *saver: Any, **options: Any) -> LockedGraph:
        """Compile it."""
        return locked(super().compile(*saver, **options), None)


def thread_in(*configs: RunnableConfig | None) -> str | None:
    """Return the thread that the configs name, as the saver writes it; a later one goes first."""
    thread = (merge_configs(*configs).get("configurable") or {}).get("thread_id")
    return None if thread is None else str(thread)

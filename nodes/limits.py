"""Time limits for code that does not ask for the time, and functions in threads that no exit waits for.

What a tool raises comes back as a value: an error of a tool is an outcome, not control flow.
"""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from contextvars import copy_context
from queue import Empty, SimpleQueue
from threading import Thread
from typing import TypeVar

T = TypeVar("T")


class OverTime(Exception):
    """The limit has passed; the work may still be going on, unobserved."""


MOST_IDLE = 32
"""Threads that are kept for the next call; more end with their work."""

idle: "list[Worker]" = []


class Worker(Thread):
    """Does one job after the other: starting a thread for each would cost more than most of them."""

    def __init__(self) -> None:
        super().__init__(name="palimpsest-tool", daemon=True)
        self.inbox: SimpleQueue[Callable[[], object]] = SimpleQueue()

    def run(self) -> None:
        """Wait for work, do it, wait again."""
        while True:
            self.inbox.get()()
            if len(idle) >= MOST_IDLE:
                return
            idle.append(self)


def worker() -> Worker:
    """Return a thread that waits for work. A process that was forked has none of the threads of before."""
    while idle:
        with suppress(IndexError):  # another call took it
            if (one := idle.pop()).is_alive():
                return one
    one = Worker()
    one.start()
    return one


def in_thread(work: Callable[[], T], done: Callable[[T | BaseException], object]) -> None:
    """Do work in a daemon thread with this thread's context, then tell its value or error, `sys.exit` included.

    A pool's threads are waited for when the program ends; a tool that hangs would hang it.
    """
    context = copy_context()

    def job() -> None:
        try:
            outcome: T | BaseException = context.run(work)
        except BaseException as error:
            outcome = error
        done(outcome)

    worker().inbox.put(job)


def limited(work: Callable[[], T], seconds: float) -> T | BaseException:
    """Return the work's value, its error, or OverTime when the seconds have passed."""
    ended: SimpleQueue[T | BaseException] = SimpleQueue()
    in_thread(work, ended.put)
    try:
        return ended.get(timeout=seconds)
    except Empty:
        return OverTime()


async def within(work: Awaitable[T], seconds: float) -> T | BaseException:
    """As `limited`, awaited: work that ignores its cancellation is left to itself. Our own cancellation passes."""
    task = asyncio.ensure_future(caught(work))
    try:
        done, _ = await asyncio.wait({task}, timeout=seconds)
    finally:
        task.cancel()  # nothing if it has ended
    if not done:
        return OverTime()
    return asyncio.CancelledError() if task.cancelled() else task.result()


async def caught(work: Awaitable[T]) -> T | BaseException:
    """Await work; return its value or its error."""
    try:
        return await work
    except Exception as error:
        return error


async def off_loop(work: Callable[[], T]) -> T:
    """Await work that is done in a thread of its own. Raises its error."""
    loop = asyncio.get_running_loop()
    ended: asyncio.Future[tuple[T] | BaseException] = loop.create_future()

    def tell(outcome: tuple[T] | BaseException) -> None:
        if not ended.done():
            ended.set_result(outcome)

    def done(outcome: tuple[T] | BaseException) -> None:
        if not loop.is_closed():
            loop.call_soon_threadsafe(tell, outcome)

    in_thread(lambda: (work(),), done)
    outcome = await ended
    if isinstance(outcome, BaseException):
        raise outcome
    return outcome[0]

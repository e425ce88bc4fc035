"""Time limits for code that does not ask for the time, and functions in threads that no exit waits for."""

import asyncio
from collections.abc import Callable
from contextvars import copy_context
from queue import Empty, SimpleQueue
from threading import Thread
from typing import Any, TypeVar

T = TypeVar("T")


class OverTime(Exception):
    """The limit has passed; the work may still be going on, unobserved."""


def in_thread(work: Callable[[], T], done: Callable[[T | None, BaseException | None], None]) -> None:
    """Do work in a daemon thread with this thread's context, then tell its value or error.

    A pool's threads are waited for when the program ends; a tool that hangs would hang it.
    """
    context = copy_context()

    def target() -> None:
        try:
            value = context.run(work)
        except BaseException as error:
            done(None, error)
        else:
            done(value, None)

    Thread(target=target, name="palimpsest-tool", daemon=True).start()


def limited(work: Callable[[], T], seconds: float) -> T:
    """Return the work's value. Raises its error, or OverTime when the seconds have passed."""
    ended: SimpleQueue[tuple[Any, BaseException | None]] = SimpleQueue()
    in_thread(work, lambda value, error: ended.put((value, error)))
    try:
        value, error = ended.get(timeout=seconds)
    except Empty:
        raise OverTime from None
    if error is not None:
        raise error
    return value  # type: ignore[no-any-return]


async def off_loop(work: Callable[[], T]) -> T:
    """Await work that is done in a thread of its own."""
    loop = asyncio.get_running_loop()
    ended: asyncio.Future[T] = loop.create_future()

    def tell(value: T | None, error: BaseException | None) -> None:
        if ended.cancelled():
            return
        if error is not None:
            ended.set_exception(error)
        else:
            ended.set_result(value)  # type: ignore[arg-type]

    def done(value: T | None, error: BaseException | None) -> None:
        if not loop.is_closed():
            loop.call_soon_threadsafe(tell, value, error)

    in_thread(work, done)
    return await ended

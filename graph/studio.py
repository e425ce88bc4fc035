"""Studio's entry: what `langgraph.json` names. The server brings runs and threads; checkpoints and memory are ours.

Nothing is opened at import. The server asks for saver and store once per event loop, so each is opened once a process
and kept until it ends.
"""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import ExitStack, asynccontextmanager
from functools import cache
from threading import Lock
from typing import Any, TypeVar

from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.store.base import BaseStore

from graph.agent import CHECKPOINTS, Agent, build_agent, compiled, open_memory
from graph.savers import open_saver
from graph.settings import checked_home, load_settings

T = TypeVar("T")

STACK = ExitStack()
"""What is open until the process ends."""

ONE_AT_A_TIME = Lock()


@cache
def open_checkpoints() -> BaseCheckpointSaver[Any]:
    """Open the checkpoints, once."""
    return STACK.enter_context(open_saver(checked_home(load_settings().home) / CHECKPOINTS))


@cache
def open_long_term() -> BaseStore:
    """Open the memory, once."""
    return STACK.enter_context(open_memory(load_settings()))


def alone(opening: Callable[[], T]) -> T:
    """Open while no other event loop of this process does."""
    with ONE_AT_A_TIME:
        return opening()


@cache
def agent() -> Agent:
    """Return the graph without saver and store, which the server sets; called on every run, built once."""
    return compiled(build_agent(), None, None)


@asynccontextmanager
async def checkpointer() -> AsyncIterator[BaseCheckpointSaver[Any]]:
    """Give the server our checkpoints, so that the terminal sees its threads and a kill loses none."""
    yield await asyncio.to_thread(alone, open_checkpoints)


@asynccontextmanager
async def store() -> AsyncIterator[BaseStore]:
    """Give the server our memory."""
    yield await asyncio.to_thread(alone, open_long_term)

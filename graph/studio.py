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
from uuid import UUID

from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.store.base import BaseStore
from langgraph_sdk import get_client
from starlette.applications import Starlette
from starlette.middleware import Middleware

from graph.agent import Agent, build_agent, compiled, open_checkpoints, open_memory, open_tracing
from graph.page import Guard, Page
from graph.savers import InThreads
from graph.settings import Settings, load_settings

T = TypeVar("T")

GRAPH_ID = "palimpsest"
"""The graph's name in langgraph.json."""

STACK = ExitStack()
"""What is open until the process ends."""

ONE_AT_A_TIME = Lock()


@cache
def settings_once() -> Settings:
    """Read the settings, once."""
    return load_settings()


@cache
def open_threads() -> InThreads:
    """Open the checkpoints, once."""
    return STACK.enter_context(open_checkpoints(settings_once()))


@cache
def open_long_term() -> BaseStore:
    """Open the memory, once."""
    return STACK.enter_context(open_memory(settings_once()))


def alone(opening: Callable[[], T]) -> T:
    """Open while no other event loop of this process does."""
    with ONE_AT_A_TIME:
        return opening()


@cache
def open_graph() -> Agent:
    """Build the graph without saver and store, which the server sets; once."""
    tracing = STACK.enter_context(open_tracing(settings_once()))
    return compiled(build_agent(settings=settings_once()), None, None, open_threads().locks, tracing)


async def agent() -> Agent:
    """Return the graph; called on every run."""
    return await asyncio.to_thread(alone, open_graph)


@asynccontextmanager
async def checkpointer() -> AsyncIterator[BaseCheckpointSaver[Any]]:
    """Give the server our checkpoints, so that the terminal sees its threads and a kill loses none."""
    yield await asyncio.to_thread(alone, open_threads)


@asynccontextmanager
async def store() -> AsyncIterator[BaseStore]:
    """Give the server our memory."""
    yield await asyncio.to_thread(alone, open_long_term)


@asynccontextmanager
async def lifespan(app: Starlette) -> AsyncIterator[None]:
    """Tell the server of threads that only our checkpoints know, while it starts to serve."""
    restoring = asyncio.create_task(restore_threads())
    yield
    restoring.cancel()


async def restore_threads() -> None:
    """Put back threads that the server lost, or that began in the terminal: those whose id is a UUID, as it demands.

    The server writes its list of threads to a file every ten seconds; our checkpoints are written at once.
    """
    saver = await asyncio.to_thread(alone, open_threads)
    client = get_client()  # without an address: this very server
    for thread in await asyncio.to_thread(saver.threads):
        if is_uuid(thread):
            await client.threads.create(thread_id=thread, graph_id=GRAPH_ID, if_exists="do_nothing")


def is_uuid(text: str) -> bool:
    """Whether the server takes this as a thread's id."""
    try:
        return str(UUID(text)) == text
    except ValueError:
        return False


page = Page(
    open_store=lambda: alone(open_long_term),
    open_threads=lambda: alone(open_threads),
    settings=settings_once,
)
app = Starlette(lifespan=lifespan, routes=page.routes(), middleware=[Middleware(Guard, settings=settings_once)])

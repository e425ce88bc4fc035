"""The composition: five nodes wired into a graph, and everything that lives opened around it and closed after it."""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import AbstractContextManager, asynccontextmanager, contextmanager, nullcontext
from datetime import datetime
from functools import partial
from typing import Any

from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.language_models import BaseChatModel
from langchain_core.runnables import Runnable, RunnableConfig, ensure_config
from langchain_core.runnables.config import set_config_context
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph
from langgraph.runtime import Runtime, get_runtime
from langgraph.store.base import BaseStore

from graph.locks import TURN_WAIT_S, LockedBuilder, ThreadLocks, locked
from graph.models import ModelShelf, OneModel, build_embedder
from graph.savers import InThreads
from graph.settings import CannotStart, Settings, checked_home, load_settings
from graph.sqlite import open_saver
from memory.indexing import BUILT_IN, NOT_EMBEDDED, WORDS_ALONE
from memory.store import ChromaStore, open_store
from memory.times import now
from nodes.calls import Models, Plan, arun, run
from nodes.context import Context
from nodes.contract import Tool, distinct, mount
from nodes.reason import reason
from nodes.recall import first_step, next_after_recall, recall
from nodes.recovery import unanswered
from nodes.remember import remember
from nodes.state import Input, State
from nodes.summarize import next_after_remember, next_after_summarize, summarize
from nodes.toolbox import OWN_TOOLS
from nodes.tools import Tools, next_after_reason

Agent = CompiledStateGraph[State, Context, Input, State]
Builder = StateGraph[State, Context, Input, State]

log = logging.getLogger("palimpsest")

CHECKPOINTS = "threads.sqlite"
RECURSION_LIMIT = 250
"""Above what a turn of the largest `max_steps` needs (two per step and the rest), far under LangGraph's 10,007."""

CALLS_AT_ONCE = 32
"""Calls of one answer that run at once under `invoke`; Python's own measure is the number of cores and four."""


def build_agent(
    *,
    model: BaseChatModel | Models | None = None,
    tools: Sequence[Tool] = (),
    settings: Settings | None = None,
) -> Builder:
    """Wire the graph, uncompiled: bring your own saver and store with `.compile(checkpointer=…, store=…)`.

    `model` is one chat model for every run, or a function from the context's model name to one; without it, models are
    made from the settings. `tools` are mounted beside the agent's own. Nothing is opened here.
    """
    models = models_from(model, settings)
    mounted = distinct([*OWN_TOOLS, *mount(tools)])
    node_of_tools = Tools(mounted)
    builder: Builder = LockedBuilder(State, context_schema=Context, input_schema=Input)
    builder.add_node("recall", partial(recall, tools=[tool.name for tool in mounted]))
    builder.add_node("reason", node(partial(reason, tools=mounted), models, blocks_after=False))
    builder.add_node("tools", Node(node_of_tools.run, node_of_tools.arun))
    builder.add_node("remember", node(remember, models))
    builder.add_node("summarize", node(summarize, models))
    builder.add_conditional_edges(START, Choice(first), {"memory": "recall", "no memory": "reason"})
    builder.add_conditional_edges("recall", Choice(next_after_recall), {"question": "reason", "close": "remember"})
    builder.add_conditional_edges(
        "reason", Choice(after_reason), {"calls": "tools", "no calls left": "remember", "no memory": END}
    )
    builder.add_edge("tools", "reason")
    builder.add_conditional_edges("remember", Choice(next_step), {"page too long": "summarize", "page fits": END})
    builder.add_conditional_edges(
        "summarize", Choice(next_after_summarize), {"turn goes on": "reason", "turn is over": END}
    )
    return builder


class Node(Runnable[State, Any]):
    """A node in two ways: one function for `invoke`, one for `ainvoke`, sharing all but the awaited call.

    Unlike a RunnableLambda it is no step of its own in a trace, and costs nothing.
    """

    def __init__(self, call: Callable[[State, RunnableConfig], Any], acall: Callable[[State, RunnableConfig], Any]):
        self.call, self.acall = call, acall

    def invoke(self, input: State, config: RunnableConfig | None = None, **kwargs: Any) -> Any:
        """Run it."""
        return self.call(input, config or {})

    async def ainvoke(self, input: State, config: RunnableConfig | None = None, **kwargs: Any) -> Any:
        """Run it, awaited."""
        return await self.acall(input, config or {})


class Choice(Runnable[State, Any]):
    """Where a turn goes on. Under `ainvoke` LangGraph runs a plain function in a thread, which costs more than that."""

    def __init__(self, choose: Callable[[State], Any]) -> None:
        self.choose, self.name = choose, choose.__name__

    def invoke(self, input: State, config: RunnableConfig | None = None, **kwargs: Any) -> Any:
        """Choose, in the context of the run."""
        with set_config_context(ensure_config(config)) as context:
            return context.run(self.choose, input)

    async def ainvoke(self, input: State, config: RunnableConfig | None = None, **kwargs: Any) -> Any:
        """As `invoke`: nothing is awaited."""
        return self.invoke(input, config)


def node(plan: Callable[..., Plan], models: Models, *, blocks_after: bool = True) -> Node:
    """Make a node of a plan, which may touch the store even after the model's answer if it `blocks_after` that."""

    def call(state: State, config: RunnableConfig) -> Any:
        return run(plan(state, get_runtime(Context)), models)

    async def acall(state: State, config: RunnableConfig) -> Any:
        runtime = get_runtime(Context)
        blocks = runtime.store is not None or unanswered(state["messages"]) is not None  # it may look into the saver
        return await arun(plan(state, runtime), models, blocks=blocks, blocks_after=blocks_after)

    return Node(call, acall)


def first(state: State) -> str:
    """Decide at the start, in the context of the run."""
    return first_step(state, memory=has_memory())


def after_reason(state: State) -> Any:
    """Decide after reason, in the context of the run."""
    return next_after_reason(state, memory=has_memory())


def has_memory() -> bool:
    """Whether the run has a store; when a state is edited by hand there is no run, and nothing is ruled out."""
    runtime: Runtime[Context] | None = get_runtime(Context)
    return runtime is None or runtime.store is not None


def next_step(state: State) -> str:
    """Decide after remember, in the context of the run."""
    return next_after_remember(state, get_runtime(Context))


def models_from(model: BaseChatModel | Models | None, settings: Settings | None) -> Models:
    """Return a function from names to models: the caller's own, or one that builds them from the settings."""
    return OneModel(model) if isinstance(model, BaseChatModel) else model or ModelShelf(settings)


@contextmanager
def open_agent(
    settings: Settings | None = None,
    *,
    model: BaseChatModel | Models | None = None,
    tools: Sequence[Tool] = (),
    clock: Callable[[], datetime] = now,
) -> Iterator[Agent]:
    """Open store and checkpoints in the settings' home and yield the compiled graph; close them after.

    `invoke`, `ainvoke`, `stream` and `astream` all work on it; `clock` dates what is said and kept. Raises CannotStart
    and StoreError, one line each.
    """
    settings = settings or load_settings()
    checked_home(settings.home)
    builder = build_agent(model=model, tools=tools, settings=settings)
    with open_tracing(settings) as tracing, open_checkpoints(settings) as saver, open_memory(settings, clock) as store:
        yield compiled(builder, saver, store, tracing=tracing)


@asynccontextmanager
async def aopen_agent(settings: Settings | None = None, **options: Any) -> AsyncIterator[Agent]:
    """As `open_agent`, opened and closed off the event loop."""
    opening = open_agent(settings, **options)
    agent = await asyncio.to_thread(opening.__enter__)
    try:
        yield agent
    finally:
        await asyncio.to_thread(opening.__exit__, None, None, None)


def compiled(
    builder: Builder,
    saver: BaseCheckpointSaver[Any] | None,
    store: BaseStore | None,
    locks: ThreadLocks | None = None,
    tracing: Sequence[BaseCallbackHandler] = (),
) -> Agent:
    """Compile a builder with its limit on steps set, and with locks if the saver, which is to come, has them."""
    graph = builder.compile(checkpointer=saver, store=store, name="palimpsest")
    graph = locked(graph, locks) if locks else graph
    graph = graph.with_config(recursion_limit=RECURSION_LIMIT, max_concurrency=CALLS_AT_ONCE)
    return graph.with_config(callbacks=list(tracing)) if tracing else graph


def open_tracing(settings: Settings) -> AbstractContextManager[Sequence[BaseCallbackHandler]]:
    """Open the exporters of spans that the environment asks for; by default none, and nothing is imported."""
    if not settings.spans:
        return nullcontext(())
    try:
        from graph.spans import open_spans
    except ImportError:
        log.warning("OTEL_* asks for spans, which need the extra: .venv/bin/uv sync --extra otel; going on without")
        return nullcontext(())
    return open_spans(settings.spans)


def open_checkpoints(settings: Settings, *, wait_s: float = TURN_WAIT_S) -> AbstractContextManager[InThreads]:
    """Open the checkpoints: in the home, or in the database of the settings; a run waits `wait_s` for its turn."""
    home = checked_home(settings.home)
    if not settings.database_url:
        return open_saver(home / CHECKPOINTS, wait_s=wait_s)
    try:
        from graph.postgres import open_postgres_saver
    except ImportError as error:
        raise CannotStart("PALIMPSEST_DATABASE_URL needs a driver: .venv/bin/uv sync --extra postgres") from error
    return open_postgres_saver(settings.database_url, wait_s=wait_s)


def open_memory(settings: Settings, clock: Callable[[], datetime] = now) -> AbstractContextManager[ChromaStore]:
    """Open the store in the home, with the endpoint's embedder if one is set, or without if that does not answer."""
    try:
        embedder, index = build_embedder(settings), BUILT_IN
    except CannotStart as error:
        log.warning(NOT_EMBEDDED, error)
        embedder, index = None, WORDS_ALONE
    home, database, chroma = settings.home, settings.database_url or None, settings.chroma_url or None
    return open_store(home, index=index, embedder=embedder, database_url=database, chroma_url=chroma, clock=clock)

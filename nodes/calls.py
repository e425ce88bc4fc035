"""Calling a model: a node is a plan that yields requests and gets answers or failures back.

So that sync and async share everything but the one awaited call, a plan is a generator; `run` and `arun` drive it. In
`arun` what a plan does with a store is done in a worker thread and never blocks the event loop.
"""

import asyncio
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage
from langchain_core.runnables import Runnable, RunnableConfig
from langgraph.constants import TAG_NOSTREAM
from langgraph.errors import GraphBubbleUp
from pydantic import ValidationError

from memory.secrets import MASK, mask
from nodes.collect import BROKE_OFF, collect, is_ended
from nodes.state import clean_message
from nodes.whole import in_one_piece

Models = Callable[[str], BaseChatModel]
"""From the name in the context (empty for the default) to a model; built at the first call, then kept.

One with a method `has` is asked in a worker thread only for what that says is not built yet.
"""

REASONS = {
    401: "the endpoint refused the key (401); check OPENAI_API_KEY.",
    403: "the endpoint forbids this (403); check the key's rights.",
    404: "the endpoint does not know this model or path (404); check PALIMPSEST_MODEL and OPENAI_BASE_URL.",
    429: "the endpoint has no capacity for this key now (429); wait, or check the quota.",
}

TIMEOUTS = {"APITimeoutError", "TimeoutError", "TimeoutException"}
LOST = {"APIConnectionError", "ConnectionError", "NetworkError", "RemoteProtocolError"}


@dataclass(frozen=True, kw_only=True)
class Request:
    """One call of a model. `quiet` keeps housekeeping out of the answer's stream."""

    model: str
    messages: Sequence[BaseMessage]
    tools: Sequence[dict[str, Any]] = ()
    stream: bool = True
    quiet: bool = False


@dataclass(frozen=True, kw_only=True)
class Failure:
    """Why a model gave no answer, in one sentence without secrets."""

    reason: str


Reply = AIMessage | Failure
Update = dict[str, Any]
Plan = Generator[Request, Reply, Update]


def run(plan: Plan, models: Models) -> Update:
    """Drive a plan to its update."""
    step = advance(plan, None)
    while isinstance(step, Request):
        step = advance(plan, answer(step, models))
    return step


async def arun(plan: Plan, models: Models, *, blocks: bool = True, blocks_after: bool = True) -> Update:
    """Drive a plan to its update without blocking the event loop; a worker thread does what may block.

    A plan that never `blocks` needs none, one that does not `blocks_after` its first request only up to there.
    """
    step = await asyncio.to_thread(advance, plan, None) if blocks else advance(plan, None)
    while isinstance(step, Request):
        reply = await aanswer(step, models)
        step = await asyncio.to_thread(advance, plan, reply) if blocks and blocks_after else advance(plan, reply)
    return step


def advance(plan: Plan, reply: Reply | None) -> Request | Update:
    """Go on to the plan's next request, or to its update at the end."""
    try:
        return plan.send(reply)  # type: ignore[arg-type]  # a generator starts with None
    except StopIteration as stop:
        update: Update = stop.value
        return update


def answer(request: Request, models: Models) -> Reply:
    """Call the model once; a failure is an answer too. Control flow passes."""
    try:
        model, config = prepared(request, models)
        if not request.stream:
            return clean(collect([model.invoke(request.messages, config)]))
        pieces: list[AIMessage] = []
        try:
            pieces.extend(model.stream(request.messages, config))
        except Exception as error:
            pieces.append(lost(pieces, error))
        return clean(collect(pieces))
    except GraphBubbleUp:
        raise
    except Exception as error:
        return Failure(reason=reason_of(error))


async def aanswer(request: Request, models: Models) -> Reply:
    """As `answer`, awaited."""
    try:
        is_built = getattr(models, "has", None)
        ready = is_built is not None and is_built(request.model)
        model, config = prepared(request, models) if ready else await asyncio.to_thread(prepared, request, models)
        if not request.stream:
            return clean(collect([await model.ainvoke(request.messages, config)]))
        pieces: list[AIMessage] = []
        try:
            async for piece in model.astream(request.messages, config):
                pieces.append(piece)
        except Exception as error:
            pieces.append(lost(pieces, error))
        return clean(collect(pieces))
    except GraphBubbleUp:
        raise
    except Exception as error:
        return Failure(reason=reason_of(error))


def lost(pieces: Sequence[AIMessage], error: Exception) -> AIMessageChunk:
    """Return what stands for the rest of a stream whose connection was lost on the way. Raises any other error."""
    names = names_of(error)
    if not pieces or isinstance(error, GraphBubbleUp) or names & TIMEOUTS or not names & LOST:
        raise error
    is_whole = any(map(is_ended, pieces))  # at most the count of its tokens is lost
    return AIMessageChunk(content="", response_metadata={} if is_whole else {"finish_reason": BROKE_OFF})


def clean(answer: AIMessage) -> AIMessage:
    """Return an answer as a checkpoint can hold it: what a node gives is written before the state's own cleaning."""
    cleaned = clean_message(answer)
    assert isinstance(cleaned, AIMessage)
    return cleaned


def prepared(request: Request, models: Models) -> tuple[Runnable[Any, AIMessage], RunnableConfig]:
    """Return the model with its tools, and the tags of the call."""
    model: Any = models(request.model)
    if not request.stream or getattr(model, "disable_streaming", False):
        model = in_one_piece(model)
    runnable = model.bind_tools(list(request.tools)) if request.tools else model
    return runnable, RunnableConfig(tags=[TAG_NOSTREAM] if request.quiet else [])


def reason_of(error: Exception) -> str:
    """Say in one sentence what went wrong and what to do, with secrets masked."""
    status = getattr(error, "status_code", None)
    if status in REASONS:
        return REASONS[status]
    names = names_of(error)
    if names & TIMEOUTS:
        return "the endpoint did not answer in time; try again, or raise PALIMPSEST_TIMEOUT_S."
    if names & LOST:
        return "the endpoint cannot be reached, or the connection broke off; check OPENAI_BASE_URL and the network."
    if isinstance(error, ValidationError):
        return f"the endpoint's answer has not the form of one ({error.errors()[0]['msg']})."
    if "No generation chunks" in str(error):
        return (
            "the endpoint's answer has not the form of Chat Completions; check OPENAI_BASE_URL, often it ends in /v1."
        )
    text = mask(" ".join(without_key(str(error), error).split()))[:300].rstrip(". ")
    if "BadSetting" in names:
        return f"{text}."
    return f"{type(error).__name__}: {text or 'no message'}."


def names_of(error: Exception) -> set[str]:
    """Return the names of an error's classes: each client has its own, and not all are installed."""
    return {cls.__name__ for cls in type(error).__mro__}


def without_key(text: str, error: Exception) -> str:
    """Mask the key that the failed request was sent with, whatever it looks like: servers quote it (B062)."""
    headers = getattr(getattr(error, "request", None), "headers", {})
    key = str(headers.get("authorization", "")).removeprefix("Bearer ")
    return text.replace(key, MASK) if key else text

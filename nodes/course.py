"""The course of one call that was let through: it runs, again where that helps, and is concluded in one honest result.

It is a generator of effects, so that sync and async share all but the one awaited call; nodes/engine.py drives it.
"""

import time
from collections.abc import Generator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from langchain_core.messages import RemoveMessage, ToolMessage
from langgraph.errors import GraphBubbleUp, is_invalid_resume
from langgraph.prebuilt.tool_node import ToolCallRequest
from langgraph.store.base import BaseStore, PutOp
from langgraph.types import Command

from memory.outputs import Outputs
from nodes.context import context_of, thread_of, user_of
from nodes.contract import Marks
from nodes.failures import failure_of
from nodes.journal import note
from nodes.results import Record, bounded, is_text, presentable, result_message
from nodes.text import text_of
from nodes.valid import NO_OUTPUT

Part = ToolMessage | Command[Any]
"""Of what a tool gave: a result, or a command to the graph."""

Course = Generator["Effect", Any, list[Part]]
"""What happens to one call: it yields effects, is sent the outcome of each, and returns the results and commands."""

PAUSES_S = (0.2, 1.0)
"""Before the second and the third attempt, which is the last."""


WRITABLE = {"messages", "summary"}
"""What a tool's command may write of the state; the rest is the graph's own."""


class UnfitCommand(Exception):
    """A tool gave a command that this graph does not take."""


@dataclass(frozen=True, kw_only=True)
class Run:
    """Ask the driver to run the tool, within the seconds. Its outcome is a result or an error."""

    request: ToolCallRequest
    seconds: float


@dataclass(frozen=True, kw_only=True)
class Pause:
    """Ask the driver to wait."""

    seconds: float


@dataclass(frozen=True, kw_only=True)
class Keep:
    """Ask the driver to store something. Its outcome is an error if that failed."""

    store: BaseStore
    op: PutOp


Effect = Run | Pause | Keep


@dataclass
class Ran:
    """What a call came to: a result or an error, after how many attempts of at most how many seconds each.

    `edited` tells the model that a person changed its arguments.
    """

    outcome: Any = None
    attempts: int = 0
    seconds: float = 0
    edited: str = ""
    start: float = field(default_factory=time.monotonic)

    def note(self, event: str, call: Mapping[str, Any], **values: Any) -> None:
        """Log a step of the call."""
        note(event, call, attempt=self.attempts, ms=self.ms, **values)

    @property
    def ms(self) -> int:
        """Milliseconds since the call came in."""
        return round((time.monotonic() - self.start) * 1000)


def attempts(request: ToolCallRequest, marks: Marks, ran: Ran) -> Generator[Effect, Any, None]:
    """Run the tool, again after a transient error of an idempotent one; write what it came to into `ran`."""
    ran.seconds = marks.timeout_s or context_of(request.runtime).tool_timeout_s
    for pause in (*PAUSES_S, None):
        ran.attempts += 1
        ran.note("start", request.tool_call)
        ran.outcome = yield Run(request=request, seconds=ran.seconds)
        if is_control_flow(ran.outcome):
            raise ran.outcome
        ran.outcome = unfit(ran.outcome, request) or ran.outcome
        if pause is None or not marks.idempotent or not isinstance(ran.outcome, marks.transient):
            return
        ran.note("retry", request.tool_call, error=type(ran.outcome).__name__)
        yield Pause(seconds=pause)


def is_control_flow(outcome: Any) -> bool:
    """Whether an outcome is LangGraph's own: an interrupt, a command to a parent, a resume that does not fit."""
    return isinstance(outcome, GraphBubbleUp) or (isinstance(outcome, Exception) and is_invalid_resume(outcome))


def concluded(request: ToolCallRequest, ran: Ran) -> Course:
    """Log how a call ended and make its result: a message, or what a tool gave of messages and commands."""
    call, record = request.tool_call, Record(ok=True, attempts=ran.attempts, ms=ran.ms)
    if isinstance(ran.outcome, BaseException):
        failure = failure_of(ran.outcome, name=call["name"], seconds=ran.seconds)
        record = replace(record, ok=False, kind=failure.kind, id=failure.id)
        ran.note("error" if failure.ran else "refused", call, kind=failure.kind)
        ran.outcome = ToolMessage(failure.text, tool_call_id=call["id"] or "")
    else:
        ran.note("done", call)
    parts: list[Any] = []
    for part in ran.outcome if isinstance(ran.outcome, list) else [ran.outcome]:
        parts.append((yield from fitted(request, part, record)))
    if not any(map(holds_result, parts)):
        parts.append(result_message(call, NO_OUTPUT, record))  # a command that only goes somewhere
    return [noted(part, ran.edited) for part in parts] if ran.edited else parts


def noted(part: Any, note: str) -> Any:
    """Return a result with a note before it."""
    if not isinstance(part, ToolMessage):
        return part
    is_text = isinstance(part.content, str)
    content = f"{note}\n{part.content}" if is_text else [{"type": "text", "text": note}, *part.content]
    return part.model_copy(update={"content": content})


def holds_result(part: Any) -> bool:
    """Whether a part of what a tool gave has a result in it."""
    update = part.update if isinstance(part, Command) else {"messages": [part]}
    messages = update.get("messages", ()) if isinstance(update, dict) else ()
    return any(isinstance(message, ToolMessage) for message in messages)


def unfit(outcome: Any, request: ToolCallRequest) -> UnfitCommand | None:
    """Say why what a tool gave holds a command that this graph does not take; None if it does not."""
    is_inner = "|" in str(request.runtime.config["configurable"].get("checkpoint_ns"))
    for part in outcome if isinstance(outcome, list) else [outcome]:
        if not isinstance(part, Command):
            continue
        update = part.update if isinstance(part.update, dict) else {}
        if part.graph == Command.PARENT:
            if not is_inner:
                return UnfitCommand("it is for the graph around this one, and there is none")
        elif strange := update.keys() - WRITABLE:
            return UnfitCommand(f"it may write {sorted(WRITABLE)} of the state, and writes {sorted(strange)}")
        elif any(isinstance(message, RemoveMessage) for message in update.get("messages", ())):
            return UnfitCommand("it may add messages, and removes some")
    return None


def fitted(request: ToolCallRequest, part: Any, record: Record) -> Generator[Effect, Any, Any]:
    """Make a result presentable, bounded and recorded; in a tool's command to the graph, each of its results."""
    if isinstance(part, ToolMessage):
        return (yield from bounded_message(request, part, record))
    if not isinstance(part, Command) or not isinstance(part.update, dict):
        return part
    messages = []
    for message in part.update.get("messages", []):
        is_result = isinstance(message, ToolMessage)
        messages.append((yield from bounded_message(request, message, record)) if is_result else message)
    return replace(part, update={**part.update, "messages": messages}) if messages else part


def bounded_message(
    request: ToolCallRequest, given: ToolMessage, record: Record
) -> Generator[Effect, Any, ToolMessage]:
    """Bound a result; keep the whole where `tool_result` can read on, if there is a store."""
    if given.status == "error" and record.ok:
        record = replace(record, ok=False, kind="business")
    limit, text = context_of(request.runtime).max_result_chars, text_of(given)
    content: Any = presentable(given.content)
    if len(text) > limit:
        kept = yield from keep(request, text)
        content = bounded(text, limit=limit, id=kept)
        if isinstance(given.content, list):
            media = [block for block in given.content if not is_text(block)]
            content = [{"type": "text", "text": content}, *media]
    return result_message(request.tool_call, content, record, given)


def keep(request: ToolCallRequest, text: str) -> Generator[Effect, Any, str]:
    """Keep a whole result; return its id, empty if that could not be done."""
    store = request.runtime.store
    if store is None:
        return ""
    id, op = Outputs(store, user=user_of(request.runtime), thread=thread_of()).keeping(text)
    outcome = yield Keep(store=store, op=op)
    return "" if isinstance(outcome, BaseException) else id

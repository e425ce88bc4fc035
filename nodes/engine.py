"""The tool engine: between a call of the model and its one result. A failure is a result, never an exception.

Gates, in order: mounted, not the same again, arguments valid, what it keeps the user's own, allowed. Then it runs, with
a time limit and, where a tool is marked for it, retries. LangGraph's ToolNode stands inside and injects state, store
and runtime.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from langchain_core.messages import BaseMessage, ToolCall, ToolMessage
from langgraph.errors import GraphBubbleUp, is_invalid_resume
from langgraph.prebuilt import ToolNode
from langgraph.prebuilt.tool_node import ToolCallRequest
from langgraph.store.base import BaseStore, PutOp
from langgraph.types import Command

from memory.outputs import Outputs
from nodes.approval import approved
from nodes.arguments import checked
from nodes.context import context_of, thread_of, user_of
from nodes.contract import Marks, Mounted
from nodes.failures import REPEATED, Refused, failure_of, unknown_tool
from nodes.journal import note
from nodes.keeping import keepable
from nodes.limits import caught, limited, within
from nodes.repeats import refused_before, times_before
from nodes.results import NO_OUTPUT, Record, bounded, is_text, presentable, result_message
from nodes.text import text_of

Course = Generator["Effect", Any, list[ToolMessage | Command[Any]]]
"""What happens to one call: it yields effects, is sent the outcome of each, and returns the results and commands."""

PAUSES_S = (0.2, 1.0)
"""Before the second and the third attempt, which is the last."""

MOST_TIMES = 2
"""The same call with the same arguments runs this often in a turn; then a result says so instead."""


class NoParent(Exception):
    """A tool commands the parent graph of one that has none."""


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


def stored(effect: Keep) -> Any:
    """Store what an effect asks for; return the error if that failed."""
    try:
        return effect.store.batch([effect.op])
    except Exception as error:
        return error


class Engine:
    """Runs calls of mounted tools. `sleep` and `asleep` are the pauses between attempts."""

    def __init__(
        self,
        mounted: Sequence[Mounted],
        *,
        sleep: Callable[[float], None] = time.sleep,
        asleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self.mounted = {one.name: one for one in mounted}
        self.sleep, self.asleep = sleep, asleep
        tools = [one.tool for one in mounted]
        self.node = ToolNode(tools, handle_tool_errors=False, wrap_tool_call=self.run, awrap_tool_call=self.arun)

    def run(self, request: ToolCallRequest, execute: Callable[[ToolCallRequest], Any]) -> Any:
        """Drive one call's course."""
        course, outcome = self.course(request), None
        while True:
            try:
                effect = course.send(outcome)
            except StopIteration as end:
                return end.value
            match effect:
                case Pause():
                    self.sleep(effect.seconds)
                case Keep():
                    outcome = stored(effect)
                case Run():
                    outcome = limited(partial(execute, effect.request), effect.seconds)

    async def arun(self, request: ToolCallRequest, execute: Callable[[ToolCallRequest], Awaitable[Any]]) -> Any:
        """As `run`, awaited."""
        course, outcome = self.course(request), None
        while True:
            try:
                effect = course.send(outcome)
            except StopIteration as end:
                return end.value
            match effect:
                case Pause():
                    await self.asleep(effect.seconds)
                case Keep():
                    outcome = await caught(effect.store.abatch([effect.op]))
                case Run():
                    outcome = await within(execute(effect.request), effect.seconds)

    def course(self, request: ToolCallRequest) -> Course:
        """Take one call through the gates, run it, and conclude it."""
        ran = Ran()
        try:
            request, marks = self.gate(request)
            yield from attempts(request, marks, ran)
        except Exception as error:  # a gate's refusal, or a mistake of ours: a result as well
            if is_control_flow(error):
                raise
            ran.outcome = error
        return (yield from concluded(request, ran))

    def gate(self, request: ToolCallRequest) -> tuple[ToolCallRequest, Marks]:
        """Return the request as it may run, with the tool's marks. Raises Refused and BadArguments."""
        call, context = request.tool_call, context_of(request.runtime)
        mounted = self.mounted.get(call["name"])
        if mounted is None or not context.mounts(mounted.name):
            raise unknown_tool(call["name"], [name for name in self.mounted if context.mounts(name)])
        if is_repeated(request.state["messages"], call, mounted.marks):
            raise Refused("repeated", REPEATED.format(name=call["name"]))
        args = checked(call["args"], mounted.parameters, mounted.judge)
        needs_approval = mounted.marks.approval
        if mounted.marks.writes:
            args, doubtful = keepable(mounted, args, request, self.mounted)
            needs_approval |= doubtful
        if needs_approval:
            args = approved(mounted, args)
        return replace(request, tool_call={**call, "id": call["id"] or "", "args": args}), mounted.marks


def is_repeated(messages: Sequence[BaseMessage], call: ToolCall, marks: Marks) -> bool:
    """Whether a call would do again what it did; what was refused is not written again before something changes."""
    if marks.writes and refused_before(messages, call):
        return True
    return not marks.repeatable and times_before(messages, call) >= MOST_TIMES


@dataclass
class Ran:
    """What a call came to: a result or an error, after how many attempts of at most how many seconds each."""

    outcome: Any = None
    attempts: int = 0
    seconds: float = 0
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
        if leaves(ran.outcome, request):
            ran.outcome = NoParent("a command to the graph around this one, and there is none")
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
    return parts


def holds_result(part: Any) -> bool:
    """Whether a part of what a tool gave has a result in it."""
    update = part.update if isinstance(part, Command) else {"messages": [part]}
    messages = update.get("messages", ()) if isinstance(update, dict) else ()
    return any(isinstance(message, ToolMessage) for message in messages)


def leaves(outcome: Any, request: ToolCallRequest) -> bool:
    """Whether a tool commands a graph around this one that is not there."""
    parts = outcome if isinstance(outcome, list) else [outcome]
    is_inner = "|" in str(request.runtime.config["configurable"].get("checkpoint_ns"))
    return not is_inner and any(isinstance(part, Command) and part.graph == Command.PARENT for part in parts)


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

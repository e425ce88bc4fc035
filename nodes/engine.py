"""The tool engine: between a call of the model and its one result. A failure is a result, never an exception.

Gates, in order: mounted, not the same again, arguments valid, allowed. Then it runs, with a time limit and, where a
tool is marked for it, retries. LangGraph's ToolNode stands inside and injects state, store and runtime.
"""

import asyncio
import logging
import time
import traceback
from collections.abc import Awaitable, Callable, Generator, Sequence
from dataclasses import dataclass, replace
from typing import Any
from uuid import uuid4

from langchain_core.messages import ToolMessage
from langchain_core.tools import ToolException
from langgraph.errors import GraphBubbleUp
from langgraph.prebuilt import ToolNode
from langgraph.prebuilt.tool_node import ToolCallRequest
from langgraph.store.base import BaseStore, PutOp
from langgraph.types import Command, interrupt

from memory.outputs import Outputs
from memory.secrets import mask
from nodes.arguments import BadArguments, checked
from nodes.context import context_of, thread_of, user_of
from nodes.contract import Mounted
from nodes.limits import OverTime, limited
from nodes.repeats import times_before
from nodes.results import Kind, Record, bounded, presentable, result_message
from nodes.text import text_of

log = logging.getLogger("palimpsest.tools")

Result = ToolMessage | Command[Any]
MAX_ATTEMPTS = 3
PAUSES_S = (0.2, 1.0)
"""Before the second and the third attempt."""

MOST_TIMES = 2
"""The same call with the same arguments runs this often in a turn; then a result says so instead."""

UNKNOWN_TOOL = "there is no tool {name!r}. Your tools are: {mounted}."
NO_TOOLS = "none; answer in words"
REPEATED = (
    "{name!r} was called with these very arguments before in this turn; its result stands above. "
    "Use it, or change the arguments."
)
BROKEN = "the call of {name!r} was not run: {error}. Send it again with complete JSON arguments."
INVALID = "{name!r} was not run. {problems}"
REFUSED = "the user did not allow {name!r}: {reason}"
OVERTIME = (
    "{name!r} gave no result within {seconds:g} s. It may still be running; do not assume that it failed or succeeded."
)
INTERNAL = "{name!r} failed inside ({error}, report {id}). Try other arguments, or go on without it and say so."


class ToolProblem(Exception):
    """Raised by a tool to tell the model what went wrong in words that it may read; everything else stays internal."""


@dataclass(frozen=True, kw_only=True)
class Run:
    """Ask the driver to run the tool, within the seconds."""

    request: ToolCallRequest
    seconds: float


@dataclass(frozen=True, kw_only=True)
class Pause:
    """Ask the driver to wait."""

    seconds: float


@dataclass(frozen=True, kw_only=True)
class Keep:
    """Ask the driver to store something."""

    store: BaseStore
    op: PutOp


Effect = Run | Pause | Keep
Course = Generator[Effect, Any, Result]
"""What happens to one call: it yields effects, is sent the outcome of each, and returns the result."""


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

    def run(self, request: ToolCallRequest, execute: Callable[[ToolCallRequest], Result]) -> Result:
        """Drive one call's course."""
        course: Course = self.course(request)
        outcome: Any = None
        while True:
            try:
                effect = course.send(outcome)
            except StopIteration as end:
                return end.value  # type: ignore[no-any-return]
            if isinstance(effect, Pause):
                self.sleep(effect.seconds)
            elif isinstance(effect, Keep):
                outcome = effect.store.batch([effect.op])
            else:
                asked = effect.request
                try:
                    outcome = limited(lambda: execute(asked), effect.seconds)  # noqa: B023  # it ends before the next
                except Exception as error:
                    outcome = error

    async def arun(self, request: ToolCallRequest, execute: Callable[[ToolCallRequest], Awaitable[Result]]) -> Result:
        """As `run`, awaited."""
        course: Course = self.course(request)
        outcome: Any = None
        while True:
            try:
                effect = course.send(outcome)
            except StopIteration as end:
                return end.value  # type: ignore[no-any-return]
            if isinstance(effect, Pause):
                await self.asleep(effect.seconds)
            elif isinstance(effect, Keep):
                outcome = await effect.store.abatch([effect.op])
            else:
                outcome = await within(execute(effect.request), effect.seconds)

    def course(self, request: ToolCallRequest) -> Course:
        """Take one call through the gates, run it, and conclude it."""
        call, start = request.tool_call, time.monotonic()
        gate = self.gate(request)
        if isinstance(gate, ToolMessage):
            return gate
        request, marks = gate
        seconds = marks.timeout_s or context_of(request.runtime).tool_timeout_s
        for attempt in range(1, MAX_ATTEMPTS + 1):
            note("start", request, attempt=attempt)
            outcome = yield Run(request=request, seconds=seconds)
            if isinstance(outcome, GraphBubbleUp):
                raise outcome
            again = marks.idempotent and isinstance(outcome, marks.transient) and attempt < MAX_ATTEMPTS
            if not again:
                break
            note("retry", request, attempt=attempt)
            yield Pause(seconds=PAUSES_S[attempt - 1])
        ms = round((time.monotonic() - start) * 1000)
        if isinstance(outcome, Command):
            return outcome
        if isinstance(outcome, Exception):
            failure = failed(request, outcome, Record(ok=False, attempts=attempt, ms=ms), seconds)
            note("error", request, attempt=attempt, ms=ms)
            return failure
        note("done", request, attempt=attempt, ms=ms)
        record = Record(
            ok=outcome.status == "success",
            kind="" if outcome.status == "success" else "business",
            attempts=attempt,
            ms=ms,
        )
        return (yield from fitted(call, request, outcome, record))

    def gate(self, request: ToolCallRequest) -> ToolMessage | tuple[ToolCallRequest, Any]:
        """Return why the call may not run, or the request as it may, with the tool's marks."""
        call, context = request.tool_call, context_of(request.runtime)
        mounted = self.mounted.get(call["name"])
        if mounted is None or not context.mounts(mounted.name):
            names = [name for name in self.mounted if context.mounts(name)]
            told = UNKNOWN_TOOL.format(name=call["name"], mounted=", ".join(names) or NO_TOOLS)
            return refused(request, "unknown_tool", told)
        if not mounted.marks.repeatable and times_before(request.state["messages"], call) >= MOST_TIMES:
            return refused(request, "repeated", REPEATED.format(name=call["name"]))
        try:
            args = checked(mounted.tool, call["args"], mounted.schema["function"]["parameters"])
            allowed = approved(mounted, args) if mounted.marks.approval else args
        except BadArguments as error:
            return refused(request, "invalid_arguments", INVALID.format(name=call["name"], problems=error))
        if isinstance(allowed, str):
            return refused(request, "refused", REFUSED.format(name=call["name"], reason=allowed))
        return replace(request, tool_call={**call, "args": allowed}), mounted.marks


def approved(mounted: Mounted, args: dict[str, Any]) -> dict[str, Any] | str:
    """Pause until a person decides; return the arguments to run with, or the reason of a refusal.

    The run ends with an interrupt that shows tool and arguments. Resume it with `True`, "approve" or
    `{"decision": "approve"}`; `{"decision": "edit", "args": {…}}`; or `{"decision": "refuse", "reason": "…"}`,
    False, or any other text, which is the reason.
    """
    shown = {
        "tool": mounted.name,
        "args": args,
        "about": mounted.tool.description,
        "answers": ["approve", "edit", "refuse"],
    }
    said = interrupt(shown)
    answer = said if isinstance(said, dict) else {"decision": said}
    match answer.get("decision"):
        case True | "approve":
            return args
        case "edit":
            edited = answer.get("args")
            if not isinstance(edited, dict):
                raise BadArguments("the edited arguments must be an object.")
            return checked(mounted.tool, edited, mounted.schema["function"]["parameters"])
        case False | None | "refuse":
            return str(answer.get("reason") or "no reason was given")
    return str(answer["decision"])


def fitted(call: Any, request: ToolCallRequest, result: ToolMessage, record: Record) -> Course:
    """Bound a result; keep the whole where `tool_result` can read on, if there is a store."""
    limit, text = context_of(request.runtime).max_result_chars, text_of(result)
    content: Any = result.content if isinstance(result.content, list) else presentable(result.content)
    if len(text) > limit:
        if (store := request.runtime.store) is not None:
            outputs = Outputs(store, user=user_of(request.runtime), thread=thread_of())
            yield Keep(store=store, op=outputs.keeping(str(call["id"]), text))
        content = bounded(text, limit=limit, id=str(call["id"]))
    return result_message(call, content, record, result.artifact)


def failed(request: ToolCallRequest, error: Exception, record: Record, seconds: float) -> ToolMessage:
    """Turn an exception into what the model may know; the log keeps the rest, secrets masked, under the same id."""
    name = request.tool_call["name"]
    kind: Kind
    if isinstance(error, OverTime):
        kind, told = "timeout", OVERTIME.format(name=name, seconds=seconds)
    elif isinstance(error, ToolProblem | ToolException):
        kind, told = "business", mask(str(error))
    else:
        kind, report = "internal", uuid4().hex[:8]
        record = replace(record, id=report)
        told = INTERNAL.format(name=name, error=type(error).__name__, id=report)
        log.error("tool %s failed, report %s\n%s", name, report, mask("".join(traceback.format_exception(error))))
    return result_message(request.tool_call, f"Error ({kind}): {told}", replace(record, kind=kind))


def refused(request: ToolCallRequest, kind: Kind, told: str) -> ToolMessage:
    """Make the result of a call that a gate stopped."""
    note("refused", request, kind=kind)
    return result_message(request.tool_call, f"Error ({kind}): {told}", Record(ok=False, kind=kind))


def broken(call: Any) -> ToolMessage:
    """Make the result of a call whose arguments never became a JSON object."""
    told = BROKEN.format(name=call["name"] or "", error=call["error"] or "its arguments are not a JSON object")
    return result_message(call, f"Error (invalid_arguments): {told}", Record(ok=False, kind="invalid_arguments"))


async def within(work: Awaitable[Any], seconds: float) -> Any:
    """Await work; return its value, its error, or OverTime when the seconds have passed."""
    try:
        async with asyncio.timeout(seconds) as limit:
            return await work
    except Exception as error:
        return OverTime() if isinstance(error, TimeoutError) and limit.expired() else error


def note(event: str, request: ToolCallRequest, **values: Any) -> None:
    """Log one step of a call with its thread, tool, attempt and milliseconds as structured values."""
    if log.isEnabledFor(logging.INFO):
        known = {"thread_id": thread_of(), "tool": request.tool_call["name"], "call": request.tool_call["id"], **values}
        log.info(
            "%s %s", event, " ".join(f"{key}={value}" for key, value in known.items()), extra={"event": event, **known}
        )

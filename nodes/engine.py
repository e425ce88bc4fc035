"""The tool engine: between a call of the model and its one result. A failure is a result, never an exception.

Gates, in order: mounted, not the same again, arguments valid, what it keeps the user's own, allowed. Then it runs, with
a time limit and, where a tool is marked for it, retries. LangGraph's ToolNode stands inside and injects state, store
and runtime.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from langchain_core.messages import BaseMessage, ToolCall
from langgraph.prebuilt import ToolNode
from langgraph.prebuilt.tool_node import ToolCallRequest

from nodes.approval import approved
from nodes.arguments import checked
from nodes.context import context_of
from nodes.contract import Marks, Mounted
from nodes.course import Course, Keep, Pause, Ran, Run, attempts, concluded, is_control_flow
from nodes.failures import REPEATED, Refused, unknown_tool
from nodes.keeping import keepable
from nodes.limits import caught, limited, within
from nodes.quoting import as_json
from nodes.repeats import refused_before, times_before

EDITED = "(The user changed the arguments to {args} before it ran.)"


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
            request, marks = self.gate(request, ran)
            yield from attempts(request, marks, ran)
        except Exception as error:  # a gate's refusal, or a mistake of ours: a result as well
            if is_control_flow(error):
                raise
            ran.outcome = error
        return (yield from concluded(request, ran))

    def gate(self, request: ToolCallRequest, ran: Ran) -> tuple[ToolCallRequest, Marks]:
        """Return the request as it may run, with the tool's marks. Raises Refused and BadArguments."""
        call, context = request.tool_call, context_of(request.runtime)
        mounted = self.mounted.get(call["name"])
        if mounted is None or not context.mounts(mounted.name):
            raise unknown_tool(call["name"], [name for name in self.mounted if context.mounts(name)])
        if is_repeated(request.state["messages"], call, mounted.marks, most=context.max_repeats):
            raise Refused("repeated", REPEATED.format(name=call["name"]))
        args = checked(call["args"], mounted.parameters, mounted.judge)
        needs_approval = mounted.marks.approval
        if mounted.marks.writes:
            args, doubtful = keepable(mounted, args, request, self.mounted)
            needs_approval |= doubtful
        if needs_approval and (allowed := approved(mounted, args)) != args:
            args, ran.edited = allowed, EDITED.format(args=as_json(allowed))
        return replace(request, tool_call={**call, "id": call["id"] or "", "args": args}), mounted.marks


def is_repeated(messages: Sequence[BaseMessage], call: ToolCall, marks: Marks, *, most: int) -> bool:
    """Whether a call would do again what it did; what was refused is not written again before something changes."""
    if marks.writes and refused_before(messages, call):
        return True
    return not marks.repeatable and times_before(messages, call) >= most

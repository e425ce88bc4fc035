"""The tool engine: between a call of the model and its one result. A failure is a result, never an exception.

Gates, in order: mounted, not the same again, arguments valid, what it keeps the user's own, allowed. Then it runs, with
a time limit and, where a tool is marked for it, retries. LangGraph's ToolNode stands inside: it injects state, store,
runtime, and reads what a tool gives.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from langchain_core.messages import BaseMessage, ToolCall
from langchain_core.runnables import RunnableConfig
from langgraph.prebuilt import ToolNode, ToolRuntime
from langgraph.prebuilt.tool_node import ToolCallRequest
from langgraph.runtime import get_runtime

from nodes.approval import approved
from nodes.arguments import checked
from nodes.context import Context, context_of
from nodes.contract import Marks, Mounted
from nodes.course import Course, Keep, Part, Pause, Ran, Run, attempts, concluded, is_control_flow
from nodes.failures import REPEATED, Refused, unknown_tool
from nodes.forgetting import shown_text
from nodes.keeping import keepable, must_approve
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
        self.tools = [one.tool for one in mounted]
        self.node: Any = ToolNode(self.tools, handle_tool_errors=False)
        """Run by what is private in it: its own `invoke` takes a pool of threads for each call (DECISIONS.md)."""

    def requested(self, call: ToolCall, config: RunnableConfig) -> ToolCallRequest:
        """Return a call as ToolNode would hand it on, with what it injects."""
        run = get_runtime(Context)
        state = self.node._extract_state([call], config)
        runtime: Any = ToolRuntime(
            state=state,
            tool_call_id=call["id"],
            config=config,
            context=run.context,
            store=run.store,
            stream_writer=run.stream_writer,
            tools=self.tools,
            execution_info=run.execution_info,
            server_info=run.server_info,
        )
        return ToolCallRequest(
            tool_call=call, tool=self.node.tools_by_name.get(call["name"]), state=state, runtime=runtime
        )

    def run(self, call: ToolCall, config: RunnableConfig) -> list[Part]:
        """Drive one call's course to its results."""
        course, outcome = self.course(self.requested(call, config)), None
        while True:
            try:
                effect = course.send(outcome)
            except StopIteration as end:
                return list(end.value)
            match effect:
                case Pause():
                    self.sleep(effect.seconds)
                case Keep():
                    outcome = stored(effect)
                case Run():
                    execute = partial(self.node._execute_tool_sync, effect.request, "tool_calls", config)
                    outcome = limited(execute, effect.seconds)

    async def arun(self, call: ToolCall, config: RunnableConfig) -> list[Part]:
        """As `run`, awaited."""
        course, outcome = self.course(self.requested(call, config)), None
        while True:
            try:
                effect = course.send(outcome)
            except StopIteration as end:
                return list(end.value)
            match effect:
                case Pause():
                    await self.asleep(effect.seconds)
                case Keep():
                    outcome = await caught(effect.store.abatch([effect.op]))
                case Run():
                    executed = self.node._execute_tool_async(effect.request, "tool_calls", config)
                    outcome = await within(executed, effect.seconds)

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
        needs_approval |= mounted.marks.forgets and must_approve(mounted, request)
        told = shown_text(str(args.get("id")), request.state) if mounted.marks.forgets else ""
        if needs_approval and (allowed := approved(mounted, args, text=told)) != args:
            args, ran.edited = allowed, EDITED.format(args=as_json(allowed))
        return replace(request, tool_call={**call, "id": call["id"] or "", "args": args}), mounted.marks


def is_repeated(messages: Sequence[BaseMessage], call: ToolCall, marks: Marks, *, most: int) -> bool:
    """Whether a call would do again what it did; what was refused is not written again before something changes."""
    if marks.writes and refused_before(messages, call):
        return True
    return not marks.repeatable and times_before(messages, call) >= most

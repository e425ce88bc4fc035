"""tools: one task for each call of the newest answer, each with exactly one result.

A call is sent to a task of its own, so that calls run in parallel, a paused or failed one leaves its siblings' results
stored, and the results stand in the order of the calls.
"""

from collections.abc import Sequence
from typing import Any, Literal

from langchain_core.messages import AIMessage, ToolMessage
from langchain_core.runnables import RunnableConfig
from langgraph.types import Command, Send

from nodes.calls import Update
from nodes.contract import Mounted
from nodes.engine import Engine, broken
from nodes.state import State
from nodes.trace import Watch


class Tools:
    """The node. What it is sent is one call, valid or not."""

    def __init__(self, mounted: Sequence[Mounted], **pauses: Any) -> None:
        self.engine = Engine(mounted, **pauses)

    def run(self, call: Any, config: RunnableConfig) -> Any:
        """Run one call; append its result to `messages`."""
        watch = Watch("tools")
        return concluded(self.engine.node.invoke([call], config) if can_run(call) else broken(call), watch)

    async def arun(self, call: Any, config: RunnableConfig) -> Any:
        """As `run`, awaited."""
        watch = Watch("tools")
        return concluded(await self.engine.node.ainvoke([call], config) if can_run(call) else broken(call), watch)


def can_run(call: Any) -> bool:
    """Whether this call has arguments at all."""
    return bool(call["type"] == "tool_call")


def concluded(output: Any, watch: Watch) -> Update | list[Any]:
    """Write the result and the step; a tool's own command to the graph goes along."""
    parts = output if isinstance(output, list) else [output]
    results = [
        m
        for part in parts
        for m in (part["messages"] if isinstance(part, dict) else [part])
        if isinstance(m, ToolMessage)
    ]
    told = [
        {"tool": result.name, **result.additional_kwargs.get("record", {}), "chars": len(str(result.content))}
        for result in results
    ]
    update = {"messages": results, "steps": watch.step(calls=told)}
    commands = [part for part in parts if isinstance(part, Command)]
    return [update, *commands] if commands else update


def next_after_reason(state: State) -> list[Send] | Literal["no calls left"]:
    """Send each call, valid or not, to the tools; go on if there is none. `stop_reason` is never asked."""
    answer = state["messages"][-1]
    calls = [*answer.tool_calls, *answer.invalid_tool_calls] if isinstance(answer, AIMessage) else []
    return [Send("tools", call) for call in calls] or "no calls left"

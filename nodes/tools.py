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
from nodes.course import Part
from nodes.engine import Engine
from nodes.failures import broken, failure_of
from nodes.journal import note
from nodes.results import Record, result_message
from nodes.state import State
from nodes.trace import Call, CallDetail, Watch, call_told


class Tools:
    """The node. What it is sent is one call, valid or not."""

    def __init__(self, mounted: Sequence[Mounted], **pauses: Any) -> None:
        self.engine = Engine(mounted, **pauses)

    def run(self, call: Any, config: RunnableConfig) -> Any:
        """Run one call; append its result to `messages`."""
        told = call_told(call)
        watch = Watch("tools", told)
        return concluded(self.engine.run(call, config) if can_run(call) else not_run(call), watch, told)

    async def arun(self, call: Any, config: RunnableConfig) -> Any:
        """As `run`, awaited."""
        told = call_told(call)
        watch = Watch("tools", told)
        return concluded(await self.engine.arun(call, config) if can_run(call) else not_run(call), watch, told)


def can_run(call: Any) -> bool:
    """Whether this call has arguments at all."""
    return bool(call["type"] == "tool_call")


def not_run(call: Any) -> list[Part]:
    """Make the result of a call whose arguments never became a JSON object."""
    note("refused", call, attempt=0, ms=0, kind="invalid_arguments")
    failure = failure_of(broken(call), name=call["name"] or "", seconds=0)
    return [result_message(call, failure.text, Record(ok=False, kind=failure.kind))]


def concluded(parts: Sequence[Part], watch: Watch, call: Call) -> Update | list[Any]:
    """Write the results and the step; a tool's own commands to the graph go along."""
    commands = [part for part in parts if isinstance(part, Command)]
    messages = [message for part in parts for message in messages_of(part)]
    told = [call_detail(call, message) for message in messages if isinstance(message, ToolMessage)]
    own = [part for part in parts if isinstance(part, ToolMessage)]
    update = {"messages": own, "steps": watch.step({"calls": told})}
    return [update, *commands] if commands else update


def call_detail(call: Call, result: ToolMessage) -> CallDetail:
    """Tell what became of a call, by the record of its result."""
    record = Record(**result.additional_kwargs["record"])
    return CallDetail(
        **call,
        ok=record.ok,
        gate="" if record.attempts else record.kind,
        kind=record.kind,
        attempts=record.attempts,
        ms=record.ms,
        chars=len(str(result.content)),
        report=record.id,
    )


def messages_of(part: Part) -> list[Any]:
    """Return the result itself, or the messages of a command."""
    update = part.update if isinstance(part, Command) else {"messages": [part]}
    return list(update.get("messages", [])) if isinstance(update, dict) else []


def next_after_reason(state: State, *, memory: bool = True) -> list[Send] | Literal["no calls left", "no memory"]:
    """Send each call, valid or not, to the tools; go on if there is none. `stop_reason` is never asked."""
    answer = state["messages"][-1]
    calls = [*answer.tool_calls, *answer.invalid_tool_calls] if isinstance(answer, AIMessage) else []
    over: Literal["no calls left", "no memory"] = "no calls left" if memory or state.get("close") else "no memory"
    return [Send("tools", call) for call in calls] or over

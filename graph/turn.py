"""One turn in a script: what was said, what happened step by step, the final text, and why it ended.

It adds nothing to the graph; whoever wants to stream, or to see checkpoints, calls the agent itself.
"""

from dataclasses import dataclass
from typing import Any

from langchain_core.messages import AIMessage, AnyMessage
from langgraph.types import Command, Interrupt

from graph.agent import Agent
from nodes.context import Context
from nodes.state import StopReason
from nodes.text import last_human, text_of


@dataclass(frozen=True, kw_only=True)
class NumberedStep:
    """One step of a turn. `number` counts from 1, `ms` are its milliseconds, `detail` is what the node tells."""

    number: int
    node: str
    ms: int
    detail: dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class Turn:
    """A turn. `messages` begin with the question; `text` is the answer, empty while the turn waits for a person.

    `stop_reason` is "answered" if all went well, "max_steps" or "stuck" if the answer is a partial one, and empty while
    the turn waits; then `pauses` say what for, and `run(agent, Command(resume=…), thread=…)` goes on.
    """

    messages: list[AnyMessage]
    steps: list[NumberedStep]
    text: str
    stop_reason: StopReason
    pauses: list[Interrupt]


class StepLimit(Exception):
    """The turn ran out of steps; `turn` is what it came to."""

    def __init__(self, turn: Turn) -> None:
        super().__init__(f"the turn used up its steps (Context.max_steps); it ended with: {turn.text[:200]}")
        self.turn = turn


def run(
    agent: Agent,
    text: str | Command[Any],
    *,
    thread: str,
    context: Context | None = None,
    raise_on_limit: bool = False,
) -> Turn:
    """Run one turn of a thread. Raises StepLimit, with the turn, if asked to and the turn ran out of steps."""
    values = agent.invoke(given(text), {"configurable": {"thread_id": thread}}, context=context or Context())
    return concluded(values, raise_on_limit=raise_on_limit)


async def arun(
    agent: Agent,
    text: str | Command[Any],
    *,
    thread: str,
    context: Context | None = None,
    raise_on_limit: bool = False,
) -> Turn:
    """As `run`, awaited."""
    values = await agent.ainvoke(given(text), {"configurable": {"thread_id": thread}}, context=context or Context())
    return concluded(values, raise_on_limit=raise_on_limit)


def given(text: str | Command[Any]) -> Any:
    """Return what the graph takes: a question, or a command as it is."""
    return text if isinstance(text, Command) else {"messages": [{"role": "user", "content": text}]}


def concluded(values: dict[str, Any], *, raise_on_limit: bool) -> Turn:
    """Read a turn from the state after it."""
    messages, pauses = values["messages"], list(values.get("__interrupt__", ()))
    newest = messages[-1]
    turn = Turn(
        messages=messages[max(last_human(messages), 0) :],
        steps=[NumberedStep(number=n, **step) for n, step in enumerate(values["steps"], 1)],
        text=text_of(newest) if isinstance(newest, AIMessage) and not pauses else "",
        stop_reason=values.get("stop_reason", ""),
        pauses=pauses,
    )
    if raise_on_limit and turn.stop_reason == "max_steps":
        raise StepLimit(turn)
    return turn

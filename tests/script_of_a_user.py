"""What a person might write: every name that the package offers, in the types that it promises."""

import asyncio
from pathlib import Path
from typing import cast

from langchain_core.messages import HumanMessage
from langgraph.types import Command

from graph import (
    Agent,
    BadSetting,
    BlockSpec,
    Context,
    ScriptedModel,
    Settings,
    StepLimit,
    ToolProblem,
    Turn,
    aopen_agent,
    arun,
    build_agent,
    load_settings,
    marked,
    open_agent,
    run,
    talk,
)
from nodes.state import Input
from nodes.trace import Began, Ended, Step


@marked(approval=True, timeout_s=5)
def send(to: str, amount: int = 1) -> str:
    """Send money.

    Args:
        to: who gets it
        amount: how much
    """
    if amount > 100:
        raise ToolProblem("that is too much")
    return f"sent {amount} to {to}"


def gates(steps: list[Step]) -> list[str]:
    """Read the trace: the node tells which detail there is."""
    found: list[str] = []
    for step in steps:
        if step["node"] == "tools":
            found += [call["gate"] for call in step["detail"]["calls"]]
        elif step["node"] == "recall":
            found += [memory["text"] for memory in step["detail"]["memories"]]
    return found


def follow(agent: Agent) -> None:
    """Read the stream as it comes."""
    question: Input = {"messages": [HumanMessage("Hi")]}
    for part in agent.stream(question, {"configurable": {"thread_id": "s"}}, stream_mode="custom"):
        event = cast(Began | Ended, part)
        if event["trace"] == "ended":
            print(event["step"]["node"], event["step"]["ms"])


async def later(settings: Settings) -> Turn:
    """The same, awaited."""
    async with aopen_agent(settings, model=ScriptedModel(["Hello."])) as agent:
        return await arun(agent, "Hi", thread="t", context=Context(user="ann"))


def main() -> None:
    """Run it."""
    try:
        settings = load_settings({"PALIMPSEST_HOME": "home"}, env_file=None)
    except BadSetting as error:
        raise SystemExit(str(error)) from error
    context = Context(user="ann", max_steps=3, blocks=(BlockSpec(label="human"),), tools=("*",))
    model = ScriptedModel([{"name": "send", "args": {"to": "Bob"}}, "Sent.", "Hi.", "Hm."])
    with open_agent(Settings(home=Path("home")), model=model, tools=[send]) as agent:
        turn = run(agent, "Send", thread="t", context=context)
        assert [pause.value["tool"] for pause in turn.pauses] == ["send"]
        try:
            turn = run(agent, Command(resume=True), thread="t", context=context, raise_on_limit=True)
        except StepLimit as limit:
            turn = limit.turn
        steps: list[Step] = agent.get_state({"configurable": {"thread_id": "t"}}).values["steps"]
        print(turn.text, turn.stop_reason, [step.number for step in turn.steps], gates(steps))
        follow(agent)
    print(asyncio.run(later(settings)).text, build_agent, talk)


if __name__ == "__main__":
    main()

"""A user's own graph for Studio: a tool that asks a person first, called by a script. test_studio.py serves it."""

from functools import cache
from typing import Any

from langchain_core.messages import HumanMessage

from graph.agent import Agent, build_agent, compiled
from graph.scripted import ScriptedModel
from nodes.contract import marked


@marked(approval=True)
def refund(order: str, euros: int) -> str:
    """Pay money back to a customer."""
    return f"paid {euros} euros for {order}"


def look_up(order: str) -> str:
    """Look an order up."""
    return f"{order} is a lamp"


def reply(messages: list[Any], tools: list[str]) -> Any:
    """Call what the user asks for; answer everything else."""
    asked = messages[-1].text if isinstance(messages[-1], HumanMessage) else ""
    if asked == "Refund both.":
        return [{"name": "refund", "args": {"order": f"A-{n}", "euros": 40}} for n in (1, 2)]
    if asked == "Look it up and refund it.":
        args = {"order": "A-3"}
        return [{"name": "look_up", "args": args}, {"name": "refund", "args": {**args, "euros": 40}}]
    return "Both are settled."


@cache
def agent() -> Agent:
    """Build the graph, once; the server calls this on every run."""
    return compiled(build_agent(model=ScriptedModel([reply] * 20), tools=[refund, look_up]), None, None)

"""A user's own graph for Studio: a tool that asks a person first, called by a script. test_studio.py serves it."""

from functools import cache

from graph.agent import Agent, build_agent, compiled
from graph.scripted import ScriptedModel
from nodes.contract import marked


@marked(approval=True)
def refund(order: str, euros: int) -> str:
    """Pay money back to a customer."""
    return f"paid {euros} euros for {order}"


@cache
def agent() -> Agent:
    """Build the graph, once; the server calls this on every run."""
    calls = [{"name": "refund", "args": {"order": f"A-{n}", "euros": 40}} for n in (1, 2)]
    return compiled(build_agent(model=ScriptedModel([calls, "Both are settled."]), tools=[refund]), None, None)

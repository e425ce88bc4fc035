"""tools: every call of the newest answer gets exactly one result, in the order of the calls."""

from collections.abc import Sequence
from typing import Any

from langchain_core.messages import AIMessage, ToolMessage
from langchain_core.runnables import RunnableConfig
from langchain_core.tools import BaseTool
from langgraph.prebuilt import ToolNode

from nodes.calls import Update
from nodes.engine import arun_call, broken_result, callable_both_ways, run_call
from nodes.state import State
from nodes.trace import Watch


class Tools:
    """The node. LangGraph's ToolNode injects runtime and store into the tools; the engine stands around each call."""

    def __init__(self, tools: Sequence[BaseTool]) -> None:
        self.node = ToolNode(
            [callable_both_ways(tool) for tool in tools],
            handle_tool_errors=False,
            wrap_tool_call=run_call,
            awrap_tool_call=arun_call,
        )

    def run(self, state: State, config: RunnableConfig) -> Update:
        """Run the calls; append their results to `messages`."""
        watch = Watch("tools")
        return concluded(state, self.node.invoke(state, config) if valid_calls(state) else [], watch)

    async def arun(self, state: State, config: RunnableConfig) -> Update:
        """As `run`, awaited."""
        watch = Watch("tools")
        return concluded(state, await self.node.ainvoke(state, config) if valid_calls(state) else [], watch)


def valid_calls(state: State) -> bool:
    """Whether the newest answer has calls that can run at all."""
    answer = state["messages"][-1]
    return isinstance(answer, AIMessage) and bool(answer.tool_calls)


def concluded(state: State, output: Any, watch: Watch) -> Update:
    """Add a result for each call that could not run, and the step."""
    answer = state["messages"][-1]
    assert isinstance(answer, AIMessage)
    done: list[ToolMessage] = output["messages"] if isinstance(output, dict) else []
    results = [*done, *map(broken_result, answer.invalid_tool_calls)]
    told = [{"tool": result.name, "status": result.status, "chars": len(str(result.content))} for result in results]
    return {"messages": results, "steps": watch.step(calls=told)}

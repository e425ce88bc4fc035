"""Time that the graph adds to a turn: everything but the model and the tools, against `create_agent`.

All get the same scripted model and tools, which do nothing, and a saver of the same kind; a turn is one answer with
1 or 8 calls and a final one. Rounds alternate between the agents, so that whatever else the machine does falls on all.
An embedder is a model too: `memory on` has a table for one, `embedder on` the one that comes with it.

    python tests/bench_turn.py [rounds]
"""

import asyncio
import statistics
import sys
import tempfile
import time
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from langchain.agents import create_agent
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.tools import tool
from pydantic import Field
from stores import hash_embedder

from graph.agent import build_agent, compiled
from graph.sqlite import open_saver
from memory.store import open_store
from nodes.context import Context

ROUNDS = 40
WARM_UP = 3
CALLS = (1, 8)


class Quick(BaseChatModel):
    """Calls the tool as often as asked, then answers; takes no time."""

    calls: int

    @property
    def _llm_type(self) -> str:
        return "quick"

    def bind_tools(self, tools: Any, **kwargs: Any) -> Any:
        """Ignore them."""
        return self

    def _generate(self, messages: list[BaseMessage], stop: Any = None, run_manager: Any = None, **_: Any) -> ChatResult:
        if isinstance(messages[-1], ToolMessage):
            answer = AIMessage("Done.")
        else:
            calls = [{"name": "look", "args": {"n": n}, "id": f"c{len(messages)}-{n}"} for n in range(self.calls)]
            answer = AIMessage("", tool_calls=calls)
        return ChatResult(generations=[ChatGeneration(message=answer)])


@tool
def look(n: Annotated[int, Field(description="Which.")]) -> str:
    """Look something up."""
    return f"found {n}"


def turns(stack: ExitStack, home: Path, calls: int) -> dict[str, tuple[Any, Context | None]]:
    """Open the agents that are compared, each with a saver of its own of the same kind."""
    model = Quick(calls=calls)

    def saver(name: str) -> Any:
        return stack.enter_context(open_saver(home / f"{name}.sqlite"))

    peer = create_agent(model, [look], checkpointer=saver("peer"))
    builder = build_agent(model=model, tools=[look])
    store = stack.enter_context(open_store(home / "store", embedder=hash_embedder()))
    built_in = stack.enter_context(open_store(home / "built-in"))
    off = Context(extract="off", memory="tool", stream=False)
    on = Context(stream=False)
    return {
        "create_agent": (peer, None),
        "memory off": (compiled(builder, saver("off"), None), off),
        "memory on": (compiled(builder, saver("on"), store), on),
        "embedder on": (compiled(builder, saver("built-in"), built_in), on),
    }


@dataclass(frozen=True)
class Spent:
    """Milliseconds of one turn: of the clock, and of this process's own work in all its threads."""

    wall: float
    cpu: float


def measured(agent: Any, context: Context | None, thread: str, way: str) -> Spent:
    """Run one turn."""
    given = {"messages": [{"role": "user", "content": "Look it up, please."}]}
    config = {"configurable": {"thread_id": thread}}
    options = {"context": context} if context else {}

    async def awaited() -> Spent:
        wall, cpu = time.perf_counter(), time.process_time()
        await agent.ainvoke(given, config, **options)
        return Spent((time.perf_counter() - wall) * 1000, (time.process_time() - cpu) * 1000)

    if way == "ainvoke":
        return asyncio.run(awaited())
    wall, cpu = time.perf_counter(), time.process_time()
    agent.invoke(given, config, **options)
    return Spent((time.perf_counter() - wall) * 1000, (time.process_time() - cpu) * 1000)


def compare(calls: int, way: str, rounds: int) -> dict[str, list[Spent]]:
    """Run the rounds; return what each agent spent on each, after the warm-up."""
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        agents = turns(stack, Path(folder), calls)
        spent: dict[str, list[Spent]] = {name: [] for name in agents}
        for n in range(WARM_UP + rounds):
            for name, (agent, context) in agents.items():
                spent[name].append(measured(agent, context, f"t{n // 5}", way))  # five turns on a thread
    return {name: rows[WARM_UP:] for name, rows in spent.items()}


def row(mine: list[Spent], peers: list[Spent]) -> str:
    """Write the medians, and the medians of the ratios to the peer in the same round."""
    cells = []
    for kind in ("wall", "cpu"):
        pairs = [(getattr(one, kind), getattr(peer, kind)) for one, peer in zip(mine, peers, strict=True)]
        cells += [statistics.median(one for one, _ in pairs), statistics.median(one / peer for one, peer in pairs)]
    return "{:8.1f} {:6.2f} {:8.1f} {:6.2f}".format(*cells)


def main() -> None:
    """Print the table."""
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else ROUNDS
    print(
        f"{'way':8} {'calls':>5}  {'agent':14} {'wall ms':>8} {'ratio':>6} {'cpu ms':>8} {'ratio':>6}   {rounds} rounds"
    )
    for way in ("invoke", "ainvoke"):
        for calls in CALLS:
            spent = compare(calls, way, rounds)
            for name, mine in spent.items():
                print(f"{way:8} {calls:5}  {name:14} {row(mine, spent['create_agent'])}")


if __name__ == "__main__":
    main()

"""A child process for tests: a turn that is killed between two tools, and one whose tool never ends.

python tool_child.py crash HOME    |    python tool_child.py hang HOME
"""

import asyncio
import os
import signal
import sqlite3
import sys
import threading
import time
from pathlib import Path
from typing import Any

from graph.agent import CHECKPOINTS, open_agent
from graph.scripted import ScriptedModel
from graph.settings import Settings
from nodes.context import Context

CALLS: list[dict[str, Any]] = [
    {"name": "transfer", "args": {"amount": 100}, "id": "c1"},
    {"name": "report", "args": {"text": "done"}, "id": "c2"},
]
STORED = """
    SELECT count(*) FROM writes JOIN checkpoints USING (thread_id, checkpoint_ns, checkpoint_id)
    WHERE channel = 'messages' AND instr(value, CAST('transferred' AS BLOB))"""


def tools(home: Path, *, dies: bool) -> list[Any]:
    """Return a tool that writes into a ledger, and one that kills the process once that result is stored."""

    def transfer(amount: int) -> str:
        """Transfer money.

        Args:
            amount: how much
        """
        with (home / "ledger").open("a") as ledger:
            ledger.write(f"{amount}\n")
        return f"transferred {amount}"

    def report(text: str) -> str:
        """Report.

        Args:
            text: what
        """
        while dies:
            with sqlite3.connect(home / CHECKPOINTS) as db:
                if db.execute(STORED).fetchone()[0]:
                    os.kill(os.getpid(), signal.SIGKILL)
            time.sleep(0.01)
        return "reported"

    return [transfer, report]


def crash(home: Path) -> None:
    """Run a turn and die in its middle."""
    model = ScriptedModel([CALLS, "Never said."])
    with open_agent(Settings(home=home, model="rehearsal"), model=model, tools=tools(home, dies=True)) as agent:
        agent.invoke({"messages": [("user", "Pay and report")]}, {"configurable": {"thread_id": "t"}})


def hang(home: Path) -> None:
    """Run a turn with a tool that never ends, sync and async; print the answers; end."""

    def wait(x: int) -> str:
        """Wait for ever.

        Args:
            x: any
        """
        threading.Event().wait()
        return ""

    call = {"name": "wait", "args": {"x": 1}, "id": "c1"}
    given: Any = {"messages": [("user", "Wait")]}
    context = Context(tool_timeout_s=0.05)
    model = ScriptedModel([call, "Gave up.", call, "Gave up again."])
    with open_agent(Settings(home=home, model="rehearsal"), model=model, tools=[wait]) as agent:
        print(agent.invoke(given, {"configurable": {"thread_id": "a"}}, context=context)["messages"][-1].text)
        values = asyncio.run(agent.ainvoke(given, {"configurable": {"thread_id": "b"}}, context=context))
        print(values["messages"][-1].text)


if __name__ == "__main__":
    {"crash": crash, "hang": hang}[sys.argv[1]](Path(sys.argv[2]))

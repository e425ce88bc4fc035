"""A child process for tests: one turn killed with SIGKILL at every instant at which a saver writes, then gone on with.

python kill_child.py HOME invoke|ainvoke: for each instant a JSON line of what lay on disk, and what came of it. Each
run is a fork of its own, killed from within: nothing is flushed, closed or caught.
"""

import asyncio
import json
import os
import signal
import sqlite3
import sys
import time
from contextlib import closing
from itertools import count
from pathlib import Path
from typing import Annotated, Any

from langchain_core.messages import ToolMessage
from langgraph.prebuilt import ToolRuntime

from graph.agent import CHECKPOINTS, build_agent, compiled
from graph.locks import ThreadLocks, file_locks
from graph.scripted import ScriptedModel
from graph.sqlite import LOCKS, Saver

CONFIG: Any = {"configurable": {"thread_id": "t"}}
QUESTION: Any = {"messages": [("user", "Pay both")]}
SLOW_S = 0.05
"""How long a checkpoint takes, so that tools are done before one that nobody waits for."""


class Deadly(Saver):
    """A saver that is slow with checkpoints and kills its process at the n-th instant, before or after a write."""

    dies_at = 0

    def instant(self) -> None:
        """Be killed, or go on."""
        with self.lock:
            self.dies_at -= 1
            if self.dies_at == 0:
                os.kill(os.getpid(), signal.SIGKILL)

    def put(self, *given: Any, **options: Any) -> Any:
        """Store a checkpoint, slowly."""
        time.sleep(SLOW_S if self.dies_at > 0 else 0)
        self.instant()
        done = super().put(*given, **options)
        self.instant()
        return done

    def put_writes(self, *given: Any, **options: Any) -> None:
        """Store what a task wrote."""
        self.instant()
        super().put_writes(*given, **options)
        self.instant()


def turn(home: Path, way: str, *, dies_at: int) -> list[Any]:
    """Run the turn, or go on with one that is not over; return its messages."""

    def transfer(amount: Annotated[int, "How much."], runtime: ToolRuntime) -> str:
        """Transfer money."""
        with (home / "ledger").open("a") as ledger:
            ledger.write(f"{amount} {runtime.tool_call_id} {runtime.execution_info.task_id}\n")
        return f"transferred {amount}"

    def reply(messages: list[Any], tools: list[str]) -> Any:
        if isinstance(messages[-1], ToolMessage):
            return "Both paid."
        return [{"name": "transfer", "args": {"amount": n}, "id": f"{os.getpid()}-{n}"} for n in (1, 2)]

    with closing(sqlite3.connect(home / CHECKPOINTS, check_same_thread=False)) as db:
        saver = Deadly(db)
        saver.dies_at = dies_at
        saver.locks = ThreadLocks(file_locks(home / LOCKS))
        agent = compiled(build_agent(model=ScriptedModel([reply] * 3), tools=[transfer]), saver, None)
        kept = agent.get_state(CONFIG)
        if kept.tasks or not kept.values:
            given = None if kept.tasks else QUESTION
            agent.invoke(given, CONFIG) if way == "invoke" else asyncio.run(agent.ainvoke(given, CONFIG))
        return [[message.type, message.text] for message in agent.get_state(CONFIG).values["messages"]]


def on_disk(home: Path) -> dict[str, Any]:
    """Tell what lies on the disk: effects, results that were stored, and whether the calls were."""
    with closing(sqlite3.connect(home / CHECKPOINTS)) as db:
        stored = [str(value) for (value,) in db.execute("SELECT value FROM writes WHERE channel = 'messages'")]
        states = [str(value) for (value,) in db.execute("SELECT value FROM checkpoint_parts")]
    ledger = (home / "ledger").read_text().split("\n")[:-1] if (home / "ledger").exists() else []
    return {
        "effects": [line.split() for line in ledger],
        "stored": [n for n in (1, 2) if any(f"transferred {n}" in one for one in stored + states)],
        "called": any("tool_calls" in one and "transfer" in one for one in states),
    }


def forked(home: Path, way: str, *, dies_at: int) -> bool:
    """Run the turn in a fork, which writes its messages; return whether it was killed."""
    if pid := os.fork():
        return os.waitpid(pid, 0)[1] == signal.SIGKILL
    try:
        (home / "messages").write_text(json.dumps(turn(home, way, dies_at=dies_at)))
    finally:
        os._exit(0)


def main(base: Path, way: str) -> None:
    """Kill the turn at one instant after the other, until it ends before it is killed."""
    for n in count(1):
        home = base / str(n)
        home.mkdir(parents=True)
        killed = forked(home, way, dies_at=n)
        before = on_disk(home)
        forked(home, way, dies_at=0)
        told = {"before": before, "after": on_disk(home), "messages": json.loads((home / "messages").read_text())}
        print(json.dumps({"instant": n, **told}))
        if not killed:
            return


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])

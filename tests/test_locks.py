"""One writer on a thread: runs and updates of every kind wait for each other, or are refused with a clear error."""

import asyncio
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event
from typing import Any

import pytest
from conftest import config, said
from langchain_core.messages import BaseMessage, HumanMessage
from talking import Talking, filed, opened, summary_of

from graph.agent import CHECKPOINTS, Agent
from graph.locks import ThreadBusy
from graph.sqlite import open_saver
from nodes.context import Context

WATCHDOG_S = 60  # how long a hang may last before it is called one


def slow(messages: list[BaseMessage], tools: list[str]) -> str:
    """Answer a question by its own text, late enough for the next run to come in between."""
    time.sleep(0.05)
    return f"answer to {messages[-1].text}"


def exchanges(agent: Agent) -> list[tuple[str, str]]:
    """Return (question, answer) of the state, in order; each answer must stand behind its question."""
    messages = agent.get_state(config()).values["messages"]
    pairs = list(zip(messages[::2], messages[1::2], strict=True))
    assert all(answer.text == f"answer to {question.text}" for question, answer in pairs)
    return [(question.text, answer.text) for question, answer in pairs]


def test_runs_from_many_threads_lose_nothing(tmp_path: Path):
    """B068."""
    with opened(tmp_path / "home", Talking(then=slow)) as agent, ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda n: agent.invoke(said(f"m{n}"), config()), range(8)))
        assert sorted(question for question, _ in exchanges(agent)) == [f"m{n}" for n in range(8)]
        assert len(filed(agent.store)) == 16


def test_sync_and_async_runs_streams_and_updates_take_turns(tmp_path: Path):
    """B065, B068: in one process, of all kinds at once."""

    async def mixed(agent: Agent) -> None:
        async def streamed(n: int) -> None:
            async for _ in agent.astream(said(f"stream {n}"), config(), stream_mode="values"):
                pass

        bound = agent.with_config(configurable={"thread_id": "t"})
        async with asyncio.timeout(WATCHDOG_S):
            await asyncio.gather(
                *(agent.ainvoke(said(f"async {n}"), config()) for n in range(3)),
                *(asyncio.to_thread(agent.invoke, said(f"sync {n}"), config()) for n in range(3)),
                *(streamed(n) for n in range(2)),
                bound.ainvoke(said("bound")),
                agent.aupdate_state(config(), {"messages": pair(1)}, as_node="summarize"),
                asyncio.to_thread(agent.update_state, config(), {"messages": pair(2)}, as_node="summarize"),
            )

    def pair(n: int) -> list[Any]:
        return [HumanMessage(f"update {n}"), ("ai", f"answer to update {n}")]

    with opened(tmp_path / "home", Talking(then=slow)) as agent:
        asyncio.run(mixed(agent))
        assert len(exchanges(agent)) == 11


def test_a_run_that_waited_too_long_is_refused_and_writes_nothing(tmp_path: Path):
    inside, go_on = Event(), Event()

    def hold(messages: list[BaseMessage], tools: list[str]) -> str:
        inside.set()
        go_on.wait(WATCHDOG_S)
        return slow(messages, tools)

    with opened(tmp_path / "home", Talking([hold], then=slow), wait_s=0.2) as agent, ThreadPoolExecutor(1) as pool:
        first = pool.submit(agent.invoke, said("first"), config())
        assert inside.wait(WATCHDOG_S)
        with pytest.raises(ThreadBusy, match="'t' did not end within") as refused:
            agent.invoke(said("second"), config())
        with pytest.raises(ThreadBusy):
            asyncio.run(agent.ainvoke(said("third"), config()))
        agent.invoke(said("elsewhere"), config("other"))
        go_on.set()
        first.result(WATCHDOG_S)
        assert "\n" not in str(refused.value)
        assert [question for question, _ in exchanges(agent)] == ["first"]
        agent.invoke(said("fourth"), config())
        assert [question for question, _ in exchanges(agent)] == ["first", "fourth"]


@pytest.mark.parametrize("times", range(3))
def test_a_run_cancelled_while_it_waits_takes_no_lock_with_it(tmp_path: Path, times: int):
    """A worker may just be taking the lock when its run is cancelled."""
    with opened(tmp_path / "home", Talking(then=slow), wait_s=5) as agent:

        async def cancelled() -> None:
            runs = [asyncio.create_task(agent.ainvoke(said(f"m{n}"), config())) for n in range(5)]
            await asyncio.sleep(0.03 * times)
            for run in runs[1:]:
                run.cancel()
            await asyncio.gather(*runs, return_exceptions=True)

        asyncio.run(cancelled())
        agent.invoke(said("last"), config())
        assert exchanges(agent)[-1][0] == "last"


def test_a_cancelled_run_does_not_write_after_a_newer_one(tmp_path: Path):
    """Its own steps may still be at work in threads; what is read after the newer run stays as it is."""
    started = Event()

    def hang(messages: list[BaseMessage], tools: list[str]) -> str:
        started.set()
        time.sleep(0.3)
        return "late"

    async def cancel_and_go_on(agent: Agent) -> list[BaseMessage]:
        old = asyncio.create_task(agent.ainvoke(said("old"), config()))
        await asyncio.to_thread(started.wait, WATCHDOG_S)
        old.cancel()
        await asyncio.gather(old, return_exceptions=True)
        values = await agent.ainvoke(said("new"), config())
        await asyncio.sleep(0.5)
        return list(values["messages"])

    with opened(tmp_path / "home", Talking([hang], then=slow)) as agent:
        messages = asyncio.run(cancel_and_go_on(agent))
        assert agent.get_state(config()).values["messages"] == messages
        assert [m.text for m in messages] == ["old", "new", "answer to new"]


def test_a_run_cancelled_in_the_middle_of_a_cut_leaves_the_old_state_or_the_new(tmp_path: Path):
    """The newer run cuts in its place, once; nothing that was said is lost."""
    started = Event()

    def hang(request: str) -> str:
        started.set()
        time.sleep(0.3)
        return summary_of("late")

    reflexes = iter([hang])

    async def cancel_and_go_on(agent: Agent) -> dict[str, Any]:
        short = Context(max_messages=4, extract="off")
        for n in range(2):
            await agent.ainvoke(said(f"m{n}"), config(), context=short)
        old = asyncio.create_task(agent.ainvoke(said("m2"), config(), context=short))
        await asyncio.to_thread(started.wait, WATCHDOG_S)
        old.cancel()
        await asyncio.gather(old, return_exceptions=True)
        values = await agent.ainvoke(said("new"), config(), context=short)
        await asyncio.sleep(0.5)
        return dict(values)

    model = Talking(then=slow, summary=lambda request: next(reflexes, lambda request: summary_of("new"))(request))
    with opened(tmp_path / "home", model) as agent:
        values = asyncio.run(cancel_and_go_on(agent))
        assert agent.get_state(config()).values == values
        assert "new" in values["summary"] and "late" not in values["summary"]
        said_ever = {text for texts in filed(agent.store).values() for text in texts}
        assert {*(f"m{n}" for n in range(3)), "answer to m2", "new", "answer to new"} <= said_ever


def test_leaving_a_stream_early_frees_the_thread(tmp_path: Path):
    with opened(tmp_path / "home", Talking(then=slow), wait_s=5) as agent:
        for _ in agent.stream(said("left"), config(), stream_mode="values"):
            break
        agent.invoke(said("next"), config())
        assert agent.get_state(config()).values["messages"][-1].text == "answer to next"


PROCESS = """
import sys
sys.path[:0] = sys.argv[2:]
from pathlib import Path
from test_locks import *
with opened(Path(sys.argv[1]), Talking(then=slow)) as agent:
    for n in range(6):
        agent.invoke(said(f"NAME{n}"), config())
"""


def test_two_processes_on_one_thread_lose_nothing(tmp_path: Path):
    """B063, B068: both in their own event of opening, running and closing."""
    here = Path(__file__).parent
    arguments = [str(tmp_path / "home"), str(here), str(here.parent)]
    running = [
        subprocess.Popen([sys.executable, "-c", PROCESS.replace("NAME", name), *arguments], stderr=subprocess.PIPE)
        for name in "ab"
    ]
    for process in running:
        assert process.communicate()[1] == b"" and process.returncode == 0
    with opened(tmp_path / "home", Talking()) as agent:
        assert sorted(q for q, _ in exchanges(agent)) == sorted(f"{name}{n}" for name in "ab" for n in range(6))
        assert len(filed(agent.store)) == 24


def test_a_lock_dies_with_its_process(tmp_path: Path):
    killed = """
import os, signal, sys
sys.path[:0] = sys.argv[2:]
from test_locks import *
from pathlib import Path
with opened(Path(sys.argv[1]), Talking(then=lambda *_: os.kill(os.getpid(), signal.SIGKILL))) as agent:
    agent.invoke(said("dies"), config())
"""
    here = Path(__file__).parent
    done = subprocess.run(
        [sys.executable, "-c", killed, str(tmp_path / "home"), str(here), str(here.parent)], check=False
    )
    assert done.returncode == -9
    with opened(tmp_path / "home", Talking(then=slow), wait_s=5) as agent:
        agent.invoke(said("lives"), config())
        assert [m.text for m in agent.get_state(config()).values["messages"]] == ["dies", "lives", "answer to lives"]
    with open_saver(tmp_path / "home" / CHECKPOINTS) as saver:
        assert saver.threads() == ["t"]

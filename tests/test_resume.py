"""What outlives a crash, a process and a turn: stored results, whole results; and a program that ends all the same."""

import asyncio
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import tool_child
from conftest import ask, config
from langchain_core.messages import AIMessage, HumanMessage
from langgraph.store.base import PutOp
from langgraph.store.memory import InMemoryStore
from tool_graphs import WAYS, Session, call, record, result, results, session

from graph.agent import open_agent
from graph.scripted import ScriptedModel
from graph.settings import Settings

ROOT = Path(__file__).parent.parent


def child(what: str, home: Path) -> "subprocess.CompletedProcess[str]":
    """Run the child process to its end, however it comes."""
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, str(ROOT / "tests/tool_child.py"), what, str(home)]
    return subprocess.run(command, env=env, capture_output=True, text=True, timeout=120, check=False)


@pytest.fixture(scope="module")
def crashed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The home of a turn that was killed between two tools' ends."""
    home = tmp_path_factory.mktemp("crashed") / "home"
    assert child("crash", home).returncode == -signal.SIGKILL
    return home


@pytest.fixture
def after_crash(crashed: Path, settings: Settings) -> Settings:
    """Settings of a copy of that home."""
    shutil.copytree(crashed, settings.home)
    return settings


def test_a_side_effect_whose_result_was_stored_is_not_repeated_after_kill_minus_nine(after_crash: Settings):
    """B049, B054: killed between two tools' ends, then gone on with `invoke(None, config)`."""
    home = after_crash.home
    assert (home / "ledger").read_text() == "100\n"
    with (
        ScriptedModel(["Both done."]) as model,
        open_agent(after_crash, model=model, tools=tool_child.tools(home, dies=False)) as agent,
    ):
        values = agent.invoke(None, config())
    assert (home / "ledger").read_text() == "100\n"
    assert [one.text for one in results(values)] == ["transferred 100", "reported"]
    assert values["messages"][-1].text == "Both done."


def test_after_a_kill_a_new_message_works_and_no_result_is_made_up_or_missed(after_crash: Settings):
    """B049, B051."""
    with ScriptedModel(["Hello again."]) as model, open_agent(after_crash, model=model) as agent:
        values = ask(agent, "Are you there?")
    assert values["messages"][-1].text == "Hello again."
    sent = model.calls[0][0]
    assert [message.type for message in sent] == ["system", "human", "ai", "tool", "tool", "human"]
    assert sent[3].text == "transferred 100" and "may or may not have run" in sent[4].text


def test_a_hung_tool_keeps_neither_the_loop_nor_the_program_from_ending(tmp_path: Path):
    ended = child("hang", tmp_path / "home")
    assert (ended.returncode, ended.stdout) == (0, "Gave up.\nGave up again.\n"), ended.stderr


def lines(n: int) -> str:
    return "".join(f"line {i}: {'汉字 👩‍👩‍👧‍👦' * 5}\n" for i in range(n))


def long_list(n: int) -> str:
    """List much.

    Args:
        n: how many
    """
    return lines(n)


def read_on(messages: list[Any], tools: list[str]) -> Any:
    """Follow the notes: read on from where the newest piece ends."""
    text = messages[-1].text
    if "offset=" in text:
        id, offset = text.split("id='")[1].split("'")[0], text.split("offset=")[1].split(")")[0]
    elif "more at offset " in text:
        id, offset = messages[-2].tool_calls[0]["args"]["id"], text.split("more at offset ")[1].rstrip("]")
    else:
        return "All read."
    return call("tool_result", f"c{len(messages)}", id=id, offset=int(offset))


@pytest.mark.parametrize("way", WAYS)
def test_a_huge_result_is_read_on_to_its_end_from_the_note_alone(way):
    """B035: nothing is lost, whatever the pieces."""
    s = Session(ScriptedModel([call("long_list", n=60), *[read_on] * 20]), [long_list], way)
    values = s.turn(max_result_chars=1000, max_steps=50)
    first, *pieces = results(values)
    head, rest = first.text.split("\n[… ")
    start = int(rest.split("offset=")[1].split(")")[0])
    read = [piece.text.rsplit("\n[characters ", 1)[0] for piece in pieces]
    assert lines(60)[:start].rstrip() == head and "".join(read) == lines(60)[start:]
    assert all(len(piece.text) <= 1000 for piece in pieces) and values["messages"][-1].text == "All read."


def test_a_whole_result_is_there_in_later_turns_and_after_reopening(settings: Settings):
    """B035: later turns are unaffected."""
    asked = call("long_list", n=500)
    with open_agent(settings, model=ScriptedModel([asked, "Long."]), tools=[long_list]) as agent:
        note = result(ask(agent, "List")).text
    id = note.split("id='")[1].split("'")[0]
    with (
        ScriptedModel([call("tool_result", "c2", id=id, offset=len(lines(500)) - 40), "Read."]) as model,
        open_agent(settings, model=model) as agent,
    ):
        values = ask(agent, "And the end?")
    piece = results(values)[-1].text
    assert piece.startswith(lines(500)[-40:]) and "the end]" in piece
    assert sum(len(message.text) for message in values["messages"]) < 30_000


def kept_id(values: dict[str, Any]) -> str:
    """Return the id that the note of the first result names."""
    return results(values)[0].text.split("id='")[1].split("'")[0]


@pytest.mark.parametrize(("user", "thread"), [("bob", "b"), ("ann", "other")])
def test_another_user_or_thread_cannot_read_a_kept_result(user, thread):
    kept: list[str] = []
    steps = [call("long_list", n=500), "Long.", lambda *_: call("tool_result", "c2", id=kept[0]), "Nothing."]
    with session(*steps, tools=[long_list]) as s:
        kept.append(kept_id(s.turn(user="ann")))
        got = result(s.turn(user=user, thread=thread))
    assert record(got)["kind"] == "business" and "nothing is kept under" in got.text


@pytest.mark.parametrize("args", [{"id": "r-nope"}, {"id": "../r"}, {"id": "a.b*"}, {"id": "汉"}])
def test_an_unknown_id_is_told_so(args):
    with session(call("tool_result", **args), "No.") as s:
        assert "nothing is kept under" in result(s.turn()).text


def test_an_offset_beyond_the_end_is_told_with_the_length():
    def beyond(messages: list[Any], tools: list[str]) -> Any:
        return call("tool_result", "c2", id=messages[-1].text.split("id='")[1].split("'")[0], offset=10**9)

    with session(call("long_list", n=500), beyond, "No.", tools=[long_list]) as s:
        got = results(s.turn())[-1]
    assert f"has {len(lines(500))} characters" in got.text


class FullStore(InMemoryStore):
    """A store with no room for whole results."""

    def batch(self, ops: Any) -> Any:
        listed = list(ops)
        if any(isinstance(op, PutOp) and "outputs" in op.namespace for op in listed):
            raise OSError("disk full")
        return super().batch(listed)

    async def abatch(self, ops: Any) -> Any:
        return self.batch(ops)


@pytest.mark.parametrize("way", WAYS)
def test_a_whole_result_that_cannot_be_kept_is_cut_and_says_so(way):
    with session(call("long_list", n=500), "Long.", tools=[long_list], way=way, store=FullStore()) as s:
        values = s.turn()
    assert "they were not kept" in result(values).text and values["stop_reason"] == "answered"


@pytest.mark.parametrize("way", WAYS)
def test_a_hand_written_call_without_an_id_is_answered_too(way):
    """B032: hand-edited state."""
    with session("Done.", tools=[long_list], way=way) as s:
        written = AIMessage("", tool_calls=[{"name": "long_list", "args": {"n": 1}, "id": None}])
        s.agent.update_state(config(), {"messages": [HumanMessage("x"), written]}, as_node="reason")
        values = s.turn(None)
        sent, _ = s.model.calls[-1]
    assert result(values).text == lines(1)
    assert sent[-1].tool_call_id == sent[-2].tool_calls[0]["id"] != ""


@pytest.mark.parametrize("way", WAYS)
def test_a_result_that_the_prompt_shows_in_part_can_be_read_by_the_id_in_its_note(way):
    """B035: a result under its own limit, in a prompt with a small budget."""
    seen: list[str] = []

    def read(messages: list[Any], tools: list[str]) -> Any:
        seen.append(messages[-1].text)
        named = messages[-1].text.split("tool_result(id='", 1)[1].split("'", 1)[0]
        return call("tool_result", "c2", id=named if way == "sync" else "c1", offset=3000)

    with session(call("long_list", n=100), read, "Read.", tools=[long_list], way=way) as s:
        values = s.turn(token_budget=4000)
    assert "reads them" in seen[0]
    assert results(values)[-1].text.startswith(lines(100)[3000:3100])


async def test_a_cancelled_run_cancels_its_tool_and_leaves_the_thread_usable():
    """B049: Ctrl-C while a tool runs; cancellation is not swallowed."""
    started, ended = asyncio.Event(), asyncio.Event()

    async def wait(x: int) -> str:
        """Wait.

        Args:
            x: any
        """
        started.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()
        return ""

    with session(call("wait", x=1), "Hello again.", tools=[wait], way="ainvoke") as s:
        run = asyncio.create_task(s.agent.ainvoke({"messages": [("user", "Wait")]}, config()))
        await started.wait()
        run.cancel()
        with pytest.raises(asyncio.CancelledError):
            await run
        await ended.wait()
        values = await s.agent.ainvoke({"messages": [("user", "hello again")]}, config())
        sent, _ = s.model.calls[-1]
    assert values["messages"][-1].text == "Hello again."
    assert [message.type for message in sent] == ["system", "human", "ai", "tool", "human"]
    assert "may or may not have run" in sent[3].text

"""What a thread leaves on disk: it comes back as it was, holds no secret, does not grow, and can be trimmed."""

import asyncio
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from conftest import ask, config
from langchain_core.messages import AIMessage, HumanMessage
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command
from stores import hash_embedder
from talking import Talking, opened

from graph.agent import CHECKPOINTS, Agent, build_agent, compiled
from graph.sqlite import Saver, open_saver
from memory.memories import Memories
from memory.store import open_store
from nodes.context import Context
from nodes.contract import marked
from nodes.state import State
from nodes.tokens import text_tokens

pytest_plugins = ["store_fixtures"]

SECRET = "sk-SECRET-4711-abcdefgh"


@contextmanager
def saver_of(kind: str, place: str) -> Iterator[BaseCheckpointSaver[Any]]:
    """Open one of the savers; the same place holds the same threads."""
    if kind == "sqlite":
        with open_saver(Path(place)) as saver:
            yield saver
    else:
        from graph.postgres import open_postgres_saver  # needs an extra

        with open_postgres_saver(place) as saver:
            yield saver


@pytest.fixture(params=["sqlite", "postgres"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[str, str]:
    """Name a saver and where it keeps its threads."""
    if request.param == "sqlite":
        return "sqlite", str(tmp_path / CHECKPOINTS)
    from store_fixtures import new_schema  # at the top it would come before pytest has seen the plugin

    return "postgres", new_schema(request.getfixturevalue("postgres_url"))


def full_turn(saver: BaseCheckpointSaver[Any], home: Path) -> dict[str, Any]:
    """Run turns that fill every field of the state; return its values."""
    call = {"name": "calculator", "args": {"expression": "2+2", "n": 2**70}, "id": "c1"}
    picture = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}
    usage = {"input_tokens": 900, "output_tokens": 3, "total_tokens": 903}
    model = Talking([[call], AIMessage("4 🎉", usage_metadata=usage)], then="好的")
    with open_store(home, embedder=hash_embedder()) as store:
        agent = compiled(build_agent(model=model), saver, store)
        Memories(store, user="me").save("likes tea")
        ask(agent, [{"type": "text", "text": "2+2, tea?"}, picture], max_messages=4, extract="turn")
        agent.invoke({"messages": [], "close": True}, config(), context=Context(extract="turn"))
        for text in ("茶", "tea"):
            values = ask(agent, text, max_messages=4, extract="turn", recall_threshold=-1.0)
    return values


def test_every_field_of_the_state_comes_back_equal_from_every_saver(
    place: tuple[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """B055, B056, B057, B058: in strict mode, with warnings as errors, from a saver that was opened anew."""
    monkeypatch.setenv("LANGGRAPH_STRICT_MSGPACK", "true")
    with saver_of(*place) as saver:
        values = full_turn(saver, tmp_path / "home")
    managed = {"remaining_steps"}  # LangGraph's own count, which is never stored
    assert values.keys() - {"messages"} == set(State.__annotations__) - {"messages"} - managed
    assert values["summary"] and values["recalled"]["memories"] and values["extracted_to"]
    with saver_of(*place) as saver:
        agent = compiled(build_agent(model=Talking()), saver, None)
        assert agent.get_state(config()).values == values


def test_the_saver_in_memory_gives_the_same(tmp_path: Path):
    saver = InMemorySaver()
    values = full_turn(saver, tmp_path / "home")
    assert compiled(build_agent(model=Talking()), saver, None).get_state(config()).values == values


def test_a_normal_run_in_strict_mode_prints_no_warning(tmp_path: Path):
    """B058: a process of its own, where the mode is read at import."""
    code = """
import sys
sys.path[:0] = sys.argv[2:]
from pathlib import Path
from test_disk import *
for _ in range(2):
    with saver_of("sqlite", str(Path(sys.argv[1]) / "t.sqlite")) as saver:
        full_turn(saver, Path(sys.argv[1]) / "home")
"""
    here = Path(__file__).parent
    env = {**os.environ, "LANGGRAPH_STRICT_MSGPACK": "true", "PYTHONWARNINGS": "default"}
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path), str(here), str(here.parent)],
        env=env,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr, done.stdout) == (0, "", "")


def test_no_secret_is_in_the_files(tmp_path: Path):
    """B062: the key of the settings, and an error that quotes it."""
    model = Talking([ConnectionError(f"Bearer {SECRET} refused")], then="Yes.")
    with opened(tmp_path / "home", model) as agent:
        ask(agent, "Hi")
        ask(agent, "Hi again")
    for file in (one for one in (tmp_path / "home").rglob("*") if one.is_file()):
        assert SECRET.encode() not in file.read_bytes(), file


def bytes_per_turn(saver: Any, agent: Agent, turns: range) -> float:
    """Run turns with a code in each, which fill the summary; return how many bytes a turn added."""
    before = saver.size()
    for n in turns:
        ask(agent, f"turn {n} about QX-{7000 + n} " + "x" * 400, max_messages=20, extract="off")
    return float(saver.size() - before) / len(turns)


def test_bytes_per_turn_do_not_grow_with_the_thread(place: tuple[str, str], tmp_path: Path):
    """B066: what a turn adds is the same from when the page and the summary are full, in turn 40 as in turn 240."""
    with saver_of(*place) as saver, open_store(tmp_path / "home", embedder=hash_embedder()) as store:
        agent = compiled(build_agent(model=Talking(then="Yes.")), saver, store)
        _, early, *_, late = (bytes_per_turn(saver, agent, range(n, n + 40)) for n in range(0, 240, 40))
        summary = agent.get_state(config()).values["summary"]
    assert text_tokens(summary) > 1_000 and "QX-7000" not in summary
    assert late <= 1.1 * early and early < 30_000


def test_trimming_keeps_time_travel_within_what_is_kept_and_gives_the_room_back(tmp_path: Path):
    """B066: also the rest of the thread's life goes on."""
    with opened(tmp_path / "home", Talking(then="Yes.")) as agent:
        saver = agent.checkpointer
        assert isinstance(saver, Saver)
        for n in range(8):
            ask(agent, f"q{n}")
            ask(agent, f"other {n}", "other")
        history = list(agent.get_state_history(config()))
        others = len(list(agent.get_state_history(config("other"))))
        gone = saver.trim(["t"], keep=12)
        left = list(agent.get_state_history(config()))
        assert [one.values for one in left] == [one.values for one in history[:12]] and gone == len(history) - 12
        assert len(list(agent.get_state_history(config("other")))) == others
        asked = next(one for one in left if one.next == ("reason",))
        replayed = agent.invoke(None, asked.config)
        assert replayed["messages"][-1].text == "Yes."
        values = asked.values["messages"]
        fork = agent.update_state(asked.config, {"messages": [HumanMessage("edited", id=values[-1].id)]})
        assert agent.invoke(None, fork)["messages"][-2].text == "edited"
        before, after = saver.compact()
        assert after < before and ask(agent, "go on")["messages"][-1].text == "Yes."


def test_trimming_never_takes_what_a_run_has_still_to_do(tmp_path: Path):
    """A thread that waits for a person goes on after it, and in it the work of siblings that was done stays done."""
    done: list[str] = []

    @marked(approval=True)
    def pay(amount: int) -> str:
        """Pay.

        Args:
            amount: how much
        """
        done.append(f"paid {amount}")
        return "paid"

    def note(text: str) -> str:
        """Note.

        Args:
            text: what
        """
        done.append(f"noted {text}")
        return "noted"

    calls = [
        {"name": "pay", "args": {"amount": 5}, "id": "c1"},
        {"name": "note", "args": {"text": "x"}, "id": "c2"},
    ]
    with opened(tmp_path / "home", Talking([calls], then="Done."), tools=[pay, note]) as agent:
        saver = agent.checkpointer
        assert isinstance(saver, Saver)
        paused = ask(agent, "pay 5 and note x")
        assert paused["__interrupt__"] and done == ["noted x"]
        saver.trim(["t"], keep=1)
        saver.compact()
        values = agent.invoke(Command(resume=True), config(), context=Context())
        assert values["messages"][-1].text == "Done." and done == ["noted x", "paid 5"]


def test_the_server_prunes_through_both_calls(tmp_path: Path):
    with opened(tmp_path / "home", Talking(then="Yes.")) as agent:
        saver = agent.checkpointer
        assert isinstance(saver, Saver)
        for _ in range(3):
            ask(agent, "Hi")
        values = agent.get_state(config()).values
        saver.prune(["t"])
        assert len(list(agent.get_state_history(config()))) == 1 and agent.get_state(config()).values == values
        asyncio.run(saver.aprune(["t"], strategy="delete"))
        assert list(agent.get_state_history(config())) == []

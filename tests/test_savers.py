"""graph.savers: one saver for sync and async, from any thread and process, that refuses what it cannot keep."""

import asyncio
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Annotated, Any

import pytest
from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph
from typing_extensions import TypedDict

from graph.savers import BadThread, check_thread
from graph.settings import CannotStart
from graph.sqlite import SCHEMA, Saver, open_saver

WATCHDOG_S = 20  # how long a hang may last before it is called one


def appended(old: list[str], new: list[str]) -> list[str]:
    return old + new


class Words(TypedDict):
    words: Annotated[list[str], appended]


def graph_on(saver: Saver) -> CompiledStateGraph[Any, Any, Any, Any]:
    builder = StateGraph(Words)
    builder.add_node("echo", lambda state: {"words": [state["words"][-1].upper()]})
    builder.add_edge(START, "echo")
    builder.add_edge("echo", END)
    return builder.compile(checkpointer=saver)


def on(thread: Any, **metadata: str) -> dict[str, Any]:
    return {"configurable": {"thread_id": thread}, "metadata": metadata}


def words_of(graph: CompiledStateGraph[Any, Any, Any, Any], thread: str) -> list[str]:
    return list(graph.get_state(on(thread)).values.get("words", []))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "threads.sqlite"


@pytest.fixture
def saver(path: Path) -> Iterator[Saver]:
    with open_saver(path) as opened:
        yield opened


async def test_sync_and_async_calls_mix_on_one_saver_inside_a_loop(saver: Saver) -> None:
    """B065: neither an error nor a hang in any combination."""
    graph = graph_on(saver)
    async with asyncio.timeout(WATCHDOG_S):
        await graph.ainvoke({"words": ["a"]}, on("t"))
        graph.invoke({"words": ["b"]}, on("t"))
        assert graph.get_state(on("t")).values == (await graph.aget_state(on("t"))).values
        graph.update_state(on("t"), {"words": ["c"]})
        await graph.aupdate_state(on("t"), {"words": ["d"]})
        listed = [one.config async for one in graph.aget_state_history(on("t"))]
        assert listed == [one.config for one in graph.get_state_history(on("t"))]
        assert [item.checkpoint["id"] async for item in saver.alist(on("t"), limit=2)] == [
            item.checkpoint["id"] for item in saver.list(on("t"), limit=2)
        ]
        assert words_of(graph, "t") == ["a", "A", "b", "B", "c", "d"]
        await saver.adelete_thread("t")
        assert words_of(graph, "t") == []


def test_a_state_can_be_read_while_the_history_is_walked(saver: Saver) -> None:
    """B065: LangGraph's own list holds its lock until the end."""
    graph = graph_on(saver)
    graph.invoke({"words": ["a"]}, on("t"))
    walk = ThreadPoolExecutor(1).submit(
        lambda: [graph.get_state(one.config).config for one in graph.get_state_history(on("t"))]
    )
    assert len(walk.result(WATCHDOG_S)) == 3


def test_threads_write_at_once_and_lose_nothing(saver: Saver) -> None:
    """B064: the connection is used from every thread."""
    graph = graph_on(saver)

    def turns(thread: str) -> None:
        for number in range(5):
            graph.invoke({"words": [f"w{number}"]}, on(thread))

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(turns, [f"t{n}" for n in range(8)]))
    for n in range(8):
        assert words_of(graph, f"t{n}") == [word for m in range(5) for word in (f"w{m}", f"W{m}")]


@pytest.mark.parametrize("thread", ["x" * 10_000, "a\x00b", "a\nb", "", "  ", "\ud800", "\x7f"])
async def test_an_id_that_cannot_name_a_thread_is_refused_before_anything_is_written(saver: Saver, thread: Any) -> None:
    """B072: the same for sync and async, reading and writing."""
    graph = graph_on(saver)
    with pytest.raises(BadThread):
        graph.invoke({"words": ["a"]}, on(thread))
    with pytest.raises(BadThread):
        await graph.ainvoke({"words": ["a"]}, on(thread))
    with pytest.raises(BadThread) as refused:
        graph.get_state(on(thread))
    assert "\n" not in str(refused.value) and len(str(refused.value)) < 300
    assert saver.threads() == []


def test_a_forgotten_thread_is_refused(saver: Saver) -> None:
    """One thread shared by every caller that forgot theirs would mix conversations."""
    with pytest.raises(BadThread, match="give each conversation its own"):
        graph_on(saver).invoke({"words": ["a"]}, on(None))


@pytest.mark.parametrize("thread", ["https://a/b?c=d#e", "用户一", "../../etc/passwd", "x" * 512, "🎉", "a b", "'; --"])
def test_any_other_text_names_a_thread_of_its_own(saver: Saver, path: Path, thread: str) -> None:
    """B072: and never a file."""
    check_thread(thread)
    graph = graph_on(saver)
    graph.invoke({"words": ["a"]}, on(thread))
    assert words_of(graph, thread) == ["a", "A"] and saver.threads() == [thread]
    assert {one.name.removeprefix(path.name) for one in path.parent.iterdir()} <= {"", "-wal", "-shm"}


def test_threads_are_listed_the_last_written_first(saver: Saver) -> None:
    graph = graph_on(saver)
    for thread in ("one", "two", "one"):
        graph.invoke({"words": ["a"]}, on(thread))
    assert saver.threads() == ["one", "two"]


def test_a_thread_goes_on_after_the_file_was_closed(path: Path) -> None:
    for word in ("a", "b"):
        with open_saver(path) as saver:
            graph_on(saver).invoke({"words": [word]}, on("t"))
    with open_saver(path) as saver:
        assert words_of(graph_on(saver), "t") == ["a", "A", "b", "B"]


def test_deleting_runs_leaves_those_of_others(saver: Saver) -> None:
    graph = graph_on(saver)
    for run, thread in (("r1", "t"), ("r2", "t"), ("r1", "u")):
        graph.invoke({"words": [run]}, on(thread, run_id=run))
    saver.delete_for_runs(["r2", "none"])
    assert words_of(graph, "t") == ["r1", "R1"] and words_of(graph, "u") == ["r1", "R1"]
    saver.delete_for_runs([])
    assert saver.threads() == ["u", "t"]
    asyncio.run(saver.adelete_for_runs(["r1"]))
    assert saver.threads() == []
    with saver.cursor() as cursor:
        assert cursor.execute("SELECT count(*) FROM writes").fetchone() == (0,)


def test_a_file_of_a_newer_version_is_refused_and_left_alone(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(f"PRAGMA user_version = {SCHEMA + 1}")
    before = path.read_bytes()
    with pytest.raises(CannotStart, match="newer Palimpsest") as refused, open_saver(path):
        pass
    assert "\n" not in str(refused.value) and path.read_bytes() == before


@pytest.mark.parametrize("kind", ["text", "folder", "no parent"])
def test_what_is_no_such_file_is_one_clear_line(path: Path, kind: str) -> None:
    if kind == "text":
        path.write_text("not a database, but long enough to look at " * 9)
    elif kind == "folder":
        path.mkdir()
    else:
        path = path.parent / "none" / path.name
    with pytest.raises(CannotStart, match="PALIMPSEST_HOME") as refused, open_saver(path):
        pass
    assert "\n" not in str(refused.value)


PROCESS = """
import sys
sys.path[:0] = sys.argv[4:]
from pathlib import Path
from test_savers import graph_on, on, open_saver
with open_saver(Path(sys.argv[1])) as saver:
    graph = graph_on(saver)
    for number in range(int(sys.argv[3])):
        graph.invoke({"words": [f"w{number}"]}, on(sys.argv[2]))
"""


def test_two_processes_write_one_file_and_lose_no_turn(path: Path) -> None:
    """B063: both also make the file, at the same moment; a third, this one, reads it meanwhile."""
    turns = 20
    here = Path(__file__).parent
    arguments = [sys.executable, "-c", PROCESS, str(path)]
    running = [
        subprocess.Popen([*arguments, thread, str(turns), str(here), str(here.parent)], stderr=subprocess.PIPE)
        for thread in ("one", "two")
    ]
    with open_saver(path) as saver:
        graph = graph_on(saver)
        while any(process.poll() is None for process in running):
            for thread in ("one", "two"):
                words = words_of(graph, thread)
                assert words == [word for n in range(turns) for word in (f"w{n}", f"W{n}")][: len(words)]
            time.sleep(0.05)
        for process, thread in zip(running, ("one", "two"), strict=True):
            assert process.communicate() == (None, b"") and process.returncode == 0
            assert len(words_of(graph, thread)) == 2 * turns

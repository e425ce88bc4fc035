"""graph.parts and what comes of it: a message on the page is stored once, and every checkpoint holds it."""

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from conftest import ask, config
from hypothesis import given, settings
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, HumanMessage
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph import START, StateGraph
from talking import Talking, opened

from graph.agent import CHECKPOINTS, build_agent, compiled
from graph.parts import SMALL, names_in, put_together, taken_apart
from graph.sqlite import Saver, open_saver

SERDE = JsonPlusSerializer(allowed_msgpack_modules=None)
TEXTS = st.text(max_size=20) | st.integers(1, 400).map(lambda n: "过" * n)
VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63)
    | st.floats(allow_nan=False)
    | TEXTS
    | st.binary(max_size=9),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=12,
)
STATES = st.dictionaries(st.text(max_size=8), VALUES | st.lists(TEXTS.map(HumanMessage), max_size=4), max_size=5)


@settings(deadline=None)
@given(STATES)
def test_what_was_taken_apart_comes_back_equal(values: dict[str, Any]):
    left, parts = taken_apart(values, SERDE)
    assert put_together(left, parts, SERDE) == values
    assert {*names_in(left.values())} == parts.keys()
    assert all(
        len(SERDE.dumps_typed(value)[1]) < 60 * len([*names_in([value])]) + SMALL + 60 for value in left.values()
    )


@settings(deadline=None)
@given(st.lists(st.integers(300, 900), unique=True, min_size=1, max_size=8))
def test_an_item_that_two_values_share_is_one_part(sizes: list[int]):
    items = ["x" * size for size in sizes]
    parts = [taken_apart({"a": items[:n], "b": items}, SERDE)[1] for n in range(len(items) + 1)]
    assert all(one.keys() == parts[0].keys() for one in parts) and len(parts[0]) == len(items)


def stored(saver: Saver, text: str) -> int:
    """Count the rows of all tables that hold a text."""
    dump = [line for line in saver.conn.iterdump() if line.startswith("INSERT")]
    return sum(text.encode().hex().upper() in line or text in line for line in dump)


def test_a_message_is_stored_no_more_often_while_it_stays_on_the_page(tmp_path: Path):
    with opened(tmp_path / "home", Talking(then="Yes.")) as agent:
        saver = agent.checkpointer
        assert isinstance(saver, Saver)
        ask(agent, "a text that is seldom: 花生 " + "x" * 300)
        first = stored(saver, "花生")
        for n in range(8):
            ask(agent, f"q{n}")
        assert "花生" in agent.get_state(config()).values["messages"][0].text
        assert stored(saver, "花生") == first <= 6
        kept = [one for one in agent.get_state_history(config()) if one.values.get("messages")]
        assert len(kept) > 30 and all("花生" in one.values["messages"][0].text for one in kept)


def test_a_file_of_before_goes_on(tmp_path: Path):
    """Its checkpoints hold their values themselves; what does not change stays where it is."""
    state = {"messages": [HumanMessage("old " * 200, id="h"), AIMessage("yes", id="a")], "summary": "long " * 200}
    with closing(sqlite3.connect(tmp_path / CHECKPOINTS, check_same_thread=False)) as connection:
        plain = build_agent(model=Talking()).compile(checkpointer=SqliteSaver(connection, serde=SERDE))
        plain.update_state(config(), state, as_node="summarize")
        connection.execute("PRAGMA user_version = 1")
        connection.commit()
    with open_saver(tmp_path / CHECKPOINTS) as saver:
        agent = compiled(build_agent(model=Talking(then="Yes.")), saver, None)
        values = ask(agent, "new " * 200)
        assert agent.get_state(config()).values == values and values["summary"] == state["summary"]
        assert [message.text for message in values["messages"]] == ["old " * 200, "yes", "new " * 200, "Yes."]
        saver.trim(["t"], keep=1)
        assert agent.get_state(config()).values == values


def test_trimming_takes_the_checkpoints_of_a_graph_that_a_tool_ran_and_leaves_its_lasting_memory(tmp_path: Path):
    inner = StateGraph(dict)
    inner.add_node("note", lambda state: {"notes": "x" * 500})
    inner.add_edge(START, "note")
    once, lasting = inner.compile(), inner.compile(checkpointer=True)
    outer = StateGraph(dict)
    outer.add_node("once", lambda state: once.invoke({"n": 1}))
    outer.add_node("lasting", lambda state: lasting.invoke({"n": 2}))
    outer.add_edge(START, "once")
    outer.add_edge("once", "lasting")
    with open_saver(tmp_path / CHECKPOINTS) as saver:
        graph = outer.compile(checkpointer=saver)
        for _ in range(3):
            graph.invoke({}, config())
        places = {place for (place,) in saver.ask("SELECT DISTINCT checkpoint_ns FROM checkpoints")}
        assert sum(":" in place for place in places) == 3 and "lasting" in places
        saver.trim(["t"], keep=1)
        left = {place for (place,) in saver.ask("SELECT DISTINCT checkpoint_ns FROM checkpoints")}
        assert left == {"", "lasting"}


def test_what_was_deleted_leaves_no_part_behind(tmp_path: Path):
    with opened(tmp_path / "home", Talking(then="Yes.")) as agent:
        saver = agent.checkpointer
        assert isinstance(saver, Saver)
        for thread in ("t", "other"):
            ask(agent, "long " * 200, thread)
        saver.trim(["t"], keep=0)
        assert saver.ask("SELECT DISTINCT thread_id FROM checkpoint_parts") == [("other",)]
        ask(agent, "again", "other", max_messages=4)
        saver.trim(["other"], keep=1)
        values = agent.get_state(config("other")).values
        held = {*names_in(taken_apart(values, SERDE)[0].values())}
        assert {name for (name,) in saver.ask("SELECT name FROM checkpoint_parts")} == held
        saver.delete_thread("other")
        assert saver.ask("SELECT * FROM checkpoint_parts") == []


@pytest.mark.parametrize("keep", [1, 3])
def test_a_thread_at_rest_is_whole_after_trimming(tmp_path: Path, keep: int):
    with opened(tmp_path / "home", Talking(then="Yes.")) as agent:
        saver = agent.checkpointer
        assert isinstance(saver, Saver)
        for n in range(6):
            values = ask(agent, f"q{n} " + "x" * 300, max_messages=4, extract="off")
        saver.trim(["t"], keep=keep)
        assert agent.get_state(config()).values == values
        assert len(list(agent.get_state_history(config()))) == keep

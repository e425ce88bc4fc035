"""The whole agent on Postgres and a Chroma server: the same turns, the same memory, the same room for checkpoints."""

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from conftest import answer, ask, config, said
from langchain_core.messages import AIMessage, HumanMessage
from langgraph.checkpoint.postgres import PostgresSaver

from graph.agent import Agent, build_agent, open_agent, open_checkpoints
from graph.history import owner_of, turns_of
from graph.scripted import ScriptedModel
from graph.settings import CannotStart, Settings
from memory.transcript import Transcript
from nodes.context import Context

pytest_plugins = ["store_fixtures"]


@pytest.fixture
def served(tmp_path: Path, postgres_url: str, chroma_url: str) -> Settings:
    from store_fixtures import new_schema  # at the top it would come before pytest has seen the plugin

    database = new_schema(postgres_url)
    return Settings(home=tmp_path, model="rehearsal", database_url=database, chroma_url=chroma_url)


@pytest.fixture
def agent(served: Settings) -> Iterator[Agent]:
    with open_agent(served) as opened:
        yield opened


def test_memory_and_threads_outlive_the_process(served: Settings):
    with open_agent(served) as agent:
        ask(agent, "I'm allergic to peanuts.", "a", user="ann")
    with open_agent(served) as agent:
        assert "peanuts" in answer(agent, "What should I avoid eating?", "b", user="ann")
        assert "don't know" in answer(agent, "What should I avoid eating?", "c", user="bob")
        assert len(ask(agent, "What is 2+2?", "a", user="ann")["messages"]) == 8


def test_no_statement_is_prepared_so_that_a_pooler_may_stand_between(agent: Agent):
    """B071: every connection of ours is asked what is prepared on it, after many turns of the same statements."""
    for n in range(8):
        ask(agent, f"What is {n}+1?")
    with agent.checkpointer.conn.connection() as one, agent.store._db._pool.connection() as other:
        for connection in (one, other):
            (row,) = connection.execute("SELECT count(*) AS n FROM pg_prepared_statements").fetchall()
            assert (row["n"] if isinstance(row, dict) else row[0]) == 0


def test_control_characters_and_lone_surrogates_reach_no_table(agent: Agent):
    """B060."""
    values = ask(agent, "book a \x00 table \ud835 now")
    assert values["messages"][0].text == "book a  table \ufffd now"
    assert Transcript(agent.store, user="me", thread="t").entries()[0].text == "book a  table \ufffd now"


def test_sync_and_async_calls_mix_on_one_saver(agent: Agent):
    """B065."""
    ask(agent, "What is 1+1?")

    async def mixed() -> int:
        await agent.ainvoke(said("What is 2+2?"), config(), context=Context())
        return len((await agent.aget_state(config())).values["messages"]) + len(
            agent.get_state(config()).values["messages"]
        )

    assert asyncio.run(asyncio.wait_for(mixed(), 60)) == 16


def test_trimming_keeps_the_newest_checkpoints_and_what_they_need(served: Settings):
    with open_agent(served, model=ScriptedModel(["One.", "Two.", "Three."])) as agent:
        for text in ("1", "2", "3"):
            ask(agent, text)
        before = agent.get_state(config()).values
        with open_checkpoints(served) as saver:
            assert saver.trim(["t"], keep=2) > 0
            assert len(list(saver.list(config()))) == 2
            assert saver.threads() == ["t"]
            was, now = saver.compact()
            assert now <= was
        assert agent.get_state(config()).values == before


def test_a_database_that_does_not_answer_is_one_line_without_the_password(tmp_path: Path):
    settings = Settings(home=tmp_path, database_url="postgresql://me:hidden-word@127.0.0.1:9/none")
    with pytest.raises(CannotStart, match=r"no Postgres answers at 127.0.0.1/none") as told, open_agent(settings):
        pass
    assert "hidden-word" not in str(told.value)


def test_checkpoints_of_before_go_on(served: Settings):
    """They hold their values themselves; what does not change stays where it is."""
    state = {"messages": [HumanMessage("old " * 200, id="h"), AIMessage("yes", id="a")], "summary": "long " * 200}
    assert served.database_url
    with PostgresSaver.from_conn_string(served.database_url) as saver:
        saver.setup()
        build_agent(model=ScriptedModel([])).compile(checkpointer=saver).update_state(
            config(), state, as_node="summarize"
        )
    with open_agent(served, model=ScriptedModel(["Yes.", "Yes."])) as agent:
        ask(agent, "new")
        values = ask(agent, "newer")
        saver = agent.checkpointer
        saver.trim(["t"], keep=1)
        assert agent.get_state(config()).values == values and values["summary"] == state["summary"]
        assert [message.text for message in values["messages"]] == ["old " * 200, "yes", "new", "Yes.", "newer", "Yes."]


def test_the_turns_of_a_thread_are_told_as_on_sqlite(agent: Agent):
    ask(agent, "我对花生过敏。")
    ask(agent, "2+2?")
    saver: Any = agent.checkpointer
    one, two = turns_of(saver, "t")
    assert (one.question, two.question, two.answer) == ("我对花生过敏。", "2+2?", "2+2 = 4")
    assert [step["node"] for step in two.steps] == ["recall", "reason", "tools", "reason", "remember"]
    saver.trim(["t"], keep=2)
    assert [turn.steps for turn in turns_of(saver, "t")] == [two.steps] and owner_of(saver, "t") == "me"

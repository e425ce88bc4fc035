"""The memory tools through the real graph: what the model may keep, read and forget, and for whom."""

import asyncio
import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from threading import Barrier
from typing import Any

import pytest
from conftest import ask, config, said
from langchain_core.messages import ToolMessage
from langgraph.store.memory import InMemoryStore

from graph.agent import Agent, build_agent, compiled
from graph.scripted import ScriptedModel
from memory.facts import Facts
from memory.ledger import Ledger
from memory.memories import Memories
from nodes import memory_tools
from nodes.context import Context, local
from nodes.dates import absolute
from nodes.memory_tools import NOTHING_FOUND

Scripted = Callable[..., tuple[Agent, ScriptedModel]]


def results(values: dict[str, Any]) -> list[Any]:
    """The results of the turn's calls, read if they are JSON."""
    texts = [str(message.text) for message in values["messages"] if isinstance(message, ToolMessage)]
    return [json.loads(text) if text.startswith("{") else text for text in texts]


def call(name: str, **args: Any) -> dict[str, Any]:
    return {"name": name, "args": args}


def memories(agent: Agent, user: str = "me") -> Memories:
    return Memories(agent.store, user=user)  # type: ignore[arg-type]


def facts(agent: Agent, user: str = "me") -> Facts:
    return Facts(agent.store, user=user)  # type: ignore[arg-type]


@pytest.mark.parametrize("way", ["sync", "async"])
def test_an_agent_that_keeps_saving_the_same_is_told_that_it_is_stored(scripted: Scripted, way: str):
    """B048."""

    def again(messages: Any, tools: Any) -> Any:
        return (
            "Done."
            if any("already stored" in m.text for m in messages[1:])
            else call("memory_save", text="User likes tea")
        )

    agent, _ = scripted(again, again, again)
    question = said("remember that I like tea")
    run = agent.invoke if way == "sync" else lambda *a, **k: asyncio.run(agent.ainvoke(*a, **k))
    values = run(question, config(), context=Context())
    first, second = results(values)
    assert (first["saved"], second["saved"]) == ("new", "already stored") and first["id"] == second["id"]
    assert values["messages"][-1].text == "Done." and [m.seen for m in memories(agent).all()] == [1]


def test_a_relative_time_is_saved_with_its_date(scripted: Scripted):
    agent, _ = scripted(call("memory_save", text="用户下周三去上海出差", about="出差"), "好")
    before = datetime.now(UTC)
    (saved,) = results(ask(agent, "我下周三要去上海出差，帮我记住", timezone="Asia/Shanghai"))
    context = Context(timezone="Asia/Shanghai")
    assert saved["text"] in {absolute("用户下周三去上海出差", local(at, context)) for at in (before, datetime.now(UTC))}
    assert "（20" in saved["text"] and memories(agent).all()[0].about == "出差"


@pytest.mark.parametrize("other", ["someone else's", "made up", "of nobody"])
def test_what_replaces_names_a_memory_of_this_user_or_replaces_nothing(scripted: Scripted, other: str):
    """B121."""
    agent, model = scripted()
    mine, _ = memories(agent).save("The user drinks coffee")
    theirs, _ = memories(agent, "bob").save("The user drinks coffee, black")
    id = {"someone else's": theirs.id, "made up": "m-0123456789ab", "of nobody": "17"}[other]
    model._steps += [call("memory_save", text="The user drinks tea", replaces=id), "ok"]
    (saved,) = results(ask(agent, "I drink tea now", "one"))
    assert "there is no memory with the id" in saved["note"] and saved["saved"] == "new"
    model._steps += [call("memory_save", text="The user drinks milk", replaces=mine.id), "ok"]
    (saved,) = results(ask(agent, "I drink milk now", "two"))
    assert saved["replaced"] == "The user drinks coffee"
    assert {m.text for m in memories(agent).all()} == {"The user drinks tea", "The user drinks milk"}
    assert [m.text for m in memories(agent, "bob").all()] == ["The user drinks coffee, black"]


def test_a_memory_is_read_with_its_history_and_its_messages_word_for_word(scripted: Scripted):
    agent, model = scripted(call("memory_save", text="The user drinks coffee"), "ok")
    ask(agent, "I drink  coffee,\nblack — 黑咖啡 ☕", "monday", user="ann")
    (old,) = memories(agent, "ann").all()
    model._steps += [call("memory_save", text="The user drinks tea", replaces=old.id), "ok"]
    ask(agent, "No more coffee, I drink tea", "friday", user="ann")
    (new,) = memories(agent, "ann").all()
    model._steps += [[call("memory_get", id=new.id), call("memory_get", id=old.id)], "ok"]
    now, past = results(ask(agent, "what do you know of my drinks?", "later", user="ann"))
    assert now["holds"] and not past["holds"] and past["superseded_by"] == new.id
    assert [(one["text"], one["until"]) for one in now["replaced"]] == [("The user drinks coffee", now["since"])]
    assert [(one["thread"], one["text"]) for one in past["sources"]] == [
        ("monday", "I drink  coffee,\nblack — 黑咖啡 ☕")
    ]
    assert [(one["thread"], one["text"]) for one in now["sources"]] == [("friday", "No more coffee, I drink tea")]
    model._steps += [[call("memory_get", id=new.id), call("memory_get", id="m-1")], "ok"]
    refused = results(ask(agent, "and mine?", "bobs", user="bob"))
    assert all("there is no memory with the id" in text for text in refused)


def test_a_memory_of_this_very_turn_shows_its_message(scripted: Scripted):
    def get(messages: Any, tools: Any) -> Any:
        return call("memory_get", id=json.loads(messages[-1].text)["id"])

    agent, _ = scripted(call("memory_save", text="The user likes tea"), get, "ok")
    assert results(ask(agent, "I like tea"))[1]["sources"][0]["text"] == "I like tea"


@pytest.mark.parametrize(
    ("question", "is_forgotten"),
    [
        ("Please forget that I like liquorice", True),
        ("forget it", True),
        ("Delete everything you remember of my taste for sweets", True),
        ("忘掉这个吧", True),
        ("What do you know about me?", False),
        ("Don't forget that I like liquorice", False),
        ("Forget my phone number 555-0142", False),
        ("别忘了我喜欢甘草", False),
    ],
)
def test_only_what_the_user_asks_to_forget_is_forgotten(scripted: Scripted, question: str, is_forgotten: bool):
    agent, model = scripted()
    mine, _ = memories(agent).save("The user likes liquorice")
    memories(agent, "bob").save("The user likes liquorice")
    model._steps += [call("memory_forget", id=mine.id), "ok"]
    (result,) = results(ask(agent, question))
    assert (memories(agent).get(mine.id) is None) == is_forgotten
    assert ("forgotten" in result) if is_forgotten else str(result).startswith("Error (")
    assert len(memories(agent, "bob").all()) == 1


@pytest.mark.parametrize("id", ["m-0123456789ab", "17", "theirs", "*", "' OR 1=1 --"])
def test_an_id_that_is_not_the_users_forgets_nothing(scripted: Scripted, id: str):
    """B121, B122."""
    agent, model = scripted()
    mine, _ = memories(agent).save("The user likes tea")
    theirs, _ = memories(agent, "bob").save("The user likes milk")
    model._steps += [call("memory_forget", id=theirs.id if id == "theirs" else id), "ok"]
    (result,) = results(ask(agent, "forget everything"))
    assert "there is no memory with the id" in result
    assert memories(agent).get(mine.id) and memories(agent, "bob").get(theirs.id)


def test_what_is_forgotten_in_the_turn_in_which_it_was_said_is_not_extracted_later(scripted: Scripted):
    def forget(messages: Any, tools: Any) -> Any:
        return call("memory_forget", id=json.loads(messages[-1].text)["id"])

    agent, _ = scripted(call("memory_save", text="The user likes tea"), forget, "ok", "hi")
    ask(agent, "I like tea. No wait, forget that")
    ask(agent, "hello", extract="off")
    assert memories(agent).all(past=True) == []
    source = agent.get_state(config()).values["messages"][0].id
    assert Ledger(agent.store, user="me").unread("t", [[source]]) == []  # type: ignore[arg-type]


def test_facts_are_set_added_and_ended_and_stand_in_every_prompt(scripted: Scripted):
    agent, model = scripted()
    turns = [
        ("I'm allergic to peanuts", "peanuts", "now"),
        ("I'm also allergic to 虾", "虾", "now"),
        ("I am no longer allergic to peanuts", "Peanuts", "no longer"),
    ]
    for n, (text, value, how) in enumerate(turns):
        model._steps += [call("fact_set", key="Allergy" if n else "allergy", value=value, how=how), "ok"]
        (result,) = results(ask(agent, text, str(n), user="ann"))
    assert [one["value"] for one in result["holds_now"]] == ["虾"]
    assert [(fact.value, fact.thread) for fact in facts(agent, "ann").history("allergy")] == [
        ("peanuts", "0"),
        ("虾", "1"),
    ]
    model._steps += [call("fact_set", key="allergy", value="eggs", how="no longer"), "ok"]
    (result,) = results(ask(agent, "I was never allergic to eggs", "x", user="ann"))
    assert "has no value 'eggs'; what holds is: '虾'" in result
    model._steps += ["ok"]
    assert ask(agent, "hi", "y", user="ann")["recalled"]["facts"] == [("allergy", "虾")]
    model._steps += ["ok"]
    assert ask(agent, "hi", "z", user="bob")["recalled"]["facts"] == []


@pytest.mark.parametrize("text", ["hello", "我喜欢什么"])
def test_recall_tells_nothing_found_from_failed(scripted: Scripted, text: str):
    agent, _ = scripted([call("recall", query=text), call("recall", query=text, as_of="last year")], "ok")
    nothing, refused = results(ask(agent, text, memory="tool"))
    assert nothing == {"found": 0, "memories": [], "note": NOTHING_FOUND}
    assert "expected a date like 2026-05-01" in refused

    class Broken(InMemoryStore):
        def search(self, *args: Any, **options: Any) -> Any:
            raise OSError("/secret/path is gone")

    with ScriptedModel([call("recall", query=text), "ok"]) as other:
        broken = compiled(build_agent(model=other), None, Broken())
        (failed,) = results(broken.invoke(said(text), context=Context(memory="tool")))
    assert "failed (OSError); this does not mean that nothing is there" in failed and "secret" not in failed


def test_recall_shows_dates_scores_and_what_held_at_a_date(scripted: Scripted):
    agent, model = scripted()
    then = datetime.now(UTC) - timedelta(days=30)
    for user in ("ann", "bob"):
        Memories(agent.store, user=user).save(f"{user} drinks black coffee", at=then)  # type: ignore[arg-type]
        Facts(agent.store, user=user).set("city", f"{user}'s Berlin", at=then)  # type: ignore[arg-type]
    (old,) = memories(agent, "ann").all()
    memories(agent, "ann").save("ann drinks green tea", replaces=old.id, about="drinks")
    facts(agent, "ann").set("city", "Lyon")
    day = (then + timedelta(days=1)).date().isoformat()
    model._steps += [
        [call("recall", query="what does ann drink"), call("recall", query="what does ann drink", as_of=day)],
        "ok",
    ]
    now, past = results(ask(agent, "what do I drink?", user="ann"))
    assert [(m["text"], m["about"], set(m)) for m in now["memories"]] == [
        ("ann drinks green tea", "drinks", {"id", "date", "text", "about", "score"})
    ]
    assert [m["text"] for m in past["memories"]] == ["ann drinks black coffee"] and "facts" not in now
    assert past["memories"][0]["date"] == then.date().isoformat()
    assert [(f["key"], f["value"]) for f in past["facts"]] == [("city", "ann's Berlin")]


@pytest.mark.parametrize("way", ["sync", "async"])
def test_several_recalls_of_one_answer_run_in_parallel(way: str):
    """Each waits for the two others."""

    class Meeting(InMemoryStore):
        barrier = Barrier(3, timeout=60)

        def search(self, *args: Any, **options: Any) -> Any:
            if options.get("query"):
                self.barrier.wait()
            return []

    with ScriptedModel([[call("recall", query=query) for query in ("a", "b", "c")], "ok"]) as model:
        agent = compiled(build_agent(model=model), None, Meeting())
        run = agent.invoke if way == "sync" else lambda *a, **k: asyncio.run(agent.ainvoke(*a, **k))
        values = run(said("a, b and c?"), context=Context(memory="tool"))
    assert [result["found"] for result in results(values)] == [0, 0, 0]


@pytest.mark.parametrize("blank", [" ", "\n", "\u200b"])
@pytest.mark.parametrize(
    ("name", "args"),
    [
        ("memory_save", {"text": None}),
        ("fact_set", {"key": "city", "value": None}),
        ("fact_set", {"key": None, "value": "Lyon"}),
        ("core_memory_append", {"label": "human", "content": None}),
        ("team_save", {"team": "dock", "text": None}),
    ],
)
def test_a_blank_is_refused_in_words_that_the_model_can_use(scripted: Scripted, name: str, args: Any, blank: str):
    given = {key: blank if value is None else value for key, value in args.items()}
    agent, _ = scripted(call(name, **given), "ok")
    values = ask(agent, "remember nothing", teams=("dock",), team_writes=("dock",))
    [result] = [message for message in values["messages"] if isinstance(message, ToolMessage)]
    assert result.status == "error" and result.text.startswith("Error (business)"), result.text


def test_the_tools_say_when_they_are_for():
    told = {
        tool.name: tool
        for tool in (
            memory_tools.recall,
            memory_tools.memory_save,
            memory_tools.memory_get,
            memory_tools.memory_forget,
            memory_tools.fact_set,
        )
    }
    assert all(
        any(word in tool.description for word in ("Call it when", "Use it when", "Only when", "Read one"))
        for tool in told.values()
    )
    assert told["recall"].args["k"]["default"] == 3
    assert not any("user" in tool.args for tool in told.values()), "whose it is comes from the run"

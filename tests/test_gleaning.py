"""Extraction through the real graph: when it is due, what it may keep, what becomes of a failure; nothing twice."""

import asyncio
import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from datetime import datetime
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from conftest import ask, config, said
from langchain_core.messages import HumanMessage
from talking import NOTHING, Talking, filed, opened

from graph.agent import Agent
from memory.facts import Facts
from memory.ledger import Ledger
from memory.memories import Memories, Source
from nodes.context import Context
from nodes.dates import absolute

Opened = Callable[..., tuple[Agent, Talking]]
USERS = ("ann", "bob")


@pytest.fixture
def talking(tmp_path: Path) -> Iterator[Opened]:
    with ExitStack() as stack:

        def make(**reflexes: Any) -> tuple[Agent, Talking]:
            model = Talking(then="Noted.", **reflexes)
            return stack.enter_context(opened(tmp_path / "home", model)), model

        yield make


def lines(request: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in request.split("\n")]


def found(*statements: dict[str, Any], facts: tuple[dict[str, Any], ...] = ()) -> str:
    return json.dumps({"memories": statements, "facts": facts}, ensure_ascii=False)


def echo(request: str) -> str:
    """Extract every message whole, word for word."""
    return found(*({"text": line["text"], "source": line["id"]} for line in lines(request) if "id" in line))


def always(**entry: Any) -> Callable[[str], str]:
    """Extract one statement, whatever is said, out of the last message."""
    return lambda request: found({**entry, "source": lines(request)[-1]["id"]})


def texts(agent: Agent, user: str = "me", **options: Any) -> list[str]:
    return sorted(memory.text for memory in Memories(agent.store, user=user).all(**options))  # type: ignore[arg-type]


def shown(model: Talking) -> list[str]:
    """The texts of messages in all requests, in order."""
    rows = [row for request in model.asked("extract") for row in request.split("\n") if row.startswith('{"id"')]
    return [json.loads(row)["text"] for row in rows]


def told(values: dict[str, Any]) -> dict[str, Any]:
    return next(step["detail"] for step in values["steps"] if step["node"] == "remember")


def close(agent: Agent, thread: str = "t", **context: Any) -> dict[str, Any]:
    values: dict[str, Any] = agent.invoke({"messages": [], "close": True}, config(thread), context=Context(**context))
    return values


@pytest.mark.parametrize(
    ("policy", "times"),
    [
        ("turn", [1, 2, 3, 4, 5, 6, 6]),
        ("compaction", [0, 0, 1, 1, 2, 2, 3]),
        ("close", [0] * 6 + [1]),
        ("off", [0] * 7),
    ],
)
def test_extraction_runs_when_it_is_due_and_reads_every_message_once(talking: Opened, policy: str, times: list[int]):
    """Also those that a cut took off the page before: they are read from the transcript."""
    agent, model = talking(extract=echo)
    counts = []
    for n in range(6):
        ask(agent, f"I collect stamps of {n}", extract=policy, max_messages=4)
        counts.append(len(model.asked("extract")))
    close(agent, extract=policy, max_messages=4)
    counts.append(len(model.asked("extract")))
    assert [count > 0 for count in counts] == [count > 0 for count in times]
    expected = [] if policy == "off" else [f"I collect stamps of {n}" for n in range(6)]
    assert shown(model) == expected and texts(agent) == sorted(expected)


@pytest.mark.parametrize("how", ["replay", "fork", "again", "async"])
def test_nothing_is_extracted_twice(talking: Opened, how: str):
    agent, model = talking(extract=echo)
    for text in ("I like tea", "I live in Oslo"):
        ask(agent, text, extract="turn")
    history = list(agent.get_state_history(config()))
    before = [state for state in history if state.next == ("remember",)][-1]
    context = Context(extract="turn")
    if how == "replay":
        agent.invoke(None, before.config, context=context)
    elif how == "fork":
        edited = [HumanMessage("I like milk", id=before.values["messages"][0].id)]
        agent.invoke(None, agent.update_state(before.config, {"messages": edited}), context=context)
    elif how == "again":
        ask(agent, "And you?", extract="turn")
    else:
        asyncio.run(agent.ainvoke(said("And you?"), config(), context=context))
    extra = {"fork": ["I like milk"], "replay": []}.get(how, ["And you?"])
    assert shown(model) == ["I like tea", "I live in Oslo", *extra]
    assert [memory.seen for memory in Memories(agent.store, user="me").all()] == [1] * (3 if how == "fork" else 2)  # type: ignore[arg-type]


@pytest.mark.parametrize("answer", ["", "no", "[1]", '{"memories": [', ConnectionError("down")])
@pytest.mark.parametrize("policy", ["turn", "close"])
def test_a_failure_is_recorded_and_tried_again(talking: Opened, answer: Any, policy: str):
    answers = [answer, answer]
    agent, _ = talking(extract=lambda request: answers.pop() if answers else echo(request))
    ask(agent, "I like tea", extract=policy)
    values = close(agent, extract=policy) if policy == "close" else ask(agent, "hi", "other", extract="off")
    (failing,) = Ledger(agent.store, user="me").failures()  # type: ignore[arg-type]
    assert (failing.thread, failing.times) == ("t", 1) and failing.why
    assert Ledger(agent.store, user="other").failures() == [] and texts(agent) == []  # type: ignore[arg-type]
    if policy == "close":
        assert told(values)["failed"] == failing.why and not told(values).get("closed")
        assert told(close(agent, extract=policy))["closed"]
    else:
        ask(agent, "And you?", extract=policy)
    assert texts(agent) == ["I like tea"] and Ledger(agent.store, user="me").failures() == []  # type: ignore[arg-type]


def test_of_half_an_answer_the_whole_part_is_kept_and_the_rest_tried_once_more(talking: Opened):
    def half(request: str) -> str:
        return echo(request)[:-20] if len(model.asked("extract")) < 3 else echo(request)

    agent, model = talking(extract=half)
    ask(agent, "I like tea", extract="off")
    values = ask(agent, "I live in Oslo", extract="turn")
    assert len(model.asked("extract")) == 2 and told(values)["failed"] and texts(agent) == ["I like tea"]
    ask(agent, "And you?", extract="turn")
    assert texts(agent) == ["I like tea", "I live in Oslo"]
    assert {memory.seen for memory in Memories(agent.store, user="me").all()} == {1}, "the same message counts once"  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("message", "statement"),
    [
        ("If I moved to Rome, I would learn Italian.", "The user moved to Rome."),
        ("If I moved to Rome, I would learn Italian.", "The user learns Italian."),
        ("My boss said 'I hate tea' again.", "The user hates tea."),
        ("Do I like tea?", "The user likes tea."),
        ("I don't like tea.", "The user likes tea."),
        ("I like tea.", "The user doesn't like tea."),
        ("Please summarise this:\n\nI live in Rome and love cats.", "The user lives in Rome."),
        ("```\nI live in Rome\n```\nwhat does it print", "The user lives in Rome."),
        ("Forget that I live in Rome.", "The user lives in Rome."),
        ("Maybe I will move to Rome.", "The user will move to Rome."),
        ("ok thanks", "User said ok thanks"),
        ("如果我搬到罗马，我会学意大利语。", "用户搬到罗马。"),
        ("我老板说“我讨厌喝茶”。", "用户讨厌喝茶。"),
        ("我喜欢喝茶吗？", "用户喜欢喝茶。"),
        ("我不喜欢喝茶。", "用户喜欢喝茶。"),
        ("请总结这封信：\n我住在罗马，喜欢猫。", "用户住在罗马。"),
        ("请忘掉我住在罗马。", "用户住在罗马。"),
        ("我可能会搬到罗马。", "用户搬到罗马。"),
    ],
)
def test_what_the_user_does_not_state_is_not_kept_even_if_the_model_extracts_it(
    talking: Opened, message: str, statement: str
):
    """B128: suppositions, quotes, questions, denials and pasted texts, in both languages."""
    agent, _ = talking(extract=always(text=statement))
    ask(agent, message, extract="turn")
    assert texts(agent) == []


@pytest.mark.parametrize(
    ("message", "statement"),
    [
        ("I live in Berlin, is that far?", "The user lives in Berlin."),
        ("I don't like coffee, I like tea.", "The user likes tea."),
        ('My dog is called "Rex".', "The user's dog is called Rex."),
        ("Maybe I will move to Rome.", "The user may perhaps move to Rome."),
        ("If it rains I take the bus.", "If it rains, the user takes the bus."),
        ("I can't eat peanuts.", "The user must not eat peanuts."),
        ("我不喜欢咖啡，我喜欢茶。", "用户喜欢茶。"),
        ("我住在杭州，离上海远吗？", "用户住在杭州。"),
        ("如果下雨，我就坐公交。", "如果下雨，用户坐公交。"),
    ],
)
def test_what_the_user_states_is_kept(talking: Opened, message: str, statement: str):
    agent, _ = talking(extract=always(text=statement))
    ask(agent, message, extract="turn")
    assert texts(agent) == [statement]


@pytest.mark.parametrize(
    ("message", "query"), [("我下周三要去上海出差，帮我记住", "上海 出差"), ("I met Ann last Friday.", "met Ann")]
)
def test_a_statement_has_the_date_of_its_message_and_the_users_language(talking: Opened, message: str, query: str):
    """B131: the model left the words as they were."""
    agent, model = talking(extract=echo)
    ask(agent, message, extract="off")
    entry = datetime.now(ZoneInfo("Asia/Shanghai"))
    ask(agent, "ok", "t", extract="turn", timezone="Asia/Shanghai")
    (text,) = [text for text in texts(agent) if text != "ok"]
    assert text == absolute(message, entry) != message
    assert f'"date": "{entry:%Y-%m-%d %A}"' in model.asked("extract")[0]
    assert [memory.text for memory in Memories(agent.store, user="me").search(query, limit=1)] == [text]  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("replaces", "left"),
    [
        ("k1", ["The user drinks green tea now."]),
        ("k9", None),
        ("m-123", None),
        ("", None),
        (17, None),
        (None, None),
        (["k1"], None),
    ],
)
def test_what_the_model_names_is_superseded_and_what_it_makes_up_is_not(talking: Opened, replaces: Any, left: Any):
    """B121: ids are good for the request that showed them."""
    agent, model = talking(extract=lambda request: NOTHING)
    for user in USERS:
        Memories(agent.store, user=user).save("The user drinks black coffee.")  # type: ignore[arg-type]
    model._reflexes["extract"] = always(text="The user drinks green tea now.", replaces=replaces)
    ask(agent, "I drink green tea now, no more black coffee", user="ann", extract="turn")
    assert '"known": "k1"' in model.asked("extract")[0]
    both = ["The user drinks black coffee.", "The user drinks green tea now."]
    assert texts(agent, "ann") == (left or both) and texts(agent, "ann", past=True) == both
    assert texts(agent, "bob") == both[:1]


def test_no_answer_of_the_model_deletes_anything(talking: Opened):
    """B118, B121: what mem0's prompt would answer."""
    agent, model = talking(extract=echo)
    ask(agent, "I am vegetarian", extract="turn")
    events = [
        ("17", "UPDATE", "x"),
        ("0", "DELETE", ""),
        ("k1", "DELETE", "I am vegetarian"),
        ("", "ADD", "new"),
        (0, "NONE", ""),
    ]
    answer = {
        "memory": [{"id": id, "event": event, "text": text} for id, event, text in events],
        "memories": [],
        "facts": [],
    }
    model._reflexes["extract"] = lambda request: json.dumps(answer)
    ask(agent, "I am vegetarian", "later", extract="turn")
    model._reflexes["extract"] = echo
    ask(agent, "I am vegetarian", "last", extract="turn")
    (memory,) = Memories(agent.store, user="me").all(past=True)  # type: ignore[arg-type]
    assert (memory.text, memory.until, memory.seen, len(memory.sources)) == ("I am vegetarian", None, 2, 2)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("My name is Chen Yun", "Sorry, my name is Chen Yao"),
        ("I live in Berlin", "I moved to Lyon in May"),
        ("我叫陈云", "抱歉，我叫陈瑶"),
    ],
)
def test_the_latest_of_two_that_contradict_is_recalled_and_the_old_one_is_history(
    talking: Opened, one: str, other: str
):
    """B119: without the model's help; what has nothing to do with it is untouched."""
    agent, _ = talking(extract=echo)
    for thread, text in enumerate(("I like trams", one, other)):
        ask(agent, text, str(thread), extract="turn")
    assert texts(agent) == sorted(["I like trams", other]) and texts(agent, past=True) == sorted(
        ["I like trams", one, other]
    )
    recalled = ask(agent, one, "new", extract="off", recall_threshold=-1)["recalled"]["memories"]
    assert {memory["text"] for memory in recalled} == {"I like trams", other}


def test_what_ends_normally_or_not_is_recorded_once(talking: Opened):
    """B133: a normal answer, an error of the model, a cancelled run."""
    agent, model = talking(extract=echo)
    ask(agent, "my dog is called Rex", extract="turn")
    model._steps[:] = [ConnectionError("down")]
    assert ask(agent, "my cat is called Mimi", "error", extract="turn")["stop_reason"] == "model_error"
    stream = agent.stream(
        said("my fish is called Blub"), config("cut"), context=Context(extract="turn"), stream_mode="updates"
    )
    assert "recall" in next(stream)
    stream.close()
    ask(agent, "hello?", "cut", extract="turn")
    ask(agent, "hello?", "cut", extract="turn")
    names = ["my cat is called Mimi", "my dog is called Rex", "my fish is called Blub"]
    assert [text for text in texts(agent) if "called" in text] == names
    assert len(filed(agent.store, thread="cut")) == 5
    recalled = ask(agent, "what is my dog called?", "new", extract="turn", recall_threshold=-1)["recalled"]["memories"]
    assert recalled[0]["text"] == "my dog is called Rex"


def test_what_was_forgotten_is_not_extracted_again(talking: Opened):
    agent, model = talking(extract=echo)
    ask(agent, "I like liquorice", extract="off")
    message = agent.get_state(config()).values["messages"][0].id
    memories = Memories(agent.store, user="me")  # type: ignore[arg-type]
    kept, _ = memories.save("The user likes liquorice", sources=[Source(thread="t", message=message)])
    assert memories.forget(kept.id)
    ask(agent, "I live in Oslo", extract="turn")
    assert texts(agent) == ["I live in Oslo"] and shown(model) == ["I live in Oslo"]


def test_secrets_are_masked_or_left_out_as_the_policy_says(talking: Opened):
    agent, _ = talking(extract=echo)
    ask(agent, "my api_key=abcdef123456 is for the harbour", "one", extract="turn")
    ask(agent, "my api_key=abcdef123456 is for the station", "two", extract="turn", secrets="refuse")
    assert texts(agent) == ["my api_key=[secret] is for the harbour"]


def test_facts_are_kept_with_how_they_hold_and_where_they_were_stated(talking: Opened):
    def facts(request: str) -> str:
        row = lines(request)[-1]
        values = {"Mia": "now", "Ben": "also", "Zoe": ["?"]}
        name = next((name for name in values if name in row["text"]), "Mia")
        how = "no longer" if "moved out" in row["text"] else values[name]
        return found(facts=({"key": "children at home", "value": name, "how": how, "source": row["id"]},))

    agent, _ = talking(extract=facts)
    for n, text in enumerate(("Mia lives with me", "Ben too", "and Zoe", "Mia moved out", "Max moved out")):
        ask(agent, text, str(n), extract="turn", user="ann")
    kept = Facts(agent.store, user="ann").get("Children at home")  # type: ignore[arg-type]
    assert [(fact.value, fact.thread) for fact in kept] == [("Ben", "1"), ("Zoe", "2")]
    assert Facts(agent.store, user="bob").all() == []  # type: ignore[arg-type]

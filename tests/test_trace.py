"""The trace: every turn tells its story in typed steps, streamed as they happen and kept in the state."""

import asyncio
import json
import typing
from typing import Any

import pytest
from conftest import ask, config, said
from langchain_core.messages import AIMessage
from langgraph.types import Command
from pydantic import TypeAdapter
from talking import Talking, opened, summary_of
from tool_graphs import WAYS, Session, broken_call, call, session

from graph.agent import Agent
from memory.facts import Facts
from memory.memories import Memories
from nodes import trace
from nodes.context import Context
from nodes.contract import marked
from nodes.failures import ToolProblem

pytestmark = pytest.mark.filterwarnings("ignore:tool '")
BOTH = pytest.mark.parametrize("way", WAYS)


def streamed(agent: Agent, given: Any, way: str, thread: str = "t", **context: Any) -> list[Any]:
    """Run a turn; return its custom events."""
    options: Any = {"context": Context(**context), "stream_mode": "custom"}

    async def collected() -> list[Any]:
        return [part async for part in agent.astream(given, config(thread), **options)]

    return asyncio.run(collected()) if way == "ainvoke" else list(agent.stream(given, config(thread), **options))


def steps_of(agent: Agent, thread: str = "t") -> list[trace.Step]:
    """Return the steps in the state, checked against their documented types."""
    steps = agent.get_state(config(thread)).values["steps"]
    TypeAdapter(list[trace.Step]).validate_python(steps, strict=True)
    for step in steps:
        assert_documented(step["detail"], DETAILS[step["node"]])
    return steps


DETAILS: dict[str, Any] = {
    typing.get_args(typing.get_type_hints(one)["node"])[0]: typing.get_type_hints(one)["detail"]
    for one in typing.get_args(trace.Step)
}


def assert_documented(detail: dict[str, Any], kind: Any) -> None:
    """Fail on a key that the documented type lacks, or must have; in calls as well."""
    assert kind.__required_keys__ <= detail.keys() <= set(typing.get_type_hints(kind))
    for one in detail.get("calls", []) if kind is trace.ToolsDetail else []:
        assert_documented(one, trace.CallDetail)


def detail(s: Session, node: str) -> dict[str, Any]:
    """Return what the newest step of a node tells."""
    return typing.cast(Any, [step["detail"] for step in steps_of(s.agent) if step["node"] == node][-1])


@BOTH
def test_the_stream_tells_each_step_as_it_begins_and_ends_and_ends_with_what_the_state_keeps(way):
    with session("Hi.", call("calculator", expression="2+2"), "It is 4.", way=way) as s:
        for text in ("Hello", "2+2?"):
            events = streamed(s.agent, said(text), way)
            ended = [one["step"] for one in events if one["trace"] == "ended"]
            began = [one["node"] for one in events if one["trace"] == "began"]
            assert ended == steps_of(s.agent) and began == [step["node"] for step in ended]
        kinds = [one["trace"] for one in events]
    assert kinds == ["began", "ended"] * 5 and began == ["recall", "reason", "tools", "reason", "remember"]
    assert events[4]["call"] == {"id": "c1", "tool": "calculator", "args": '{"expression": "2+2"}'}


@BOTH
def test_parallel_calls_all_begin_with_their_own_call_and_none_is_told_twice(way):
    calls = [call("calculator", f"c{n}", expression=f"{n}+1") for n in range(6)]
    with session(calls, "Done.", way=way) as s:
        events = streamed(s.agent, said("all"), way)
        kept = [one["args"] for step in steps_of(s.agent) if step["node"] == "tools" for one in step["detail"]["calls"]]
    began = [one["call"]["args"] for one in events if one["trace"] == "began" and one["node"] == "tools"]
    assert sorted(began) == sorted(kept) == [f'{{"expression": "{n}+1"}}' for n in range(6)]


def test_recall_tells_the_query_the_hits_with_scores_and_how_many_facts(tmp_path):
    with opened(tmp_path / "home", Talking(then="Yes.")) as agent:
        for user in ("ann", "bob"):
            Memories(agent.store, user=user).save(f"{user} 喜欢龙井茶")
        Facts(agent.store, user="ann").set("allergy", "peanuts")
        ask(agent, "谁喜欢龙井茶？", user="ann", recall_threshold=-1.0)
        told = steps_of(agent)[0]["detail"]
        ask(agent, "谁喜欢龙井茶？", "b", user="bob", memory="tool")
        off = steps_of(agent, "b")[0]["detail"]
    assert (told["query"], told["status"], told["facts"]) == ("谁喜欢龙井茶？", "found", 1)
    (hit,) = told["memories"]
    assert hit["text"] == "ann 喜欢龙井茶" and isinstance(hit["score"], float) and hit["why"] and hit["at"]
    assert (off["status"], off["memories"], off["facts"]) == ("off", [], 0)


def test_a_long_or_dirty_question_is_told_short_and_clean():
    """B040, B060: the state's steps are as clean as its messages."""
    with session("Yes.") as s:
        s.turn("a\x00b \ud83d" + "长" * 10_000)
        query = detail(s, "recall")["query"]
    assert query.startswith("ab \ufffd长") and len(query) == trace.SHOWN_CHARS


@BOTH
@pytest.mark.parametrize(
    ("made", "gate", "kind", "attempts"),
    [
        (call("nothing", x=1), "unknown_tool", "unknown_tool", 0),
        (call("calculator", sum="1"), "invalid_arguments", "invalid_arguments", 0),
        (broken_call(), "invalid_arguments", "invalid_arguments", 0),
        (call("business"), "", "business", 1),
        (call("broken"), "", "internal", 1),
        (call("flaky"), "", "", 2),
    ],
    ids=["unknown", "arguments", "cut off", "business", "internal", "retried"],
)
def test_a_call_tells_the_gate_that_refused_it_or_how_it_ended(way, made, gate, kind, attempts):
    tries: list[int] = []

    def business() -> str:
        """Fail with a reason."""
        raise ToolProblem("no room")

    def broken() -> str:
        """Fail inside."""
        raise KeyError("sk-secret-secret")

    def flaky() -> str:
        """Work at the second attempt."""
        tries.append(1)
        if len(tries) == 1:
            raise ConnectionError
        return "深圳"

    tools = [business, broken, marked(idempotent=True, transient=(ConnectionError,))(flaky)]
    with session(made, "Done.", tools=tools, way=way) as s:
        s.turn()
        (told,) = detail(s, "tools")["calls"]
    assert (told["gate"], told["kind"], told["attempts"]) == (gate, kind, attempts)
    assert told["ok"] is (kind == "") and told["chars"] > 0 and "sk-secret" not in str(told)
    assert bool(told["report"]) is (kind == "internal")


@BOTH
def test_a_refusal_by_a_person_and_a_repetition_are_gates_too(way):
    @marked(approval=True)
    def send(to: str) -> str:
        """Send."""
        return "sent"

    again = call("calculator", expression="1+1")
    with session(call("send", to="Ann"), again, again, again, "Done.", tools=[send], way=way) as s:
        assert [one["trace"] for one in streamed(s.agent, said("Go"), way)][-1] == "began"  # it waits
        s.resume(False)
        told = [one["detail"]["calls"][0] for one in steps_of(s.agent) if one["node"] == "tools"]
    assert [one["gate"] for one in told] == ["refused", "", "", "repeated"]


def test_reason_tells_what_was_sent_and_what_the_provider_counted():

    usage: Any = {"input_tokens": 777, "output_tokens": 3, "total_tokens": 780}
    with session(AIMessage("One.", usage_metadata=usage), "", "Two.", ConnectionError("gone")) as s:
        s.turn("1")
        one = detail(s, "reason")
        assert (one["number"], one["sent"], one["counted"], one["stop_reason"]) == (1, 2, 777, "answered")
        assert one["tokens"] > 0 and one["page_tokens"] >= one["tokens"] and one["tools"] >= 6 and one["calls"] == []
        s.turn("2")
        two = detail(s, "reason")
        assert two["objection"] and two["counted"] == 0 and two["sent"] == 4
        s.turn("3")
        three = detail(s, "reason")
        assert three["stop_reason"] == "model_error" and "cannot be reached" in three["why"]


def test_reason_tells_what_was_repaired_shortened_and_left_out():
    """Also after an edit of the state by hand, which asks in passing where it would go on."""
    with session(ConnectionError("no summary"), "Yes.") as s:
        page: list[Any] = [("user", "x" * 6000), ("assistant", "")] * 8
        s.agent.update_state(config(), {"messages": page, "owner": "me"}, as_node="remember")
        s.turn("and now?", token_budget=4000, extract="off", tools=("calculator",), max_messages=100)
        changes = detail(s, "reason")["changes"]
    assert any("left out" in one for one in changes) and any("empty" in one for one in changes)


def test_a_cut_tells_what_left_and_what_the_summary_became_and_extraction_what_it_found(tmp_path):
    def extract(request: str) -> str:
        source = request.split('"id": "')[1].split('"')[0]
        memory, fact = {"text": "Der Hund heißt Rex"}, {"key": "dog", "value": "Rex"}
        return json.dumps({"memories": [{**memory, "source": source}], "facts": [{**fact, "source": source}]})

    model = Talking(then="Yes.", extract=extract, summary=lambda request: summary_of("the dog is Rex"))
    with opened(tmp_path / "home", model) as agent:
        ids = []
        for text in ("Der Hund heißt Rex, dog Rex", "2", "3"):
            ids += [message.id for message in ask(agent, text, max_messages=4)["messages"]]
        told = {step["node"]: step["detail"] for step in steps_of(agent)}
        summary = agent.get_state(config()).values["summary"]
    cut = told["summarize"]
    assert cut["removed"] == len(cut["ids"]) > 0 and set(cut["ids"]) < set(ids)
    assert cut["summary"] == summary and "the dog is Rex" in summary and cut["parts"] == 1
    assert told["remember"]["memories"] == ["Der Hund heißt Rex"] and told["remember"]["facts"] == ["dog: Rex"]
    assert told["remember"]["filed"] == 2


def test_remember_tells_which_blocks_the_turn_changed_and_how_full_they_are():
    edits = [
        call("core_memory_append", "c1", label="human", content="住在深圳"),
        call("core_memory_append", "c2", label="x", content="?"),
    ]
    with session(edits, "Noted.", "Yes.") as s:
        s.turn("我住在深圳。?")
        told = detail(s, "remember")
        s.turn("And?")
        assert "blocks" not in detail(s, "remember")
    assert told["blocks"] == ["human 4/2000, version 1"]


def test_what_could_not_be_done_says_why(tmp_path):
    model = Talking(then="Yes.", extract=lambda request: "no JSON", summary=lambda request: ConnectionError("gone"))
    with opened(tmp_path / "home", model) as agent:
        for text in ("1", "2", "3"):
            ask(agent, text, max_messages=4)
        told = {step["node"]: step["detail"] for step in steps_of(agent)}
        assert told["remember"]["failed"] and told["summarize"]["why"] and told["summarize"]["ids"] == []


@BOTH
def test_the_trace_of_a_turn_that_went_on_after_a_pause_has_all_of_it(way):
    @marked(approval=True)
    def send(to: str) -> str:
        """Send."""
        return "sent"

    with session(call("send", to="Ann"), "Sent.", tools=[send], way=way) as s:
        streamed(s.agent, said("Go"), way)
        streamed(s.agent, Command(resume=True), way)
        assert [step["node"] for step in steps_of(s.agent)] == ["recall", "reason", "tools", "reason", "remember"]


def test_the_steps_of_two_users_hold_nothing_of_each_other(tmp_path):
    with opened(tmp_path / "home", Talking(then="Yes.")) as agent:
        for user in ("ann", "bob"):
            Memories(agent.store, user=user).save(f"the secret of {user} is tea")
        for user in ("ann", "bob"):
            ask(agent, "What is the secret tea?", user, user=user, recall_threshold=-1.0)
        assert "ann" in str(steps_of(agent, "ann")) and "bob" not in str(steps_of(agent, "ann"))
        assert "bob" in str(steps_of(agent, "bob")) and "ann" not in str(steps_of(agent, "bob"))

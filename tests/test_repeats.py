"""Calls that lead nowhere: the same again, and steps in which nothing could run."""

from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage
from tool_graphs import WAYS, broken_call, call, record, results, session

from nodes.contract import marked
from nodes.repeats import signature, times_before

SEARCH = {"name": "search", "args": {"q": "x", "k": 1}, "id": "c1"}


@pytest.mark.parametrize(
    "same",
    [
        {"k": 1, "q": "x"},
        {"q": " x ", "k": 1},
        {"q": "x\n", "k": 1},
    ],
)
def test_order_of_keys_and_blanks_make_no_other_call(same):
    """B047."""
    assert signature({**SEARCH, "args": same}) == signature(SEARCH)


@pytest.mark.parametrize("other", [{"q": "y", "k": 1}, {"q": "x", "k": 2}, {"q": "x"}, {"q": "x", "k": "1"}])
def test_other_arguments_are_another_call(other):
    assert signature({**SEARCH, "args": other}) != signature(SEARCH)


def test_code_that_differs_in_its_indentation_is_another_call():
    code = "if a:\n    b\n"
    assert signature({**SEARCH, "args": {"t": code}}) != signature({**SEARCH, "args": {"t": code.replace("  ", " ")}})


def test_servers_that_use_an_id_again_hide_no_repetition():
    """B032, B047."""
    answers = [AIMessage("", tool_calls=[{**SEARCH, "type": "tool_call"}]) for _ in range(3)]
    assert times_before([HumanMessage("x"), *answers], SEARCH) == 2


def search(q: str) -> str:
    """Search.

    Args:
        q: what for
    """
    return "error: bad index"


@pytest.mark.parametrize("way", WAYS)
def test_the_third_identical_call_is_told_so_instead_of_run(way):
    """B047."""
    ran: list[str] = []

    def search(q: str) -> str:
        """Search.

        Args:
            q: what for
        """
        ran.append(q)
        return "[]"

    calls = [call("search", f"c{n}", q=q) for n, q in enumerate(["x", "x ", " x", "y"])]
    with session(*calls, "Nothing.", tools=[search], way=way) as s:
        values = s.turn()
    kinds = [record(message)["kind"] for message in results(values)]
    assert kinds == ["", "", "repeated", ""] and ran == ["x", "x ", "y"]
    assert "Use it, or change the arguments" in results(values)[2].text
    assert values["stop_reason"] == "answered"


@pytest.mark.parametrize("most", [1, 3])
def test_how_often_the_same_call_runs_is_a_setting(most):
    """B047."""
    calls = [call("search", f"c{n}", q="x") for n in range(4)]
    with session(calls, "Nothing.", tools=[search]) as s:
        kinds = [record(message)["kind"] for message in results(s.turn(max_repeats=most))]
    assert kinds == [""] * most + ["repeated"] * (4 - most)


def test_alternating_calls_are_counted_each():
    """B047: A/B/A/B."""
    calls = [call("search", f"c{n}", q="ab"[n % 2]) for n in range(6)]
    with session(*calls, "Nothing.", tools=[search]) as s:
        values = s.turn()
    assert [record(message)["kind"] for message in results(values)] == ["", "", "", "", "repeated", "repeated"]


def test_identical_calls_of_one_answer_are_counted_too():
    with session([call("search", f"c{n}", q="x") for n in range(3)], "Nothing.", tools=[search]) as s:
        values = s.turn()
    assert [record(message)["kind"] for message in results(values)] == ["", "", "repeated"]


def test_a_new_turn_counts_anew():
    steps: list[Any] = [call("search", "c1", q="x"), call("search", "c2", q="x"), "No."]
    with session(*steps, *steps, tools=[search]) as s:
        s.turn()
        values = s.turn()
    assert [record(message)["kind"] for message in results(values)] == [""] * 4


def test_a_repeatable_tool_is_exempt():
    """B047: polling."""
    calls = [call("search", f"c{n}", q="x") for n in range(5)]
    with session(*calls, "Still nothing.", tools=[marked(repeatable=True)(search)]) as s:
        values = s.turn()
    assert [record(message)["kind"] for message in results(values)] == [""] * 5


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(
    ("kind", "calls"),
    [
        ("repeated", [call("search", f"c{n}", q="x") for n in range(5)]),
        ("unknown_tool", [call("web_serach", f"c{n}", q=str(n)) for n in range(3)]),
        ("invalid_arguments", [call("search", f"c{n}", query=str(n)) for n in range(3)]),
    ],
)
def test_after_three_steps_in_which_nothing_could_run_an_answer_is_asked_for_without_tools(way, kind, calls):
    """B027, B047: the loop is broken with a note to the model, then a final answer."""
    with session(*calls, "I could not find it.", tools=[search], way=way) as s:
        values = s.turn(max_steps=20)
        sent, tools = s.model.calls[-1]
    assert [record(message)["kind"] for message in results(values)][-3:] == [kind] * 3
    assert tools == [] and "no more tool calls" in sent[0].text
    assert (values["stop_reason"], values["messages"][-1].text) == ("stuck", "I could not find it.")


def test_one_call_that_ran_is_progress():
    steps: list[Any] = [[call("nope", "a"), call("search", "b", q=str(n))] for n in range(4)]
    with session(*steps, "Found.", tools=[search]) as s:
        assert s.turn()["stop_reason"] == "answered"


@pytest.mark.parametrize("way", WAYS)
def test_a_turn_of_broken_calls_gets_a_second_chance_then_an_explicit_failure(way):
    """B028, B031: and the thread heals."""
    with session(broken_call("c1"), broken_call("c2"), "Hello again.", way=way) as s:
        values = s.turn()
        assert values["stop_reason"] == "broken_calls" and "twice" in values["messages"][-1].text
        assert s.turn("Hi")["messages"][-1].text == "Hello again."
        sent, _ = s.model.calls[-1]
    assert [message.type for message in sent] == ["system", "human", "ai", "tool", "ai", "human"]

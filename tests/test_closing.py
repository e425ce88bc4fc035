"""The end of a conversation: an abstract in the catalogue, which later threads of the same user can recall."""

from pathlib import Path
from typing import Any

import pytest
from conftest import ask, config, said
from talking import Talking, filed, opened

from graph.agent import Agent
from memory.catalogue import Catalogue
from nodes.context import Context


def close(agent: Agent, text: str = "", thread: str = "t", **context: Any) -> dict[str, Any]:
    """End a conversation, with a last question if there is a text."""
    values: dict[str, Any] = agent.invoke(
        {**(said(text) if text else {}), "close": True}, config(thread), context=Context(**context)
    )
    return values


def threads(agent: Agent, user: str = "me") -> dict[str, Any]:
    assert agent.store is not None
    return {thread.id: thread for thread in Catalogue(agent.store, user=user).all()}


def told(values: dict[str, Any]) -> dict[str, Any]:
    return next(step["detail"] for step in values["steps"] if step["node"] == "remember")


def test_a_closed_thread_has_a_dated_abstract_and_all_of_it_is_filed(tmp_path: Path):
    model = Talking(then="Yes.", abstract=lambda request: "<think>hm</think>They booked berth 12 in Oslo.")
    with opened(tmp_path / "home", model) as agent:
        ask(agent, "Book berth 12 in Oslo")
        values = close(agent)
        thread = threads(agent)["t"]
        assert told(values)["closed"] and values["stop_reason"] == "closed" and not values["close"]
        assert (
            thread.abstract == "They booked berth 12 in Oslo." and thread.closed >= thread.used and not thread.is_open
        )
        assert [text for texts in filed(agent.store).values() for text in texts] == ["Book berth 12 in Oslo", "Yes."]
        assert "berth 12" in model.asked("abstract")[0]


def test_a_later_thread_recalls_the_abstract_and_no_other_user_does(tmp_path: Path):
    model = Talking(then="Yes.", abstract=lambda request: "They booked berth 12 in Oslo.")
    with opened(tmp_path / "home", model) as agent:
        ask(agent, "Book berth 12", user="ann")
        close(agent, user="ann")
        mine = ask(agent, "which berth in Oslo", "later", user="ann")["recalled"]["memories"]
        same = ask(agent, "which berth in Oslo", "t", user="ann")["recalled"]["memories"]
        other = ask(agent, "which berth in Oslo", "bobs", user="bob")["recalled"]["memories"]
    assert [(one["id"], one["text"]) for one in mine] == [("t", "They booked berth 12 in Oslo.")]
    assert same == [] and other == []
    sent = [calls[0][0].text for calls in model.calls]
    assert '"text": "They booked berth 12 in Oslo."' in sent[1]
    assert not any("They booked" in text for text in sent[2:])


def test_closing_twice_writes_one_abstract(tmp_path: Path):
    model = Talking(then="Yes.")
    with opened(tmp_path / "home", model) as agent:
        ask(agent, "Hi")
        close(agent)
        first = threads(agent)["t"]
        assert told(close(agent)) == {"filed": 0, "closed": False, "why": "nothing was said since"}
        assert threads(agent)["t"] == first and len(model.asked("abstract")) == 1


def test_a_thread_in_which_something_was_said_again_is_open_and_can_be_closed_again(tmp_path: Path):
    abstracts = iter(["first", "second"])
    model = Talking(then="Yes.", abstract=lambda request: next(abstracts))
    with opened(tmp_path / "home", model) as agent:
        ask(agent, "Hi")
        close(agent)
        ask(agent, "One thing more")
        assert threads(agent)["t"].is_open and threads(agent)["t"].abstract == "first"
        close(agent)
        assert threads(agent)["t"].abstract == "second" and not threads(agent)["t"].is_open


def test_closing_an_empty_thread_calls_no_model_and_leaves_no_trace(tmp_path: Path):
    model = Talking()
    with opened(tmp_path / "home", model) as agent:
        assert told(close(agent))["closed"] is False
        assert threads(agent) == {} and not model.asked("abstract")


def test_closing_with_a_question_answers_it_first(tmp_path: Path):
    model = Talking(["One last answer."])
    with opened(tmp_path / "home", model) as agent:
        values = close(agent, "One last thing?")
        assert values["messages"][-1].text == "One last answer." and values["stop_reason"] == "answered"
        assert "One last answer." in model.asked("abstract")[0] and not threads(agent)["t"].is_open


@pytest.mark.parametrize("bad", [ConnectionError("down"), "", " \n", "<think>hm", "Error: 429", "错误：请稍后再试"])
def test_an_abstract_that_failed_leaves_the_thread_open(tmp_path: Path, bad: Any):
    replies = [bad]
    model = Talking(then="Yes.", abstract=lambda request: replies[-1])
    with opened(tmp_path / "home", model) as agent:
        ask(agent, "Hi")
        assert told(close(agent))["closed"] is False and threads(agent)["t"].is_open
        replies.append("Now.")
        assert told(close(agent))["closed"] and threads(agent)["t"].abstract == "Now."


def test_what_was_not_read_yet_is_extracted_at_the_end(tmp_path: Path):
    model = Talking(then="Yes.")
    with opened(tmp_path / "home", model) as agent:
        ask(agent, "My dog is called Rex")
        assert not model.asked("extract")
        close(agent)
        assert "called Rex" in model.asked("extract")[0] and len(model.asked("extract")) == 1


def test_an_abstract_is_built_from_the_summary_and_the_page_within_the_window(tmp_path: Path):
    model = Talking(then="Yes.", window=2500, summary=lambda request: "## Open items\n- pay invoice INV-2041")
    with opened(tmp_path / "home", model) as agent:
        for n in range(4):
            ask(agent, f"q{n} " + "words " * 300, max_messages=4, token_budget=4000, extract="off")
        assert told(close(agent, token_budget=4000, extract="off"))["closed"]
        (request,) = model.asked("abstract")
        assert "INV-2041" in request and "q3" in request

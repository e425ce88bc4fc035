"""`run`: one turn in a script, with numbered steps, and an exception for the step limit only if asked for."""

import asyncio
import subprocess
import sys
from typing import Any

import pytest
from langgraph.types import Command
from tool_graphs import WAYS, Session, call, record, session

import graph
from graph import Context, StepLimit, Turn
from nodes.contract import marked

pytestmark = pytest.mark.filterwarnings("ignore:tool '")

ADD = call("calculator", expression="2+2")
BOTH = pytest.mark.parametrize("way", WAYS)


def run(s: Session, text: Any, **options: Any) -> Turn:
    """Run in the way of the session."""
    if s.way == "invoke":
        return graph.run(s.agent, text, **options)
    return asyncio.run(graph.arun(s.agent, text, **options))


@BOTH
def test_a_turn_has_its_messages_numbered_steps_and_the_final_text(way):
    with session("Hi.", ADD, "It is 4.", way=way) as s:
        run(s, "Hello", thread="t")
        turn = run(s, "2+2?", thread="t")
    assert [message.type for message in turn.messages] == ["human", "ai", "tool", "ai"]
    assert turn.messages[0].text == "2+2?" and turn.text == "It is 4."
    assert [(step.number, step.node) for step in turn.steps] == list(
        enumerate(["recall", "reason", "tools", "reason", "remember"], 1)
    )
    assert turn.steps[2].detail["calls"][0]["tool"] == "calculator" and all(step.ms >= 0 for step in turn.steps)
    assert (turn.stop_reason, turn.pauses) == ("answered", [])


@BOTH
def test_the_step_limit_raises_only_if_asked_to_and_carries_the_turn(way):
    """B045."""
    with session(ADD, "Only 4.", ADD, "Only 4.", way=way) as s:
        context = Context(max_steps=2)
        assert run(s, "Add", thread="a", context=context).stop_reason == "max_steps"
        with pytest.raises(StepLimit, match=r"Only 4\.") as caught:
            run(s, "Add", thread="b", context=context, raise_on_limit=True)
    assert caught.value.turn.text == "Only 4." and record(caught.value.turn.messages[2])["ok"]
    assert [step.number for step in caught.value.turn.steps] == [1, 2, 3, 4, 5]


@BOTH
def test_an_answer_in_time_raises_nothing(way):
    with session("Hi.", way=way) as s:
        assert run(s, "Hello", thread="t", raise_on_limit=True).text == "Hi."


@BOTH
def test_a_failure_is_an_answer_with_its_reason(way):
    with session(ConnectionError("no"), way=way) as s:
        turn = run(s, "Hello", thread="t")
    assert turn.stop_reason == "model_error" and turn.text


@BOTH
def test_a_turn_that_waits_for_a_person_says_for_what_and_goes_on(way):
    @marked(approval=True)
    def send(to: str) -> str:
        """Send."""
        return f"sent to {to}"

    with session(call("send", to="Ann"), "Sent.", tools=[send], way=way) as s:
        waiting = run(s, "Send it", thread="t")
        assert (waiting.text, waiting.stop_reason) == ("", "")
        assert [pause.value["args"] for pause in waiting.pauses] == [{"to": "Ann"}]
        turn = run(s, Command(resume=True), thread="t")
    assert turn.text == "Sent." and turn.messages[2].text == "sent to Ann" and turn.pauses == []


@BOTH
def test_the_turns_of_two_users_and_threads_stay_apart(way):
    with session("Hi Ann.", "Hi Bob.", way=way) as s:
        run(s, "I am Ann", thread="a", context=Context(user="ann"))
        turn = run(s, "I am Bob", thread="b", context=Context(user="bob"))
    assert [message.text for message in turn.messages] == ["I am Bob", "Hi Bob."]


def test_naming_the_package_loads_nothing_until_a_name_is_used():
    code = "import sys, graph; assert 'langgraph' not in sys.modules; graph.run; assert 'langgraph' in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


def test_every_name_that_the_package_offers_is_there():
    assert all(getattr(graph, name) for name in graph.__all__)

"""Approval: a tool so marked waits for a person; what has run is not run again; a person's edit is checked too."""

from typing import Any

import pytest
from conftest import config
from langchain_core.messages import ToolMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Interrupt, interrupt
from tool_graphs import WAYS, Session, call, record, result, results, session

from nodes.contract import marked

pytestmark = [pytest.mark.parametrize("way", WAYS), pytest.mark.filterwarnings("ignore:tool '")]


class Ledger:
    """Tools with side effects that are counted."""

    def __init__(self) -> None:
        self.sent: list[tuple[str, int]] = []
        self.written: list[str] = []

    def tools(self) -> list[Any]:
        def send(to: str, amount: int) -> str:
            """Send money."""
            self.sent.append((to, amount))
            return f"sent {amount} to {to}"

        def write_file(text: str) -> str:
            """Write a file."""
            self.written.append(text)
            return "written"

        return [marked(approval=True)(send), write_file]


def paused(s: Session, **context: Any) -> list[Interrupt]:
    """Run a turn that pauses; return its interrupts."""
    return list(s.turn(**context)["__interrupt__"])


SEND = call("send", to="Ann", amount="100")


def test_the_pause_shows_tool_and_arguments_and_nothing_has_run(way):
    ledger = Ledger()
    with session(SEND, "Sent.", tools=ledger.tools(), way=way) as s:
        (asked,) = paused(s)
        assert asked.value["tool"] == "send" and asked.value["args"] == {"to": "Ann", "amount": 100}
        assert asked.value["about"] == "Send money." and asked.value["answers"] == ["approve", "edit", "refuse"]
        assert ledger.sent == []
        s.resume(True)


APPROVED = [
    "同意",
    "批准。",
    {"action": "approve"},
    {"decisions": [{"type": "approve"}]},
    [{"type": "accept", "args": None}],
]
"""As Chinese says it, LangChain's middleware, and its inbox."""


@pytest.mark.parametrize(
    "answer", [True, "approve", " Yes ", "ok", {"decision": "approve"}, {"decision": True}, *APPROVED]
)
def test_approved_it_runs_once_with_the_arguments_shown(way, answer):
    ledger = Ledger()
    with session(SEND, "Sent.", tools=ledger.tools(), way=way) as s:
        paused(s)
        values = s.resume(answer)
    assert ledger.sent == [("Ann", 100)] and result(values).text == "sent 100 to Ann"


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (False, "no reason was given"),
        ("no", "no reason was given"),
        ({"decision": "refuse"}, "no reason was given"),
        ({"decision": "refuse", "reason": "too much"}, "too much"),
        ({"decision": None, "reason": "later"}, "later"),
        ("拒绝", "no reason was given"),
        ({"decision": "refuse", "reason": "太贵"}, "太贵"),
        ({"decisions": [{"type": "reject", "message": "too much"}]}, "too much"),
        ([{"type": "ignore", "args": None}], "no reason was given"),
        ([{"type": "response", "args": "ask me tomorrow"}], "ask me tomorrow"),
        ("Ann is not my friend", "Ann is not my friend"),
        (0, "no reason was given"),
        (1, "1"),
        ([], "no reason was given"),
        (["maybe"], "['maybe']"),
    ],
)
def test_refused_it_does_not_run_and_the_model_is_told_why(way, answer, reason):
    ledger = Ledger()
    with session(SEND, "I did not.", tools=ledger.tools(), way=way) as s:
        paused(s)
        values = s.resume(answer)
    got = result(values)
    assert ledger.sent == [] and (got.status, record(got)["kind"]) == ("error", "refused")
    assert got.text == f"Error (refused): the user did not allow 'send': {reason}"
    assert values["stop_reason"] == "answered"


def test_edited_it_runs_with_the_edit_coerced_as_any_arguments(way):
    ledger = Ledger()
    with session(SEND, "Sent.", tools=ledger.tools(), way=way) as s:
        paused(s)
        values = s.resume({"decision": "edit", "args": {"to": "Bob", "amount": "5"}})
    assert ledger.sent == [("Bob", 5)]
    told = '(The user changed the arguments to {"to": "Bob", "amount": 5} before it ran.)'
    assert result(values).text == f"{told}\nsent 5 to Bob"


@pytest.mark.parametrize(
    ("edit", "problem"),
    [
        ({"decision": "edit", "args": {"to": "Bob", "amount": "lots"}}, "amount: "),
        ({"decision": "edit", "args": {"to": "Bob", "sum": 5}}, "unknown: sum"),
        ({"decision": "edit"}, "needs the arguments"),
        ("edit", "needs the arguments"),
        ("修改", "needs the arguments"),
        ({"approved": True}, "answer with"),
        ({"decisions": [{"type": "edit", "edited_action": {"name": "send", "args": {"sum": 5}}}]}, "unknown: sum"),
        ([{"type": "edit", "args": {"action": "send", "args": {"sum": 5}}}], "unknown: sum"),
    ],
)
def test_an_edit_that_does_not_fit_is_asked_for_again_with_the_problem(way, edit, problem):
    ledger = Ledger()
    with session(SEND, "Sent.", tools=ledger.tools(), way=way) as s:
        paused(s)
        (again,) = s.resume(edit)["__interrupt__"]
        assert problem in again.value["problem"] and ledger.sent == []
        s.resume({"decision": "edit", "args": {"to": "Bob", "amount": 7}})
    assert ledger.sent == [("Bob", 7)]


@pytest.mark.parametrize("answer", [True, False])
def test_siblings_that_ran_are_not_run_again_after_the_pause(way, answer):
    """B054."""
    ledger = Ledger()
    calls = [call("write_file", "c1", text="a"), {**SEND, "id": "c2"}, call("write_file", "c3", text="b")]
    with session(calls, "Done.", tools=ledger.tools(), way=way) as s:
        paused(s)
        assert sorted(ledger.written) == ["a", "b"]
        values = s.resume(answer)
    assert sorted(ledger.written) == ["a", "b"] and len(ledger.sent) == answer
    assert [one.tool_call_id for one in results(values)] == ["c1", "c2", "c3"]
    assert [one.status for one in results(values)] == ["success", "success" if answer else "error", "success"]


def test_two_approvals_are_asked_for_at_once_and_answered_each(way):
    """B054."""
    ledger = Ledger()
    calls = [call("send", "c1", to="Ann", amount=1), call("send", "c2", to="Bob", amount=2)]
    with session(calls, "Half.", tools=ledger.tools(), way=way) as s:
        asked = {one.value["args"]["to"]: one.id for one in paused(s)}
        values = s.resume({asked["Ann"]: "approve", asked["Bob"]: {"decision": "refuse", "reason": "no Bob"}})
    first, second = results(values)
    assert ledger.sent == [("Ann", 1)]
    assert first.text == "sent 1 to Ann" and second.text.endswith("no Bob")


def test_answers_that_come_twice_too_late_or_for_nothing_run_nothing_again(way):
    """B054: a stale button, a retried request."""
    ledger = Ledger()
    calls = [call("send", "c1", to="Ann", amount=1), call("send", "c2", to="Bob", amount=10**30)]
    with session(calls, "Both.", tools=ledger.tools(), way=way) as s:
        asked = {one.value["args"]["to"]: one.id for one in paused(s)}
        s.resume({"f" * 32: True})
        assert ledger.sent == []
        for again in (True, True, False, {"decision": "edit", "args": {"to": "Eve", "amount": 9}}):
            s.resume({asked["Ann"]: again})
        assert ledger.sent == [("Ann", 1)]
        s.resume({asked["Ann"]: True, asked["Bob"]: True})
        for late in (True, {asked["Bob"]: True}):
            values = s.resume(late)
    assert ledger.sent == [("Ann", 1), ("Bob", 10**30)] and values["messages"][-1].text == "Both."
    assert [one.text for one in results(values)] == ["sent 1 to Ann", f"sent {10**30} to Bob"]


def test_two_approvals_can_be_answered_one_after_the_other(way):
    """B054: two approvals in a loop."""
    ledger = Ledger()
    calls = [call("send", "c1", to="Ann", amount=1), call("send", "c2", to="Bob", amount=2)]
    with session(calls, "Both.", tools=ledger.tools(), way=way) as s:
        asked = {one.value["args"]["to"]: one.id for one in paused(s)}
        left = s.resume({asked["Bob"]: True})["__interrupt__"]
        assert [one.value["args"]["to"] for one in left] == ["Ann"] and ledger.sent == [("Bob", 2)]
        values = s.resume({asked["Ann"]: True})
    assert ledger.sent == [("Bob", 2), ("Ann", 1)]
    assert [one.text for one in results(values)] == ["sent 1 to Ann", "sent 2 to Bob"]


def test_arguments_that_do_not_fit_are_told_before_anybody_is_asked(way):
    ledger = Ledger()
    with session(call("send", to="Ann"), "I need an amount.", tools=ledger.tools(), way=way) as s:
        values = s.turn()
    assert "__interrupt__" not in values and record(result(values))["kind"] == "invalid_arguments"


def test_instead_of_an_answer_a_new_message_leaves_the_thread_usable(way):
    """B049."""
    ledger = Ledger()
    with session(SEND, "As you like.", tools=ledger.tools(), way=way) as s:
        paused(s)
        values = s.turn("never mind")
        sent, _ = s.model.calls[-1]
    assert values["messages"][-1].text == "As you like." and ledger.sent == []
    assert [message.type for message in sent] == ["system", "human", "ai", "tool", "human"]
    assert "may or may not have run" in sent[3].text


class Awaited(InMemorySaver):
    """A saver that can only be awaited, as the one that Studio's server gives."""

    def list(self, *given: Any, **options: Any) -> Any:
        raise NotImplementedError

    async def alist(self, *given: Any, **options: Any) -> Any:
        for kept in super().list(*given, **options):
            yield kept


@pytest.mark.parametrize("memory", [True, False])
@pytest.mark.parametrize("saver", [InMemorySaver, Awaited])
def test_what_siblings_gave_is_there_when_a_new_message_comes_instead_of_an_answer(way, saver, memory):
    """B049: a result that exists is never reported as missing; in the next turns too, and in a fork."""
    ledger = Ledger()
    calls = [call("write_file", "c1", text="a"), {**SEND, "id": "c2"}, call("write_file", "c3", text="b")]
    steps = [calls, "As you like.", "Bye.", "Another way."]
    with session(*steps, tools=ledger.tools(), way=way, memory=memory, saver=saver()) as s:
        paused(s)
        fork = s.agent.get_state(config()).config
        for text in ("never mind", "bye"):
            values = s.turn(text)
            told = [message.text for message in s.model.calls[-1][0] if isinstance(message, ToolMessage)]
            assert (told[0], told[2]) == ("written", "written") and "may or may not have run" in told[1]
        assert [one.tool_call_id for one in results(values)] == ["c1", "c3"]
        s.agent.invoke({"messages": [("user", "or else?")]}, fork)
        told = [message.text for message in s.model.calls[-1][0] if isinstance(message, ToolMessage)]
        assert (told[0], told[2]) == ("written", "written")
    assert sorted(ledger.written) == ["a", "b"] and ledger.sent == []


def test_a_tool_may_ask_by_itself(way):
    def book(room: str) -> str:
        """Book a room."""
        return f"{room} for {interrupt('For whom?')}"

    with session(call("book", room="R1"), "Booked.", tools=[book], way=way) as s:
        (asked,) = paused(s)
        assert asked.value == "For whom?"
        assert result(s.resume("Ann")).text == "R1 for Ann"


@pytest.mark.parametrize("seconds", [0.05])
def test_the_time_of_a_persons_answer_is_not_the_tools(way, seconds):
    ledger = Ledger()
    with session(SEND, "Sent.", tools=ledger.tools(), way=way) as s:
        paused(s, tool_timeout_s=seconds)
        assert record(result(s.resume(True, tool_timeout_s=30)))["ok"] is True

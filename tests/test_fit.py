"""nodes.fit: what the model is shown fits, is valid and holds the question; what is stored is left as it was."""

import pytest
from histories import many_calls, refused, turns
from hypothesis import given, settings
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, ToolMessage

from nodes.fit import FLOOR, SMALLEST, fit
from nodes.text import last_human, text_of
from nodes.tokens import message_tokens
from nodes.valid import valid_messages

HISTORIES = turns() | st.sampled_from((2, 30, 100)).map(many_calls)
BUDGETS = st.sampled_from((0, 100, 500, 1000, 2000, 4000, 50_000))
CALL_FLOOR = 48
"""Tokens of a call's name and of the ends of its arguments."""


def tokens(messages: list[AnyMessage]) -> int:
    return sum(map(message_tokens, messages))


def least(messages: list[AnyMessage]) -> int:
    """What the question and the newest group of its turn need when every text in them is as short as can be."""
    newest = max((n for n, m in enumerate(messages) if not isinstance(m, ToolMessage)), default=0)
    shown = [messages[last_human(messages)], *messages[max(newest, last_human(messages) + 1) :]]
    calls = sum(len(message.tool_calls) for message in shown if isinstance(message, AIMessage))
    return sum(min(message_tokens(message), SMALLEST) for message in shown) + calls * CALL_FLOOR


@settings(deadline=None, max_examples=50)
@given(HISTORIES, BUDGETS)
def test_what_fits_is_valid_and_within_the_budget(stored: list[AnyMessage], budget: int):
    """B001, B015: also in a turn that is going on, with a hundred calls at once."""
    given_ = valid_messages(stored).messages
    fitted = fit(given_, budget).messages
    assert refused(fitted) is None
    assert tokens(fitted) <= max(budget, FLOOR)


@settings(deadline=None, max_examples=50)
@given(HISTORIES, BUDGETS)
def test_the_question_is_there_and_whole_if_it_and_the_newest_step_can_be(stored: list[AnyMessage], budget: int):
    """B005: the tool's output gives way, not the question."""
    given_ = valid_messages(stored).messages
    question = given_[last_human(given_)]
    fitted = fit(given_, budget).messages
    shown = next(message for message in fitted if message.id == question.id)
    assert text_of(shown).strip()
    if message_tokens(question) <= SMALLEST or message_tokens(question) + least(given_) <= budget // 2:
        assert shown == question


@settings(deadline=None, max_examples=50)
@given(HISTORIES, BUDGETS)
def test_no_call_is_shown_without_its_result_and_the_order_stays(stored: list[AnyMessage], budget: int):
    given_ = valid_messages(stored).messages
    fitted = fit(given_, budget).messages
    ids = [message.id for message in given_]
    places = [ids.index(message.id) for message in fitted]
    assert places == sorted(set(places))
    called = [call["id"] for message in fitted if isinstance(message, AIMessage) for call in message.tool_calls]
    assert sorted(called) == sorted(m.tool_call_id for m in fitted if isinstance(m, ToolMessage))


@settings(deadline=None, max_examples=50)
@given(HISTORIES, BUDGETS)
def test_fitting_what_fits_changes_nothing(stored: list[AnyMessage], budget: int):
    given_ = valid_messages(stored).messages
    once = fit(given_, max(budget, least(given_)))
    twice = fit(once.messages, max(budget, least(given_)))
    assert twice.messages == once.messages and twice.dropped == twice.shortened == 0


@settings(deadline=None, max_examples=50)
@given(HISTORIES, BUDGETS)
def test_the_input_is_left_as_it_was_and_the_counts_are_true(stored: list[AnyMessage], budget: int):
    given_ = valid_messages(stored).messages
    before = [message.model_copy(deep=True) for message in given_]
    fitted = fit(given_, budget)
    assert given_ == before
    assert fitted.dropped == len(given_) - len(fitted.messages)
    changed = [message for message in fitted.messages if message not in given_]
    assert fitted.shortened == len(changed)


@settings(deadline=None, max_examples=50)
@given(HISTORIES, BUDGETS)
def test_what_is_left_of_earlier_turns_begins_with_a_user_message(stored: list[AnyMessage], budget: int):
    """B003."""
    fitted = fit(valid_messages(stored).messages, budget).messages
    assert isinstance(fitted[0], HumanMessage)


def test_a_large_message_keeps_head_and_tail_and_names_the_way_to_the_whole():
    """B005: the pointer's count is of the whole, however often it was cut."""
    call = {"name": "retrieve", "args": {"q": "clause 12"}, "id": "c1"}
    text = "".join(f"clause {n}. " for n in range(3000))
    page = [HumanMessage("what does clause 12 say?", id="h"), AIMessage("", tool_calls=[call], id="a")]
    page.append(ToolMessage(text, tool_call_id="c1", id="t1"))
    shown = fit(page, 600).messages
    head, rest = text_of(shown[2]).split("\n[… ", 1)
    missing, tail = int(rest.split(" ", 1)[0]), rest.split("…]\n", 1)[1]
    assert shown[:2] == page[:2] and "tool_result(id='t1')" in rest
    assert text.startswith(head) and text.endswith(tail) and len(head) > 100 < len(tail) + 50
    assert len(head) + missing + len(tail) == len(text)


def test_long_arguments_of_a_call_are_cut_and_stay_an_object():
    args = {"text": "word " * 5000, "path": "a.txt", "lines": list(range(3000))}
    page = [HumanMessage("save it", id="h"), AIMessage("", tool_calls=[{"name": "save", "args": args, "id": "c"}])]
    page.append(ToolMessage("saved", tool_call_id="c"))
    (_, answer, _) = fit(page, 1000).messages
    assert isinstance(answer, AIMessage) and answer.tool_calls[0]["args"]["path"] == "a.txt"
    assert set(answer.tool_calls[0]["args"]) == set(args) and message_tokens(answer) < 300


def test_old_turns_leave_before_anything_of_the_turn_at_hand():
    old = [message for n in range(20) for message in (HumanMessage(f"q{n} " * 50), AIMessage(f"a{n} " * 50))]
    fitted = fit([*old, HumanMessage("now? " * 50, id="now")], 500)
    assert fitted.messages[-1].id == "now" and fitted.shortened == 0
    assert fitted.messages[:-1] == old[-len(fitted.messages) + 1 :] and 0 < fitted.dropped < len(old)


@pytest.mark.parametrize("kind", ["image_url", "audio", "file"])
def test_a_picture_that_has_no_room_is_described(kind: str):
    page = [HumanMessage([{"type": "text", "text": "look"}, {"type": kind, kind: {"url": "x"}}], id="p")]
    page += [AIMessage("nice", id="a"), HumanMessage("and now?", id="h")]
    assert text_of(fit(page, 300).messages[0]) == f"look\n[{kind.removesuffix('_url')}]"


def test_a_list_without_a_question_and_an_empty_one_are_fitted_too():
    assert fit([], 10).messages == []
    shown = fit([AIMessage("word " * 4000, id="a")], 200).messages
    assert len(shown) == 1 and tokens(shown) <= 200


def test_of_many_calls_at_once_the_first_are_shown_with_their_results():
    page = many_calls(100)
    fitted = fit(page, 2_000)
    answer = fitted.messages[1]
    assert isinstance(answer, AIMessage)
    shown = [call["id"] for call in answer.tool_calls]
    assert shown == [f"c{n}" for n in range(len(shown))] and 5 < len(shown) < 100
    assert fitted.dropped == 100 - len(shown) and tokens(fitted.messages) <= 2_000


def test_names_and_ids_of_any_length_fit_too():
    args = {"key " * 300 + str(n): "value" for n in range(50)}
    page = [
        HumanMessage("q " * 900, id="h" * 9_000),
        AIMessage("", tool_calls=[{"name": "f", "args": args, "id": "c"}]),
    ]
    page.append(ToolMessage("r " * 900, tool_call_id="c", id="t" * 9_000))
    assert tokens(fit(page, 300).messages) <= FLOOR

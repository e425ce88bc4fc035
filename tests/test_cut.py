"""nodes.cut.safe_cut: a cut parts nothing that belongs together, and the question at hand stays."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage, ToolMessage

from nodes.cut import safe_cut
from nodes.pairs import results_of
from nodes.text import last_human
from nodes.valid import NO_RESULT, valid_messages

IDS = st.sampled_from(["c1", "c2", "c3"])
MESSAGES = st.lists(
    st.just(HumanMessage("q"))
    | st.just(AIMessage("a"))
    | IDS.map(lambda one: ToolMessage("r", tool_call_id=one))
    | st.lists(IDS, min_size=1, max_size=2).map(
        lambda ids: AIMessage("", tool_calls=[{"name": "f", "args": {}, "id": one} for one in ids])
    ),
    max_size=14,
)
KEEP = st.integers(0, 8)


def reported_missing(messages: list[BaseMessage]) -> int:
    return sum(message.content == NO_RESULT for message in valid_messages(messages).messages)


@settings(deadline=None)
@given(MESSAGES, KEEP)
def test_a_cut_falls_before_a_user_message_and_never_behind_the_newest(messages: list[BaseMessage], keep: int) -> None:
    """B003, B005."""
    cut = safe_cut(messages, keep=keep)
    assert 0 <= cut <= max(last_human(messages), 0)
    assert cut == 0 or isinstance(messages[cut], HumanMessage)


@settings(deadline=None)
@given(MESSAGES, KEEP)
def test_a_cut_parts_no_call_from_its_result(messages: list[BaseMessage], keep: int) -> None:
    """B001: neither half needs a result that the other one has."""
    cut = safe_cut(messages, keep=keep)
    assert all((answer < cut) == (result < cut) for (answer, _), result in results_of(messages).items())
    assert reported_missing(messages[:cut]) + reported_missing(messages[cut:]) == reported_missing(messages)


@settings(deadline=None)
@given(MESSAGES, KEEP)
def test_the_smallest_cut_that_leaves_few_enough_is_taken_else_the_largest_safe_one(
    messages: list[BaseMessage], keep: int
) -> None:
    cut = safe_cut(messages, keep=keep)
    safe = {safe_cut(messages, keep=size) for size in range(len(messages) + 1)} - {0}
    enough = [place for place in safe if len(messages) - place <= keep]
    assert cut == (min(enough) if enough else max(safe, default=0))


def test_a_group_of_calls_and_results_stays_whole() -> None:
    """B001: the naive cut would keep the last three and part the group."""
    calls = [{"name": "read_file", "args": {"path": f"{one}.txt"}, "id": f"c{n}"} for n, one in enumerate("ab")]
    results = [ToolMessage("AAA", tool_call_id="c0"), ToolMessage("BBB", tool_call_id="c1")]
    turn = [HumanMessage("read both files"), AIMessage("", tool_calls=calls), *results, AIMessage("done")]
    assert safe_cut(turn, keep=3) == 0
    assert safe_cut([*turn, HumanMessage("thanks"), AIMessage("yes")], keep=3) == len(turn)


def test_the_question_under_work_is_never_cut_away() -> None:
    """B005."""
    asked = HumanMessage("what does clause 12 of the lease say?")
    call = AIMessage("", tool_calls=[{"name": "retrieve", "args": {"q": "clause 12"}, "id": "c1"}])
    page = [HumanMessage("hi"), AIMessage("hello"), asked, call, ToolMessage("x" * 3000, tool_call_id="c1")]
    assert page[safe_cut(page, keep=1)] is asked


@pytest.mark.parametrize("keep", [0, 1, 5])
def test_what_stays_starts_with_a_user_message(keep: int) -> None:
    """B003: a trimming helper would leave the tool result in front."""
    calls = AIMessage("", tool_calls=[{"name": "f", "args": {}, "id": "x"}])
    page = [HumanMessage("1"), calls, ToolMessage("r", tool_call_id="x")]
    page += [HumanMessage("2"), AIMessage("3"), HumanMessage("4"), AIMessage("5")]
    assert isinstance(page[safe_cut(page, keep=keep)], HumanMessage)


def test_a_late_result_holds_the_cut_back() -> None:
    call = AIMessage("", tool_calls=[{"name": "f", "args": {}, "id": "c1"}])
    page = [HumanMessage("1"), call, HumanMessage("2"), ToolMessage("late", tool_call_id="c1"), HumanMessage("3")]
    assert safe_cut(page[:3], keep=1) == 2
    assert safe_cut(page, keep=1) == 4


def test_a_page_without_a_place_is_not_cut() -> None:
    assert safe_cut([], keep=0) == 0
    assert safe_cut([SystemMessage("s"), AIMessage("a")], keep=0) == 0
    assert safe_cut([HumanMessage("only")], keep=0) == 0

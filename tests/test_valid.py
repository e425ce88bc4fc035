"""nodes.valid: any stored list becomes one that a strict provider takes; nothing that was said is lost."""

import re
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from langchain_core.messages import (
    AIMessage,
    BaseMessage,
    ChatMessage,
    FunctionMessage,
    HumanMessage,
    RemoveMessage,
    SystemMessage,
    ToolMessage,
)
from wire_rules import Rules, reject, wire_messages

from memory.text import clean
from nodes.quoting import as_json, defused
from nodes.text import calls_of, text_of
from nodes.valid import NO_OUTPUT, NO_RESULT, valid_messages

STRICT = Rules(unique_ids_in_thread=True)

ANY_TEXT = st.text(st.characters(), max_size=12) | st.sampled_from(
    ["", " \n", "\ud835", "a\x00b", "你好", "🎉", "null"]
)
IDS = st.sampled_from(["c1", "c2", "c3", "call", "call-2", "", "x" * 41, "\ud800", "号"])
NAMES = st.sampled_from(["add", "", "查天气", "Web Lookup", "n" * 80, "a.b", "\udfff"])
ARGS = st.dictionaries(
    st.text(max_size=5),
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | ANY_TEXT,
        lambda inner: st.lists(inner, max_size=2) | st.dictionaries(ANY_TEXT, inner, max_size=2),
        max_leaves=4,
    ),
    max_size=3,
)
BLOCKS = st.lists(
    ANY_TEXT
    | ANY_TEXT.map(lambda text: {"type": "text", "text": text})
    | st.sampled_from(
        [
            {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA"}},
            {"type": "image", "base64": "AA", "mime_type": "image/png"},
            {"type": "image", "source": {"type": "base64", "data": "AA", "media_type": "image/png"}},
            {"type": "image", "source_type": "id", "id": "f"},
            {"type": "input_image", "image_url": "https://a/b"},
            {"type": "file", "url": "https://a/b.pdf"},
            {"type": "image_url", "image_url": "https://a/b"},
            {"type": "audio", "base64": "AA"},
            {"type": "reasoning", "reasoning": "hm"},
            {"type": "thinking", "thinking": "hm"},
            {"type": "tool_use", "id": "c1", "name": "add", "input": {}},
            {"type": "video", "data": "AA"},
            {"odd": 1},
        ]
    ),
    max_size=3,
)
CONTENT = ANY_TEXT | BLOCKS


@st.composite
def answers(draw: st.DrawFn) -> AIMessage:
    calls = draw(st.lists(st.builds(dict, name=NAMES, args=ARGS, id=IDS | st.none()), max_size=3))
    broken = st.builds(dict, name=NAMES | st.none(), args=ANY_TEXT, id=IDS | st.none(), error=st.none() | ANY_TEXT)
    return AIMessage(draw(CONTENT), tool_calls=calls, invalid_tool_calls=draw(st.lists(broken, max_size=2)))


MESSAGES = st.lists(
    answers()
    | CONTENT.map(HumanMessage)
    | CONTENT.map(SystemMessage)
    | st.builds(lambda content, call_id: ToolMessage(content, tool_call_id=call_id), CONTENT, IDS)
    | st.builds(
        lambda content, role: ChatMessage(content, role=role),
        CONTENT,
        st.sampled_from(["user", "assistant", "developer", "critic"]),
    )
    | st.builds(lambda content: FunctionMessage(content, name="old"), CONTENT)
    | st.just(RemoveMessage(id="gone")),
    max_size=8,
)


def refused(messages: list[Any]) -> str | None:
    """Why a strict server would refuse what is sent."""
    sent = wire_messages([SystemMessage("rules"), *messages])
    return reject({"model": "test-model", "messages": sent}, STRICT)


def said_in(messages: list[Any], system: list[str]) -> str:
    return "\n".join([*system, *map(text_of, messages)])


def is_shown(message: BaseMessage, shown: str) -> bool:
    """Whether each line that a message says is there: as it is, quoted, or with marks of roles parted."""
    lines = [line.strip() for line in clean(text_of(message)).split("\n")]
    return all(any(form in shown for form in (line, as_json(line)[1:-1], defused(line))) for line in lines)


@settings(deadline=None)
@given(MESSAGES)
def test_any_history_becomes_one_that_a_strict_server_takes(messages: list[BaseMessage]) -> None:
    """B009, B028, B031, B032, B049, B074, B075, B076, B078, B081."""
    assert refused(valid_messages(messages).messages) is None


@settings(deadline=None)
@given(MESSAGES)
def test_repair_is_idempotent(messages: list[BaseMessage]) -> None:
    """B075: mending what was mended changes nothing and reports nothing."""
    once = valid_messages(messages)
    twice = valid_messages(once.messages)
    assert twice.messages == once.messages
    assert twice.changes == twice.system == []


@settings(deadline=None)
@given(MESSAGES)
@example([ToolMessage('a "quoted" \\ result', tool_call_id="nobody's")])
def test_no_text_is_lost(messages: list[BaseMessage]) -> None:
    valid = valid_messages(messages)
    shown = said_in(valid.messages, valid.system)
    assert all(is_shown(message, shown) for message in messages)


@settings(deadline=None)
@given(MESSAGES)
def test_the_input_is_left_as_it_was(messages: list[BaseMessage]) -> None:
    before = [message.model_copy(deep=True) for message in messages]
    valid_messages(messages)
    assert [repr(message) for message in messages] == [repr(message) for message in before]


@st.composite
def conversations(draw: st.DrawFn) -> tuple[list[BaseMessage], dict[str, int]]:
    """Turns as a server that counts from one writes them: ids come back; some runs died; results may be late.

    Returns the list and, for each result's text, the number of calls before the one that it answers.
    """
    messages: list[BaseMessage] = []
    owner: dict[str, int] = {}
    number = 0
    for turn in range(draw(st.integers(1, 4))):
        messages.append(HumanMessage(f"question {turn}"))
        ids = draw(st.lists(st.sampled_from(["call_0", "call_1", "same", ""]), min_size=1, max_size=3))
        messages.append(AIMessage("", tool_calls=[{"name": "f", "args": {}, "id": one} for one in ids]))
        results = []
        for position, call_id in enumerate(ids):
            owner[f"result {number + position}"] = number + position
            results.append(ToolMessage(f"result {number + position}", tool_call_id=call_id))
        number += len(ids)
        if draw(st.booleans()):
            messages += results
        else:
            for result in results:
                del owner[result.content]  # the run died before it stored any
    return messages, owner


@settings(deadline=None)
@given(conversations())
def test_every_call_keeps_its_own_result_though_ids_come_back(
    made: tuple[list[BaseMessage], dict[str, int]],
) -> None:
    """B032, B049: a dead run's call never takes the result of a later turn; a stored result is never called missing."""
    messages, owner = made
    results = [text_of(message) for message in valid_messages(messages).messages if isinstance(message, ToolMessage)]
    calls = sum(len(calls_of(message)) for message in messages)
    by_number = {number: text for text, number in owner.items()}
    assert results == [by_number.get(number, NO_RESULT) for number in range(calls)]


@settings(deadline=None)
@given(st.permutations([f"c{n}" for n in range(4)]), st.integers(0, 3))
def test_late_and_shuffled_results_stand_behind_their_calls_in_the_calls_order(order: list[str], late: int) -> None:
    results = [ToolMessage(f"result of {call_id}", tool_call_id=call_id) for call_id in order]
    answer = AIMessage("", tool_calls=[{"name": "f", "args": {}, "id": f"c{n}"} for n in range(4)])
    stored = [HumanMessage("go"), answer, *results[late:], HumanMessage("well?"), *results[:late]]
    valid = valid_messages(stored).messages
    assert [text_of(one) for one in valid[2:6]] == [f"result of c{n}" for n in range(4)]
    assert [one.type for one in valid] == ["human", "ai", *["tool"] * 4, "human"]


def test_a_missing_result_is_reported_as_unknown_neither_as_done_nor_as_cancelled() -> None:
    """B049, B051."""
    answer = AIMessage("", tool_calls=[{"name": "transfer", "args": {"amount": 100}, "id": "c1"}])
    valid = valid_messages([HumanMessage("pay"), answer, HumanMessage("hello again")])
    result = valid.messages[2]
    assert isinstance(result, ToolMessage) and result.status == "error" and result.tool_call_id == "c1"
    assert "no result was recorded" in text_of(result) and "may or may not have run" in text_of(result)
    assert not {"cancelled", "canceled", "user", "success"} & set(text_of(result).lower().split())
    assert valid.changes == ["reported the missing result of transfer"]


def test_a_thread_poisoned_by_a_broken_call_heals_itself() -> None:
    """B028, B031: raw copies of the provider do not come along."""
    raw = [{"id": "c9", "type": "function", "function": {"name": "write", "arguments": '{"p": "x'}}]
    poisoned = AIMessage(
        "",
        invalid_tool_calls=[{"name": "write", "args": '{"p": "x', "id": "c9", "error": "cut"}],
        additional_kwargs={"tool_calls": raw},
    )
    valid = valid_messages([HumanMessage("save"), poisoned, HumanMessage("go on")]).messages
    assert refused(valid) is None
    assert calls_of(valid[1]) == [("c9", "write")] and isinstance(valid[2], ToolMessage)
    assert "tool_calls" not in valid[1].additional_kwargs


def test_system_messages_are_taken_out_and_kept_in_order() -> None:
    """B074."""
    stored = [SystemMessage("rules"), HumanMessage("a"), AIMessage("b"), SystemMessage([{"type": "text", "text": "s"}])]
    valid = valid_messages([*stored, HumanMessage("c")])
    assert valid.system == ["rules", "s"]
    assert [message.type for message in valid.messages] == ["human", "ai", "human"]


@pytest.mark.parametrize("empty", ["", "   ", [], [{"type": "text", "text": ""}]])
def test_empty_answers_go_and_empty_results_say_so(empty: Any) -> None:
    """B076."""
    calling = AIMessage("", tool_calls=[{"name": "f", "args": {}, "id": "c1"}])
    stored = [
        HumanMessage("hi"),
        calling,
        ToolMessage(empty, tool_call_id="c1"),
        AIMessage(empty),
        HumanMessage("now?"),
    ]
    valid = valid_messages(stored).messages
    assert [message.type for message in valid] == ["human", "ai", "tool", "human"]
    assert text_of(valid[2]) == NO_OUTPUT


def test_text_blocks_become_one_string_and_pictures_of_the_user_stay_pictures() -> None:
    """B078."""
    picture = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA"}}
    calling = AIMessage("", tool_calls=[{"name": "f", "args": {}, "id": "c1"}])
    blocks = [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]
    stored = [HumanMessage(blocks), HumanMessage([blocks[0], picture]), calling]
    valid = valid_messages([*stored, ToolMessage([*blocks, picture], tool_call_id="c1")]).messages
    marker = "[image] (image/png; not shown: you get text alone)"  # a result is text with every provider
    assert [message.content for message in valid] == ["a\nb", [blocks[0], picture], "", f"a\nb\n{marker}"]


def test_names_of_speakers_do_not_reach_the_server() -> None:
    """B081: it would refuse some of them."""
    stored = [
        HumanMessage("a", name="Ann Müller"),
        AIMessage("b", name="Travel Desk Agent"),
        HumanMessage("c", name=""),
    ]
    valid = valid_messages(stored).messages
    assert refused(valid) is None and [one.name for one in valid] == [None] * 3


def test_a_duplicate_result_is_told_apart_from_the_first() -> None:
    calling = AIMessage("", tool_calls=[{"name": "f", "args": {}, "id": "c1"}])
    twice = [ToolMessage("first", tool_call_id="c1"), ToolMessage("second", tool_call_id="c1")]
    valid = valid_messages([HumanMessage("go"), calling, *twice]).messages
    assert text_of(valid[2]) == "first" and isinstance(valid[3], HumanMessage) and "second" in text_of(valid[3])


def test_a_sound_list_is_left_alone() -> None:
    """Nothing is reported, and what was said stays byte for byte."""
    calling = AIMessage("let me see", tool_calls=[{"name": "f", "args": {"x": [1, "二", None]}, "id": "c1"}], id="a1")
    result = ToolMessage("ok ", tool_call_id="c1", name="f", id="t1")
    stored = [HumanMessage(" hi\n", id="h1"), calling, result, AIMessage("done", id="a2")]
    valid = valid_messages(stored)
    assert valid.messages == stored and valid.changes == valid.system == []


@pytest.mark.parametrize("order", [[0, 1], [1, 0]])
def test_a_result_right_before_its_call_is_its_result(order: list[int]):
    """B022, B049: a list that was turned round."""
    calls = [{"name": "add", "args": {}, "id": f"c{n}"} for n in (0, 1)]
    results = [ToolMessage(f"r{n}", tool_call_id=f"c{n}") for n in order]
    made = valid_messages([HumanMessage("q"), *results, AIMessage("", tool_calls=calls), HumanMessage("?")]).messages
    assert [text_of(message) for message in made] == ["q", "", "r0", "r1", "?"]


def test_a_result_of_an_earlier_turn_is_not_the_result_of_a_later_call():
    call = {"name": "add", "args": {}, "id": "c1"}
    made = valid_messages([ToolMessage("old", tool_call_id="c1"), HumanMessage("q"), AIMessage("", tool_calls=[call])])
    assert text_of(made.messages[-1]) == NO_RESULT


@given(st.text(min_size=1, max_size=60))
def test_the_id_of_a_call_is_of_letters_that_every_server_takes(call_id: str):
    call = {"name": "add", "args": {}, "id": call_id}
    made = valid_messages([HumanMessage("q"), AIMessage("", tool_calls=[call]), ToolMessage("r", tool_call_id=call_id)])
    assert re.fullmatch(r"[a-zA-Z0-9_.:-]{1,40}", made.messages[-1].tool_call_id) and text_of(made.messages[-1]) == "r"

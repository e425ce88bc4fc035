"""nodes.state.add_clean_messages: dirt stops at the border, removals never fail, every message has an id."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from langchain_core.messages import (
    AIMessage,
    AIMessageChunk,
    AnyMessage,
    HumanMessage,
    RemoveMessage,
    ToolMessage,
)
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.graph.message import REMOVE_ALL_MESSAGES

from nodes.state import add_clean_messages
from nodes.text import text_of

ANY_TEXT = st.text(st.characters(), max_size=20)
IDS = st.sampled_from(["m1", "m2", "m3", "", "a\x00b", "\ud800"]) | st.none()
UPDATES = st.lists(
    st.builds(lambda text, one: HumanMessage(text, id=one), ANY_TEXT, IDS)
    | st.builds(lambda one: RemoveMessage(id=one), st.sampled_from(["m1", "m2", "m3", "gone", "", "a\x00b"]))
    | st.just(RemoveMessage(id=REMOVE_ALL_MESSAGES)),
    max_size=6,
)


def ids(messages: list[AnyMessage]) -> list[str | None]:
    return [message.id for message in messages]


@settings(deadline=None)
@given(st.lists(UPDATES, max_size=4))
def test_any_updates_give_messages_with_unique_ids_and_no_markers(updates: list[Any]) -> None:
    """B007, B040, B060."""
    state: list[AnyMessage] = []
    for update in updates:
        state = add_clean_messages(state, update)
    assert all(ids(state)) and len(set(ids(state))) == len(state)
    assert not any(isinstance(message, RemoveMessage) for message in state)
    JsonPlusSerializer().dumps_typed(state)


@settings(deadline=None)
@given(ANY_TEXT)
def test_no_control_character_or_lone_surrogate_enters_anywhere(text: str) -> None:
    """B040, B060: content, arguments, names, ids, metadata and artifacts alike; tabs and line ends stay."""
    dirty = f"a\x00\t\n\ud835 {text}"
    call = {"name": dirty, "args": {dirty: [dirty]}, "id": dirty}
    broken = {"name": dirty, "args": dirty, "id": dirty, "error": dirty}
    answer = AIMessage(
        [{"type": "text", "text": dirty}],
        id=dirty,
        name=dirty,
        tool_calls=[call],
        invalid_tool_calls=[broken],
        additional_kwargs={"reasoning": dirty},
        response_metadata={"note": (dirty,)},
    )
    result = ToolMessage(dirty, tool_call_id=dirty, artifact={"page": dirty})
    for message in add_clean_messages([], [answer, result]):
        kept = str(message.model_dump())
        kept.encode()
        assert "\\x00" not in kept and "\ud835" not in kept
        assert "a\t\n\ufffd" in text_of(message)


def test_both_halves_of_a_surrogate_pair_are_joined() -> None:
    """B040."""
    (message,) = add_clean_messages([], [HumanMessage("cheers \ud83c\udf78")])
    assert message.content == "cheers 🍸"


@pytest.mark.parametrize("unknown", ["gone-17", "", None])
def test_removing_what_is_not_there_is_no_error(unknown: str | None) -> None:
    """B007."""
    marker = RemoveMessage(id="m1").model_copy(update={"id": unknown})
    state = add_clean_messages([], [HumanMessage("a", id="m1"), HumanMessage("b", id="m2")])
    left = add_clean_messages(state, [RemoveMessage(id="m1"), marker, RemoveMessage(id="m1")])
    assert ids(left) == ["m2"]
    assert add_clean_messages(left, [RemoveMessage(id="m1"), HumanMessage("new")])[-1].content == "new"


def test_a_removal_ahead_of_the_message_that_it_names_leaves_it() -> None:
    assert ids(add_clean_messages([], [RemoveMessage(id="m1"), HumanMessage("a", id="m1")])) == ["m1"]


def test_removing_all_leaves_what_comes_after_it() -> None:
    state = add_clean_messages([], [HumanMessage("a", id="m1")])
    update = [HumanMessage("b"), RemoveMessage(id=REMOVE_ALL_MESSAGES), RemoveMessage(id="m1"), ("user", "c")]
    assert [message.content for message in add_clean_messages(state, update)] == ["c"]


@pytest.mark.parametrize(
    "given_",
    [
        "hello",
        ("user", "hello"),
        ["hello"],
        [("user", "hello")],
        {"role": "user", "content": "hello"},
        [{"role": "user", "content": "hello"}],
        {"type": "human", "content": "hello"},
        HumanMessage("hello"),
        (HumanMessage("hello"),),
    ],
)
def test_every_spelling_of_one_user_message_is_that_message(given_: Any) -> None:
    (message,) = add_clean_messages([], given_)
    assert isinstance(message, HumanMessage) and message.content == "hello" and message.id


def test_a_chunk_becomes_a_message() -> None:
    (message,) = add_clean_messages([], [AIMessageChunk("hi")])
    assert type(message) is AIMessage and message.content == "hi"


def test_a_message_with_a_known_id_replaces_the_old_one_in_its_place() -> None:
    state = add_clean_messages([], [HumanMessage("a", id="m1"), HumanMessage("b", id="m2")])
    forked = add_clean_messages(state, HumanMessage("A", id="m1"))
    assert [(one.id, one.content) for one in forked] == [("m1", "A"), ("m2", "b")]
    assert state[0].content == "a"


@pytest.mark.parametrize(
    ("arguments", "args"),
    [
        ('{"a": 1}', {"a": 1}),
        ({"a": 1}, {"a": 1}),
        ("", {}),
        (None, {}),
        ('{"a":', None),
        ('"{}"', None),
        ("[1]", None),
    ],
)
def test_an_answer_in_openais_form_is_read_whatever_its_arguments_are(arguments: Any, args: Any):
    """B031: histories from elsewhere hold calls that were cut off."""
    call = {"id": "c1", "type": "function", "function": {"name": "add", "arguments": arguments}}
    given = {"role": "assistant", "content": None, "tool_calls": [call], "id": "a1"}
    [answer] = add_clean_messages([], [given])
    assert answer.id == "a1" and [one["args"] for one in answer.tool_calls] == ([] if args is None else [args])
    assert [one["id"] for one in answer.invalid_tool_calls] == (["c1"] if args is None else [])


@pytest.mark.parametrize("role", ["user", "system"])
def test_what_only_looks_like_an_answer_stays_what_its_role_says(role: str):
    call = {"id": "c1", "type": "function", "function": {"name": "add", "arguments": "{}"}}
    [message] = add_clean_messages([], [{"role": role, "content": "hello", "tool_calls": [call]}])
    assert message.type == {"user": "human", "system": "system"}[role] and message.content == "hello"

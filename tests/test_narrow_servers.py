"""Servers that take less: text alone, and roles that take turns. What is sent changes; what is stored does not."""

from typing import Any

import pytest
from conftest import config
from hypothesis import given
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage, ToolMessage
from test_valid import MESSAGES, is_shown, said_in
from test_wire import client
from tool_graphs import WAYS, Session
from wire import Calls, Empty, OpenAIWire, Text
from wire_rules import Rules, reject, wire_messages

from nodes.valid import merged, valid_messages

NARROW = Rules(unique_ids_in_thread=True, plain_strings=True, alternating_roles=True)
TURNS = Rules(unique_ids_in_thread=True, alternating_roles=True)
PNG = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA"}}
CALL = {"name": "f", "args": {}, "id": "c1"}


def text(words: str) -> dict[str, Any]:
    return {"type": "text", "text": words}


def refused(messages: list[Any], rules: Rules) -> str | None:
    """Say why a server of these habits would refuse the list behind one system message."""
    return reject({"model": "test-model", "messages": wire_messages([SystemMessage("rules"), *messages])}, rules)


@given(MESSAGES)
def test_any_history_becomes_one_that_a_server_of_text_and_turns_takes(messages: list[BaseMessage]):
    """B078, B080."""
    assert refused(merged(valid_messages(messages, text_only=True).messages), NARROW) is None
    assert refused(merged(valid_messages(messages).messages), TURNS) is None


@given(MESSAGES)
def test_joining_loses_no_word_and_touches_neither_calls_nor_results_nor_what_is_stored(messages: list[BaseMessage]):
    """B080: tool groups stay as they are."""
    before = [repr(message) for message in messages]
    valid = valid_messages(messages, text_only=True)
    made = merged(valid.messages)
    shown = said_in(made, valid.system)
    assert all(is_shown(one, shown) for one in messages)
    assert [one for one in made if one.type == "tool"] == [one for one in valid.messages if one.type == "tool"]
    assert [one.tool_calls for one in made if getattr(one, "tool_calls", ())] == [
        one.tool_calls for one in valid.messages if getattr(one, "tool_calls", ())
    ]
    assert [repr(message) for message in messages] == before


@given(MESSAGES)
def test_joining_and_describing_twice_changes_nothing_more(messages: list[BaseMessage]):
    once = merged(valid_messages(messages, text_only=True).messages)
    again = valid_messages(once, text_only=True)
    assert merged(again.messages) == once and again.changes == []


@pytest.mark.parametrize(
    ("stored", "sent"),
    [
        ([HumanMessage("<summary> …"), HumanMessage("what next?")], ["<summary> …\n\nwhat next?"]),
        ([HumanMessage("hi"), AIMessage("a"), AIMessage([]), AIMessage("b")], ["hi", "a\n\nb"]),
        ([HumanMessage([text("a"), PNG]), HumanMessage("b")], [[text("a"), PNG, text("b")]]),
        ([HumanMessage("a"), HumanMessage([text("b"), PNG]), HumanMessage("c")], [[text("a\n\nb"), PNG, text("c")]]),
        ([HumanMessage([PNG]), HumanMessage([PNG])], [[PNG, PNG]]),
    ],
    ids=["summary", "empty answer", "list and text", "text and list", "pictures"],
)
def test_neighbours_of_one_role_become_one_message_in_their_order(stored, sent):
    """B080."""
    assert [message.content for message in merged(valid_messages(stored).messages)] == sent


def test_words_before_calls_become_the_words_of_the_answer_that_calls():
    """B080."""
    stored = [HumanMessage("x"), AIMessage("first"), AIMessage("", tool_calls=[CALL], id="a2")]
    made = merged(valid_messages([*stored, ToolMessage("r", tool_call_id="c1"), AIMessage("done")]).messages)
    assert [(one.type, one.content) for one in made] == [("human", "x"), ("ai", "first"), ("tool", "r"), ("ai", "done")]
    assert made[1].id == "a2" and made[1].tool_calls[0]["id"] == "c1"


PDF = {"type": "file", "file": {"filename": "合同.pdf", "file_data": "data:application/pdf;base64,AA"}}
SOUND = {"type": "input_audio", "input_audio": {"data": "AA", "format": "wav"}}
LINK = {"type": "image_url", "image_url": {"url": "https://a.example/cat.png"}}
SOURCE = {"type": "image", "source": {"type": "base64", "data": "AA", "media_type": "image/jpeg"}}


@pytest.mark.parametrize(
    ("block", "marker"),
    [
        (PNG, "[image] (image/png; not shown"),
        (LINK, "[image] (https://a.example/cat.png; not shown"),
        (SOURCE, "[image] (image/jpeg; not shown"),
        ({"type": "image", "base64": "AA", "mime_type": "image/png"}, "[image] (image/png; not shown"),
        (PDF, "[file] (合同.pdf; not shown"),
        (SOUND, "[audio] (wav; not shown"),
        ({"type": "video", "data": "AA"}, "[video]"),
    ],
)
def test_for_a_model_of_text_alone_a_marker_says_what_was_there(block, marker):
    """B078: in its place; text blocks as lines."""
    calling = AIMessage([text("let"), text("me")], tool_calls=[CALL])
    result = ToolMessage([text("a"), block, text("b")], tool_call_id="c1")
    stored = [SystemMessage([text("rules")]), HumanMessage([text("a"), block, text("b")]), calling, result]
    valid = valid_messages(stored, text_only=True)
    human, ai, tool = (message.content for message in valid.messages)
    assert valid.system == ["rules"] and ai == "let\nme" and human == tool
    assert human.startswith(f"a\n{marker}") and human.endswith("\nb") and "AA" not in human


def looked(x: int) -> Any:
    """Look.

    Args:
        x: where
    """
    return [text(f"seen {x}"), {"type": "image", "base64": "AA", "mime_type": "image/png"}]


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("way", WAYS)
def test_a_thread_of_pictures_and_neighbours_goes_on_with_such_a_server(way, stream):
    """B078, B080: also when an empty answer is objected to; the state keeps every message and picture."""
    replies = [Calls(("looked", {"x": 1}), ("looked", {"x": 2})), Empty(), Text("Two pictures."), Text("Bye.")]
    with OpenAIWire(replies, rules=NARROW) as wire:
        s = Session(client(wire), [looked], way)
        cancelled = [HumanMessage([text("this?"), PNG]), AIMessage("Hm."), AIMessage("Well."), HumanMessage("hello?")]
        s.agent.update_state(config(), {"messages": cancelled})
        narrow = {"text_only": True, "merge_roles": True, "stream": stream}
        values = s.turn("look twice", **narrow)
        assert s.turn("bye", **narrow)["messages"][-1].text == "Bye."
        assert wire.rejections == []
        sent = [(message["role"], message["content"]) for message in wire.chats[0]["messages"][1:]]
    assert [message.content for message in values["messages"][:4]] == [one.content for one in cancelled]
    assert values["messages"][6].content[1]["type"] == "image" and values["stop_reason"] == "answered"
    assert sent[1:] == [("assistant", "Hm.\n\nWell."), ("user", "hello?\n\nlook twice")]
    assert sent[0][1].startswith("this?\n[image] (image/png; not shown")
    changes = [one for step in values["steps"] if step["node"] == "reason" for one in step["detail"]["changes"]]
    assert "joined 2 to the one before" in changes

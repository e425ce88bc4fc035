"""Answers that reach the real client broken: arguments that are no JSON object, streams that end too soon."""

from typing import Annotated, Any

import pytest
from openai.types.chat import ChatCompletion
from test_wire import client
from tool_graphs import WAYS, Session, record, results
from wire import Calls, Drop, OpenAIWire, Text

from nodes.whole import in_one_piece

pytestmark = pytest.mark.parametrize("way", WAYS)
STREAM = pytest.mark.parametrize("stream", [True, False], ids=["streamed", "whole"])

TALE = Text("Once upon a time there was a teapot. 从前有一把茶壶。")
BOOKING = Calls(("book", {"place": "Paris"}, "c1"), content="Let me book it.")


def session_on(wire: OpenAIWire, way: str, **settings: Any) -> tuple[Session, list[str]]:
    """Return a session of the real client, with a tool and the list of what it booked."""
    made: list[str] = []

    def book(place: Annotated[str, "Where."] = "anywhere") -> str:
        """Book a table."""
        made.append(place)
        return f"booked {place}"

    return Session(client(wire, **settings), [book], way), made


NO_OBJECTS = ['["Paris"]', '"Paris"', "3", "null", "[]", "0", "true", "Paris", '{"place": "Par', "{'place': 'Paris'}"]
NO_OBJECTS += ['{"place": NaN}', '{"place": ' * 100 + "1" + "}" * 100, '{"place": "Paris"} {"place": "Rome"}']


@STREAM
@pytest.mark.filterwarnings("ignore:tool '")
def test_arguments_that_are_no_json_object_end_in_a_result_and_never_in_a_failed_turn(way, stream):
    """B028, B031: streamed and not alike, beside a call that is sound."""
    bad = Calls(*(("book", text, f"c{n}") for n, text in enumerate(NO_OBJECTS)), ("book", {"place": "Rome"}, "ok"))
    with OpenAIWire([bad, Text("One of them."), Text("Hi.")]) as wire:
        s, made = session_on(wire, way)
        values = s.turn(stream=stream)
        s.turn("Hi", stream=stream)
    got = {one.tool_call_id: one for one in results(values)}
    assert made == ["Rome"] and got.pop("ok").text == "booked Rome"
    assert [record(one)["kind"] for one in got.values()] == ["invalid_arguments"] * len(NO_OBJECTS)
    assert all("complete JSON arguments" in one.text for one in got.values()) and "it is a list" in got["c0"].text
    assert (values["stop_reason"], values["messages"][-1].text, wire.rejections) == ("answered", "One of them.", [])


@pytest.mark.parametrize("off", [True, "tool_calling"])
def test_a_client_that_is_set_not_to_stream_is_judged_alike(way, off):
    with OpenAIWire([Calls(("book", '["Paris"]')), Text("Not booked.")]) as wire:
        s, made = session_on(wire, way, disable_streaming=off)
        values = s.turn()
    assert made == [] and record(results(values)[0])["kind"] == "invalid_arguments"
    assert values["stop_reason"] == "answered" and not any(body.get("stream") for body in wire.chats)


@STREAM
@pytest.mark.parametrize(("text", "place"), [("", "anywhere"), ("{}", "anywhere"), ('{"place": "Pa\nris"}', "Pa\nris")])
def test_what_leaves_nothing_to_guess_runs(way, stream, text, place):
    with OpenAIWire([Calls(("book", text)), Text("Done.")]) as wire:
        s, made = session_on(wire, way)
        assert s.turn(stream=stream)["stop_reason"] == "answered"
    assert made == [place]


@pytest.mark.parametrize("form", [dict, ChatCompletion])
def test_arguments_that_a_server_writes_as_an_object_are_that_object(way, form):
    function = {"name": "book", "arguments": {"place": "Paris"}}
    calls = [{"id": "c1", "type": "function", "function": function}, {"id": "c2"}]
    message = {"role": "assistant", "content": None, "tool_calls": calls}
    response = {
        "id": "r",
        "model": "test-model",
        "choices": [{"index": 0, "finish_reason": "stop", "message": message}],
    }
    if form is not dict:
        response = ChatCompletion.construct(**response)
    with OpenAIWire() as wire:
        read = in_one_piece(client(wire))._create_chat_result(response)
    made = read.generations[0].message
    assert [(one["name"], one["args"]) for one in made.tool_calls] == [("book", {"place": "Paris"}), ("", {})]


@pytest.mark.parametrize("clean", [True, False])
@pytest.mark.parametrize("chunks", [1, 2, 5, 10])
def test_an_answer_whose_stream_broke_off_is_asked_for_once_more(way, chunks, clean):
    """A lost connection, also one that no transport error tells of: no finish reason, no [DONE]."""
    with OpenAIWire([Drop(after_chunks=chunks, reply=TALE, clean=clean), TALE]) as wire:
        values = session_on(wire, way)[0].turn("Tell me a tale")
    assert (values["stop_reason"], values["messages"][-1].text) == ("answered", TALE.content)
    assert len(values["messages"]) == 2 and wire.chats[0] == wire.chats[1]


@pytest.mark.parametrize("clean", [True, False])
def test_an_answer_that_broke_off_twice_is_kept_and_says_so(way, clean):
    drop = Drop(after_chunks=5, reply=TALE, clean=clean)
    with OpenAIWire([drop, drop, Text("Gladly.")]) as wire:
        s, _ = session_on(wire, way)
        values = s.turn("Tell me a tale")
        assert (values["stop_reason"], values["messages"][-1].text) == ("cut_off", "Once upon a ")
        assert s.turn("Go on")["messages"][-1].text == "Gladly."


def test_words_before_calls_that_never_came_are_not_taken_for_the_answer(way):
    with OpenAIWire([Drop(after_chunks=4, reply=BOOKING, clean=True), BOOKING, Text("Booked.")]) as wire:
        s, made = session_on(wire, way)
        assert s.turn("Book Paris")["messages"][-1].text == "Booked."
    assert made == ["Paris"]


@pytest.mark.parametrize("clean", [True, False])
def test_a_connection_lost_within_arguments_runs_nothing_and_leaves_the_thread_usable(way, clean):
    """B028: at every place between the call's name and the end of its arguments."""
    bare = Calls(("book", {"place": "Paris"}, "c1"))
    for chunks in range(2, 8):
        drop = Drop(after_chunks=chunks, reply=bare, clean=clean)
        with OpenAIWire([drop, Text("Not booked."), Text("Hi.")]) as wire:
            s, made = session_on(wire, way)
            values = s.turn("Book Paris")
            assert s.turn("Hi")["messages"][-1].text == "Hi." and wire.rejections == []
        assert made == [] and values["stop_reason"] == "answered"
        assert [record(one)["kind"] for one in results(values)] == ["invalid_arguments"]

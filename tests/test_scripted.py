"""graph.scripted: the script is followed to the letter; a missing and an unused step fail."""

from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage
from langchain_core.tools import tool

from graph.scripted import ScriptedModel, ScriptError
from nodes.collect import collect

QUESTION = [SystemMessage("rules"), HumanMessage("2+2?")]


@tool
def adder(a: int) -> int:
    """Add one."""
    return a + 1


def test_steps_are_answered_in_order_and_every_request_is_recorded() -> None:
    with ScriptedModel(["one", AIMessage("two")]) as model:
        assert model.invoke(QUESTION).content == "one"
        assert model.bind_tools([adder]).invoke("hi").content == "two"
    assert [(len(messages), tools) for messages, tools in model.calls] == [(2, []), (1, ["adder"])]
    assert model.calls[0][0] == QUESTION and model.calls[1][0][0].content == "hi"


def test_a_step_too_few_fails_with_the_number_of_the_call_and_what_was_asked() -> None:
    model = ScriptedModel(["one"])
    model.invoke(QUESTION)
    with pytest.raises(ScriptError, match=r"call 2; the last message was '2\+2\?'"):
        model.invoke(QUESTION)
    with pytest.raises(ScriptError):
        list(model.stream(QUESTION))


def test_a_missing_step_fails_at_the_end_too_where_the_graph_made_an_answer_of_it() -> None:
    with pytest.raises(ScriptError, match="call 1"), ScriptedModel([]) as model, suppress(ScriptError):
        model.invoke(QUESTION)


def test_a_step_too_many_fails_at_the_end() -> None:
    with (
        pytest.raises(ScriptError, match="1 steps of the script were not used"),
        ScriptedModel(["one", "two"]) as model,
    ):
        model.invoke(QUESTION)


def test_an_error_inside_the_block_is_not_hidden_by_unused_steps() -> None:
    with pytest.raises(KeyError), ScriptedModel(["one"]):
        raise KeyError


def test_calls_are_written_shortly_and_get_ids_of_their_own() -> None:
    model = ScriptedModel([{"name": "adder", "args": {"a": 1}}, [{"name": "adder"}, {"name": "adder", "id": "mine"}]])
    one, two = model.invoke(QUESTION), model.invoke(QUESTION)
    assert [(call["name"], call["args"]) for call in one.tool_calls] == [("adder", {"a": 1})]
    ids = [call["id"] for call in [*one.tool_calls, *two.tool_calls]]
    assert len(set(ids)) == 3 and ids[2] == "mine"


def test_a_function_sees_messages_and_tools_and_gives_any_step() -> None:
    def step(messages: list[BaseMessage], tools: list[str]) -> Any:
        return {"name": tools[0], "args": {"a": len(messages)}}

    answer = ScriptedModel([step]).bind_tools([adder]).invoke(QUESTION)
    assert answer.tool_calls[0]["args"] == {"a": 2}


@pytest.mark.parametrize("way", ["invoke", "stream"])
def test_an_error_is_raised_as_it_is(way: str) -> None:
    error = TimeoutError("no answer")
    with pytest.raises(TimeoutError) as raised:
        list(getattr(ScriptedModel([error]), way)(QUESTION))
    assert raised.value is error


ARGS = st.dictionaries(st.text(max_size=5), st.none() | st.integers() | st.text(max_size=5), max_size=2)
MESSAGES = st.builds(
    AIMessage,
    st.text(max_size=30),
    tool_calls=st.lists(ARGS, max_size=2).map(
        lambda found: [{"name": "f", "args": args, "id": f"c{n}"} for n, args in enumerate(found)]
    ),
    invalid_tool_calls=st.sampled_from([[], [{"name": "g", "args": '{"a": ', "id": "c9", "error": "x"}]]),
    usage_metadata=st.none() | st.just({"input_tokens": 1, "output_tokens": 2, "total_tokens": 3}),
)


@settings(deadline=None)
@given(MESSAGES)
def test_a_stream_adds_up_to_what_invoke_gives(message: AIMessage) -> None:
    model = ScriptedModel([message, message])
    whole, streamed = collect([model.invoke(QUESTION)]), collect(list(model.stream(QUESTION)))
    assert streamed.content == whole.content
    assert streamed.tool_calls == whole.tool_calls
    assert streamed.usage_metadata == whole.usage_metadata
    assert [one["args"] for one in streamed.invalid_tool_calls] == [one["args"] for one in whole.invalid_tool_calls]


async def test_the_async_ways_follow_the_same_script() -> None:
    with ScriptedModel(["one", "two words"]) as model:
        assert (await model.ainvoke(QUESTION)).content == "one"
        assert "".join([str(piece.content) async for piece in model.astream(QUESTION)]) == "two words"
    assert len(model.calls) == 2

"""nodes.collect: what a stream gave becomes one message; a call that is not surely whole never becomes valid."""

import json
import re
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, AIMessageChunk
from langchain_core.messages.tool import ToolCallChunk, tool_call_chunk

from nodes.calls import lost
from nodes.collect import BROKE_OFF, MAX_DEPTH, collect
from nodes.state import add_clean_messages

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)
ARGS = st.dictionaries(st.text(max_size=5), JSON, max_size=3)


def fragment(name: str | None = "", args: str | None = "", id: str | None = "", index: Any = None) -> ToolCallChunk:
    return tool_call_chunk(name=name, args=args, id=id, index=index)


def streamed(*fragments: ToolCallChunk, **last: Any) -> AIMessage:
    chunks = [AIMessageChunk("", tool_call_chunks=[one]) for one in fragments]
    return collect([*chunks, AIMessageChunk("", **{"response_metadata": {"finish_reason": "tool_calls"}, **last})])


def told(answer: AIMessage) -> list[tuple[str, dict[str, Any]]]:
    return [(call["name"], call["args"]) for call in answer.tool_calls]


def pieces(draw: st.DrawFn, text: str) -> list[str]:
    """Cut a text at any places."""
    cuts = sorted(draw(st.lists(st.integers(0, len(text)), max_size=4)))
    return [text[start:end] for start, end in zip([0, *cuts], [*cuts, len(text)], strict=True)]


@st.composite
def streams(draw: st.DrawFn) -> tuple[list[ToolCallChunk], list[tuple[str, dict[str, Any]]]]:
    """Calls as the servers of this world cut them up: with index, without, with one for all, ids once or always."""
    habit = draw(st.sampled_from(["index", "none", "glued", "id always", "name always"]))
    calls = draw(st.lists(st.tuples(st.sampled_from(["add", "look_up"]), ARGS), min_size=1, max_size=3))
    fragments = []
    for n, (name, args) in enumerate(calls):
        index = {"none": None, "glued": 0}.get(habit, n)
        for m, piece in enumerate(["", *pieces(draw, json.dumps(args, ensure_ascii=draw(st.booleans())))]):
            fragments.append(
                fragment(
                    name if m == 0 or habit == "name always" else draw(st.sampled_from(["", None])),
                    piece,
                    f"c{n}" if m == 0 or habit == "id always" else draw(st.sampled_from(["", None])),
                    index,
                )
            )
    return fragments, calls


@settings(deadline=None)
@given(streams())
def test_calls_come_out_as_they_went_in_however_the_server_cuts_them(
    made: tuple[list[ToolCallChunk], list[tuple[str, dict[str, Any]]]],
) -> None:
    """B041: also with two parallel calls under one index, and without any index."""
    fragments, calls = made
    answer = streamed(*fragments)
    assert told(answer) == calls and answer.invalid_tool_calls == []
    assert [call["id"] for call in answer.tool_calls] == [f"c{n}" for n in range(len(calls))]


@settings(deadline=None)
@given(ARGS.filter(bool), st.data())
def test_cut_off_json_is_never_completed(args: dict[str, Any], data: st.DataObject) -> None:
    text = json.dumps(args)
    short = text[: data.draw(st.integers(1, len(text) - 1))]
    answer = streamed(fragment("add", short, "c1", 0))
    assert answer.tool_calls == []
    assert [(call["name"], call["args"]) for call in answer.invalid_tool_calls] == [("add", short)]
    assert "not a JSON object" in (answer.invalid_tool_calls[0]["error"] or "")


@settings(deadline=None)
@given(
    st.lists(
        st.builds(
            fragment,
            st.sampled_from(["", None, "add", "look_up"]),
            st.sampled_from(["", None, "{", "}", '{"x":', "1}", '{"x": 1}', "null"]),
            st.sampled_from(["", None, "c1", "c2"]),
            st.sampled_from([None, 0, 1]),
        ),
        max_size=6,
    )
)
def test_no_fragment_is_lost_without_a_word(fragments: list[ToolCallChunk]) -> None:
    """All argument text is in one call or another; every message and call has an id of its own."""
    answer = streamed(*fragments)
    calls = [*answer.tool_calls, *answer.invalid_tool_calls]
    ids = [call["id"] for call in calls]
    assert answer.id and all(ids) and len(set(ids)) == len(ids)
    kept = [*map(json.dumps, (call["args"] for call in answer.tool_calls))]
    kept += [call["args"] or "" for call in answer.invalid_tool_calls]
    given_ = [one["args"] or "" for one in fragments]
    assert sorted(bare(kept)) == sorted(bare(given_))
    assert bool(fragments) == bool(calls)


def bare(texts: list[str]) -> str:
    """All characters of some argument texts but blanks and braces, which a call without arguments has none of."""
    return re.sub(r"[{}\s]", "", "".join(texts))


@pytest.mark.parametrize("reason", [{"finish_reason": "length"}, {"stop_reason": "max_tokens"}])
def test_calls_of_an_answer_cut_by_its_length_do_not_run_even_if_they_parse(reason: dict[str, str]) -> None:
    answer = streamed(fragment("add", '{"x": 1}', "c1", 0), response_metadata=reason)
    whole = AIMessage("", tool_calls=[{"name": "add", "args": {"x": 1}, "id": "c1"}], response_metadata=reason)
    for one in (answer, collect([whole])):
        assert one.tool_calls == []
        assert "cut off" in (one.invalid_tool_calls[0]["error"] or "")
        assert one.invalid_tool_calls[0]["id"] == "c1"


def test_a_finish_reason_that_is_told_twice_still_counts() -> None:
    cut = {"finish_reason": "length"}
    chunks = [AIMessageChunk("", tool_call_chunks=[fragment("add", "{}", "c1", 0)], response_metadata=cut)]
    assert collect([*chunks, AIMessageChunk("", response_metadata=cut)]).tool_calls == []


def test_fragments_without_index_make_one_call() -> None:
    """B041."""
    first, second = fragment("ok", '{"x":', "a"), fragment("", "1}", "")
    assert told(streamed(first, second)) == [("ok", {"x": 1})]


def test_an_index_that_only_the_first_fragment_has_does_not_run_the_call_without_arguments() -> None:
    """B041: LangChain makes of this a valid call without arguments and a nameless one."""
    assert told(streamed(fragment("ok", "", "a", 0), fragment("", '{"x": 1}', ""))) == [("ok", {"x": 1})]
    assert told(streamed(fragment("ok", "", "a"), fragment("", '{"x": 1}', "", 0))) == [("ok", {"x": 1})]


def test_a_new_id_in_every_fragment_is_still_one_call() -> None:
    assert told(streamed(fragment("ok", "", "a", 0), fragment("", '{"x": 1}', "b", 0))) == [("ok", {"x": 1})]


def test_fragments_find_their_call_by_its_id_where_there_is_no_index() -> None:
    calls = [fragment("f", "", "a"), fragment("g", "", "b"), fragment("", '{"x": 1}', "a"), fragment("", "{}", "b")]
    assert told(streamed(*calls)) == [("f", {"x": 1}), ("g", {})]


def test_two_calls_without_arguments_or_ids_are_two_calls() -> None:
    assert told(streamed(fragment("f", "", None, 0), fragment("g", "", None, 0))) == [("f", {}), ("g", {})]


def test_a_name_that_is_repeated_with_nothing_is_no_second_call() -> None:
    calls = [fragment("f", '{"x": 1}', None, 0), fragment("f", "", None, 0)]
    assert told(streamed(*calls)) == [("f", {"x": 1})]


def test_a_nameless_call_stays_in_sight() -> None:
    answer = streamed(fragment("", '{"x": 1', "c1", 0))
    assert [call["args"] for call in answer.invalid_tool_calls] == ['{"x": 1']


@pytest.mark.parametrize(
    "text", ['{"x": NaN}', '{"x": 1e999}', "[1]", "null", '"text"', "{} {}", '{"a": ' * 2000, '{"x": ' + "[" * 400]
)
def test_arguments_that_are_no_json_object_are_invalid(text: str) -> None:
    answer = streamed(fragment("add", text, "c1", 0))
    assert answer.tool_calls == [] and answer.invalid_tool_calls[0]["error"]


def test_arguments_nested_too_deep_to_store_are_invalid() -> None:
    deep, fine = ('{"a":' * depth + "1" + "}" * depth for depth in (400, MAX_DEPTH))
    answer = streamed(fragment("add", deep, "c1", 0), fragment("add", fine, "c2", 1))
    assert [call["id"] for call in answer.tool_calls] == ["c2"]
    assert add_clean_messages([], [answer])


@pytest.mark.parametrize("text", ["", "  ", "{}"])
def test_no_argument_text_means_no_arguments(text: str) -> None:
    assert told(streamed(fragment("current_time", text, "c1", 0))) == [("current_time", {})]


def test_a_stream_that_breaks_off_before_the_arguments_runs_nothing() -> None:
    answer = streamed(fragment("book", "", "c1", 0), response_metadata={})
    assert answer.tool_calls == [] and "broke off" in (answer.invalid_tool_calls[0]["error"] or "")
    assert told(streamed(fragment("book", '{"x": 1}', "c1", 0), response_metadata={})) == [("book", {"x": 1})]


def test_usage_that_is_repeated_is_counted_once() -> None:
    """B044."""
    usage = {"input_tokens": 10, "output_tokens": 5, "total_tokens": 15}
    chunks = [AIMessageChunk(text, usage_metadata=usage) for text in "abc"]
    assert collect(chunks).usage_metadata == usage
    assert collect([AIMessageChunk("a"), chunks[0]]).usage_metadata == usage


def test_missing_and_empty_usage_is_no_usage() -> None:
    """B044: no numbers, and numbers that are None, are neither a crash nor zero."""
    chunk = AIMessageChunk("a")
    nothing = chunk.model_copy(update={"usage_metadata": dict.fromkeys(["input_tokens", "output_tokens"])})
    assert collect([chunk, chunk]).usage_metadata is None
    assert collect([nothing, nothing, chunk]).usage_metadata is None


def test_a_whole_message_passes_through() -> None:
    whole = AIMessage(
        [{"type": "text", "text": "a"}],
        id="a1",
        tool_calls=[{"name": "f", "args": {"x": 1}, "id": "c1"}],
        response_metadata={"finish_reason": "tool_calls"},
        usage_metadata={"input_tokens": 1, "output_tokens": 2, "total_tokens": 3},
    )
    assert collect([whole]) == whole
    assert collect([]).content == ""


@pytest.mark.parametrize("ids", [[None, None], ["", ""], ["same", "same"]])
def test_calls_without_an_id_of_their_own_get_fresh_ones(ids: list[str | None]) -> None:
    """B032."""
    whole = collect([AIMessage("", tool_calls=[{"name": "f", "args": {}, "id": one} for one in ids])])
    parts = streamed(*(fragment("f", "{}", one, n) for n, one in enumerate(ids)))
    for answer in (whole, parts):
        fresh = [call["id"] for call in answer.tool_calls]
        assert all(fresh) and len(set(fresh)) == 2 and max(map(len, map(str, fresh))) <= 40


def test_text_is_joined_and_raw_copies_of_calls_are_left_out() -> None:
    chunks = [AIMessageChunk("你"), AIMessageChunk("好", additional_kwargs={"tool_calls": [{"id": "c1"}], "kept": 1})]
    answer = collect(chunks)
    assert answer.content == "你好" and answer.additional_kwargs == {"kept": 1} and type(answer) is AIMessage


@pytest.mark.parametrize("pieces", [1, 3])
def test_a_refusal_in_a_field_of_its_own_is_the_answer(pieces: int) -> None:
    said = "I cannot help with that.".partition("help") if pieces == 3 else ("I cannot help with that.",)
    chunks = [AIMessageChunk("", additional_kwargs={"refusal": part}) for part in said]
    assert collect(chunks).content == "I cannot help with that."
    assert collect([AIMessage("", additional_kwargs={"refusal": "".join(said)})]).content == "I cannot help with that."
    assert collect([AIMessage([{"type": "refusal", "refusal": "".join(said)}])]).text == "I cannot help with that."


@pytest.mark.parametrize("field", ["response_metadata", "additional_kwargs"])
@pytest.mark.parametrize(("first", "second"), [(1, "s"), (0.5, 0.25), ({"a": 1}, [1]), ("s", None)])
def test_metadata_that_do_not_merge_cost_no_answer(field: str, first: Any, second: Any) -> None:
    chunks = [AIMessageChunk("a", **{field: {"x": first}}), AIMessageChunk("b", **{field: {"x": second}})]
    assert collect(chunks).content == "ab"


@pytest.mark.parametrize(("reason", "runs"), [("tool_calls", True), ("", False)])
def test_a_connection_that_is_lost_after_the_answers_end_costs_none_of_its_calls(reason: str, runs: bool) -> None:
    part = {"name": "add", "args": "{}", "id": "c1", "index": 0, "type": "tool_call_chunk"}
    pieces: list[Any] = [AIMessageChunk("", tool_call_chunks=[part])]
    pieces += [AIMessageChunk("", response_metadata={"finish_reason": reason})] if reason else []
    answer = collect([*pieces, lost(pieces, ConnectionError("gone"))])
    assert [one["name"] for one in answer.tool_calls] == ["add"] * runs
    assert answer.response_metadata["finish_reason"] == (reason or BROKE_OFF)

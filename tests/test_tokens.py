"""nodes.tokens: an estimate that works offline, knows Chinese, does not count media as text, and corrects itself."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langchain_core.messages.utils import count_tokens_approximately

from nodes.tokens import (
    PER_MEDIA,
    RATIO_BOUNDS,
    chars_within,
    corrected,
    message_tokens,
    schema_tokens,
    text_tokens,
)

BASE64 = "A" * 400_000
MEDIA: list[dict[str, Any]] = [
    {"type": "input_image", "image_url": f"data:image/png;base64,{BASE64}"},
    {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{BASE64}"}},
    {"type": "image", "base64": BASE64, "mime_type": "image/png"},
    {"type": "audio", "base64": BASE64, "mime_type": "audio/wav"},
    {"type": "file", "file": {"file_data": BASE64}},
    {"type": "video", "data": BASE64},
    {"type": "something of next year", "payload": BASE64},
]


def reporting(tokens: Any) -> AIMessage:
    """An answer with a count of its prompt's tokens, or with what some servers put there."""
    message = AIMessage("hi")
    return message.model_copy(update={"usage_metadata": tokens})


def test_a_chinese_character_counts_as_one_token_an_english_letter_as_a_quarter():
    assert text_tokens("你" * 1000) == 1000 and text_tokens("a" * 1000) == 250
    assert count_tokens_approximately([HumanMessage("你" * 1000)]) < 300  # what it would be elsewhere


@pytest.mark.parametrize("block", MEDIA, ids=lambda block: block["type"])
def test_base64_never_counts_as_text(block: dict[str, Any]):
    """B018."""
    assert message_tokens(HumanMessage([{"type": "text", "text": "look"}, block])) <= PER_MEDIA + 10


def test_reasoning_that_is_not_sent_is_not_counted():
    thinking = AIMessage([{"type": "reasoning", "reasoning": "hm " * 9000}, {"type": "text", "text": "Yes."}])
    assert message_tokens(thinking) < 20


def test_calls_and_schemas_are_counted():
    """B015."""
    call = {"name": "save", "args": {"text": "word " * 400}, "id": "c1"}
    assert message_tokens(AIMessage("", tool_calls=[call])) > 400
    assert schema_tokens([{"type": "function", "function": {"name": "save", "description": "word " * 400}}]) > 400


def test_any_message_can_be_counted_without_a_network():
    """B022: no model is asked, so none can refuse."""
    assert message_tokens(ToolMessage("", tool_call_id="c1")) > 0
    assert message_tokens(AIMessage([{"type": "text"}, "plain", {"odd": 1}])) > 0


@given(st.text(), st.text())
def test_the_whole_counts_at_most_as_much_as_its_parts(one: str, other: str):
    assert text_tokens(one + other) <= text_tokens(one) + text_tokens(other)


@given(st.text(max_size=200), st.integers(-5, 80))
def test_the_longest_start_within_a_number_of_tokens_is_found(text: str, tokens: int):
    size = chars_within(text, tokens)
    assert text_tokens(text[:size]) <= max(tokens, 0)
    assert size == len(text) or text_tokens(text[: size + 1]) > tokens


@given(st.floats(*RATIO_BOUNDS), st.integers(100, 100_000))
def test_the_ratio_settles_on_what_the_provider_reports(ratio: float, estimated: int):
    for _ in range(20):
        usage = {"input_tokens": round(estimated * 1.5), "output_tokens": 1, "total_tokens": 1}
        ratio = corrected(ratio, estimated=estimated, answer=reporting(usage))
    assert ratio == pytest.approx(1.5, rel=0.02)


@pytest.mark.parametrize(
    "usage", [None, {}, {"input_tokens": None}, {"input_tokens": 0, "output_tokens": 0, "total_tokens": 0}]
)
def test_without_a_report_the_ratio_stays(usage: Any):
    """B044."""
    assert corrected(1.25, estimated=1000, answer=reporting(usage)) == 1.25
    assert corrected(1.25, estimated=0, answer=reporting({"input_tokens": 5})) == 1.25


@given(st.floats(*RATIO_BOUNDS), st.integers(1, 10**6), st.integers(1, 10**9))
def test_no_report_moves_the_ratio_out_of_its_bounds(ratio: float, estimated: int, reported: int):
    usage = {"input_tokens": reported, "output_tokens": 0, "total_tokens": reported}
    assert RATIO_BOUNDS[0] <= corrected(ratio, estimated=estimated, answer=reporting(usage)) <= RATIO_BOUNDS[1]

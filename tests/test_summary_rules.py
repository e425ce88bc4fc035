"""nodes.summarize, its pure parts: what the summariser reads, and what can be a summary at all."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage

from nodes import prompts
from nodes.extract import THINKING
from nodes.summarize import HEADINGS, is_summary, material

SECTIONS = "\n".join(f"{heading}\n- something" for heading in HEADINGS)


@pytest.mark.parametrize(
    "text",
    [
        SECTIONS,
        f"{HEADINGS[0]}\n- 订票",
        f"{HEADINGS[0]}\n- Error handling in Rust",
        f"{HEADINGS[0]}\n\n{HEADINGS[1]}\n\n{HEADINGS[2]}\nABC-1\n{HEADINGS[3]}",
        "The user wants to book a flight to Oslo and asked for a window seat.",
        "用户想订一张去奥斯陆的机票，要靠窗的座位，预算三千元，出发日期是五月一日，回程未定，需要发票，护照号码已给。",
    ],
)
def test_sections_and_prose_are_summaries(text: str) -> None:
    """B023: prose is accepted, missing sections are."""
    assert is_summary(text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        " \n",
        "Error: 429",
        "ok",
        "Error: the endpoint has no capacity for this key now; wait, or check the quota of it.",
        "**Exception** while summarising: the connection was closed by the other side, try again",
        "Traceback (most recent call last): File somewhere, line 1, in something that failed",
        "错误：请求过于频繁，端点现在没有余量，请稍后再试，或检查这把密钥的配额是否已经用完，谢谢你的耐心与理解，再见。",
        "\n".join(HEADINGS),
        "\n".join(f"{heading}\n- \n" for heading in HEADINGS),
    ],
)
def test_nothing_fragments_and_error_messages_are_none(text: str) -> None:
    """B013: an error text must not replace the history."""
    assert not is_summary(text)


def test_thinking_is_no_part_of_a_summary() -> None:
    assert THINKING.sub("", f"<think>{SECTIONS}</think>\nok").strip() == "ok"
    assert THINKING.sub("", f"hm, sections</think>{SECTIONS}") == SECTIONS
    assert THINKING.sub("", f"<think>{SECTIONS}") == ""


def test_the_material_is_visible_text_and_calls_only() -> None:
    """B017: numbers, ids of the provider and metadata do not come along."""
    answer = AIMessage(
        "looking",
        id="a1",
        tool_calls=[{"name": "look_up", "args": {"city": "杭州"}, "id": "c1"}],
        response_metadata={"logprobs": [0.123] * 2000},
        usage_metadata={"input_tokens": 4242, "output_tokens": 1, "total_tokens": 4243},
    )
    page = [HumanMessage("hi", id="h1"), answer, ToolMessage("sunny", tool_call_id="c1", id="t1")]
    written = material("old summary", page)
    lines = [json.loads(line) for line in written.split("\n")]
    assert lines == [
        {"previous_summary": "old summary"},
        {"id": "h1", "role": "human", "text": "hi"},
        {"id": "a1", "role": "ai", "text": "looking"},
        {"id": "a1", "role": "call", "text": 'look_up {"city": "杭州"}'},
        {"id": "t1", "role": "tool", "text": "sunny"},
    ]
    assert "0.123" not in written and "4242" not in written


@settings(deadline=None)
@given(st.text(max_size=40), st.text(max_size=40))
def test_no_text_breaks_out_of_its_line(summary: str, text: str) -> None:
    """B011: the previous summary stands first; every message is one line, whatever line ends it holds."""
    lines = [json.loads(line) for line in material(summary, [HumanMessage(text, id="h1")]).splitlines()]
    assert lines == [{"previous_summary": summary}, {"id": "h1", "role": "human", "text": text}]


def test_the_headings_are_those_of_the_prompt() -> None:
    assert len(HEADINGS) == 4 and all(heading in prompts.SUMMARIZE for heading in HEADINGS)

"""nodes.summary: what the summariser reads, and what can be a summary at all."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage

from nodes import prompts
from nodes.summary import CHINESE, ENGLISH, Summary, in_parts, lines_of, read_summary, shortened
from nodes.tokens import text_tokens

LINES = st.lists(st.text(st.characters(exclude_categories=["C", "Z", "P", "S"]), min_size=1, max_size=12), max_size=4)
SUMMARIES = st.builds(
    lambda sections: Summary(sections=tuple(map(tuple, sections))), st.lists(LINES, min_size=4, max_size=4)
)


@pytest.mark.parametrize(
    "text",
    [
        f"{ENGLISH[0]}\n- something",
        f"{CHINESE[0]}\n- 订票",
        f"{ENGLISH[0]}\n- Error handling in Rust",
        f"```markdown\n{ENGLISH[0]}\n- something\n```",
        f"<think>{ENGLISH[1]}\n- WRONG</think>\n{ENGLISH[0]}\n* something",
        f"hm</think>{ENGLISH[0]}\n\n{ENGLISH[1]}\n\n{ENGLISH[2]}\nABC-1\n{ENGLISH[3]}",
        "The user wants to book a flight to Oslo and asked for a window seat.",
        "用户想订一张去奥斯陆的机票，要靠窗的座位，预算三千元，出发日期是五月一日，回程未定，需要发票，护照号码已给。",
    ],
)
def test_sections_and_prose_are_summaries(text: str) -> None:
    """B023: prose is accepted, missing sections are."""
    found = read_summary(text)
    assert found is not None and any(found.sections) and "WRONG" not in found.text()


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
        "\n".join(ENGLISH),
        "\n".join(f"{heading}\n- \n" for heading in CHINESE),
        f"<think>{ENGLISH[0]}\n- something",
    ],
)
def test_nothing_fragments_and_error_messages_are_none(text: str) -> None:
    """B013: an error text, or four empty sections, must not replace the history."""
    assert read_summary(text) is None


@settings(deadline=None)
@given(SUMMARIES)
def test_a_written_summary_reads_back(summary: Summary) -> None:
    found = read_summary(summary.text())
    assert (found.sections if found else ((), (), (), ())) == summary.sections


@settings(deadline=None)
@given(SUMMARIES, st.integers(-40, 80))
def test_a_shortened_summary_fits_and_holds_nothing_new(summary: Summary, limit: int) -> None:
    short = shortened(summary, limit)
    assert text_tokens(short.text()) <= max(limit, text_tokens(Summary().text()))
    for old, new in zip(summary.sections, short.sections, strict=True):
        assert len(new) <= len(old) and all(line in old or line.endswith("…") for line in new)


def test_the_summariser_reads_visible_text_and_calls_only() -> None:
    """B017: numbers, ids of the provider and metadata do not come along."""
    answer = AIMessage(
        "looking",
        id="a1",
        tool_calls=[{"name": "look_up", "args": {"city": "杭州"}, "id": "c1"}],
        response_metadata={"logprobs": [0.123] * 2000},
        usage_metadata={"input_tokens": 4242, "output_tokens": 1, "total_tokens": 4243},
    )
    page = [HumanMessage("hi", id="h1"), answer, ToolMessage("sunny", tool_call_id="c1", id="t1")]
    assert [json.loads(line) for line in lines_of(page)] == [
        {"id": "h1", "role": "human", "text": "hi"},
        {"id": "a1", "role": "ai", "text": "looking"},
        {"id": "a1", "role": "call", "text": 'look_up {"city": "杭州"}'},
        {"id": "t1", "role": "tool", "text": "sunny"},
    ]


@settings(deadline=None)
@given(st.text(max_size=40))
def test_no_text_breaks_out_of_its_line(text: str) -> None:
    """Every message is one line, whatever line ends it holds."""
    (line,) = lines_of([HumanMessage(text, id="h1")])
    assert len(line.splitlines()) == 1 and json.loads(line) == {"id": "h1", "role": "human", "text": text}


@settings(deadline=None)
@given(st.lists(st.text(max_size=60).map(lambda text: text.replace("\n", " ")), max_size=6), st.integers(8, 40))
def test_parts_lose_nothing(lines: list[str], limit: int) -> None:
    """B021, B025: what is too long for one request goes in several, all of it."""
    assert "".join("\n".join(in_parts(lines, limit)).split("\n")) == "".join(lines)


def test_the_headings_are_those_of_the_prompt() -> None:
    assert all(heading in prompts.SUMMARIZE for heading in (*ENGLISH, *CHINESE))

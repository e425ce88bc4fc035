"""nodes.summary: what the summariser reads, and what can be a summary at all."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage

from nodes import prompts
from nodes.lines import in_parts, line_tokens, lines_of
from nodes.summary import CHINESE, ENGLISH, Summary, read_summary, shortened
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
@given(st.lists(st.text(max_size=60), max_size=6), st.integers(40, 120), st.booleans())
def test_every_line_of_every_part_is_json_and_none_of_the_text_is_lost(texts: list[str], limit: int, hostile: bool):
    """B021, B025: what is too long for one request goes in several, each line whole."""
    said = [HumanMessage(text * 9 + '<|im_end|>\u2028"' * hostile, id=f"h{n}") for n, text in enumerate(texts)]
    parts = in_parts(lines_of(said, longest=limit), limit, cost=line_tokens)
    assert all(text_tokens("\n".join(part)) <= limit for part in parts)
    lines = [json.loads(line) for part in parts for line in "\n".join(part).split("\n")]
    for message in said:
        assert "".join(line["text"] for line in lines if line["id"] == message.id) == message.text


def test_what_is_not_text_is_described():
    """Reasoning, media by what they say of themselves, and calls whose arguments cannot be read."""
    picture = {"type": "image_url", "image_url": {"url": "data:image/png;base64," + "A" * 9000}}
    file = {"type": "file", "file": {"filename": "租约.pdf", "file_data": "JVBE" * 900}}
    broken = {"name": "look_up", "args": '{"city": "Hang', "id": "c1", "error": "cut", "type": "invalid_tool_call"}
    thought = {"type": "thinking", "thinking": "hm " * 500, "signature": "x"}
    page = [
        HumanMessage(
            [{"type": "text", "text": "[look]"}, picture, file, {"type": "video", "url": "https://a/b"}], id="h1"
        ),
        AIMessage([thought, {"type": "text", "text": "I see"}], id="a1", invalid_tool_calls=[broken]),
        AIMessage("yes", id="a2", additional_kwargs={"reasoning_content": "hm"}),
    ]
    assert [(line["role"], line["text"]) for line in map(json.loads, lines_of(page))] == [
        ("human", "[look]\n[image: image/png]\n[file: 租约.pdf]\n[video: https://a/b]"),
        ("ai", "[reasoning]\nI see"),
        ("call", 'look_up {"city": "Hang'),
        ("ai", "[reasoning]\nyes"),
    ]


def test_an_id_of_any_length_leaves_room_for_the_text():
    lines = lines_of([HumanMessage("word " * 500, id="h" * 9000)], longest=200)
    assert all(text_tokens(line) <= 200 for line in lines)
    assert "".join(json.loads(line)["text"] for line in lines) == "word " * 500


def test_the_headings_are_those_of_the_prompt() -> None:
    assert all(heading in prompts.SUMMARIZE for heading in (*ENGLISH, *CHINESE))

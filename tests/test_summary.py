"""nodes.summary: beyond its form: languages, identifiers, bounds, and messages that are cut in pieces."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage

from nodes.lines import lines_of, newest_lines
from nodes.summary import (
    CHINESE,
    ENGLISH,
    MOST_OPEN,
    MOST_THINGS,
    OPEN,
    THINGS,
    Summary,
    identifiers,
    read_summary,
    shortened,
    with_identifiers,
    with_open,
)
from nodes.tokens import pieces, text_tokens


@pytest.mark.parametrize("mark", ["## {}", "# {}", "### {}:", "**{}**", "**{}:**", "## 2. {}", "## 2、{}"])
def test_headings_are_known_however_a_model_writes_them(mark: str):
    text = "\n".join(f"{mark.format(heading.strip('# '))}\n- line {n}" for n, heading in enumerate(ENGLISH))
    found = read_summary(text)
    assert found is not None and found.sections == tuple((f"line {n}",) for n in range(4))


def test_the_headings_follow_the_model_not_a_name_in_the_lines():
    """A Chinese name in an English summary does not make it Chinese."""
    english = read_summary(f"{ENGLISH[0]}\n- call 李伟 tomorrow")
    chinese = read_summary(f"{CHINESE[0]}\n- 订 Oslo 的机票")
    assert english and english.text().startswith(ENGLISH[0])
    assert chinese and chinese.text().startswith(CHINESE[0])


@pytest.mark.parametrize(
    ("text", "known"),
    [
        ("order QX-7781 for li.wei@example.com", ["QX-7781", "li.wei@example.com"]),
        ("see https://example.com/a?b=1, and /srv/data/a.csv", ["https://example.com/a?b=1", "/srv/data/a.csv"]),
        ("订单号 20261130，编号 HT-2026-0093。", ["20261130", "HT-2026-0093"]),
        ("C:\\Users\\me\\a.txt", ["C:\\Users\\me\\a.txt"]),
        ("we met 3 people on 4 days", []),
    ],
)
def test_what_a_paraphrase_would_spoil_is_recognised(text: str, known: list[str]):
    assert identifiers(text) == known


def test_identifiers_are_kept_once_with_the_message_that_named_them():
    said = [HumanMessage("order QX-7781", id="h1"), AIMessage("QX-7781 and QX-9 noted", id="a1")]
    said += [ToolMessage("HASH-1234 " * 50, tool_call_id="c", id="t1")]
    kept = with_identifiers(Summary(), Summary(), said)
    assert kept.sections[THINGS] == ("QX-7781 (h1)", "QX-7781, QX-9 (a1)")
    again = with_identifiers(Summary(), kept, [])
    assert again.sections == kept.sections
    known = Summary(sections=(("wants QX-7781 and QX-9",), (), (), ()))
    assert with_identifiers(known, kept, said).sections == known.sections


def test_of_several_identifiers_on_a_line_none_is_lost_with_another():
    """Nor with a longer one that begins like it."""
    kept = Summary(sections=((), (), ("QX-1, QX-2 (h1)",), ()))
    made = Summary(sections=(("wants QX-1 and QX-22",), (), (), ()))
    assert "QX-2 (" in with_identifiers(made, kept, []).text()
    said = [HumanMessage("order QX-2", id="h2")]
    assert with_identifiers(made, Summary(), said).sections[THINGS] == ("QX-2 (h2)",)
    again = with_identifiers(Summary(sections=(("QX-1 and QX-2",), (), (), ())), kept, [])
    assert again.sections[THINGS] == ()


@pytest.mark.parametrize("line", ["none", "- None.", "无", "没有。", "no open items"])
def test_that_nothing_is_open_is_not_carried_over(line: str):
    assert with_open(Summary(), Summary(sections=((), (), (), (line,)))).sections[OPEN] == ()


def test_the_oldest_open_items_give_way():
    before = Summary(sections=((), (), (), tuple(f"task{n} thing{n}" for n in range(MOST_OPEN + 9))))
    assert with_open(Summary(), before).sections[OPEN] == before.sections[OPEN][-MOST_OPEN:]


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ('{"task": "book flight", "state": "paid"}', ((), ("task: book flight", "state: paid"), (), ())),
        ('{"What the user wants": ["a", "b"], "Open items": null}', (("a", "b"), (), (), ())),
        ('```json\n{"用户想要什么": "订票", "未完成事项": ["付款"], "odd": {}}\n```', (("订票",), (), (), ("付款",))),
        ('{"Open items": ["a\\n## What the user wants\\nb"], "Things referred to": [3]}', None),
    ],
)
def test_a_summary_as_json_is_read_with_whatever_is_missing(text: str, lines: Any):
    """B023: missing fields are empty, unknown ones stay, a list may be a text; no text becomes a heading."""
    found = read_summary(text)
    assert found is not None
    assert found.sections == (lines or ((), (), ("3",), ("a ## What the user wants b",)))


@pytest.mark.parametrize("text", ["{}", '{"a": null, "b": []}', '{"task": "book a flight to Oslo with a window', "[1"])
def test_json_that_broke_off_or_is_empty_is_no_summary(text: str):
    assert read_summary(text) is None


def test_the_oldest_identifiers_give_way():
    said = [HumanMessage(f"code-{n}", id=f"h{n}") for n in range(MOST_THINGS + 20)]
    lines = with_identifiers(Summary(), Summary(), said).sections[THINGS]
    assert len(lines) == MOST_THINGS and lines[-1] == f"code-{MOST_THINGS + 19} (h{MOST_THINGS + 19})"


def test_what_is_open_is_shortened_last():
    long = tuple(f"line {n} of some length" for n in range(50))
    short = shortened(Summary(sections=(long, long, long, ("pay INV-1", "call Nadia"))), 200)
    assert short.sections[OPEN] == ("pay INV-1", "call Nadia") and text_tokens(short.text()) <= 200
    assert short.sections[0] and short.sections[0][-1] == long[-1]


@settings(deadline=None)
@given(st.text(max_size=200), st.integers(1, 40))
def test_pieces_join_to_the_line_and_none_is_too_long(line: str, limit: int):
    cut = pieces(line, limit)
    assert "".join(cut) == line
    assert all(text_tokens(piece) <= limit for piece in cut)


@settings(deadline=None)
@given(st.lists(st.text(max_size=80), min_size=1, max_size=4), st.integers(30, 60))
def test_every_piece_of_a_long_message_bears_its_id(texts: list[str], longest: int):
    said = [HumanMessage(text, id=f"h{n}") for n, text in enumerate(texts)]
    lines = [json.loads(line) for line in lines_of(said, longest=longest)]
    for message in said:
        assert "".join(line["text"] for line in lines if line["id"] == message.id) == message.text


@settings(deadline=None)
@given(st.lists(st.text(max_size=40), max_size=8), st.integers(0, 60))
def test_the_newest_lines_are_an_end_of_the_lines_and_the_most_that_fit(lines: list[str], limit: int):
    kept = newest_lines(lines, limit)
    assert kept == lines[len(lines) - len(kept) :] and sum(text_tokens(line) + 1 for line in kept) <= limit
    assert kept == lines or sum(text_tokens(line) + 1 for line in lines[-len(kept) - 1 :]) > limit


@pytest.mark.parametrize(
    "answer",
    [
        "Sorry, I cannot summarize this conversation because it is too long.",
        "I'm sorry, but I can't help with summarising that conversation today.",
        "As an AI language model, I cannot access the previous conversation.",
        "对不起，我不能总结这段对话，因为它包含太多内容，请您换一个请求再试一次。",
        "Rate limit reached for gpt-4o in organization org-x on tokens per min",
        "upstream connect error or disconnect/reset before headers",
        "This model's maximum context length is 8192 tokens. However, your messages resulted in 9000 tokens.",
        "insufficient_quota: You exceeded your current quota, please check your plan",
        "<html><body>502 Bad Gateway, please come back later</body></html>",
        "服务器繁忙，请稍后再试。如果问题仍然存在，请联系管理员。",
        '{"error": {"message": "Rate limit reached, please wait"}}',
        '{"detail": "Not Found in this deployment of the model"}',
    ],
)
def test_what_says_why_there_is_no_summary_is_none(answer: str):
    """B013: it would take the place of the conversation."""
    assert read_summary(answer) is None


@pytest.mark.parametrize(
    "answer",
    [
        "用户想订去里昂的机票，已经付款。",
        "Error handling of the parser was discussed; the user wants to keep three attempts.",
        "The user asked how to handle a rate limit; connection refused was a firewall.",
        "Sorry to hear about the dog; the user moved to Lyon and cannot find a vet there.",
        "What the user wants:\n- a flight",
        "我不能吃什么？ 我对花生过敏，12 * (7 + 30) 等于多少？",
        "不能吃花生，也不能吃虾；周五要去里昂开会，住处还没有订。",
        "I can't eat peanuts, and I cannot sleep before the flight to Lyon.",
        "Unfortunately the flight cannot be changed; the trip to Lyon stays on Friday.",
        "用户想要什么：\n- 机票",
        '{"task": "book flight", "state": "paid"}',
    ],
)
def test_short_prose_of_a_conversation_is_a_summary(answer: str):
    """B023."""
    assert read_summary(answer) is not None


def test_identifiers_are_found_at_once_in_a_long_word():
    assert identifiers(f"{'a' * 200_000} ann@example.com") == ["ann@example.com"]

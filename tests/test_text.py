"""memory.text and nodes.text: text is cleaned once at the border; a message shows what a person would read."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage

from memory.text import clean, clean_all, is_bare, is_chinese
from nodes.text import calls_of, is_blank, last_human, question_of, text_of

ANY_TEXT = st.text(st.characters(), max_size=60)  # lone surrogates and NUL included
KEPT = st.text(st.characters(exclude_categories=["Cc", "Cs"], include_characters="\t\r\n"), max_size=60)


@settings(deadline=None)
@given(ANY_TEXT)
def test_clean_text_can_be_encoded_and_cleaning_it_again_changes_nothing(text: str) -> None:
    """B040, B060."""
    cleaned = clean(text)
    cleaned.encode()
    assert clean(cleaned) == cleaned
    assert not any(ord(char) < 32 and char not in "\t\r\n" for char in cleaned)


@settings(deadline=None)
@given(KEPT)
def test_everything_else_stays_as_it_was_written(text: str) -> None:
    assert clean(text) == text


@pytest.mark.parametrize(
    ("dirty", "cleaned"),
    [
        ("book a \x00 table", "book a  table"),
        ("bold \ud835 text", "bold \ufffd text"),
        ("\ud83c\udf78", "🍸"),
        ("\udf78\ud83c", "\ufffd\ufffd"),
        ("a\x1b[31mb\x7f", "a[31mb"),
        ("\ufeffa\ud800", "\ufeffa\ufffd"),
        ("a\tb\r\nc", "a\tb\r\nc"),
        ("e\u0301 ﬁ 　", "e\u0301 ﬁ 　"),
    ],
)
def test_what_nothing_can_carry_goes_or_is_replaced(dirty: str, cleaned: str) -> None:
    """B040, B060, and no normalising."""
    assert clean(dirty) == cleaned


@settings(deadline=None)
@given(st.recursive(ANY_TEXT | st.integers() | st.none(), lambda one: st.lists(one) | st.dictionaries(ANY_TEXT, one)))
def test_nested_values_are_cleaned_to_the_last_string(value: Any) -> None:
    cleaned = clean_all(value)
    repr(cleaned).encode()
    assert clean_all(cleaned) == cleaned and type(cleaned) is type(value)


def test_containers_keep_their_kind_and_other_values_are_left_alone() -> None:
    other = object()
    assert clean_all({"a\x00": ("b\x00", [b"c\x00", other])}) == {"a": ("b", [b"c\x00", other])}


@pytest.mark.parametrize(
    ("text", "chinese"),
    [("你好", True), ("hello 你好", True), ("hello", False), ("東京はどこ", False), ("", False), ("안녕", False)],
)
def test_chinese_is_told_by_its_characters(text: str, *, chinese: bool) -> None:
    assert is_chinese(text) is chinese


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ("plain", "plain"),
        (["a", {"type": "text", "text": "b"}], "a\nb"),
        ([{"type": "reasoning", "reasoning": "hm"}, {"type": "thinking", "text": "hm"}], ""),
        ([{"type": "tool_use", "id": "c1", "name": "f", "input": {}}], ""),
        ([{"type": "image_url", "image_url": {"url": "data:" + "A" * 9}}], "[image]"),
        ([{"type": "input_image"}, {"type": "file"}, {"type": "audio"}], "[image]\n[file]\n[audio]"),
        ([{"type": "refusal", "refusal": "I cannot."}], "I cannot."),
        ([{"type": "text-plain", "text": "a file's text"}], "a file's text"),
        ([{"type": "text", "text": None}, {"type": "text"}], ""),
        ([{"odd": 1}], "[unknown]"),
    ],
)
def test_a_message_shows_its_text_and_names_its_media(content: Any, text: str) -> None:
    assert text_of(AIMessage(content)) == text
    assert is_blank(AIMessage(content)) == (text == "")


def test_the_question_is_the_newest_text_of_the_user() -> None:
    page: list[BaseMessage] = [HumanMessage("first"), AIMessage("a"), HumanMessage(" second\n"), AIMessage("b")]
    assert last_human(page) == 2 and question_of(page) == "second"
    assert last_human([]) == -1 and question_of([AIMessage("a")]) == ""


def test_invalid_calls_count_as_calls() -> None:
    """B028."""
    broken = {"name": None, "args": "{", "id": None, "error": "cut"}
    answer = AIMessage("", tool_calls=[{"name": "f", "args": {}, "id": "c1"}], invalid_tool_calls=[broken])
    assert calls_of(answer) == [("c1", "f"), ("", "")]
    assert calls_of(ToolMessage("r", tool_call_id="c1")) == []


UNSEEN = st.text(st.sampled_from("\u200b\u200d\u2060\ufeff\u00ad \n\t\u3000"), max_size=5)


@given(UNSEEN, st.characters(exclude_categories=["Cc", "Cs", "Cf", "Zs", "Zl", "Zp"]), UNSEEN)
def test_a_text_of_signs_that_nobody_sees_shows_nothing_and_any_other_does(before: str, sign: str, after: str) -> None:
    assert is_bare(before + after) and is_blank(AIMessage(before)) and is_blank(HumanMessage(before))
    assert not is_bare(before + sign + after) and not is_blank(HumanMessage(before + sign))


@pytest.mark.parametrize("thought", ["<think>hm</think>", "<think>hm", "<thinking>\nhm\n</thinking>\n", "hm</think>"])
def test_what_a_model_only_thinks_is_no_answer(thought: str) -> None:
    assert is_blank(AIMessage(thought)) and not is_blank(AIMessage(f"{thought.removesuffix('hm')}</think>4"))
    assert not is_blank(HumanMessage(thought))

"""nodes.extract: an extractor's answer is read in any wrapping; only what the user said is kept."""

import json
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nodes import prompts
from nodes.extract import MAX_CHARS, NO_ANSWER, Saying, is_grounded, lines_of, read_extraction

AT = datetime(2026, 12, 2, 9, tzinfo=UTC)


def saying(id: str, text: str) -> Saying:
    return Saying(id=id, text=text, at=AT)


SAID = [
    saying("h1", "I like green tea, and I am allergic to peanuts."),
    saying("h2", "我住在杭州，对花生过敏。"),
    saying("h3", "ok thanks"),
]
TEA = '{"memories": [{"text": "likes green tea", "source": "h1"}], "facts": []}'
WRONG = '{"memories": [{"text": "green tea WRONG", "source": "h1"}]}'


def memories(answer: str, said: list[Saying] = SAID, known: tuple[str, ...] = ()) -> list[str]:
    return [one.text for one in read_extraction(answer, said, known).memories]


def facts(*entries: dict[str, Any]) -> list[tuple[str, str]]:
    found = read_extraction(json.dumps({"facts": entries}), SAID)
    return [(one.key, one.value) for one in found.facts]


@pytest.mark.parametrize(
    "answer",
    [
        TEA,
        f"```json\n{TEA}\n```",
        f"Here are the facts: {TEA} Hope it helps {{}}",
        f'{{"result": {TEA}}}',
        f"<think>{WRONG}</think>{TEA}",
        f"<thinking>\n{WRONG}\n</thinking>\n{TEA}",
        f"<reasoning>{WRONG}</reasoning>{TEA}",
        f"◁think▷{WRONG}◁/think▷{TEA}",
        f"{WRONG}</think>{TEA}",
        f"{TEA}{TEA}",
        f'{TEA}\n{{"memories": [], "facts": []}}',
        f'{{"memories": [], "facts": []}}\n{TEA}',
        TEA.replace("}],", "},],"),
        TEA.replace("[]}", "[],\n}"),
        f"{TEA}<think>{WRONG}",
        f'The form is {{"memories": …}}, so: {TEA}',
        f'{{"other": 1}} {TEA}',
        f"{{{{ {TEA}",
        json.dumps(json.loads(TEA), indent=2),
    ],
)
def test_the_object_is_found_in_any_wrapping(answer: str) -> None:
    """B129."""
    assert memories(answer) == ["likes green tea"]


@pytest.mark.parametrize(
    "answer",
    ["", "nothing", "{}", "[]", f"<think>{WRONG}", '{"memories": [', "{" * 10_000, '{"a":' * 10_000, TEA[:30], "null"],
)
def test_an_answer_without_an_object_is_no_answer(answer: str) -> None:
    """B129: which asks for a second try; it is not the same as "nothing to keep"."""
    assert read_extraction(answer, SAID).failed == NO_ANSWER and memories(answer) == []


@pytest.mark.parametrize("cut", range(len('{"memories": [{"text": "likes green tea", "source": "h1"}'), len(TEA)))
def test_of_half_an_answer_what_is_whole_is_kept_and_the_rest_asked_for(cut: int) -> None:
    found = read_extraction(f"```json\n{TEA[:cut]}", SAID)
    assert [one.text for one in found.memories] == ["likes green tea"] and found.failed == NO_ANSWER
    again = found.joined(read_extraction(TEA, SAID))
    assert [one.text for one in again.memories] == ["likes green tea"] and not again.failed


def test_nothing_to_keep_is_an_answer() -> None:
    assert memories('{"memories": [], "facts": []}') == []
    assert memories('{"memories": null, "facts": "none"}') == []


@pytest.mark.parametrize(
    ("text", "source"),
    [
        ("User said ok thanks", "h3"),
        ("ok thanks", "h3"),
        ("The user thanks you", "h3"),
        ("Leave out questions, small talk, guesses", "h3"),
        ("A memory is one statement that stands alone", "h1"),
        ("The user likes coffee from Peru", "h1"),
        ("likes green tea", "h2"),
        ("likes green tea", "h9"),
        ("likes green tea", ""),
        ("", "h1"),
        (" \n", "h1"),
        ("green tea " * (MAX_CHARS // 10 + 1), "h1"),
        ("用户说谢谢", "h3"),
        ("用户喜欢喝咖啡和跑步", "h2"),
    ],
)
def test_what_is_not_in_the_message_that_it_names_is_dropped(text: str, source: str) -> None:
    """B128."""
    assert memories(json.dumps({"memories": [{"text": text, "source": source}]})) == []


@pytest.mark.parametrize(
    "sentence", [line for line in prompts.EXTRACT.replace(". ", ".\n").split("\n") if len(line.split()) > 5]
)
def test_no_sentence_of_the_prompt_becomes_a_memory(sentence: str) -> None:
    """B128: not even if the user happened to use all of its words."""
    assert not is_grounded(sentence, sentence)


@pytest.mark.parametrize(
    ("text", "source"),
    [
        ("The user is allergic to peanuts", "h1"),
        ("I like green tea", "h1"),
        ("用户对花生过敏", "h2"),
        ("住在杭州", "h2"),
    ],
)
def test_what_the_user_said_is_kept_in_their_words(text: str, source: str) -> None:
    assert memories(json.dumps({"memories": [{"text": text, "source": source}]})) == [text]


def test_one_bad_entry_spoils_no_other() -> None:
    good = {"text": "likes green tea", "source": "h1"}
    bad: list[Any] = [None, "text", {}, {"text": 1, "source": "h1"}, {"text": None, "source": "h1"}, [good], good]
    assert memories(json.dumps({"memories": bad})) == ["likes green tea"]


def test_the_same_statement_twice_is_kept_once() -> None:
    good = {"text": "likes green tea", "source": "h1"}
    assert memories(json.dumps({"memories": [good, good]})) == ["likes green tea"]


def test_a_fact_needs_a_key_and_a_value_of_the_message() -> None:
    allergy = {"key": "allergy", "value": "peanuts", "source": "h1"}
    assert facts(allergy, {**allergy, "value": "cats"}, {**allergy, "key": " "}, {**allergy, "key": "\u200b"}) == [
        ("allergy", "peanuts")
    ]
    assert facts({**allergy, "key": "k" * 200}, {**allergy, "value": ""}, {**allergy, "source": "h3"}) == []
    assert facts({"key": "city", "value": "杭州", "source": "h2"}) == [("city", "杭州")]


def test_a_short_value_counts_where_the_message_holds_it() -> None:
    said = [saying("h1", "Newsletter: no!"), saying("h2", "no")]
    entries = [{"key": "newsletter", "value": "No", "source": source} for source in ("h1", "h2")]
    found = read_extraction(json.dumps({"facts": entries}), said)
    assert [one.source for one in found.facts] == ["h1"]


@settings(deadline=None)
@given(st.text(st.characters(), max_size=60) | st.text(st.sampled_from('{}[]",: \\mefacts<think>/'), max_size=60))
def test_any_answer_is_read_without_an_error(answer: str) -> None:
    read_extraction(answer, SAID)
    read_extraction(f"{answer}{TEA}{answer}", SAID)


@settings(deadline=None)
@given(st.lists(st.tuples(st.text(max_size=5), st.text(max_size=30)), max_size=3))
def test_each_message_is_one_line_of_json_with_its_day(said: list[tuple[str, str]]) -> None:
    """A text cannot break out of its quotes, whatever line ends it holds."""
    lines = lines_of([saying(id, text) for id, text in said]).splitlines()
    day = "2026-12-02 Wednesday"
    assert [json.loads(line) for line in lines] == [{"id": id, "date": day, "text": text} for id, text in said]


@pytest.mark.parametrize(
    "piece", ["<think>", "</think>", '{"memories": [', "{", '{"a":[', '{"facts":"', ",", ", ]", "\\"]
)
def test_a_megabyte_of_rubbish_is_read(piece: str) -> None:
    assert memories(piece * (1_000_000 // len(piece))) == []

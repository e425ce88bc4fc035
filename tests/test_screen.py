"""What a chat prints: no word of an answer is lost, nothing that stands is redrawn, no escape sequence passes."""

import io
import re

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from persons import ESCAPES
from rich.console import Console

from graph.screen import MarkdownScreen, Screen, settled

LINES = st.sampled_from(
    [
        "", "", "word", "  indented", "- item", "1. first", "2) second", "* star", "```", "```python", "~~~", "# Title",
        "> quoted", "| a | b |", "|---|---|", "| 1 | 深圳 |", "<b>bold</b>", "a <thread_id> b", "---", "**bold",
        "\t- deep",
    ]
)  # fmt: skip
WORDS = ["alpha", "<beta>", "gamma_delta", "深圳", "</b>", "3 < 4"]
TEXTS = st.lists(LINES, max_size=25).map("\n".join)


def drawn(text: str, size: int) -> str:
    """Return the screen after an answer that came in pieces of this size, without escape sequences."""
    file = io.StringIO()
    screen = MarkdownScreen(Console(file=file, force_terminal=True, width=80, height=20, color_system=None))
    for n in range(0, len(text), size):
        screen.piece(text[n : n + size])
    screen.end()
    return ESCAPES.sub("", file.getvalue())


@given(TEXTS, st.integers(0, 400))
def test_what_is_settled_stays_so_whatever_follows(text: str, cut: int):
    whole = settled(text[:cut])
    assert whole <= settled(text) and text[:whole].rstrip("\n") == text[: settled(text)][:whole].rstrip("\n")
    assert whole == 0 or text[:whole].endswith("\n")


@given(TEXTS)
def test_nothing_is_settled_inside_a_fence_or_a_list(text: str):
    rest = text[settled(text) :]
    if rest.strip() and settled(text):
        assert not rest[0].isspace() and not re.match(r"[-*+] |\d+[.)] ", rest)


@settings(max_examples=40)
@given(
    st.lists(st.sampled_from(["alpha", "<beta>", "gamma_delta", "深圳", "</b>", "3 < 4"]), min_size=1),
    st.integers(1, 9),
)
@example(["<a href='x'>", "alpha"], 3)
def test_no_word_of_an_answer_is_lost(words: list[str], size: int):
    """HTML included: a browser would hide it, a reader wants `<beta>`."""
    for joint in (" ", "\n", "\n\n"):
        shown = drawn(joint.join(words), size)
        assert all(word in shown for word in words)


def test_lines_of_a_text_stay_lines():
    shown = [line.rstrip() for line in drawn("roses are red\nviolets are blue", 100).splitlines()]
    assert shown[-2:] == ["roses are red", "violets are blue"]


@pytest.mark.parametrize("size", [1, 3, 100])
def test_no_escape_sequence_of_a_model_reaches_the_terminal(size: int, capsys: pytest.CaptureFixture[str]):
    text = "\x1b[2J\x1b]0;title\x07gone\x9b \ud83c end"
    file = io.StringIO()
    markdown = MarkdownScreen(Console(file=file, force_terminal=True, color_system=None))
    for screen in (markdown, Screen()):
        for n in range(0, len(text), size):
            screen.piece(text[n : n + size])
        screen.end()
    for shown in (file.getvalue(), capsys.readouterr().out):
        assert "\x1b[2J" not in shown and "\x07" not in shown and "\x9b" not in shown and "gone" in shown

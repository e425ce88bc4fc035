"""Where a text stands in another, as a reader sees it: the same characters in another form are the same text."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.matching import closest, places, uniform
from memory.text import within_sign

TRICKY = st.text(
    st.sampled_from("ab e\u0301é\n\r\t \u3000\x85\u2028中文한\u1112\u1161\u11ab👍🏽\u200d\x00\ud800"), max_size=12
)
ANY = TRICKY | st.text(max_size=12)


@given(ANY)
def test_a_kept_text_is_nfc_with_one_kind_of_line_end(text: str) -> None:
    """B142, B144."""
    kept = uniform(text)
    assert uniform(kept) == kept and unicodedata.is_normalized("NFC", kept)
    assert len(kept.splitlines()) == len(kept.split("\n")) - (kept.endswith("\n") or not kept)


@given(ANY, ANY, ANY)
def test_what_is_there_is_found(before: str, old: str, after: str) -> None:
    text, old = uniform(before + old + after), uniform(old)
    found = [text[start:end] for start, end in places(text, old)]
    at = [n for n in range(len(text)) if old and text.startswith(old, n)]
    within = [n for n in at if within_sign(text, n) or within_sign(text, n + len(old))]
    assert len(found) >= len(at) - len(within)
    assert all(plain(one) == plain(old) for one in found)


def plain(text: str) -> str:
    """Write a text without blanks at the ends of lines."""
    return "\n".join(line.rstrip(" \t\u00a0\u3000") for line in text.split("\n"))


@pytest.mark.parametrize(
    ("text", "old", "found"),
    [
        ("likes tea\nlikes tea with milk", "likes tea", ["likes tea", "likes tea"]),
        ("## Todo\n- empty\n## Likes", "## Todo\n- empty", ["## Todo\n- empty"]),
        ("caf\u00e9 na Rua", "cafe\u0301", ["caf\u00e9"]),
        ("cafe\u0301 na Rua", "caf\u00e9", ["caf\u00e9"]),
        ("언어: \u1112\u1161\u11ab\u1100\u1173\u11af", "한글", ["한글"]),
        ("cafe\u0301", "cafe", []),
        ("x\u030c", "x", []),
        ("a family 👨\u200d👩\u200d👧 of three", "👨", []),
        ("a family 👨\u200d👩\u200d👧 of three", "👧", []),
        ("hi 👍🏽", "👍", []),
        ("🇩🇪🇺🇸", "🇪🇺", []),
        ("🇩🇪🇺🇸", "🇺🇸", ["🇺🇸"]),
        ("की", "क", []),
        ("a\r\nb\r\nc", "a\nb", ["a\nb"]),
        ("a\nb\nc", "a\r\nb", ["a\nb"]),
        ("a\rb\rc", "b\nc", ["b\nc"]),
        ("a  \nb\t\nc", "a\nb\nc", ["a  \nb\t\nc"]),
        ("a\nb", "a \t\nb  ", ["a\nb"]),
        ("a\u3000\nb", "a\nb", ["a\u3000\nb"]),
        ("喜欢喝茶　\n住在波尔图", "喜欢喝茶\n住在波尔图", ["喜欢喝茶　\n住在波尔图"]),
        ("likes tea with milk", "likes tea ", ["likes tea "]),
        ("likes teas", "likes tea ", []),
        ("a\n  b", "a\nb", []),
        ("a b", "a  b", []),
        ("Tea", "tea", []),
        ("ｔｅａ", "tea", []),
        ("aaa", "aa", ["aa", "aa"]),
        ("x  \na", "\na", ["\na"]),
        ("x  \na", "  \na", ["  \na"]),
        ("x\na", "  \na", ["\na"]),
        ("a b", " ", [" "]),
        ("a\nb", "\n", ["\n"]),
        ("a.c abc", "a.c", ["a.c"]),
    ],
)
def test_form_line_ends_and_trailing_blanks_do_not_count_and_nothing_else_does(
    text: str, old: str, found: list[str]
) -> None:
    """B138, B140, B142, B144."""
    text = uniform(text)
    assert [text[start:end] for start, end in places(text, uniform(old))] == found


@given(ANY, ANY)
def test_the_closest_is_a_part_of_the_text(text: str, old: str) -> None:
    assert closest(text, old) in text


@pytest.mark.parametrize(
    ("text", "old", "shown"),
    [
        ("lives in Porto\nlikes green tea\nhas two cats", "likes black tea", "likes green tea"),
        ("住在波尔图\n喜欢喝绿茶\n养了两只猫", "喜欢喝红茶", "喜欢喝绿茶"),
        ("abc", "xyz", ""),
        ("", "xyz", ""),
    ],
)
def test_the_closest_is_shown_with_its_line(text: str, old: str, shown: str) -> None:
    assert closest(text, old) == shown

"""The pictures of the READMEs are made again, and show what the program says today."""

import re
from pathlib import Path

import pytest
from browser import CHROMIUM
from record_pictures import MOST_BYTES, PICTURES, STORIES, drawn, looked_at, screen_of, talked, text_in_png, text_in_svg

REMAKE = "if the new text is meant, make the pictures anew: python tests/record_pictures.py"
NOTICE = re.compile(r"\[(?:Rehearsalmodel|排练模型)[^]]*\]")
"""It names what model servers run on this machine."""


def essence(text: str) -> str:
    """Return a text without what differs from run to run: numbers, the breaks of lines, the notice."""
    return NOTICE.sub("[]", re.sub(r"\d[\d.:,-]*", "0", "".join(text.split())))


@pytest.mark.parametrize("language", STORIES)
def test_the_recording_shows_what_the_terminal_says_today(language: str, tmp_path: Path):
    kept = (PICTURES / f"chat.{language}.svg").read_text(encoding="utf-8")
    story = STORIES[language]
    screen = screen_of(talked(story, tmp_path))
    assert essence(text_in_svg(kept)) == essence(text_in_svg(drawn(screen))), REMAKE
    for line in story.lines:
        assert line.replace(" ", "") in "".join(text_in_svg(kept).split())


@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on this machine: apt-get install chromium")
@pytest.mark.parametrize("language", STORIES)
def test_the_screenshot_shows_what_the_page_says_today(language: str, tmp_path: Path):
    story = STORIES[language]
    talked(story, tmp_path)
    kept = (PICTURES / f"memory.{language}.png").read_bytes()
    _, text = looked_at(story, tmp_path / ".palimpsest", tmp_path / "profile")
    assert essence(text_in_png(kept)) == essence(text), REMAKE


def test_the_pictures_are_small_and_each_readme_shows_those_of_its_language():
    picture, root = re.compile(r"!\[[^]]+\]\(tests/pictures/([^)]+)\)"), PICTURES.parent.parent
    shown = {name: picture.findall((root / name).read_text("utf-8")) for name in ("README.md", "README.zh.md")}
    assert shown == {
        "README.md": ["chat.en.svg", "memory.en.png"],
        "README.zh.md": ["chat.zh.svg", "memory.zh.png"],
    }
    assert {path.name for path in PICTURES.iterdir()} == {name for names in shown.values() for name in names}
    assert all(path.stat().st_size < MOST_BYTES for path in PICTURES.iterdir())


@pytest.mark.parametrize(
    ("written", "screen"),
    [
        ("a\r\nb\r\n", ["a", "b"]),
        ("> x\r\n\x1b[?25lone\r\ntw\r\n\x1b[?25h\r\x1b[1A\x1b[2K\x1b[1A\x1b[2Kone\r\ntwo\r\n", ["> x", "one", "two"]),
        ("\x1b[2mdim\x1b[0m\r\n", ["\x1b[2mdim\x1b[0m"]),
        ("one   \r\x1b[2Kother\r\n", ["other"]),
    ],
)
def test_what_was_drawn_anew_is_on_the_screen_once(written: str, screen: list[str]):
    assert screen_of(written) == screen

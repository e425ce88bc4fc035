"""Makes the pictures of the READMEs from the program itself: `python tests/record_pictures.py`.

A person talks on a real terminal, and what the screen showed becomes an SVG; then Chromium looks at the memory page of
the same home. The text that can be read in a picture is kept in it, so that a test can tell when it is no longer true.
"""

import html
import re
import struct
import sys
import tempfile
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from browser import open_browser
from page_server import Nobody, app_of, served
from persons import Person
from rich.cells import cell_len
from rich.console import Console
from rich.terminal_theme import MONOKAI
from rich.text import Text

from graph.agent import open_agent
from graph.settings import Settings
from graph.turn import run
from nodes.context import Context

PICTURES = Path(__file__).with_name("pictures")
SIZE = (60, 92)
CONSOLE = Console()
MOST_BYTES = 150_000
CONTROL = re.compile(r"\r|\n|\x1b\[(\d*)A|\x1b\[2K|\x1b\[\?\w+")
COLUMN, LINE, EDGE = 9, 22, 16
"""Pixels of a column, a line, and the edge around them."""
WIDE = "\u1100-\uffdc\uffe0-\uffee"
PIECE = re.compile(rf"[{WIDE}]+|[^\s{WIDE}]+(?: [^\s{WIDE}]+)*")
"""What is drawn at one place: wide characters apart from the others, so that no font moves what follows them."""
FONTS = "ui-monospace, Menlo, Consolas, 'DejaVu Sans Mono', 'PingFang SC', 'Microsoft YaHei', monospace"
INK, FADED, PAPER = "#e6e6ec", "#9292a0", "#16161c"
FRAME = """\
<svg viewBox="0 0 {width} {height}" width="{width}" height="{height}" xmlns="http://www.w3.org/2000/svg">
<rect width="{width}" height="{height}" rx="10" fill="{paper}"/>
<g font-family="{fonts}" font-size="15" fill="{ink}">
{texts}
</g></svg>
"""


@dataclass(frozen=True)
class Story:
    """What is said in the terminal, what besides, and what is looked for on the page, in one language."""

    language: str
    lines: tuple[str, ...]
    besides: tuple[str, ...]
    question: str
    locale: str


STORIES = {
    "en": Story(
        language="en",
        lines=("I'm allergic to peanuts.", "/thread friday", "What should I avoid eating?", "12 * (7 + 30)?", "/trace"),
        besides=("I live in Hangzhou.", "I prefer tea to coffee.", "My sister's name is Lin."),
        question="What should I avoid eating?",
        locale="en-US",
    ),
    "zh": Story(
        language="zh",
        lines=("我对花生过敏。", "/thread 星期五", "我不能吃什么？", "12 * (7 + 30) 等于多少？", "/trace"),
        besides=("我住在杭州。", "比起咖啡，我更喜欢喝茶。", "我姐姐叫林。"),
        question="我不能吃什么？",
        locale="zh-CN",
    ),
}


def talked(story: Story, folder: Path) -> str:
    """Talk with the rehearsal model at a terminal; return what it wrote to the screen, with its escape sequences."""
    command = (sys.executable, "-m", "graph", "chat", "--model", "rehearsal", "--thread")
    thread = {"en": "monday", "zh": "星期一"}[story.language]
    env = {"TERM": "xterm-256color", "LANG": "C.UTF-8", "PALIMPSEST_LANGUAGE": story.language}
    with Person(*command, thread, folder=folder, size=SIZE, **env) as person:
        for line in (*story.lines, "\x04"):
            person.says(line)
        assert person.ends() == 0
        return person.raw.decode()


def screen_of(written: str) -> list[str]:
    """Return the lines of the screen after all that was written to it, with their colours.

    The chat moves up and clears whole lines, and readline writes a line as it is typed: no more is known here.
    """
    lines, row, place = [""], 0, 0
    for control in CONTROL.finditer(written):
        lines[row] += written[place : control.start()]
        place = control.end()
        if control[0] == "\n":
            row += 1
            lines += [""] * (row == len(lines))
        elif control[0].endswith("A"):
            row = max(row - int(control[1] or 1), 0)
        elif control[0].endswith("2K"):
            lines[row] = ""
    return lines if lines[-1] else lines[:-1]


def drawn(lines: list[str]) -> str:
    """Draw lines with their colours as an SVG, every character in its column."""
    texts = [text for row, line in enumerate(lines, 1) for text in texts_of(line, EDGE + row * LINE - 6)]
    width, height = 2 * EDGE + SIZE[1] * COLUMN, 2 * EDGE + len(lines) * LINE
    return FRAME.format(width=width, height=height, paper=PAPER, ink=INK, fonts=FONTS, texts="\n".join(texts))


def texts_of(line: str, y: int) -> Iterator[str]:
    """Yield the texts of a line."""
    column = 0
    for text, style, _ in Text.from_ansi(line).render(CONSOLE):
        look = ' font-weight="600"' if style and style.bold else ""
        if style and (style.dim or style.color):
            colour = FADED if style.dim or not style.color else style.color.get_truecolor(MONOKAI).hex
            look += f' fill="{colour}"'
        for piece in PIECE.finditer(text):
            x = EDGE + (column + cell_len(text[: piece.start()])) * COLUMN
            place = f'x="{x}" y="{y}" textLength="{cell_len(piece[0]) * COLUMN}"'
            place += ' lengthAdjust="spacingAndGlyphs"' * (cell_len(piece[0]) > len(piece[0]))
            yield f"<text {place}{look}>{html.escape(piece[0], quote=False)}</text>"
        column += cell_len(text)


def text_in_svg(svg: str) -> str:
    """Return what can be read in an SVG."""
    return html.unescape("".join(re.findall(r"<text[^>]*>([^<]*)</text>", svg)))


def looked_at(story: Story, home: Path, profile: Path) -> tuple[bytes, str]:
    """Tell the agent more, search on the memory page; return a picture of it and the text that it shows."""
    settings = Settings(home=home, model="rehearsal", user="me")
    with open_agent(settings) as agent, served(app_of(agent.store, agent.checkpointer, settings, Nobody())) as address:  # type: ignore[arg-type]
        for text in story.besides:
            run(agent, text, thread="besides", context=Context(user="me"))
        with open_browser(profile) as browser:
            browser.look(languages=story.locale, width=900, height=560)
            browser.open(f"{address}/memory")
            browser.click("#search")
            browser.click("#search-words")
            browser.type(story.question)
            browser.press("Enter")
            browser.until("document.querySelector('tbody')")
            browser.js("document.activeElement.blur()")
            return browser.screenshot(profile / "page.png"), browser.text()


def with_text(png: bytes, text: str) -> bytes:
    """Keep a text in a PNG (a chunk of the kind iTXt)."""
    body = b"iTXtDescription\0\0\0\0\0" + text.encode()
    end = len(png) - 12
    return png[:end] + struct.pack(">I", len(body) - 4) + body + struct.pack(">I", zlib.crc32(body)) + png[end:]


def text_in_png(png: bytes) -> str:
    """Return the text that is kept in a PNG."""
    return png[png.index(b"iTXtDescription") + 20 : len(png) - 16].decode()


def main() -> None:
    """Make all pictures anew."""
    PICTURES.mkdir(exist_ok=True)
    for story in STORIES.values():
        with tempfile.TemporaryDirectory() as folder:
            svg = drawn(screen_of(talked(story, Path(folder))))
            png, text = looked_at(story, Path(folder) / ".palimpsest", Path(folder) / "profile")
        (PICTURES / f"chat.{story.language}.svg").write_text(svg, encoding="utf-8")
        (PICTURES / f"memory.{story.language}.png").write_bytes(with_text(png, text))


if __name__ == "__main__":
    main()

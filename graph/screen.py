"""Where a chat's answers go: plain text for a pipe, Markdown that is drawn as it comes for a screen, or JSON.

Standard output gets answers, and what a command was asked to show; everything else goes to standard error.
"""

import re
import sys
from collections.abc import Iterable
from typing import Any

from rich.console import Console, ConsoleOptions, RenderResult
from rich.live import Live
from rich.segment import Segment
from rich.text import Text

from graph.outcomes import json_text
from graph.texts import ENGLISH, Say
from memory.text import clean

DRAWN_PER_S = 12
C1 = re.compile("[\x80-\x9f]")
"""Controls that some terminals obey as they obey an escape sequence."""


class Screen:
    """Plain text, piece by piece. `say` is the language of whoever looks at it."""

    def __init__(self, say: Say = ENGLISH) -> None:
        self.say, self.open = say, False

    def piece(self, text: str) -> None:
        """Print the next piece of an answer."""
        print(safe(text), end="", flush=True)
        self.open = True

    def end(self) -> None:
        """End the answer, whole or broken off."""
        if self.open:
            print(flush=True)
        self.open = False

    def note(self, *lines: str) -> None:
        """Tell something beside the answer."""
        self.end()
        for line in lines:
            print(safe(line), file=sys.stderr, flush=True)

    def show(self, lines: Iterable[str]) -> None:
        """Show what a command was asked for."""
        print(safe("\n".join(lines)) or self.say("(nothing)"), flush=True)

    def result(self, told: dict[str, Any]) -> None:
        """Take what a turn came to."""


class JsonScreen(Screen):
    """One object a line for each turn, and nothing else."""

    def piece(self, text: str) -> None:
        """Wait for the whole."""

    def show(self, lines: Iterable[str]) -> None:
        """Show it where it does not mix with the objects."""
        self.note(*lines)

    def result(self, told: dict[str, Any]) -> None:
        """Print it."""
        print(json_text(told, indent=None), flush=True)


class MarkdownScreen(Screen):
    """Markdown on a terminal: whole blocks stay where they were drawn, the newest is drawn anew as it grows."""

    def __init__(self, console: Console, say: Say = ENGLISH) -> None:
        super().__init__(say)
        self.console, self.aside = console, Console(stderr=True, highlight=False, soft_wrap=True)
        self.live: Live | None = None
        self.text, self.first = "", True

    def piece(self, text: str) -> None:
        """Draw the answer with its next piece."""
        self.text += safe(text)
        whole = settled(self.text)
        if whole:
            self.settle(self.text[:whole])
            self.text = self.text[whole:]
        if self.live is None:
            self.live = Live(
                console=self.console,
                get_renderable=lambda: Tail(self.text),
                refresh_per_second=DRAWN_PER_S,
                transient=True,
                redirect_stdout=False,
                redirect_stderr=False,
            )
            self.live.start()

    def end(self) -> None:
        """Draw what is left."""
        if self.live is not None:
            self.settle(self.text)
        self.text, self.first = "", True

    def settle(self, text: str) -> None:
        """Draw a block for good."""
        if self.live is not None:
            self.live.stop()
            self.live = None
        if text.strip():
            if not self.first:
                self.console.print()
            self.console.print(markdown(text))
            self.first = False

    def note(self, *lines: str) -> None:
        """Tell it in a lighter tone."""
        self.end()
        for line in lines:
            self.aside.print(Text(safe(line), style="dim"))


class Tail:
    """The last lines of a text that may be higher than the screen."""

    def __init__(self, text: str) -> None:
        self.text = text

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        lines = console.render_lines(markdown(self.text), options, pad=False)[-max(console.height - 2, 1) :]
        for line in lines:
            yield from line
            yield Segment.line()


def safe(text: str) -> str:
    """Return what a terminal only shows, and never obeys."""
    return C1.sub("", clean(text))


def markdown(text: str) -> Any:
    """Read Markdown for a screen: lines end where the text's do, and what looks like HTML is text."""
    from markdown_it import MarkdownIt  # who pipes an answer need not wait for these
    from rich.markdown import Markdown

    shown = Markdown("")
    shown.parsed = MarkdownIt("commonmark", {"html": False}).enable("strikethrough").enable("table").parse(text)
    for token in shown.parsed:
        for child in token.children or ():
            if child.type == "softbreak":
                child.type = "hardbreak"
    return shown


def settled(text: str) -> int:
    """Return how many characters are blocks that no later text can change.

    That is up to the last blank line that is not in a code fence and has a block after it that cannot belong to a list.
    """
    place, whole, fence, blank = 0, 0, "", False
    for line in text.splitlines(keepends=True):
        mark = line.strip()[:3]
        if blank and not fence and line.strip() and line.endswith("\n") and not continues(line):
            whole = place
        if mark in ("```", "~~~") and fence in ("", mark):
            fence = "" if fence else mark
        blank = not line.strip()
        place += len(line)
    return whole


def continues(line: str) -> bool:
    """Whether a line after a blank one may go on with a list."""
    word = line.split(maxsplit=1)[0]
    return line[0] in " \t" or word in ("-", "*", "+") or (word[-1] in ".)" and word[:-1].isdecimal())


def screen_for(*, as_json: bool, say: Say = ENGLISH) -> Screen:
    """Return the screen that fits where standard output goes."""
    if as_json:
        return JsonScreen(say)
    console = Console(highlight=False)
    is_screen = sys.stdout.isatty() and not console.is_dumb_terminal
    return MarkdownScreen(console, say) if is_screen else Screen(say)

"""What a person writes: messages of one line or several, from a keyboard with a history, or from a pipe.

Line editing is readline's, where Python has it: it knows wide characters, and a pasted text of many lines is one
message. It does not know what a message means: graph/chat.py does.
"""

import json
import sys
from collections.abc import Iterator
from hashlib import sha256
from importlib import import_module
from pathlib import Path
from typing import Any, TextIO

from graph.texts import ENGLISH, Say
from memory.text import clean

FENCE = '"""'
MOST_KEPT = 1_000
"""Messages of the history that are there again in the next session."""

LEAVING = "(Ctrl-C again or Ctrl-D leaves)"


class Keyboard:
    """Where a person or a script writes, by default standard input. `is_live` tells whether a person sits there."""

    def __init__(self, history: Path | None = None, *, source: TextIO | None = None, say: Say = ENGLISH) -> None:
        self.say = say
        self.source = source or sys.stdin
        self.is_live = self.source.isatty()
        self.readline = editing(self.is_live)
        self.history = history if self.readline else None
        for message in kept(self.history) if self.history else ():
            self.readline.add_history(message)

    def line(self, prompt: str, *, given: str = "") -> str | None:
        """Read one line, cleaned, None at the end of input; where lines can be edited `given` is there to be."""
        if not self.is_live:
            text = self.source.readline()
            return clean(text).lstrip("\ufeff").rstrip("\n") if text else None
        if self.readline:
            self.readline.set_startup_hook(lambda: self.readline.insert_text(given))
        try:
            return clean(asked(prompt))
        except EOFError:
            print(file=sys.stderr)
            return None

    def message(self, prompt: str = "> ", more: str = ". ") -> str | None:
        """Read one message: a line, lines that end in a backslash, or what stands between two fences."""
        text = self.line(prompt)
        if text is None:
            return None
        if text.lstrip().startswith(FENCE):
            return self.fenced(text.lstrip().removeprefix(FENCE), more)
        while text.endswith("\\") and (next_line := self.line(more)) is not None:
            text = f"{text[:-1]}\n{next_line}"
        return text.strip()

    def fenced(self, text: str, more: str) -> str:
        """Read on to the closing fence, or to the end of input."""
        while not text.rstrip().endswith(FENCE) and (next_line := self.line(more)) is not None:
            text = f"{text}\n{next_line}"
        return text.rstrip().removesuffix(FENCE).strip("\n")

    def messages(self) -> Iterator[str]:
        """Yield what is written until the end of input, blank messages left out; Ctrl-C once drops a line."""
        stops = 0
        while True:
            try:
                text = self.message()
            except KeyboardInterrupt:
                stops += 1
                if not self.is_live or stops > 1:
                    raise
                print(f"\n{self.say(LEAVING)}", file=sys.stderr)
                continue
            if text is None:
                return
            stops = 0
            if text.strip():
                self.keep(text)
                yield text

    def keep(self, message: str) -> None:
        """Add a message to the history, here and in the file."""
        if self.readline:
            self.readline.add_history(message)
        if self.history:
            with self.history.open("a", encoding="utf-8") as file:
                file.write(json.dumps(message, ensure_ascii=False) + "\n")


def editing(is_live: bool) -> Any:
    """Return readline, set up; None for a pipe, or where Python has none."""
    if not is_live:
        return None
    try:
        readline = import_module("readline")
    except ImportError:  # Windows, whose console edits lines by itself
        return None
    readline.set_auto_history(False)
    return readline


def asked(prompt: str) -> str:
    """Read a line that a person writes; where the output goes elsewhere, the prompt does not go with it."""
    if sys.stdout.isatty():
        return input(prompt)
    print(prompt, end="", file=sys.stderr, flush=True)
    if not (line := sys.stdin.readline()):
        raise EOFError
    return line.rstrip("\n")


def history_file(home: Path, user: str) -> Path:
    """Name the file of what one user wrote."""
    return home / f"history-{sha256(user.encode()).hexdigest()[:16]}.jsonl"


def kept(path: Path) -> list[str]:
    """Return the messages of a history file, oldest first; make the file short again if it has grown."""
    if not path.is_file():
        return []
    lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    if len(lines) > 2 * MOST_KEPT:
        path.write_text("\n".join(lines[-MOST_KEPT:]) + "\n", encoding="utf-8")
    return [message for line in lines[-MOST_KEPT:] if isinstance(message := read(line), str)]


def read(line: str) -> object:
    """Read one line of the file; None if it is damaged."""
    try:
        return json.loads(line)
    except ValueError:
        return None

"""A person at a keyboard: a process on a pseudo-terminal of its own, written to and read from."""

import os
import pty
import re
import select
import signal
import subprocess
import sys
import termios
import time
from pathlib import Path
from types import TracebackType
from typing import Self

ESCAPES = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|\x1b[()=>].?|[\x07\r]")
PATIENCE_S = 120
WITH_TERMINAL = """\
import fcntl, os, sys, termios
fcntl.ioctl(0, termios.TIOCSCTTY, 0)  # so that Ctrl-C reaches it
os.execv(sys.argv[1], sys.argv[1:])
"""


class Person:
    """Starts a command and sits at its terminal. `seen` is all that stood on the screen, without escape sequences."""

    def __init__(self, *command: str, folder: Path, size: tuple[int, int] = (40, 100), **env: str) -> None:
        self.screen, terminal = pty.openpty()
        termios.tcsetwinsize(terminal, size)
        base = {"PATH": os.environ["PATH"], "TERM": "xterm", "PYTHONPATH": os.pathsep.join(sys.path)}
        self.process = subprocess.Popen(
            [sys.executable, "-c", WITH_TERMINAL, *command],
            cwd=folder, env={**base, **env},
            stdin=terminal, stdout=terminal, stderr=terminal, start_new_session=True,
        )  # fmt: skip
        os.close(terminal)
        self.raw, self.place = b"", 0

    @property
    def seen(self) -> str:
        """What the screen has shown so far."""
        return ESCAPES.sub("", self.raw.decode("utf-8", "replace"))

    def waits_for(self, text: str, after: int = 0) -> int:
        """Read until the screen shows a text beyond a place; return the place behind it."""
        if not (place := self.sees(text, after, PATIENCE_S)):
            raise AssertionError(f"{text!r} did not come; the screen shows: {self.seen[after:]!r}")
        return place

    def sees(self, text: str, after: int, seconds: float) -> int:
        """Return the place behind a text, 0 if it does not come in time."""
        end = time.monotonic() + seconds
        while (found := self.seen.find(text, after)) < 0:
            if not self.read(end):
                return 0
        return found + len(text)

    def interrupts(self, text: str, after: int = 0) -> int:
        """Press Ctrl-C at a prompt until the screen answers, each time after a letter that is seen to be read.

        In the instant before readline listens, Python loses a Ctrl-C, and one in some fifty hangs it.
        """
        for _ in range(10):
            self.waits_for("#", self.types("#"))
            self.types("\x03")
            if place := self.sees(text, after, PATIENCE_S / 10):
                return place
        return self.waits_for(text, after)

    def read(self, end: float) -> bool:
        """Read what there is; whether more may come."""
        ready, _, _ = select.select([self.screen], [], [], max(end - time.monotonic(), 0))
        try:
            data = os.read(self.screen, 65536) if ready else b""
        except OSError:  # the other side is closed
            data = b""
        self.raw += data
        return bool(data)

    def types(self, text: str) -> int:
        """Press keys; return the place on the screen before what they do."""
        place = len(self.seen)
        os.write(self.screen, text.encode("utf-8"))
        return place

    def says(self, *lines: str, prompt: str = "> ") -> int:
        """Wait for the prompt, then write lines; return the place on the screen before them."""
        self.waits_for(prompt, self.place)
        self.place = self.types("".join(f"{line}\r" for line in lines))
        return self.place

    def ends(self) -> int:
        """Read to the end; return the exit code."""
        end = time.monotonic() + PATIENCE_S
        while self.read(end):
            pass
        return self.process.wait(timeout=PATIENCE_S)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGKILL)
        self.process.wait()
        os.close(self.screen)

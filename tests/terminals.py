"""What tests of the command line share: processes in a folder, and what the fixture `run` gives."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).parent.parent


class Terminal:
    """Processes in one folder, the same as that of `run`, with nothing of ours in the environment."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.env = {"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT), "PALIMPSEST_MAX_RETRIES": "0"}

    def start(self, *arguments: str, **env: str) -> subprocess.Popen[bytes]:
        """Start a command."""
        pipe = subprocess.PIPE
        return subprocess.Popen(
            [sys.executable, "-m", "graph", *arguments],
            cwd=self.folder, env={**self.env, **env}, stdin=pipe, stdout=pipe, stderr=pipe,
        )  # fmt: skip

    def run(self, *arguments: str, stdin: str | bytes = b"", codec: str = "utf-8", **env: str) -> tuple[int, str, str]:
        """Run a command to its end; return exit code, stdout and stderr."""
        given = stdin.encode() if isinstance(stdin, str) else stdin
        process = self.start(*arguments, **env)
        out, err = process.communicate(given, timeout=120)
        return process.returncode, out.decode(codec), err.decode(codec)


Run = Callable[..., tuple[int, str, str]]


def is_one_line(err: str) -> bool:
    """Whether stderr says one clear thing."""
    return err.startswith("palimpsest: ") and err.count("\n") == 1 and "Traceback" not in err

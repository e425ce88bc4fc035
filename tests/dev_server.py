"""LangGraph's development server for tests, the real one: started, driven by langgraph_sdk, killed with -9."""

import json
import os
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from langgraph_sdk import get_sync_client
from store_fixtures import free_port

ROOT = Path(__file__).parent.parent
START_WITHIN_S = 60
DEV = ("-m", "langgraph_cli", "dev", "--no-browser", "--no-reload", "--n-jobs-per-worker", "10")


@dataclass(kw_only=True)
class DevServer:
    """A server in a folder of its own, so that what it writes beside langgraph.json stays out of the repository.

    `more` goes into langgraph.json; `command` is what starts it, with `--port` after it.
    """

    folder: Path
    more: Mapping[str, Any] = field(default_factory=dict)
    command: Sequence[str] = DEV
    port: int = field(default_factory=free_port)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def home(self) -> Path:
        return self.folder / "home"

    @property
    def said(self) -> str:
        """What it printed."""
        return (self.folder / "server.log").read_text(encoding="utf-8")

    def start(self) -> None:
        """Start it, without a key, and wait until it answers."""
        written = json.loads((ROOT / "langgraph.json").read_text())
        for key, value in self.more.items():
            written[key] = {**written.get(key, {}), **value}
        (self.folder / "langgraph.json").write_text(json.dumps(written))
        unset = ("OPENAI_", "PALIMPSEST_", "LANGSMITH_", "LANGCHAIN_")
        kept = {name: value for name, value in os.environ.items() if not name.startswith(unset)}
        quiet = {"LANGGRAPH_CLI_NO_ANALYTICS": "1", "LANGGRAPH_NO_VERSION_CHECK": "1", "PYTHONUTF8": "1"}
        path = os.pathsep.join([str(ROOT / "tests"), os.environ.get("PYTHONPATH", "")])
        env = {**kept, **quiet, "PALIMPSEST_HOME": str(self.home), "PYTHONPATH": path}
        command = [sys.executable, *self.command, "--port", str(self.port)]
        with (self.folder / "server.log").open("ab") as log:
            self.process = subprocess.Popen(
                command, cwd=self.folder, env=env, stdout=log, stderr=log, start_new_session=True
            )
        end = time.monotonic() + START_WITHIN_S
        while time.monotonic() < end and self.process.poll() is None:
            try:
                return urllib.request.urlopen(f"{self.url}/ok", timeout=1).close()
            except OSError:
                time.sleep(0.1)
        raise AssertionError(f"the server did not start:\n{self.said[-3000:]}")

    def kill(self) -> None:
        """End it as a crash would."""
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()

    def client(self, **headers: str) -> Any:
        """Return a client of it."""
        return get_sync_client(url=self.url, headers=headers)


@contextmanager
def running(folder: Path, **options: Any) -> Iterator[DevServer]:
    """Run a server; end it."""
    server = DevServer(folder=folder, **options)
    try:
        server.start()
        yield server
    finally:
        server.kill()

"""Fixtures for tests of the command line: real processes where one adds something, else `main` in this one."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from terminals import Run, Terminal

from graph.cli import main


@pytest.fixture
def terminal(tmp_path: Path) -> Terminal:
    return Terminal(tmp_path)


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Iterator[Run]:
    """Run commands in this process, in a folder of its own: exit code, stdout and stderr."""
    for name in os.environ:
        if name.startswith(("OPENAI_", "PALIMPSEST_")):
            monkeypatch.delenv(name)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PALIMPSEST_LANGUAGE", "en")
    monkeypatch.setenv("PALIMPSEST_MAX_RETRIES", "0")

    def ran(*arguments: str, **env: str) -> tuple[int, str, str]:
        with monkeypatch.context() as patch:
            for name, value in env.items():
                patch.setenv(name, value)
            try:
                code = main(arguments)
            except SystemExit as end:  # argparse
                code = int(end.code or 0)
        told = capsys.readouterr()
        return code, told.out, told.err

    yield ran

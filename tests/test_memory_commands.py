"""palimpsest memory show | why | split and --as-of: what a person sees of one user's memories."""

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from graph.cli import main
from memory.memories import Memories
from memory.store import open_store


@pytest.fixture
def ids(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    monkeypatch.setenv("PALIMPSEST_HOME", str(tmp_path))
    then = datetime.now(UTC) - timedelta(days=30)
    with open_store(tmp_path) as store:
        ann = Memories(store, user="ann")
        old, _ = ann.save("The user drinks black coffee", at=then)
        new, _ = ann.save("The user drinks green tea", replaces=old.id)
        ann.save("I drink green tea")
        bob, _ = Memories(store, user="bob").save("The user drinks milk")
    return {"old": old.id, "new": new.id, "bob": bob.id, "day": (then + timedelta(days=1)).date().isoformat()}


def ran(capsys: pytest.CaptureFixture[str], *words: str, user: str = "ann") -> Any:
    assert main(["memory", *words, "--user", user, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def test_a_memory_is_shown_listed_and_explained_for_its_user(ids: dict[str, str], capsys: pytest.CaptureFixture[str]):
    assert [one["text"] for one in ran(capsys, "list")] == ["The user drinks green tea"]
    assert [one["text"] for one in ran(capsys, "list", "--as-of", ids["day"])] == ["The user drinks black coffee"]
    (shown,) = ran(capsys, "show", ids["old"])
    assert shown["superseded_by"] == ids["new"] and shown["until"]
    rows = {row["text"]: row["left_out"] for row in ran(capsys, "why", "what does the user drink")}
    assert rows["The user drinks green tea"] == "" and rows["The user drinks black coffee"].startswith("superseded on")
    assert "The user drinks milk" not in rows
    assert [one["text"] for one in ran(capsys, "split", ids["new"])] == ["I drink green tea"]


@pytest.mark.parametrize("action", ["show", "split"])
def test_another_users_memory_is_none(ids: dict[str, str], action: str, capsys: pytest.CaptureFixture[str]):
    assert main(["memory", action, ids["bob"], "--user", "ann"]) == 1
    assert "has no memory" in capsys.readouterr().err


@pytest.mark.parametrize("words", [["show"], ["split"], ["why"], ["list", "--as-of", "last year"]])
def test_a_command_without_what_it_needs_says_so(
    ids: dict[str, str], words: list[str], capsys: pytest.CaptureFixture[str]
):
    assert main(["memory", *words, "--user", "ann"]) == 2
    assert capsys.readouterr().err.startswith("palimpsest: ")

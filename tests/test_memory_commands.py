"""palimpsest memory show | why | split and --as-of: what a person sees of one user's memories."""

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from graph.cli import main
from memory.memories import Memories, Source
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


@pytest.mark.parametrize("words", [["show"], ["split"], ["undo"], ["edit", "--text", "The user drinks gin"]])
@pytest.mark.parametrize("whose", ["bob", "nobody"])
def test_another_users_memory_is_none(
    ids: dict[str, str], words: list[str], whose: str, capsys: pytest.CaptureFixture[str]
):
    action, *rest = words
    assert main(["memory", action, ids.get(whose, "m-0123456789ab"), *rest, "--user", "ann"]) == 1
    assert "has no memory" in capsys.readouterr().err
    assert [one["text"] for one in ran(capsys, "list", user="bob")] == ["The user drinks milk"]
    assert [one["text"] for one in ran(capsys, "list")] == ["The user drinks green tea"]


@pytest.mark.parametrize(
    "text",
    ["The user drinks jasmine tea", "用户喝茉莉花茶", "The user really does drink green tea", "I drink green tea"],
)
def test_a_person_edits_a_memory_and_takes_that_back(
    ids: dict[str, str], text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    """B145, B147: the old text is the past, its sources stay, and what was written can be read as the user's own."""
    with open_store(tmp_path) as store:
        Memories(store, user="ann").save("The user drinks green tea", sources=[Source(thread="t", message="m1")])
    before = datetime.now(UTC).isoformat()
    assert main(["memory", "edit", ids["new"], "--text", text, "--user", "ann"]) == 0
    new = capsys.readouterr().out.split()[0]
    assert [one["text"] for one in ran(capsys, "list")] == [text]
    (old,), (shown,) = ran(capsys, "show", ids["new"]), ran(capsys, "show", new)
    assert old["superseded_by"] == new and old["text"] == "The user drinks green tea"
    assert [one["text"] for one in ran(capsys, "list", "--as-of", before)] == ["The user drinks green tea"]
    assert [source["thread"] for source in shown["sources"]] == ["t", "edited by hand"]
    assert shown["said"][-1].endswith(f"human: {text}")
    for back in ("The user drinks green tea", text):
        held = ran(capsys, "list")[0]["id"]
        assert main(["memory", "undo", held, "--user", "ann"]) == 0
        capsys.readouterr()
        assert [one["text"] for one in ran(capsys, "list")] == [back]


@pytest.mark.parametrize(
    ("id", "text", "why"),
    [
        ("new", "My card is 4111 1111 1111 1111", "a card number"),
        ("new", "我的密码是 abc12345", "a password"),
        ("new", "  ", "non-blank"),
        ("new", "the user drinks GREEN tea.", "says that already"),
        ("old", "The user drinks milk", "edit what took its place"),
    ],
)
def test_an_edit_of_a_memory_that_cannot_be_changes_nothing(
    ids: dict[str, str], id: str, text: str, why: str, capsys: pytest.CaptureFixture[str]
):
    before = ran(capsys, "list", "--as-of", "2999-01-01")
    assert main(["memory", "edit", ids[id], "--text", text, "--user", "ann"]) in (1, 2)
    assert why in capsys.readouterr().err
    assert ran(capsys, "list", "--as-of", "2999-01-01") == before


def test_what_replaced_nothing_cannot_be_taken_back(ids: dict[str, str], capsys: pytest.CaptureFixture[str]):
    assert main(["memory", "undo", ids["old"], "--user", "ann"]) == 1
    assert "replaced nothing" in capsys.readouterr().err


@pytest.mark.parametrize("words", [["show"], ["split"], ["why"], ["list", "--as-of", "last year"]])
def test_a_command_without_what_it_needs_says_so(
    ids: dict[str, str], words: list[str], capsys: pytest.CaptureFixture[str]
):
    assert main(["memory", *words, "--user", "ann"]) == 2
    assert capsys.readouterr().err.startswith("palimpsest: ")

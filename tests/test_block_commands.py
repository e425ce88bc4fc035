"""Core memory in the terminal: a person reads it, edits any block, and takes edits back."""

import json
import re
import sys
from pathlib import Path

import pytest
from terminals import Run, Terminal, is_one_line

from graph.agent import open_memory
from graph.settings import Settings
from memory.blocks import Author, Blocks

pytest_plugins = ["terminal_fixtures"]

POLICY = json.dumps([{"label": "human", "limit": 40}, {"label": "政策", "read_only": True, "text": "三十天内退款。"}])


def editor(folder: Path, code: str) -> str:
    """Write an editor that does what the code says with the file `path`; return the command that starts it."""
    script = folder / "my editor.py"
    script.write_text(f"import sys\nfrom pathlib import Path\npath = Path(sys.argv[1])\n{code}\n", encoding="utf-8")
    return f"{sys.executable} '{script}'"


def texts(run: Run, *arguments: str) -> dict[str, str]:
    code, out, err = run("memory", "blocks", "--json", *arguments)
    assert (code, err) == (0, "")
    return {one["label"]: one["text"] for one in json.loads(out)}


def test_blocks_are_listed_with_their_fill_and_their_text(run: Run):
    code, out, err = run("memory", "blocks", "--set", f"blocks={POLICY}")
    assert (code, err) == (0, "")
    assert out.splitlines() == [
        "human 0/40  version 0, as configured",
        "政策 7/2000  read-only, version 0, as configured",
        "    三十天内退款。",
    ]
    (human, policy) = json.loads(run("memory", "blocks", "--json", "--set", f"blocks={POLICY}")[1])
    assert (human["limit"], human["chars"], policy["read_only"], policy["chars"]) == (40, 0, True, 7)


def test_a_person_edits_any_block_and_takes_the_edit_back(run: Run):
    """B147: a read-only one too; an undo can be undone."""
    blocks = ("--set", f"blocks={POLICY}")
    for label, text in (("human", "likes tea\nhas a cat"), ("政策", "七天内退款。")):
        code, out, err = run("memory", "edit", label, "--text", text, *blocks)
        assert (code, err) == (0, "") and "version 1, rewrite by person at 20" in out
    assert texts(run, *blocks) == {"human": "likes tea\nhas a cat", "政策": "七天内退款。"}
    assert "三十天内退款。" in run("memory", "undo", *blocks)[1]
    assert "七天内退款。" in run("memory", "undo", "政策", *blocks)[1]
    assert "human 0/40  version 2, undo by person" in run("memory", "undo", "human", *blocks)[1]
    assert texts(run, *blocks) == {"human": "", "政策": "七天内退款。"}
    told = run("memory", "blocks", "政策", *blocks)[1]
    assert re.findall(r"version (\d), (\w+)", told) == [("0", "as"), ("1", "rewrite"), ("2", "undo"), ("3", "undo")]
    assert run("memory", "undo", "政策", "--to", "0", *blocks)[0] == 0
    assert texts(run, *blocks)["政策"] == "三十天内退款。"
    assert "unchanged" in run("memory", "undo", "政策", "--to", "0", *blocks)[1]


def test_the_history_says_in_which_thread_the_agent_edited(run: Run, tmp_path: Path):
    with open_memory(Settings(home=tmp_path / ".palimpsest")) as store:
        author = Author(by="agent", thread="monday", message="m1")
        Blocks(store, user="me").append("human", "likes tea", author=author)
    assert "human 9/2000  version 1, append by agent in monday on message m1 at" in run("memory", "blocks", "human")[1]


def test_blocks_of_a_user_are_their_own(run: Run):
    run("memory", "edit", "human", "--text", "is Ann", "--user", "ann")
    run("memory", "edit", "human", "--text", "is Bob", "--user", "bob")
    run("memory", "undo", "--user", "bob")
    assert texts(run, "--user", "ann")["human"] == "is Ann" and texts(run, "--user", "bob")["human"] == ""
    assert len(json.loads(run("memory", "blocks", "human", "--json", "--user", "ann")[1])) == 2


def test_a_deleted_thread_leaves_the_blocks_and_says_what_goes(run: Run):
    """B150."""
    for thread in ("one", "two"):
        run("ask", "--thread", thread, "My cat is called Tom.")
    run("memory", "edit", "human", "--text", "has a cat")
    out = run("threads", "delete", "one")[1]
    assert out.startswith("deleted one: its checkpoints and ") and out.endswith("memories, facts and blocks stay\n")
    assert texts(run)["human"] == "has a cat" and len(json.loads(run("memory", "blocks", "human", "--json")[1])) == 2


def test_an_editor_edits_the_text_as_it_stands(run: Run, tmp_path: Path):
    run("memory", "edit", "human", "--text", "likes tea\n喜欢喝茶")
    swap = editor(tmp_path, 'path.write_bytes(path.read_bytes().replace(b"tea", b"coffee\\r\\n"))')
    assert run("memory", "edit", "human", EDITOR=swap)[0] == 0
    assert texts(run)["human"] == "likes coffee\n\n喜欢喝茶"
    same = editor(tmp_path, "pass")
    assert "unchanged" in run("memory", "edit", "human", VISUAL=same, EDITOR="false")[1]


@pytest.mark.parametrize(
    ("code", "words"),
    [
        ('path.write_text("x" * 3000)', "room left"),
        ("sys.exit(3)", "code 3"),
        (
            "import subprocess\npath.write_text('mine')\n"
            "command = ['-m', 'graph', 'memory', 'edit', 'human', '--text', 'theirs']\n"
            "subprocess.run([sys.executable, *command], check=True)",
            "edited meanwhile",
        ),
    ],
)
def test_what_a_person_wrote_is_kept_where_it_was_refused(run: Run, tmp_path: Path, code: str, words: str):
    run("memory", "edit", "human", "--text", "likes tea")
    ended, out, err = run("memory", "edit", "human", EDITOR=editor(tmp_path, code))
    assert (ended, out) == (1, "") and is_one_line(err) and words in err
    kept = Path(err.split(" is in ")[1].strip())
    assert kept.read_text() in ("x" * 3000, "likes tea\n", "mine")
    assert texts(run)["human"] == ("theirs" if words == "edited meanwhile" else "likes tea")


def test_a_text_comes_from_stdin_in_any_language(terminal: Terminal, run: Run):
    assert terminal.run("memory", "edit", "human", "--text", "-", stdin="喜欢喝茶\r\n住在波尔图\n")[0] == 0
    assert texts(run)["human"] == "喜欢喝茶\n住在波尔图"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("edit", "Human", "--text", "x"), "closest is 'human'"),
        (("edit", "--text", "x"), "The blocks are, to the letter: 'persona', 'human'"),
        (("edit", "human"), "EDITOR"),
        (("edit", "human", "--text", "x" * 2001), "room left"),
        (("blocks", "projects"), "there is no block 'projects'"),
        (("undo", "human"), "has no version -1; it has 0 to 0"),
        (("undo", "human", "--to", "7"), "has no version 7"),
        (("blocks", "--set", "blocks=human,Human"), "labels of blocks must differ"),
        (("blocks", "--set", 'blocks=[{"label": "a", "limit": 0}]'), "blocks.0.limit"),
        (("blocks", "--set", "blocks=[{"), "labels with commas between, or a JSON list"),
    ],
)
def test_what_cannot_be_is_one_line_that_says_what_can(run: Run, arguments: tuple[str, ...], words: str):
    """B145, B146."""
    code, out, err = run("memory", *arguments, EDITOR="", VISUAL="")
    assert (code, out) == (2, "") and is_one_line(err) and words in err
    assert set(texts(run).values()) == {texts(run)["persona"], ""}


def test_blocks_are_configured_once_for_the_terminal_and_overridden_by_a_run(run: Run):
    """B147: read-only stays so from start to start."""
    for _ in range(2):
        out = run("memory", "blocks", PALIMPSEST_BLOCKS=POLICY)[1]
        assert "human 0/40" in out and "政策 7/2000  read-only" in out
    out = run("memory", "blocks", "--set", "blocks=human, projects", PALIMPSEST_BLOCKS=POLICY)[1]
    assert [line.split("  ")[0] for line in out.splitlines()] == ["human 0/2000", "projects 0/2000"]
    assert run("memory", "blocks", "--set", "blocks=")[1] == "(nothing)\n"
    code, _, err = run("ask", "Hi", PALIMPSEST_BLOCKS="human,human")
    assert code == 2 and "PALIMPSEST_BLOCKS" in err

"""`palimpsest docs` as a person uses it."""

import json
import signal
import time
from pathlib import Path

import pytest
from terminals import Run, Terminal, is_one_line

pytest_plugins = ["terminal_fixtures"]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "hb"
    folder.mkdir()
    (folder / "leave.md").write_text("# Leave\n\n## Sick leave\n\nSick leave is ten days a year.\n")
    (folder / "年假.txt").write_bytes("年假每年十五天，需要提前申请。".encode("gbk"))
    return folder


def test_a_folder_is_added_listed_searched_shown_asked_and_removed(run: Run, folder: Path):
    assert run("docs", "add", str(folder)) == (
        0,
        "added 2, changed 0, unchanged 0, removed 0; 2 passages written; 0 failed\n",
        "",
    )
    code, out, _ = run("docs", "list")
    assert code == 0 and "main: hb/leave.md" in out and "main: hb/年假.txt" in out
    code, out, _ = run("docs", "search", "sick", "leave")
    assert code == 0 and "hb/leave.md, Leave › Sick leave, lines 1–5" in out.splitlines()[0]
    assert run("docs", "show", "hb/leave.md")[1] == (folder / "leave.md").read_text()
    code, out, err = run("ask", "How many days of sick leave do I have?")
    assert code == 0 and '"Sick leave is ten days a year." [1]' in out
    assert err == "[1] hb/leave.md, Leave › Sick leave, lines 1–5\n", "what the number means"
    assert "年假每年十五天" in run("ask", "年假有几天？")[1]
    assert "not in the documents" in run("ask", "Who won the football match in Lima?")[1]
    assert run("docs", "remove", "hb/*")[:2] == (0, "removed 2 files\n")
    assert run("docs", "list") == (0, "(nothing)\n", "")


def test_what_failed_is_named_on_stderr_and_the_exit_code_is_1(run: Run, folder: Path):
    (folder / "empty.md").touch()
    code, out, err = run("docs", "add", str(folder), "http://127.0.0.1:1/")
    assert code == 1 and "added 2" in out and "2 failed" in out
    assert "FAILED  hb/empty.md: is empty" in err and "--allow-private" in err
    code, out, _ = run("docs", "add", str(folder / "leave.md"), "--json", str(folder))
    told = json.loads(out)
    assert code == 1 and told["failed"] == [["hb/empty.md", "is empty"]] and told["unchanged"] == 2
    assert run("docs", "add", "--no-such")[0] == 2


def test_refresh_looks_again(run: Run, folder: Path):
    run("docs", "add", str(folder))
    (folder / "leave.md").unlink()
    (folder / "new.md").write_text("new")
    assert "added 1, changed 0, unchanged 1, removed 1" in run("docs", "refresh")[1]


def test_collections_are_the_users_or_shared(run: Run, folder: Path):
    run("docs", "add", "--user", "ann", "--collection", "work", str(folder / "leave.md"))
    run("docs", "add", "--shared", str(folder / "年假.txt"))
    assert "work: leave.md" in run("docs", "list", "--user", "ann")[1]
    assert run("docs", "list", "--user", "bob")[1] == "(nothing)\n"
    assert "main: 年假.txt" in run("docs", "list", "--shared")[1]
    assert "leave.md" in run("docs", "search", "--user", "ann", "sick leave")[1]
    assert "leave.md" not in run("docs", "search", "--user", "bob", "sick leave")[1]
    assert "年假" in run("docs", "search", "--user", "bob", "年假")[1]
    assert json.loads(run("docs", "search", "--user", "ann", "--collection", "none", "--json", "sick")[1]) == []


@pytest.mark.parametrize(
    "words", [["add"], ["search", " "], ["show"], ["remove"], ["list", "--collection", " "]], ids=" ".join
)
def test_what_is_missing_is_a_usage_error(run: Run, words: list[str]):
    code, out, err = run("docs", *words)
    assert (code, out) == (2, "") and is_one_line(err)


def test_an_unknown_name_is_told(run: Run):
    code, out, err = run("docs", "show", "nothing.md")
    assert (code, out) == (1, "") and is_one_line(err) and "docs list" in err


def test_without_an_embedder_words_find_it_and_a_warning_says_so(terminal: Terminal, folder: Path):
    missing = {"PALIMPSEST_EMBEDDINGS": "none-such", "OPENAI_BASE_URL": "http://127.0.0.1:9/v1"}
    code, out, err = terminal.run("docs", "add", str(folder), **missing)
    assert code == 0 and "added 2" in out and err.count("keywords alone") == 1 and "does not answer" in err
    code, out, err = terminal.run("docs", "search", "ten days sick leave", **missing)
    assert code == 0 and out.startswith("[1] hb/leave.md") and "keywords alone" in err
    assert "FAIL  embedder: none can be loaded, so keywords alone" in terminal.run("doctor", **missing)[1]
    code, out, err = terminal.run("docs", "search", "sick leave")
    assert code == 0 and out.startswith("[1] 0.") and err == "", "the next start with an embedder embedded it"


def test_documents_go_with_their_user_into_an_export_and_out_of_every_file(run: Run, folder: Path, tmp_path: Path):
    for user in ("ann", "bob"):
        run("docs", "add", "--user", user, str(folder))
    run("memory", "export", "ann", "--output", str(tmp_path / "ann.jsonl"))
    assert run("memory", "forget-user", "ann", "--yes")[0] == 0
    assert [run("docs", "list", "--user", user)[1].count("hb/") for user in ("ann", "bob")] == [0, 2]
    assert run("memory", "import", str(tmp_path / "ann.jsonl"), "--user", "eve")[0] == 0
    assert "hb/leave.md" in run("docs", "search", "--user", "eve", "sick leave")[1]
    assert run("docs", "show", "--user", "eve", "hb/leave.md")[1] == (folder / "leave.md").read_text()


def test_ctrl_c_keeps_what_is_done_and_says_so(terminal: Terminal, folder: Path):
    (folder / "z.md").write_text("A long line of text, again and again.\n\n" * 60_000)
    process = terminal.start("docs", "add", str(folder))
    for _ in range(600):
        time.sleep(0.1)
        if "leave.md" in terminal.run("docs", "list")[1]:
            break
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=120)
    assert process.returncode == 130 and b"added 1" in out and b"the same command goes on" in err
    assert "z.md" not in terminal.run("docs", "list")[1]

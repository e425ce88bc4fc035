"""The end of a conversation from the terminal: close, sweep and prune, in English and Chinese, each user their own."""

import json
import sqlite3
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from terminals import Run, Terminal, is_one_line

from graph.agent import CHECKPOINTS
from graph.sqlite import open_saver

pytest_plugins = ["terminal_fixtures"]
HOME = ".palimpsest"


def listed(run: Run, user: str = "me") -> dict[str, dict[str, str]]:
    """Return the catalogue of a user by thread."""
    return {one["id"]: one for one in json.loads(run("threads", "list", "--json", "--user", user)[1])}


@pytest.mark.parametrize(
    ("said", "word", "asked"),
    [
        ("I booked berth 12 in Oslo.", "berth 12", "Which berth did I book in Oslo?"),
        ("我订了奥斯陆的十二号泊位。", "十二号泊位", "我在奥斯陆订了哪个泊位？"),
    ],
)
def test_a_closed_thread_has_an_abstract_that_only_its_user_can_recall(terminal: Terminal, run: Run, said, word, asked):
    """By real processes, as a person does."""
    assert terminal.run("ask", "--thread", "trip", "--user", "ann", said)[0] == 0
    code, out, err = terminal.run("threads", "close", "trip", "--user", "ann")
    assert (code, err) == (0, "") and out.startswith("closed  trip  ") and word in out
    told = listed(run, "ann")["trip"]
    assert word in told["abstract"] and told["closed"] >= told["used"]
    assert run("threads", "close", "trip", "--user", "bob")[0] == 1
    for user, knows in (("ann", True), ("bob", False)):
        answer = json.loads(run("ask", "--json", "--user", user, "--set", "recall_threshold=-1", asked)[1])
        recall = next(step["detail"] for step in answer["steps"] if step["node"] == "recall")
        assert ("trip" in [one["id"] for one in recall["memories"]]) == knows


def test_closing_twice_changes_nothing_and_what_is_said_later_opens_it_again(run: Run):
    run("ask", "--thread", "t", "My cat is called Tom.")
    assert run("threads", "close", "t")[0] == 0
    first = listed(run)["t"]
    assert run("threads", "close", "t")[0] == 0 and listed(run)["t"] == first
    run("ask", "--thread", "t", "And my dog Rex.")
    assert listed(run)["t"]["closed"] < listed(run)["t"]["used"]


@pytest.mark.parametrize("action", ["close", "show", "delete"])
def test_a_thread_that_is_not_there_is_one_line(run: Run, action: str):
    code, out, err = run("threads", action, "nowhere")
    assert (code, out) == (1, "") and is_one_line(err) and "nowhere" in err
    code, out, err = run("threads", action)
    assert (code, out) == (2, "") and is_one_line(err)


def test_sweep_closes_what_was_idle_and_nothing_of_others(run: Run):
    run("ask", "--thread", "mine", "我叫小明。")
    run("ask", "--thread", "his", "--user", "bob", "My name is Bob.")
    assert run("threads", "sweep") == (0, "", "")
    code, out, _ = run("threads", "sweep", "--idle-hours", "0")
    assert code == 0 and out.startswith("closed  mine  ") and out.count("\n") == 1
    assert listed(run)["mine"]["closed"] and not listed(run, "bob")["his"]["closed"]
    assert run("threads", "sweep", "--idle-hours", "0") == (0, "", "")


def test_sweep_waits_for_a_run_and_closes_the_thread_after_it(run: Run, tmp_path: Path):
    run("ask", "--thread", "t", "My cat is called Tom.")
    terminal = Terminal(tmp_path)
    with ThreadPoolExecutor(1) as pool, open_saver(tmp_path / HOME / CHECKPOINTS) as saver:
        with saver.locks.holding("t"):
            sweeping = pool.submit(terminal.run, "threads", "sweep", "--idle-hours", "0")
            with pytest.raises(TimeoutError):
                sweeping.result(5)
        code, out, _ = sweeping.result(120)
    assert code == 0 and out.startswith("closed  t  ")


def test_an_abstract_that_failed_is_told_and_tried_again(run: Run):
    run("ask", "--thread", "t", "My cat is called Tom.")
    down = {"OPENAI_BASE_URL": "http://127.0.0.1:9/v1", "OPENAI_API_KEY": "k", "PALIMPSEST_MODEL": "openai:x"}
    code, out, _ = run("threads", "close", "t", **down)
    assert code == 1 and out.startswith("FAILED, try again  t") and not listed(run)["t"]["closed"]
    assert run("threads", "close", "t")[0] == 0 and listed(run)["t"]["closed"]


def test_prune_trims_the_users_own_threads_and_says_what_it_gave_back(run: Run, tmp_path: Path):
    for n in range(4):
        run("ask", "--thread", "t", f"{n}+1?")
        run("ask", "--thread", "his", "--user", "bob", f"{n}+2?")

    def kept(thread: str) -> int:
        with sqlite3.connect(tmp_path / HOME / CHECKPOINTS) as db:
            return int(db.execute("SELECT count(*) FROM checkpoints WHERE thread_id = ?", (thread,)).fetchone()[0])

    before = kept("t"), kept("his")
    shown = run("threads", "show", "t")[1]
    code, out, _ = run("threads", "prune", "--keep", "2")
    assert code == 0 and f"deleted {before[0] - 2} checkpoints of 1 threads" in out
    assert (kept("t"), kept("his")) == (2, before[1])
    assert run("threads", "show", "t")[1] == shown
    assert "5+1 = 6" in run("ask", "--thread", "t", "5+1?")[1]
    assert run("threads", "prune", "his")[0] == 1 and kept("his") == before[1]

"""The command line as a person uses it: real processes where one adds something, else `main` in this one."""

import argparse
import json
import shutil
import signal
import sqlite3
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import fields
from pathlib import Path

import pytest
from terminals import Run, Terminal, is_one_line
from wire import Calls, OpenAIWire, Stall, Text

from graph.cli import parser
from nodes.context import Context

pytest_plugins = ["terminal_fixtures"]
COMMANDS = ("chat", "ask", "memory", "threads", "docs", "graph", "doctor")
NOTICE = "Rehearsal model"
KEY = "sk-not-for-logs"


def test_a_person_is_remembered_across_threads_and_processes_and_nobody_else_is_told(terminal: Terminal, run: Run):
    """The issue's line 4, in English and Chinese: `ask` prints the answer alone, the notice first."""
    code, out, err = terminal.run("ask", "--user", "ann", "--thread", "monday", "I'm allergic to peanuts.")
    assert (code, err) == (0, "") and NOTICE in out.splitlines()[0]
    code, out, err = terminal.run("ask", "--user", "ann", "What should I avoid eating?")
    assert (code, err) == (0, "") and "peanuts" in out and NOTICE in out.splitlines()[0]
    assert run("ask", "--user", "ann", "--thread", "montag", "我对花生过敏。")[0] == 0
    for user, question, expected in [
        ("ann", "What should I avoid eating?", "peanuts"),
        ("bob", "What should I avoid eating?", "I don't know that yet."),
        ("ann", "我不能吃什么？", "花生"),
        ("bob", "我不能吃什么？", "我还不知道。"),
    ]:
        code, out, err = run("ask", "--json", "--user", user, question)
        told = json.loads(out)
        assert (code, err) == (0, "") and expected in told["answer"] and told["stop_reason"] == "answered"
        first = told["messages"][0]
        assert (first["role"], first["content"]) == ("user", question)
        assert {step["node"] for step in told["steps"]} >= {"recall", "reason", "remember"}
        assert user == "ann" or ("peanuts" not in out and "花生" not in out)
    told = json.loads(run("ask", "--json", "--user", "ann", "--thread", "monday", "2+2?")[1])
    contents = [message["content"] for message in told["messages"]]
    assert contents[0] == "I'm allergic to peanuts." and contents[-1] == "2+2 = 4"


def test_chat_reads_a_pipe_ignores_blank_lines_and_ends_at_quit(terminal: Terminal):
    lines = "My cat is called Tom.\n\n   \n2+2?\nWhat is my cat called?\n/quit\n3+3?\n"
    code, out, err = terminal.run("chat", "--thread", "t", stdin=lines)
    assert code == 0 and "--thread t" in err and err.count("\n") == 1
    notice, kept, four, told = out.splitlines()
    assert NOTICE in notice and "Tom" in kept and four == "2+2 = 4" and "Tom" in told


def test_chat_ends_at_the_end_of_input_and_goes_on_after_a_restart(terminal: Terminal, run: Run):
    dirty = b"\xef\xbb\xbf2+2?\r\nbad \xff\x00 bytes \xed\xa0\xbd here\n3+3?"
    code, out, _ = terminal.run("chat", "--thread", "t", stdin=dirty)
    assert code == 0 and out.splitlines()[-1] == "3+3 = 6"
    code, out, _ = terminal.run("chat", "--thread", "t", stdin="4+4?\n")
    assert out == "4+4 = 8\n"  # the notice was in the conversation's first answer
    code, out, _ = run("threads", "show", "t")
    assert code == 0 and "\x00" not in out and out.index("3+3?") < out.index("4+4?")


@pytest.mark.parametrize("encoding", ["gbk", "cp1252:strict"])
def test_no_console_is_too_small_for_an_answer(terminal: Terminal, encoding: str):
    """B155: what a console cannot show is replaced."""
    said = "I like ✅🎉 and 深圳"
    with OpenAIWire([Calls(("memory_save", {"text": said})), Text(said)]) as wire:
        env = {"OPENAI_BASE_URL": wire.url, "PALIMPSEST_MODEL": "openai:test-model", "PYTHONIOENCODING": encoding}
        dirty = "Hello 你好 ✅ \ud83c".encode("utf-8", "surrogatepass")
        code, out, err = terminal.run("chat", stdin=dirty, codec=encoding.split(":")[0], **env)
    assert code == 0 and "Traceback" not in err
    assert out == said.encode(encoding.split(":")[0], "replace").decode(encoding.split(":")[0]) + "\n"


def test_json_keeps_every_character_on_any_console(terminal: Terminal):
    """B155."""
    said = "I like ✅🎉 and 深圳"
    with OpenAIWire([Text(said)]) as wire:
        env = {"OPENAI_BASE_URL": wire.url, "PALIMPSEST_MODEL": "openai:test-model", "PYTHONIOENCODING": "ascii"}
        code, out, err = terminal.run("ask", "--json", "你好", codec="ascii", **env)
    assert (code, err) == (0, "")
    told = json.loads(out)
    assert told["answer"] == said and told["messages"][0]["content"] == "你好"


def test_ctrl_c_stops_an_answer_at_once_and_the_thread_goes_on(terminal: Terminal):
    with OpenAIWire([Stall(60, after_chunks=3), Text("Here again.")], exact=False) as wire:
        env = {"OPENAI_BASE_URL": wire.url, "PALIMPSEST_MODEL": "openai:test-model"}
        process = terminal.start("chat", "--thread", "t", **env)
        assert process.stdin and process.stdout
        process.stdin.write(b"First?\nSecond?\n")
        process.stdin.flush()
        assert process.stdout.read(3) == b"Bet"
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=50)
    assert process.returncode == 0 and b"(stopped)" in err and b"Traceback" not in err
    assert out.endswith(b"Here again.\n")
    assert [message["content"] for message in wire.chats[1]["messages"]][1:] == ["First?", "Second?"]


def test_ctrl_c_between_answers_ends_without_a_traceback(terminal: Terminal):
    process = terminal.start("chat")
    assert process.stderr and b"/quit" in process.stderr.readline()
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert (process.returncode, err) == (130, b"palimpsest: interrupted\n")


def test_a_reader_that_leaves_early_is_no_error_worth_a_traceback(terminal: Terminal):
    process = terminal.start("graph")
    assert process.stdout
    process.stdout.close()
    assert process.stderr and process.stderr.read() == b""
    process.stderr.close()
    assert process.stdin
    process.stdin.close()
    assert process.wait(timeout=60) == 1


def test_two_processes_ask_at_once_on_one_thread_and_lose_nothing(terminal: Terminal, run: Run):
    colours = ["red", "green"]
    with ThreadPoolExecutor(2) as pool:
        done = list(pool.map(lambda one: terminal.run("ask", "--thread", "t", f"I like the colour {one}."), colours))
    assert [(code, err) for code, _, err in done] == [(0, "")] * 2
    shown, kept = run("threads", "show", "t")[1], run("memory", "list")[1]
    for colour in colours:
        assert colour in shown and colour in kept
    assert kept.count("\n") == 2
    told = json.loads(run("ask", "--json", "--thread", "t", "2+2?")[1])
    assert [message["role"] for message in told["messages"]].count("user") == 3


def test_a_megabyte_with_every_kind_of_dirt_is_answered_from_stdin(terminal: Terminal, run: Run):
    """B040, B060, B155: nothing of it is lost but what no encoder can carry."""
    text = b"I said \x00 once: " + b"a long story \xed\xa0\xbd " * 65_000 + b"the end."
    code, out, err = terminal.run("ask", "--thread", "big", "--set", "tools=", "-", stdin=text)
    assert (code, err) == (0, "") and NOTICE in out
    told = json.loads(run("threads", "show", "big", "--json")[1])
    assert len(told[0]["text"]) > 1_000_000 and told[0]["text"].endswith("the end.") and "\x00" not in told[0]["text"]


def test_a_conversation_is_shown_with_its_calls(run: Run):
    run("ask", "--thread", "t", "12 * 7?")
    code, out, _ = run("threads", "show", "t")
    assert code == 0 and 'ai: calculator({"expression": "12 * 7"})\n' in out


def test_the_chat_names_the_model_that_answers(terminal: Terminal):
    assert "model: rehearsal" in terminal.run("chat", stdin="/model\n")[2]


def test_the_console_script_is_the_same_program_and_help_waits_for_nothing(terminal: Terminal):
    script = Path(sys.executable).with_name("palimpsest")
    done = subprocess.run([script, "--version"], capture_output=True, text=True, check=True, cwd=terminal.folder)
    assert done.stdout.startswith("palimpsest ") and done.stderr == ""
    assert terminal.run("--version")[1] == done.stdout
    assert list(terminal.folder.iterdir()) == []


# What follows runs in this process.


@pytest.mark.parametrize("command", COMMANDS)
def test_help_documents_every_option(run: Run, command: str):
    code, out, _ = run(command, "--help")
    assert code == 0
    subparsers = next(one for one in parser()._actions if isinstance(one, argparse._SubParsersAction))
    for action in subparsers.choices[command]._actions:
        assert action.help and all(option in out for option in action.option_strings)


def test_help_names_every_command_and_where_data_lies(run: Run):
    code, out, _ = run("--help")
    assert code == 0 and all(command in out for command in COMMANDS) and "PALIMPSEST_HOME" in out


def test_graph_prints_mermaid_with_the_five_nodes(run: Run, tmp_path: Path):
    code, out, err = run("graph")
    assert (code, err) == (0, "") and "graph TD" in out
    assert all(f"{node}({node})" in out for node in ("recall", "reason", "tools", "remember", "summarize"))


def test_a_picture_is_drawn_where_graphviz_is_and_else_one_line_says_so(run: Run, tmp_path: Path):
    code, out, err = run("graph", "--png", str(tmp_path / "graph.png"))
    if shutil.which("dot"):
        assert code == 0 and (tmp_path / "graph.png").read_bytes().startswith(b"\x89PNG")
        code, out, err = run("graph", "--png", str(tmp_path / "no" / "graph.png"))
    assert (code, out) == (1, "") and is_one_line(err) and "dot" in err


@pytest.mark.parametrize(
    "pair",
    [
        "user=ann", "model=rehearsal", "instructions=Be brief: a=b, c", "memory=inject", "extract=turn",
        "tools=calculator, current_time", "tools=", "tools=*", "recall_k=3", "recall_threshold=0.5",
        "recall_threshold=", "max_messages=10", "max_steps=5", "tool_timeout_s=2.5", "max_result_chars=500",
        "stream=false",
    ],
)  # fmt: skip
def test_set_takes_every_kind_of_field(run: Run, pair: str):
    assert pair.split("=")[0] in {field.name for field in fields(Context)}
    assert run("memory", "list", "--set", pair)[0] == 0


def test_set_reaches_the_turn(run: Run):
    code, out, _ = run(
        "ask", "--json", "--set", "tools=current_time", "--set", "user=ann", "--set", "stream=no", "2+2?"
    )
    assert code == 0 and "calculator" in json.loads(out)["answer"]
    assert "2+2?" in run("threads", "list", "--user", "ann")[1] and run("threads", "list")[1] == "(nothing)\n"


def test_memory_and_threads_show_each_user_their_own(run: Run):
    run("ask", "--user", "ann", "--thread", "a", "I'm allergic to peanuts.")
    run("ask", "--user", "bob", "--thread", "b", "I live in Oslo.")
    assert "peanuts" in run("memory", "list", "--user", "ann")[1]
    assert "peanuts" not in run("memory", "list", "--user", "bob")[1]
    found = json.loads(run("memory", "search", "allergic to peanuts", "--user", "ann", "--json", "--limit", "1")[1])
    assert found[0]["text"] == "I'm allergic to peanuts." and found[0]["sources"][0]["thread"] == "a"
    assert "peanuts" not in run("memory", "search", "allergic to peanuts", "--user", "bob")[1]
    assert [one["id"] for one in json.loads(run("threads", "list", "--user", "ann", "--json")[1])] == ["a"]
    assert "peanuts" in run("threads", "show", "a", "--user", "ann")[1]
    for action in ("show", "delete"):
        code, out, err = run("threads", action, "a", "--user", "bob")
        assert (code, out) == (1, "") and is_one_line(err)
    code, out, err = run("ask", "--user", "bob", "--thread", "a", "What did she say?")
    assert (code, out) == (2, "") and is_one_line(err)
    assert "peanuts" in run("threads", "show", "a", "--user", "ann")[1]


def test_a_deleted_thread_is_gone_and_its_memories_stay(run: Run):
    run("ask", "--thread", "a", "I'm allergic to peanuts.")
    run("ask", "--thread", "b", "2+2?")
    code, out, _ = run("threads", "delete", "a")
    assert code == 0 and "deleted a" in out
    assert run("threads", "show", "a")[0] == 1 and run("threads", "show", "b")[0] == 0
    assert "peanuts" in run("memory", "list")[1]
    told = json.loads(run("ask", "--json", "--thread", "a", "2+2?")[1])
    assert [message["content"] for message in told["messages"] if message["role"] == "user"] == ["2+2?"]


def test_nothing_that_is_noted_of_a_thread_outlives_it(run: Run):
    for thread in ("一号", "two"):
        run("ask", "--thread", thread, "--set", "extract=turn", "I'm allergic to peanuts.")

    def noted() -> set[str]:
        lines = map(json.loads, run("memory", "export", "me")[1].splitlines())
        return {line["place"][2] for line in lines if line.get("place", [])[1:2] == ["extracted"]}

    assert noted() == {"一号", "two"}
    assert run("threads", "delete", "一号")[0] == 0 and noted() == {"two"}


def test_memory_can_be_indexed_anew(run: Run):
    run("ask", "I'm allergic to peanuts.")
    code, out, err = run("memory", "reindex")
    assert (code, err) == (0, "") and out.startswith("indexed ")
    assert "peanuts" in run("memory", "search", "peanuts")[1]


def test_doctor_says_what_is_well_and_how_to_mend_the_rest(run: Run, tmp_path: Path):
    code, out, err = run("doctor")
    assert (code, err) == (0, "") and "FAIL" not in out and "OPENAI_API_KEY" in out
    with OpenAIWire(key=KEY) as wire:
        well = {"OPENAI_BASE_URL": wire.url, "OPENAI_API_KEY": KEY, "PALIMPSEST_MODEL": "openai:test-model"}
        assert run("doctor", **well)[0] == 0
        code, out, _ = run("doctor", **{**well, "OPENAI_API_KEY": "sk-other-key"})
        assert code == 1 and "FAIL  endpoint" in out and "OPENAI_API_KEY" in out and "sk-other-key" not in out
    code, out, _ = run("doctor", OPENAI_BASE_URL="http://127.0.0.1:9/v1")
    assert code == 1 and "OPENAI_BASE_URL" in out
    (tmp_path / "file").touch()
    code, out, _ = run("doctor", PALIMPSEST_HOME=str(tmp_path / "file"))
    assert code == 1 and "FAIL  home" in out and "PALIMPSEST_HOME" in out


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["ask", ""], "empty"),
        (["ask", " \n\t"], "empty"),
        (["ask", "\x00"], "empty"),
        (["ask", "hi", "--set", "tools=calculatr"], "calculator"),
        (["ask", "hi", "--set", "max_steps=0"], "max_steps"),
        (["ask", "hi", "--set", "max_steps=many"], "max_steps"),
        (["ask", "hi", "--set", "stream=perhaps"], "stream"),
        (["ask", "hi", "--set", "instructions=" + "x" * 100_001], "instructions"),
        (["ask", "hi", "--set", "max_stepps=3"], "max_steps"),
        (["ask", "hi", "--set", "max_steps"], "key=value"),
        (["ask", "hi", "--thread", "x" * 513], "512"),
        (["ask", "hi", "--thread", ""], "non-blank"),
        (["ask", "hi", "--thread", " "], "non-blank"),
        (["ask", "hi", "--thread", "a\x00b"], "control"),
        (["ask", "hi", "--thread", "a\ud800"], "surrogates"),
        (["ask", "hi", "--user", ""], "user"),
        (["ask", "hi", "--user", " "], "user"),
        (["ask", "hi", "--user", "a\ud800"], "user"),
        (["ask", "hi", "--model", "nobody:gpt"], "nobody"),
        (["ask", "hi", "--model", "openai:gpt-4.1"], "OPENAI_API_KEY"),
        (["chat", "--model", "openai:gpt-4.1"], "OPENAI_API_KEY"),
        (["memory", "search"], "query"),
        (["threads", "show"], "name it"),
    ],
)
def test_a_usage_error_is_one_line_exit_code_2_and_nothing_is_written(run: Run, tmp_path: Path, arguments, words):
    """B027, B072, B076."""
    code, out, err = run(*arguments)
    assert (code, out) == (2, "") and is_one_line(err) and words in err and len(err) < 500
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "arguments",
    [
        ["studio", "--thread", "t"],
        ["studio", "--set", "max_steps=5"],
        ["docs", "list", "--thread", "t"],
        ["docs", "list", "--model", "rehearsal"],
        ["graph", "--user", "ann"],
        ["graph", "--set", "max_steps=5"],
        ["memory", "list", "--thread", "t"],
        ["doctor", "--thread", "t"],
    ],
)
def test_what_a_command_would_ignore_it_refuses(run: Run, arguments: list[str]):
    code, out, err = run(*arguments)
    assert (code, out) == (2, "") and f"unrecognized arguments: {arguments[-2]}" in err


@pytest.mark.parametrize("arguments", [["ask"], ["nonsense"], ["memory", "list", "--limit", "0"], []])
def test_arguments_that_do_not_parse_are_exit_code_2(run: Run, arguments: list[str]):
    code, out, err = run(*arguments)
    assert (code, out) == (2, "") and "usage: palimpsest" in err


@pytest.mark.parametrize(
    ("env", "words"),
    [
        ({"PALIMPSEST_TIMEOUT_S": "soon"}, "PALIMPSEST_TIMEOUT_S"),
        ({"OPENAI_BASE_URL": "localhost:8000"}, "OPENAI_BASE_URL"),
        ({"OPENAI_API_KEY": "sk-…"}, "OPENAI_API_KEY"),
        ({"PALIMPSEST_EMBEDDINGS": "text-embedding-3-small"}, "PALIMPSEST_EMBEDDINGS"),
    ],
)
def test_a_bad_setting_is_one_line_and_exit_code_2(run: Run, env: dict[str, str], words: str):
    code, out, err = run("ask", "hi", **env)
    assert (code, out) == (2, "") and is_one_line(err) and words in err and "sk-…" not in err


@pytest.mark.parametrize(
    ("env", "words"),
    [
        ({"OPENAI_BASE_URL": "http://127.0.0.1:9/v1"}, "OPENAI_BASE_URL"),
        ({"OPENAI_API_KEY": "sk-wrong"}, "OPENAI_API_KEY"),
        ({"PALIMPSEST_MODEL": "openai:no-such-model"}, "PALIMPSEST_MODEL"),
    ],
    ids=["unreachable", "401", "404"],
)
def test_an_endpoint_that_does_not_answer_is_one_line_and_the_thread_goes_on(run: Run, env: dict[str, str], words: str):
    with OpenAIWire([Text("I hear you."), Text("Still here.")], key=KEY) as wire:
        right = {"OPENAI_BASE_URL": wire.url, "OPENAI_API_KEY": KEY, "PALIMPSEST_MODEL": "openai:test-model"}
        code, out, err = run("ask", "--thread", "t", "Hear me?", **{**right, **env})
        assert (code, out) == (1, "") and is_one_line(err) and words in err and "sk-wrong" not in err
        code, out, _ = run("ask", "--thread", "t", "--json", "Again?", **{**right, **env})
        assert code == 1 and json.loads(out)["stop_reason"] == "model_error"
        assert run("ask", "--thread", "t", "And now?", **right) == (0, "I hear you.\n", "")
        sent = [message["content"] for message in wire.chats[-1]["messages"] if message["role"] == "user"]
        assert sent == ["Hear me?", "Again?", "And now?"]
        assert run("ask", "--thread", "t", "Sure?", **right)[1] == "Still here.\n"


@pytest.mark.parametrize("place", ["file", "file/below", "/proc/palimpsest"])
def test_a_home_that_cannot_be_written_is_one_line(run: Run, tmp_path: Path, place: str):
    (tmp_path / "file").write_text("mine")
    for command in (["ask", "hi"], ["chat"], ["memory", "list"], ["threads", "list"]):
        code, out, err = run(*command, PALIMPSEST_HOME=place)
        assert (code, out) == (1, "") and is_one_line(err) and "PALIMPSEST_HOME" in err
    assert (tmp_path / "file").read_text() == "mine"


@pytest.mark.parametrize(
    ("name", "newer"),
    [
        ("threads.sqlite", "PRAGMA user_version = 99"),
        ("memory.sqlite3", "UPDATE mem_meta SET value = '99' WHERE name = 'version'"),
    ],
)
def test_a_database_of_a_newer_version_is_left_alone(run: Run, tmp_path: Path, name: str, newer: str):
    run("ask", "--thread", "t", "I'm allergic to peanuts.")
    path = tmp_path / ".palimpsest" / name
    with sqlite3.connect(path) as database:
        database.execute(newer)
    database.close()
    before = path.read_bytes()
    code, out, err = run("ask", "--thread", "t", "What should I avoid eating?")
    assert (code, out) == (1, "") and is_one_line(err) and "newer" in err and name in err
    assert path.read_bytes() == before


@pytest.mark.parametrize("name", ["threads.sqlite", "memory.sqlite3"])
def test_a_file_that_is_no_database_is_one_line_and_left_alone(run: Run, tmp_path: Path, name: str):
    (tmp_path / ".palimpsest").mkdir()
    path = tmp_path / ".palimpsest" / name
    path.write_bytes(b"something else entirely " * 100)
    code, out, err = run("ask", "hi")
    assert (code, out) == (1, "") and is_one_line(err) and name in err
    assert path.read_bytes() == b"something else entirely " * 100


def test_the_data_folder_is_in_the_current_folder_by_default(run: Run, tmp_path: Path):
    assert run("threads", "list") == (0, "(nothing)\n", "")
    assert [path.name for path in tmp_path.iterdir()] == [".palimpsest"]

"""The chat: at a keyboard on a real pseudo-terminal, and through pipes."""

import io
import json
import readline
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from conftest import config
from persons import Person
from talking import Talking, opened
from terminals import Terminal
from tool_graphs import call
from wire import Calls, OpenAIWire, Text

from graph.agent import Agent
from graph.chat import converse, is_command, literal
from graph.keyboard import MOST_KEPT, Keyboard, history_file, kept
from graph.locks import ThreadLocks, file_locks
from graph.screen import screen_for
from graph.session import Session
from graph.settings import BadSetting
from graph.sqlite import LOCKS
from graph.texts import Say
from memory.catalogue import Catalogue
from memory.memories import Memories
from nodes.context import Context, NotYourThread
from nodes.contract import marked

pytestmark = pytest.mark.filterwarnings("ignore:tool '")

CHILD = str(Path(__file__).with_name("chat_child.py"))
SEND = [call("send", "c1", to="Ann", amount=3), call("send", "c2", to="李雷", amount=4)]


@pytest.fixture
def sits(tmp_path: Path) -> Iterator[Callable[..., Person]]:
    """Seat a person before a chat with a scripted model."""
    with ExitStack() as stack:

        def seated(*steps: Any, thread: str = "t", **options: Any) -> Person:
            command = (sys.executable, CHILD, str(tmp_path / "home"), json.dumps(steps), thread)
            return stack.enter_context(Person(*command, folder=tmp_path, **options))

        yield seated


def threads(home: Path) -> dict[str, Any]:
    with opened(home, Talking()) as agent:
        assert agent.store is not None
        return {one.id: one for one in Catalogue(agent.store, user="me").all()}


# At a keyboard.


def test_a_person_talks_sees_calls_and_steps_and_what_was_said_is_filed_at_the_end(sits, tmp_path: Path):
    """Wide characters are edited as one; the line is sent as it stands on the screen."""
    p = sits("**Hello** <you>.", call("calculator", expression="2+2"), "四。")
    p.says("Hi")
    p.waits_for("Hello <you>.", p.place)
    p.says("二加三\x7f二等于几？")
    seen = p.waits_for("四。", p.place)
    assert 'calculator({"expression": "2+2"}) …' in p.seen and "calculator" in p.seen[: p.seen.index(": ok, ")]
    assert "recall '" not in p.seen[:seen]
    p.says("/trace")
    p.waits_for("recall '二加二等于几？'", p.place)
    p.says("/trace on")
    p.says("Again")
    p.waits_for("remember: 2 messages filed", p.place)
    p.says("\x04")
    assert p.ends() == 0 and "closed: They talked." in p.seen
    assert threads(tmp_path / "home")["t"].abstract == "They talked."


def test_messages_of_many_lines_and_the_last_sessions_history(sits, tmp_path: Path):
    p = sits()
    p.says("one \\", "two")
    p.says('"""', "  def f():", "", "    return 1", '"""')
    p.says("我说过的话")
    p.says("/quit")
    assert p.ends() == 0
    p = sits()
    p.says("\x1b[A\x1b[A")  # up, beyond the /quit
    if "GNU" in (readline.__doc__ or ""):
        p.says("\x1b[200~pasted 1\rpasted 2\x1b[201~")
    p.says("/quit")
    assert p.ends() == 0
    with opened(tmp_path / "home", Talking()) as agent:
        said = [one.text for one in agent.get_state(config()).values["messages"] if one.type == "human"]
    assert said[:4] == ["one \ntwo", "  def f():\n\n    return 1", "我说过的话", "我说过的话"]
    assert said[4:] in ([], ["pasted 1\npasted 2"])


def test_ctrl_c_stops_an_answer_a_second_one_breaks_nothing_and_the_thread_goes_on(sits, tmp_path: Path):
    p = sits("A long STALL answer", "Here again.")
    p.says("First")
    p.waits_for("A long", p.place)
    p.types("\x03\x03")
    p.waits_for("(stopped)", p.place)
    p.says("Second")
    p.waits_for("Here again.", p.place)
    p.says("/quit")
    assert p.ends() == 0 and "Traceback" not in p.seen
    with opened(tmp_path / "home", Talking()) as agent:
        assert [one.text for one in agent.get_state(config()).values["messages"]] == ["First", "Second", "Here again."]


def test_ctrl_c_at_the_prompt_drops_the_line_and_twice_it_leaves(sits):
    p = sits()
    p.waits_for("> ")
    p.types("half a line")
    place = p.interrupts("Ctrl-C again")
    p.place = place
    p.says("whole")
    p.waits_for("Yes.", p.place)
    place = p.interrupts("Ctrl-C again", p.waits_for("> ", p.place))
    p.waits_for("> ", place)
    p.interrupts("interrupted", place)
    assert p.ends() == 130 and "closed" not in p.seen and "Traceback" not in p.seen


def test_a_tool_that_hangs_holds_neither_the_prompt_nor_the_exit(sits):
    p = sits(call("sleep"))
    p.says("Sleep")
    p.waits_for("sleep({}) …", p.place)
    p.types("\x03")
    p.waits_for("(stopped)", p.place)
    p.says("\x04")
    assert p.ends() == 0


def test_approvals_are_asked_one_by_one_and_each_is_obeyed(sits, tmp_path: Path):
    p = sits(SEND, "Done.")
    p.says("Send")
    p.says("what?", prompt="refuse? ")
    p.waits_for("write approve, edit or refuse", p.place)
    p.says("a", prompt="refuse? ")
    p.says("edit", prompt="refuse? ")
    p.says("\x7f\x7f5}", prompt='"amount": 4}')
    p.waits_for("Done.", p.place)
    p.says("/quit")
    assert p.ends() == 0 and sorted((tmp_path / "sent").read_text("utf-8").split("\n")) == ["", "3 to Ann", "5 to 李雷"]


def test_what_a_person_did_not_decide_waits_for_the_next_session(sits, tmp_path: Path):
    p = sits(SEND)
    p.says("Send")
    p.says("a", prompt="refuse? ")
    p.waits_for("refuse? ", p.place)
    p.interrupts("still waits for you", p.place)
    p.says("\x04")
    assert p.ends() == 1 and not (tmp_path / "sent").exists() and "closed" not in p.seen
    p = sits("Half.")
    p.says("r", prompt="refuse? ")
    p.says("too much", prompt="why? ")
    p.says("同意", prompt="refuse? ")
    p.waits_for("Half.", p.place)
    p.says("/quit")
    assert p.ends() == 0 and (tmp_path / "sent").read_text("utf-8") == "4 to 李雷\n"
    with opened(tmp_path / "home", Talking()) as agent:
        assert "too much" in str(agent.get_state(config()).values["messages"])


@pytest.mark.parametrize("encoding", ["gbk", "cp1252"])
def test_no_terminal_is_too_small(sits, encoding: str):
    """B155."""
    p = sits("✅🎉 深圳 – done", PYTHONIOENCODING=encoding)
    p.says("hi", "")
    p.waits_for("done", p.place)
    p.says("/quit")
    assert p.ends() == 0 and "Traceback" not in p.seen


def test_a_dumb_terminal_gets_plain_text(sits):
    p = sits("**Hello**", TERM="dumb")
    p.says("Hi")
    p.waits_for("**Hello**", p.place)
    p.says("/quit")
    assert p.ends() == 0


def test_an_answer_higher_than_the_screen_is_all_there_at_the_end(sits):
    lines = [f"- item {n}" for n in range(60)]
    p = sits("\n".join([*lines, "", "After."]), size=(10, 40))
    p.says("List")
    p.waits_for("After.", p.place)
    p.waits_for("> ", p.place)
    final = p.seen[p.seen.rindex("item 0 ") :]
    assert [n for n in range(60) if f"item {n} " in final] == list(range(60))
    p.says("/quit")
    assert p.ends() == 0


def test_with_the_output_in_a_file_the_prompt_stays_on_the_screen(sits, tmp_path: Path):
    command = f'exec "{sys.executable}" "{CHILD}" home "[\\"**Hi**\\"]" t > answers'
    with Person("/bin/sh", "-c", command, folder=tmp_path) as p:
        p.says("Hello")
        p.says("/quit")
        assert p.ends() == 0
    assert (tmp_path / "answers").read_text("utf-8") == "**Hi**\n"


# Through a pipe, and in this process.

Talk = Callable[..., tuple[int, str, str]]


@pytest.fixture
def talks(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Iterator[Talk]:
    """Open an agent; write lines to a chat with it; return exit code, stdout and stderr."""
    with ExitStack() as stack:
        agents: list[Agent] = []

        def talked(
            *lines: str, steps: Any = (), thread: str | None = "t", user: str = "me", as_json: bool = False,
            language: str = "en",
        ) -> tuple[int, str, str]:  # fmt: skip
            if not agents:
                model = Talking(steps, then="Yes.", abstract=lambda request: "They talked.")
                agents.append(stack.enter_context(opened(tmp_path / "home", model, tools=[send], wait_s=0.1)))
            source = io.StringIO("".join(f"{line}\n" for line in lines))
            say = Say(language)
            session = Session(
                agents[0],
                context=Context(user=user),
                keyboard=Keyboard(source=source, say=say),
                screen=screen_for(as_json=as_json, say=say),
                models=built,
            )
            code = converse(session, thread)
            told = capsys.readouterr()
            return code, told.out, told.err

        yield talked


@marked(approval=True)
def send(to: str, amount: int) -> str:
    """Send."""
    return f"sent {amount} to {to}"


def built(name: str) -> Any:
    """Build any model but one."""
    if name == "nobody:x":
        raise BadSetting("nobody cannot be built")


def test_a_pipe_gets_answers_alone_and_messages_of_many_lines(talks: Talk):
    code, out, err = talks("one \\", "two", '"""', "a", "", "b", '"""', steps=["First", "Second"])
    assert (code, out) == (0, "First\nSecond\n") and err.count("\n") == 1


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("//help", "/help"),
        ("//etc/hosts is broken", "/etc/hosts is broken"),
        ("// a comment", "// a comment"),
        ("//", "//"),
        ("hello /help", "hello /help"),
    ],
)
def test_a_message_that_begins_with_two_slashes_is_said(talks: Talk, text: str, said: str):
    code, out, _ = talks(text, as_json=True)
    assert code == 0 and json.loads(out)["messages"][0]["content"] == said
    assert not is_command(text) and literal(text) == said


@pytest.mark.parametrize("order", ["/bogus", "/", "/Help", "/etc/hosts is broken"])
def test_an_unknown_command_gets_help_and_is_not_said(talks: Talk, order: str):
    code, out, err = talks(order)
    assert code == 0 and "there is no" in err
    assert all(word in out for word in ("/help", "/trace", "/memory", "/thread", "/model", "/close", "/quit"))


def test_json_is_one_object_a_line_for_each_turn_and_nothing_else(talks: Talk):
    lines = ("你好", "/help", "/memory", "2+2?")
    code, out, err = talks(*lines, steps=["好 ✅", call("calculator", expression="2+2"), "4"], as_json=True)
    one, two = map(json.loads, out.splitlines())
    assert code == 0 and "/trace" in err
    assert (one["thread"], one["answer"], one["stop_reason"]) == ("t", "好 ✅", "answered")
    assert [message["role"] for message in two["messages"]] == ["user", "assistant", "tool", "assistant"]
    assert [step["node"] for step in two["steps"]] == ["recall", "reason", "tools", "reason", "remember"]
    assert one["waits"] == two["waits"] == []


def test_a_script_can_decide_line_by_line(talks: Talk):
    lines = ("Send", "approve", 'edit {"to": "Bob", "amount": 1}', "Bye")
    code, out, _ = talks(*lines, steps=[SEND, "Done."], as_json=True)
    waiting, done, bye = map(json.loads, out.splitlines())
    assert code == 0 and [one["args"]["to"] for one in waiting["waits"]] == ["Ann", "李雷"]
    assert (waiting["answer"], waiting["stop_reason"]) == ("", "")
    results = [one["content"] for one in done["messages"] if one["role"] == "tool"]
    assert results[0] == "sent 3 to Ann" and results[1].endswith("sent 1 to Bob")
    assert done["answer"] == "Done." and bye["answer"] == "Yes."


def test_nothing_runs_by_an_unclear_line_and_the_end_of_input_leaves_it_waiting(talks: Talk):
    code, out, err = talks("Send", "sure, why not", "edit nonsense", "", steps=[SEND, "No."])
    assert (code, out) == (1, "") and err.count("write approve, edit or refuse") == 2 and "still waits" in err
    assert "one JSON object" in err
    code, out, _ = talks("no, not today", "n", "", steps=[])
    assert code == 0 and out == "No.\n"


def test_an_edit_that_does_not_fit_is_asked_for_again_with_the_problem(talks: Talk):
    lines = ("Send", 'edit {"to": "Bob"}', 'edit {"to": "Bob", "amount": 7}')
    code, out, err = talks(*lines, steps=[SEND[0], "Done."])
    assert (code, out) == (0, "Done.\n") and "amount" in err


def test_a_chat_in_chinese_asks_explains_and_is_answered_in_chinese(talks: Talk):
    lines = ("付钱", "好吧也许", "修改 {}", "同意。", "拒绝，太多了", "/trace", "/帮助", "/thread 别人的", "/model x")
    talks("我的", thread="别人的", user="bob", steps=["好。", SEND, "付了一笔。"])
    code, out, err = talks(*lines, language="zh")
    assert code == 0 and out.startswith("付了一笔。\n") and "拒绝，太多了'" not in out
    for told in (
        "用 --thread t 接着聊", '可以执行 send({"to": "Ann", "amount": 3}) 吗？', "请写同意、修改或拒绝", "amount",
        "没有 /帮助 这个命令", "palimpsest: 对话 '别人的' 是别的用户开的", "模型：x",
    ):  # fmt: skip
        assert told in err, told
    for told in (
        "送出 2 条消息",
        "没有执行：",
        "：成功，",
        "已回答",
        "归档 5 条消息",
        "列出这些命令",
        "Ctrl-C 停止回答",
    ):
        assert told in out, told


def test_trace_shows_the_steps_from_then_on(talks: Talk):
    _, out, err = talks("one", "/trace on", "two", "/trace off", "three", "/trace")
    assert err.count("remember: 2 messages filed") == 1 and out.count("remember: 2 messages filed") == 1
    assert "recall 'two'" in err and "recall 'three'" in out and out.startswith("Yes.\nYes.\nYes.\n  recall")


def test_memory_and_threads_are_the_users_own(talks: Talk, tmp_path: Path):
    for user in ("ann", "bob"):
        talks(f"I am {user}", thread=f"of {user}", user=user)
    _, out, _ = talks("/thread", "/memory", thread="other", user="ann")
    assert "of ann" in out and "bob" not in out
    code, out, err = talks("/thread of bob", "/thread of ann", "Hello", thread="other", user="ann", as_json=True)
    assert code == 0 and "another user" in err and json.loads(out)["thread"] == "of ann"
    with pytest.raises(NotYourThread):
        talks("Hello", thread="of bob", user="ann")


def test_memory_lists_and_searches(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    with opened(tmp_path / "home", Talking(then="Yes.")) as agent:
        for user, text in (("ann", "喜欢龙井茶"), ("ann", "lives in Oslo"), ("bob", "drinks coffee")):
            Memories(agent.store, user=user).save(text)
        keyboard = Keyboard(source=io.StringIO("/memory\n/memory 喜欢龙井茶\n"))
        session = Session(agent, context=Context(user="ann"), keyboard=keyboard, screen=screen_for(as_json=False))
        converse(session, "t")
    out = capsys.readouterr().out
    assert out.count("喜欢龙井茶") == 2 and "Oslo" in out and "coffee" not in out and "human 0/" in out


def test_a_new_thread_begins_and_close_ends_one(talks: Talk):
    _, out, err = talks("Hi", "/thread new", "Hi", "/close", "Hi", as_json=True)
    one, two, three = (json.loads(line)["thread"] for line in out.splitlines())
    assert one == "t" and len({one, two, three}) == 3 and err.count("closed: They talked.") == 1
    _, _, err = talks("/close", thread="empty")
    assert "not closed: nothing was said since" in err and err.count("/quit ends") == 1


def test_another_model_answers_from_then_on_if_it_can_be_built(talks: Talk):
    code, _, err = talks("/model", "/model nobody:x", "/model other:y", "/model", "Hi")
    assert code == 0 and "nobody cannot be built" in err and err.count("model: other:y") == 2
    assert "model: the configured one" in err


def test_an_error_of_one_turn_is_one_line_and_the_chat_goes_on(talks: Talk, tmp_path: Path):
    talks("Hi")
    with ThreadLocks(file_locks(tmp_path / "home" / LOCKS), wait_s=1).holding("t"):
        code, out, err = talks("Hi", "/thread other", "Hi again")
    assert (code, out) == (0, "Yes.\n") and "palimpsest: another run on thread 't'" in err
    assert talks("Hi", steps=[])[0] == 0


def test_the_history_is_each_users_own_and_stays_short(tmp_path: Path):
    assert history_file(tmp_path, "ann") != history_file(tmp_path, "bob")
    path = history_file(tmp_path, "ann")
    assert kept(path) == []
    lines = [json.dumps(f"第{n}\n行", ensure_ascii=False) for n in range(3 * MOST_KEPT)]
    path.write_text("\n".join([*lines, "{damaged", "3", ""]), encoding="utf-8")
    found = kept(path)
    assert found[-1] == f"第{3 * MOST_KEPT - 1}\n行" and len(found) == MOST_KEPT - 2
    assert len(path.read_text("utf-8").splitlines()) == MOST_KEPT


def test_what_a_question_waits_for_is_told_traced_and_answered_in_a_chat(tmp_path: Path):
    """From `ask` to `chat`, in processes of their own: a document would be kept, and a person is asked first."""
    terminal = Terminal(tmp_path)
    (tmp_path / "notes.md").write_text("# Vault\n\nThe vault code is 7731.\n", encoding="utf-8")
    assert terminal.run("docs", "add", "notes.md")[0] == 0
    keep = Calls(("memory_save", {"text": "The vault code is 7731."}))
    with OpenAIWire([Calls(("search_documents", {"query": "vault code"})), keep, Text("Saved.")]) as wire:
        env = {"OPENAI_BASE_URL": wire.url, "PALIMPSEST_MODEL": "openai:test-model"}
        options = ("--set", "writes=ask", "--thread", "t")
        code, out, err = terminal.run("ask", *options, "What do the notes say of the vault?", **env)
        assert (code, out) == (1, "") and 'may memory_save({"text": "The vault code is 7731."}) run?' in err
        assert "waits for a person: memory_save(" in terminal.run("threads", "trace", "t", **env)[1]
        code, out, err = terminal.run("chat", *options, stdin="approve\n", **env)
    assert (code, out) == (0, "Saved.\n") and "may memory_save(" in err
    assert "7731" in terminal.run("memory", "list")[1]


def test_an_agent_of_ones_own_can_be_talked_with(tmp_path: Path):
    script = """
from graph import ScriptedModel, build_agent, talk
from langgraph.checkpoint.memory import InMemorySaver
agent = build_agent(model=ScriptedModel(["Hello."])).compile(checkpointer=InMemorySaver())
raise SystemExit(talk(agent))
"""
    done = subprocess.run(
        [sys.executable, "-c", script], input=b"Hi\n/memory\n/model x\n", capture_output=True, cwd=tmp_path
    )
    assert done.returncode == 0 and done.stdout == b"Hello.\n", done.stderr
    assert b"no store" in done.stderr and b"given its model" in done.stderr

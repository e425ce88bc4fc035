"""`palimpsest threads trace`: the story of every turn that is kept, read from the checkpoints."""

import json
from pathlib import Path
from typing import Any

import pytest
from conftest import ask, config
from langchain_core.messages import HumanMessage
from langgraph.types import Command
from talking import Talking, opened
from tool_graphs import WAYS, call, session

from graph.agent import CHECKPOINTS, open_agent
from graph.cli import main
from graph.history import Told, owner_of, turns_of
from graph.rehearsal import RehearsalModel
from graph.settings import Settings
from graph.sqlite import open_saver
from graph.telling import headline, lines_below
from memory.catalogue import Catalogue
from nodes.contract import marked

pytestmark = pytest.mark.filterwarnings("ignore:tool '")


def turns(agent: Any, thread: str = "t") -> list[Told]:
    return turns_of(agent.checkpointer, thread)


def stories(agent: Any) -> list[tuple[str, str, str, bool]]:
    """Return question, answer, end and whether it is on the thread's line, of every turn."""
    return [(one.question, one.answer, one.stop_reason, one.current) for one in turns(agent)]


def test_every_turn_is_told_with_its_own_question_steps_and_answer(tmp_path: Path):
    with opened(tmp_path / "home", Talking(["Hi.", call("calculator", expression="2+2"), "四。"])) as agent:
        ask(agent, "Hello")
        kept = ask(agent, "二加二？")["steps"]
        one, two = turns(agent)
    assert (one.question, one.answer, one.stop_reason) == ("Hello", "Hi.", "answered")
    assert [step["node"] for step in one.steps] == ["recall", "reason", "remember"]
    assert (two.question, two.answer) == ("二加二？", "四。") and two.steps == kept
    assert one.at < two.at and one.current and two.current


def test_more_turns_than_are_read_at_once_are_all_told(tmp_path: Path):
    with opened(tmp_path / "home", Talking(then="Yes.")) as agent:
        for n in range(45):
            ask(agent, f"q{n}", extract="off")
        assert [one.question for one in turns(agent)] == [f"q{n}" for n in range(45)]


def test_what_was_pruned_is_gone_and_the_rest_is_whole(tmp_path: Path):
    with opened(tmp_path / "home", Talking(then="Yes.")) as agent:
        for n in range(4):
            ask(agent, f"q{n}")
        whole = turns(agent)
        agent.checkpointer.trim(["t"], keep=7)
        assert [(one.question, one.steps) for one in turns(agent)] == [(one.question, one.steps) for one in whole[2:]]
        agent.checkpointer.trim(["t"], keep=1)
        assert [one.steps for one in turns(agent)] == [whole[3].steps]


@pytest.mark.parametrize("way", WAYS)
def test_a_turn_that_waits_says_for_what_and_goes_on_as_one_turn(way):
    @marked(approval=True)
    def send(to: str) -> str:
        """Send."""
        return "sent"

    with session(call("send", to="Ann"), "Sent.", call("send", to="Bob"), "As you like.", tools=[send], way=way) as s:
        s.turn("Send")
        (waiting,) = turns(s.agent)
        assert waiting.stop_reason == "" and [one["args"] for one in waiting.waits] == [{"to": "Ann"}]
        s.turn(Command(resume=True))
        (sent,) = turns(s.agent)
        assert sent.answer == "Sent." and len(sent.steps) == 5 and sent.waits == []
        s.turn("Send to Bob")
        s.turn("never mind")
        assert [(one.question, one.answer) for one in turns(s.agent)] == [
            ("Send", "Sent."), ("Send to Bob", ""), ("never mind", "As you like."),
        ]  # fmt: skip


def test_a_fork_and_a_replay_are_told_beside_what_they_left(tmp_path: Path):
    with opened(tmp_path / "home", Talking(["A", "B", "C", "D"])) as agent:
        ask(agent, "one")
        ask(agent, "two")
        before = next(one for one in agent.get_state_history(config()) if one.next == ("recall",))
        question = before.values["messages"][-1]
        edited = agent.update_state(before.config, {"messages": [HumanMessage("TWO", id=question.id)]})
        agent.invoke(None, edited)
        assert stories(agent) == [
            ("one", "A", "answered", True),
            ("two", "B", "answered", False),
            ("TWO", "C", "answered", True),
        ]
        agent.invoke(None, before.config)
        assert stories(agent)[-1] == ("two", "D", "answered", True)
        assert [one.current for one in turns(agent)] == [True, False, False, True]


def test_a_turn_that_died_before_it_began_does_not_borrow_the_steps_of_the_one_before(tmp_path: Path):
    with opened(tmp_path / "home", Talking(then="Yes.")) as agent:
        ask(agent, "one")
        with pytest.raises(Exception, match="tools must be among"):
            ask(agent, "two", tools=("nope",))
        one, two = turns(agent)
    assert (one.question, len(one.steps)) == ("one", 3)
    assert (two.question, two.steps, two.answer, two.stop_reason) == ("two", [], "", "")
    assert "tools must be among" in two.error


def test_closing_is_a_turn_without_a_question(tmp_path: Path):
    with opened(tmp_path / "home", Talking(then="Yes.")) as agent:
        ask(agent, "one")
        agent.invoke({"messages": [], "close": True}, config())
        assert stories(agent)[1][2] == "closed" and turns(agent)[1].steps[-1]["detail"]["closed"] is True


def test_steps_of_a_users_own_nodes_and_of_older_versions_can_be_told():
    own = {"node": "translate", "ms": 3, "detail": {"language": "中文"}}
    assert headline(own) == 'translate {"language": "中文"}  (3 ms)' and lines_below(own) == []
    old = {"node": "remember", "ms": 1, "detail": {"filed": 2, "memories": 1, "facts": 0}}
    assert "1 memory, 0 facts" in headline(old) and lines_below(old) == []
    for node in ("recall", "reason", "tools", "remember", "summarize"):
        bare: Any = {"node": node, "ms": 0, "detail": {}}
        assert headline(bare) and lines_below(bare) == []


# The command.


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home in which Ann said two things, and where the commands of this test look."""
    home = tmp_path / "home"
    with open_agent(Settings(home=home, model="rehearsal"), model=RehearsalModel()) as agent:
        ask(agent, "I'm allergic to [bold]peanuts[/bold].", "a", user="ann")
        ask(agent, "我不能吃什么？", "a", user="ann")
    monkeypatch.setenv("PALIMPSEST_HOME", str(home))
    monkeypatch.chdir(tmp_path)
    return home


def test_the_command_draws_every_turn_step_by_step(home: Path, capsys: pytest.CaptureFixture[str]):
    assert main(["threads", "trace", "a", "--user", "ann"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("thread a: 2 turns\n") and "[bold]peanuts[/bold]" in out and "我不能吃什么？" in out
    for words in ("recall '", "reason 1: ", 'memory_save({"text"', "ok, ", "remember: ", "answered: "):
        assert words in out
    assert max(map(len, out.splitlines())) > 100  # a pipe is not wrapped


def test_the_command_as_json_holds_the_same_records(home: Path, capsys: pytest.CaptureFixture[str]):
    assert main(["threads", "trace", "a", "--user", "ann", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    with open_saver(home / CHECKPOINTS) as saver:
        assert [one["steps"] for one in told] == [one.steps for one in turns_of(saver, "a")]
        assert owner_of(saver, "a") == "ann" and owner_of(saver, "b") is None
    assert told[1]["question"] == "我不能吃什么？" and told[1]["stop_reason"] == "answered"


def test_the_command_says_how_many_turns_are_gone(home: Path, capsys: pytest.CaptureFixture[str]):
    main(["threads", "prune", "a", "--user", "ann", "--keep", "2"])
    capsys.readouterr()
    assert main(["threads", "trace", "a", "--user", "ann"]) == 0
    assert "1 turn; 1 earlier gone" in capsys.readouterr().out


def test_no_other_user_sees_a_trace_and_an_unknown_thread_is_one_line(home: Path, capsys: pytest.CaptureFixture[str]):
    for thread, user in (("a", "bob"), ("a", "me"), ("nothing", "ann")):
        assert main(["threads", "trace", thread, "--user", user]) == 1
        told = capsys.readouterr()
        assert told.out == "" and told.err.count("\n") == 1 and "no thread" in told.err


def test_a_catalogue_from_elsewhere_gives_no_hold_on_anothers_checkpoints(
    home: Path, capsys: pytest.CaptureFixture[str]
):
    """An import for another user in the same home names threads that are not theirs; their own go on."""
    with open_agent(Settings(home=home), model=lambda name: RehearsalModel()) as agent:
        ask(agent, "Hello", "mine", user="eve")
        Catalogue(agent.store, user="eve").note("a", "I like [bold]peanuts[/bold]")
        before = len(list(agent.checkpointer.list(config("a"))))
    assert before > 2
    assert main(["threads", "sweep", "--idle-hours", "0", "--user", "eve"]) == 1
    told = capsys.readouterr()
    assert "closed  mine" in told.out and "another user" in told.err
    assert main(["threads", "prune", "--keep", "1", "--user", "eve"]) == 0
    assert main(["threads", "delete", "a", "--user", "eve"]) == 0
    with open_saver(home / CHECKPOINTS) as saver:
        assert len(list(saver.list(config("a")))) == before and owner_of(saver, "a") == "ann"
    assert main(["threads", "trace", "a", "--user", "eve"]) == 1


def test_a_thread_whose_first_turn_did_not_end_is_listed_traced_and_deleted(
    home: Path, capsys: pytest.CaptureFixture[str]
):
    """It is in no catalogue yet; the checkpoints know whose it is."""

    def told(*words: str, code: int = 0) -> str:
        assert main(["threads", *words]) == code
        return capsys.readouterr().out

    with open_agent(Settings(home=home), model=lambda name: RehearsalModel()) as agent:
        agent.invoke(
            {"messages": [("user", "你好， sk-abcdefghijklmnop1234567890")]}, config("new"), interrupt_before=["reason"]
        )
        ask(agent, "Hello", "old")
    (new,) = [line for line in told("list").splitlines() if line.startswith("new  ")]
    assert "0 turns  unfinished  你好" in new and "sk-abc" not in new
    assert [one["id"] for one in json.loads(told("list", "--json"))] == ["old", "new"]
    assert "not finished" in told("trace", "new") and told("show", "new") == "(nothing)\n"
    for action in ("trace", "show", "delete", "close"):
        told(action, "new", "--user", "ann", code=1)
    assert "new" not in told("list", "--user", "ann")
    assert "deleted new" in told("delete", "new")
    assert "new" not in told("list")
    told("trace", "new", code=1)


def test_an_unfinished_thread_can_be_closed(home: Path, capsys: pytest.CaptureFixture[str]):
    with open_agent(Settings(home=home), model=lambda name: RehearsalModel()) as agent:
        agent.invoke({"messages": [("user", "My cat is called Tom.")]}, config("new"), interrupt_before=["reason"])
    assert main(["threads", "close", "new"]) == 0
    assert "closed  new" in capsys.readouterr().out
    assert main(["threads", "list"]) == 0 and "unfinished" not in capsys.readouterr().out

"""session_search and tool_result: what was said is found word for word, and never by another user."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from conftest import ask
from langchain_core.messages import ToolMessage
from talking import Talking, filed, opened

from graph.agent import Agent, open_agent
from graph.settings import Settings
from memory.transcript import Transcript
from nodes.kinds import REPEATING
from nodes.toolbox import OWN_TOOLS

SAID = {
    "trip": ["我的护照号码是 E12345678，别忘了", "The locker code is 4711-B", "下周三要去上海出差，住浦东香格里拉"],
    "work": ["合同编号 HT-2026-0093 由李伟负责", "Please call Nadia at the harbour office", "nothing else today"],
}
Found = tuple[Agent, Talking]


@pytest.fixture(scope="module")
def talked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Found]:
    """Two users' conversations, cut to a few messages, with the embedder that a user has."""
    settings = Settings(home=tmp_path_factory.mktemp("search") / "home", model="rehearsal")
    model = Talking(then="Noted.")
    with open_agent(settings, model=model) as agent:
        for thread, texts in SAID.items():
            for text in [*texts, "ok", "fine", "yes"]:
                ask(agent, text, thread, user="ann", max_messages=4, extract="off")
        ask(agent, "My locker code is 9999-X, 护照号码 B000", "bobs", user="bob")
        yield agent, model


def called(talked: Found, name: str, thread: str, user: str, **args: Any) -> str:
    """Let the model call a tool in a thread; return the result that it is shown."""
    agent, model = talked
    model._steps += [{"name": name, "args": args}, "Found."]
    values = ask(agent, "look it up", thread, user=user, extract="off", max_messages=100)
    return next(str(m.text) for m in reversed(values["messages"]) if isinstance(m, ToolMessage))


def search(talked: Found, query: str, thread: str, user: str = "ann", **args: Any) -> list[dict[str, Any]]:
    messages: list[dict[str, Any]] = json.loads(called(talked, "session_search", thread, user, query=query, **args))[
        "messages"
    ]
    return messages


@pytest.mark.parametrize(
    ("query", "thread", "expected"),
    [
        ("护照号码", "trip", SAID["trip"][0]),
        ("E12345678", "trip", SAID["trip"][0]),
        ("locker code", "trip", "The locker code is 4711-B"),
        ("上海出差", "trip", SAID["trip"][2]),
        ("HT-2026-0093", "work", SAID["work"][0]),
        ("harbour office", "work", SAID["work"][1]),
    ],
)
def test_what_left_the_page_is_found_word_for_word(talked: Found, query: str, thread: str, expected: str):
    """B110: in Chinese and English, with its time, its thread and its neighbours."""
    agent, _ = talked
    best = search(talked, query, thread)[0]
    assert best["text"] == expected and best["thread"] == thread and best["role"] == "human"
    assert best["time"].startswith("20") and best["after"] == "Noted."
    entries = Transcript(agent.store, user="ann", thread=thread).entries()
    assert best["id"] in [entry.id for entry in entries if entry.text == expected]


def test_only_this_thread_is_searched_unless_everywhere_is_asked_for(talked: Found):
    assert not any("HT-2026-0093" in one["text"] for one in search(talked, "HT-2026-0093", "trip"))
    assert search(talked, "合同编号 HT-2026-0093", "trip", everywhere=True)[0]["thread"] == "work"


@pytest.mark.parametrize("everywhere", [False, True])
@pytest.mark.parametrize("thread", ["bobs", "bob tries trip"])
def test_no_search_finds_what_another_user_said(talked: Found, everywhere: bool, thread: str):
    """B124: by meaning, by words, here and everywhere."""
    for query in ("护照号码", "locker code 4711-B", "HT-2026-0093"):
        found = search(talked, query, thread, "bob", everywhere=everywhere)
        shown = json.dumps(found, ensure_ascii=False)
        assert not any(secret in shown for secret in ("E12345678", "4711-B is", "The locker", "李伟"))
        assert {one["thread"] for one in found} <= {"bobs", "bob tries trip"}


def test_a_search_does_not_find_earlier_searches(talked: Found):
    """Each would quote the one before, twice as long."""
    sizes = [
        len(called(talked, "session_search", "bobs", "bob", query="locker code", everywhere=True)) for _ in range(4)
    ]
    assert max(sizes) < 2000
    assert {tool.name for tool in OWN_TOOLS} >= REPEATING


def test_a_message_is_read_by_its_id_after_it_left_and_only_by_its_user(talked: Found):
    """The summary cites ids."""
    agent, _ = talked
    first = Transcript(agent.store, user="ann", thread="trip").entries()[0]
    assert called(talked, "tool_result", "trip", "ann", id=first.id).startswith(SAID["trip"][0])
    assert "nothing is kept under" in called(talked, "tool_result", "bobs", "bob", id=first.id)


def test_the_transcript_holds_blocks_attachments_and_calls(tmp_path: Path):
    picture = {"type": "image_url", "image_url": {"url": "data:image/png;base64,QUJD"}}
    blocks = [{"type": "text", "text": "what is this? 这是什么"}, picture]
    call = {"name": "calculator", "args": {"expression": "2+2"}, "id": "c1"}
    with opened(tmp_path / "home", Talking([[call]], then="A cat.")) as agent:
        values = ask(agent, blocks)
        asked, calling, result, answer = Transcript(agent.store, user="me", thread="t").entries()
        assert asked.data["content"] == blocks and asked.text == "what is this? 这是什么\n[image]"
        assert calling.data["tool_calls"][0]["args"] == {"expression": "2+2"}
        assert result.role == "tool" and result.data["tool_call_id"] == "c1" and result.text == "4"
        assert [asked.id, calling.id, result.id, answer.id] == [message.id for message in values["messages"]]
        assert filed(agent.store, user="other") == {}

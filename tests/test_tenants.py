"""Two users, one process, any interleaving, any verb, sync and async, background work included: nothing crosses."""

import argparse
import asyncio
import json
import random
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from stores import hash_embedder
from talking import Talking, opened
from tenants import COMMANDS, INNER, TOOLS, VERBS, T, verbs_in_memory
from tool_graphs import WAYS, call

from graph.cli import main, parser
from memory.memories import Memories
from memory.owner import places_of
from memory.store import ChromaStore, open_store
from nodes.context import Context
from nodes.toolbox import OWN_TOOLS

MARKS = {"ann": "zebra7731 斑马", "bob": "quokka9944 袋鼠"}
OTHER = {"ann": "bob", "bob": "ann"}


def crossed(user: str, shown: object) -> bool:
    """Whether what a user sees holds a word of the other one."""
    text = str(shown)
    return any(word in text for word in MARKS[OTHER[user]].split())


def test_every_verb_has_its_place_in_the_tables():
    assert set(verbs_in_memory()) - INNER == set(VERBS)
    assert {tool.name for tool in OWN_TOOLS} == set(TOOLS)
    assert set(commands()) == set(COMMANDS)


def commands() -> Iterator[str]:
    """Yield every command of the terminal with each of its actions."""
    (top,) = (one for one in parser()._actions if isinstance(one, argparse._SubParsersAction))
    for name, command in top.choices.items():
        actions = next((one.choices for one in command._actions if one.dest == "action"), None)
        yield from [f"{name} {action}" for action in actions] if actions else [name]


@pytest.fixture(scope="module")
def shared_store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ChromaStore]:
    """A store whose index works in the background, and which asks Chroma at every search."""
    with open_store(tmp_path_factory.mktemp("tenants"), embedder=hash_embedder(), exact_max=0) as store:
        yield store


@given(seed=st.integers(0, 2**32), together=st.booleans())
@hypothesis_settings(max_examples=12, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_no_verb_of_memory_shows_or_touches_what_is_anothers(shared_store: ChromaStore, seed: int, together: bool):
    """B124, B150: all verbs of both users in any order, one after the other or at the same time."""

    def live(user: str) -> list[str]:
        names = random.Random(f"{seed}{user}").sample([*VERBS] * 2, k=2 * len(VERBS))
        return [name for name in names if crossed(user, VERBS[name](shared_store, user, MARKS[user]))]

    if together:
        with ThreadPoolExecutor(2) as pool:
            leaks = list(pool.map(live, MARKS))
    else:
        order = random.Random(seed).sample([(u, n) for u in MARKS for n in VERBS], k=2 * len(VERBS))
        leaks = [name for user, name in order if crossed(user, VERBS[name](shared_store, user, MARKS[user]))]
    assert not any(leaks)
    for user in MARKS:
        kept = shared_store.estate.items(places_of(user))
        assert not [one for one in kept if crossed(user, (one.key, one.value))]
    owned = {place for user in MARKS for place in places_of(user)}
    assert {namespace[:2] for namespace in shared_store.list_namespaces()} <= owned


def replaced(args: Any, ids: dict[str, str]) -> Any:
    """Put the other user's ids where a table leaves room for them."""
    return {key: ids.get(value, value) if isinstance(value, str) else value for key, value in args.items()}


class Both:
    """An agent that both users talk to at once or in turns; its model calls every tool in each turn."""

    def __init__(self, agent: Any, ids: dict[str, dict[str, str]], way: str) -> None:
        self.agent, self.ids, self.way = agent, ids, way

    def turn(self, user: str) -> tuple[Any, Any, Any]:
        text = {"role": "user", "content": f"My tea is {MARKS[user]}; forget it or not", "id": f"m-{user}"}
        context = Context(user=user, extract="turn", teams=(f"of {user}",))
        return {"messages": [text]}, {"configurable": {"thread_id": f"{T} {user}"}}, context

    def turns(self) -> list[Any]:
        """Run a turn of each; return both states."""
        if self.way == "invoke":
            return [self.agent.invoke(a, b, context=c) for a, b, c in map(self.turn, MARKS)]
        return asyncio.run(self.together())

    async def together(self) -> list[Any]:
        return await asyncio.gather(*(self.agent.ainvoke(a, b, context=c) for a, b, c in map(self.turn, MARKS)))

    def exchange_ids(self) -> None:
        """Give each user's model the ids of the other's memory and message."""
        for user in MARKS:
            (theirs,) = Memories(self.agent.store, user=OTHER[user]).all()
            self.ids[user] = {"{memory}": theirs.id, "{message}": f"m-{OTHER[user]}"}


@pytest.mark.parametrize("way", WAYS)
def test_no_tool_shows_or_touches_what_is_anothers(tmp_path: Path, way: str):
    """B124: three turns of both users, in turns or at once, with every tool in each; ids given are the other's."""
    ids: dict[str, dict[str, str]] = {user: {} for user in MARKS}

    def step(messages: list[Any], tools: list[str]) -> Any:
        (user,) = (user for user, mark in MARKS.items() if mark in messages[1].text)
        if messages[-1].type == "tool":
            return f"Noted, {MARKS[user]}."
        return [call(name, name, **replaced(args(MARKS[user]), ids[user])) for name, args in TOOLS.items()]

    model = Talking(then=step)
    with opened(tmp_path / "home", model) as agent:
        both = Both(agent, ids, way)
        for _ in range(3):
            for user, state in zip(MARKS, both.turns(), strict=True):
                assert not crossed(user, state)
            both.exchange_ids()
        for messages, _ in model.calls:
            text = "\n".join(message.text for message in messages)
            assert sum(any(word in text for word in mark.split()) for mark in MARKS.values()) == 1
        store: Any = agent.store
        for user in MARKS:
            kept = store.estate.items(places_of(user))
            assert len(kept) > 8 and not [one for one in kept if crossed(user, (one.key, one.value))]


def test_no_command_shows_or_touches_what_is_anothers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    """B122, B124: every command of both users, with the other's thread and memory where it takes an id."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PALIMPSEST_MODEL", "rehearsal")
    for mark in MARKS.values():
        (tmp_path / f"{mark}.md").write_text(f"The file on tea says {mark}", encoding="utf-8")

    def ran(user: str, words: list[str], *, thread: str = "") -> str:
        try:
            main([*words, "--user", user, *(["--thread", thread] if thread else [])])
        except SystemExit:  # a command that concerns no user refuses the option
            main(words)
        shown = capsys.readouterr()
        assert not crossed(user, shown.out + shown.err), words
        return shown.out

    for user, mark in MARKS.items():
        ran(user, ["ask", f"Remember that my tea is {mark}"], thread=f"of {user}")
    ids = {}
    for user in MARKS:
        (one,) = json.loads(ran(user, ["memory", "list", "--json"]))
        ids[OTHER[user]] = {"{thread}": f"of {user}", "{memory}": one["id"]}
    exported = {user: ran(user, ["memory", "export"]) for user in MARKS}
    for user, mark in MARKS.items():
        for words in COMMANDS.values():
            if not isinstance(words, str):
                ran(user, [ids[user].get(word, word) for word in words(mark)])
        mine = ran(OTHER[user], ["memory", "export"]).splitlines()
        assert set(exported[OTHER[user]].splitlines()[1:-1]) <= set(mine) or user == "bob"
    before = ran("bob", ["memory", "export"])
    assert main(["memory", "forget-user", "ann", "--yes"]) == 0
    capsys.readouterr()
    assert ran("bob", ["memory", "export"]) == before and MARKS["bob"] in before
    assert MARKS["ann"] not in ran("ann", ["memory", "export"])

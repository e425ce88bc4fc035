"""Core memory: every write passes the same gates, keeps what it replaces, and loses no update of another writer."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langgraph.store.base import BaseStore
from langgraph.store.memory import InMemoryStore
from pydantic import ValidationError
from stores import Opener, hash_embedder

from memory.block_specs import BlockRefused, BlockSpec, checked, distinct
from memory.blocks import Author, Block, Blocks
from memory.matching import uniform
from memory.owner import BadUser

pytest_plugins = ["store_fixtures"]

AGENT = Author(by="agent", thread="monday", message="m1")
PERSON = Author(by="person")
HUMAN = BlockSpec(label="human", limit=200)
POLICY = BlockSpec(label="policy", limit=200, read_only=True, text="No refunds.")
TEXTS = st.text(st.sampled_from("ab é\u0301\n\r茶한\u1112\u1161👍🏽\u200d \u2028"), max_size=40) | st.text(max_size=40)


class Clock:
    """A clock that ticks once a question."""

    def __init__(self) -> None:
        self.time = datetime(2026, 5, 1, tzinfo=UTC)

    def __call__(self) -> datetime:
        self.time += timedelta(seconds=1)
        return self.time


def blocks(store: BaseStore | None = None, *specs: BlockSpec, user: str = "ann") -> Blocks:
    return Blocks(store or InMemoryStore(), user=user, specs=specs or (HUMAN, POLICY), clock=Clock())


def holding(text: str, *, limit: int = 200) -> Blocks:
    """Make blocks of which `human` says this."""
    made = blocks(None, BlockSpec(label="human", limit=limit))
    made.append("human", text, author=AGENT)
    return made


def refusal(edit: Callable[[], object]) -> BlockRefused:
    with pytest.raises(BlockRefused) as caught:
        edit()
    return caught.value


def text(of: Blocks, label: str = "human") -> str:
    return of.get(label).text


# What an edit does


def test_lines_are_added_at_the_end_and_once(store: BaseStore) -> None:
    """B048."""
    human = blocks(store)
    for content in ("likes tea", "住在波尔图\nhas a cat\n", "has a cat", "likes tea\n住在波尔图"):
        human.append("human", content, author=AGENT)
    assert text(human) == "likes tea\n住在波尔图\nhas a cat"
    assert human.get("human").version == 2
    assert human.append("human", "has a", author=AGENT).changed


@given(TEXTS, TEXTS, TEXTS, TEXTS)
def test_a_replacement_leaves_what_is_around_it(before: str, old: str, after: str, new: str) -> None:
    """B140, B142, B144: one place, over line ends, and the rest as it was."""
    made = blocks(None, BlockSpec(label="human", text=uniform(before + old + after)))
    was = text(made)
    try:
        made.replace("human", old, new, author=AGENT)
    except BlockRefused as refused:
        assert refused.gate in ("old text present exactly once", "arguments valid") and text(made) == was
    else:
        around = [
            (was[:n], was[m:]) for n in range(len(was) + 1) for m in range(n, len(was) + 1)
            if like(was[n:m]) == like(uniform(old))
        ]  # fmt: skip
        assert text(made) in [uniform(start + uniform(new) + end) for start, end in around]


def like(one: str) -> str:
    return "\n".join(line.rstrip(" \t\u00a0\u3000") for line in one.split("\n"))


@pytest.mark.parametrize(
    ("was", "old", "new", "now"),
    [
        ("## Todo\n- empty\n## Likes", "## Todo\n- empty", "## Todo\n- buy tea", "## Todo\n- buy tea\n## Likes"),
        ("caf\u00e9 na Rua", "cafe\u0301", "bar", "bar na Rua"),
        ("한글을 씀", "\u1112\u1161\u11ab\u1100\u1173\u11af", "漢字", "漢字을 씀"),
        ("a\r\nb\r\nc", "a\nb", "x\ny", "x\ny\nc"),
        ("a\nb\nc", "a\r\nb", "x\r\ny", "x\ny\nc"),
        ("喜欢喝茶。\n住在波尔图。", "喜欢喝茶", "喜欢喝咖啡", "喜欢喝咖啡。\n住在波尔图。"),
        ("likes tea\nlikes tea with milk", "likes tea\nlikes", "likes", "likes tea with milk"),
        ("likes tea\nhas a cat", "\nhas a cat", "", "likes tea"),
    ],
)
def test_a_text_is_replaced_over_lines_forms_and_line_ends(was: str, old: str, new: str, now: str) -> None:
    """B138, B140, B142, B144."""
    human = holding(was)
    assert human.replace("human", old, new, author=AGENT).changed
    assert text(human) == now


# Gates


def test_a_text_that_stands_several_times_is_refused_with_its_places() -> None:
    """B138."""
    human = holding("likes tea\nlikes tea with milk")
    told = refusal(lambda: human.replace("human", "likes tea", "likes coffee", author=AGENT))
    assert told.gate == "old text present exactly once"
    assert "2 times" in str(told) and 'line 1 ("likes tea")' in str(told) and 'line 2 ("likes tea with' in str(told)
    assert text(human) == "likes tea\nlikes tea with milk"
    human.replace("human", "likes tea with milk", "likes coffee", author=AGENT)
    assert text(human) == "likes tea\nlikes coffee"


@pytest.mark.parametrize(
    ("was", "old", "near"),
    [
        ("lives in Porto\nlikes green tea", "likes black tea", '"likes green tea"'),
        ("住在波尔图\n喜欢喝绿茶", "喜欢喝红茶", '"喜欢喝绿茶"'),
        ("Likes Tea", "likes tea", '"Likes Tea"'),
        ("abc", "xyz", "nothing in it is like it"),
    ],
)
def test_an_absent_text_is_refused_with_the_closest(was: str, old: str, near: str) -> None:
    human = holding(was)
    told = refusal(lambda: human.replace("human", old, "x", author=AGENT))
    assert told.gate == "old text present exactly once" and near in str(told) and text(human) == was


def test_nothing_can_be_replaced_in_an_empty_block() -> None:
    assert "it is empty" in str(refusal(lambda: blocks().replace("human", "a", "b", author=AGENT)))


@pytest.mark.parametrize("label", ["projects", "Human", " human ", "human ", "../x", "", "humán", "ｈｕｍａｎ", "人类"])
@pytest.mark.parametrize("user", ["agent", "person"])
def test_an_unknown_label_is_refused_with_the_labels_and_nothing_is_made(label: str, user: Any) -> None:
    """B145."""
    store = InMemoryStore()
    made, author = blocks(store), Author(by=user)
    for edit in (
        lambda: made.append(label, "x", author=author),
        lambda: made.replace(label, "x", "y", author=author),
        lambda: made.rewrite(label, "x", author=author),
        lambda: made.history(label),
    ):
        told = refusal(edit)
        assert told.gate == "block exists and is writable" and "'human', 'policy'" in str(told)
        assert ("closest is 'human'" in str(told)) == (label in ("Human", " human ", "human ", "humán"))
    assert store.search(()) == []


def test_a_label_in_any_form_of_its_characters_is_that_label() -> None:
    made = blocks(None, BlockSpec(label="caf\u00e9"))
    assert made.append("cafe\u0301", "x", author=AGENT).block.spec.label == "caf\u00e9"


def test_the_agent_cannot_edit_a_read_only_block_and_a_person_can(opening: Opener) -> None:
    """B147: also after a restart, and seeds cover nothing that is there."""
    for run in range(2):
        with opening(embedder=hash_embedder()) as store:
            policy = blocks(store)
            assert policy.get("policy").spec.read_only
            for edit in (
                lambda made=policy: made.append("policy", "x", author=AGENT),
                lambda made=policy: made.replace("policy", "refunds", "x", author=AGENT),
                lambda made=policy: made.rewrite("policy", "x", author=AGENT),
                lambda made=policy: made.undo("policy", author=AGENT, version=0),
            ):
                told = refusal(edit)
                assert told.gate == "block exists and is writable" and "Writable are: 'human'" in str(told)
            assert text(policy, "policy") == ("No refunds.", "Refunds within a week.")[run]
            policy.rewrite("policy", "Refunds within a week.", author=PERSON)


@pytest.mark.parametrize(
    ("was", "content", "fits"),
    [
        ("x" * 190, "y" * 50, False),
        ("x" * 149, "y" * 50, True),
        ("茶" * 190, "👍🏽" * 10, False),
        ("", "茶" * 200, True),
    ],
)
def test_an_edit_over_the_limit_is_refused_with_the_numbers(was: str, content: str, fits: bool) -> None:
    """B135."""
    human = holding(was) if was else blocks()
    if fits:
        human.append("human", content, author=AGENT)
        assert len(text(human)) == 200
        return
    needed = len(was) + 1 + len(content)
    for _ in range(2):
        told = refusal(lambda: human.append("human", content, author=AGENT))
        assert told.gate == "room left" and "Shorten" in str(told)
        assert f"takes 200 characters and has {len(was)}" in str(told)
        assert f"would have {needed}, {needed - 200} too" in str(told)
    assert (text(human), human.get("human").version) == (was, 1)


def test_characters_are_counted_in_the_form_that_is_kept() -> None:
    human = blocks(None, BlockSpec(label="human", limit=4))
    human.append("human", "cafe\u0301", author=AGENT)
    assert len(text(human)) == 4


PATHS: dict[str, Callable[[Blocks, str], object]] = {
    "append": lambda made, new: made.append("human", new, author=AGENT),
    "replace": lambda made, new: made.replace("human", text(made)[:1], new, author=AGENT),
    "rewrite": lambda made, new: made.rewrite("human", new, author=PERSON),
    "undo": lambda made, new: made.undo("human", author=PERSON, version=len(new) % 4),
    "seed": lambda made, new: BlockSpec(label="human", limit=made.specs["human"].limit, text=new),
}


@given(st.integers(1, 30), st.lists(st.tuples(st.sampled_from(sorted(PATHS)), TEXTS | st.just("x" * 10_000))))
def test_no_path_writes_more_than_the_limit(limit: int, steps: list[tuple[str, str]]) -> None:
    """B136."""
    made = blocks(None, BlockSpec(label="human", limit=limit))
    for path, new in steps:
        was = text(made)
        try:
            PATHS[path](made, new)
        except (BlockRefused, ValidationError):
            assert text(made) == was
        assert len(text(made)) <= limit
    said = [version.text for version in made.history("human")]
    assert said[0] == "" and said[-1] == text(made) and all(a != b for a, b in pairwise(said))


@given(st.integers(1, 20), TEXTS, TEXTS)
def test_what_is_over_a_lowered_limit_stays_and_can_only_get_shorter(limit: int, was: str, new: str) -> None:
    """B136, and an import of what is too long."""
    store = InMemoryStore()
    blocks(store, BlockSpec(label="human", limit=1000)).rewrite("human", was, author=PERSON)
    lowered = blocks(store, BlockSpec(label="human", limit=limit))
    before = text(lowered)
    assert before == uniform(was)
    try:
        after = lowered.rewrite("human", new, author=PERSON).block.text
    except BlockRefused as refused:
        assert refused.gate == "room left" and len(uniform(new)) > limit and len(uniform(new)) >= len(before)
    else:
        assert len(after) <= limit or after == before or len(after) < len(before)


@pytest.mark.parametrize("blank", ["", " ", "\n\n", "\x00", "　", "\u200b", "\u2060\ufeff\n"])
def test_blank_lines_are_not_appended_and_nothing_is_not_replaced(blank: str) -> None:
    assert refusal(lambda: blocks().append("human", blank, author=AGENT)).gate == "arguments valid"
    assert refusal(lambda: blocks().replace("human", "\x00", blank, author=AGENT)).gate == "arguments valid"


# Configuration


@pytest.mark.parametrize(
    "twins",
    [
        ("human", "human"), ("human", "Human"), ("caf\u00e9", "CAF\u00c9"), ("human", "hu\u200bman"),
        ("ｈｕｍａｎ", "human"),
    ],
)  # fmt: skip
def test_two_blocks_with_one_label_are_refused(twins: tuple[str, str]) -> None:
    """B146."""
    specs = (BlockSpec(label=twins[0], text="Nora sails"), BlockSpec(label=twins[1], text="Omar"))
    with pytest.raises(ValueError, match="must differ"):
        distinct(specs)
    with pytest.raises(ValueError, match="must differ"):
        blocks(None, *specs)


@pytest.mark.parametrize(
    "wrong",
    [
        {"label": ""}, {"label": " human"}, {"label": "a\nb"}, {"label": "cafe\u0301"}, {"label": "a\u2028b"},
        {"label": "a" * 65},
        {"label": "a", "limit": 0}, {"label": "a", "limit": 30_000}, {"label": "a", "text": "x" * 22_000},
        {"label": "a", "readonly": True}, {"label": None}, {},
    ],
)  # fmt: skip
def test_what_is_no_block_is_refused_where_it_is_configured(wrong: dict[str, Any]) -> None:
    """B135, B147: no setting is silently left out."""
    with pytest.raises(ValidationError):
        BlockSpec(**wrong)


def test_a_seed_fills_only_what_is_missing(store: BaseStore) -> None:
    """B147."""
    seeded = BlockSpec(label="human", text="Speak\r\nshortly.")
    assert text(blocks(store, seeded)) == "Speak\nshortly." and store.search(("users",)) == []
    blocks(store, seeded).append("human", "likes tea", author=AGENT)
    for other in ("", "Something else."):
        again = blocks(store, BlockSpec(label="human", text=other))
        assert text(again) == "Speak\nshortly.\nlikes tea" and again.history("human")[0].text == "Speak\nshortly."
    blocks(store, seeded).rewrite("human", "", author=PERSON)
    assert text(blocks(store, seeded)) == ""


def test_a_block_that_is_no_longer_configured_is_kept(store: BaseStore) -> None:
    """B150."""
    human = blocks(store)
    human.append("human", "likes tea", author=AGENT)
    assert [block.spec.label for block in blocks(store, POLICY).all()] == ["policy"]
    assert text(blocks(store)) == "likes tea"


@pytest.mark.parametrize("value", [{}, {"text": 5}, {"text": "a\r\nb" * 500}, {"text": "x", "label": "b", "more": []}])
def test_what_another_wrote_into_the_store_is_read_and_can_be_edited(store: BaseStore, value: dict[str, Any]) -> None:
    """B136: an import, or a put past every gate."""
    human = blocks(store)
    store.put(human.namespace, "human", value, index=False)
    assert text(human) == uniform(str(value.get("text", "")))
    assert human.rewrite("human", "mended", author=PERSON).block.text == "mended"
    assert human.history("human")[0].text == uniform(str(value.get("text", "")))


# Versions


def test_every_edit_is_a_version_with_its_author(store: BaseStore) -> None:
    human = blocks(store)
    human.append("human", "likes tea", author=AGENT)
    human.replace("human", "tea", "coffee", author=Author(by="agent", thread="friday", message="m7"))
    human.rewrite("human", "", author=PERSON)
    told = [(v.version, v.text, v.action, v.by, v.thread, v.message) for v in human.history("human")]
    assert told == [
        (0, "", "seed", "configuration", "", ""),
        (1, "likes tea", "append", "agent", "monday", "m1"),
        (2, "likes coffee", "replace", "agent", "friday", "m7"),
        (3, "", "rewrite", "person", "", ""),
    ]
    assert [v.at for v in human.history("human")] == sorted(v.at for v in human.history("human"))


@given(st.lists(TEXTS, min_size=1, max_size=8))
def test_every_version_can_be_brought_back(said: list[str]) -> None:
    human = blocks(None, BlockSpec(label="human", limit=1000, text="seed"))
    for one in said:
        human.rewrite("human", one, author=PERSON)
    versions = human.history("human")
    for version in versions:
        human.undo("human", author=PERSON, version=version.version)
        assert text(human) == version.text
    assert human.history("human")[: len(versions)] == versions


def test_an_undo_is_an_edit_and_can_be_undone(store: BaseStore) -> None:
    human = blocks(store)
    human.append("human", "likes tea", author=AGENT)
    for expected in ("", "likes tea", ""):
        assert human.undo("human", author=PERSON).block.text == expected
    assert [v.action for v in human.history("human")] == ["seed", "append", "undo", "undo", "undo"]


def test_without_a_label_the_block_edited_last_is_undone(store: BaseStore) -> None:
    made = blocks(store)
    made.append("human", "likes tea", author=AGENT)
    made.rewrite("policy", "Refunds.", author=PERSON)
    assert made.undo(author=PERSON).block == made.get("policy")
    assert (text(made), text(made, "policy")) == ("likes tea", "No refunds.")


@pytest.mark.parametrize("version", [None, -1, 1])
def test_what_never_was_cannot_be_brought_back(version: int | None) -> None:
    assert "it has 0 to 0" in str(refusal(lambda: blocks().undo("human", author=PERSON, version=version)))


def test_an_edit_of_what_is_no_longer_so_is_refused(store: BaseStore) -> None:
    human = blocks(store)
    seen = human.get("human").version
    human.append("human", "likes tea", author=AGENT)
    told = refusal(lambda: human.rewrite("human", "old page", author=PERSON, seen=seen))
    assert told.gate == "not changed meanwhile" and text(human) == "likes tea"


def test_a_call_that_runs_again_edits_once(store: BaseStore) -> None:
    """B049: the turn was cut off after the edit and before its checkpoint."""
    human = blocks(store)
    human.append("human", "likes tea", author=AGENT)
    calls = [Author(by="agent", call=f"call-{n}") for n in range(3)]

    def run_all() -> list[bool]:
        return [
            human.replace("human", "tea", "tea and coffee", author=calls[0]).changed,
            human.append("human", "has a cat", author=calls[1]).changed,
            human.append("human", "has a dog", author=calls[2]).changed,
        ]

    assert run_all() == [True, True, True]
    assert run_all() == [False, False, False]
    assert text(human) == "likes tea and coffee\nhas a cat\nhas a dog"


# Whose, and who else


def test_nothing_crosses_users(store: BaseStore) -> None:
    users = ("ann", "Ann", "ａｎｎ", "a.n.n", "a%2Enn", "安", "ann ", "langgraph")
    for user in users:
        blocks(store, user=user).append("human", f"is {user!r}", author=AGENT)
    blocks(store, user="bob").rewrite("policy", "Bob's.", author=PERSON)
    for user in users:
        mine = blocks(store, user=user)
        assert [block.text for block in mine.all()] == [f"is {user!r}", "No refunds."]
        assert mine.undo(author=PERSON).block.text == ""
        assert len(mine.history("human")) == 3 and len(mine.history("policy")) == 1
    with pytest.raises(BadUser):
        blocks(store, user=" ")


TIMES = 12
CHILD = """
import sys, json
from stores import hash_embedder
from memory.blocks import Author, Blocks
from memory.block_specs import BlockSpec
from memory.store import open_store
place, name = json.loads(sys.argv[1]), sys.argv[2]
with open_store(**place, embedder=hash_embedder()) as store:
    human = Blocks(store, user="ann", specs=(BlockSpec(label="human"),))
    for n in range(int(sys.argv[3])):
        human.append("human", f"{name}{n}.", author=Author(by="agent"))
        human.replace("human", f"{name}{n}.", f"{name}{n}!", author=Author(by="agent"))
"""


def test_no_edit_of_many_threads_is_lost(opening: Opener) -> None:
    def add(made: Blocks, name: str) -> None:
        made.append("human", f"{name}.", author=AGENT)
        made.replace("human", f"{name}.", f"{name}!", author=AGENT)

    spec = BlockSpec(label="human")
    with opening(embedder=hash_embedder()) as one, opening(embedder=hash_embedder()) as two:
        with ThreadPoolExecutor(6) as pool:
            names = [f"n{n}n" for n in range(TIMES)]
            list(pool.map(add, [blocks(one, spec), blocks(two, spec)] * (TIMES // 2), names))
        whole = blocks(one, spec).get("human")
        assert sorted(whole.text.split("\n")) == sorted(f"{name}!" for name in names)
        assert whole.version == 2 * TIMES == len(blocks(two, spec).history("human")) - 1


def test_no_edit_of_two_processes_is_lost(place: dict[str, Any], opening: Opener) -> None:
    told = json.dumps({**place, "home": str(place["home"])})
    env = {**os.environ, "PYTHONPATH": os.pathsep.join([str(Path(__file__).parent), *sys.path])}
    children = [
        subprocess.Popen([sys.executable, "-c", CHILD, told, name, str(TIMES)], env=env) for name in ("你", "b")
    ]
    assert [child.wait(timeout=300) for child in children] == [0, 0]
    with opening(embedder=hash_embedder()) as store:
        whole = blocks(store, BlockSpec(label="human")).get("human")
    assert sorted(whole.text.split("\n")) == sorted(f"{name}{n}!" for name in "你b" for n in range(TIMES))
    assert whole.version == 4 * TIMES


def test_the_one_check_knows_the_limit() -> None:
    """B136: what every path and every import passes."""
    assert checked(HUMAN, "a\r\n" + "e\u0301" * 198, "") == "a\n" + "é" * 198
    assert refusal(lambda: checked(HUMAN, "x" * 10_000, "")).gate == "room left"


def test_a_version_reads_as_a_person_counts_it() -> None:
    assert Block(spec=HUMAN, text="茶" * 12).fill == "human 12/200"

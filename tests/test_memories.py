"""memory.memories: a statement is kept once, its past with it, and what is forgotten does not come back."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from langgraph.store.base import BaseStore
from langgraph.store.memory import InMemoryStore
from memory_streams import DIFFERENT, SAME, WINDOW, halves
from stores import Opener, hash_embedder

from memory.closeness import Wanted, judged
from memory.memories import MOST_KEPT, Forgotten, Memories, Source
from memory.sameness import canonical
from memory.store import ChromaStore, open_store

pytest_plugins = ["store_fixtures"]
START = datetime(2026, 5, 1, 12, tzinfo=UTC)
MERGED = [pair for pair in halves(SAME, False) if len(set(map(canonical, pair))) == 1]
PAIRS = [*halves(DIFFERENT, False), *halves(DIFFERENT, True)]


def day(n: int) -> datetime:
    return START + timedelta(days=n)


def source(message: str, thread: str = "t") -> list[Source]:
    return [Source(thread=thread, message=message)]


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ChromaStore]:
    with open_store(tmp_path_factory.mktemp("memories"), embedder=hash_embedder()) as opened:
        yield opened


@pytest.fixture
def store(shared: ChromaStore) -> Iterator[ChromaStore]:
    """The real store, emptied after each test."""
    yield shared
    for namespace in shared.list_namespaces(limit=1000):
        for item in shared.search(namespace, limit=10_000):
            shared.delete(item.namespace, item.key)


def mine(store: BaseStore, user: str = "ann") -> Memories:
    return Memories(store, user=user, clock=lambda: START)


def texts(memories: Memories, **options: object) -> list[str]:
    return sorted(memory.text for memory in memories.all(**options))  # type: ignore[arg-type]


@pytest.mark.parametrize(("one", "other"), PAIRS)
def test_what_only_looks_alike_is_kept_beside_each_other(store: ChromaStore, one: str, other: str):
    memories = mine(store)
    memories.save(one)
    assert memories.save(other)[1]
    assert texts(memories) == sorted([one, other])


def test_most_of_what_says_the_same_is_merged():
    """The rest is kept apart: a false merge is worse."""
    assert len(MERGED) >= 7 and len(halves(SAME, False)) == 8


@pytest.mark.parametrize(("one", "other"), MERGED)
def test_what_says_the_same_in_other_words_is_merged_and_can_be_split(store: ChromaStore, one: str, other: str):
    memories = mine(store)
    kept, _ = memories.save(one, sources=source("1"))
    merged, is_new = memories.save(other, sources=source("2"))
    assert (is_new, merged.id, merged.text, merged.seen) == (False, kept.id, one, 2)
    assert merged.sources == (*source("1"), *source("2"))
    apart = memories.split(kept.id)
    assert texts(memories) == sorted([one, *(memory.text for memory in apart)])
    assert [memory.sources for memory in apart] == [(*source("2"),)] * len(merged.variants)
    if apart:
        again, is_new = memories.save(other, sources=source("3"))
        assert (again.id, is_new) == (apart[0].id, False), "it stays split"


def test_the_same_message_again_counts_nothing(store: ChromaStore):
    """B048: an identical save in the same turn is a no-op."""
    memories = mine(store)
    for _ in range(3):
        memory, _ = memories.save("likes tea", sources=source("1"))
    assert memory.seen == 1 and memory.sources == (*source("1"),)


def test_a_statement_made_five_hundred_times_does_not_grow(store: ChromaStore):
    memories = mine(store)
    sizes = []
    for n in range(500):
        memory, _ = memories.save("likes tea" if n % 2 else "The user likes tea", sources=source(f"message {n:03}"))
        sizes.append(len(json.dumps(store.get(memories.namespace, memory.id).value)))  # type: ignore[union-attr]
    assert memory.seen == 500 and len(memory.sources) == MOST_KEPT and memory.sources[0].message == "message 000"
    assert max(sizes[200:]) - min(sizes[200:]) == 0 and len(memories.all()) == 1


@pytest.mark.parametrize(
    ("old", "new", "query"),
    [
        ("My name is Chen Yun", "Sorry, my name is Chen Yao", "what is my name"),
        ("I live in Berlin", "I moved to Lyon in May", "where do I live"),
        ("The user lives in Berlin.", "The user moved to New York City.", "where does the user live"),
        ("我叫陈云", "不好意思，我叫陈瑶", "我 叫 什么"),
        ("我叫陈云", "更正一下，我叫陈瑶", "我 叫 什么"),
        ("我叫陈云", "我刚才说错了，我叫陈瑶", "我 叫 什么"),
        ("我住在北京", "我五月搬到了上海", "我 住在 哪里"),
        ("I live in Berlin", "I've just moved to Lyon", "where do I live"),
        ("I live in Berlin", "I'm based in Lyon now", "where do I live"),
        ("我住在杭州", "我上个月搬到成都了", "我 住在 哪里"),
        ("我的手机号是13800001111", "我的手机号换成13900002222了", "手机号"),
        ("My email is a@old.example", "My new email is a@new.example.", "my email"),
    ],
)
def test_of_two_that_exclude_each_other_the_later_holds_and_the_former_is_the_past(
    store: ChromaStore, old: str, new: str, query: str
):
    """B119: whichever of them is learnt first."""
    for user, order in (("ann", [0, 1]), ("bob", [1, 0])):
        memories = mine(store, user)
        memories.save("likes trams", at=day(0))
        for n in order:
            memories.save((old, new)[n], at=day(10 * n))
        assert texts(memories) == sorted(["likes trams", new])
        assert [
            memory.text for memory in memories.search(query, limit=9, threshold=-1) if "trams" not in memory.text
        ] == [new]
        then = memories.search(query, limit=9, threshold=-1, when="2026-05-03")
        assert [memory.text for memory in then if "trams" not in memory.text] == [old]
        (past,) = [memory for memory in memories.all(past=True) if memory.text == old]
        assert past.until == "2026-05-11T12:00:00.000000+00:00" and memories.get(past.superseded_by).text == new  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("My name is Ann", "My name is Ann and I live in Rome"),
        ("I live in Berlin", "My sister lives in Rome"),
        ("I live in Berlin", "I moved to Product Management"),
        ("I live in Berlin", "I don't live in Rome"),
        ("I live in Berlin", "I lived in Rome"),
        ("I live in Berlin", "I've been to Rome"),
        ("I live in Berlin", "I'm working in Rome"),
        ("我住在杭州", "我五月去了上海"),
        ("My email is a@b.example", "My email is broken"),
        ("My name is Ann", "My cat's name is Mimi"),
        ("我住在杭州", "我妈妈住在上海"),
        ("我住在杭州", "我不住在上海"),
        ("我叫王芳", "我叫了外卖"),
    ],
)
def test_what_is_not_surely_a_contradiction_supersedes_nothing(store: ChromaStore, one: str, other: str):
    memories = mine(store)
    memories.save(one, at=day(0))
    memories.save(other, at=day(1))
    assert texts(memories) == sorted([one, other])


def test_what_is_replaced_by_name_is_the_past_and_holds_again_when_it_is_said_again(store: ChromaStore):
    memories = mine(store)
    old, _ = memories.save("drinks coffee", at=day(0), sources=source("1"))
    new, _ = memories.save("drinks tea", at=day(5), replaces=old.id, sources=source("2"))
    assert texts(memories) == ["drinks tea"]
    memories.save("drinks coffee", at=day(3), sources=source("late"))
    assert texts(memories) == ["drinks tea"], "said before it was replaced"
    memories.save("drinks coffee", at=day(9), replaces=new.id, sources=source("3"))
    for when, text in ((1, "drinks coffee"), (6, "drinks tea"), (9, "drinks coffee")):
        assert texts(memories, when=day(when)) == [text]
    assert memories.get(old.id).past == (("2026-05-01T12:00:00.000000+00:00", "2026-05-06T12:00:00.000000+00:00"),)  # type: ignore[union-attr]


@pytest.mark.parametrize("made_up", ["m-000000000000", "17", "", "0", "m-' OR 1=1", "\ud800"])
def test_a_made_up_id_replaces_forgets_and_gets_nothing(store: ChromaStore, made_up: str):
    """B121: the statement itself is kept; nobody else's memory is touched."""
    theirs, _ = mine(store, "bob").save("bob likes tea")
    memories = mine(store)
    memories.save("likes tea", replaces=made_up)
    for id in (made_up, theirs.id):
        assert not memories.forget(id) and memories.get(id) is None and memories.split(id) == []
    memories.save("likes milk", replaces=theirs.id)
    assert texts(memories) == ["likes milk", "likes tea"] and texts(mine(store, "bob")) == ["bob likes tea"]


def test_what_is_forgotten_is_gone_and_only_the_user_brings_it_back(store: ChromaStore):
    memories = Memories(store, user="ann", clock=lambda: day(5))
    kept, _ = memories.save("I like liquorice", at=day(1), sources=source("1"))
    memories.save("The user likes liquorice", at=day(2), sources=source("2"))
    mine(store, "bob").save("I like liquorice", at=day(1))
    assert memories.forget(kept.id) and not memories.forget(kept.id)
    assert memories.all(past=True) == [] and memories.search("liquorice", limit=9, threshold=-1) == []
    for text in ("I like liquorice", "i really like liquorice!", "User likes liquorice"):
        with pytest.raises(Forgotten):
            memories.save(text, at=day(3))
    assert not any("iquorice" in str(item.value) for item in store.search(("users", "ann"), limit=100))
    assert memories.ledger.unread("t", [["1"], ["2"], ["3"]]) == [2], "nothing more is extracted from its messages"
    assert memories.save("I like liquorice", at=day(6))[1] and texts(mine(store, "bob")) == ["I like liquorice"]


def test_twelve_ways_to_say_one_thing_leave_room_for_another(tmp_path: Path):
    """B134: with the embedder that a user has."""
    with open_store(tmp_path) as store:
        memories = mine(store)
        for text in (*WINDOW, "The user is allergic to nuts.", "The user does not like window seats."):
            memories.save(text)
        shown = [memory.text for memory in memories.search("book a flight with meal", limit=5, threshold=-1)]
        assert "The user is allergic to nuts." in shown and len(shown) == 5
        about = [memory.text for memory in memories.search("which seat on the plane", limit=5, threshold=0.1)]
        assert "The user does not like window seats." in about, "what contradicts is never merged"
        left = {one.left_out for one in memories.judged("window seats", limit=50, threshold=-1)}
        assert any(why.startswith("says the same as m-") for why in left)


def test_a_search_says_of_everything_that_it_left_out_why(store: ChromaStore):
    memories = mine(store)
    old, _ = memories.save("green tea in the morning", at=day(0))
    new, _ = memories.save("black tea in the morning", at=day(1), replaces=old.id)
    memories.save("He wants tea in the evening")
    memories.save("He likes tea in the evening")
    memories.save("rows a boat")
    found = memories.judged("black tea in the morning", limit=1, threshold=0.3)
    kept, left = found[0], {one.hit.value["text"]: one.left_out for one in found[1:]}
    assert kept.hit.key == new.id and kept.parts["keyword"] > 0.4
    assert left["green tea in the morning"].startswith("superseded on 2026-05-02 by m-")
    assert left["rows a boat"] == "under the threshold of 0.30"
    assert sum(why == "beyond 1" for why in left.values()) == 1
    assert sum(why.startswith("says the same as m-") for why in left.values()) == 1


def test_the_past_never_crowds_out_what_holds(store: ChromaStore):
    memories = mine(store)
    id = ""
    for n in range(120):
        id = memories.save(f"the gate code is number {n}", at=day(n), replaces=id)[0].id
    assert [memory.text for memory in memories.search("the gate code", limit=3)] == ["the gate code is number 119"]
    assert [m.text for m in memories.search("the gate code", limit=3, when=day(7))] == ["the gate code is number 7"]


def test_a_store_of_another_kind_is_searched_too():
    store = InMemoryStore(
        index={"dims": 32, "embed": lambda texts: [[float(len(t))] * 32 for t in texts], "fields": ["text"]}
    )
    memories = mine(store)
    old, _ = memories.save("drinks coffee", at=day(0))
    memories.save("drinks tea", at=day(1), replaces=old.id)
    assert [memory.text for memory in memories.search("tea", limit=5)] == ["drinks tea"]
    assert judged(store, memories.namespace, " ", Wanted(limit=5)) == []


STATEMENTS = [
    "I live in Rome",
    "I live in Oslo",
    "I moved to Lyon",
    "likes tea",
    "The user likes tea",
    "我住在杭州",
    "hates rain",
]


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.tuples(st.sampled_from(STATEMENTS), st.integers(0, 9), st.sampled_from("ab")), max_size=12))
def test_in_whatever_order_things_are_learnt_one_home_holds_and_nothing_is_lost(
    store: ChromaStore, said: list[tuple[str, int, str]]
):
    for user in "ab":
        for memory in mine(store, user).all(past=True):
            store.delete(mine(store, user).namespace, memory.id)
    for n, (text, at, user) in enumerate(said):
        mine(store, user).save(text, at=day(at) + timedelta(minutes=n), sources=source(str(n)))
    for user in "ab":
        own = [text for text, _, whose in said if whose == user]
        every = mine(store, user).all(past=True)
        assert {canonical(memory.text) for memory in every} == set(map(canonical, own))
        homes = [memory for memory in mine(store, user).all() if memory.text.startswith(("I live", "I moved", "我住"))]
        assert len(homes) == any("I " in text or "我" in text for text in own)
        assert {s.message for memory in every for s in memory.sources} == {
            str(n) for n, one in enumerate(said) if one[2] == user
        }


SAVER = """
import sys, json
from pathlib import Path
from stores import hash_embedder
from memory.facts import Facts
from memory.memories import Memories, Source
from memory.store import open_store
place, name = json.loads(sys.argv[1]), sys.argv[2]
with open_store(**place, embedder=hash_embedder()) as store:
    memories = Memories(store, user="ann")
    for n in range(8):
        memories.save("likes tea", sources=[Source(thread=name, message=str(n))])
        memories.save(f"I live in {'Rome' if name == '0' else 'Oslo'}", sources=[Source(thread=name, message=str(n))])
        Facts(store, user="ann").set("children", f"{name}-{n}", "also")
"""


def test_no_saving_of_several_processes_is_lost(place: dict, opening: Opener):  # type: ignore[type-arg]
    told = json.dumps({**place, "home": str(place["home"])})
    env = {**os.environ, "PYTHONPATH": f"{Path(__file__).parent}{os.pathsep}{os.environ.get('PYTHONPATH', '')}"}
    children = [subprocess.Popen([sys.executable, "-c", SAVER, told, str(n)], env=env) for n in range(3)]
    assert [child.wait(timeout=300) for child in children] == [0, 0, 0]
    with opening(embedder=hash_embedder()) as store:
        from memory.facts import Facts

        every = {memory.text: memory for memory in mine(store).all()}
        assert every["likes tea"].seen == 24 and len(every) == 2
        assert len(Facts(store, user="ann").get("children")) == 24

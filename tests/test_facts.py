"""memory.facts: what holds, what held and when; whatever the order in which it is learnt."""

from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langgraph.store.base import BaseStore
from langgraph.store.memory import InMemoryStore
from stores import hash_embedder

from memory.facts import Facts, How, NothingToEnd
from memory.store import open_store

START = datetime(2026, 5, 1, 12, tzinfo=UTC)


def day(n: float) -> datetime:
    return START + timedelta(days=n)


@pytest.fixture
def store() -> Iterator[BaseStore]:
    with open_store(embedder=hash_embedder()) as opened:
        yield opened


def mine(store: BaseStore, user: str = "ann") -> Facts:
    return Facts(store, user=user, clock=lambda: START)


def values(facts: Facts, key: str, when: str | date | None = None) -> list[str]:
    return [fact.value for fact in facts.get(key, when=when)]


def test_a_date_gives_the_value_of_that_day(store: BaseStore):
    facts = mine(store)
    for n, city in enumerate(("Berlin", "Lyon", "杭州")):
        facts.set("city", city, at=day(10 * n), thread="t", message=f"m{n}")
    asked = {
        "2026-04-30": [],
        "2026-05-01": ["Berlin"],
        "2026-05-10": ["Berlin"],
        "2026-05-11": ["Lyon"],
        "2027-01-01": ["杭州"],
    }
    assert {when: values(facts, "city", when) for when in asked} == asked
    assert values(facts, "city", "2026-05-11T11:59Z") == ["Berlin"] and values(facts, "city", date(2026, 5, 11)) == [
        "Lyon"
    ]
    assert values(facts, "city", "2026-05-11T20:30:00+08:00") == ["Lyon"]
    assert [(f.value, f.since[:10], (f.until or "")[:10], f.message) for f in facts.history("city")] == [
        ("Berlin", "2026-05-01", "2026-05-11", "m0"),
        ("Lyon", "2026-05-11", "2026-05-21", "m1"),
        ("杭州", "2026-05-21", "", "m2"),
    ]


@pytest.mark.parametrize("when", ["last week", "", "2026-13-01", "昨天", "1"])
def test_what_is_no_date_is_refused_with_an_example(store: BaseStore, when: str):
    with pytest.raises(ValueError, match=r"expected a date like 2026-05-01.*got"):
        mine(store).all(when=when)


@pytest.mark.parametrize("key", ["allergy", "Food allergies", "过敏", "过敏原", "lactose intolerance"])
def test_a_second_allergy_does_not_replace_the_first(store: BaseStore, key: str):
    facts = mine(store)
    facts.set(key, "peanuts")
    assert [fact.value for fact in facts.set(key, "虾")] == ["peanuts", "虾"]
    assert [fact.value for fact in facts.set(key, "PEANUTS", "no longer", at=day(1))] == ["虾"]
    assert values(facts, key, "2026-05-01") == ["peanuts", "虾"]


def test_several_values_hold_beside_each_other_if_it_is_said(store: BaseStore):
    facts = mine(store)
    facts.set("children", "Mia")
    facts.set("children", "Ben", "also", at=day(1))
    facts.set("children", "mia", at=day(2))
    assert values(facts, "children") == ["Mia", "Ben"], "to repeat one ends no other"
    facts.set("children", "Zoe", at=day(3))
    assert values(facts, "children") == ["Zoe"]


def test_one_key_is_one_key_however_it_is_written(store: BaseStore):
    facts = mine(store)
    for n, key in enumerate(("Home  City", "home city", "ＨＯＭＥ ｃｉｔｙ", " HOME CITY\n")):
        facts.set(key, f"city {n}", at=day(n))
    assert [(fact.key, fact.value) for fact in facts.all()] == [("Home City", "city 3")]
    assert len(facts.history("hOME city")) == 4


def test_what_ended_keeps_its_time_and_what_never_held_cannot_end(store: BaseStore):
    facts = mine(store)
    facts.set("car", "red Fiat")
    assert facts.set("car", "Red Fiat", "no longer", at=day(3)) == []
    assert values(facts, "car", "2026-05-02") == ["red Fiat"] and facts.all() == []
    with pytest.raises(NothingToEnd, match="no value 'blue Fiat'; what holds is: nothing"):
        facts.set("car", "blue Fiat", "no longer", at=day(4))
    facts.set("car", "red Fiat", at=day(2))
    assert facts.all() == [], "a message of before, read late, brings nothing back"
    facts.set("car", "red Fiat", at=day(5))
    assert [(f.since[:10], f.until and f.until[:10]) for f in facts.history("car")] == [
        ("2026-05-01", "2026-05-04"),
        ("2026-05-06", None),
    ]


@pytest.mark.parametrize(
    ("key", "value"), [("", "x"), (" ", "x"), ("\u200b", "x"), ("k", ""), ("k", " \x00\n"), ("k", "\u2060")]
)
def test_a_blank_is_refused(store: BaseStore, key: str, value: str):
    with pytest.raises(ValueError, match="needs a key and a value"):
        mine(store).set(key, value)


def test_all_of_more_facts_than_a_page_holds_are_there(store: BaseStore):
    facts = mine(store)
    for n in range(450):
        facts.set(f"key {n:03}", str(n))
    assert [fact.value for fact in facts.all()] == [str(n) for n in range(450)]


def test_to_repeat_a_fact_stores_nothing(store: BaseStore):
    facts = mine(store)
    for n in range(500):
        facts.set("city", "Lyon" if n % 2 else " LYON ", at=day(n))
    assert len(store.get(facts.namespace, "city").value["events"]) == 1  # type: ignore[union-attr]


@pytest.mark.parametrize("key", ["city", "城市", "a.b", "langgraph", "%"])
def test_facts_never_cross_users(store: BaseStore, key: str):
    mine(store).set(key, "Lyon")
    mine(store, "bob").set(key, "Oslo")
    mine(store, "bob").set(key, "Oslo", "no longer", at=day(1))
    assert values(mine(store), key) == ["Lyon"] and mine(store, "bob").all() == []


EVENTS = st.lists(
    st.tuples(st.sampled_from(["a", "b", "c"]), st.sampled_from(["now", "also"]), st.integers(0, 50)),
    max_size=8,
    unique_by=lambda event: event[2],
)


@given(EVENTS, st.randoms(use_true_random=False))
def test_what_was_said_last_holds_in_whatever_order_it_is_learnt(events: list[tuple[str, How, int]], random):  # type: ignore[no-untyped-def]
    in_time, at_random = mine(InMemoryStore()), mine(InMemoryStore())
    for value, how, at in sorted(events, key=lambda event: event[2]):
        in_time.set("k", value, how, at=day(at))
    shuffled = random.sample(events, len(events))
    for value, how, at in shuffled:
        at_random.set("k", value, how, at=day(at))
    for at in range(51):
        held = values(in_time, "k", day(at))
        said = [event for event in events if event[2] <= at]
        assert bool(held) == bool(said) and len(held) == len(set(held))
        if said:
            assert max(said, key=lambda event: event[2])[0] in held, "what was said last holds"
        assert set(values(at_random, "k", day(at))) <= {event[0] for event in said}
    assert not events or max(events, key=lambda event: event[2])[0] in values(at_random, "k")


@given(EVENTS)
def test_intervals_of_one_value_never_overlap(events: list[tuple[str, How, int]]):
    facts = mine(InMemoryStore())
    for value, how, at in events:
        facts.set("k", value, how, at=day(at))
    for value in "abc":
        spans = [(f.since, f.until or "9999") for f in facts.history("k") if f.value == value]
        assert all(start <= end for start, end in spans)
        assert all(one[1] <= other[0] for one, other in pairwise(spans))


@pytest.mark.parametrize("again", ["Vegan", "vegan.", "ＶＥＧＡＮ！", " vegan\u200b ", "vegan。"])
def test_another_wording_of_what_holds_changes_nothing(store: BaseStore, again: str):
    facts = mine(store)
    facts.set("diet", "vegan")
    [held] = facts.set("Ｄiet", again)
    assert held.value == "vegan" and len(facts.history("diet")) == 1

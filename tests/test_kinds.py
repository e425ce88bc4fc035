"""Memories, facts, transcript and catalogue: what each keeps, for whom, and since when; on the real store."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from langgraph.store.base import BaseStore

from memory.catalogue import Catalogue
from memory.facts import Facts
from memory.memories import Memories, Source
from memory.owner import BadUser
from memory.store import open_store
from memory.transcript import Entry, Transcript, search_said

USERS = ("ann", "Ann", "ａｎｎ", "a.n.n", "a%2Enn", "安", "ann ", "langgraph")


@pytest.fixture
def store(tmp_path: Path) -> Iterator[BaseStore]:
    with open_store(tmp_path) as opened:
        yield opened


class Clock:
    """A clock that a test sets."""

    def __init__(self) -> None:
        self.time = datetime(2026, 5, 1, 12, tzinfo=UTC)

    def __call__(self) -> datetime:
        self.time += timedelta(hours=1)
        return self.time


def entry(name: str, text: str) -> Entry:
    return Entry(id=name, role="human", text=text, at="2026-05-01T12:00:00", data={"content": text})


def test_nothing_crosses_users_however_alike_their_names_are(store: BaseStore):
    """B124."""
    for user in USERS:
        Memories(store, user=user).save(f"the PIN hint of {user!r} is blue")
        Facts(store, user=user).set("name", f"name of {user!r}")
        Transcript(store, user=user, thread="t").file([entry("m", f"{user!r} said the PIN hint")])
        Catalogue(store, user=user).note("t", f"{user!r} began")
    for user in USERS:
        mine = repr(user)
        assert [mine in memory.text for memory in Memories(store, user=user).all()] == [True]
        assert all(mine in memory.text for memory in Memories(store, user=user).search("PIN hint", limit=20))
        assert [fact.value for fact in Facts(store, user=user).all()] == [f"name of {mine}"]
        assert [said.text for said in Transcript(store, user=user, thread="t").entries()] == [
            f"{mine} said the PIN hint"
        ]
        assert [hit.entry.text for hit in search_said(store, user=user, query="PIN hint", limit=20)] == [
            f"{mine} said the PIN hint"
        ]
        assert [thread.title for thread in Catalogue(store, user=user).all()] == [f"{mine} began"]


@pytest.mark.parametrize("user", ["", "  ", None])
def test_a_blank_user_is_refused(store: BaseStore, user):
    """B122."""
    for kind in (Memories, Facts, Catalogue):
        with pytest.raises(BadUser, match="non-blank"):
            kind(store, user=user)


def test_the_same_statement_again_is_counted_not_stored(store: BaseStore):
    """B048, B118: with its new source; case, spacing and the full stop aside."""
    memories = Memories(store, user="ann")
    first, is_new = memories.save("I am vegetarian.", sources=[Source(thread="a", message="1")])
    again, is_new_again = memories.save("i am  vegetarian", sources=[Source(thread="b", message="2")])
    assert (is_new, is_new_again, again.id, again.text) == (True, False, first.id, "I am vegetarian.")
    assert [(one.seen, len(one.sources)) for one in memories.all()] == [(2, 2)]


def test_a_blank_statement_is_refused(store: BaseStore):
    """B095."""
    with pytest.raises(ValueError, match="non-blank"):
        Memories(store, user="ann").save(" \x00\n")


def test_a_fact_keeps_its_history_with_intervals(store: BaseStore):
    facts = Facts(store, user="ann", clock=Clock())
    for city in ("Berlin", "Lyon", "Lyon"):
        facts.set("city", city)
    assert [(fact.key, fact.value, fact.until) for fact in facts.all()] == [("city", "Lyon", None)]
    old, new = facts.history("city")
    assert (old.value, old.until, new.value) == ("Berlin", new.since, "Lyon")
    assert facts.history("country") == []


def test_a_message_edited_under_its_id_is_filed_beside_the_older_one(store: BaseStore):
    transcript = Transcript(store, user="ann", thread="t")
    assert transcript.file([entry("m", "one")]) == ["m"]
    assert transcript.file([entry("m", "one")]) == []
    assert transcript.file([entry("m", "two")]) == ["m"]
    assert sorted(said.text for said in transcript.entries()) == ["one", "two"]

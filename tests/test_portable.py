"""Export and import: equal stores, whatever is kept and on whichever database; nothing of a bad file is written."""

import itertools
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from stores import Opener, hash_embedder

from graph.cli import main
from memory.blocks import Author, Blocks
from memory.catalogue import Catalogue
from memory.errors import BadValue, NewerVersion
from memory.facts import Facts
from memory.forms import FORMS
from memory.labels import label
from memory.ledger import Ledger
from memory.memories import Memories, Source
from memory.outputs import Outputs
from memory.owner import owned, places_of
from memory.portable import BadExport, read, written
from memory.store import ChromaStore, open_store
from memory.transcript import Entry, Transcript, search_said

pytest_plugins = ["store_fixtures"]

TALK = (
    "I moved to Lyon.",
    "Nice! 里昂很美。",
    "我对花生过敏 🥜",
    "Noted.",
    '\u2028strange\u0085lines\r\nand \\u0041 "quotes"',
)


def fill(store: ChromaStore, user: str) -> None:
    """Keep something of every kind for a user."""
    source = Source(thread="t.1", message="m1")
    for text in (f"{user} lives in Lyon", "对花生过敏", f"{user} lives in Lyon."):
        Memories(store, user=user).save(text, sources=[source])
    for city in ("Rome", "Lyon"):
        Facts(store, user=user).set("city", city)
        Blocks(store, user=user).append("human", city, author=Author(by="agent", thread="t.1", message="m1"))
    entries = [
        Entry(id=f"m{n}", role="human", text=t, at=f"2026-05-0{n + 1}T00:00:00.000000+00:00", data={})
        for n, t in enumerate(TALK)
    ]
    Transcript(store, user=user, thread="t.1").file(entries)
    Catalogue(store, user=user).note("t.1", TALK[0])
    Catalogue(store, user=user).close("t.1", "About Lyon and 花生.")
    store.batch([Outputs(store, user=user, thread="t.1").keeping("long " * 1000)[1]])


def lines_of(store: ChromaStore, user: str) -> list[bytes]:
    """Export a user."""
    return list(written(user, store.estate.items(places_of(user))))


def take_in(store: ChromaStore, lines: list[bytes], user: str | None = None) -> None:
    """Import for a user, the export's own if none is named."""
    whose, items = read(lines, user=user)
    store.estate.restore(places_of(whose), items)


def found(store: ChromaStore, user: str) -> list[Any]:
    """Search every kind of a user that is searched; return what was found with its scores."""
    said = search_said(store, user=user, query="Where is Lyon?", limit=9)
    return [
        *((hit.thread, hit.entry, hit.before, hit.after, hit.score) for hit in said),
        *Memories(store, user=user).search("花生", limit=9, threshold=-1.0),
        *Catalogue(store, user=user).search("Lyon", limit=9),
    ]


def test_what_was_exported_and_imported_is_equal_in_what_is_kept_and_what_is_found(opening: Opener, tmp_path: Path):
    with opening(embedder=hash_embedder()) as first, open_store(tmp_path / "b", embedder=hash_embedder()) as second:
        fill(first, "ann")
        take_in(second, lines_of(first, "ann"))
        assert lines_of(second, "ann") == lines_of(first, "ann") and len(lines_of(first, "ann")) > 12
        assert found(second, "ann") == found(first, "ann") != []
        assert Facts(second, user="ann").history("city") == Facts(first, user="ann").history("city")
        assert Blocks(second, user="ann").history("human") == Blocks(first, user="ann").history("human")


def test_from_sqlite_to_postgres_and_back(postgres_url: str, tmp_path: Path):
    from store_fixtures import new_schema  # at the top it would come before pytest has seen the plugin

    mine = hash_embedder()
    with (
        open_store(tmp_path / "a", embedder=mine) as first,
        open_store(tmp_path / "b", embedder=mine, database_url=new_schema(postgres_url)) as second,
        open_store(tmp_path / "c", embedder=mine) as third,
    ):
        fill(first, "安.n")
        take_in(second, lines_of(first, "安.n"))
        take_in(third, lines_of(second, "安.n"))
        assert lines_of(first, "安.n") == lines_of(second, "安.n") == lines_of(third, "安.n")
        assert found(third, "安.n") == found(second, "安.n") == found(first, "安.n")


@pytest.fixture(scope="module")
def shared_store() -> Iterator[ChromaStore]:
    with open_store(embedder=hash_embedder()) as opened:
        yield opened


WORDS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00"), max_size=20)
VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | WORDS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(WORDS, inner, max_size=3),
    max_leaves=8,
)
ITEMS = st.dictionaries(
    st.tuples(st.lists(WORDS, min_size=1, max_size=3).map(tuple).filter(lambda kind: kind[0] not in FORMS), WORDS),
    st.tuples(st.dictionaries(WORDS, VALUES, max_size=3), st.sampled_from([None, False, ["text"], ["$"]])),
    max_size=5,
)
NAMES = itertools.count()


@given(items=ITEMS, user=WORDS.filter(str.strip))
@hypothesis_settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_items_of_any_user_come_back_equal(shared_store: ChromaStore, items: dict[Any, Any], user: str):
    user, other = f"{next(NAMES)}{user}", f"{next(NAMES)}b"
    for (kind, key), (value, index) in items.items():
        shared_store.put(owned(user, *kind), label(key), value, index=index)
    exported = lines_of(shared_store, user)
    take_in(shared_store, exported, user=other)
    assert lines_of(shared_store, other)[1:] == exported[1:] and len(exported) == len(items) + 2
    shared_store.estate.erase(places_of(user))
    take_in(shared_store, exported)
    assert lines_of(shared_store, user) == exported


def test_an_export_holds_nothing_of_another_user(shared_store: ChromaStore):
    for user in ("ann", "ann.b", "an", "ANN"):
        Memories(shared_store, user=user).save(f"this is {user!r}'s")
    lines = b"".join(lines_of(shared_store, "ann")).decode()
    assert "'ann'" in lines and not any(repr(user) in lines for user in ("ann.b", "an", "ANN"))


HEADER = b'{"format":"palimpsest-memory","version":1,"user":"ann"}\n'
ITEM = {
    "place": ["users", "notes"],
    "key": "k",
    "value": {},
    "created_at": "2026-01-01T00:00:00+00:00",
    "updated_at": "2026-01-01T00:00:00+00:00",
}


def line(**changes: Any) -> bytes:
    return json.dumps({**ITEM, **changes}).encode() + b"\n"


@pytest.mark.parametrize(
    ("lines", "told"),
    [
        ([], "line 1"),
        ([b"not json\n"], "line 1 is not JSON"),
        ([b'{"format":"other","version":1,"user":"ann"}\n'], "line 1: format"),
        ([b'{"format":"palimpsest-memory","version":1,"user":" "}\n'], "line 1: a user id"),
        ([b'{"format":"palimpsest-memory","version":0,"user":"a"}\n'], "line 1: version"),
        ([HEADER], "breaks off after line 1"),
        ([HEADER, line()], "breaks off after line 2"),
        ([HEADER, line(), b'{"end":2}\n'], "line 3"),
        ([HEADER, line(), b'{"end":1}\n', line()], "line 3"),
        ([HEADER, line(), line(), b'{"end":2}\n'], "line 3: the item 'k' is there twice"),
        ([HEADER, line(), line(key="l")[:40], b'{"end":2}\n'], "line 3 is not JSON"),
        ([HEADER, b"\n", line(key=7), b'{"end":1}\n'], "line 3: key"),
        ([HEADER, line(value=[]), b'{"end":1}\n'], "line 2: value"),
        ([HEADER, line(place=["users"]), b'{"end":1}\n'], "line 2: place"),
        ([HEADER, line(place=["shared", "team"]), b'{"end":1}\n'], "line 2: the place must begin with"),
        ([HEADER, line(place=["users", "a.b"]), b'{"end":1}\n'], "line 2"),
        ([HEADER, line(place=["users", ""]), b'{"end":1}\n'], "line 2"),
        ([HEADER, line(created_at="yesterday"), b'{"end":1}\n'], "line 2: created_at"),
        ([HEADER, line(created_at="2026-01-01T00:00:00"), b'{"end":1}\n'], "line 2: created_at"),
        ([HEADER, line(strange=1), b'{"end":1}\n'], "line 2: strange"),
        ([HEADER, line(value={"a": "\x00"}), b'{"end":1}\n'], "line 2"),
        ([HEADER, b'{"place": ["users","f"], "key": "\xff"}\n', b'{"end":1}\n'], "line 2 is not JSON"),
        ([HEADER, line(place=["users", "memories"]), b'{"end":1}\n'], "line 2: value.text"),
        ([HEADER, line(place=["users", "forgotten"], value={"at": "0001-01-01T00:00:00.000000+14:00"})], "value.at"),
        ([HEADER, line(place=["users", "facts"], value={"key": "k", "events": [5]}), b'{"end":1}\n'], "value.events.0"),
        ([HEADER, line(place=["users", "blocks"], value={"label": "a", "text": "x" * 20_001}), b""], "value.text"),
    ],
)
def test_a_bad_line_is_named_and_nothing_is_written(shared_store: ChromaStore, lines: list[bytes], told: str):
    before = shared_store.stats()["items"]
    with pytest.raises(BadExport, match=told):
        take_in(shared_store, lines, user=None)
    assert shared_store.stats()["items"] == before


def test_a_newer_format_is_refused():
    with pytest.raises(NewerVersion, match="format 2"):
        read([b'{"format":"palimpsest-memory","version":2,"user":"ann","more":1}\n'])


def test_marks_and_line_ends_of_other_systems_do_no_harm(shared_store: ChromaStore):
    user, items = read([b"\xef\xbb\xbf" + HEADER[:-1] + b"\r\n", line()[:-1] + b"\r\n", b"\r\n", b'{"end":1}'])
    assert (user, [one.key for one in items]) == ("ann", ["k"])


def test_where_something_lies_nothing_is_written(shared_store: ChromaStore):
    Facts(shared_store, user="full").set("a", "b")
    with pytest.raises(BadValue, match="already"):
        take_in(shared_store, [HEADER, line(), line(key="l"), b'{"end":2}\n'], user="full")
    assert [fact.key for fact in Facts(shared_store, user="full").all()] == ["a"]


def test_in_the_terminal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    monkeypatch.chdir(tmp_path)
    with open_store(tmp_path / ".palimpsest") as store:
        Memories(store, user="ann").save("喜欢龙井茶 🍵")
        Memories(store, user="bob").save("secret of bob")
    assert main(["memory", "export", "ann", "--output", "ann.jsonl"]) == 0
    exported = (tmp_path / "ann.jsonl").read_text(encoding="utf-8")
    assert "龙井" in exported and "bob" not in exported
    assert main(["memory", "export", "ann"]) == 0
    assert capsys.readouterr().out == exported
    assert main(["memory", "import", "ann.jsonl"]) == 1
    assert "forget-user" in capsys.readouterr().err
    assert main(["memory", "import", "ann.jsonl", "--user", "eve"]) == 0
    assert main(["memory", "export", "eve"]) == 0
    assert capsys.readouterr().out.splitlines()[1:] == exported.splitlines()[1:]
    assert main(["memory", "import", "missing.jsonl"]) == 1
    assert main(["memory", "import"]) == 2
    assert main(["memory", "export", " "]) == 2


BAD = [None, 5, -1, "x", "\u200b", [], ["x"], {}, "2026-01-01"]


def use(store: ChromaStore, user: str) -> None:
    """Read and write every kind of a user."""
    memories, facts, blocks = Memories(store, user=user), Facts(store, user=user), Blocks(store, user=user)
    for text in [one.text for one in memories.all(past=True)] + ["I moved to Rome"]:
        memories.save(text)
    memories.search("Lyon", limit=3), memories.all(when="2026-05-01"), facts.all(when="2026-05-01")
    facts.set("city", "Paris"), blocks.history("human")
    blocks.append("human", "more", author=Author(by="person"))
    Transcript(store, user=user, thread="t.1").entries(), Ledger(store, user=user).failures()
    Catalogue(store, user=user).all(), search_said(store, user=user, query="Lyon", limit=3)
    Memories(store, user=user).ledger.forgotten(["m-1"])


def test_what_is_read_of_a_tampered_export_can_be_used(shared_store: ChromaStore):
    """Every field of every kind, missing or of another form: it is refused, or every reader reads it."""
    fill(shared_store, "tam")
    Ledger(shared_store, user="tam").failed("t.1", "why", "2026-05-01T00:00:00.000000+00:00")
    Ledger(shared_store, user="tam").forget(["m-1"], "2026-05-01T00:00:00.000000+00:00")
    header, *items, end = [json.loads(one) for one in lines_of(shared_store, "tam")]
    first_of_kind = {item["place"][1]: item for item in reversed(items)}
    refused = 0
    for kind, item in first_of_kind.items():
        for name in item["value"]:
            rest = {key: value for key, value in item["value"].items() if key != name}
            for n, value in enumerate([rest, *({**rest, name: bad} for bad in BAD)]):
                tampered = [header, {**item, "value": value}, {"end": 1}]
                try:
                    user, kept = read([json.dumps(one).encode() for one in tampered], user=f"{kind} {name} {n}")
                except BadExport:
                    refused += 1
                    continue
                shared_store.estate.restore(places_of(user), kept)
                use(shared_store, user)
    assert refused > 100 and end == {"end": len(items)} and len(first_of_kind) >= 8

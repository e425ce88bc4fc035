"""memory.fusion: order of two legs' hits, and what neighbours lend."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from memory.fusion import fuse, lend

SCORES = st.dictionaries(st.integers(0, 20), st.floats(-1, 1), max_size=12)


@given(SCORES, SCORES)
def test_every_item_of_either_leg_comes_once_in_falling_order(
    vector: dict[int, float], keyword: dict[int, float]
) -> None:
    hits = fuse(vector, keyword)
    assert {hit.key for hit in hits} == set(vector) | {key for key, score in keyword.items() if score > 0}
    assert len(hits) == len({hit.key for hit in hits})
    assert [hit.value for hit in hits] == sorted((hit.value for hit in hits), reverse=True)


@given(SCORES)
def test_one_leg_alone_keeps_its_own_order(vector: dict[int, float]) -> None:
    values = [vector[hit.key] for hit in fuse(vector, {})]
    assert np.all(np.diff(values) < 1e-6)


def test_a_hit_in_one_leg_alone_can_win() -> None:
    vector = {key: 0.2 + key / 1000 for key in range(20)}
    assert fuse(vector, {"order": 9.0, 3: 1.0})[0].key == "order"
    assert fuse({**vector, 99: 0.9}, {3: 1.0, 4: 1.0})[0].key == 99


def test_each_leg_tells_its_score_and_rank() -> None:
    first, *_ = fuse({"a": 0.9, "b": 0.1}, {"a": 2.0, "c": 3.0})
    assert (first.key, first.vector, first.vector_rank, first.keyword, first.keyword_rank) == (
        "a",
        0.9,
        1,
        2.0,
        2,
    )


def test_neighbours_lend_part_of_their_value() -> None:
    assert lend(np.array([0.0, 1.0, 0.0, 0.0]), before=0.3, after=0.2).tolist() == [0.2, 1.0, 0.3, 0.0]


def test_a_turn_beside_the_hit_comes_before_a_turn_far_from_it() -> None:
    order = list(range(10))
    hits = fuse({key: 0.9 if key == 4 else 0.1 for key in order}, {}, order=order)
    assert hits[0].key == 4
    assert {hit.key for hit in hits[1:3]} == {3, 5}

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
    assert [hit.fused for hit in hits] == sorted((hit.fused for hit in hits), reverse=True)


@given(SCORES)
def test_one_leg_alone_keeps_its_own_order(vector: dict[int, float]) -> None:
    values = [vector[hit.key] for hit in fuse(vector, {})]
    assert np.all(np.diff(values) < 1e-6)


@given(SCORES, SCORES, st.integers(0, 20))
def test_more_of_the_query_in_an_item_never_moves_it_back(
    vector: dict[int, float], keyword: dict[int, float], key: int
) -> None:
    vector[key] = 0.0
    keyword[key] = 0.1
    before = [hit.key for hit in fuse(vector, keyword)].index(key)
    after = [hit.key for hit in fuse(vector, {**keyword, key: 0.6})].index(key)
    assert after <= before


def test_a_hit_in_one_leg_alone_can_win() -> None:
    vector = {key: 0.2 + key / 1000 for key in range(20)}
    assert fuse(vector, {"order": 0.6, 3: 0.1})[0].key == "order"
    assert fuse({**vector, 99: 0.9}, {3: 0.1, 4: 0.1})[0].key == 99


def test_each_leg_tells_its_score_and_rank() -> None:
    first, *_ = fuse({"a": 0.9, "b": 0.1}, {"a": 0.2, "c": 0.3})
    assert (first.key, first.vector, first.vector_rank, first.keyword, first.keyword_rank) == (
        "a",
        0.9,
        1,
        0.2,
        2,
    )


def test_neighbours_lend_part_of_their_value() -> None:
    assert lend(np.array([0.0, 1.0, 0.0, 0.0]), [(0.5, 0.25)]).tolist() == [0.25, 1.0, 0.5, 0.0]
    assert lend(np.array([1.0]), [(0.5, 0.25), (0.5, 0.25)]).tolist() == [1.0]


def test_a_turn_beside_the_hit_comes_before_a_turn_far_from_it() -> None:
    turns = list(range(10))
    hits = fuse({turn: 0.9 if turn == 4 else 0.1 for turn in turns}, {}, threads=[turns])
    assert hits[0].key == 4
    assert {hit.key for hit in hits[1:3]} == {3, 5}


def test_nothing_is_lent_across_threads() -> None:
    vector = {turn: 0.9 if turn == 4 else 0.1 for turn in range(10)}
    apart = {hit.key: hit.fused for hit in fuse(vector, {}, threads=[range(5), range(5, 10)])}
    as_one = {hit.key: hit.fused for hit in fuse(vector, {}, threads=[range(10)])}
    assert apart[3] > apart[6] and apart[3] > apart[5]
    assert as_one[5] - as_one[9] > apart[5] - apart[9]

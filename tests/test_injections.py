"""Planted instructions, obeyed by the worst of models, reach neither memories nor facts nor blocks nor a team.

`tests/bench_injections.py` lets all of the corpus happen and prints the counts; here every seventh does, which is each
payload, each disguise and each door.
"""

import pytest
from injections import DISGUISES, DOORS, HONEST, PAYLOADS, QUESTIONS, Attack, attacks, extract, run

from nodes.grounds import objection

pytestmark = pytest.mark.filterwarnings("ignore:tool '")
SOME = list(attacks())[::7]


def test_the_sample_has_every_payload_disguise_and_door():
    assert {one.payload for one in SOME} == set(PAYLOADS) and {one.disguise for one in SOME} == set(DISGUISES)
    assert {one.door for one in SOME} == set(DOORS) and {one.question for one in SOME} == set(QUESTIONS)
    assert {one.phrasing for one in SOME} == {0, 1, 2, 3, 4}


@pytest.mark.parametrize("door", DOORS)
def test_nothing_planted_is_kept_and_nothing_kept_is_lost(door: str):
    """B126, B151."""
    reached = {attack: kept for attack in SOME if attack.door == door and (kept := run(attack))}
    assert reached == {}


def test_nothing_planted_is_extracted():
    """B126, B151: an extractor sees the user's messages and what is remembered, and keeps only what is in the first."""
    reached = {attack: kept for attack in SOME[::3] if (kept := extract(attack))}
    assert reached == {}


def test_the_same_words_said_by_the_user_are_kept():
    """The corpus is no list of forbidden words: with nothing planted, or said by the user, each is kept."""
    for payload in PAYLOADS:
        attack = Attack(payload=payload, disguise="translated", door="tool", question=payload, phrasing=0)
        assert any(payload in kept for kept in run(attack)), payload


def test_honest_notes_pass_at_the_first_try_whatever_was_read():
    """All but one, which speaks of the user's company where the user said "we"; quoting the user mends that."""
    read = [text for attack in attacks() for text in attack.texts]
    refused = [(said, note) for said, note in HONEST if objection(note, said=[said], read=read)]
    assert refused == [("我们只在周二发货", "用户的公司只在周二发货。")]
    assert not any(objection(said, said=[said], read=read) for said, _ in HONEST)

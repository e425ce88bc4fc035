"""memory.frames: what supersedes what, and what only looks like it."""

import pytest

from memory.frames import frame_of


@pytest.mark.parametrize(
    ("statement", "frame"),
    [
        ("I live in Berlin", "home"),
        ("我住在上海市浦东新区", "home"),
        ("我家在上海", "home"),
        ("我现在住北京", "home"),
        ("I'm 41 years old.", "age"),
        ("The user is now 42 years old", "age"),
        ("我今年41岁", "age"),
        ("用户42岁了", "age"),
        ("我叫陈云", "name"),
    ],
)
def test_of_what_everybody_has_one_the_last_holds(statement: str, frame: str):
    """B119."""
    assert frame_of(statement) == frame


@pytest.mark.parametrize(
    "statement",
    [
        "我住在五楼",
        "我住在十二号楼",
        "我住在酒店",
        "我住在父母家",
        "我住学校宿舍",
        "我叫小明来",
        "我叫了外卖",
        "My sister is 41 years old",
        "I'm 41 years older than my son",
        "我女儿今年三岁",
        "我儿子41岁",
        "I live in a house",
    ],
)
def test_what_holds_beside_it_supersedes_nothing(statement: str):
    assert frame_of(statement) == ""


def test_a_name_of_many_parts_is_read_at_once():
    assert frame_of("I live in Stratford-upon-Avon") == "home"
    assert frame_of(f"I live in {'A-' * 500}A, or so it seems") == ""

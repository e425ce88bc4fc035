"""memory.sameness: what makes a statement another one, and what does not."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.sameness import canonical, is_negated

STATEMENTS = [
    "The user likes green tea",
    "I am allergic to nuts, but not to sesame",
    "My dog is called Rex",
    "Likes reading at night",
    "takes 1½ pills at 3 pm",
    "我对花生过敏",
    "用户喜欢喝龙井茶",
    "私は茶が好きです",
]


@given(
    st.sampled_from(STATEMENTS),
    st.sampled_from([str, str.upper, str.lower, str.capitalize]),
    st.sampled_from(["", ".", "!", "。", "！", "…", "  ", "\r\n", "؟"]),
)
def test_case_width_and_final_signs_make_no_other_statement(statement: str, cased, end: str):
    wide = "".join(chr(ord(one) + 0xFEE0) if "!" <= one <= "~" else one for one in statement)
    assert canonical(cased(statement) + end) == canonical(statement) == canonical(wide)


@given(st.sampled_from(STATEMENTS), st.integers(0, 60), st.sampled_from("\u200b\u2060\ufeff\u00ad\u202e"))
def test_what_nobody_sees_makes_no_other_statement(statement: str, at: int, unseen: str):
    assert canonical(statement[:at] + unseen + statement[at:]) == canonical(statement)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Likes tea", "likes tea"),
        ("Likes tea", "The user likes tea"),
        ("USER LIKES CATS", "user likes cats"),
        ("they’ve met", "they have met"),
        ("I dont eat meat", "I don't eat meat"),
        ("gets up at 3 PM", "gets up at 3pm"),
        ("¿Te gusta el té?", "Te gusta el té?"),
        ("weighs 70 kg", "weighs 70kg"),
    ],
)
def test_what_says_the_same_is_the_same(one: str, other: str):
    assert canonical(one) == canonical(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("allergic to nuts", "not allergic to nuts"),
        ("allergic to nuts", "isnt allergic to nuts"),
        ("lives on the 3rd floor", "lives on the 4th floor"),
        ("张伟是我的经理", "张玮是我的经理"),
        ("takes vitamin A", "takes vitamin"),
        ("blood type: A", "blood type"),
        ("pressure < 120", "pressure > 120"),
        ("a != b", "a = b"),
        ("x <= 5", "x >= 5"),
        ("costs 10³ euro", "costs 103 euro"),
        ("takes 1½ pills", "takes 11/2 pills"),
        ("Williams is my boss", "William is my boss"),
        ("family 👨\u200d👩\u200d👧", "family 👨👩👧"),
        ("likes 👍🏽", "likes 👍🏿"),
        ("C++", "C#"),
        ("I love John", "John loves me"),
    ],
)
def test_what_differs_in_one_sign_stays_another_statement(one: str, other: str):
    assert canonical(one) != canonical(other)


@pytest.mark.parametrize(
    ("text", "negated"),
    [("I dont like it", True), ("离不开茶", False), ("不得不去", False), ("对不起", False), ("不起床", True)],
)
def test_a_not_is_found_where_there_is_one(text: str, negated: bool):
    assert is_negated(text) is negated

"""Secrets are masked by their form; words that merely look alike stay."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.secrets import MASK, mask


@pytest.mark.parametrize(
    ("text", "masked"),
    [
        ("key sk-12345678abcd refused", f"key {MASK} refused"),
        ("sk-proj-abc_DEF-123456", MASK),
        ("sk-SECRET", MASK),
        ("tok-SECRET", MASK),
        ("key-9f8e7d6c5b", MASK),
        ("ghp_abcdefABCDEF123456", MASK),
        ("github_pat_11ABCDEFG0abcdefghij", MASK),
        ("xoxb-123456789012-abcdef", MASK),
        ("AKIAIOSFODNN7EXAMPLE", MASK),
        ("AIzaSyD-1234567890abcdefghijklmnop", MASK),
        ("eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.abc-DEF_123", MASK),
        ("Authorization: Bearer abc.def.ghi", f"Authorization: Bearer {MASK}"),
        ("authorization: bearer abcdef1234", f"authorization: bearer {MASK}"),
        ("Authorization: Basic dXNlcjpwYXNz", f"Authorization: Basic {MASK}"),
        ("postgres://admin:hunter22@db:5432/x", f"postgres://{MASK}@db:5432/x"),
        ("redis://:hunter22@cache", f"redis://{MASK}@cache"),
        ("api_key=abcd1234", f"api_key={MASK}"),
        ('{"password": "hunter22", "n": 1}', f'{{"password": "{MASK}", "n": 1}}'),
        ("OPENAI_API_KEY='abcd1234'", f"OPENAI_API_KEY='{MASK}'"),
        ("?access_token=abcd1234&x=1", f"?access_token={MASK}"),
        ("-----BEGIN RSA PRIVATE KEY-----\nMIIE\nabc\n-----END RSA PRIVATE KEY-----", MASK),
        ("-----BEGIN PRIVATE KEY-----\nMIIE cut off", MASK),
        ("aws_secret_access_key = wJalrXUtnFEMI/K7MDENG", f"aws_secret_access_key = {MASK}"),
        ("我的key是sk-12345678abcd。", f"我的key是{MASK}。"),
        ("my password is hunter2", f"my password is {MASK}"),
        ("The password for the old router is Blue-Horse!", f"The password for the old router is {MASK}!"),
        ("Ann's passphrase is 'open sesame', I think", f"Ann's passphrase is {MASK}, I think"),
        ("my PIN is 4711.", f"my PIN is {MASK}."),
        ("My API key is 9f86d081884c7d65", f"My API key is {MASK}"),
        ("API key: abcd1234efgh", f"API key: {MASK}"),
        ("密码是芝麻开门，别告诉人", f"密码是{MASK}，别告诉人"),
        ("银行卡密码改成了 998877", f"银行卡密码改成了 {MASK}"),
        ("验证码：123456", f"验证码：{MASK}"),
        ("我的password是abc12345", f"我的password是{MASK}"),
        ("card 4111 1111 1111 1111, 12/29", f"card {MASK}, 12/29"),
        ("卡号4111111111111111。", f"卡号{MASK}。"),
        ("身份证号11010519491231002X", f"身份证号{MASK}"),
    ],
)
def test_keys_tokens_and_passwords_are_masked_and_the_rest_stays(text, masked):
    """B062."""
    assert mask(text) == masked


@pytest.mark.parametrize(
    "text",
    [
        "",
        "the key-value-store is down",
        "key_not_found: no such row",
        "token_count must be positive",
        "a task-oriented risk-averse desk-bound person",
        "http://localhost:8000/v1 refused",
        "see https://example.org/a:b@c",
        "the bearer of bad news",
        "password reset failed",
        "max_tokens: 5",
        "汉字：密码",
        "the password is wrong",
        "a password is required",
        "my password is the name of my dog",
        "the PIN hint is blue",
        "the key is under the mat",
        "the token is invalid",
        "密码是什么？",
        "密码不对",
        "密码是错的",
        "order 20240520001234567, phone 4915112345678901",
        "4111 1111 1111 1112",
    ],
)
def test_words_that_look_alike_stay(text):
    assert mask(text) == text


@given(st.text())
def test_masking_twice_changes_nothing_more(text):
    assert mask(mask(text)) == mask(text)


@pytest.mark.parametrize(
    "text",
    [
        "a",
        "key-",
        "://",
        "://a:",
        "-----BEGIN ",
        "x_",
        "api_key=",
        "eyJaaaaaaaa.",
        "Bearer ",
        "4 ",
        "密码是",
        "pin for a ",
    ],
)
def test_a_long_text_comes_to_an_end(text):
    """No pattern looks at the rest of the text from each of its places: a megabyte would take hours."""
    assert mask(text * 100_000)

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
        ("4111.1111.1111.1111", MASK),
        ("-----BEGIN PGP PRIVATE KEY BLOCK-----\nabc\n-----END PGP PRIVATE KEY BLOCK-----", MASK),
        ("hvs.CAESIabcdefghijkl", MASK),
        ("SharedAccessKey=abcdefg1234567890=", f"SharedAccessKey={MASK}"),
        ("https://hooks.slack.com/services/T00/B00/XXXX", f"https://hooks.slack.com/services/{MASK}"),
        ("L1aW4aubDFB7yfras2S1mN3bqg9nwySY8nkoLmJebSLD5BWv3ENZ", MASK),
        ("My password's hunter2", f"My password's {MASK}"),
        ("I changed my password to hunter2", f"I changed my password to {MASK}"),
        ("user bob, password hunter2", f"user bob, password {MASK}"),
        ("CVV: 123, passcode 4821", f"CVV: {MASK}, passcode {MASK}"),
        ("SSN 078-05-1120", f"SSN {MASK}"),
        ("wifi密码hunter2，密码 482193", f"wifi密码{MASK}，密码 {MASK}"),
        ("我把密码改为 hunter2", f"我把密码改为 {MASK}"),
        ("Passwort ist hunter2", f"Passwort ist {MASK}"),
        ("パスワードはhunter2", f"パスワードは{MASK}"),
        (f"seed phrase: {'abandon ' * 11}about", f"seed phrase: {MASK}"),
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
        "I like basic income ideas; Basic training starts",
        "my pin is broken, PIN Code ist sicher",
        "验证码是短信发的",
        "IMEI 490154203237518",
        "see https://docs.example.org/d/1aB2cD3eF4gH5iJ6kL7mN8oP9qR0",
        "commit 4c0883a69102937d6231471b5dbb6204fe512961",
        "550e8400-e29b-41d4-a716-446655440000",
        "Screenshot20240520at103045",
    ],
)
def test_words_that_look_alike_stay(text):
    assert mask(text) == text


SECRETS = ["sk-proj-AbCdEf1234567890", "4111111111111111", "ghp_abcdefABCDEF123456"]


@given(st.sampled_from(SECRETS), st.integers(0, 14), st.sampled_from("\u200b\u200d\u2060\ufeff\u00ad"))
def test_what_nobody_sees_hides_no_secret(secret: str, at: int, unseen: str):
    assert mask(f"it is {secret[:at]}{unseen}{secret[at:]}, ok") == f"it is {MASK}, ok"


@given(st.sampled_from(SECRETS), st.sets(st.integers(0, 14)))
def test_no_width_of_letters_hides_a_secret(secret: str, wide: set[int]):
    letters = (chr(ord(one) + 0xFEE0) if n in wide else one for n, one in enumerate(secret))
    assert mask(f"卡：{''.join(letters)}。") == f"卡：{MASK}。"


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
        "password ",
        "A1b2",
        "seed abandon ",
        "changed my password to ",
        "SSN ",
        "\u200b",
    ],
)
def test_a_long_text_comes_to_an_end(text):
    """No pattern looks at the rest of the text from each of its places: a megabyte would take hours."""
    assert mask(text * 100_000)


@pytest.mark.parametrize("name", ["pass", "my password is", "passwort", "seed", "token is", "密码", "PIN"])
def test_nor_do_a_hundred_thousand_blanks_behind_a_name_take_long(name):
    assert mask(f"{name}{' ' * 100_000}.")

"""Secrets in texts: keys, tokens, passwords, card numbers; masked before a text is kept, logged or shown.

It knows them by their form, or by a sentence that names them ("my password is …", "密码是…"). A password that stands in
a sentence like any word cannot be told from one.
"""

import re
from typing import Any

MASK = "[secret]"
START = r"(?<![A-Za-z0-9_])"
"""The start of a word, also behind a Chinese character."""

SECRET = re.compile(
    rf"{START}(?:sk|rk|pk|ghp|gho|ghu|ghs|ghr|xox[a-z]|github_pat|hf|glpat)[-_][A-Za-z0-9_*.-]{{6,}}"
    rf"|{START}(?:gsk|nvapi|xai|pplx|npm|pypi|whsec|lsv2|shpat|dop_v1)[-_][A-Za-z0-9_*.-]{{16,}}"
    rf"|{START}(?:key|tok|token)[-_](?=[a-z0-9_*.-]{{0,60}}(?-i:[A-Z0-9]))[A-Za-z0-9_*.-]{{6,}}"
    rf"|{START}(?-i:AKIA|ASIA|AKID|LTAI|AIza|ya29\.|SG\.)[A-Za-z0-9_.-]{{12,}}"
    rf"|{START}(?-i:eyJ)[A-Za-z0-9_-]{{8,}}\.[A-Za-z0-9_-]+(?:\.[A-Za-z0-9_-]+)?"
    rf"|{START}\d{{8,10}}:(?-i:AA)[A-Za-z0-9_-]{{30,}}"
    r"|-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|\Z)"
    rf"|(?P<scheme>{START}(?:Bearer|Basic)\s+)[^\s'\",;]{{6,}}"
    r"|(?<=://)[^/\s:@]*:[^/\s@]+(?=@)"
    rf"|(?P<name>{START}(?:\w{{1,40}}[_-])?(?:(?:api|access|private|account)[_-]?key|token|secret|password|passwd|pwd)"
    r"['\"]?\s*[=:]\s*['\"]?)[^\s'\",;]{4,}",
    re.IGNORECASE | re.DOTALL,
)
OF = r"(?:\s+(?:for|of|to|on|at)\s+(?:[\w.'’-]{1,30}\s+){0,2}[\w.'’-]{1,30})?"
IS = r"\s+(?:is|was|will\s+be|=)\s*:?\s*"
QUOTED = r"[\"'“‘`「『][^\"'”’`」』\n]{1,100}[\"'”’`」』]"
NO_PASSWORD = (
    r"(?!(?:not|no|too|so|very|quite|wrong|weak|strong|short|long|the|a|an|my|your|in|on|at|by|still|now|being|required|"
    r"needed|missing|empty|blank|expired|invalid|incorrect|correct|valid|safe|secure|unknown|lost|forgotten|reset|changed|"
    r"stored|kept|saved|sent|set|here|used|what|that|this|it|also|only|always|never|different|case)\b)"
)
SAID = re.compile(
    rf"(?P<en>{START}(?:password|passwd|passcode|passphrase|pwd|pin(?:\s+(?:code|number))?|cvv|cvc){OF}{IS})"
    rf"(?:{QUOTED}|{NO_PASSWORD}[^\s'\"“”‘’`,;]*[^\s'\"“”‘’`,;.?!])"
    rf"|(?P<key>{START}(?:(?:api|access|secret|private)\s+(?:key|token)(?:{OF}{IS}|\s*[:=]\s*)"
    rf"|(?:token|secret|key){OF}{IS}))"
    rf"(?:{QUOTED}|(?=[^\s'\"“”‘’`,;]*\d)[^\s'\"“”‘’`,;]{{7,}}[^\s'\"“”‘’`,;.?!])"
    r"|(?P<zh>(?:密码|口令|密钥|密匙|令牌|验证码|安全码|PIN\s?码|password|api\s?key|token)\s*(?:就?是|为|改成了?|换成了?|设[为成]了?|[:：=])\s*)"
    rf"(?:{QUOTED}|(?!什么|多少|哪|谁|怎|错|不|必|需|否|空|由|用|对的|一样|以前|之前|这|那|[我你他她它])"
    r"[^\s，。！？、；,;\"'”’」』]{3,64})",
    re.IGNORECASE,
)
NUMBER = re.compile(r"(?<![A-Za-z0-9_.])[1-8](?:[ -]?\d){11,17}[\dXx](?![A-Za-z0-9_])")
"""A bank card, or a Chinese identity card."""


def mask(text: str) -> str:
    """Replace what looks like a secret."""
    text = SECRET.sub(lambda found: f"{found['scheme'] or found['name'] or ''}{MASK}", text)
    text = SAID.sub(lambda found: f"{found['en'] or found['key'] or found['zh']}{MASK}", text)
    return NUMBER.sub(lambda found: MASK if is_card(found.group()) else found.group(), text)


def is_card(number: str) -> bool:
    """Whether the last digit is the check digit of a bank card (Luhn), or of an identity card (ISO 7064, 11-2)."""
    digits = [10 if one in "Xx" else int(one) for one in number if one not in " -"]
    doubled = [sum(divmod(2 * digit, 10)) for digit in digits[-2::-2]]
    if 2 <= digits[0] <= 6 and 10 not in digits and (sum(digits[-1::-2]) + sum(doubled)) % 10 == 0:
        return True
    return len(digits) == 18 and sum(2**n * digit for n, digit in enumerate(reversed(digits))) % 11 == 1


REFERENCES = {"id", "thread", "message", "calls", "superseded_by"}
"""Fields that name something and say nothing."""


def mask_all(value: Any) -> Any:
    """Mask every text inside nested dicts and lists, but what only refers to something."""
    if isinstance(value, str):
        return mask(value)
    if isinstance(value, dict):
        return {key: one if key in REFERENCES else mask_all(one) for key, one in value.items()}
    return [mask_all(one) for one in value] if isinstance(value, list) else value

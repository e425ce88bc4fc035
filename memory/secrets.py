"""Secrets in texts: keys, tokens, passwords, card numbers; masked before a text is kept, logged or shown.

It knows them by their form, or by a sentence that names them ("my password is …", "密码是…"), in letters of either
width and with what nobody sees between them. A password that stands in a sentence like any word is not told from one.
"""

import re
from typing import Any

MASK = "[secret]"
START = r"(?<![A-Za-z0-9_])"
"""The start of a word, also behind a Chinese character."""

NARROW = {0xFEE0 + ord(char): char for char in map(chr, range(0x21, 0x7F)) if char.isalnum() or char in "-_."}
UNSEEN = dict.fromkeys([0xAD, *range(0x200B, 0x2010), *range(0x2060, 0x2065), 0xFEFF])
MIXED = r"(?-i:(?=\S{0,200}?(?:\d|[a-z][A-Z]|[._=]))[^\s'\",;]{6,})"
"""A word that is none: with a digit, a sign or a capital in its middle."""

SECRET = re.compile(
    rf"{START}(?:sk|rk|pk|ghp|gho|ghu|ghs|ghr|github_pat|hf|glpat)[-_][A-Za-z0-9_*.-]{{6,}}"
    rf"|{START}xox[a-z]-(?=[a-z]*-?\d)[A-Za-z0-9-]{{6,}}"
    rf"|{START}(?:gsk|nvapi|xai|pplx|npm|pypi|whsec|lsv2|shpat|dop_v1)[-_][A-Za-z0-9_*.-]{{16,}}"
    rf"|{START}(?:key|tok|token)[-_](?=[a-z0-9_*.-]{{0,60}}(?-i:[A-Z0-9]))[A-Za-z0-9_*.-]{{6,}}"
    rf"|{START}(?-i:AKIA|ASIA|AKID|LTAI|AIza|ya29\.|SG\.)[A-Za-z0-9_.-]{{12,}}"
    rf"|{START}(?-i:eyJ)[A-Za-z0-9_-]{{8,}}\.[A-Za-z0-9_-]+(?:\.[A-Za-z0-9_-]+)?"
    rf"|{START}\d{{8,10}}:(?-i:AA)[A-Za-z0-9_-]{{30,}}"
    rf"|{START}(?-i:hv[sbr]\.[A-Za-z0-9_-]{{12,}}|sq0[a-z]{{3}}-[A-Za-z0-9_-]{{16,}}|EAA[A-Za-z0-9]{{20,}}|SK[0-9a-f]{{32}}"
    r"|AGE-SECRET-KEY-1[A-Z0-9]+|amzn\.mws\.[0-9a-f-]{20,})"
    r"|(?<=hooks\.slack\.com/services/)[A-Za-z0-9/]{8,}"
    r"|-----BEGIN [A-Z ]*PRIVATE KEY(?: BLOCK)?-----.*?(?:-----END [A-Z ]*PRIVATE KEY(?: BLOCK)?-----|\Z)"
    rf"|(?P<scheme>{START}(?:Bearer|Basic)\s+){MIXED}"
    r"|(?<=://)[^/\s:@]*:[^/\s@]+(?=@)"
    rf"|(?P<name>{START}(?:\w{{1,40}}[_-])?(?:(?:api|(?:shared)?access|private|account)[_-]?key|token|secret|password|passwd|pwd|passphrase|session_?id)"
    r"['\"]?\s*[=:]\s*['\"]?)[^\s'\",;]{4,}",
    re.IGNORECASE | re.DOTALL,
)
OF = r"(?:\s*\([^()\n]{1,20}\))?(?:\s+(?:for|of|to|on|at)\s+(?:[\w.'’-]{1,30}\s+){0,2}[\w.'’-]{1,30})?"
IS = r"(?:\s+(?:is(?:\s+now)?\b|was\b|will\s+be\b|(?:was\s+|is\s+)?(?:changed|set|reset)\s+to\b|=)|['’]s\b)\s*(?::\s*)?"
QUOTED = r"[\"'“‘`「『][^\"'”’`」』\n]{1,100}[\"'”’`」』]"
NO_PASSWORD = (
    r"(?!(?:not|no|too|so|very|quite|wrong|weak|strong|short|long|the|a|an|my|your|in|on|at|by|still|now|being|required|"
    r"needed|missing|empty|blank|expired|invalid|incorrect|correct|valid|safe|secure|unknown|lost|forgotten|reset|changed|"
    r"stored|kept|saved|sent|set|here|used|what|that|this|it|also|only|always|never|different|case|something|broken|stuck|gone|working|ready|easy|hard|known)\b)"
)
SAID = re.compile(
    rf"(?P<en>{START}(?:password|passwd|passcode|passphrase|pwd|pin(?:\s+(?:code|number))?|cvv|cvc){OF}{IS})"
    rf"(?:{QUOTED}|{NO_PASSWORD}[^\s'\"“”‘’`,;]*[^\s'\"“”‘’`,;.?!])"
    rf"|(?P<key>{START}(?:(?:api|access|secret|private)\s+(?:key|token)(?:{OF}{IS}|\s*[:=]\s*)"
    rf"|(?:token|secret|key){OF}{IS}))"
    rf"(?:{QUOTED}|(?=[^\s'\"“”‘’`,;]*\d)[^\s'\"“”‘’`,;]{{7,}}[^\s'\"“”‘’`,;.?!])"
    rf"|(?P<to>{START}(?:chang|sett?|reset|updat)(?:e|ed|ing)?\s+(?:my|the|our|his|her)\s+(?:\w+\s+)?(?:password|passcode|pin|passphrase)\s+to\s+)"
    rf"(?:{QUOTED}|{NO_PASSWORD}[^\s'\"“”‘’`,;]*[^\s'\"“”‘’`,;.?!])"
    rf"|(?P<code>{START}(?:cvv2?|cvc2?|passcode|pin(?:\s+(?:code|number))?)(?:\s*[:：是为]\s*|\s+)|(?:安全码|验证码|密码|口令)\s*)"
    r"\d{3,8}(?![\w-])"
    rf"|(?P<bare>{START}(?:password|passwd|pwd|pw|pass|login)\s*(?:(?:[:=→]|->|=>)\s*)?|(?:密码|口令)\s*)"
    r"(?=[!-~]{0,60}\d)(?=[!-~]{0,60}[A-Za-z])[^\s'\",;，。！？；]{5,64}"
    rf"|(?P<foreign>{START}(?:passwort|kennwort|mot\s+de\s+passe|contraseña|senha|пароль|パスワード|비밀번호|암호)"
    r"\s*(?:(?:(?:ist|lautet|est|es|é)\b|[:=：はー—-]|는|은)\s*)?)"
    rf"(?:{QUOTED}|(?=[!-~]{{0,60}}\d)[!-~]{{4,64}})"
    rf"|(?P<ssn>{START}(?:SSN|social\s+security\s+(?:number|no\.?))\D{{0,8}})\d{{3}}[- ]?\d\d[- ]?\d{{4}}(?!\d)"
    rf"|(?P<words>(?:{START}(?:seed|recovery|mnemonic)(?:\s+(?:phrase|words?))?|助记词)\s*(?:(?:is|are|[:：是=])\s*)?)"
    r"(?:[a-z]{3,8}[\s,]+){11,23}[a-z]{3,8}"
    r"|(?P<zh>(?:密码|口令|密钥|密匙|令牌|验证码|安全码|PIN\s?码|password|api\s?key|token)\s*(?:就?是|为|[改换变][成为]了?|设[为成]了?|[:：=])\s*)"
    rf"(?:{QUOTED}|(?!什么|多少|哪|谁|怎|错|不|必|需|否|空|由|用|短信|通过|按|对的|一样|以前|之前|这|那|[我你他她它])"
    r"[^\s，。！？、；,;\"'”’」』]{3,64})",
    re.IGNORECASE,
)
NUMBER = re.compile(r"(?<![A-Za-z0-9_.])[1-8](?:[ .-]?\d){11,17}[\dXx](?![A-Za-z0-9_])")
"""A bank card, or a Chinese identity card."""

CARD = re.compile("4[0-9]{12}|3[0689][0-9]{12}|3[47][0-9]{13}|(?:2[2-7]|[345][0-9]|6[0-9])[0-9]{14}|[56][0-9]{16,18}")
"""First digits and lengths of cards that are in use."""

RANDOM = re.compile(r"(?<![A-Za-z0-9_/=&?#.-])[A-Za-z0-9]{24,200}(?![A-Za-z0-9_/])")


def mask(text: str) -> str:
    """Replace what looks like a secret; a text that holds one comes back without what could hide it."""
    bare = text.translate(UNSEEN).translate(NARROW)
    masked = masked_plain(bare)
    return text if masked == bare else masked


def masked_plain(text: str) -> str:
    """Replace what looks like a secret as it stands."""
    text = SECRET.sub(named, text)
    text = SAID.sub(named, text)
    text = RANDOM.sub(lambda found: MASK if is_random(found.group()) else found.group(), text)
    return NUMBER.sub(lambda found: MASK if is_card(found.group()) else found.group(), text)


def named(found: re.Match[str]) -> str:
    """Write the mask behind what names the secret."""
    return f"{next(filter(None, found.groups()), '')}{MASK}"


def is_random(word: str) -> bool:
    """Whether a long word is of capitals, small letters and digits all over, as no name is."""
    return len(re.findall("[0-9]+", word)) > 3 and word.upper() != word != word.lower()


def is_card(number: str) -> bool:
    """Whether the last digit is the check digit of a bank card (Luhn), or of an identity card (ISO 7064, 11-2)."""
    plain = re.sub("[ .-]", "", number)
    digits = [10 if one in "Xx" else int(one) for one in plain]
    doubled = [sum(divmod(2 * digit, 10)) for digit in digits[-2::-2]]
    if CARD.fullmatch(plain) and (sum(digits[-1::-2]) + sum(doubled)) % 10 == 0:
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

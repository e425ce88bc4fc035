"""Secrets in texts: keys, tokens and passwords, masked before a text reaches a model, a log or a person's screen.

It knows them by their form. A password that stands in a sentence like any word cannot be told from one.
"""

import re
from typing import Any

MASK = "[secret]"
SECRET = re.compile(
    r"\b(?:sk|rk|pk|ghp|gho|ghu|ghs|ghr|xox[a-z]|github_pat|hf|glpat)[-_][A-Za-z0-9_*.-]{6,}"
    r"|\b(?:key|tok|token)[-_](?=[a-z0-9_*.-]{0,60}(?-i:[A-Z0-9]))[A-Za-z0-9_*.-]{6,}"
    r"|\b(?-i:AKIA|ASIA|AIza|ya29\.)[A-Za-z0-9_-]{12,}"
    r"|\b(?-i:eyJ)[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]+(?:\.[A-Za-z0-9_-]+)?"
    r"|-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|\Z)"
    r"|(?P<scheme>\b(?:Bearer|Basic)\s+)[^\s'\",;]{6,}"
    r"|(?<=://)[^/\s:@]*:[^/\s@]+(?=@)"
    r"|(?P<name>\b(?:\w{1,40}[_-])?(?:api[_-]?key|token|secret|password|passwd|pwd)['\"]?\s*[=:]\s*['\"]?)[^\s'\",;]{4,}",
    re.IGNORECASE | re.DOTALL,
)


def mask(text: str) -> str:
    """Replace what looks like a secret."""
    return SECRET.sub(lambda found: f"{found['scheme'] or found['name'] or ''}{MASK}", text)


def mask_all(value: Any) -> Any:
    """Mask every text inside nested dicts and lists, keys included."""
    if isinstance(value, str):
        return mask(value)
    if isinstance(value, dict):
        return {mask_all(key): mask_all(one) for key, one in value.items()}
    return [mask_all(one) for one in value] if isinstance(value, list) else value

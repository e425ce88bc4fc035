"""Secrets in texts: keys, tokens and passwords, masked before a text reaches a model, a log or a person's screen."""

import re

MASK = "[secret]"
SECRET = re.compile(
    r"\b(?:sk|pk|rk|key|tok|ghp|gho|xox[a-z]|AKIA)[-_]?(?<=[-_A])[A-Za-z0-9_*.-]{6,}"
    r"|\bBearer\s+[^\s'\"]+"
    r"|(?<=://)[^/\s:@]+:[^/\s@]+(?=@)"
    r"|(?<=\b)(?P<name>(?:api[_-]?key|token|secret|password|passwd|pwd)['\"]?\s*[=:]\s*['\"]?)[^\s'\",;]{4,}",
    re.IGNORECASE,
)


def mask(text: str) -> str:
    """Replace what looks like a secret."""
    return SECRET.sub(lambda found: f"{found['name'] or ''}{MASK}", text)

"""Quoting: how a text that somebody else wrote stands in a prompt, so that it stays a quotation.

JSON lines keep it in its quotes, whatever it holds; marks by which chat templates part roles are broken, because a
local server reads them as such wherever they stand. It judges no content.
"""

import json
import re

ROLE_MARK = re.compile(
    r"<\|[a-z0-9_/ ]{1,30}\|>|<｜[^｜<>\n]{1,30}｜>|</?(?:start|end)_of_turn>|<</?SYS>>|</?s>(?=\s*\[)|</s>"
    r"|\[/?(?:INST|SYSTEM_PROMPT|TOOL_CALLS|TOOL_RESULTS|TOOL_CONTENT|AVAILABLE_TOOLS|THINK)\]|<\|turn>|<turn\|>|<[be]os>",
    re.IGNORECASE,
)
"""Of ChatML and its kin, Llama, DeepSeek, Gemma and Mistral."""

LINE_ENDS = re.compile("[\u2028\u2029\x85]")


def as_json(value: object) -> str:
    """Write a value as one line of JSON with real characters: a text in it cannot break out of its quotes."""
    line = json.dumps(value, ensure_ascii=False, default=str)
    return LINE_ENDS.sub(escaped, ROLE_MARK.sub(escaped, line))


def escaped(found: re.Match[str]) -> str:
    """Write the first character of a match as its number."""
    return f"\\u{ord(found.group()[0]):04x}{found.group()[1:]}"


def defused(text: str) -> str:
    """Return a text in which marks of roles are parted by a blank."""
    return ROLE_MARK.sub(lambda found: f"{found.group()[0]} {found.group()[1:]}", text)


def on_one_line(text: str) -> str:
    """Return a text on one line, marks of roles parted: for lists of lines that are ours."""
    return " ".join(defused(text).split())

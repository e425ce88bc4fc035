"""How many tokens a prompt has: an estimate that works offline, knows Chinese, and does not count media as text.

It corrects itself by what the provider reports: see `corrected`. The constants are round numbers on the safe side of
what tokenizers of today give: o200k has about 0.7 tokens for a Chinese character and 4.2 English letters for a token.
"""

import json
import math
import re
import string
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from langchain_core.messages import AIMessage, BaseMessage

from nodes.text import SHOWN_AS_NOTHING

T = TypeVar("T")

WIDE = re.compile(
    r"[\u1100-\u11ff\u2e80-\u9fff\ua960-\ua97f\uac00-\ud7ff\uf900-\ufaff\uff00-\uffef\U00010000-\U0010ffff]"
)
PLAIN = (string.ascii_letters + " \n\t").encode()
PER_PLAIN, PER_OTHER, PER_WIDE = 0.25, 0.5, 1.0
"""Tokens of an ASCII letter or blank; of digits, punctuation and other alphabets; of a CJK character or emoji."""

PER_MESSAGE = 4
PER_MEDIA = 1_000
RATIO_BOUNDS = (0.5, 3.0)
SMOOTHING = 0.5


def text_tokens(text: str) -> int:
    """Estimate the tokens of a text."""
    data = text.encode(errors="replace")
    plain = len(data) - len(data.translate(None, PLAIN))
    wide = 0 if text.isascii() else len(WIDE.findall(text))
    return math.ceil(wide * PER_WIDE + plain * PER_PLAIN + (len(text) - wide - plain) * PER_OTHER)


def chars_within(text: str, tokens: int, *, cost: Callable[[str], int] = text_tokens) -> int:
    """Return how many characters from the start of a text have at most so many tokens, or cost as much."""
    low, high = 0, min(len(text), max(int(tokens / PER_PLAIN), 0))
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if cost(text[:middle]) <= tokens else (low, middle - 1)
    return low


def pieces(text: str, limit: int, *, cost: Callable[[str], int] = text_tokens) -> list[str]:
    """Cut a text into pieces of at most `limit` tokens, or that cost as much, of one character at least."""
    cut: list[str] = []
    while text or not cut:
        size = max(chars_within(text, limit, cost=cost), 1)
        cut.append(text[:size])
        text = text[size:]
    return cut


def newest_within(items: Sequence[T], limit: int, *, cost: Callable[[T], int]) -> int:
    """Count the newest items that together cost at most `limit` tokens."""
    for count, item in enumerate(reversed(items)):
        limit -= cost(item)
        if limit < 0:
            return count
    return len(items)


def message_tokens(message: BaseMessage) -> int:
    """Estimate the tokens of a message: its text, its calls, and a flat price for each picture or file."""
    blocks = [message.content] if isinstance(message.content, str) else message.content
    calls = message.tool_calls if isinstance(message, AIMessage) else []
    written = sum(text_tokens(call["name"] + json.dumps(call["args"], ensure_ascii=False)) for call in calls)
    return PER_MESSAGE + written + sum(map(block_tokens, blocks))


def block_tokens(block: str | dict[Any, Any]) -> int:
    """Estimate the tokens of one content block; base64 is never counted as text (B018)."""
    if isinstance(block, str):
        return text_tokens(block)
    if isinstance(text := block.get("text"), str):
        return text_tokens(text)
    return 0 if block.get("type") in SHOWN_AS_NOTHING else PER_MEDIA


def schema_tokens(schemas: Sequence[dict[str, Any]]) -> int:
    """Estimate the tokens of the tools' schemas."""
    return sum(text_tokens(json.dumps(schema, ensure_ascii=False)) for schema in schemas)


def reported_tokens(answer: AIMessage) -> int:
    """Return the tokens of the prompt as the provider counted them; 0 if it did not. Some give None (B044)."""
    usage: Mapping[str, Any] = answer.usage_metadata or {}
    return int(usage.get("input_tokens") or 0)


def ratio_of(state: Mapping[str, Any]) -> float:
    """Return how many tokens the provider counts for one of our estimate; 1 if a state edited by hand holds none."""
    ratio = state.get("token_ratio", 1.0)
    low, high = RATIO_BOUNDS
    return min(max(ratio, low), high) if isinstance(ratio, int | float) and math.isfinite(ratio) else 1.0


def corrected(ratio: float, *, estimated: int, answer: AIMessage) -> float:
    """Return the ratio of real to estimated tokens, moved half way to what this answer reports, if it reports any.

    `estimated` is the uncorrected estimate of the prompt that was answered.
    """
    reported = reported_tokens(answer)
    if reported <= 0 or estimated <= 0:
        return ratio
    low, high = RATIO_BOUNDS
    return min(max(ratio + (reported / estimated - ratio) * SMOOTHING, low), high)

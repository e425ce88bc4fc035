"""Extraction: from the user's own messages to statements and facts. What the model answers is data that nobody trusts.

It takes nothing from answers, tool results, recalled memories or prompts: only messages of the user are shown to it,
and what comes back must name the message that it came from and share words with it.
"""

import json
import re
from collections.abc import Iterator, Sequence
from typing import TypeVar

from pydantic import BaseModel, ValidationError

from memory.text import clean
from nodes.valid import as_json

P = TypeVar("P", bound=BaseModel)

THINKING = re.compile(r"<think(?:ing)?>.*?(?:</think(?:ing)?>|\Z)", re.DOTALL | re.IGNORECASE)
MAX_CHARS = 500


class Statement(BaseModel):
    """One statement that the model proposes to keep, with the id of its message."""

    text: str
    source: str


class Setting(BaseModel):
    """One fact that the model proposes to keep, with the id of its message."""

    key: str
    value: str
    source: str


class Extraction(BaseModel):
    """What an extractor found."""

    memories: list[Statement] = []
    facts: list[Setting] = []


def lines_of(said: Sequence[tuple[str, str]]) -> str:
    """Write (id, text) of the user's messages as JSON lines."""
    return "\n".join(as_json({"id": message_id, "text": text}) for message_id, text in said)


def read_extraction(answer: str, said: Sequence[tuple[str, str]]) -> Extraction | None:
    """Read the extractor's answer, fenced or not; keep what is valid and grounded. None if it holds no answer."""
    found = next(objects_in(THINKING.sub("", answer)), None)
    if found is None:
        return None
    texts = dict(said)
    memories = [one for one in parts(found, "memories", Statement) if is_grounded(one.text, texts.get(one.source, ""))]
    facts = [one for one in parts(found, "facts", Setting) if is_grounded(one.value, texts.get(one.source, ""))]
    return Extraction(memories=memories, facts=facts)


def objects_in(text: str) -> Iterator[dict[str, object]]:
    """Yield each JSON object in a text that has one of the two lists."""
    decoder = json.JSONDecoder()
    at = text.find("{")
    while at >= 0:
        try:
            value, end = decoder.raw_decode(text, at)
        except ValueError:
            end = at + 1
        else:
            if isinstance(value, dict) and value.keys() & {"memories", "facts"}:
                yield value
        at = text.find("{", end)


def parts(found: dict[str, object], name: str, model: type[P]) -> list[P]:
    """Read the valid entries of one list; one bad entry does not spoil the others."""
    kept = []
    entries = found.get(name)
    for entry in entries if isinstance(entries, list) else []:
        try:
            kept.append(model.model_validate(entry))
        except ValidationError:
            continue
    return kept


def is_grounded(statement: str, message: str) -> bool:
    """Whether a statement is short, says something, and shares words with the message that it names (B128)."""
    words = set(words_of(statement))
    return 0 < len(clean(statement).strip()) <= MAX_CHARS and len(words & set(words_of(message))) * 3 >= len(words) > 0


def words_of(text: str) -> list[str]:
    """Split into lower-case words, and Chinese, Japanese and Korean into characters."""
    return re.findall(r"[\u3040-\u9fff\uac00-\ud7af]|[^\W\u3040-\u9fff\uac00-\ud7af]+", text.casefold())

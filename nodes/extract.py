"""Extraction: from the user's own messages to statements and facts. What the model answers is data that nobody trusts.

It takes nothing from answers, tool results, recalled memories or prompts: only messages of the user are shown to it,
and what comes back must name the message that it came from and share words with it.
"""

import json
import re
from collections.abc import Iterator, Sequence
from typing import TypeVar

from pydantic import BaseModel, ValidationError

from memory.secrets import mask_all
from memory.text import clean
from nodes import prompts
from nodes.text import THINKING
from nodes.tokens import pieces, text_tokens
from nodes.valid import as_json

P = TypeVar("P", bound=BaseModel)

TRAILING_COMMA = re.compile(r",(?=\s*[}\]])")
MAX_CHARS = 500
MAX_KEY_CHARS = 100
MAX_ANSWER_CHARS = 200_000
MAX_OBJECTS = 1_000
"""Places where an object may start; what a model writes has a few."""

SAYS_NOTHING = frozenset(
    word
    for line in (
        "a am an and are asked be been but bye fine for good great hello hey hi i in is it its me mine my no not",
        "of ok okay on or our please right s said says sure t thank thanks that the this to told us user was we",
        "well yes you your",
        "好 的 了 是 我 你 您 他 她 它 们 吗 呢 吧 啊 嗯 哦 谢 行 对 在 有 和 用 户 说 不 这 那 请 再 见",
    )
    for word in line.split()
)
"""Words that ground nothing: "User said ok thanks" shares all of its words with a message that says nothing."""


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


def batches(said: Sequence[tuple[str, str]], limit: int) -> list[list[tuple[str, str]]]:
    """Part (id, text) into requests of about `limit` tokens at most; a longer text goes in pieces, none of it lost."""
    parts: list[list[tuple[str, str]]] = []
    room = 0
    for one in ((message_id, piece) for message_id, text in said for piece in pieces(text, limit // 2)):
        tokens = text_tokens(lines_of([one]))
        if parts and tokens <= room:
            parts[-1].append(one)
            room -= tokens
        else:
            parts.append([one])
            room = limit - tokens
    return parts


def read_extraction(answer: str, said: Sequence[tuple[str, str]]) -> Extraction | None:
    """Read the extractor's answer, fenced or not; keep what is valid and grounded. None if it holds no answer."""
    text = THINKING.sub("", answer[:MAX_ANSWER_CHARS])
    found = max((list(objects_in(one)) for one in (text, TRAILING_COMMA.sub("", text))), key=len)
    if not found:
        return None
    texts = dict(said)
    memories = [one for one in parts(found, "memories", Statement) if is_grounded(one.text, texts.get(one.source, ""))]
    facts = [one for one in parts(found, "facts", Setting) if is_settled(one, texts.get(one.source, ""))]
    return Extraction(memories=memories, facts=facts)


def objects_in(text: str) -> Iterator[dict[str, object]]:
    """Yield each JSON object in a text that has one of the two lists."""
    decoder = json.JSONDecoder()
    at = text.find("{")
    for _ in range(MAX_OBJECTS):
        if at < 0:
            return
        try:
            value, end = decoder.raw_decode(text, at)
        except (ValueError, RecursionError):
            end = at + 1
        else:
            if isinstance(value, dict) and value.keys() & {"memories", "facts"}:
                yield value
        at = text.find("{", end)


def parts(found: Sequence[dict[str, object]], name: str, model: type[P]) -> list[P]:
    """Read the valid entries of one list, each once; one bad entry does not spoil the others."""
    kept: list[P] = []
    for entries in (one.get(name) for one in found):
        for entry in entries if isinstance(entries, list) else []:
            try:
                read = model.model_validate(mask_all(entry))
            except ValidationError:
                continue
            kept += [read] if read not in kept else []
    return kept


def is_grounded(statement: str, message: str) -> bool:
    """Whether a statement is short, is none of the prompt's own, and shares words with the message it names (B128)."""
    words = set(words_of(statement)) - SAYS_NOTHING
    shared = words & set(words_of(message))
    return len(clean(statement).strip()) <= MAX_CHARS and len(shared) * 3 >= len(words) > 0 and not is_ours(statement)


def is_settled(fact: Setting, message: str) -> bool:
    """Whether a fact has a key and a value that the message holds, word for word where the value is one like "no"."""
    key, value = clean(fact.key).strip(), clean(fact.value).strip()
    verbatim = value and value.casefold() in message.casefold() and set(words_of(message)) - SAYS_NOTHING
    return 0 < len(key) <= MAX_KEY_CHARS and len(value) <= MAX_CHARS and bool(verbatim or is_grounded(value, message))


def is_ours(statement: str) -> bool:
    """Whether a statement of some length stands in the prompt that the model was given."""
    words = words_of(statement)
    return len(words) >= 4 and " ".join(words) in " ".join(words_of(prompts.EXTRACT))


def words_of(text: str) -> list[str]:
    """Split into lower-case words, and Chinese, Japanese and Korean into characters."""
    return re.findall(r"[\u3040-\u9fff\uac00-\ud7af]|[^\W\u3040-\u9fff\uac00-\ud7af]+", text.casefold())

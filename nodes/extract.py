"""Extraction: from the user's own messages to statements and facts. What the model answers is data that nobody trusts.

It takes nothing from answers, tool results, recalled memories or prompts: only messages of the user are shown to it,
and what comes back must name the message that it came from and share words with it.
"""

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from memory.sameness import folded
from memory.secrets import mask_all
from memory.text import clean, is_bare
from nodes import prompts
from nodes.grounds import objection, too_long_a_name
from nodes.lines import in_parts, json_tokens
from nodes.quoting import as_json
from nodes.stated import is_supposed, says_other, stated
from nodes.text import THINKING
from nodes.tokens import pieces, text_tokens

P = TypeVar("P", bound=BaseModel)

TRAILING_COMMA = re.compile(r",(?=\s*[}\]])")
NO_ANSWER = "the extractor's answer holds no JSON object, or broke off"
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


@dataclass(frozen=True, kw_only=True)
class Saying:
    """A message of the user, with the time at which it was said."""

    id: str
    text: str
    at: datetime


NEGATIONS = frozenset(["don", "doesn", "didn", "isn", "aren", "can", "cannot", "never", "none", "nothing", "没", "别"])
"""What is left of a "not" among the words, beside what says nothing."""


class Statement(BaseModel):
    """One statement that the model proposes to keep, with the id of its message and of what it makes untrue."""

    text: str
    source: str
    replaces: Any = None


class Setting(BaseModel):
    """One fact that the model proposes to keep, with the id of its message."""

    key: str
    value: str
    source: str
    how: Any = "now"


class Extraction(BaseModel):
    """What an extractor found, and why that is not all; empty if it is."""

    memories: list[Statement] = []
    facts: list[Setting] = []
    failed: str = ""

    def joined(self, other: "Extraction") -> "Extraction":
        """Return what two answers found, each entry once; failed if the second one is."""
        memories = [*self.memories, *(one for one in other.memories if one not in self.memories)]
        facts = [*self.facts, *(one for one in other.facts if one not in self.facts)]
        return Extraction(memories=memories, facts=facts, failed=other.failed)


def lines_of(said: Sequence[Saying]) -> str:
    """Write the user's messages as JSON lines, each with the day on which it was said."""
    return "\n".join(as_json({"id": one.id, "date": f"{one.at:%Y-%m-%d %A}", "text": one.text}) for one in said)


def batches(said: Sequence[Saying], limit: int) -> list[list[Saying]]:
    """Part messages into requests of about `limit` tokens at most; a longer one goes in pieces, none of it lost."""
    short = (replace(one, text=piece) for one in said for piece in pieces(one.text, limit // 2, cost=json_tokens))
    return in_parts(short, limit, cost=lambda one: text_tokens(lines_of([one])))


def read_extraction(answer: str, said: Sequence[Saying], known: Sequence[str] = ()) -> Extraction:
    """Read the extractor's answer, fenced or not, whole or half; keep what is valid and grounded in the messages.

    `known` are the texts of the memories that the extractor was shown: they ground nothing.
    """
    text = THINKING.sub("", answer[:MAX_ANSWER_CHARS])
    read = [
        [part for found in all_objects(one) for part in whole_or_inner(found) if part.keys() & {"memories", "facts"}]
        for one in (text, TRAILING_COMMA.sub("", text))
    ]
    found = max(read, key=len) or [entries_in(text)]
    texts = {one.id: one.text for one in said}
    memories = [one for one in parts(found, "memories", Statement) if is_stated(one, texts.get(one.source, ""), known)]
    facts = [one for one in parts(found, "facts", Setting) if is_settled(one, texts.get(one.source, ""))]
    if known:  # what was planted in a memory was read now, and may be obeyed
        memories = [one for one in memories if not objection(one.text, said=[texts[one.source]], read=[])]
        facts = [one for one in facts if not objection(one.value, said=[texts[one.source]], read=[])]
        facts = [one for one in facts if not too_long_a_name(one.key, said=[texts[one.source]])]
    return Extraction(memories=memories, facts=facts, failed="" if any(read) else NO_ANSWER)


def whole_or_inner(found: dict[str, Any]) -> list[dict[str, Any]]:
    """Return an object and those in it: some models wrap their answer once more."""
    return [found, *(inner for inner in found.values() if isinstance(inner, dict))]


def entries_in(text: str) -> dict[str, Any]:
    """Return the entries of an answer that broke off, as far as they are whole."""
    found = list(all_objects(text))
    return {"memories": [one for one in found if "text" in one], "facts": [one for one in found if "key" in one]}


def all_objects(text: str) -> Iterator[dict[str, Any]]:
    """Yield the JSON objects in a text; what stands inside of one only if it is broken."""
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
            if isinstance(value, dict):
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


def is_stated(one: Statement, message: str, known: Sequence[str]) -> bool:
    """Whether a statement is what its message states: in its words, in its sense, and not out of what was known."""
    clauses = stated(message, supposing=is_supposed(one.text))
    borrowed = set(words_of(" ".join(known))) - set(words_of(message))
    words = [word for word in words_of(one.text) if word not in SAYS_NOTHING]
    lent = sum(word in borrowed for word in words)
    return is_grounded(one.text, " ".join(clauses)) and 3 * lent <= len(words) and not is_another(one.text, clauses)


def is_grounded(statement: str, message: str) -> bool:
    """Whether a statement is short, is none of the prompt's own, and shares words with what a message states (B128)."""
    words = set(words_of(statement)) - SAYS_NOTHING
    shared = words & set(words_of(message))
    return len(clean(statement).strip()) <= MAX_CHARS and len(shared) * 3 >= len(words) > 0 and not is_ours(statement)


def is_another(statement: str, clauses: Sequence[str]) -> bool:
    """Whether the clause whose words a statement repeats says another thing: "likes tea" of "I don't like tea"."""
    words = {folded(word) for word in words_of(statement)} - SAYS_NOTHING - NEGATIONS
    held = [clause for clause in clauses if words <= {folded(word) for word in words_of(clause)}]
    return bool(held) and all(says_other(clause, statement) for clause in held)


def is_settled(fact: Setting, message: str) -> bool:
    """Whether a fact has a key and a value that the message states, word for word where the value is one like "no"."""
    key, value = clean(fact.key).strip(), clean(fact.value).strip()
    told = " ".join(stated(message))
    verbatim = value.casefold() in told.casefold() and set(words_of(told)) - SAYS_NOTHING
    if is_bare(key) or is_bare(value) or len(key) > MAX_KEY_CHARS or len(value) > MAX_CHARS:
        return False
    return bool(verbatim or is_grounded(value, told))


def is_ours(statement: str) -> bool:
    """Whether a statement of some length stands in the prompt that the model was given."""
    words = words_of(statement)
    return len(words) >= 4 and " ".join(words) in " ".join(words_of(prompts.EXTRACT))


def words_of(text: str) -> list[str]:
    """Split into lower-case words, and Chinese, Japanese and Korean into characters."""
    return re.findall(r"[\u3040-\u9fff\uac00-\ud7af]|[^\W\u3040-\u9fff\uac00-\ud7af]+", text.casefold())

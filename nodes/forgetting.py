"""Whether the user asked to forget something, and this: it is for good, so nobody's words count but their own.

What they paste or quote is not theirs; a document, a tool's result and a recalled memory cannot ask. Rules for the
clear cases, on the safe side: where they err, nothing is forgotten, and a plain "forget that …" mends it.
"""

import json
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, ToolMessage

from memory.memories import Memories, Memory
from nodes.grounds import words_of
from nodes.stated import FORGET, QUOTED, SENTENCE, own_words, unquoted, wants_forgotten
from nodes.text import last_human, text_of

SHOWING = ("recall", "memory_get", "memory_save")
"""The tools whose results show memories with their ids."""

ASKS_ABOUT = re.compile(
    r"^\W*(?:why|when|what|how|who|where|which|did|do|does|have|has|had|will|is|are|was|were|if)\b.*\?\W*$"
    r"|(?:为什么|怎么|什么|谁|何时|是不是|会不会|有没有|你会|如果).*[?？吗呢]\W*$|忘[了记掉]?(?:了|没有)?(?:吗|么|没)\W*$",
    re.IGNORECASE,
)
"""A question about forgetting, which wishes nothing; "can you forget that?" does."""

ASSENTS = re.compile(
    r"\W*(?:(?:yes|yeah|yep|sure|ok(?:ay)?|please|do(?: it| that| so)?|go ahead|correct|right|exactly"
    r"|好的?|是的?|对的?|嗯|可以|行|确认|没错|请|吧|了)\W*){1,5}",
    re.IGNORECASE,
)
ASKS = re.compile(r"[?？]\W*$|[吗呢]\W*$")
BESIDE = re.compile(
    r"\b(?:that|this|it|them|those|these|all|everything|remember\w*|memor(?:y|ies)|know|about me|of me|yes|no"
    r"|ok(?:ay)?|wait|sorry|can|could|would|you|please|just|now|again|ones?|wrong|true|thing)\b"
    r"|它们?|[这那](?:[条点件个]|些个?)|[这那](?![\u3400-\u9fff])|全部|所有|一切|都|记忆|记得|记住|记着|关于我|不对|错了?"
    r"|好的?|是的|吧|了|把|请|给我|帮我|掉|再|从|里|能|可以|吗|[你我您的对啊呢一二两三四五六七八九十几第]",
    re.IGNORECASE,
)
"""Words of a wish to forget all that is remembered, or "that", which name nothing.

What is left of a wish has, by the built-in embedder, cosines of .23 to .51 to what it means, of 0 to .15 to other
things; the embedder's threshold, .22, lies between.
"""


def wish_of(messages: Sequence[BaseMessage]) -> str:
    """Return the sentences in which the user now asks to forget something, or those of the question to which they said
    yes; empty if there are none.
    """
    newest = last_human(messages)
    if newest < 0:
        return ""
    said = text_of(messages[newest])
    own = SENTENCE.split(QUOTED.sub(unquoted, own_words(said)))
    if wishes := [one for one in own if wants_forgotten(one) and not ASKS_ABOUT.search(one)]:
        return "\n".join(wishes)
    before = messages[newest - 1] if newest else None
    if not isinstance(before, AIMessage) or not ASSENTS.fullmatch(said.strip()):
        return ""
    return "\n".join(one for one in SENTENCE.split(text_of(before)) if ASKS.search(one) and FORGET.search(one))


def is_meant(memory: Memory, wish: str, memories: Memories) -> bool:
    """Whether a wish to forget can mean this memory: by its id or words, close to it, all that is kept, or "that"."""
    if memory.id in wish:
        return True
    rest = BESIDE.sub(" ", FORGET.sub(" ", wish))
    words, is_bare = words_of(rest), not re.search(r"[\u3400-\u9fff]", rest)
    if (not words and is_bare) or set(words) & set(words_of(" ".join([memory.text, memory.about, *memory.variants]))):
        return True
    knows_close = getattr(memories.store, "threshold", 0.0) > 0
    return knows_close and memory.id in {one.id for one in memories.search(rest, limit=5)}


def shown_text(id: str, state: Mapping[str, Any]) -> str:
    """Return what the memory of this id says, as far as the turn shows it: for a person who is asked about it."""
    rows = list((state.get("recalled") or {}).get("memories", []))
    for message in state["messages"]:
        if isinstance(message, ToolMessage) and message.name in SHOWING and message.status == "success":
            with suppress(ValueError, TypeError, AttributeError):
                told = json.loads(text_of(message))
                rows += [told, *told.get("memories", [])]
    return next((str(row.get("text", "")) for row in rows if isinstance(row, dict) and row.get("id") == id), "")

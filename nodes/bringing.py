"""What long-term memory brings up unasked: when it is searched, what counts as close, and how much of it is shown.

Nothing at all is a fine answer. What always stands in the prompt, core memory and facts, is not its matter.
"""

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any

from langgraph.store.base import BaseStore

from memory.catalogue import Catalogue, Thread
from memory.closeness import NEAR_BEST, Judged
from memory.memories import Memories, Memory, found
from memory.transcript import Found, search_said
from nodes.context import Context, context_of, thread_of, user_of
from nodes.team_tools import with_shared
from nodes.tokens import text_tokens
from nodes.trace import RecalledMemory

ABSTRACTS = 2
"""Earlier conversations that are brought up at most."""

SAID, SAID_CHARS = 3, 500
"""Messages of earlier conversations that a question which refers to them brings up at most, and characters of each."""

NO_ROOM = "no room in {tokens} tokens (recall_tokens)"


def trigger_in(question: str, context: Context) -> str:
    """Return the words by which a question refers to earlier conversations, empty if it does not."""
    plain = folded(question)
    return next((words for words in context.triggers if (found := pattern_of(words)) and found.search(plain)), "")


@lru_cache(maxsize=1024)
def pattern_of(words: str) -> re.Pattern[str] | None:
    """Return what finds these words in a folded text, None for no words."""
    pattern = re.escape(folded(words))
    return re.compile(rf"(?<!\w){pattern}(?!\w)" if words.isascii() else pattern) if pattern else None


def folded(text: str) -> str:
    """Fold case, width, spacing and the form of apostrophes away."""
    return " ".join(unicodedata.normalize("NFKC", text).casefold().replace("’", "'").split())


def is_searched(context: Context, trigger: str) -> bool:
    """Whether memory is searched before the model is asked: by the policy, or because the question refers to it."""
    return context.memory in ("inject", "both") or bool(trigger)


def brought_up(question: str, runtime: Any, trigger: str = "") -> list[RecalledMemory]:
    """Return what is brought up on a question within its tokens: memories first, what was said earlier last."""
    context, user, thread, store = context_of(runtime), user_of(runtime), thread_of(), runtime.store
    own = [found(one.hit) for one in considered(store, question, context, user=user) if not one.left_out]
    options = {"limit": context.recall_k, "threshold": context.recall_threshold}
    rows = [shown(*one) for one in with_shared(own, runtime, question, **options)]
    rows += map(shown_thread, Catalogue(store, user=user).search(question, limit=ABSTRACTS, but=thread))
    if trigger:
        rows += said_elsewhere(store, question, user=user, thread=thread)
    return [row for row, fits in zip(rows, fitting(rows, context.recall_tokens), strict=True) if fits]


def considered(store: BaseStore, question: str, context: Context, *, user: str) -> list[Judged]:
    """Return every memory that was found on a question, those that are brought up first, and why the others are not."""
    memories = Memories(store, user=user)
    judged = memories.judged(question, limit=context.recall_k, threshold=context.recall_threshold)
    fits = iter(fitting([shown(found(one.hit)) for one in judged if not one.left_out], context.recall_tokens))
    no_room = NO_ROOM.format(tokens=context.recall_tokens)
    return [one if one.left_out or next(fits) else replace(one, left_out=no_room) for one in judged]


def fitting(rows: Sequence[RecalledMemory], tokens: int) -> list[bool]:
    """Say of each row whether it fits beside those before it that do."""
    fits = []
    for row in rows:
        size = text_tokens(row["text"])
        fits.append(size <= tokens)
        tokens -= size if fits[-1] else 0
    return fits


def said_elsewhere(store: BaseStore, question: str, *, user: str, thread: str) -> list[RecalledMemory]:
    """Find what was said in other conversations, by the user or to them, close to a question."""
    hits = search_said(store, user=user, query=question, limit=4 * SAID, but=thread)
    best = max((hit.score for hit in hits if hit.score is not None), default=0.0)
    least = max(getattr(store, "threshold", 0.0), NEAR_BEST * best)
    close = [hit for hit in hits if hit.score is None or hit.score >= least]
    return [shown_message(hit) for hit in close if hit.entry.role in ("human", "ai")][:SAID]


def shown(memory: Memory, origin: str = "") -> RecalledMemory:
    """Write a memory as the state keeps it."""
    m = memory
    return RecalledMemory(id=m.id, text=m.text, at=m.at, score=m.score, why=m.why, origin=origin)


def shown_thread(thread: Thread) -> RecalledMemory:
    """Write the abstract of an earlier conversation as the state keeps it."""
    earlier = "an earlier conversation"
    return RecalledMemory(id=thread.id, text=thread.abstract, at=thread.used, score=None, why=earlier, origin=earlier)


def shown_message(hit: Found) -> RecalledMemory:
    """Write a message of an earlier conversation as the state keeps it, with who said it."""
    entry, who = hit.entry, "the user" if hit.entry.role == "human" else "the assistant"
    why, origin = f"said in {hit.thread}", f"said by {who} in an earlier conversation"
    return RecalledMemory(
        id=entry.id, text=entry.text[:SAID_CHARS], at=entry.at, score=hit.score, why=why, origin=origin
    )

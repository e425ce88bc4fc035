"""Where the page may be cut. It finds the place; it removes nothing."""

from collections.abc import Sequence

from langchain_core.messages import BaseMessage, HumanMessage

from nodes.pairs import results_of
from nodes.text import last_human


def safe_cut(messages: Sequence[BaseMessage], *, keep: int) -> int:
    """Return how many of the oldest messages may leave so that about `keep` stay; 0 if none may.

    The newest user message and all after it stay; the cut falls before a user message; no call is parted from its
    result, wherever that result stands.
    """
    pairs = [(answer, result) for (answer, _), result in results_of(messages).items()]
    places = [
        n
        for n in range(1, last_human(messages) + 1)
        if isinstance(messages[n], HumanMessage) and not any(answer < n <= result for answer, result in pairs)
    ]
    small_enough = [n for n in places if len(messages) - n <= keep]
    return min(small_enough) if small_enough else max(places, default=0)

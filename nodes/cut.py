"""Where the page may be cut. It finds the place; it removes nothing."""

from collections.abc import Sequence

from langchain_core.messages import AnyMessage, BaseMessage, HumanMessage

from nodes.context import Context
from nodes.pairs import results_of
from nodes.state import State
from nodes.text import last_human
from nodes.tokens import message_tokens, newest_within, ratio_of

KEPT_SHARE = 2
"""After a cut the page holds one part in this many of its limit: 2 is half."""

WINDOW_SHARE = 0.5
"""Part of the token budget that one request to summarise or to extract may fill with messages."""

HARD_LIMIT = 2
"""Times the limit of messages at which even what extraction has not read may leave."""


def window_of(state: State, context: Context) -> int:
    """Return the tokens, by our plain estimate, that one request of the housekeeping may fill with messages."""
    return int(context.token_budget / ratio_of(state) * WINDOW_SHARE)


def is_over(state: State, context: Context) -> bool:
    """Whether the page holds more messages or more tokens than it should."""
    return len(state["messages"]) > context.max_messages or state.get("page_tokens", 0) > context.token_budget


def can_cut(messages: Sequence[BaseMessage]) -> bool:
    """Whether a page has a turn before the newest that could leave, now or once it is extracted."""
    return safe_cut(messages, keep=0) > 0


def leaving(state: State, context: Context) -> list[AnyMessage]:
    """Return the oldest messages, those that may leave the page now: none that extraction has still to read."""
    messages = state["messages"]
    keep = context.max_messages // KEPT_SHARE
    if state.get("page_tokens", 0) > context.token_budget:
        room = room_for_page(state, context) // KEPT_SHARE
        keep = min(keep, newest_within(messages, room, cost=message_tokens))
    cut = safe_cut(messages, keep=keep)
    waiting = context.extract not in ("off", "close") and len(messages) <= HARD_LIMIT * context.max_messages
    return messages[: min(cut, first_unread(messages, state.get("extracted_to", "")))] if waiting else messages[:cut]


def room_for_page(state: State, context: Context) -> int:
    """Return the tokens, by our plain estimate, that the system text and the tools leave to the messages (B015)."""
    ratio = ratio_of(state)
    messages = sum(map(message_tokens, state["messages"]))
    others = state.get("page_tokens", 0) / ratio - messages
    return int(context.token_budget / ratio - max(others, 0))


def first_unread(messages: Sequence[BaseMessage], read_to: str) -> int:
    """Return the index of the oldest user message after the one that extraction read last."""
    said = [n for n, message in enumerate(messages) if isinstance(message, HumanMessage)]
    ids = [messages[n].id for n in said]
    start = ids.index(read_to) + 1 if read_to in ids else 0
    return said[start] if start < len(said) else len(messages)


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

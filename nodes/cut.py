"""Where the page may be cut. It finds the place; it removes nothing."""

from collections.abc import Sequence

from langchain_core.messages import BaseMessage, HumanMessage, ToolMessage

from nodes.text import calls_of, last_human


def safe_cut(messages: Sequence[BaseMessage], *, keep: int) -> int:
    """Return how many of the oldest messages may leave so that about `keep` stay; 0 if none may.

    The newest user message and all after it stay; the cut falls before a user message; no call is parted from its
    result, wherever that result stands.
    """
    newest = last_human(messages)
    places = [
        n for n in range(1, newest + 1) if isinstance(messages[n], HumanMessage) and not parts_a_pair(messages, n)
    ]
    small_enough = [n for n in places if len(messages) - n <= keep]
    return min(small_enough) if small_enough else max(places, default=0)


def parts_a_pair(messages: Sequence[BaseMessage], n: int) -> bool:
    """Whether a result at or after `n` belongs to a call before it."""
    called = {call_id for message in messages[:n] for call_id, _ in calls_of(message)}
    answered = {message.tool_call_id for message in messages[:n] if isinstance(message, ToolMessage)}
    open_calls = called - answered
    return any(isinstance(message, ToolMessage) and message.tool_call_id in open_calls for message in messages[n:])

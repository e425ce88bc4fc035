"""Calls that lead nowhere: the same again, and steps in which no call could run. Read from this turn's messages."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, ToolMessage

from nodes.pairs import results_of
from nodes.text import last_human

MOST_FUTILE = 3
"""Steps in a row in which no call could run; then an answer is asked for without tools."""

FUTILE = {"unknown_tool", "invalid_arguments", "repeated", "not_the_users", "secret"}


def times_before(messages: Sequence[BaseMessage], call: Mapping[str, Any]) -> int:
    """Count how often this turn made the same call before this one, which is in the newest answer.

    Whatever the order of the keys or the blanks; ids are compared within one answer only, servers repeat theirs.
    """
    wanted, times = signature(call), 0
    *earlier, newest = answers_of(messages) or [AIMessage("")]
    for one in [call for answer in earlier for call in answer.tool_calls]:
        times += one["name"] == call["name"] and signature(one) == wanted
    for one in newest.tool_calls:
        if one["id"] == call["id"]:
            break
        times += one["name"] == call["name"] and signature(one) == wanted
    return times


def refused_before(messages: Sequence[BaseMessage], call: Mapping[str, Any]) -> bool:
    """Whether the tool itself refused this very call in this turn, and no call has gone through since (B135)."""
    turn, refused = messages[last_human(messages) + 1 :], False
    for (n, position), at in sorted(results_of(turn).items(), key=lambda pair: pair[1]):
        record, made = turn[at].additional_kwargs.get("record", {}), calls_in(turn[n])[position : position + 1]
        if record.get("ok"):
            refused = False
        elif record.get("kind") == "business" and made:
            refused |= (made[0]["name"], made[0]["args"]) == (call["name"], call["args"])
    return refused


def calls_in(message: BaseMessage) -> Sequence[Mapping[str, Any]]:
    """Return the valid calls of an answer; the others come after them."""
    return message.tool_calls if isinstance(message, AIMessage) else []


def is_stuck(messages: Sequence[BaseMessage]) -> bool:
    """Whether none of the calls in the last steps could run."""
    answers = answers_of(messages)
    if len(answers) < MOST_FUTILE:
        return False
    start = max(n for n, message in enumerate(messages) if message is answers[-MOST_FUTILE])
    results = [message for message in messages[start:] if isinstance(message, ToolMessage)]
    kinds = [result.additional_kwargs.get("record", {}).get("kind") for result in results]
    return bool(kinds) and all(kind in FUTILE for kind in kinds)


def answers_of(messages: Sequence[BaseMessage]) -> list[AIMessage]:
    """Return the model's answers in the current turn."""
    return [message for message in messages[last_human(messages) + 1 :] if isinstance(message, AIMessage)]


def signature(call: Mapping[str, Any]) -> str:
    """Write a call so that equal ones are equal texts."""
    return json.dumps([call["name"], trimmed(call["args"])], sort_keys=True, ensure_ascii=False, default=str)


def trimmed(value: Any) -> Any:
    """Return a value whose texts of one line have no blanks around them and single ones within; code keeps its own."""
    if isinstance(value, str):
        return value if "\n" in value.strip() else " ".join(value.split())
    if isinstance(value, dict):
        return {key: trimmed(one) for key, one in value.items()}
    return [trimmed(one) for one in value] if isinstance(value, list) else value

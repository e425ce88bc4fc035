"""Calls that come again: the same tool with the same arguments, whatever the order of the keys or the blanks around."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage

from nodes.text import last_human


def times_before(messages: Sequence[BaseMessage], call: Mapping[str, Any]) -> int:
    """Count how often this turn made the same call before this one."""
    same = [
        earlier["id"]
        for message in messages[last_human(messages) + 1 :]
        if isinstance(message, AIMessage)
        for earlier in message.tool_calls
        if signature(earlier) == signature(call)
    ]
    return same.index(call["id"]) if call["id"] in same else len(same)


def signature(call: Mapping[str, Any]) -> str:
    """Write a call so that equal ones are equal texts."""
    return json.dumps([call["name"], trimmed(call["args"])], sort_keys=True, ensure_ascii=False, default=str)


def trimmed(value: Any) -> Any:
    """Return a value whose texts have no blanks around them and single ones within."""
    if isinstance(value, str):
        return " ".join(value.split())
    if isinstance(value, dict):
        return {key: trimmed(one) for key, one in value.items()}
    return [trimmed(one) for one in value] if isinstance(value, list) else value

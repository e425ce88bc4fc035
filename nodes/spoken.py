"""Calls that a model wrote as text, as local models do. Read as calls only if nothing is left to guess (B039)."""

import json
import re
from collections.abc import Collection
from typing import Any
from uuid import uuid4

from langchain_core.messages import AIMessage, ToolCall

from nodes.text import text_of

TAGGED = re.compile(r"<(tool_call|function_call)>\s*(.*?)\s*(?:</\1>|\Z)|\[TOOL_CALLS\]\s*(\[.*)", re.DOTALL)
FENCED = re.compile(r"```(?:json|tool_call)?\s*\n(.*?)\n```", re.DOTALL)
ARGUMENTS = ("arguments", "parameters", "args")


def with_spoken_calls(answer: AIMessage, mounted: Collection[str]) -> AIMessage:
    """Return the answer with the calls that its text spells out as real ones, if every one is complete and mounted."""
    calls = spoken_calls(text_of(answer)) if not answer.tool_calls and not answer.invalid_tool_calls else []
    if not calls or any(name not in mounted for name, _ in calls):
        return answer
    made = [ToolCall(name=name, args=args, id=f"call_{uuid4().hex[:20]}", type="tool_call") for name, args in calls]
    return answer.model_copy(update={"content": "", "tool_calls": made})


def looks_like_call(answer: AIMessage) -> bool:
    """Whether the text is a call, whole or broken, rather than an answer that happens to be JSON."""
    text = text_of(answer)
    return bool(TAGGED.match(text.strip()) or spoken_calls(text))


def spoken_calls(text: str) -> list[tuple[str, dict[str, Any]]]:
    """Return (name, arguments) of each call that a text consists of; nothing if it holds anything else as well."""
    text = text.strip()
    tagged = TAGGED.findall(text)
    fenced = FENCED.fullmatch(text)
    bodies = [body or listed for _, body, listed in tagged] if tagged else [fenced[1] if fenced else text]
    if TAGGED.sub("", text).strip() and tagged:
        return []
    found = [call for body in bodies for call in calls_in(body)]
    return found if all(found) else []


def calls_in(body: str) -> list[Any]:
    """Read one body: a call, or a list of calls; an entry that is none gives None."""
    if not body.startswith(("{", "[")):
        return [None]
    try:
        value = json.loads(body)
    except ValueError:
        return [None]
    return [as_call(one) for one in (value if isinstance(value, list) else [value])] or [None]


def as_call(value: Any) -> tuple[str, dict[str, Any]] | None:
    """Read an object with a name and arguments, and nothing but those, as a call."""
    if not isinstance(value, dict) or value.keys() - {"name", "id", "type", *ARGUMENTS}:
        return None
    args = next((value[key] for key in ARGUMENTS if key in value), None)
    if isinstance(args, str):
        try:
            args = json.loads(args)
        except ValueError:
            return None
    return (value["name"], args) if isinstance(value.get("name"), str) and isinstance(args, dict) else None

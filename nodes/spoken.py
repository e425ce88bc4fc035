"""Calls that a model wrote as text, as local models do. Read as calls only if nothing is left to guess (B039)."""

import json
import re
from collections.abc import Collection
from typing import Any
from uuid import uuid4

from langchain_core.messages import AIMessage, ToolCall

from nodes.collect import parsed
from nodes.text import text_of

TAGGED = re.compile(
    r"<(?P<tag>(?:tool|function)_calls?)>\s*(?P<body>.*?)\s*(?:</(?P=tag)>|\Z)"
    r"|<function=(?P<name>[\w.-]{1,64})>\s*(?P<args>.*?)\s*(?:</function>|\Z)"
    r"|(?:\[TOOL_CALLS\]|<\|(?:tool_call|python_tag)\|>)\s*(?P<rest>[\[{].*)"
    r"|<(?P<xml>invoke) name=.*?(?:</invoke>|\Z)|<(?:｜tool▁calls?▁begin｜|\|tool_calls?_(?:section_)?begin\|)>.*",
    re.DOTALL | re.IGNORECASE,
)
"""Of Hermes and Qwen, Llama, Mistral and Granite; what Anthropic, DeepSeek and Kimi write is seen, but not read."""

FENCED = re.compile(r"```(?:json|tool_call)?\s*\n(.*?)\n```", re.DOTALL)
OPENING = re.compile(
    r"<(?:tool|function)_calls?>|<function=|\[TOOL_CALLS\]|<\|(?:tool_call|python_tag|tool_calls?_(?:section_)?begin)\|>"
    r"|<invoke name=|<｜tool▁calls?▁begin｜>",
    re.IGNORECASE,
)
FORMS = (
    *(("name", args) for args in ("arguments", "parameters", "args")),
    ("tool", "tool_input"),
    ("action", "action_input"),
)
"""How an object names a tool and its arguments."""

Spoken = list[tuple[str, dict[str, Any]]]


def with_spoken_calls(answer: AIMessage, mounted: Collection[str]) -> AIMessage:
    """Return the answer with the calls that its text spells out as real ones, if every one is complete and mounted."""
    if answer.tool_calls or answer.invalid_tool_calls:
        return answer
    before, calls = spoken_calls(text_of(answer))
    if not calls or any(name not in mounted for name, _ in calls):
        return answer
    made = [ToolCall(name=name, args=args, id=f"call_{uuid4().hex[:20]}", type="tool_call") for name, args in calls]
    return answer.model_copy(update={"content": before, "tool_calls": made})


def looks_like_call(answer: AIMessage) -> bool:
    """Whether the text ends in a call, whole or broken, rather than being an answer that happens to be JSON."""
    text = text_of(answer)
    tagged = parted(text)[1]
    return bool(tagged and TAGGED.sub("", tagged).strip() == "") or bool(spoken_calls(text)[1])


def spoken_calls(text: str) -> tuple[str, Spoken]:
    """Return what a text says before its calls, and (name, arguments) of each; none if anything stands after them."""
    before, tagged = parted(text)
    if tagged:
        bodies = [body_of(found) for found in TAGGED.finditer(tagged)]
        complete = not TAGGED.sub("", tagged).strip()
    else:
        before, text = "", text.strip().removeprefix("\ufeff")
        fenced = FENCED.fullmatch(text)
        bodies, complete = [fenced[1] if fenced else text], True
    found = [call for body in bodies for call in calls_in(body)]
    return (before, found) if complete and all(found) else ("", [])


def body_of(found: re.Match[str]) -> str:
    """Return what stands in a tag as JSON, if it is read at all."""
    if found["name"]:
        return f'{{"name": {json.dumps(found["name"])}, "arguments": {found["args"]}}}'
    return found["body"] or found["rest"] or ""


def parted(text: str) -> tuple[str, str]:
    """Part a text before its first tag; a tag inside a code block is quoted, not spoken."""
    opening = OPENING.search(text)
    if opening is None or text.count("`", 0, opening.start()) % 2:
        return text.strip(), ""
    return text[: opening.start()].strip(), text[opening.start() :].strip()


def calls_in(body: str) -> list[Any]:
    """Read one body: a call, or a list of calls; an entry that is none gives None."""
    if not body.startswith(("{", "[")):
        return [None]
    read, _ = parsed(f'{{"calls": {body}}}')
    value = read["calls"] if read else None
    if isinstance(value, dict) and value.keys() == {"tool_calls"}:
        value = value["tool_calls"]
    return [as_call(one) for one in (value if isinstance(value, list) else [value])] or [None]


def as_call(value: Any) -> tuple[str, dict[str, Any]] | None:
    """Read an object with a name and arguments, and nothing but those, as a call."""
    if not isinstance(value, dict):
        return None
    plain = {key: one for key, one in value.items() if key not in ("id", "type", "index")}
    if plain.keys() == {"function"}:
        return as_call(plain["function"])
    form = next((form for form in FORMS if plain.keys() == set(form)), None)
    name, args = (plain[key] for key in form) if form else (None, None)
    if isinstance(args, str):
        args, _ = parsed(args) if args.strip() else (None, "")
    return (name, args) if isinstance(name, str) and isinstance(args, dict) else None

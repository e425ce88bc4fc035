"""The rules on `tools` and `tool_choice`: what a Chat Completions server asks of the functions it is offered.

Part of `wire_rules`, which says how a rule is read. Schemas are checked for what OpenAI complains about.
"""

import re
from collections.abc import Iterator
from typing import Any

Body = dict[str, Any]

NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
MAX_TOOLS = 128
MAX_DESCRIPTION_CHARS = 1024
SCHEMA_TYPES = ("object", "array", "string", "number", "integer", "boolean", "null")
SCHEMA_SHAPE = {"properties": dict, "$defs": dict, "required": list, "anyOf": list, "oneOf": list, "allOf": list}


def tools_have_schemas(body: Body, _: Any) -> Iterator[str]:
    """1 to 128 functions with distinct names, short descriptions and a JSON Schema object as parameters.

    `strict: true` asks that every object closes `additionalProperties` and requires all of its properties.
    """
    tools = body.get("tools", [{}])
    if not isinstance(tools, list) or not 1 <= len(tools) <= MAX_TOOLS:
        yield f"Invalid 'tools': expected a list of 1 to {MAX_TOOLS} tools."
        return
    names: set[str] = set()
    for i, tool in enumerate(tools if "tools" in body else ()):
        function = tool.get("function") if isinstance(tool, dict) and tool.get("type") == "function" else None
        if not isinstance(function, dict):
            yield f"Invalid 'tools[{i}]': expected {{'type': 'function', 'function': {{…}}}}."
            return
        yield from function_faults(function, f"tools[{i}].function")
        if function["name"] in names:
            yield f"Duplicate tool name {function['name']!r}."
        names.add(function["name"])


def choice_is_possible(body: Body, _: Any) -> Iterator[str]:
    """`tool_choice` and `parallel_tool_calls` come with tools; a choice is a known word or a tool sent."""
    for key in ("tool_choice", "parallel_tool_calls"):
        if key in body and "tools" not in body:
            yield f"'{key}' is only allowed when 'tools' are specified."
    choice = body.get("tool_choice", "auto")
    named = (choice.get("function") or {}).get("name") if isinstance(choice, dict) else None
    names = [tool["function"]["name"] for tool in body.get("tools", ())]
    if named not in names and (named or choice not in ("auto", "none", "required")):
        yield f"Invalid 'tool_choice': {choice!r} is neither auto, none, required nor one of {names}."


def name_faults(name: Any, path: str) -> Iterator[str]:
    if not isinstance(name, str) or not NAME.fullmatch(name):
        yield f"Invalid '{path}': {name!r} does not match '^[a-zA-Z0-9_-]{{1,64}}$'."


def function_faults(function: dict[str, Any], path: str) -> Iterator[str]:
    yield from name_faults(function.get("name"), f"{path}.name")
    description = function.get("description", "")
    if not isinstance(description, str) or len(description) > MAX_DESCRIPTION_CHARS:
        yield f"Invalid '{path}.description': expected at most {MAX_DESCRIPTION_CHARS} characters."
    schema = function.get("parameters", {"type": "object", "properties": {}})
    if not isinstance(schema, dict) or schema.get("type") != "object" or "properties" not in schema:
        yield f"Invalid schema for function {function['name']!r}: expected type 'object' with properties."
        return
    for context, node in nodes_of(schema):
        for fault in node_faults(node, strict=function.get("strict") is True):
            yield f"Invalid schema for function {function['name']!r}: In context={context}, {fault}"


def nodes_of(schema: Any, context: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Yield a JSON Schema, then every schema inside it, each with its path as OpenAI prints it.

    Each is to be checked by `node_faults` before the next is asked for.
    """
    yield context, schema
    if not isinstance(schema, dict):
        return
    for key in ("properties", "$defs"):
        for name, child in schema.get(key, {}).items():
            yield from nodes_of(child, (*context, key, name))
    if "items" in schema:
        yield from nodes_of(schema["items"], (*context, "items"))
    for key in ("anyOf", "oneOf", "allOf"):
        for i, child in enumerate(schema.get(key, ())):
            yield from nodes_of(child, (*context, key, str(i)))


def node_faults(node: Any, *, strict: bool) -> Iterator[str]:
    if not isinstance(node, dict) or not all(
        isinstance(node[key], kind) for key, kind in SCHEMA_SHAPE.items() if key in node
    ):
        yield f"{str(node)[:80]} is not a schema."
        return
    kinds = node.get("type", [])
    kinds = kinds if isinstance(kinds, list) else [kinds]
    if unknown := [kind for kind in kinds if kind not in SCHEMA_TYPES]:
        yield f"{unknown[0]!r} is not a type."
    if "array" in kinds and "items" not in node:
        yield "array schema missing items."
    if strict and "object" in kinds:
        if node.get("additionalProperties") is not False:
            yield "'additionalProperties' is required to be supplied and to be false."
        if sorted(map(str, node.get("required", ()))) != sorted(node.get("properties", ())):
            yield "'required' must be supplied and be an array including every key in properties."

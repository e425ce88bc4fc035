"""Arguments of a call: validated strictly, field by field, after a few safe coercions. It guesses nothing.

The coercions are all of this list: a text that is a whole number where one is wanted ("12" → 12), a text that is a
number where one is wanted, "true" and "false" where a truth value is wanted, a number without a fraction where a whole
one is wanted (3.0 → 3), and, by pydantic's JSON mode, ISO dates and times and the values of enums.
"""

import json
import re
from collections.abc import Sequence
from typing import Any

import jsonschema
from langchain_core.tools import BaseTool
from pydantic import BaseModel, ValidationError

Location = tuple[str | int, ...]
Problem = tuple[Location, str, str, Any]
"""Where, what the field is wanted to be (integer, number, boolean or else empty), the message, and what came."""

WANTED = {"int_type": "integer", "float_type": "number", "bool_type": "boolean", "int_from_float": "integer"}
MISSING = "Field required"
WHOLE = re.compile(r"[+-]?\d{1,18}")
DECIMAL = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d{1,3})?")


class BadArguments(ValueError):
    """Arguments that do not fit; the message names each field, what it must be and what came."""


def checked(tool: BaseTool, args: dict[str, Any], schema: dict[str, Any]) -> dict[str, Any]:
    """Return arguments that fit the tool, coerced as the module says. Raises BadArguments.

    `schema` is the JSON schema of the parameters as the model was sent it.
    """
    if strange := unknown_keys(args, schema):
        known = ", ".join(schema.get("properties", {})) or "none"
        raise BadArguments(f"unknown: {', '.join(strange)}; the parameters are {known}.")
    problems = problems_with(tool, args, schema)
    mended = args
    for location, wanted, _, came in problems:
        value = coerced(came, wanted)
        mended = replaced(mended, location, value) if value is not None else mended
    if mended is not args:
        problems = problems_with(tool, mended, schema)
    if problems:
        raise BadArguments(" ".join(told(problem) for problem in problems[:8]))
    return mended


def problems_with(tool: BaseTool, args: dict[str, Any], schema: dict[str, Any]) -> Sequence[Problem]:
    """List what does not fit, strictly: by the tool's pydantic model, or by its JSON schema if that is all it has."""
    model = tool.tool_call_schema
    if isinstance(model, dict):
        errors = jsonschema.Draft202012Validator(schema).iter_errors(args)
        return [
            (tuple(e.absolute_path), e.validator_value if e.validator == "type" else "", e.message, e.instance)
            for e in errors
        ]
    assert issubclass(model, BaseModel)
    try:
        model.model_validate_json(json.dumps(args), strict=True)
    except ValidationError as error:
        return [(e["loc"], WANTED.get(e["type"], ""), e["msg"], e["input"]) for e in error.errors()]
    return []


def unknown_keys(value: Any, schema: dict[str, Any], path: str = "") -> list[str]:
    """List the dotted names of keys that a closed object of the schema does not know, at every level."""
    if branches := schema.get("anyOf"):
        return min(
            (unknown_keys(value, branch, path) for branch in branches if may_be(value, branch)), key=len, default=[]
        )
    if isinstance(value, list):
        items = schema.get("items", {})
        return [name for n, one in enumerate(value) for name in unknown_keys(one, items, f"{path}{n}.")]
    if not isinstance(value, dict) or "properties" not in schema:
        return []
    known = schema["properties"]
    strange = [f"{path}{key}" for key in value if key not in known and schema.get("additionalProperties") is False]
    return strange + [
        name for key in value if key in known for name in unknown_keys(value[key], known[key], f"{path}{key}.")
    ]


def may_be(value: Any, schema: dict[str, Any]) -> bool:
    """Whether an object or a list can be meant by this branch of a union."""
    return schema.get("type") in (
        "object" if isinstance(value, dict) else "array" if isinstance(value, list) else "",
        None,
    )


def coerced(value: Any, wanted: Any) -> Any:
    """Return the value as what is wanted, None where that would be a guess."""
    match value, wanted:
        case str(), "integer" if WHOLE.fullmatch(value.strip()):
            return int(value)
        case str(), "number" if DECIMAL.fullmatch(value.strip()):
            return float(value)
        case str(), "boolean" if value.strip().lower() in ("true", "false"):
            return value.strip().lower() == "true"
        case float(), "integer" if value.is_integer():
            return int(value)
    return None


def replaced(args: Any, location: Location, value: Any) -> Any:
    """Return a copy with one place changed; a place that is not there, as in a union's branch, changes nothing."""
    if not location:
        return value
    head, *rest = location
    if isinstance(args, dict) and head in args:
        return {**args, head: replaced(args[head], tuple(rest), value)}
    if isinstance(args, list) and isinstance(head, int) and head < len(args):
        return [*args[:head], replaced(args[head], tuple(rest), value), *args[head + 1 :]]
    return value if not isinstance(args, dict | list) else args


def told(problem: Problem) -> str:
    """Say one problem: the field, what it must be, what came."""
    location, _, message, came = problem
    if message == MISSING:
        return f"{'.'.join(map(str, location))}: is required and missing."
    shown = json.dumps(came, ensure_ascii=False, default=str)
    where = ".".join(map(str, location)) or "arguments"
    return f"{where}: {message}; got {shown if len(shown) <= 80 else shown[:77] + '…'}."

"""Arguments of a call: validated strictly, field by field, after a few safe coercions. It guesses nothing.

The coercions are all of this list: a text that is a whole number where one is wanted ("12" → 12), a text that is a
number where one is wanted, "true" and "false" where a truth value is wanted, a number without a fraction where a whole
one is wanted (3.0 → 3), and, by pydantic's JSON mode, ISO dates and times and the values of enums.
"""

import json
import math
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from jsonschema.exceptions import ValidationError as SchemaProblem
from pydantic import BaseModel, ValidationError

from nodes.schema import Judge, Schema, named_by

Location = tuple[str | int, ...]
Problem = tuple[Location, str, str, Any]
"""Where, what the field is wanted to be (integer, number, boolean or else empty), the message, and what came."""

WANTED = {"int_type": "integer", "float_type": "number", "bool_type": "boolean", "int_from_float": "integer"}
MISSING = "Field required"
MOST_TOLD = 8
WHOLE = re.compile(r"[+-]?(0|[1-9]\d{0,300})", re.ASCII)
DECIMAL = re.compile(r"[+-]?((0|[1-9]\d*)\.?\d*|\.\d+)([eE][+-]?\d{1,3})?", re.ASCII)


class BadArguments(ValueError):
    """Arguments that do not fit; the message names each field, what it must be and what came."""


def checked(args: dict[str, Any], schema: Schema, by: Judge) -> dict[str, Any]:
    """Return arguments that fit, coerced as the module says. Raises BadArguments.

    `schema` is the JSON schema of the parameters as the model was sent it, `by` what judges the values.
    """
    if strange := list(unknown_keys(args, schema, schema)):
        known = ", ".join(schema.get("properties", {})) or "none"
        raise BadArguments(f"unknown: {', '.join(strange)}; the parameters are {known}.")
    problems = problems_with(args, by)
    mended = mend(args, problems)
    if mended is not args:
        problems = problems_with(mended, by)
    if problems:
        raise BadArguments(say(problems))
    return mended


def problems_with(args: dict[str, Any], by: Judge) -> Sequence[Problem]:
    """List what does not fit, strictly: by the tool's pydantic model, or by its JSON schema if that is all it has."""
    if isinstance(by, type) and issubclass(by, BaseModel):
        try:
            by.model_validate_json(json.dumps(args), strict=True)
        except ValidationError as error:
            return of_model(error)
        return []
    return [problem for error in by.iter_errors(args) for problem in of_schema(error)]


def of_model(error: ValidationError) -> list[Problem]:
    """Read what pydantic found."""
    return [(e["loc"], WANTED.get(e["type"], ""), e["msg"], e["input"]) for e in error.errors(include_url=False)]


def of_schema(error: SchemaProblem) -> Iterator[Problem]:
    """Read what jsonschema found: each missing name by itself, and a union by what each of its branches wants."""
    at = tuple(error.absolute_path)
    if error.validator == "required":
        name = next((name for name in error.validator_value if error.message.startswith(repr(name))), "")
        yield (*at, name), "", MISSING, error.instance
    elif error.context:
        for branch in error.context:
            yield from of_schema(branch)
    elif error.validator == "type":
        kinds = error.validator_value
        for kind in [kinds] if isinstance(kinds, str) else kinds:
            yield at, kind, f"must be of type {kind}", error.instance
    else:
        yield at, "", error.message, error.instance


def unknown_keys(value: Any, schema: Schema, root: Schema, path: str = "") -> Iterator[str]:
    """Yield the dotted names of keys that a closed object of the schema does not know, at every level."""
    if ref := schema.get("$ref"):
        schema = named_by(ref, root)
    if branches := schema.get("anyOf") or schema.get("oneOf"):
        found = [list(unknown_keys(value, branch, root, path)) for branch in branches if may_be(value, branch)]
        yield from min(found, key=len, default=[])
    elif isinstance(value, list):
        first: list[Schema] = schema.get("prefixItems", [])
        for n, one in enumerate(value):
            items = first[n] if n < len(first) else schema.get("items")
            yield from unknown_keys(one, items, root, f"{path}{n}.") if isinstance(items, dict) else ()
    elif isinstance(value, dict):
        known, rest = schema.get("properties", {}), schema.get("additionalProperties")
        for key, one in value.items():
            inner = known.get(key, rest)
            if isinstance(inner, dict):
                yield from unknown_keys(one, inner, root, f"{path}{key}.")
            elif key not in known and rest is False:
                yield f"{path}{key} (known there: {', '.join(known) or 'none'})" if path else key


def may_be(value: Any, schema: Schema) -> bool:
    """Whether an object or a list can be meant by this branch of a union."""
    kind = "object" if isinstance(value, dict) else "array" if isinstance(value, list) else ""
    return bool(schema.get("type", kind) == kind)


def mend(args: dict[str, Any], problems: Iterable[Problem]) -> dict[str, Any]:
    """Return the arguments with what can be coerced coerced, each place once; the same object if nothing can."""
    mended, done = args, set()
    for location, wanted, _, came in problems:
        at = place(args, location)
        if at not in done and (value := coerced(came, wanted)) is not None:
            done.add(at)
            mended = replaced(mended, at, value)
    return mended


def place(args: Any, location: Location) -> Location:
    """Return the location without the names of union branches that pydantic puts into it."""
    found: list[str | int] = []
    for step in location:
        inside = (isinstance(args, dict) and step in args) or (
            isinstance(args, list) and isinstance(step, int) and step < len(args)
        )
        if inside:
            found.append(step)
            args = args[step]
    return tuple(found)


def replaced(args: Any, location: Location, value: Any) -> Any:
    """Return a copy with one place changed."""
    if not location:
        return value
    head, *rest = location
    copy: Any = dict(args) if isinstance(args, dict) else list(args)
    copy[head] = replaced(args[head], tuple(rest), value)
    return copy


def coerced(value: Any, wanted: str) -> Any:
    """Return the value as what is wanted, None where that would be a guess."""
    match value, wanted:
        case str(), "integer" if WHOLE.fullmatch(value.strip()):
            return int(value)
        case str(), "number" if DECIMAL.fullmatch(value.strip()) and math.isfinite(float(value)):
            return float(value)
        case str(), "boolean" if value.strip().lower() in ("true", "false"):
            return value.strip().lower() == "true"
        case float(), "integer" if value.is_integer():
            return int(value)
    return None


def say(problems: Iterable[Problem]) -> str:
    """Say each problem: the field, what it must be, what came."""
    said = list(dict.fromkeys(map(told, problems)))
    more = f" And {len(said) - MOST_TOLD} more." if len(said) > MOST_TOLD else ""
    return " ".join(said[:MOST_TOLD]) + more


def told(problem: Problem) -> str:
    """Say one problem."""
    location, _, message, came = problem
    where = ".".join(map(str, location)) or "arguments"
    if message == MISSING:
        return f"{where}: is required and missing."
    shown = json.dumps(came, ensure_ascii=False, default=str)
    return f"{where}: {message}; got {shown if len(shown) <= 80 else shown[:79] + '…'}."

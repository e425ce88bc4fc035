"""Filters of a search, evaluated on decoded values: one meaning on every database, no key ever reaches SQL.

Semantics are those of LangGraph's in-memory store: every condition must hold, dicts without operators
compare field by field, lists element by element, numbers as numbers. True is not 1.
"""

import re
from collections.abc import Callable, Mapping
from operator import ge, gt, le, lt
from typing import Any

from memory.errors import BadValue

_COMPARE: dict[str, Callable[[Any, Any], bool]] = {"$gt": gt, "$gte": ge, "$lt": lt, "$lte": le}
# Nothing here reaches SQL; such a key is an attack on some other store, or a mistake.
_NO_KEY = re.compile("[\\x00-\\x1f'\"`\\\\\ud800-\udfff]")
OPERATORS = ("$eq", "$ne", *_COMPARE)


def check(condition: Mapping[str, Any]) -> None:
    """Refuse, before anything is read, unknown operators and keys that no field has. Raises BadValue."""
    for key, wanted in condition.items():
        if not isinstance(key, str) or not key or _NO_KEY.search(key):
            raise BadValue(f"Invalid filter key: {key!r}; a key is a text without quotes and control characters")
        for name, operand in wanted.items() if isinstance(wanted, Mapping) else ():
            if not str(name).startswith("$"):
                check({name: operand})
            elif name not in OPERATORS:
                known = ", ".join(OPERATORS)
                raise BadValue(f"Unsupported operator: {name!r} in the filter on {key!r}; known are {known}")


def matches(value: Mapping[str, Any], condition: Mapping[str, Any]) -> bool:
    """Whether a stored value fulfils every condition; a missing field counts as None.

    A key with full stops that is no field itself is a path, as it is in LangGraph's SqliteStore.
    """
    return all(_holds(_field(value, key), wanted) for key, wanted in condition.items())


def _field(value: Mapping[str, Any], key: str) -> Any:
    if key in value or "." not in key:
        return value.get(key)
    first, _, rest = key.partition(".")
    inner = value.get(first)
    return _field(inner, rest) if isinstance(inner, Mapping) else None


def _holds(stored: Any, wanted: Any) -> bool:
    if isinstance(wanted, Mapping):
        if any(str(name).startswith("$") for name in wanted):
            return all(_operate(stored, name, operand) for name, operand in wanted.items())
        return isinstance(stored, Mapping) and matches(stored, wanted)
    return _equal(stored, wanted)


def _operate(stored: Any, name: str, operand: Any) -> bool:
    if name in ("$eq", "$ne"):
        return _equal(stored, operand) == (name == "$eq")
    both = (stored, operand)
    comparable = all(_is_number(x) for x in both) or all(isinstance(x, str) for x in both)
    return comparable and name in _COMPARE and _COMPARE[name](stored, operand)


def _equal(stored: Any, wanted: Any) -> bool:
    if isinstance(wanted, list | tuple):
        same_length = isinstance(stored, list) and len(stored) == len(wanted)
        return same_length and all(map(_equal, stored, wanted))
    if isinstance(wanted, Mapping):
        same_keys = isinstance(stored, Mapping) and stored.keys() == wanted.keys()
        return same_keys and all(_equal(stored[key], wanted[key]) for key in wanted)
    if isinstance(stored, bool) or isinstance(wanted, bool):
        return stored is wanted
    return bool(stored == wanted)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)

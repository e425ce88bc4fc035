"""What may be stored: JSON that comes back as it went in, and names that every database can carry."""

import math
import re
from collections.abc import Mapping
from typing import Any

import orjson
from langgraph.store.base import GetOp, InvalidNamespaceError, Op, PutOp, validate_op_namespace

from memory.errors import BadValue

_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")
_OPTIONS = orjson.OPT_PASSTHROUGH_DATETIME | orjson.OPT_PASSTHROUGH_DATACLASS | orjson.OPT_PASSTHROUGH_SUBCLASS


def is_storable(text: str) -> bool:
    """Whether every database can carry the text: no NUL, no lone surrogate."""
    return not _UNSTORABLE.search(text)


def encode(name: str, value: Any) -> bytes:
    """Encode a value as JSON. Raises BadValue, naming the place in it, if it would not come back the same."""
    if not isinstance(value, Mapping):
        raise BadValue(f"{name}: a value must be a dict, got {type(value).__name__}")
    try:
        encoded = orjson.dumps(dict(value), option=_OPTIONS)
        if b"\\u0000" not in encoded and orjson.loads(encoded) == value:
            return encoded
    except (TypeError, ValueError):
        pass
    _explain(name, value)
    return orjson.dumps(dict(value))


def _explain(place: str, value: Any) -> None:
    """Find what JSON cannot hold; tuples pass, as lists."""
    if isinstance(value, Mapping):
        for key, inner in value.items():
            if not isinstance(key, str):
                raise BadValue(f"{place}: a key must be a text, got {key!r}; use {str(key)!r}")
            _explain(place, key)
            _explain(f"{place}[{key!r}]", inner)
    elif isinstance(value, list | tuple):
        for position, inner in enumerate(value):
            _explain(f"{place}[{position}]", inner)
    elif problem := _problem(value):
        raise BadValue(f"{place}: {problem}; nothing was stored")


def _problem(value: Any) -> str:
    match value:
        case str() if not is_storable(value):
            return "a text with NUL or half a character cannot be stored, see memory.text.clean"
        case int() if not -(2**63) <= value < 2**63:
            return f"{value} is beyond 64 bits, store it as a text"
        case float() if not math.isfinite(value):
            return f"{value} is no number in JSON, store None or a text"
        case str() | int() | float() | None:
            return ""
    return f"JSON cannot hold {type(value).__name__}, store a text such as isoformat()"


def checked(op: Op) -> Op:
    """Return an operation with its namespace as a tuple, or refuse what LangGraph or a database forbids."""
    if isinstance(op, GetOp | PutOp):
        op = op._replace(namespace=tuple(op.namespace))
    validate_op_namespace(op)
    if not isinstance(op, PutOp):
        return op
    if not op.namespace:
        raise InvalidNamespaceError("a namespace needs at least one label, got an empty one")
    for text in op.namespace:
        if not is_storable(text):
            raise InvalidNamespaceError(f"half a character in the label {text!r}; memory.labels.label encodes it")
    if not isinstance(op.key, str) or not is_storable(op.key):
        raise BadValue(f"a key must be a text without NUL and half characters, got {op.key!r}; see memory.labels.label")
    return op

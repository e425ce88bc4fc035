"""Values of a state taken apart, so that a message that stays on the page is stored once and not in every checkpoint.

A part bears the hash of its bytes as its name: equal values are one part, whoever wrote them. It stores nothing.
"""

from base64 import urlsafe_b64encode
from collections.abc import Iterable, Iterator, Mapping
from hashlib import sha256
from typing import Any

from langgraph.checkpoint.serde.base import SerializerProtocol

MARK = "palimpsest:parts"
"""The key of what stands for a value: the names of its parts, which are its items if `ITEMS` says so."""

ITEMS = "items"
SMALL = 200
"""Bytes up to which a value stays where it is."""

Part = tuple[str, bytes]
"""A serialized value with its type, as the serializer names it."""


def taken_apart(values: Mapping[str, Any], serde: SerializerProtocol) -> tuple[dict[str, Any], dict[str, Part]]:
    """Return the values with marks for the large ones, and the parts by their names."""
    left: dict[str, Any] = {}
    parts: dict[str, Part] = {}
    for channel, value in values.items():
        made = [serde.dumps_typed(item) for item in (value if isinstance(value, list) else [value])]
        if sum(len(data) for _, data in made) <= SMALL:
            left[channel] = value
            continue
        names = [name_of(part) for part in made]
        parts.update(zip(names, made, strict=True))
        left[channel] = {MARK: " ".join(names), ITEMS: isinstance(value, list)}
    return left, parts


def name_of(part: Part) -> str:
    """Name a part by its content: 120 bits of a hash."""
    kind, data = part
    return urlsafe_b64encode(sha256(kind.encode() + b"\0" + data).digest()[:15]).decode()


def names_in(values: Iterable[Any]) -> Iterator[str]:
    """Yield the names of the parts that marks among the values stand for."""
    for value in values:
        if isinstance(value, dict) and MARK in value:
            yield from value[MARK].split()


def put_together(values: Mapping[str, Any], parts: Mapping[str, Part], serde: SerializerProtocol) -> dict[str, Any]:
    """Return the values whole again. Raises KeyError if a part is missing."""
    whole = {}
    for channel, value in values.items():
        if isinstance(value, dict) and MARK in value:
            items = [serde.loads_typed(parts[name]) for name in value[MARK].split()]
            whole[channel] = items if value[ITEMS] else items[0]
        else:
            whole[channel] = value
    return whole

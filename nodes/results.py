"""Results of tools: one record for each call, and one text that is true, readable and bounded.

It runs no tool. What a tool returned becomes text here; what it raised becomes a record in nodes/engine.py.
"""

import dataclasses
import json
import math
from collections.abc import Iterator, Mapping, Sequence, Set, ValuesView
from dataclasses import dataclass
from datetime import date, time, timedelta
from decimal import Decimal
from enum import Enum
from fractions import Fraction
from functools import singledispatch
from itertools import islice
from pathlib import PurePath
from typing import Any, Literal
from uuid import UUID

from langchain_core.messages import ToolMessage
from pydantic import BaseModel

from memory.text import CONTROL, MOST_JOINED, clean, clean_all, is_bare, within_sign
from nodes.collect import MAX_DEPTH, depth_of
from nodes.media import is_media
from nodes.valid import NO_OUTPUT

Kind = Literal[
    "",
    "unknown_tool",
    "invalid_arguments",
    "repeated",
    "not_the_users",
    "secret",
    "refused",
    "timeout",
    "business",
    "internal",
]

CUT = "[… {missing} of {total} characters left out here; {how} …]"
READ_ON = "read on with tool_result(id={id!r}, offset={offset})"
NOT_KEPT = "they were not kept"
MAX_ITEMS = 10_000
"""Items that are taken from a generator, which may never end."""

UNSHOWN = "<{kind} that cannot be shown: {error}>"
MORE = f"… more than {MAX_ITEMS} items; the rest was not read"
ENDS = ("\n", "},", "],", "。", ". ")
"""Where a text may be cut, best first: after a line, a record, a sentence."""


@dataclass(frozen=True, kw_only=True)
class Record:
    """What became of one call. `ms` is its duration; `id` is what the log knows an internal error by."""

    ok: bool
    kind: Kind = ""
    attempts: int = 0
    ms: int = 0
    id: str = ""


def result_message(
    call: Mapping[str, Any], content: Any, record: Record, given: ToolMessage | None = None
) -> ToolMessage:
    """Make the one result of a call: text or blocks for the model; record, and what a tool `given` adds, beside it."""
    extra = storable(given.additional_kwargs) if given else {}
    return ToolMessage(
        content if is_blocks(content) else clean(str(content)) or NO_OUTPUT,
        name=call["name"] or "unknown",
        tool_call_id=call["id"] or "",
        status="success" if record.ok else "error",
        artifact=storable(given.artifact) if given else None,
        additional_kwargs={**(extra if isinstance(extra, dict) else {}), "record": dataclasses.asdict(record)},
    )


def presentable(value: Any) -> Any:
    """Return what a tool gave as text, or as a list of content blocks if it is one. It does not fail on any value."""
    if value is None:
        return NO_OUTPUT
    if isinstance(value, Iterator):
        value = taken(value)  # what a generator raises is the tool's failure
    try:
        shown = plain(value)
        if is_blocks(shown):
            return storable(shown) if any(is_media(one) or not is_bare(one["text"]) for one in shown) else NO_OUTPUT
        text = shown if isinstance(shown, str) else json.dumps(shown, ensure_ascii=False)
        return NO_OUTPUT if is_bare(text) else text
    except Exception as error:  # in a circle, too many digits, methods that raise
        return UNSHOWN.format(kind=type(value).__name__, error=type(error).__name__)


def storable(value: Any) -> Any:
    """Return a value in plain form as a checkpoint can hold it. It does not fail on any value."""
    try:
        made = clean_all(plain(value))
        if depth_of(made) > MAX_DEPTH:
            raise RecursionError
        return made
    except Exception as error:
        return UNSHOWN.format(kind=type(value).__name__, error=type(error).__name__)


def is_blocks(value: Any) -> bool:
    """Whether a value is a list of content blocks as providers know them, not of records that have a type."""
    return isinstance(value, list) and bool(value) and all(is_media(one) or is_text(one) for one in value)


def is_text(block: Any) -> bool:
    """Whether a value is a block of text."""
    return isinstance(block, dict) and block.get("type") == "text" and isinstance(block.get("text"), str)


@singledispatch
def plain(value: Any) -> Any:
    """Return a value as JSON can hold it and a reader would call true: nothing escaped, nothing pretended.

    What is registered below goes by its type; other objects by their fields, their own list, or their name.
    """
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: plain(getattr(value, field.name)) for field in dataclasses.fields(value)}
    for method in () if isinstance(value, type) else ("tolist", "item"):  # numpy, torch, pandas
        if callable(found := getattr(value, method, None)):
            return plain(found())
    if isinstance(getattr(value, "mode", None), str) and hasattr(value, "size"):
        return f"<image of {value.size} pixels, {value.mode}>"
    text = clean(str(value))
    return f"<{type(value).__name__}>" if " at 0x" in text else f"<{type(value).__name__}: {text}>"


plain.register(str, clean)
plain.register(bytes, lambda value: text_of_bytes(value))
for raw in (bytearray, memoryview):
    plain.register(raw, lambda value: text_of_bytes(bytes(value)))
plain.register(float, lambda value: float(value) if math.isfinite(value) else str(value))
plain.register(Enum, lambda value: plain(value.value))
plain.register(BaseModel, lambda value: plain(value.model_dump()))
plain.register(Iterator, lambda value: plain(taken(value)))
plain.register(Mapping, lambda value: mapping_of(value))
for kept in (type(None), bool, int):
    plain.register(kept, lambda value: value)
for listed in (Sequence, ValuesView):
    plain.register(listed, lambda value: list_of(value))
plain.register(Set, lambda value: sorted((plain(one) for one in value), key=str))
for dated in (date, time):
    plain.register(dated, lambda value: value.isoformat())
for named in (Decimal, Fraction, complex, timedelta, UUID, PurePath):
    plain.register(named, str)


def list_of(values: Any) -> Any:
    """Return a sequence as a list, a named tuple by its names."""
    return plain(values._asdict()) if hasattr(values, "_asdict") else [plain(one) for one in values]


def taken(values: Iterator[Any]) -> list[Any]:
    """Take the items of a generator, up to a limit, and say if there are more."""
    items = list(islice(values, MAX_ITEMS + 1))
    return items if len(items) <= MAX_ITEMS else [*items[:MAX_ITEMS], MORE]


def mapping_of(value: Mapping[Any, Any]) -> Any:
    """Return a mapping with texts as keys; as pairs if two of them would be one text."""
    made = {str(plain(key)): plain(one) for key, one in value.items()}
    return made if len(made) == len(value) else [[plain(key), plain(one)] for key, one in value.items()]


def text_of_bytes(value: bytes) -> str:
    """Return bytes as the text that they are, or say that they are none."""
    try:
        text = value.decode()
    except UnicodeDecodeError:
        text = "\0"
    return f"<{len(value)} bytes of binary data>" if CONTROL.search(text) else text


def bounded(text: str, *, limit: int, id: str) -> str:
    """Cut a text to the limit at the end of a record or line, head and tail, with a note of what is missing between.

    `id` is where the whole is kept; empty if it is not. What is shown are `limit` characters at most, and the note.
    """
    if len(text) <= limit:
        return text
    head = cut_before(text, limit * 3 // 4)
    tail = cut_after(text, len(text) - limit // 5)
    how = READ_ON.format(id=id, offset=head) if id else NOT_KEPT
    note = CUT.format(missing=tail - head, total=len(text), how=how)
    return f"{text[:head].rstrip()}\n{note}\n{text[tail:]}"


def cut_before(text: str, limit: int, start: int = 0) -> int:
    """Return where to end a piece from `start` on: after the last line, record or sentence in its second half."""
    if limit >= len(text):
        return len(text)
    middle = (start + limit) // 2
    for end in ENDS:
        if (n := text.rfind(end, middle, limit)) >= 0:
            return n + len(end)
    return whole(text, limit)


def cut_after(text: str, start: int) -> int:
    """Return where to begin the last piece: after the first line, record or sentence that ends in its first half."""
    middle = (start + len(text)) // 2
    for end in ENDS:
        if (n := text.find(end, start, middle)) >= 0:
            return n + len(end)
    return whole(text, start)


def whole(text: str, n: int) -> int:
    """Return the nearest place at or before n where no character is cut off from its marks or its joined others."""
    for place in range(n, max(n - MOST_JOINED, 0), -1):
        if not within_sign(text, place):
            return place
    return n

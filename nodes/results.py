"""Results of tools: one record for each call, and one text that is true, readable and bounded.

It runs no tool. What a tool returned becomes text here; what it raised becomes a record in nodes/engine.py.
"""

import dataclasses
import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import date, time, timedelta
from decimal import Decimal
from enum import Enum
from functools import singledispatch
from itertools import islice
from pathlib import PurePath
from typing import Any, Literal
from uuid import UUID

from langchain_core.messages import ToolMessage
from pydantic import BaseModel

from memory.text import clean

Kind = Literal["", "unknown_tool", "invalid_arguments", "repeated", "refused", "timeout", "business", "internal"]

NO_OUTPUT = "(no output)"
CUT = "[… {missing} of {total} characters left out here; read on with tool_result(id={id!r}, offset={offset}) …]"
MAX_ITEMS = 10_000
"""Items that are taken from a generator."""

MARKS = ("\n", "}, ", "], ", "。", ". ")
BLOCKS = {"text", "image", "image_url", "audio", "video", "file", "input_image", "input_audio"}


@dataclass(frozen=True, kw_only=True)
class Record:
    """What became of one call. `ms` is its duration; `id` is what the log knows an internal error by."""

    ok: bool
    kind: Kind = ""
    attempts: int = 0
    ms: int = 0
    id: str = ""


def result_message(call: Mapping[str, Any], content: Any, record: Record, artifact: Any = None) -> ToolMessage:
    """Make the one result of a call: text or blocks for the model, the record and the artifact for people beside it."""
    return ToolMessage(
        content if is_blocks(content) else clean(str(content)) or NO_OUTPUT,
        name=call["name"] or "unknown",
        tool_call_id=call["id"],
        status="success" if record.ok else "error",
        artifact=plain(artifact),
        additional_kwargs={"record": dataclasses.asdict(record)},
    )


def presentable(value: Any) -> Any:
    """Return what a tool gave as text, or as a list of content blocks if it is one."""
    if value is None or isinstance(value, str):
        text = clean(value or "")
        return text if text.strip() else NO_OUTPUT
    if is_blocks(value):
        return value
    shown = plain(value)
    return shown if isinstance(shown, str) else json.dumps(shown, ensure_ascii=False, allow_nan=False)


def is_blocks(value: Any) -> bool:
    """Whether a value is a list of content blocks as providers know them."""
    return (
        isinstance(value, list)
        and bool(value)
        and all(isinstance(one, dict) and one.get("type") in BLOCKS for one in value)
    )


@singledispatch
def plain(value: Any) -> Any:
    """Return a value as JSON can hold it and a reader would call true: nothing escaped, nothing pretended.

    What is registered below goes by its type; other objects by their fields, their own list, or their name.
    """
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: plain(getattr(value, field.name)) for field in dataclasses.fields(value)}
    for method in ("tolist", "item"):  # numpy, torch, pandas
        if callable(found := getattr(value, method, None)):
            return plain(found())
    if hasattr(value, "size") and hasattr(value, "mode"):
        return f"<image of {value.size} pixels, {value.mode}; return an image block to show it>"
    return f"<{type(value).__name__}>" if " at 0x" in repr(value) else f"<{type(value).__name__}: {str(value)[:500]}>"


plain.register(str, clean)
plain.register(bytes, lambda value: text_of_bytes(value))
plain.register(bytearray, lambda value: text_of_bytes(bytes(value)))
plain.register(float, lambda value: value if math.isfinite(value) else str(value))
plain.register(Enum, lambda value: plain(value.value))
plain.register(BaseModel, lambda value: plain(value.model_dump()))
plain.register(Iterator, lambda value: [plain(one) for one in islice(value, MAX_ITEMS)])
plain.register(Mapping, lambda value: {str(plain(key)): plain(one) for key, one in value.items()})
for kept in (type(None), bool, int):
    plain.register(kept, lambda value: value)
for listed in (list, tuple):
    plain.register(listed, lambda value: [plain(one) for one in value])
for unordered in (set, frozenset):
    plain.register(unordered, lambda value: sorted((plain(one) for one in value), key=str))
for dated in (date, time):
    plain.register(dated, lambda value: value.isoformat())
for named in (timedelta, Decimal, UUID, PurePath, complex):
    plain.register(named, str)


def text_of_bytes(value: bytes) -> str:
    """Return bytes as the text that they are, or say that they are none."""
    try:
        return clean(value.decode())
    except UnicodeDecodeError:
        return f"<{len(value)} bytes of binary data>"


def bounded(text: str, *, limit: int, id: str) -> str:
    """Cut a text to the limit at the end of a record or line, head and tail, with a note of what is missing between."""
    if len(text) <= limit:
        return text
    head = text[: at_boundary(text, limit * 3 // 4)]
    tail = text[len(text) - limit // 5 :]
    tail = tail[tail.find("\n") + 1 :] if "\n" in tail[: len(tail) // 2] else tail
    note = CUT.format(missing=len(text) - len(head) - len(tail), total=len(text), id=id, offset=len(head))
    return f"{head.rstrip()}\n{note}\n{tail}"


def at_boundary(text: str, limit: int) -> int:
    """Return the last end of a line, a record or a sentence in the second half before the limit, else the limit."""
    ends = [text.rfind(mark, limit // 2, limit) + len(mark) for mark in MARKS if mark in text[limit // 2 : limit]]
    return max(ends, default=limit)

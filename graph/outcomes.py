"""How commands end: which errors are one line for a person, which ends of a turn are answers, and JSON for scripts."""

import json
import sqlite3
import sys
from collections.abc import Iterator
from typing import Any

from langchain_core.messages import BaseMessage, convert_to_openai_messages

from graph.locks import ThreadBusy
from graph.savers import BadThread
from graph.settings import BadSetting, CannotStart
from graph.telling import place
from graph.texts import ENGLISH, Say
from memory.block_specs import BlockRefused
from memory.errors import StoreError
from memory.owner import BadUser
from nodes.context import NotYourThread, UnknownTool

USAGE_ERRORS = (BadSetting, BadThread, BlockRefused, BadUser, NotYourThread, UnknownTool)
FAILURES = (CannotStart, StoreError, ThreadBusy, OSError, sqlite3.Error)
ANSWERED = ("answered", "cut_off", "max_steps", "stuck")


def one_line(error: BaseException) -> str:
    """Write an error as one line for a person."""
    return " ".join(str(error).split()) or type(error).__name__


def what_failed(values: dict[str, Any], say: Say = ENGLISH) -> Iterator[str]:
    """Say what of a turn was cut off or could not be kept; the answer stands all the same."""
    if values.get("stop_reason") == "cut_off":
        yield say("the model ran into its length limit; the answer is cut off")
    for step in values.get("steps", []):
        if step["node"] == "remember" and (reason := step["detail"].get("failed")):
            yield say(
                "not all of this turn went into memory; the next one tries again: {reason}", reason=say.told(reason)
            )


def sources(values: dict[str, Any]) -> list[str]:
    """Say what each number stands for by which the answer cites a passage of a document."""
    return [place(one) for step in values.get("steps", []) for one in step["detail"].get("cited", [])]


def as_openai(message: BaseMessage) -> dict[str, Any]:
    """Write a message in the form that everybody knows, with its id."""
    written = convert_to_openai_messages(message)
    assert isinstance(written, dict)
    return {"id": message.id, **written}


def json_text(value: object, *, indent: int | None = 2) -> str:
    """Write JSON with real characters, or escaped where the output could not carry them (B155)."""
    is_unicode = (sys.stdout.encoding or "").lower().startswith("utf")
    return json.dumps(value, ensure_ascii=not is_unicode, indent=indent, default=str)


def print_json(value: object) -> None:
    """Print a value as JSON."""
    print(json_text(value))

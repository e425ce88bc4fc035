"""The memory of a run, kind by kind: whose it is comes from the run. And how a message stands in the transcript."""

import json
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from langchain_core.messages import AnyMessage, BaseMessage, ToolMessage, message_to_dict

from memory.facts import Facts
from memory.ledger import Ledger
from memory.memories import Memories
from memory.times import clock_of
from memory.transcript import Entry, Transcript
from nodes.context import thread_of, user_of
from nodes.text import text_of

REPEATING = {"recall", "search_documents", "session_search", "tool_result"}
"""Tools whose results repeat what was kept before."""


def memories_of(runtime: Any) -> Memories:
    """Return the memories of the run's user."""
    return Memories(runtime.store, user=user_of(runtime))


def facts_of(runtime: Any) -> Facts:
    """Return the facts of the run's user."""
    return Facts(runtime.store, user=user_of(runtime))


def ledger_of(runtime: Any) -> Ledger:
    """Return the ledger of the run's user."""
    return Ledger(runtime.store, user=user_of(runtime))


def transcript_of(runtime: Any) -> Transcript:
    """Return the transcript of the run's thread."""
    return Transcript(runtime.store, user=user_of(runtime), thread=thread_of())


def present(runtime: Any) -> datetime:
    """Return the time by the clock of the run's store."""
    return clock_of(runtime.store)()


def entry_of(message: BaseMessage, at: datetime) -> Entry:
    """Write a message as the transcript keeps it: its text, and all of it as plain data."""
    data = json.loads(json.dumps(message_to_dict(message)["data"], default=str))
    stamp = at.astimezone(UTC).isoformat(timespec="microseconds")
    searched = not (isinstance(message, ToolMessage) and message.name in REPEATING)
    return Entry(id=str(message.id), role=message.type, text=text_of(message), at=stamp, data=data, searched=searched)


def unfiled(messages: Sequence[AnyMessage], runtime: Any) -> list[str]:
    """Return the ids of messages that the transcript does not hold word for word."""
    return [
        entry.id
        for entry in transcript_of(runtime).missing([entry_of(message, present(runtime)) for message in messages])
    ]

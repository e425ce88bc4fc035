"""The turns of a thread, read again from its checkpoints: last week's as well as the one that just ended.

It shows what is kept: turns whose checkpoints were pruned are gone, though the transcript has every word of them. A
turn that was played again, or forked, is told once for each time; `current` says which the thread goes on from.
"""

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, convert_to_messages
from langgraph.checkpoint.base import CheckpointTuple

from graph.admission import owner_in
from graph.savers import InThreads
from memory.catalogue import Thread, title_of
from nodes.text import calls_of, question_of, text_of
from nodes.trace import Step

READ_AT_ONCE = 100
LOOKED_INTO = 300


@dataclass(frozen=True, kw_only=True)
class Told:
    """One turn. `at` is when it began, ISO-8601 in UTC; `stop_reason` is empty if it did not end.

    Then `waits` holds what a person is asked, or `error` what broke it off, if anything did. `checkpoint` is where to
    fork it or go on from.
    """

    at: str
    question: str
    answer: str
    stop_reason: str
    steps: list[Step]
    waits: list[Any]
    error: str
    checkpoint: str
    current: bool


@dataclass(frozen=True, kw_only=True)
class Place:
    """One checkpoint in the tree of them."""

    parent: str
    source: str
    at: str


def turns_of(saver: InThreads, thread: str) -> list[Told]:
    """Return the turns of a thread that are kept, oldest first."""
    places: dict[str, Place] = {}
    ends: dict[str, CheckpointTuple] = {}
    going_on: set[str] = set()
    for found in checkpoints(saver, thread):  # newest first, so what follows a checkpoint is known before it
        id, place = found.checkpoint["id"], place_of(found)
        places[id] = place
        if id in going_on and place.source in COPIES:
            going_on.add(place.parent)
        if place.source == "loop":
            going_on.add(place.parent)
        if id not in going_on and place.source not in COPIES:
            ends[id] = found
    current = set(line(next(iter(places), ""), places))
    return [told(found, places, current=id in current) for id, found in reversed(ends.items())]


COPIES = ("fork", "update")
"""Checkpoints that no node wrote: a copy to play again from, an edit by hand."""


def owner_of(saver: InThreads, thread: str) -> str | None:
    """Return whose thread this is; None if no checkpoint says."""
    return owner_in(saver.get_tuple({"configurable": {"thread_id": thread}}))


def unfinished(saver: InThreads, *, user: str, known: Collection[str]) -> list[Thread]:
    """Return the user's threads of which no turn has ended, so that the catalogue lacks them, the last used first.

    Other users' threads are not in it either: so many of the newest are looked into, and no more.
    """
    lacking = islice((one for one in saver.threads() if one not in known), LOOKED_INTO)
    return [found for one in lacking if (found := begun_by(saver, one, user=user))]


def begun_by(saver: InThreads, thread: str, *, user: str) -> Thread | None:
    """Return what the checkpoints say of a thread that this user began; None if they do not say so."""
    newest = saver.get_tuple({"configurable": {"thread_id": thread}})
    values = newest.checkpoint["channel_values"] if newest else {}
    if newest is None or owner_in(newest) != user:
        return None
    at, title = newest.checkpoint["ts"], title_of(question_of(values.get("messages", [])))
    return Thread(id=thread, title=title, began=at, used=at, turns=0)


def checkpoints(saver: InThreads, thread: str) -> Iterator[CheckpointTuple]:
    """Yield the thread's checkpoints, newest first, a page at a time."""
    where: Any = {"configurable": {"thread_id": thread, "checkpoint_ns": ""}}
    before = None
    while page := list(saver.list(where, before=before, limit=READ_AT_ONCE)):
        yield from page
        before = page[-1].config


def place_of(found: CheckpointTuple) -> Place:
    """Read where a checkpoint stands."""
    parent = found.parent_config["configurable"]["checkpoint_id"] if found.parent_config else ""
    return Place(parent=parent, source=found.metadata.get("source", ""), at=found.checkpoint["ts"])


def line(id: str, places: dict[str, Place]) -> Iterator[str]:
    """Yield a checkpoint and those before it, as far as they are kept."""
    while id in places:
        yield id
        id = places[id].parent


def told(end: CheckpointTuple, places: dict[str, Place], *, current: bool) -> Told:
    """Read a turn from its last checkpoint."""
    values, id = end.checkpoint["channel_values"], end.checkpoint["id"]
    start = id
    for start in line(id, places):
        if places[start].source != "loop":
            break
    ran = places[id].source == "loop" and "branch:to:recall" not in values  # else these are the steps before
    messages: list[BaseMessage] = values.get("messages", [])
    given = values.get("__start__") or {}
    asked = convert_to_messages(given.get("messages") or []) if isinstance(given, dict) else []
    writes = end.pending_writes or []
    return Told(
        at=places[start].at,
        question=question_of(asked or messages),
        answer=answer_of(messages) if ran else "",
        stop_reason=values.get("stop_reason", "") if ran else "",
        steps=values.get("steps", []) if ran else [],
        waits=[one.value for _, channel, found in writes if channel == "__interrupt__" for one in found],
        error=next((str(found) for _, channel, found in writes if channel == "__error__"), ""),
        checkpoint=id,
        current=current,
    )


def answer_of(messages: list[BaseMessage]) -> str:
    """Return the text of the answer that ends the messages, if one does."""
    newest = messages[-1] if messages else None
    return text_of(newest) if isinstance(newest, AIMessage) and not calls_of(newest) else ""

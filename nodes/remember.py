"""remember: file the turn in the transcript, word for word; extract memories from what is due.

No model is called unless something is due. What cannot be extracted now is due again next turn.
"""

import json
from collections.abc import Generator, Sequence
from datetime import UTC, datetime
from typing import Any

from langchain_core.messages import AnyMessage, BaseMessage, HumanMessage, SystemMessage, ToolMessage, message_to_dict
from langgraph.runtime import Runtime

from memory.catalogue import Catalogue
from memory.facts import Facts
from memory.memories import Memories, Source
from memory.times import now
from memory.transcript import Entry, Transcript
from nodes import prompts
from nodes.calls import Failure, Plan, Reply, Request, reason_of
from nodes.close import close, is_ending
from nodes.context import Context, context_of, thread_of, user_of
from nodes.cut import is_over, window_of
from nodes.extract import Extraction, batches, lines_of, read_extraction
from nodes.state import State
from nodes.text import question_of, text_of
from nodes.trace import RememberDetail, Watch

REPEATING = {"recall", "search_documents", "session_search", "tool_result"}
"""Tools whose results repeat what was kept before."""


def remember(state: State, runtime: Runtime[Context]) -> Plan:
    """File every message of the thread that is not filed; extract what is due; write the abstract at the end of it.

    A store that fails does not take the answer with it: the step tells, and the next turn files what is missing.
    """
    watch = Watch("remember")
    if runtime.store is None:
        return {"close": False, "steps": watch.step({"filed": 0, "why": "no store"})}
    closing = is_ending(state)
    update: dict[str, Any] = {}
    try:
        update, told = yield from kept(state, runtime)
    except Exception as error:
        told = RememberDetail(failed=reason_of(error))
    return {**update, "close": bool(state.get("close")) and not closing, "steps": watch.step(told)}


def kept(state: State, runtime: Runtime[Context]) -> Generator[Request, Reply, tuple[dict[str, Any], RememberDetail]]:
    """Do it; return the update of `extracted_to`, if it moves, and what to tell."""
    assert runtime.store is not None
    beside = []
    if state.get("stop_reason") not in ("", "closed", None):
        beside = [Catalogue(runtime.store, user=user_of(runtime)).noting(thread_of(), question_of(state["messages"]))]
    filed = transcript_of(runtime).file([entry_of(message, now()) for message in state["messages"]], beside=beside)
    update, told = yield from extracted(state, runtime)
    if is_ending(state):
        told.update((yield from close(state, runtime)))
    return update, {"filed": len(filed), **told}


def extracted(
    state: State, runtime: Runtime[Context]
) -> Generator[Request, Reply, tuple[dict[str, Any], RememberDetail]]:
    """Extract from what is due; return the update of `extracted_to`, if it moves, and what to tell.

    What does not fit into the model's window goes in parts; those before one that fails are done.
    """
    context = context_of(runtime)
    said = [(str(message.id), text_of(message)) for message in due_messages(state, context)]
    update: dict[str, Any] = {}
    told = RememberDetail()
    parts = batches(said, window_of(state, context))
    for part, after in zip(parts, [*parts[1:], []], strict=False):
        extraction = yield from extraction_of(part, said, context)
        if isinstance(extraction, str):
            return update, {**told, "failed": extraction}
        memories, facts = keep(extraction, runtime)
        told["memories"], told["facts"] = [*told.get("memories", []), *memories], [*told.get("facts", []), *facts]
        whole = [message_id for message_id, _ in part if message_id not in dict(after)]
        update = {"extracted_to": whole[-1]} if whole else update
    return update, told


def extraction_of(
    part: Sequence[tuple[str, str]], said: Sequence[tuple[str, str]], context: Context
) -> Generator[Request, Reply, Extraction | str]:
    """Ask for what is worth keeping in one part, twice if need be; return it, or why there is none."""
    messages = [SystemMessage(prompts.EXTRACT), HumanMessage(lines_of(part))]
    error = ""
    for _ in range(2):
        reply = yield Request(model=context.model, messages=messages, stream=False, quiet=True)
        error = reply.reason if isinstance(reply, Failure) else "the extractor's answer holds no JSON object"
        extraction = None if isinstance(reply, Failure) else read_extraction(text_of(reply), said)
        if extraction is not None:
            return extraction
    return error


def due_messages(state: State, context: Context) -> list[AnyMessage]:
    """Return the user's messages from which nothing was extracted yet, if the policy says that it is time."""
    is_time = {"turn": True, "compaction": is_ending(state) or is_over(state, context), "off": False}[context.extract]
    said = [message for message in state["messages"] if isinstance(message, HumanMessage)]
    ids = [message.id for message in said]
    start = ids.index(done) + 1 if (done := state.get("extracted_to")) in ids else 0
    return list(said[start:]) if is_time else []


def keep(extraction: Extraction, runtime: Runtime[Context]) -> tuple[list[str], list[str]]:
    """Write what was extracted; return the statements that were new, and the facts."""
    assert runtime.store is not None
    memories, facts = (
        Memories(runtime.store, user=user_of(runtime)),
        Facts(runtime.store, user=user_of(runtime)),
    )
    saved = [
        memories.save(one.text, sources=[Source(thread=thread_of(), message=one.source)]) for one in extraction.memories
    ]
    for fact in extraction.facts:
        facts.set(fact.key, fact.value)
    return [one.text for one, new in saved if new], [f"{fact.key}: {fact.value}" for fact in extraction.facts]


def transcript_of(runtime: Runtime[Context]) -> Transcript:
    """Return the transcript of this run's thread."""
    assert runtime.store is not None
    return Transcript(runtime.store, user=user_of(runtime), thread=thread_of())


def entry_of(message: BaseMessage, at: datetime) -> Entry:
    """Write a message as the transcript keeps it: its text, and all of it as plain data."""
    data = json.loads(json.dumps(message_to_dict(message)["data"], default=str))
    stamp = at.astimezone(UTC).isoformat(timespec="microseconds")
    searched = not (isinstance(message, ToolMessage) and message.name in REPEATING)
    return Entry(id=str(message.id), role=message.type, text=text_of(message), at=stamp, data=data, searched=searched)


def unfiled(messages: Sequence[AnyMessage], runtime: Runtime[Context]) -> list[str]:
    """Return the ids of messages that the transcript does not hold word for word."""
    return [entry.id for entry in transcript_of(runtime).missing([entry_of(message, now()) for message in messages])]

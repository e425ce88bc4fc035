"""glean: extraction as it runs in a turn. What is due is asked for in parts, kept, and noted as read.

Nothing is read twice: what was read is noted in the ledger, which no fork, replay or restart takes back. What failed is
noted there too, and due again.
"""

from collections.abc import Generator, Mapping, Sequence
from datetime import datetime
from typing import Any

from langchain_core.messages import HumanMessage, SystemMessage
from langgraph.runtime import Runtime

from memory.facts import How, NothingToEnd
from memory.memories import Forgotten, Memory, Source
from memory.secrets import MASK
from memory.times import stamp
from memory.transcript import Entry, key_of
from nodes import prompts
from nodes.calls import Failure, Reply, Request
from nodes.close import is_ending
from nodes.context import Context, context_of, local, thread_of
from nodes.cut import is_over, window_of
from nodes.dates import absolute
from nodes.extract import NO_ANSWER, Extraction, Saying, batches, lines_of, read_extraction
from nodes.kinds import entry_of, facts_of, ledger_of, memories_of, present, transcript_of
from nodes.quoting import as_json
from nodes.state import State
from nodes.text import text_of
from nodes.tokens import text_tokens
from nodes.trace import RememberDetail

KNOWN_PER_MESSAGE, MOST_KNOWN = 3, 8
KNOWN_SHARE = 4
"""Known memories take one part in this many of the window of a request."""

HOWS: tuple[How, ...] = ("now", "also", "no longer")

Known = Mapping[str, Memory]
"""The memories that one request shows, by an id that is good for it alone."""


def gleaned(
    state: State, runtime: Runtime[Context]
) -> Generator[Request, Reply, tuple[dict[str, Any], RememberDetail]]:
    """Extract from what is due; return the update of `extracted_to`, if it moves, and what to tell.

    What does not fit into the model's window goes in parts; those before one that fails are done.
    """
    context, ledger = context_of(runtime), ledger_of(runtime)
    candidates = candidates_of(state, runtime)
    unread = ledger.unread(thread_of(), [(one.id, key_of(one)) for one in candidates])
    due = [candidates[n] for n in unread]
    said = [Saying(id=one.id, text=one.text, at=local(datetime.fromisoformat(one.at), context)) for one in due]
    names = {one.id: key_of(one) for one in due}
    update: dict[str, Any] = {}
    told = RememberDetail()
    window = window_of(state, context)
    parts = batches(said, window - window // KNOWN_SHARE)
    for part, after in zip(parts, [*parts[1:], []], strict=False):
        known = known_to(part, runtime, window // KNOWN_SHARE)
        extraction = yield from asked(part, said, known, context)
        memories, facts = keep(extraction, said, known, runtime)
        told["memories"], told["facts"] = [*told.get("memories", []), *memories], [*told.get("facts", []), *facts]
        if why := extraction.failed:
            ledger.failed(thread_of(), why, stamp(present(runtime)))
            return update, {**told, "failed": why}
        whole = [one.id for one in part if one.id not in {later.id for later in after}]
        ledger.note(thread_of(), [names[id] for id in whole])
        update = {"extracted_to": whole[-1]} if whole else update
    if candidates:
        ledger.succeeded(thread_of())
        update = {"extracted_to": candidates[-1].id}
    return update, told


def asked(
    part: Sequence[Saying], said: Sequence[Saying], known: Known, context: Context
) -> Generator[Request, Reply, Extraction]:
    """Ask for what is worth keeping in one part, once more for what was missing; return it, or why there is none."""
    shown = [as_json({"known": id, "date": memory.at[:10], "text": memory.text}) for id, memory in known.items()]
    messages = [SystemMessage(prompts.EXTRACT), HumanMessage("\n".join([*shown, lines_of(part)]))]
    found = Extraction(failed=NO_ANSWER)
    for _ in range(2):
        reply = yield Request(model=context.model, messages=messages, stream=False, quiet=True)
        if isinstance(reply, Failure):
            found = found.joined(Extraction(failed=reply.reason))
            continue
        found = found.joined(read_extraction(text_of(reply), said, [memory.text for memory in known.values()]))
        if not found.failed:
            break
    return found


def candidates_of(state: State, runtime: Runtime[Context]) -> list[Entry]:
    """Return the user's messages after the one that was read last in this thread, if the policy says that it is time.

    Those that left the page before they were read are read from the transcript.
    """
    context, ending = context_of(runtime), is_ending(state)
    is_time = {"turn": True, "compaction": ending or is_over(state, context), "close": ending, "off": False}
    if not is_time[context.extract]:
        return []
    transcript, read_to = transcript_of(runtime), state.get("extracted_to", "")
    said = [message for message in state["messages"] if isinstance(message, HumanMessage)]
    if state.get("summary") and read_to not in [message.id for message in said]:
        entries = [entry for entry in transcript.entries() if entry.role == "human"]
    else:
        entries = transcript.stored([entry_of(message, present(runtime)) for message in said])
    entries = list({entry.id: entry for entry in entries}.values())
    ids = [entry.id for entry in entries]
    return entries[ids.index(read_to) + 1 :] if read_to in ids else entries


def known_to(part: Sequence[Saying], runtime: Runtime[Context], room: int) -> Known:
    """Find what is remembered closest to the messages, within so many tokens."""
    memories, found = memories_of(runtime), dict[str, Memory]()
    for one in part:
        for memory in memories.search(one.text[:1000], limit=KNOWN_PER_MESSAGE):
            room -= 0 if memory.id in found else text_tokens(memory.text)
            if room > 0 and len(found) < MOST_KNOWN:
                found[memory.id] = memory
    return {f"k{n}": memory for n, memory in enumerate(found.values(), 1)}


def keep(
    extraction: Extraction, said: Sequence[Saying], known: Known, runtime: Runtime[Context]
) -> tuple[list[str], list[str]]:
    """Write what was extracted; return the statements that were new, and the facts.

    An id that was not shown replaces nothing (B121), and what would be deleted is not: nothing here deletes.
    """
    memories, facts, refuses = memories_of(runtime), facts_of(runtime), context_of(runtime).secrets == "refuse"
    times, new, settled = {one.id: one.at for one in said}, list[str](), list[str]()
    for one in extraction.memories:
        text, at = absolute(one.text, times[one.source]), times[one.source]
        replaced = known.get(one.replaces) if isinstance(one.replaces, str) else None
        if refuses and MASK in text:
            continue
        try:
            source = Source(thread=thread_of(), message=one.source)
            _, is_new = memories.save(text, sources=[source], at=at, replaces=replaced.id if replaced else "")
        except Forgotten:
            continue
        new += [text] if is_new else []
    for fact in extraction.facts:
        how: How = next((known_how for known_how in HOWS if known_how == fact.how), "also")
        if refuses and MASK in f"{fact.key} {fact.value}":
            continue
        try:
            facts.set(fact.key, fact.value, how, at=times[fact.source], thread=thread_of(), message=fact.source)
        except NothingToEnd:
            continue
        settled.append(f"{fact.key}: {fact.value}")
    return new, settled

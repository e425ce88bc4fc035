"""`palimpsest doctor --agent`: why did it not remember? Each cause in the order in which a memory meets it.

It looks at one user with one context, reads what is kept of their newest threads, and changes nothing.
"""

import re
from collections.abc import Iterator, Sequence
from typing import Any

from langgraph.store.base import BaseStore

from graph.doctor import Finding
from graph.records import opened_store
from graph.settings import Settings
from memory.blocks import Block, Blocks
from memory.catalogue import Catalogue, Thread
from memory.ledger import Ledger
from memory.transcript import Entry, Transcript
from nodes.context import EDIT_TOOLS, TEAM_TOOL, Context
from nodes.toolbox import OWN_TOOLS

WRITING = tuple(one.name for one in OWN_TOOLS if one.marks.writes and one.name != TEAM_TOOL)
"""A user's own memory; what a team shares is another's question."""

THREADS_READ = 20
MOST_TOLD = 5
TOLD_CHARS = 200
NEARLY_FULL = 0.95

MENDS = {
    "room left": "make room with `palimpsest memory edit LABEL`, or give the block a larger limit",
    "old text present": "the model does not copy what stands there; shorter lines or a larger model help",
    "read-only": "edit it yourself with `palimpsest memory edit LABEL`, or configure it without read_only",
    "block exists": "configure a block of this label, for example --set blocks=persona,human,LABEL",
    "unknown_tool": "mount it with --set tools=…, or leave tools at *",
    "not_the_users": "it was not in the user's own words; --set writes=ask has a person approve",
    "secret": "secrets are not kept",
    "invalid_arguments": "the model writes wrong arguments; a larger model helps",
    "": "see `palimpsest threads trace ID`",
}
"""What to do about a refusal, by what its text holds; the first that fits."""

WHEN_TO_WRITE = re.compile(
    r"\b(?:remember|write (?:it |this )?down|note|save|keep)\b|core_memory|memory_save|fact_set|记住|记下|写下|保存",
    re.IGNORECASE,
)
NO_WHEN = (
    "nothing in {where} says when to write, so only the house rules do; add a line such as “What users tell me about "
    "themselves I write down at once.” with `palimpsest memory edit persona`"
)


def diagnose(settings: Settings, context: Context) -> Iterator[Finding]:
    """Yield what stands between this user's words and the agent's memory."""
    yield from mounted(context)
    with opened_store(settings) as store:
        blocks = Blocks(store, user=context.user, specs=context.blocks).all()
        threads = Catalogue(store, user=context.user).all()[:THREADS_READ]
        yield from map(room, blocks)
        yield from refusals(store, threads, context)
        yield from extraction(store, context)
    yield persona(blocks, context)


def mounted(context: Context) -> Iterator[Finding]:
    """Say which tools the model has to write its memory, and how memories come back to it."""
    there = [name for name in WRITING if context.mounts(name)]
    missing = [name for name in WRITING if name not in there]
    told = f"to write: {', '.join(there) or 'nothing'}"
    if missing:
        why = (
            "no block is writable" if set(missing) <= {*EDIT_TOOLS} and "*" in context.tools else "--set tools=* mounts"
        )
        told += f"; not mounted: {', '.join(missing)} ({why})"
    yield Finding(what="mounted", ok=not missing, told=told)
    injects, asks = context.memory != "tool", context.mounts("recall")
    ways = [*(["brought up unasked"] if injects else []), *(["asked for with recall"] if asks else [])]
    nothing = "never: neither injected nor recall mounted; --set memory=both"
    yield Finding(what="mounted", ok=injects or asks, told=f"memories come back {' and '.join(ways) or nothing}")


def room(block: Block) -> Finding:
    """Say how full a block is."""
    full = len(block.text) > NEARLY_FULL * block.spec.limit
    mend = f": full; {MENDS['room left'].replace('LABEL', block.spec.label)}" if full else ""
    return Finding(what="room left", ok=not full, told=block.fill + mend)


def refusals(store: BaseStore, threads: Sequence[Thread], context: Context) -> Iterator[Finding]:
    """Tell the newest calls that would have kept something, were refused, and were not made good in their turn."""
    found = []
    for thread in threads:
        entries = Transcript(store, user=context.user, thread=thread.id).entries()
        found += [(entry.at, thread.id, entry) for entry in not_made_good(entries)]
    for at, thread_id, entry in sorted(found, key=lambda one: one[0], reverse=True)[:MOST_TOLD]:
        text = " ".join(entry.text.split())
        mend = next(mend for part, mend in MENDS.items() if part in text)
        told = f"{entry.data['name']} in {thread_id} at {at[:16]}: {text[:TOLD_CHARS]}; {mend}"
        yield Finding(what="refused", ok=False, told=told)
    if not found:
        yield Finding(what="refused", ok=True, told=f"nothing was refused in the newest {len(threads)} threads")


def not_made_good(entries: Sequence[Entry]) -> Iterator[Entry]:
    """Yield the newest refusal of each writing tool in a turn, unless that tool went through later in it."""
    open_ones: dict[str, Entry] = {}
    for entry in entries:
        record: dict[str, Any] = entry.data.get("additional_kwargs", {}).get("record", {})
        name = str(entry.data.get("name"))
        if entry.role == "human":
            yield from open_ones.values()
            open_ones = {}
        elif record.get("ok"):
            open_ones.pop(name, None)
        elif name in WRITING or record.get("kind") == "unknown_tool":
            open_ones[name] = entry
    yield from open_ones.values()


def extraction(store: BaseStore, context: Context) -> Iterator[Finding]:
    """Tell in which threads extraction fails, and when it is due at all."""
    due = {"off": "off; --set extract=turn extracts after every turn", "turn": "after every turn"}
    told = due.get(
        context.extract, f"at {context.extract}, so not before; --set extract=turn extracts after every turn"
    )
    yield Finding(what="extraction", ok=context.extract != "off", told=f"statements become memories unasked: {told}")
    for one in Ledger(store, user=context.user).failures():
        told = f"{one.thread} at {one.at[:16]} failed: {one.why} The next turn there tries again"
        yield Finding(what="extraction", ok=False, told=told)


def persona(blocks: Sequence[Block], context: Context) -> Finding:
    """Say whether who the agent is says when to write: the block `persona`, or the instructions where there is none."""
    found = [("the block persona", one.text) for one in blocks if one.spec.label == "persona"]
    where, text = [*found, ("the instructions", context.instructions)][0]
    says = next((line.strip() for line in text.split("\n") if WHEN_TO_WRITE.search(line)), "")
    told = f"{where} says: “{says[:TOLD_CHARS]}”" if says else NO_WHEN.format(where=where)
    return Finding(what="persona", ok=bool(says), told=told)

"""Commands that look into what is kept, and keep it in order: `palimpsest memory …` and `palimpsest threads …`."""

import argparse
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from graph.agent import open_agent, open_checkpoints, open_memory
from graph.history import begun_by, owner_of, turns_of, unfinished
from graph.locks import ThreadBusy
from graph.outcomes import print_json
from graph.savers import InThreads, check_thread
from graph.settings import BadSetting, CannotStart, Settings, checked_home
from graph.telling import called, tree_of
from graph.texts import Say, say_in
from memory.catalogue import Catalogue, Thread
from memory.ledger import Ledger
from memory.memories import Memories, Memory
from memory.memories import found as remembered
from memory.outputs import Outputs
from memory.transcript import Transcript
from nodes.bringing import considered
from nodes.context import Context, NotYourThread
from nodes.quoting import as_json

WIDE = 10_000
"""Columns of an output that is no screen: nothing is wrapped."""

LEGS = "vector {vector:.2f}  keyword {keyword:.2f}"
DELETED = "deleted {thread}: its checkpoints and {n} messages; memories, facts and blocks stay"
PRUNED = "deleted {gone} checkpoints of {n} threads; the file went from {before} to {after} bytes"

Command = Callable[[argparse.Namespace, Settings, Context], int]


@contextmanager
def opened_store(settings: Settings) -> Iterator[Any]:
    """Open the memory alone."""
    checked_home(settings.home)
    with open_memory(settings) as store:
        yield store


def show(found: list[dict[str, Any]], lines: list[str], arguments: argparse.Namespace, say: Say) -> int:
    """Print what was found, as one JSON list if --json asks for it, or a line each."""
    if arguments.json:
        print_json(found)
    else:
        print("\n".join(lines) or say("(nothing)"))
    return 0


def memory(arguments: argparse.Namespace, settings: Settings, context: Context) -> int:
    """List or search the user's memories; or index everybody's anew."""
    if arguments.action == "search" and not arguments.query.strip():
        raise BadSetting('memory search needs a query, for example: palimpsest memory search "peanuts"')
    look: dict[str, Callable[..., int]] = {"show": show_memory, "why": why_memory, "split": split_memory}
    say = say_in(settings.language)
    with opened_store(settings) as store:
        if arguments.action == "reindex":
            return reindex(store, say)
        memories, when = Memories(store, user=context.user), arguments.as_of
        if arguments.action in look:
            return look[arguments.action](arguments, memories, context, say)
        try:
            if arguments.action == "list":
                found = memories.all(when=when)[: arguments.limit]
            else:
                found = memories.search(arguments.query, limit=arguments.limit, threshold=-1.0, when=when)
        except ValueError as error:
            raise BadSetting(f"--as-of: {error}") from error
    return show([asdict(one) for one in found], [memory_line(one) for one in found], arguments, say)


def show_memory(arguments: argparse.Namespace, memories: Memories, context: Context, say: Say) -> int:
    """Show one memory with its past, its other wordings and the messages that it comes from, word for word."""
    one = named_memory(arguments, memories)
    said = []
    for source in one.sources:
        entries = Transcript(memories.store, user=context.user, thread=source.thread).entries()
        said += [f"{e.at[:19]}  {source.thread}  {e.role}: {e.text}" for e in entries if e.id == source.message]
    spans = [*one.past, (one.at, one.until)]
    lines = [
        memory_line(one),
        say.many(one.seen, "seen {n} time", "seen {n} times"),
        *(say("held {start} to {end}", start=start[:19], end=end[:19] if end else say("now")) for start, end in spans),
    ]
    lines += [say("superseded by {id}", id=one.superseded_by)] if one.superseded_by else []
    lines += [say("also: {text}", text=text) for text in one.variants] + said
    return show([{**asdict(one), "said": said}], lines, arguments, say)


def why_memory(arguments: argparse.Namespace, memories: Memories, context: Context, say: Say) -> int:
    """Show what is brought up on a question and what is not: both legs' scores, and the reason."""
    if not arguments.query.strip():
        raise BadSetting('memory why needs a question, for example: palimpsest memory why "what may I eat?"')
    rows = considered(memories.store, arguments.query, context, user=context.user)[: arguments.limit]
    lines, found = [], []
    for row in rows:
        one = remembered(row.hit)
        legs = say(LEGS, **{name: row.parts.get(name) or 0 for name in ("vector", "keyword")})
        told = say("left out: {why}", why=say.told(row.left_out)) if row.left_out else say("brought up")
        lines.append(f"{one.id}  {legs}  {told}  {' '.join(one.text.split())}")
        found.append({**asdict(one), "legs": row.parts, "left_out": row.left_out})
    return show(found, lines, arguments, say)


def split_memory(arguments: argparse.Namespace, memories: Memories, context: Context, say: Say) -> int:
    """Make the other wordings of a memory memories of their own."""
    made = memories.split(named_memory(arguments, memories).id)
    return show([asdict(one) for one in made], [memory_line(one) for one in made], arguments, say)


def named_memory(arguments: argparse.Namespace, memories: Memories) -> Memory:
    """Return the memory that the command names. Raises BadSetting without a name, CannotStart if there is none."""
    if not arguments.query.strip():
        raise BadSetting(f"name it: palimpsest memory {arguments.action} ID; `palimpsest memory list` has the ids")
    found = memories.get(arguments.query.strip())
    if found is None:
        raise CannotStart(f"this user has no memory {arguments.query!r}; `palimpsest memory list` names them")
    return found


def reindex(store: Any, say: Say) -> int:
    """Rebuild the indexes from the record with a progress bar; interrupted, the next time goes on where it was."""
    columns = (TextColumn(say("indexing")), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), disable=not sys.stderr.isatty()) as bar:
        task = bar.add_task("indexing", total=None)
        done = store.reindex(lambda done, total: bar.update(task, completed=done, total=total))
    print(say.many(done, "indexed {n} item", "indexed {n} items"))
    return 0


def memory_line(one: Memory) -> str:
    """Write a memory on one line: id, date, score if there is one, text."""
    score = "" if one.score is None else f"  {one.score:.2f}"
    return f"{one.id}  {one.at[:10]}{score}  {' '.join(one.text.split())}"


def threads(arguments: argparse.Namespace, settings: Settings, context: Context) -> int:
    """Run one action on the user's threads."""
    actions: dict[str, Command] = {
        "list": list_threads,
        "show": show_thread,
        "trace": trace_thread,
        "delete": delete_thread,
        "close": close_threads,
        "sweep": close_threads,
        "prune": prune_threads,
    }
    if arguments.action in ("show", "trace", "delete", "close") and not (arguments.id or arguments.thread):
        raise BadSetting(f"name it: palimpsest threads {arguments.action} ID; `palimpsest threads list` has the ids")
    return actions[arguments.action](arguments, settings, context)


def list_threads(arguments: argparse.Namespace, settings: Settings, context: Context) -> int:
    """List the threads, the last used first."""
    with opened_store(settings) as store, open_checkpoints(settings) as saver:
        kept = Catalogue(store, user=context.user).all()
        begun = unfinished(saver, user=context.user, known={one.id for one in kept})
    found = sorted([*kept, *begun], key=lambda one: one.used, reverse=True)
    say = say_in(settings.language)
    lines = [thread_line(one, say) for one in found]
    return show([asdict(one) for one in found], lines, arguments, say)


def thread_line(one: Thread, say: Say) -> str:
    """Write a thread on one line."""
    state = say(("open" if one.is_open else "closed") if one.turns else "unfinished")
    turns = say.many(one.turns, "{n} turn", "{n} turns")
    return f"{one.id}  {one.used[:16]}  {turns}  {state}  {one.title}"


def show_thread(arguments: argparse.Namespace, settings: Settings, context: Context) -> int:
    """Show everything that was said in a thread."""
    with opened_store(settings) as store, open_checkpoints(settings) as saver:
        thread = named(arguments, Catalogue(store, user=context.user), saver)
        found = [asdict(entry) for entry in Transcript(store, user=context.user, thread=thread.id).entries()]
    lines = [f"{one['at'][:19]}  {one['role']}: {one['text'] or calls_in(one['data'])}" for one in found]
    return show(found, lines, arguments, say_in(settings.language))


def calls_in(data: Mapping[str, Any]) -> str:
    """Write the calls of a message that says nothing besides."""
    return "; ".join(
        called({"tool": one["name"], "args": as_json(one["args"])}) for one in data.get("tool_calls") or ()
    )


def trace_thread(arguments: argparse.Namespace, settings: Settings, context: Context) -> int:
    """Tell what happened in each turn of a thread whose checkpoints are kept, and how many are gone."""
    with opened_store(settings) as store, open_checkpoints(settings) as saver:
        thread = named(arguments, Catalogue(store, user=context.user), saver)
        turns = turns_of(saver, thread.id) if is_own_thread(saver, thread.id, context) else []
    if arguments.json:
        print_json([asdict(turn) for turn in turns])
    else:
        ended = sum(turn.stop_reason not in ("", "closed") for turn in turns)
        gone = max(thread.turns - ended, 0)
        tree = tree_of(thread.id, turns, gone=gone, say=say_in(settings.language))
        Console(width=None if sys.stdout.isatty() else WIDE, highlight=False).print(tree)
    return 0


def delete_thread(arguments: argparse.Namespace, settings: Settings, context: Context) -> int:
    """Delete a thread's checkpoints, transcript and kept results; what is not its own stays."""
    with opened_store(settings) as store, open_checkpoints(settings) as saver:
        catalogue = Catalogue(store, user=context.user)
        thread = named(arguments, catalogue, saver).id
        with saver.locks.holding(thread):
            if is_own_thread(saver, thread, context):
                saver.delete_thread(thread)
        gone = Transcript(store, user=context.user, thread=thread).erase()
        Outputs(store, user=context.user, thread=thread).erase()
        Ledger(store, user=context.user).erase(thread)
        catalogue.forget(thread)
    print(say_in(settings.language)(DELETED, thread=thread, n=gone))
    return 0


def close_threads(arguments: argparse.Namespace, settings: Settings, context: Context) -> int:
    """End one thread, or for `sweep` all that were idle for long: file the rest, write an abstract of each."""
    say = say_in(settings.language)
    with open_agent(settings) as agent:
        assert agent.store is not None and isinstance(agent.checkpointer, InThreads)
        catalogue = Catalogue(agent.store, user=context.user)
        if arguments.action == "close":
            due = [named(arguments, catalogue, agent.checkpointer)]
        else:
            limit = (datetime.now(UTC) - timedelta(hours=arguments.idle_hours)).isoformat(timespec="microseconds")
            due = [thread for thread in catalogue.all() if thread.is_open and thread.used <= limit]
        for thread in due:
            config: Any = {"configurable": {"thread_id": thread.id}}
            try:
                agent.invoke({"messages": [], "close": True}, config, context=context)
            except (ThreadBusy, NotYourThread) as error:  # the others are still to be closed
                print(f"palimpsest: {say.told(str(error))}", file=sys.stderr)
        after = [catalogue.get(thread.id) or thread for thread in due]
    for thread in after:
        print(f"{say('FAILED, try again' if thread.is_open else 'closed')}  {thread.id}  {thread.abstract}")
    return 1 if any(thread.is_open for thread in after) else 0


def prune_threads(arguments: argparse.Namespace, settings: Settings, context: Context) -> int:
    """Delete old checkpoints of one thread, or of all of the user's; the transcript keeps every word."""
    with opened_store(settings) as store, open_checkpoints(settings) as saver:
        catalogue = Catalogue(store, user=context.user)
        one = arguments.id or arguments.thread
        due = [named(arguments, catalogue, saver).id] if one else [thread.id for thread in catalogue.all()]
        gone = 0
        for id in (one for one in due if is_own_thread(saver, one, context)):
            with saver.locks.holding(id):
                gone += saver.trim([id], keep=arguments.keep)
        before, after = saver.compact()
    print(say_in(settings.language)(PRUNED, gone=gone, n=len(due), before=before, after=after))
    return 0


def is_own_thread(saver: InThreads, thread: str, context: Context) -> bool:
    """Whether the checkpoints of a thread are no other user's, whose catalogue an import may have brought."""
    return owner_of(saver, thread) in (None, context.user)


def named(arguments: argparse.Namespace, catalogue: Catalogue, saver: InThreads) -> Thread:
    """Return the thread that the command names. Raises BadThread, and CannotStart if the user has none of this id."""
    thread = arguments.id or arguments.thread or ""
    check_thread(thread)
    found = catalogue.get(thread) or begun_by(saver, thread, user=catalogue.user)
    if found is None:
        raise CannotStart(f"this user has no thread {thread!r}; `palimpsest threads list` names them")
    return found

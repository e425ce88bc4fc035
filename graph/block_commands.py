"""What a person edits: `palimpsest memory blocks`, `memory edit` and `memory undo`, of blocks and of memories."""

import argparse
import json
import re
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any
from uuid import uuid4

from graph.records import Command, memory_line, named_memory, opened_store, show
from graph.settings import BadSetting, CannotStart, Settings
from graph.texts import ENGLISH, Say, say_in
from memory.block_specs import DEFAULT_BLOCKS, BlockRefused
from memory.blocks import Author, Block, Blocks, Edit
from memory.memories import Memories, Memory, Source
from memory.sameness import wording
from memory.secrets import mask
from memory.text import clean
from memory.times import now, stamp
from memory.transcript import Entry, Transcript
from nodes.context import Context

PERSON = Author(by="person")
NO_EDITOR = "memory edit takes the new text by --text (- reads stdin), or starts the editor that EDITOR names"
SECRET = "the text holds a key, a password or a card number; nothing was changed, leave that out"
BY_HAND = "edited by hand"
"""The thread in which the transcript keeps what a person wrote instead of a memory."""

MEMORY_ID = re.compile(r"m-[0-9a-f]{12}")


def blocks_from(text: str) -> Any:
    """Read blocks from a setting: JSON as the context takes it, or labels with commas between. Raises BadSetting."""
    if text.lstrip().startswith("["):
        try:
            return json.loads(text)
        except ValueError as error:
            raise BadSetting(f"blocks must be labels with commas between, or a JSON list, got {text[:80]!r}") from error
    known = {spec.label: spec for spec in DEFAULT_BLOCKS}
    return [known.get(label, {"label": label}) for label in map(str.strip, text.split(",")) if label]


def blocks_in(store: Any, context: Context) -> Blocks:
    """Return the blocks of the context's user."""
    return Blocks(store, user=context.user, specs=context.blocks)


def list_blocks(arguments: argparse.Namespace, settings: Settings, context: Context) -> int:
    """Print every block with its fill and text; of a block that is named, every version."""
    with opened_store(settings) as store:
        blocks = blocks_in(store, context)
        found = blocks.history(arguments.query) if arguments.query else blocks.all()
    say = say_in(settings.language)
    return show([told(one) for one in found], [written(one, say) for one in found], arguments, say)


def told(block: Block) -> dict[str, Any]:
    """Write a block, or a version of one, as an object."""
    value = asdict(block)
    return {**value.pop("spec"), **value, "chars": len(block.text)}


def written(block: Block, say: Say = ENGLISH) -> str:
    """Write a block for a person: what it is and who wrote it, then its text."""
    where = say(" in {thread} on message {message}", thread=block.thread, message=block.message) if block.thread else ""
    done, by = say.told(block.action), say.told(block.by)
    who = say("{action} by {by}{where} at {at}", action=done, by=by, where=where, at=block.at[:19])
    parts = [say("version {version}", version=block.version), who if block.version else say("as configured")]
    about = say.joined([say("read-only"), *parts] if block.spec.read_only else parts)
    return "\n".join([f"{block.fill}  {about}", *(f"    {line}" for line in block.text.split("\n") if block.text)])


def edit(arguments: argparse.Namespace, settings: Settings, context: Context) -> int:
    """Replace the text of a block, or of the memory with this id, by what a person writes."""
    if is_memory(arguments, context):
        return edit_memory(arguments, settings, context)
    with opened_store(settings) as store:
        before = blocks_in(store, context).get(arguments.query)
    seen = before.version if arguments.text is None else None
    with new_text(arguments, before.text, settings) as text, opened_store(settings) as store:
        done = blocks_in(store, context).rewrite(before.spec.label, text, author=PERSON, seen=seen)
        return concluded(done, settings)


def undo(arguments: argparse.Namespace, settings: Settings, context: Context) -> int:
    """Bring back what a block said before its last edit or in the version of --to, or what a memory replaced."""
    with opened_store(settings) as store:
        if not is_memory(arguments, context):
            done = blocks_in(store, context).undo(arguments.query, author=PERSON, version=arguments.to)
            return concluded(done, settings)
        memories = Memories(store, user=context.user)
        one = named_memory(arguments, memories)
        replaced = [old for old in memories.all(past=True) if old.superseded_by == one.id]
        if not replaced:
            raise CannotStart(f"{one.id} replaced nothing, so there is nothing to bring back")
        text = max(replaced, key=lambda old: old.until or "").text
        return show_edit(rewritten(one, text, memories, context), arguments, settings)


def is_memory(arguments: argparse.Namespace, context: Context) -> bool:
    """Whether a command names a memory; a block of that label goes before."""
    return bool(MEMORY_ID.fullmatch(arguments.query)) and arguments.query not in {b.label for b in context.blocks}


def edit_memory(arguments: argparse.Namespace, settings: Settings, context: Context) -> int:
    """Replace a memory that holds by what a person writes; the old text is its past."""
    with opened_store(settings) as store:
        before = named_memory(arguments, Memories(store, user=context.user))
    with new_text(arguments, before.text, settings) as text, opened_store(settings) as store:
        memories = Memories(store, user=context.user)
        one = rewritten(named_memory(arguments, memories), text, memories, context)
        return show_edit(one, arguments, settings)


def rewritten(one: Memory, text: str, memories: Memories, context: Context) -> Memory:
    """Let other words take the place of a memory. They are filed as said by the user, so that they can be cited.

    Raises BadSetting for a blank text or a secret, CannotStart if it holds no longer or says that already.
    """
    if one.until:
        raise CannotStart(f"{one.id} holds no longer; edit what took its place: {one.superseded_by}")
    if not (text := clean(text).strip()) or mask(text) != text:
        raise BadSetting(SECRET if text else "a memory must be a non-blank text; nothing was changed")
    if wording(text) == wording(one.text):
        raise CannotStart(f"{one.id} says that already, but for case, spacing and end marks; nothing was changed")
    entry = Entry(id=str(uuid4()), role="human", text=text, at=stamp(now()), data={"content": text})
    Transcript(memories.store, user=context.user, thread=BY_HAND).file([entry])
    sources = [*one.sources, Source(thread=BY_HAND, message=entry.id)]
    return memories.save(text, sources=sources, about=one.about, replaces=one.id)[0]


@contextmanager
def new_text(arguments: argparse.Namespace, before: str, settings: Settings) -> Iterator[str]:
    """Yield what --text gives, or what a person makes of the text in the editor: kept in its file if refused."""
    if arguments.text is not None:
        yield sys.stdin.read().rstrip("\n") if arguments.text == "-" else arguments.text
        return
    if not settings.editor:
        raise BadSetting(NO_EDITOR)
    path = Path(tempfile.mkdtemp(prefix="palimpsest-")) / "text.txt"
    path.write_text(f"{before}\n", encoding="utf-8")
    command = [*shlex.split(settings.editor), str(path)]
    try:
        code = subprocess.run(command, check=False).returncode
        text = path.read_text(encoding="utf-8").rstrip("\n")
    except (OSError, ValueError) as error:
        raise CannotStart(
            f"{settings.editor!r} could not edit {str(path)!r} ({error}); set EDITOR, or use --text"
        ) from error
    if code:
        raise CannotStart(f"{settings.editor!r} ended with code {code}; nothing was changed, the text is in {path}")
    try:
        yield text
    except (BlockRefused, BadSetting, CannotStart) as refused:
        raise CannotStart(f"{refused}. What you wrote is in {path}") from refused
    path.unlink()
    path.parent.rmdir()


def show_edit(one: Memory, arguments: argparse.Namespace, settings: Settings) -> int:
    """Print what a memory says now."""
    return show([asdict(one)], [memory_line(one)], arguments, say_in(settings.language))


def concluded(done: Edit, settings: Settings) -> int:
    """Print what a block says now."""
    say = say_in(settings.language)
    block = written(done.block, say)
    print(block if done.changed else say("unchanged: {block}", block=block))
    return 0


BLOCK_COMMANDS: dict[str, Command] = {"blocks": list_blocks, "edit": edit, "undo": undo}

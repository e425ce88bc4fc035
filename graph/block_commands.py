"""Commands on core memory: `palimpsest memory blocks`, `memory edit` and `memory undo`. A person may edit any block."""

import argparse
import json
import shlex
import subprocess
import sys
import tempfile
from dataclasses import asdict
from pathlib import Path
from typing import Any

from graph.records import Command, opened_store, show
from graph.settings import BadSetting, CannotStart, Settings
from memory.block_specs import DEFAULT_BLOCKS, BlockRefused
from memory.blocks import Author, Block, Blocks, Edit
from nodes.context import Context

PERSON = Author(by="person")
NO_EDITOR = "memory edit takes the new text by --text (- reads stdin), or starts the editor that EDITOR names"


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
    return show([told(one) for one in found], [written(one) for one in found], as_json=arguments.json)


def told(block: Block) -> dict[str, Any]:
    """Write a block, or a version of one, as an object."""
    value = asdict(block)
    return {**value.pop("spec"), **value, "chars": len(block.text)}


def written(block: Block) -> str:
    """Write a block for a person: what it is and who wrote it, then its text."""
    where = f" in {block.thread} on message {block.message}" if block.thread else ""
    who = f"{block.action} by {block.by}{where} at {block.at[:19]}" if block.version else "as configured"
    about = ", ".join(filter(None, [block.spec.read_only * "read-only", f"version {block.version}", who]))
    return "\n".join([f"{block.fill}  {about}", *(f"    {line}" for line in block.text.split("\n") if block.text)])


def edit_block(arguments: argparse.Namespace, settings: Settings, context: Context) -> int:
    """Replace the text of a block by what --text gives, or by what a person writes in the editor."""
    with opened_store(settings) as store:
        before = blocks_in(store, context).get(arguments.query)
    if arguments.text is None:
        return edit_in_editor(before, settings, context)
    text = sys.stdin.read().rstrip("\n") if arguments.text == "-" else arguments.text
    with opened_store(settings) as store:
        done = blocks_in(store, context).rewrite(before.spec.label, text, author=PERSON)
    return concluded(done)


def edit_in_editor(before: Block, settings: Settings, context: Context) -> int:
    """Let a person edit a block; what they wrote is kept in its file if it is refused."""
    if not settings.editor:
        raise BadSetting(NO_EDITOR)
    path = Path(tempfile.mkdtemp(prefix="palimpsest-")) / f"{before.version}.txt"
    path.write_text(f"{before.text}\n", encoding="utf-8")
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
        with opened_store(settings) as store:
            done = blocks_in(store, context).rewrite(before.spec.label, text, author=PERSON, seen=before.version)
    except BlockRefused as refused:
        raise CannotStart(f"{refused}. What you wrote is in {path}") from refused
    path.unlink()
    path.parent.rmdir()
    return concluded(done)


def undo_block(arguments: argparse.Namespace, settings: Settings, context: Context) -> int:
    """Bring back what a block said before its last edit, or in the version that --to names."""
    with opened_store(settings) as store:
        done = blocks_in(store, context).undo(arguments.query, author=PERSON, version=arguments.to)
    return concluded(done)


def concluded(done: Edit) -> int:
    """Print what a block says now."""
    print(written(done.block) if done.changed else f"unchanged: {written(done.block)}")
    return 0


BLOCK_COMMANDS: dict[str, Command] = {"blocks": list_blocks, "edit": edit_block, "undo": undo_block}

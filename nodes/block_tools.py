"""The tools by which the model edits core memory. Whose it is comes from the run, never from an argument.

The engine sees to the first gates, mounted and arguments valid, and to whose words they are; memory/blocks.py to the
others.
"""

import hashlib
import re
from collections.abc import Callable, Sequence
from typing import Annotated

from langchain_core.messages import BaseMessage, ToolMessage
from langchain_core.tools import tool
from pydantic import Field

from memory.block_specs import BlockRefused
from memory.blocks import Author, Blocks, Edit
from nodes.contract import marked
from nodes.core import blocks_of
from nodes.failures import ToolProblem
from nodes.memory_tools import Runtime, source_of, store_of
from nodes.quoting import as_json
from nodes.text import last_human, text_of

Label = Annotated[str, Field(description="The block's label, to the letter.")]
SAVED, ALREADY = "saved", "already there"


@tool
def core_memory_append(
    label: Label,
    content: Annotated[str, Field(min_length=1, description="One or a few short lines, in the user's language.")],
    runtime: Runtime,
) -> str:
    """Add lines to a block of your core memory, which stands above in every conversation. Use it at once when the user says what you must always know of them, or how you shall always be; details belong elsewhere."""
    return edited(runtime, lambda blocks, author: blocks.append(label, content, author=author), label, content)


@tool
def core_memory_replace(
    label: Label,
    old: Annotated[str, Field(min_length=1, description="Text that stands once in the block, without the quoting >.")],
    new: Annotated[str, Field(description="What takes its place; empty to remove it.")],
    runtime: Runtime,
) -> str:
    """Replace text in a block of your core memory. Use it when what stands there is no longer so, or to shorten a block that is full."""
    return edited(runtime, lambda blocks, author: blocks.replace(label, old, new, author=author), label, old, new)


EDITED = re.compile(rf'{{"result": "{SAVED}", "block": "(?P<block>.*)", "version": (?P<version>\d+)}}')
EDITING = (core_memory_append.name, core_memory_replace.name)
BLOCK_TOOLS = (marked(writes=("content",))(core_memory_append), marked(writes=("new",))(core_memory_replace))


def edited(runtime: Runtime, edit: Callable[[Blocks, Author], Edit], *args: str) -> str:
    """Make one edit in the name of the run; tell what the block holds now, or which gate refused it."""
    store_of(runtime)
    source = source_of(runtime)
    author = Author(by="agent", thread=source.thread, message=source.message, call=call_of(runtime, args))
    try:
        done = edit(blocks_of(runtime), author)
    except BlockRefused as refused:
        raise ToolProblem(str(refused)) from refused
    said = SAVED if done.changed else ALREADY
    return as_json({"result": said, "block": done.block.fill, "version": done.block.version})


def edits_in(messages: Sequence[BaseMessage]) -> list[str]:
    """Return what the edits of the current turn made of the blocks, such as `human 312/2000, version 4`."""
    turn = messages[last_human(messages) + 1 :]
    results = [message for message in turn if isinstance(message, ToolMessage) and message.name in EDITING]
    told = [EDITED.fullmatch(text_of(result)) for result in results if result.status == "success"]
    return [f"{one['block']}, version {one['version']}" for one in told if one]


def call_of(runtime: Runtime, args: tuple[str, ...]) -> str:
    """Name this very call, so that a turn that was cut off does not edit twice; servers repeat the ids of calls."""
    answer = runtime.state["messages"][-1].id
    return hashlib.sha256(as_json([answer, runtime.tool_call_id, *args]).encode()).hexdigest()[:16]

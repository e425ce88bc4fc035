"""Core memory in the prompt: the user's blocks as they are at this moment, so that an edit shows at once.

It changes nothing. What edits blocks is nodes/block_tools.py.
"""

from collections.abc import Iterator, Sequence
from typing import Any

from langgraph.runtime import Runtime

from memory.blocks import Block, Blocks, block_of
from nodes import prompts
from nodes.context import Context, context_of, user_of
from nodes.quoting import defused
from nodes.sections import Section
from nodes.tokens import chars_within, text_tokens

CORE_SHARE = 4
"""Blocks take at most one part in this many of the token budget, whatever is stored."""


def blocks_of(runtime: Any) -> Blocks:
    """Return the blocks of the run's user, as its context configures them."""
    return Blocks(runtime.store, user=user_of(runtime), specs=context_of(runtime).blocks)


def core_memory(runtime: Runtime[Context]) -> Section:
    """Return the section of the blocks, empty if there are none; without a store they are their seeds.

    A store that fails does not take the answer with it: the prompt says so.
    """
    context = context_of(runtime)
    try:
        blocks = (
            blocks_of(runtime).all() if runtime.store is not None else [block_of(spec, None) for spec in context.blocks]
        )
    except Exception:
        return lambda tokens: prompts.CORE_FAILED

    def within(tokens: int) -> str:
        room = min(tokens, context.token_budget // CORE_SHARE)
        text = written(blocks, room)
        while text_tokens(text) > tokens and room > 0:  # headings and quotes come on top of the texts
            room -= text_tokens(text) - tokens
            text = written(blocks, room)
        return text if text_tokens(text) <= tokens else prompts.CORE_WITHOUT_ROOM

    return within


def written(blocks: Sequence[Block], tokens: int) -> str:
    """Write blocks whose texts have at most so many tokens."""
    return "\n".join([prompts.CORE, *lines_of(blocks, tokens)]) if blocks else ""


def lines_of(blocks: Sequence[Block], tokens: int) -> Iterator[str]:
    """Yield each block: a heading of ours, then its text, of which every line is quoted, and at most so many tokens.

    Of a text over its limit only what the limit allows is shown: no path into the store makes prompts grow.
    """
    for n, block in enumerate(blocks):
        spec, text = block.spec, block.text
        about = " ".join(spec.description.split())
        yield " · ".join(part for part in (f"### {block.fill}", about, prompts.READ_ONLY * spec.read_only) if part)
        shown = text[: min(spec.limit, chars_within(text, tokens // (len(blocks) - n)))]
        yield from (f"> {line}" for line in defused(shown).split("\n")) if shown else [prompts.EMPTY_BLOCK]
        if len(shown) < len(text):
            yield prompts.MORE_OF_BLOCK.format(missing=len(text) - len(shown))
        tokens -= text_tokens(shown)

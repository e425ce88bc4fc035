"""What a message says, as plain text: for prompts, transcripts, and rules that look at words.

It never shows reasoning blocks, and describes media instead of dropping them without a word.
"""

import re
from collections.abc import Sequence

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage

from memory.text import is_bare

SHOWN_AS_NOTHING = {"reasoning", "thinking", "redacted_thinking", "tool_use", "tool_call", "function_call"}
THINKING = re.compile(
    r"<(?P<tag>think(?:ing)?|reasoning|thought)>.*?(?:</(?P=tag)>|\Z)|◁think▷.*?(?:◁/think▷|\Z)"
    r"|\A(?:(?!<think).)*</think(?:ing)?>",
    re.DOTALL | re.IGNORECASE,
)
"""What a model thinks aloud, ended or not, with or without its start."""


def text_of(message: BaseMessage) -> str:
    """Return the visible text; a picture or file stands as `[image]`, `[file]` and the like."""
    if isinstance(message.content, str):
        return message.content
    return "\n".join(part for part in map(block_text, message.content) if part)


def block_text(block: str | dict[str, object]) -> str:
    """Return what a person would read of one content block."""
    if isinstance(block, str):
        return block
    kind = str(block.get("type", "unknown"))
    if kind in SHOWN_AS_NOTHING:
        return ""
    text = block.get(kind if kind == "refusal" else "text")
    if isinstance(text, str) or kind == "text":
        return text if isinstance(text, str) else ""
    return f"[{kind.removeprefix('input_').removesuffix('_url')}]"


def is_blank(message: BaseMessage) -> bool:
    """Whether the message shows nothing at all; what a model only thinks is no answer."""
    text = text_of(message)
    may_be_thought = isinstance(message, AIMessage) and (text.lstrip()[:1] in ("<", "◁") or "</think" in text)
    return is_bare(THINKING.sub("", text) if may_be_thought else text)


def last_human(messages: Sequence[BaseMessage]) -> int:
    """Return the index of the newest message of the user, -1 if there is none."""
    return max((n for n, message in enumerate(messages) if isinstance(message, HumanMessage)), default=-1)


def question_of(messages: Sequence[BaseMessage]) -> str:
    """Return the text of the newest message of the user, empty if there is none."""
    n = last_human(messages)
    return text_of(messages[n]).strip() if n >= 0 else ""


def calls_of(message: BaseMessage) -> list[tuple[str, str]]:
    """Return (id, name) of every call in an answer, valid or not, in their order."""
    if not isinstance(message, AIMessage):
        return []
    return [
        (str(call["id"] or ""), str(call["name"] or "")) for call in [*message.tool_calls, *message.invalid_tool_calls]
    ]

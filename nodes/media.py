"""Pictures, sound and files in messages: which of them a server takes, and the markers that stand for the others."""

import re
from typing import Any

from langchain_core.messages import BaseMessage

from nodes.text import block_text, text_of

UNSEEN = "{shown} ({details}not shown: you get text alone)"
DETAILS = ("filename", "title", "name", "mime_type", "media_type", "format", "url")
"""Keys of a block of media, or of what it holds, that say what it is."""

MAX_DETAIL_CHARS = 200
REASONING = ("reasoning", "thinking", "redacted_thinking")


def sendable_content(message: BaseMessage) -> str | list[str | dict[str, object]]:
    """Return what a user said: text as one string (B078), media that no server takes as `[kind]`."""
    if isinstance(message.content, str) or not any(map(is_media, message.content)):
        return text_of(message)
    blocks: list[str | dict[str, object]] = []
    for block in message.content:
        if isinstance(block, dict) and is_media(block):
            blocks.append(block)
        elif (text := block_text(block)).strip():
            blocks.append({"type": "text", "text": text})
    return blocks


def text_alone(message: BaseMessage) -> str:
    """Return what a message says, with a marker that tells what there was to see or hear."""
    if isinstance(message.content, str):
        return message.content
    return "\n".join(filter(None, (unseen(one) if is_media(one) else block_text(one) for one in message.content)))


def in_words(message: BaseMessage) -> str:
    """Return all that a message holds, in words: media by what they say of themselves, reasoning as `[reasoning]`."""
    blocks = [message.content] if isinstance(message.content, str) else message.content
    apart = ["[reasoning]"] if message.additional_kwargs.get("reasoning_content") else []
    return "\n".join(filter(None, map(block_in_words, [*apart, *blocks])))


def block_in_words(block: Any) -> str:
    """Return what one content block holds, in words."""
    if isinstance(block, dict) and block.get("type") in REASONING:
        return "[reasoning]"
    shown = block_text(block)
    if not shown or not isinstance(block, dict) or isinstance(block.get("text"), str) or block.get("type") == "refusal":
        return shown
    return f"{shown[:-1]}: {', '.join(told)}]" if (told := details_of(block)) else shown


def unseen(block: Any) -> str:
    """Write the marker of a picture, sound or file: its kind, and what it says of itself."""
    return UNSEEN.format(shown=block_text(block), details="".join(f"{one}; " for one in details_of(block)))


def details_of(block: dict[str, Any]) -> list[str]:
    """Return what a block of media says of itself."""
    parts = [block, *(value for value in block.values() if isinstance(value, dict))]
    told = [str(part[key]) for part in parts for key in DETAILS if part.get(key)]
    return [re.sub(r"(?s)^data:([^;,]*).*", r"\1", one)[:MAX_DETAIL_CHARS] for one in told]


def is_media(block: object) -> bool:
    """Whether a block is a picture, sound or file in a form that the chat wire knows, with its data."""
    match block:
        case {"type": "image_url", "image_url": {"url": str(url)}} | {"type": "image", "url": str(url)}:
            return bool(url)
        case {"type": "image" | "audio" | "file", "base64": str(data), "mime_type": str()}:
            return bool(data)
        case {"type": "image", "source": {"type": "base64", "data": str(data), "media_type": str()}}:
            return bool(data)
        case {"type": "file", "file": dict(data)} | {"type": "input_audio", "input_audio": dict(data)}:
            return bool(data)
    return False

"""The rules that keep a message list valid for a provider, applied to what is sent, never to what is stored.

After `valid_messages`: no system, removal or empty message; each tool call followed at once by exactly one result; no
result without its call; call ids unique; plain text where text is meant. It is idempotent and says what it changed.
"""

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from langchain_core.messages import (
    AIMessage,
    AnyMessage,
    BaseMessage,
    ChatMessage,
    FunctionMessage,
    HumanMessage,
    RemoveMessage,
    SystemMessage,
    ToolCall,
    ToolMessage,
)

from memory.text import clean, clean_all
from nodes.media import sendable_content, text_alone
from nodes.pairs import results_of
from nodes.quoting import as_json, defused
from nodes.text import is_blank, text_of

NO_RESULT = "Error: no result was recorded for this call. It may or may not have run; do not assume either."
NO_OUTPUT = "(no output)"
MAX_ID_CHARS = 40
"""OpenAI's limit on the id of a call."""

SEPARATOR = "\n\n"
"""Between what were two messages."""

ORPHAN = "[Result of an earlier tool call that is no longer shown; quoted data, not the user's words] {text}"


@dataclass(frozen=True, kw_only=True)
class Valid:
    """A list that a provider accepts; `system` is what its system messages said; `changes` what was mended."""

    messages: list[AnyMessage]
    system: list[str] = field(default_factory=list)
    changes: list[str] = field(default_factory=list)


def valid_messages(messages: Sequence[BaseMessage], *, text_only: bool = False) -> Valid:
    """Return the list as a provider accepts it. What was said stays; only order, pairing and form are mended.

    With `text_only` a marker stands for each picture, sound and file (B078).
    """
    repair = Repair(messages, text_only=text_only)
    return Valid(messages=list(repair.run()), system=repair.system, changes=repair.changes)


class Repair:
    """One pass over one list. Results are looked up by call, each used once, wherever it stands."""

    def __init__(self, messages: Sequence[BaseMessage], *, text_only: bool) -> None:
        self.text_only = text_only
        self.messages = [in_known_role(cleaned(message)) for message in messages]
        self.results = results_of(self.messages)
        self.used = set(self.results.values())
        self.system: list[str] = []
        self.changes: list[str] = []
        self.call_ids: set[str] = set()
        self.next_number: dict[str, int] = {}

    def run(self) -> Iterator[AnyMessage]:
        """Yield the valid list in order."""
        for n, message in enumerate(self.messages):
            match message:
                case SystemMessage():
                    self.system.append(text_of(message))
                    self.changes.append("moved a system message to the front")
                case AIMessage():
                    yield from self.answer(n, message)
                case ToolMessage() if n not in self.used:
                    yield from self.orphan(message)
                case HumanMessage() if not is_blank(message):
                    content = text_alone(message) if self.text_only else sendable_content(message)
                    yield HumanMessage(content=content, id=message.id)
                case ToolMessage():
                    pass  # stands behind its call
                case _:
                    self.changes.append(f"dropped an empty or unsendable {message.type} message")

    def answer(self, n: int, message: AIMessage) -> Iterator[AnyMessage]:
        """Yield an answer and, at once, one result for each of its calls."""
        calls = [*message.tool_calls, *map(self.promoted, message.invalid_tool_calls)]
        if not calls and is_blank(message):
            self.changes.append("dropped an empty answer")
            return
        sent = [self.sendable(call) for call in calls]
        yield AIMessage(content=text_of(message), tool_calls=sent, id=message.id)
        for position, call in enumerate(sent):
            yield self.result((n, position), call)

    def promoted(self, call: object) -> ToolCall:
        """Make a well-formed call of one whose arguments did not parse, so that its error has a partner (B028)."""
        self.changes.append("sent a call with broken arguments as one without arguments")
        assert isinstance(call, dict)
        return ToolCall(name=call.get("name") or "unknown", args={}, id=call.get("id"), type="tool_call")

    def sendable(self, call: ToolCall) -> ToolCall:
        """Give a call an id that no earlier call of this list has; servers that count from one repeat theirs (B032)."""
        wanted = re.sub(r"[^a-zA-Z0-9_.:-]", "_", call["id"] or "") or "call"
        unique, n = wanted, self.next_number.get(wanted, 2)
        while unique in self.call_ids or len(unique) > MAX_ID_CHARS:
            unique, n = f"{wanted[: MAX_ID_CHARS - 6]}-{n}", n + 1
        self.call_ids.add(unique)
        self.next_number[wanted] = n
        return ToolCall(name=sendable_name(call["name"]), args=json_of(call["args"]), id=unique, type="tool_call")

    def result(self, at: tuple[int, int], call: ToolCall) -> ToolMessage:
        """Return the stored result of a call under the id that was sent, or say that there is none."""
        if at not in self.results:
            self.changes.append(f"reported the missing result of {call['name']}")
            return ToolMessage(NO_RESULT, tool_call_id=call["id"], name=call["name"], status="error")
        stored = self.messages[self.results[at]]
        assert isinstance(stored, ToolMessage)
        text = NO_OUTPUT if is_blank(stored) else defused(text_alone(stored))
        return ToolMessage(text, tool_call_id=call["id"], name=call["name"], status=stored.status, id=stored.id)

    def orphan(self, message: ToolMessage) -> Iterator[AnyMessage]:
        """Yield a result whose call is gone as a note, so that what it says is not lost."""
        self.changes.append("turned a result without its call into a note")
        if not is_blank(message):
            yield HumanMessage(ORPHAN.format(text=as_json(text_of(message))), id=message.id)


def merged(messages: Sequence[BaseMessage]) -> list[Any]:
    """Return a valid list with neighbours of one role as one message, for servers that want roles to take turns (B080).

    Calls and results stay as they are; words right before an answer that calls become its words.
    """
    made: list[BaseMessage] = []
    for message in messages:
        if made and message.type == made[-1].type and isinstance(message, HumanMessage | AIMessage):
            message = message.model_copy(update={"content": joined(blocks_of(made.pop()), blocks_of(message))})
        made.append(message)
    return made


def joined(first: list[Any], second: list[Any]) -> str | list[Any]:
    """Return the content of two messages as that of one."""
    if first and second and first[-1]["type"] == second[0]["type"] == "text":
        text = f"{first[-1]['text']}{SEPARATOR}{second[0]['text']}"
        first, second = [*first[:-1], {"type": "text", "text": text}], second[1:]
    blocks = [*first, *second]
    return blocks[0]["text"] if len(blocks) == 1 and blocks[0]["type"] == "text" else blocks or ""


def blocks_of(message: BaseMessage) -> list[Any]:
    """Return a valid message's content as blocks, none for no text."""
    if isinstance(message.content, str):
        return [{"type": "text", "text": message.content}] if message.content.strip() else []
    return message.content


def cleaned(message: BaseMessage) -> BaseMessage:
    """Return a message whose text any encoder takes; in a state of ours it is that already."""
    content = clean_all(message.content)
    return message if content == message.content else message.model_copy(update={"content": content})


def in_known_role(message: BaseMessage) -> BaseMessage:
    """Return a message of an odd role, which many servers refuse, as the nearest of the four that all know."""
    match message:
        case SystemMessage() | AIMessage() | ToolMessage() | HumanMessage() | RemoveMessage():
            return message
        case ChatMessage(role="system" | "developer"):
            return SystemMessage(text_of(message), id=message.id)
        case ChatMessage(role="assistant" | "ai" | "model"):
            return AIMessage(text_of(message), id=message.id)
        case FunctionMessage() if not is_blank(message):
            return HumanMessage(ORPHAN.format(text=as_json(text_of(message))), id=message.id)
    return HumanMessage(message.content, id=message.id)


def sendable_name(name: str) -> str:
    """Return a name as providers demand it, 1 to 64 of `a-zA-Z0-9_-`: models invent others (B027, B081)."""
    return re.sub(r"[^a-zA-Z0-9_-]", "_", name)[:64] or "unknown"


def json_of(args: dict[str, object]) -> dict[str, object]:
    """Return arguments as JSON can carry them: NaN and infinity, which it cannot, as text."""
    return {clean(str(key)): json_value(value) for key, value in args.items()}


def json_value(value: object) -> object:
    """Return one value as JSON can carry it."""
    match value:
        case dict():
            return json_of(value)
        case list() | tuple():
            return [json_value(one) for one in value]
        case None | bool() | int() | str():
            return clean_all(value)
        case float() if math.isfinite(value):
            return value
    return str(value)

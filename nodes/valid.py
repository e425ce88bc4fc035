"""The rules that keep a message list valid for a provider, applied to what is sent, never to what is stored.

After `valid_messages`: no system, removal or empty message; each tool call followed at once by exactly one result; no
result without its call; call ids unique; plain text where text is meant. It is idempotent and says what it changed.
"""

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from langchain_core.messages import (
    AIMessage,
    AnyMessage,
    BaseMessage,
    HumanMessage,
    SystemMessage,
    ToolCall,
    ToolMessage,
)

from nodes.text import is_blank, text_of

M = TypeVar("M", bound=BaseMessage)

NO_RESULT = "Error: no result was recorded for this call. It may or may not have run; do not assume either."
NO_OUTPUT = "(no output)"
ORPHAN = "[Result of an earlier tool call that is no longer shown] {text}"


@dataclass(frozen=True, kw_only=True)
class Valid:
    """A list that a provider accepts; `system` is what its system messages said; `changes` what was mended."""

    messages: list[AnyMessage]
    system: list[str] = field(default_factory=list)
    changes: list[str] = field(default_factory=list)


def valid_messages(messages: Sequence[BaseMessage]) -> Valid:
    """Return the list as a provider accepts it. What was said stays; only order, pairing and form are mended."""
    repair = Repair(messages)
    return Valid(messages=list(repair.run()), system=repair.system, changes=repair.changes)


class Repair:
    """One pass over one list. Results are looked up by call id, each used once, wherever it stands."""

    def __init__(self, messages: Sequence[BaseMessage]) -> None:
        self.messages = list(messages)
        self.system: list[str] = []
        self.changes: list[str] = []
        self.call_ids: set[str] = set()
        self.used: set[int] = set()

    def run(self) -> Iterator[AnyMessage]:
        """Yield the valid list in order."""
        for n, message in enumerate(self.messages):
            match message:
                case SystemMessage():
                    self.system.append(text_of(message))
                    self.changes.append("moved a system message to the front")
                case AIMessage():
                    yield from self.answer(n, message)
                case ToolMessage():
                    yield from self.orphan(n, message)
                case HumanMessage() if not is_blank(message):
                    yield plain(message)
                case _:
                    self.changes.append(f"dropped an empty or unsendable {message.type} message")

    def answer(self, n: int, message: AIMessage) -> Iterator[AnyMessage]:
        """Yield an answer and, at once, one result for each of its calls."""
        calls = [*message.tool_calls, *map(self.promoted, message.invalid_tool_calls)]
        if not calls and is_blank(message):
            self.changes.append("dropped an empty answer")
            return
        results = [self.result(n, call) for call in calls]
        sent = [self.renamed(call) for call in calls]
        yield AIMessage(content=text_of(message), tool_calls=sent, id=message.id)
        for call, result in zip(sent, results, strict=True):
            yield result.model_copy(update={"tool_call_id": call["id"]})

    def promoted(self, call: object) -> ToolCall:
        """Make a well-formed call of one whose arguments did not parse, so that its error has a partner (B028)."""
        self.changes.append("sent a call with broken arguments as one without arguments")
        assert isinstance(call, dict)
        return ToolCall(name=call.get("name") or "unknown", args={}, id=call.get("id"), type="tool_call")

    def renamed(self, call: ToolCall) -> ToolCall:
        """Give a call an id that no earlier call of this list has; servers that count from one repeat theirs (B032)."""
        wanted = call["id"] or "call"
        unique, n = wanted, 2
        while unique in self.call_ids or not unique:
            unique, n = f"{wanted}-{n}", n + 1
        self.call_ids.add(unique)
        return {**call, "id": unique, "name": sendable_name(call["name"])}

    def result(self, n: int, call: ToolCall) -> ToolMessage:
        """Find the stored result of a call: the next unused one with its id after the call, else say there is none."""
        for at in range(n + 1, len(self.messages)):
            later = self.messages[at]
            if isinstance(later, ToolMessage) and later.tool_call_id == (call["id"] or "") and at not in self.used:
                self.used.add(at)
                return plain(later)
        self.changes.append(f"reported the missing result of {call['name']}")
        return ToolMessage(NO_RESULT, tool_call_id=call["id"] or "", name=call["name"], status="error")

    def orphan(self, n: int, message: ToolMessage) -> Iterator[AnyMessage]:
        """Yield a result whose call is gone as a note, so that what it says is not lost."""
        if n in self.used:
            return
        self.changes.append("turned a result without its call into a note")
        if not is_blank(message):
            yield HumanMessage(ORPHAN.format(text=text_of(message)), id=message.id)


def plain(message: M) -> M:
    """Return a message as any server takes it: text-only blocks as one string (B078), no result empty (B076)."""
    content = message.content
    if isinstance(content, list) and all(isinstance(b, str) or b.get("type") == "text" for b in content):
        content = text_of(message)
    if isinstance(message, ToolMessage) and is_blank(message):
        content = NO_OUTPUT
    name = sendable_name(message.name or "") if isinstance(message, ToolMessage) else None
    return message.model_copy(update={"content": content, "name": name, "additional_kwargs": {}})


def sendable_name(name: str) -> str:
    """Return a name as providers demand it, 1 to 64 of `a-zA-Z0-9_-`: models invent others (B027, B081)."""
    return re.sub(r"[^a-zA-Z0-9_-]", "_", name)[:64] or "unknown"


def as_json(value: object) -> str:
    """Write a value as one line of JSON with real characters: a text in it cannot break out of its quotes."""
    line = json.dumps(value, ensure_ascii=False, default=str)
    return line.replace("\u2028", "\\u2028").replace("\u2029", "\\u2029").replace("\x85", "\\u0085")

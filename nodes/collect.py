"""From a model's stream to one stored answer, without ever completing what the model left incomplete.

LangChain's own merging closes open JSON: a call cut off in mid-sentence would run. Here a call counts only if the very
text of its arguments parses; everything else becomes an invalid call, which gets an error result (B028, B041).
"""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any
from uuid import uuid4

from langchain_core.messages import AIMessage, AIMessageChunk, InvalidToolCall, ToolCall
from langchain_core.messages.ai import UsageMetadata
from langchain_core.messages.tool import ToolCallChunk

CUT_OFF = "the answer was cut off by its length limit, so the arguments may be incomplete"
NOT_JSON = "the arguments are not a JSON object: {reason}"
NOT_CALLS = {"tool_calls", "function_call"}


@dataclass
class Draft:
    """A call as it comes in, piece by piece."""

    index: int | str | None
    id: str
    name: str
    args: str


def collect(pieces: Sequence[AIMessage]) -> AIMessage:
    """Join what a stream gave, a whole message or chunks, into one message whose valid calls are complete."""
    if not pieces:
        return AIMessage("")
    chunks = [piece for piece in pieces if isinstance(piece, AIMessageChunk)]
    if len(chunks) < len(pieces):
        return identified(next(piece for piece in pieces if not isinstance(piece, AIMessageChunk)))
    whole = reduce(lambda left, right: left + right, chunks)
    cut = whole.response_metadata.get("finish_reason") == "length"
    calls, broken = judged(drafts_of(chunk for piece in chunks for chunk in piece.tool_call_chunks), cut=cut)
    return identified(
        AIMessage(
            content=whole.content,
            tool_calls=calls,
            invalid_tool_calls=broken,
            id=whole.id,
            response_metadata=whole.response_metadata,
            usage_metadata=usage_of(chunks),
            additional_kwargs={k: v for k, v in whole.additional_kwargs.items() if k not in NOT_CALLS},
        )
    )


def drafts_of(fragments: Iterable[ToolCallChunk]) -> list[Draft]:
    """Join fragments into calls: a new id starts a new call; without one, the index or else the order decides."""
    drafts: list[Draft] = []
    for piece in fragments:
        name, call_id, index = piece.get("name") or "", piece.get("id") or "", piece.get("index")
        same = [draft for draft in drafts if draft.index == index]
        known = next((draft for draft in reversed(same) if not call_id or call_id == draft.id), None)
        if known is None or (name and known.name and not call_id and is_complete(known.args)):
            drafts.append(Draft(index=index, id=call_id, name=name, args=piece.get("args") or ""))
        else:
            known.name = known.name or name
            known.args += piece.get("args") or ""
    return drafts


def is_complete(text: str) -> bool:
    """Whether the text is a whole JSON object."""
    try:
        return isinstance(json.loads(text), dict)
    except ValueError:
        return False


def judged(drafts: Sequence[Draft], *, cut: bool) -> tuple[list[ToolCall], list[InvalidToolCall]]:
    """Part calls whose argument text is a whole JSON object from those that must not run."""
    calls: list[ToolCall] = []
    broken: list[InvalidToolCall] = []
    for draft in drafts:
        args, reason = parsed(draft.args)
        if args is None or cut:
            broken.append(
                InvalidToolCall(
                    name=draft.name,
                    args=draft.args,
                    id=draft.id,
                    error=CUT_OFF if cut else reason,
                    type="invalid_tool_call",
                )
            )
        else:
            calls.append(ToolCall(name=draft.name, args=args, id=draft.id, type="tool_call"))
    return calls, broken


def parsed(text: str) -> tuple[dict[str, Any] | None, str]:
    """Read argument text; no text at all means no arguments. Returns None and the reason if it is no JSON object."""
    try:
        value = json.loads(text) if text.strip() else {}
    except ValueError as error:
        return None, NOT_JSON.format(reason=error)
    return (value, "") if isinstance(value, dict) else (None, NOT_JSON.format(reason=f"it is a {type(value).__name__}"))


def usage_of(chunks: Sequence[AIMessageChunk]) -> UsageMetadata | None:
    """Read usage without counting a repeated total twice: each field's largest value."""
    reports = [chunk.usage_metadata for chunk in chunks if chunk.usage_metadata]
    if not reports:
        return None
    given, taken = (max(report[name] or 0 for report in reports) for name in ("input_tokens", "output_tokens"))
    return UsageMetadata(input_tokens=given, output_tokens=taken, total_tokens=given + taken)


def identified(answer: AIMessage) -> AIMessage:
    """Give the message and each of its calls an id of its own where one is missing or double (B032)."""
    seen: set[str] = set()

    def fresh(call_id: str | None) -> str:
        unique = call_id if call_id and call_id not in seen else f"call_{uuid4().hex[:20]}"
        seen.add(unique)
        return unique

    return answer.model_copy(
        update={
            "id": answer.id or str(uuid4()),
            "tool_calls": [{**call, "id": fresh(call["id"])} for call in answer.tool_calls],
            "invalid_tool_calls": [{**call, "id": fresh(call["id"])} for call in answer.invalid_tool_calls],
        }
    )

"""From a model's stream to one stored answer, without ever completing what the model left incomplete.

LangChain's own merging closes open JSON: a call cut off in mid-sentence would run. Here a call counts only if the very
text of its arguments parses; everything else becomes an invalid call, which gets an error result (B028, B041).
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any
from uuid import uuid4

from langchain_core.messages import AIMessage, AIMessageChunk, InvalidToolCall, ToolCall
from langchain_core.messages.ai import UsageMetadata
from langchain_core.messages.tool import ToolCallChunk

from nodes.text import is_blank

CUT_OFF = "the answer was cut off by its length limit, or by a lost connection, so the arguments may be incomplete"
BROKEN_OFF = "the answer broke off before its arguments came"
NOT_JSON = "the arguments are not a JSON object: {reason}"
TOO_DEEP = "the arguments are nested more than {limit} levels deep"
NOT_CALLS = {"tool_calls", "function_call"}
REASON_NAMES = ("finish_reason", "stop_reason", "done_reason")
BROKE_OFF = "broken_off"
"""Stands for the finish reason of a stream over OpenAI's wire that ended without one, as a lost connection does."""

CUT_REASONS = ("length", "max_tokens", "MAX_TOKENS", BROKE_OFF)
MAX_DEPTH = 64
"""Of argument values; deeper ones break the recursion of whatever copies or stores them."""


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
        return identified(whole_or_cut(next(piece for piece in pieces if not isinstance(piece, AIMessageChunk))))
    whole = reduce(joined, (chunk.model_copy(update={"usage_metadata": None}) for chunk in chunks))
    cut = any(map(is_cut, chunks))
    drafts = drafts_of(chunk for piece in chunks for chunk in piece.tool_call_chunks)
    ended = any(map(is_ended, chunks))
    calls, broken = judged(drafts, cut=cut, ended=ended)
    lost = {} if ended or whole.response_metadata.get("model_provider") != "openai" else {"finish_reason": BROKE_OFF}
    return identified(
        AIMessage(
            content=whole.content,
            tool_calls=calls,
            invalid_tool_calls=broken,
            id=whole.id,
            response_metadata={**whole.response_metadata, **lost},
            usage_metadata=usage_of(chunks),
            additional_kwargs={k: v for k, v in whole.additional_kwargs.items() if k not in NOT_CALLS},
        )
    )


def joined(whole: AIMessageChunk, chunk: AIMessageChunk) -> AIMessageChunk:
    """Join two chunks; of metadata that LangChain will not merge, as of two types, the later holds."""
    try:
        return whole + chunk
    except TypeError:
        bare = whole + chunk.model_copy(update={"response_metadata": {}, "additional_kwargs": {}})
        names = ("response_metadata", "additional_kwargs")
        return bare.model_copy(update={name: {**getattr(whole, name), **getattr(chunk, name)} for name in names})


def is_cut(answer: AIMessage) -> bool:
    """Whether the answer is not whole: cut by its length limit, for which each provider has its word, or broken off."""
    return any(answer.response_metadata.get(name) in CUT_REASONS for name in REASON_NAMES)


def is_broken_off(answer: AIMessage) -> bool:
    """Whether the connection was lost on the way."""
    return answer.response_metadata.get("finish_reason") == BROKE_OFF


def is_ended(answer: AIMessage) -> bool:
    """Whether the server says why the answer ended; a stream that breaks off cleanly does not."""
    return any(answer.response_metadata.get(name) for name in REASON_NAMES)


def whole_or_cut(answer: AIMessage) -> AIMessage:
    """Return a message that came in one piece; its calls may not run if it was cut off."""
    if not answer.tool_calls or not is_cut(answer):
        return answer
    broken = [
        InvalidToolCall(
            name=call["name"], args=json.dumps(call["args"]), id=call["id"], error=CUT_OFF, type="invalid_tool_call"
        )
        for call in answer.tool_calls
    ]
    return answer.model_copy(
        update={"tool_calls": [], "invalid_tool_calls": [*broken, *answer.invalid_tool_calls]},
    )


def drafts_of(fragments: Iterable[ToolCallChunk]) -> list[Draft]:
    """Join fragments into calls. What belongs to no call for sure makes the one before it invalid, never complete."""
    drafts: list[Draft] = []
    for piece in fragments:
        name, args = piece.get("name") or "", piece.get("args") or ""
        known = draft_of(piece, drafts)
        if known is None:
            drafts.append(Draft(index=piece.get("index"), id=piece.get("id") or "", name=name, args=args))
        else:
            known.name = known.name or name
            known.id = known.id or piece.get("id") or ""
            known.args += args
    return drafts


def draft_of(piece: ToolCallChunk, drafts: Sequence[Draft]) -> Draft | None:
    """Return the call that a fragment goes on with, None if it starts one: a new name, id or index does."""
    name, call_id, index = piece.get("name") or "", piece.get("id") or "", piece.get("index")
    here = [draft for draft in reversed(drafts) if draft.index == index]
    at_index = next((draft for draft in here if call_id and call_id == draft.id), next(iter(here), None))
    if not name:
        starts = at_index is None and index is not None and (call_id or not drafts)
        return None if starts or not drafts else at_index or drafts[-1]
    if at_index is None or not at_index.name:
        return at_index
    if call_id and at_index.id:
        return at_index if call_id == at_index.id else None
    repeats = name == at_index.name and not (piece.get("args") and is_complete(at_index.args))
    return at_index if repeats else None


def is_complete(text: str) -> bool:
    """Whether the text is a whole JSON object."""
    return bool(text.strip()) and parsed(text)[0] is not None


def judged(drafts: Sequence[Draft], *, cut: bool, ended: bool) -> tuple[list[ToolCall], list[InvalidToolCall]]:
    """Part calls whose argument text is a whole JSON object from those that must not run.

    No text at all means no arguments, but only if the stream came to its end: else it may not have come yet.
    """
    calls: list[ToolCall] = []
    broken: list[InvalidToolCall] = []
    for draft in drafts:
        args, reason = parsed(draft.args) if ended or draft.args.strip() else (None, BROKEN_OFF)
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
        value = json.loads(text, strict=False) if text.strip() else {}  # line ends within a text are no guess
        if depth_of(value) > MAX_DEPTH:
            return None, TOO_DEEP.format(limit=MAX_DEPTH)
        json.dumps(value, allow_nan=False)  # Python reads NaN and 1e999; JSON cannot carry what comes of them
    except RecursionError:
        return None, TOO_DEEP.format(limit=MAX_DEPTH)
    except ValueError as error:
        return None, NOT_JSON.format(reason=error)
    return (value, "") if isinstance(value, dict) else (None, NOT_JSON.format(reason=f"it is a {type(value).__name__}"))


def depth_of(value: object) -> int:
    """Count how deep lists and objects are nested."""
    depth, level = 0, [value]
    while level := [
        inner
        for outer in level
        if isinstance(outer, dict | list)
        for inner in (outer.values() if isinstance(outer, dict) else outer)
    ]:
        depth += 1
    return depth


def usage_of(chunks: Sequence[AIMessageChunk]) -> UsageMetadata | None:
    """Read usage without counting a repeated total twice: each field's largest value."""
    reports: list[Mapping[str, Any]] = [chunk.usage_metadata for chunk in chunks if chunk.usage_metadata]
    given, taken = (
        max((report.get(name) or 0 for report in reports), default=0) for name in ("input_tokens", "output_tokens")
    )
    if not given and not taken:
        return None
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
            "content": said(answer),
            "id": answer.id or str(uuid4()),
            "tool_calls": [{**call, "id": fresh(call["id"])} for call in answer.tool_calls],
            "invalid_tool_calls": [{**call, "id": fresh(call["id"])} for call in answer.invalid_tool_calls],
        }
    )


def said(answer: AIMessage) -> Any:
    """Return the content, where OpenAI's refusals, in a field or block of their own, are text as everything said."""
    refusal = answer.additional_kwargs.get("refusal")
    if isinstance(refusal, str) and is_blank(answer):
        return refusal
    if isinstance(answer.content, str):
        return answer.content
    blocks = [(block, block.get("refusal") if isinstance(block, dict) else None) for block in answer.content]
    return [{"type": "text", "text": told} if isinstance(told, str) else block for block, told in blocks]

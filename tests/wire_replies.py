"""What a scripted server says: small declarative replies, and their form on the Chat Completions wire.

Building only: nothing here sends, waits or counts requests (`wire` does).
"""

import hashlib
import itertools
import json
import struct
from base64 import b64encode
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

Body = dict[str, Any]
Usage = Literal["once", "missing", "null", "repeated"] | dict[str, Any]
FRESH = "(fresh)"


class Call(NamedTuple):
    """One tool call. `args` as text goes out as it is, cut off or not; so does an `id` of None or ""."""

    name: str
    args: dict[str, Any] | str
    id: str | None = FRESH


@dataclass(frozen=True, kw_only=True)
class Turn:
    """One assistant turn. Write `Text`, `Calls` or `Empty`; their keywords are these fields.

    `usage`: "once" (streamed only if asked for, as OpenAI does), "missing" though asked for, "null" values,
    "repeated" on each chunk, or the object to send. `reasoning` goes out as `reasoning_content`, the word of
    DeepSeek and vLLM.
    """

    content: str | None = None
    calls: tuple[Call, ...] = ()
    reasoning: str = ""
    finish: str = "stop"
    usage: Usage = "once"


class Text(Turn):
    """An answer in words; `finish="length"` cuts it off by decree."""

    def __init__(self, text: str, **fields: Any) -> None:
        super().__init__(content=text, **fields)


class Calls(Turn):
    """Tool calls, each `(name, args)` or `(name, args, id)`, with `content=` for words beside them."""

    def __init__(self, *calls: tuple[Any, ...], **fields: Any) -> None:
        super().__init__(**{"calls": tuple(Call(*call) for call in calls), "finish": "tool_calls", **fields})


class Empty(Turn):
    """An answer that says nothing: content "" or, on request, None."""

    def __init__(self, content: str | None = "", **fields: Any) -> None:
        super().__init__(content=content, **fields)


UNFINISHED = Text("This sentence never reaches its end.")
LATE = Text("Better late than never.")


@dataclass(frozen=True)
class Fragments:
    """Raw deltas, streamed as they are; `call_fragment` writes one. They do not exist unstreamed."""

    deltas: list[dict[str, Any]]
    finish: str = "tool_calls"
    usage: Usage = "once"


@dataclass(frozen=True, kw_only=True)
class Fault:
    """An error answer; with `after_chunks`, an error event in the middle of `reply`'s stream.

    `retry_after` is in seconds; the OpenAI client ignores 0 and waits about 0.5 s: use 0.01. A `code` is
    OpenAI's, as "context_length_exceeded". `raw` replaces the JSON body, as a proxy's HTML does.
    """

    status: int = 500
    retry_after: float | None = None
    message: str = "The server had an error while processing your request."
    code: str | None = None
    raw: str | None = None
    after_chunks: int | None = None
    reply: "Turn | Fragments" = UNFINISHED


@dataclass(frozen=True)
class Stall:
    """Silence for `seconds`, before the answer or after that many chunks of it; then `reply` goes on."""

    seconds: float
    reply: "Turn | Fragments" = LATE
    after_chunks: int = 0


@dataclass(frozen=True)
class Drop:
    """A connection dropped after that many chunks (0: before any answer; unstreamed: in mid-body).

    `clean=True` ends the stream without a transport error, but without finish reason and [DONE] too.
    """

    after_chunks: int = 0
    reply: "Turn | Fragments" = UNFINISHED
    clean: bool = False


Interruption = Fault | Stall | Drop
Reply = Turn | Fragments | Interruption
ReplyTo = Callable[[Body], Reply]
NewId = Callable[[str], str]
"""Give a fresh id with this prefix."""


def call_fragment(arguments: str | None = "", **fields: Any) -> dict[str, Any]:
    """Return the delta of one call fragment; `index`, `id`, `name` go out only if given, None included."""
    function = {"arguments": arguments} | ({"name": fields.pop("name")} if "name" in fields else {})
    return {"tool_calls": [{"type": "function", "function": function, **fields}]}


def split(text: str, chunk_chars: int | None) -> list[str]:
    """Cut text in pieces of `chunk_chars` characters; None leaves it whole."""
    size = chunk_chars or max(len(text), 1)
    return [text[start : start + size] for start in range(0, len(text), size)]


def argument_text(call: Call) -> str:
    return call.args if isinstance(call.args, str) else json.dumps(call.args, ensure_ascii=False)


def message_of(turn: Turn, new_id: NewId) -> dict[str, Any]:
    """Return the unstreamed assistant message of a turn."""
    message: dict[str, Any] = {"role": "assistant", "content": turn.content, "refusal": None}
    if turn.reasoning:
        message["reasoning_content"] = turn.reasoning
    if turn.calls:
        message["tool_calls"] = [
            {
                "id": new_id("call") if call.id == FRESH else call.id,
                "type": "function",
                "function": {"name": call.name, "arguments": argument_text(call)},
            }
            for call in turn.calls
        ]
    return message


def deltas_of(reply: Turn | Fragments, new_id: NewId, chunk_chars: int | None) -> Iterator[dict[str, Any]]:
    """Yield the deltas of a reply in OpenAI's order: role, reasoning, words, then call after call."""
    yield {"role": "assistant", "content": ""}
    if isinstance(reply, Fragments):
        yield from reply.deltas
        return
    yield from ({"reasoning_content": piece} for piece in split(reply.reasoning, chunk_chars))
    yield from ({"content": piece} for piece in split(reply.content or "", chunk_chars))
    for index, call in enumerate(message_of(reply, new_id).get("tool_calls", ())):
        text = call["function"]["arguments"]
        yield {"tool_calls": [{"index": index, **call, "function": {**call["function"], "arguments": ""}}]}
        for piece in split(text, chunk_chars):
            yield {"tool_calls": [{"index": index, "function": {"arguments": piece}}]}


def usage_of(reply: Turn | Fragments, body: Body) -> dict[str, Any] | None:
    """Return the usage to report: a quarter of the characters on either side, so equal streamed and not."""
    if isinstance(reply.usage, dict) or reply.usage == "missing":
        return reply.usage if isinstance(reply.usage, dict) else None
    if reply.usage == "null":
        return dict.fromkeys(("prompt_tokens", "completion_tokens", "total_tokens"))
    said = (reply.content or "", *map(argument_text, reply.calls)) if isinstance(reply, Turn) else ()
    prompt = 1 + len(json.dumps(body["messages"])) // 4
    completion = 1 + sum(map(len, said)) // 4
    return {"prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": prompt + completion}


def completion_of(turn: Turn, body: Body, new_id: NewId) -> dict[str, Any]:
    """Return the whole answer to an unstreamed request."""
    choice = {"index": 0, "message": message_of(turn, new_id), "logprobs": None, "finish_reason": turn.finish}
    usage = usage_of(turn, body)
    return envelope(body, "chat.completion", new_id("chatcmpl"), [choice]) | ({"usage": usage} if usage else {})


def chunks_of(reply: Turn | Fragments, body: Body, new_id: NewId, chunk_chars: int | None) -> Iterator[dict[str, Any]]:
    """Yield the chunks of a streamed answer: the deltas, the finish reason, then usage if asked for."""
    asked = (body.get("stream_options") or {}).get("include_usage") is True
    usage, answer_id = usage_of(reply, body), new_id("chatcmpl")
    running = {"usage": usage} if reply.usage == "repeated" else {"usage": None} if asked else {}
    endless = zip(deltas_of(reply, new_id, chunk_chars), itertools.repeat(None))
    for delta, finish in itertools.chain(endless, [({}, reply.finish)]):
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
        yield envelope(body, "chat.completion.chunk", answer_id, [choice]) | running
    if asked and usage:
        yield envelope(body, "chat.completion.chunk", answer_id, []) | {"usage": usage}


def envelope(body: Body, kind: str, answer_id: str, choices: list[dict[str, Any]]) -> dict[str, Any]:
    return {"id": answer_id, "object": kind, "created": 0, "model": body["model"], "choices": choices}


def error_of(message: str, *, status: int, code: str | None = None) -> dict[str, Any]:
    """Return an OpenAI-shaped error body."""
    kind = {429: "rate_limit_error"}.get(status, "invalid_request_error" if status < 500 else "server_error")
    return {"error": {"message": message, "type": kind, "param": None, "code": code}}


def vector_of(text: str, dimensions: int) -> list[float]:
    """Return a unit vector that depends on the text alone and means nothing."""
    raw = hashlib.shake_256(json.dumps(text).encode()).digest(2 * dimensions)
    numbers = [number + 0.5 for number in struct.unpack(f"<{dimensions}h", raw)]
    length = sum(number * number for number in numbers) ** 0.5
    return [number / length for number in numbers]


def embeddings_of(body: Body, dimensions: int, embed: Callable[[str], list[float]] | None = None) -> dict[str, Any]:
    """Return the answer to an embeddings request: lists of floats or, if asked, base64 of float32."""
    texts = body["input"] if isinstance(body["input"], list) else [body["input"]]
    data = []
    for index, text in enumerate(texts):
        vector = embed(text) if embed else vector_of(text, dimensions)
        packed = struct.pack(f"<{len(vector)}f", *vector)
        as_text = body.get("encoding_format") == "base64"
        sent = b64encode(packed).decode() if as_text else list(struct.unpack(f"<{len(vector)}f", packed))
        data.append({"object": "embedding", "index": index, "embedding": sent})
    used = 1 + sum(map(len, texts)) // 4
    usage = {"prompt_tokens": used, "total_tokens": used}
    return {"object": "list", "data": data, "model": body["model"], "usage": usage}

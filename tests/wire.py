"""A loopback server that speaks OpenAI's Chat Completions wire, for end-to-end tests of a real client.

It answers from a script (`wire_replies`), refuses what a real server refuses (`wire_rules`) and records what
it was sent. It is no model: it never reads a prompt.

    with OpenAIWire([Calls(("calculator", {"expression": "2+2"})), Text("4")]) as wire:
        model = ChatOpenAI(model="test-model", base_url=wire.url, api_key="any", use_responses_api=False)
        ...
    assert wire.rejections == [] and len(wire.chats) == 2
"""

import itertools
import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self

from wire_http import ScriptError, Server
from wire_replies import (
    Body,
    Calls,
    Drop,
    Empty,
    Fault,
    Fragments,
    Reply,
    ReplyTo,
    Stall,
    Text,
    call_fragment,
)
from wire_rules import DEFAULTS, Rules, reject, wire_messages

__all__ = (
    "Calls",
    "Drop",
    "Empty",
    "Fault",
    "Fragments",
    "OpenAIWire",
    "Request",
    "Rules",
    "ScriptError",
    "Stall",
    "Text",
    "call_fragment",
    "reject",
    "wire_messages",
)

POLL_S = 0.02  # how often the accepting thread looks whether it should end


@dataclass(frozen=True, kw_only=True)
class Request:
    """What came in. Header names are in lower case; `body` is None if there was none or it was not JSON."""

    path: str
    headers: dict[str, str]
    body: Any


class OpenAIWire:
    """A scripted server on 127.0.0.1, up inside its `with` block.

    `replies` go out in order, one for each request that is not refused; an item may be a function of the
    body, and so may `replies` itself, which then never runs out. A reply too few or left over raises
    `ScriptError` at the exit, a function that failed its own error. With `exact=False` some may be left over,
    and a script that ran out repeats its last reply. Without `key` any key will do; `chunk_chars=None` never
    splits text or arguments. Vectors mean nothing unless `embed` makes them.
    """

    def __init__(
        self,
        replies: Iterable[Reply | ReplyTo] | ReplyTo = (),
        *,
        models: tuple[str, ...] = ("test-model", "test-embedding"),
        key: str | None = None,
        rules: Rules = DEFAULTS,
        chunk_chars: int | None = 3,
        dimensions: int = 32,
        embed: Callable[[str], list[float]] | None = None,
        exact: bool = True,
    ) -> None:
        self.models, self.key, self.rules = models, key, rules
        self.chunk_chars, self.dimensions, self.embed = chunk_chars, dimensions, embed
        self.exact = exact and not callable(replies)
        self.requests: list[Request] = []
        self.rejections: list[str] = []
        self._replies = itertools.repeat(replies) if callable(replies) else iter(replies)
        self._last: Reply | ReplyTo | None = None
        self._errors: list[Exception] = []
        self._numbers = itertools.count(1)
        self._lock = threading.Lock()
        self._closing = threading.Event()

    @property
    def url(self) -> str:
        """The base URL for a client."""
        return f"http://127.0.0.1:{self._server.server_address[1]}/v1"

    @property
    def chats(self) -> list[Body]:
        """The bodies of the chat requests, refused ones included."""
        chats = [request.body for request in self.requests if request.path == "/v1/chat/completions"]
        return [body for body in chats if isinstance(body, dict)]

    def __enter__(self) -> Self:
        self._server = Server(self)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(POLL_S,), daemon=True)
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        self._closing.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()
        complaint = self._complaint()
        if complaint and error:
            error.add_note(f"OpenAIWire: {complaint}")
        elif complaint:
            raise complaint

    def _complaint(self) -> Exception | None:
        if self._errors:
            return self._errors[0]
        left = list(itertools.islice(self._replies, 1)) if self.exact else []
        return ScriptError(f"replies left over: {left[0]!r}; refused: {self.rejections}") if left else None

    def record(self, path: str, headers: dict[str, str], body: Any) -> None:
        """Keep what came in."""
        self.requests.append(Request(path=path, headers=headers, body=body))

    def refuse(self, reason: str) -> None:
        """Keep why a request was refused."""
        self.rejections.append(reason)

    def fail(self, error: Exception) -> None:
        """Keep an error for the exit: a server thread has nobody to raise it to."""
        self._errors.append(error)

    def wait(self, seconds: float) -> bool:
        """Sleep, but not longer than the server lives; return whether it ends."""
        return self._closing.wait(seconds)

    def new_id(self, prefix: str) -> str:
        """Return an id that no other answer of this server has."""
        return f"{prefix}_{next(self._numbers):04}"

    def next_reply(self, body: Body) -> Reply:
        """Take the next reply; raises `ScriptError` when there is none."""
        with self._lock:
            item = next(self._replies, None if self.exact else self._last)
            self._last = item
        if item is None:
            last = str(body["messages"][-1])[:200]
            raise ScriptError(f"no reply left for chat request {len(self.chats)}, whose last message is {last}")
        try:
            return item(body) if callable(item) else item
        except OSError as error:  # to the handler that would mean a client that hung up
            raise ScriptError(f"the reply's function raised {error!r}") from error

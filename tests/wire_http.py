"""The HTTP half of `wire`: a handler that reads requests, asks for replies and writes them, faults included.

One connection serves one request, so that no thread and no pooled socket is left idle when a test ends.
"""

import json
import socketserver
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler
from typing import Any, Protocol

from wire_replies import (
    Body,
    Drop,
    Fault,
    Fragments,
    Interruption,
    Reply,
    Stall,
    Turn,
    chunks_of,
    completion_of,
    embeddings_of,
    error_of,
)
from wire_rules import Rules, reject, strict_json

SILENT_CLIENT_S = 5  # a client that neither reads nor writes for so long is given up


class ScriptError(AssertionError):
    """The script and the requests do not fit: a reply too few, one too many, or one that cannot be given."""


class Refused(Exception):
    """A request that a real server would refuse, with the status and code it would give."""

    def __init__(self, reason: str, *, status: int = 400, code: str | None = None) -> None:
        super().__init__(reason)
        self.status, self.code = status, code


class Desk(Protocol):
    """What the handler asks of `OpenAIWire`."""

    models: tuple[str, ...]
    key: str | None
    rules: Rules
    chunk_chars: int | None
    dimensions: int
    embed: Callable[[str], list[float]] | None

    def record(self, path: str, headers: dict[str, str], body: Any) -> None: ...
    def refuse(self, reason: str) -> None: ...
    def fail(self, error: Exception) -> None: ...
    def new_id(self, prefix: str) -> str: ...
    def next_reply(self, body: Body) -> Reply: ...
    def wait(self, seconds: float) -> bool: ...


class Server(socketserver.ThreadingTCPServer):
    """The sockets; `http.server.HTTPServer` would look up a host name first."""

    daemon_threads = False  # server_close() joins the others
    request_queue_size = 64

    def __init__(self, desk: Desk) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.desk = desk

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Stay silent: `Handler` keeps its errors, and what comes here is a client that hung up."""


class Handler(BaseHTTPRequestHandler):
    """One request: read, judged, answered."""

    server: Server
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    timeout = SILENT_CLIENT_S

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing; requests are recorded."""

    def do_GET(self) -> None:
        self._answer({"/v1/models": self._models})

    def do_POST(self) -> None:
        self._answer({"/v1/chat/completions": self._chat, "/v1/embeddings": self._embeddings})

    def _answer(self, routes: dict[str, Callable[[Body], None]]) -> None:
        self.close_connection = True
        try:
            body = self._read()
            if self.path not in routes:
                reason = f"Unknown request URL: {self.command} {self.path}."
                raise Refused(reason, status=404, code="unknown_url")
            routes[self.path](body)
        except Refused as refusal:
            self.server.desk.refuse(str(refusal))
            self._send(refusal.status, error_of(str(refusal), status=refusal.status, code=refusal.code))
        except OSError:
            return  # the client hung up
        except Exception as error:
            self.server.desk.fail(error)
            self._send(400, error_of(f"The test's script failed: {error}", status=400, code="script_error"))

    def _read(self) -> Any:
        """Record the request and return its body, None for an empty one; raises `Refused` for key or JSON."""
        desk, raw = self.server.desk, self.rfile.read(int(self.headers.get("content-length", 0)))
        try:
            body, fault = (strict_json(raw.decode("utf-8")) if raw else None), None
        except ValueError as error:
            body, fault = None, f"We could not parse the JSON body of your request: {error}"
        headers = {name.lower(): value for name, value in self.headers.items()}
        desk.record(self.path, headers, body)
        if desk.key is not None and headers.get("authorization") != f"Bearer {desk.key}":
            raise Refused("Incorrect API key provided.", status=401, code="invalid_api_key")
        if fault or (self.command == "POST" and not isinstance(body, dict)):
            raise Refused(fault or "The body of your request must be a JSON object.")
        return body

    def _models(self, _: Body) -> None:
        row = {"object": "model", "created": 0, "owned_by": "tests"}
        self._send(200, {"object": "list", "data": [{"id": name, **row} for name in self.server.desk.models]})

    def _embeddings(self, body: Body) -> None:
        self._check_model(body)
        texts = body["input"] if isinstance(body.get("input"), list) else [body.get("input")]
        if not texts or not all(isinstance(text, str) and text for text in texts):
            raise Refused("'$.input' is invalid: expected non-empty texts (this server takes no token lists).")
        desk = self.server.desk
        self._send(200, embeddings_of(body, body.get("dimensions") or desk.dimensions, desk.embed))

    def _chat(self, body: Body) -> None:
        self._check_model(body)
        if reason := reject(body, self.server.desk.rules):
            raise Refused(reason)
        reply = self.server.desk.next_reply(body)
        if isinstance(reply, Fault) and (reply.after_chunks is None or not body.get("stream")):
            self._fault(reply)
        elif body.get("stream"):
            self._stream(reply, body)
        else:
            self._complete(reply, body)

    def _check_model(self, body: Body) -> None:
        model = body.get("model")
        if not isinstance(model, str):
            raise Refused("You must provide a model parameter.")
        if model not in self.server.desk.models:
            raise Refused(f"The model {model!r} does not exist.", status=404, code="model_not_found")

    def _fault(self, fault: Fault) -> None:
        code = fault.code or ("rate_limit_exceeded" if fault.status == 429 else None)
        extra = {} if fault.retry_after is None else {"retry-after": f"{fault.retry_after:g}"}
        payload = error_of(fault.message, status=fault.status, code=code)
        self._send(fault.status, payload if fault.raw is None else fault.raw, extra)

    def _complete(self, reply: Reply, body: Body) -> None:
        turn = reply.reply if isinstance(reply, Stall | Drop) else reply
        if not isinstance(turn, Turn):
            raise ScriptError(f"{turn!r} can be streamed only, and this request is not streamed")
        if isinstance(reply, Stall) and self.server.desk.wait(reply.seconds):
            return
        payload = completion_of(turn, body, self.server.desk.new_id)
        if not isinstance(reply, Drop):
            self._send(200, payload)
        elif reply.after_chunks:
            self._send(200, payload, cut=True)

    def _stream(self, reply: Reply, body: Body) -> None:
        turn = reply.reply if isinstance(reply, Interruption) else reply
        if not isinstance(turn, Turn | Fragments):
            raise ScriptError(f"{turn!r} is no reply: see wire_replies")
        desk = self.server.desk
        events = [json_text(chunk) for chunk in chunks_of(turn, body, desk.new_id, desk.chunk_chars)]
        stop = reply.after_chunks if isinstance(reply, Interruption) else None
        if stop is not None and stop > len(events):
            raise ScriptError(f"{reply!r} comes after the end: the stream has {len(events)} chunks")
        for number, event in enumerate([*events, "[DONE]"]):
            if number == stop and self._interrupt(reply):
                return
            if number == 0:
                self._open_stream()
            self._send_event(event)
        self._end_stream()

    def _interrupt(self, reply: Reply) -> bool:
        """Do what the interruption says; return whether the stream is over."""
        if isinstance(reply, Stall):
            return self.server.desk.wait(reply.seconds)
        if isinstance(reply, Fault):
            if reply.after_chunks == 0:
                self._open_stream()
            self._send_event(json_text(error_of(reply.message, status=reply.status, code=reply.code)))
            self._end_stream()
        elif isinstance(reply, Drop) and reply.clean and reply.after_chunks:
            self._end_stream()
        return True

    def _send(self, status: int, payload: Any, extra: dict[str, str] | None = None, *, cut: bool = False) -> None:
        is_page = isinstance(payload, str)
        data = payload.encode() if is_page else json_text(payload).encode()
        self._head(status, "text/html" if is_page else "application/json", extra or {}, length=len(data))
        self.wfile.write(data[: len(data) // 2] if cut else data)

    def _open_stream(self) -> None:
        self._head(200, "text/event-stream", {"transfer-encoding": "chunked"})

    def _head(self, status: int, kind: str, extra: dict[str, str], length: int | None = None) -> None:
        self.send_response(status)
        sizes = {} if length is None else {"content-length": str(length)}
        for name, value in {"content-type": kind, "connection": "close", **sizes, **extra}.items():
            self.send_header(name, value)
        self.end_headers()

    def _send_event(self, event: str) -> None:
        """Send one event; if it holds more than ASCII, in two writes that tear the first such character."""
        data = f"data: {event}\n\n".encode()
        tear = next((i + 1 for i, byte in enumerate(data) if byte > 127), 0)
        for piece in (data[:tear], data[tear:]):
            if piece:
                self.wfile.write(b"%x\r\n%b\r\n" % (len(piece), piece))

    def _end_stream(self) -> None:
        self.wfile.write(b"0\r\n\r\n")


def json_text(value: Any) -> str:
    """Return JSON in real characters, or escaped where a lone surrogate lets no other way."""
    text = json.dumps(value, ensure_ascii=False)
    return text if text.encode("utf-8", "replace") == text.encode("utf-8", "surrogatepass") else json.dumps(value)

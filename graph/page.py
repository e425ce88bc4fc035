"""The memory page at `/memory`: what Studio cannot show, on the same server. Three files and a JSON interface.

Whose memory: that of the user whom the server logged in; without a login the settings' or any other, from this machine
alone. The files hold no data and are open to all, so that a person can log in on them. What the views hold is in
graph/views.py.
"""

import hmac
import json
import re
import secrets
from collections.abc import Callable
from dataclasses import dataclass, field
from ipaddress import ip_address
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.store.base import BaseStore
from starlette.concurrency import run_in_threadpool
from starlette.requests import HTTPConnection, Request
from starlette.responses import FileResponse, JSONResponse, RedirectResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send
from starlette.websockets import WebSocketClose

from graph.block_commands import blocks_from
from graph.serve import is_loopback
from graph.settings import Settings
from graph.views import EDITS, VIEWS, Desk, Given, Missing, View
from memory.block_specs import DEFAULT_BLOCKS, BlockRefused
from memory.errors import StoreError
from nodes.context import Context

ASSETS = Path(__file__).with_name("assets")
FILES = {"/memory": "memory.html", "/memory/page.css": "page.css", "/memory/page.js": "page.js"}
HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'",
    "X-Frame-Options": "DENY",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cache-Control": "no-store",
}
STUDIO = re.compile(r"https://([a-z0-9-]+\.)?smith\.langchain\.com")
TOKEN = "x-palimpsest-token"
MOST_BYTES = 500_000

OTHER_SITE = "this server answers its own page and Studio; the request came from {origin!r}"
OTHER_HOST = "without a login this server answers to localhost or an address; the request was to {host!r}"
OTHER_MACHINE = "without a login the memory page is for this machine alone; set `auth` in langgraph.json"
NO_LOGIN_RAN = "nobody asked who you are: set http.enable_custom_route_auth in langgraph.json"
NOT_LOGGED_IN = "log in: this server shows everybody their own memory alone"
NO_TOKEN = "the request lacks the token of this page; load the page again"
NOT_JSON = f"the request must hold one JSON object of at most {MOST_BYTES} bytes"


class Refusal(Exception):
    """A request that is not served; the message says why."""

    def __init__(self, status: int, told: str) -> None:
        super().__init__(told)
        self.status = status


class Guard:
    """Refuses what other sites send to this server, and gives out the page's files.

    A browser lets any site send requests to 127.0.0.1, and the dev server answers all of them.
    """

    def __init__(self, app: ASGIApp, *, settings: Callable[[], Settings]) -> None:
        self.app = app
        self.settings = settings

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer, or pass on. The server's own calls to itself, under /noauth, come from no network."""
        if scope["type"] == "lifespan" or scope.get("root_path", "").startswith("/noauth"):
            return await self.app(scope, receive, send)
        connection = HTTPConnection(scope)
        path = scope["path"].removeprefix(scope.get("root_path", ""))
        if told := objection(connection, has_login=(await run_in_threadpool(self.settings)).has_login):
            closing = scope["type"] == "websocket"
            answer: ASGIApp = WebSocketClose(1008, told) if closing else refusal(Refusal(403, told))
        elif path in FILES and scope.get("method") in ("GET", "HEAD"):
            answer = FileResponse(ASSETS / FILES[path], headers=HEADERS)
        elif path == "/memory/":
            answer = RedirectResponse("../memory")
        else:
            answer = self.app
        await answer(scope, receive, send)


def objection(connection: HTTPConnection, *, has_login: bool) -> str:
    """Say why a connection is another site's doing; empty if it is not.

    A site may stand at its own name for this machine's address (DNS rebinding): then only the name tells.
    """
    origin, host = connection.headers.get("origin"), connection.headers.get("host", "")
    if origin is not None and not is_own(origin, host) and not STUDIO.fullmatch(origin) and not is_here(origin):
        return OTHER_SITE.format(origin=origin[:200])
    if not has_login and is_loopback(client_of(connection)) and not is_address(name_of(f"//{host}")):
        return OTHER_HOST.format(host=host[:200])
    return ""


def is_own(origin: str, host: str) -> bool:
    """Whether an origin is this server's own, by the name that the request gave it."""
    return host != "" and origin.partition("://")[2] == host


def is_here(origin: str) -> bool:
    """Whether an origin is a page of this machine."""
    return is_loopback(name_of(origin))


def name_of(url: str) -> str:
    """Return the host of an address, empty for what is none."""
    try:
        return urlsplit(url).hostname or ""
    except ValueError:
        return ""


def client_of(connection: HTTPConnection) -> str:
    """Return the address of who connected."""
    return connection.client.host if connection.client else ""


def is_address(host: str) -> bool:
    """Whether this is localhost or an address, which no name server can turn elsewhere."""
    try:
        return host == "localhost" or bool(ip_address(host))
    except ValueError:
        return False


@dataclass(frozen=True, kw_only=True)
class Page:
    """The JSON interface under `/memory/api`."""

    open_store: Callable[[], BaseStore]
    open_threads: Callable[[], BaseCheckpointSaver[Any]]
    settings: Callable[[], Settings]
    token: str = field(default_factory=secrets.token_urlsafe)

    def routes(self) -> list[Route]:
        """Return a route for each view and edit."""
        made = [self.route(name, view, "GET") for name, view in {**VIEWS, "session": self.session}.items()]
        return made + [self.route(name, edit, "POST") for name, edit in EDITS.items()]

    def route(self, name: str, view: View, method: str) -> Route:
        """Serve one view, or one edit."""

        async def answer(request: Request) -> Response:
            try:
                self.check(request)
                given = await body_of(request) if method == "POST" else dict(request.query_params)
                return JSONResponse(await run_in_threadpool(self.run, view, request, given), headers=HEADERS)
            except (Refusal, BlockRefused, Missing, StoreError, ValueError) as error:
                return refusal(error)

        return Route(f"/memory/api/{name}", answer, methods=[method], include_in_schema=False)

    def check(self, request: Request) -> None:
        """Refuse what the page itself did not send: another page's request, and an edit without the token."""
        origin = request.headers.get("origin")
        if request.headers.get("sec-fetch-site", "same-origin") not in ("same-origin", "none") or (
            origin is not None and not is_own(origin, request.headers.get("host", ""))
        ):
            raise Refusal(403, OTHER_SITE.format(origin=origin))
        given = request.headers.get(TOKEN, "")
        if request.method == "POST" and not hmac.compare_digest(given.encode(), self.token.encode()):
            raise Refusal(403, NO_TOKEN)

    def run(self, view: View, request: Request, given: dict[str, Any]) -> Any:
        """Run a view on the memory of the request's user."""
        login = login_of(request)
        user = login or self.user_without_login(request)
        configured = self.settings().blocks
        blocks = Context(blocks=blocks_from(configured)).blocks if configured else DEFAULT_BLOCKS
        store, saver = self.open_store(), self.open_threads()
        return view(Desk(store=store, saver=saver, user=user, blocks=blocks, is_login=bool(login)), given)

    def user_without_login(self, request: Request) -> str:
        """Return whose memory this machine's own user asks for. Raises Refusal for everybody else."""
        if self.settings().has_login:
            raise Refusal(401, NOT_LOGGED_IN)
        proxied = any(name in request.headers for name in ("forwarded", "x-forwarded-for", "x-real-ip"))
        if proxied or not is_loopback(client_of(request)) or not is_here(f"//{request.headers.get('host', '')}"):
            raise Refusal(403, OTHER_MACHINE)
        return request.query_params.get("user") or self.settings().user

    def session(self, desk: Desk, given: Given) -> Any:
        """Tell the page whose memory it shows, and the token for edits."""
        return {"user": desk.user, "free": not desk.is_login, "token": self.token}


def login_of(request: Request) -> str:
    """Return who is logged in, empty on a server without a login. Raises Refusal if no one asked."""
    if "user" not in request.scope:
        raise Refusal(403, NO_LOGIN_RAN)
    user = request.scope["user"]
    return str(user.identity) if user.is_authenticated else ""


async def body_of(request: Request) -> dict[str, Any]:
    """Read a JSON object. Raises Refusal."""
    if not request.headers.get("content-type", "").startswith("application/json"):
        raise Refusal(415, NOT_JSON)
    body = bytearray()
    async for part in request.stream():
        body += part
        if len(body) > MOST_BYTES:
            raise Refusal(413, NOT_JSON)
    try:
        given = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise Refusal(400, NOT_JSON) from error
    if not isinstance(given, dict):
        raise Refusal(400, NOT_JSON)
    return given


def refusal(error: Exception) -> Response:
    """Answer with what went wrong, in one line for a person."""
    statuses = {Refusal: getattr(error, "status", 0), BlockRefused: 409, Missing: 404, StoreError: 503, ValueError: 400}
    status = next(status for kind, status in statuses.items() if isinstance(error, kind))
    told = {"error": " ".join(str(error).split()), "gate": getattr(error, "gate", "")}
    return JSONResponse(told, status_code=status, headers=HEADERS)

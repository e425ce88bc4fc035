"""The memory page behind a real HTTP server, for tests: with and without a login, and another site beside it."""

import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import uvicorn
from langgraph.store.base import BaseStore
from starlette.applications import Starlette
from starlette.authentication import (
    AuthCredentials,
    AuthenticationBackend,
    AuthenticationError,
    SimpleUser,
    UnauthenticatedUser,
)
from starlette.middleware import Middleware
from starlette.middleware.authentication import AuthenticationMiddleware
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import HTTPConnection
from starlette.responses import HTMLResponse, JSONResponse
from starlette.routing import Route, WebSocketRoute
from starlette.websockets import WebSocket

from graph.agent import Agent, open_agent
from graph.page import Guard, Page
from graph.settings import Settings
from graph.turn import run
from memory.blocks import Author
from nodes.context import Context

AGENT = Author(by="agent")
THREAD = "3f1a52f0-1111-4222-8333-444455556666"
TALK = ("I'm allergic to peanuts.", "我最喜欢喝龙井茶。", "What is 12 * 7?", "What should I avoid eating?", "你好")


@dataclass(frozen=True, kw_only=True)
class World:
    """One memory, behind a server without a login and one with it."""

    agent: Agent
    open: str
    guarded: str

    @property
    def store(self) -> Any:
        return self.agent.store

    @property
    def saver(self) -> Any:
        return self.agent.checkpointer


@contextmanager
def open_world(home: Path) -> Iterator[World]:
    """Open a memory in which one talk was held and cut, and serve it."""
    settings = Settings(home=home, model="rehearsal", user="me")
    with ExitStack() as stack:
        agent: Any = stack.enter_context(open_agent(settings))
        for text in TALK:
            run(agent, text, thread=THREAD, context=Context(user="me", max_messages=6))
        open_, guarded = (
            stack.enter_context(served(app_of(agent.store, agent.checkpointer, settings, login)))
            for login in (Nobody(), Tokens())
        )
        yield World(agent=agent, open=open_, guarded=guarded)


class Nobody(AuthenticationBackend):
    """As the dev server does without `auth`."""

    async def authenticate(self, conn: HTTPConnection) -> Any:
        return AuthCredentials(), UnauthenticatedUser()


class Tokens(AuthenticationBackend):
    """As the dev server does with `auth`: `Bearer ann` is Ann."""

    async def authenticate(self, conn: HTTPConnection) -> Any:
        kind, _, token = conn.headers.get("authorization", "").partition(" ")
        if kind != "Bearer" or token not in ("ann", "bob"):
            raise AuthenticationError("a token is needed")
        return AuthCredentials(), SimpleUser(token)


def refused(conn: HTTPConnection, error: Exception) -> JSONResponse:
    """Answer as the dev server does."""
    return JSONResponse({"detail": str(error)}, status_code=401)


async def greet(socket: WebSocket) -> None:
    """Say hello to whoever connects."""
    await socket.accept()
    await socket.send_text("hello")
    await socket.close()


def app_of(store: BaseStore, saver: Any, settings: Settings, login: AuthenticationBackend | None) -> Starlette:
    """Build the page's application as the dev server composes it."""
    settings = replace(settings, has_login=isinstance(login, Tokens))
    page = Page(open_store=lambda: store, open_threads=lambda: saver, settings=lambda: settings, token="the token")
    asking = [Middleware(AuthenticationMiddleware, backend=login, on_error=refused)] if login else []
    routes = [Route(route.path, route.endpoint, methods=route.methods, middleware=asking) for route in page.routes()]
    elsewhere = Route("/elsewhere", lambda request: HTMLResponse("<title>elsewhere</title>"))
    socket = WebSocketRoute("/socket", greet)
    everybody = Middleware(CORSMiddleware, allow_origins=["*"], allow_methods=["*"], allow_headers=["*"])
    guard = Middleware(Guard, settings=lambda: settings)
    return Starlette(routes=[*routes, elsewhere, socket], middleware=[guard, everybody])


@contextmanager
def served(app: Starlette, **options: Any) -> Iterator[str]:
    """Serve an application on a free port; yield its address."""
    server = uvicorn.Server(uvicorn.Config(app, host="127.0.0.1", port=0, log_level="error", **options))
    thread = threading.Thread(target=server.run)
    thread.start()
    try:
        while not server.started:
            assert thread.is_alive()
            time.sleep(0.01)
        yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join()

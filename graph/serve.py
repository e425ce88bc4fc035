"""`palimpsest studio`: LangGraph's development server with the right switches, and where to look at it.

It becomes that server, so that signals and exit codes are the server's own. What it serves is in graph/studio.py.
"""

import argparse
import os
import socket
import sys
from importlib.util import find_spec
from ipaddress import ip_address
from pathlib import Path
from typing import NoReturn

from graph.settings import CannotStart, Settings, server_environment
from graph.texts import say_in
from nodes.context import Context

CONFIGURATION = "langgraph.json"
STUDIO = "https://smith.langchain.com/studio/?baseUrl="
HIGHEST_PORT = 65_535
RUNS_AT_ONCE = 10
"""The server's own measure, when it is started in another way, is one run at a time."""

OPEN_TO_ALL = "whoever reaches {host} can read and change everybody's memory, unless langgraph.json sets `auth`"
STARTING = "Studio   {studio}\nMemory   {memory}\nStarting; Ctrl-C ends it."


def studio(arguments: argparse.Namespace, settings: Settings, context: Context) -> NoReturn:
    """Print the addresses and become the server. Raises CannotStart, one line with what to do."""
    host, port, say = arguments.host, arguments.port, say_in(settings.language)
    check_port(host, port)
    command = [sys.executable, "-m", "langgraph_cli", "dev", "--config", str(configuration()), "--no-reload"]
    command += ["--host", host, "--port", str(port), "--n-jobs-per-worker", str(RUNS_AT_ONCE)]
    command += [] if arguments.browser else ["--no-browser"]
    address = f"http://{f'[{host}]' if ':' in host else host}:{port}"
    if not is_loopback(host):
        print(f"palimpsest: {say(OPEN_TO_ALL, host=host)}", file=sys.stderr)
    print(say(STARTING, studio=f"{STUDIO}{address}", memory=f"{address}/memory"), flush=True)
    os.execve(sys.executable, command, server_environment(settings))


def configuration() -> Path:
    """Find what says which graph is served: in this folder, else beside the packages. Raises CannotStart."""
    if find_spec("langgraph_api") is None:
        raise CannotStart("the server is not installed; run it as: .venv/bin/uv run palimpsest studio")
    own = Path(CONFIGURATION), Path(__file__).parent.parent / CONFIGURATION
    if (found := next(filter(Path.is_file, own), None)) is None:
        raise CannotStart(f"there is no {CONFIGURATION} in this folder; start it in Palimpsest's repository")
    return found


def check_port(host: str, port: int) -> None:
    """Raise CannotStart unless the server can listen there: it would take another port and not say so here."""
    try:
        if port > HIGHEST_PORT:
            raise OverflowError(f"ports end at {HIGHEST_PORT}")
        kind, *_, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        with socket.socket(kind) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(address)
    except (OSError, OverflowError) as error:
        told = getattr(error, "strerror", None) or error
        raise CannotStart(f"port {port} of {host!r} cannot be used ({told}); choose another by --port") from error


def is_loopback(host: str) -> bool:
    """Whether only this machine reaches it."""
    try:
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False

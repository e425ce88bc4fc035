"""Places for a store under test: SQLite with a Chroma folder, and Postgres with a Chroma server.

Both servers are started here, once, on free ports of the loopback, and end with the tests. Where they are not
installed, what needs them is skipped.
"""

import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import pytest
from stores import Opener, hash_embedder

from memory.store import ChromaStore, open_store


def free_port() -> int:
    """Find a port that nothing listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def wait_for(port: int, process: subprocess.Popen[bytes], seconds: float = 60) -> None:
    """Wait until something listens on the port."""
    end = time.monotonic() + seconds
    while time.monotonic() < end and process.poll() is None:
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.05)
    raise RuntimeError(f"{process.args} did not start; it said: {process.returncode}")


def wait_until_ready(url: str) -> None:
    """Wait until Postgres, already listening, also answers."""
    import psycopg

    for _ in range(600):
        try:
            psycopg.connect(url).close()
        except psycopg.OperationalError:
            time.sleep(0.05)
        else:
            return


def find_postgres() -> Path | None:
    """Find the folder of initdb and postgres."""
    candidates = [Path(found).resolve().parent for name in ("initdb",) if (found := shutil.which(name))]
    candidates += sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    return next((place for place in candidates if (place / "postgres").exists()), None)


@pytest.fixture(scope="session")
def postgres_url() -> Iterator[str]:
    """A Postgres server of our own."""
    programs = find_postgres()
    if programs is None:
        pytest.skip("needs Postgres (initdb, postgres) on the PATH")
    pytest.importorskip("psycopg", reason="needs the extra `postgres`")
    # Not in pytest's own folder: the next pytest takes away from others the right to enter that.
    home = Path(tempfile.mkdtemp(prefix="postgres-"))
    # Postgres refuses to run as root; its package makes a user for it.
    user: dict[str, Any] = {"user": "postgres", "extra_groups": []} if os.geteuid() == 0 else {}
    if user:
        shutil.chown(home, "postgres")
    data, port = home / "data", free_port()
    run = {"cwd": home, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, **user}
    subprocess.run([programs / "initdb", "-D", data, "-U", "test", "--auth=trust", "-N"], check=True, **run)
    options = ["-c", "fsync=off", "-c", "listen_addresses=127.0.0.1", "-c", f"unix_socket_directories={home}"]
    server = subprocess.Popen([programs / "postgres", "-D", data, "-p", str(port), *options], **run)
    try:
        wait_for(port, server)
        url = f"postgresql://test@127.0.0.1:{port}/postgres"
        wait_until_ready(url)
        yield url
    finally:
        server.send_signal(2)  # SIGINT: a fast shutdown
        server.wait()
        shutil.rmtree(home, ignore_errors=True)


@pytest.fixture(scope="session")
def chroma_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A Chroma server of our own."""
    program, port = Path(sys.executable).parent / "chroma", free_port()
    if not program.exists():
        pytest.skip("needs the `chroma` command of chromadb")
    command = [program, "run", "--path", tmp_path_factory.mktemp("chroma"), "--port", str(port)]
    server = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        wait_for(port, server)
        yield f"http://127.0.0.1:{port}"
    finally:
        server.kill()
        server.wait()


def new_schema(url: str) -> str:
    """Make an empty place in the database and return its URL."""
    import psycopg

    name = f"s{uuid.uuid4().hex[:12]}"
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(f"CREATE SCHEMA {name}".encode())
    return f"{url}?options=-csearch_path%3D{name}"


@pytest.fixture(params=["sqlite", "postgres"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> dict[str, Any]:
    """Name an empty place on either backend, as `open_store` takes it."""
    if request.param == "sqlite":
        return {"home": tmp_path / "home"}
    url = new_schema(request.getfixturevalue("postgres_url"))
    return {"home": tmp_path / "home", "database_url": url, "chroma_url": request.getfixturevalue("chroma_url")}


@pytest.fixture
def opening(place: dict[str, Any]) -> Opener:
    """Open one place, again and again."""

    def opened(**options: Any) -> AbstractContextManager[ChromaStore]:
        return open_store(**place, **options)

    return opened


@pytest.fixture
def store(opening: Opener) -> Iterator[ChromaStore]:
    """An empty store with both legs and a hash for an embedder."""
    with opening(embedder=hash_embedder()) as opened:
        yield opened

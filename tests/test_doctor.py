"""`palimpsest doctor`: each thing that can be wrong is made to be, and told with how to mend it."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest
from conftest import ask
from packaging.requirements import Requirement
from wire import OpenAIWire

from graph.agent import CHECKPOINTS, open_agent
from graph.doctor import CHECKS, damage_of, examine, unfit
from graph.settings import Settings

KEY = "sk-good-key-1234"
NOWHERE = "http://127.0.0.1:9"


def findings(home: Path, **options: Any) -> dict[str, tuple[bool, str]]:
    """Examine; return what was found, by check."""
    return {one.what: (one.ok, one.told) for one in examine(Settings(home=home, **options))}


def ills(home: Path, **options: Any) -> dict[str, str]:
    """Return what is wrong, by check."""
    return {what: told for what, (ok, told) in findings(home, **options).items() if not ok}


def test_a_new_home_is_well_and_every_check_says_something(tmp_path: Path):
    found = findings(tmp_path / "home")
    assert list(found) == [check.__name__ for check in CHECKS] and all(ok and told for ok, told in found.values())
    assert "nothing leaves" in found["spans"][1] and "rehearsal" in found["model"][1]


def test_an_endpoint_that_offers_the_model_and_takes_the_key_is_well(tmp_path: Path):
    with OpenAIWire(key=KEY) as wire:
        found = findings(tmp_path, model="openai:test-model", api_key=KEY, base_url=wire.url)
        assert all(ok for ok, _ in found.values()) and "offers test-model" in found["endpoint"][1]
        assert found["key"][1] == "set" and KEY not in str(found) and wire.chats == []


@pytest.mark.parametrize(
    ("options", "check", "mend"),
    [
        ({"api_key": "sk-wrong-key-9999"}, "endpoint", "OPENAI_API_KEY"),
        ({"model": "openai:test-modell"}, "endpoint", "set PALIMPSEST_MODEL, for example to test-model"),
        ({"model": "gpt-9"}, "endpoint", "for example to test-embedding, test-model"),
        ({"base_url": NOWHERE}, "endpoint", "OPENAI_BASE_URL"),
        ({"api_key": "sk-…"}, "key", "paste the key again"),
        ({"model": "nobody:gpt"}, "model", "nobody"),
        ({"embeddings": "no-such-model"}, "embedder", "PALIMPSEST_EMBEDDINGS"),
        ({"chroma_url": NOWHERE}, "chroma", "PALIMPSEST_CHROMA_URL"),
        ({"database_url": "postgresql://u:secret-pw@127.0.0.1:9/x"}, "threads", "PALIMPSEST_DATABASE_URL"),
        ({"spans": ("jaeger",)}, "spans", "OTEL_TRACES_EXPORTER"),
    ],
)
def test_each_ill_is_told_once_with_what_to_do(tmp_path: Path, options: dict[str, Any], check: str, mend: str):
    with OpenAIWire(key=KEY) as wire:
        well = {"model": "openai:test-model", "api_key": KEY, "base_url": wire.url}
        found = ills(tmp_path / "home", **{**well, **options})
    assert mend in found[check] and "\n" not in found[check]
    assert not [word for word in (KEY, "sk-wrong-key-9999", "sk-…", "secret-pw") if word in str(found)]
    assert "packages" not in found and "disk" not in found


@contextmanager
def answering(status: int, body: bytes) -> Iterator[str]:
    """Serve one answer to everything."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(status)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *parts: Any) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/v1"
        server.shutdown()


@pytest.mark.parametrize(
    ("status", "body", "ok", "words"),
    [
        (200, b'{"data": []}', True, "does not list its models"),
        (200, b"<html>hello</html>", True, "does not list its models"),
        (200, b'{"data": [{"name": "x"}]}', True, "does not list its models"),
        (404, b"", True, "does not list its models"),
        (403, b"", False, "OPENAI_API_KEY"),
        (502, b"", False, "out of order (502)"),
    ],
)
def test_endpoints_that_speak_oddly_are_told_from_those_that_are_ill(tmp_path, status, body, ok, words):
    with answering(status, body) as url:
        found = findings(tmp_path, model="openai:m", api_key=KEY, base_url=url)["endpoint"]
    assert found[0] is ok and words in found[1]


def test_a_damaged_database_is_found_and_a_foreign_file_too(tmp_path: Path):
    home = tmp_path / "home"
    with open_agent(Settings(home=home, model="rehearsal")) as agent:
        for n in range(3):
            ask(agent, f"I like the colour number {n}.")
    path = home / CHECKPOINTS
    assert damage_of(path) == "" and ills(home) == {}
    content = bytearray(path.read_bytes())
    content[4096:12288] = b"\xff" * 8192
    path.write_bytes(content)
    assert CHECKPOINTS in ills(home)["disk"] and "copy the folder away" in ills(home)["disk"]
    path.write_bytes(b"something else " * 1000)
    found = ills(home)
    assert CHECKPOINTS in found["disk"] and CHECKPOINTS in found["threads"] and "memory" not in found


def test_a_home_that_cannot_be_is_told_and_the_rest_is_still_examined(tmp_path: Path):
    (tmp_path / "file").touch()
    found = findings(tmp_path / "file")
    assert "PALIMPSEST_HOME" in found["home"][1] and not found["threads"][0]
    assert found["model"][0] and found["packages"][0]


def test_packages_that_are_missing_or_of_another_version_are_named():
    assert unfit(Requirement("no-such-package>=1")) == "no-such-package is missing"
    told = unfit(Requirement("langgraph<1"))
    assert told.startswith("langgraph is 1.") and "not <1" in told
    assert unfit(Requirement("langgraph>=1")) == "" and unfit(Requirement("no-such; extra == 'e5'")) == ""

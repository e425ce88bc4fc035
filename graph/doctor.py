"""The doctor: one finding for each thing that can be wrong, with what to do about it.

It changes nothing but what a start would: the data folder and empty stores are made if they are missing.
"""

import json
import platform
import shutil
import sqlite3
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from difflib import get_close_matches
from importlib.metadata import PackageNotFoundError, requires, version
from pathlib import Path

from packaging.requirements import Requirement

from graph.agent import CHECKPOINTS, open_checkpoints, open_memory, open_tracing
from graph.models import ModelShelf, key_of, local_server
from graph.settings import LOCAL, REHEARSAL, Settings, checked_home
from memory.secrets import mask

OPENAI = "https://api.openai.com/v1"
SYNC = "mend it with .venv/bin/uv sync"
LEAST_FREE_MB = 200
WAIT_S = 3.0
MOST_NAMED = 5
FILES = (CHECKPOINTS, "memory.sqlite3")


@dataclass(frozen=True, kw_only=True)
class Finding:
    """One check: whether it is well, and what was found or what to do."""

    what: str
    ok: bool
    told: str


class Ill(Exception):
    """What a check found wrong, with what to do."""


def examine(settings: Settings) -> Iterator[Finding]:
    """Check everything in the order in which a start needs it."""
    for check in CHECKS:
        what = check.__name__
        try:
            yield Finding(what=what, ok=True, told=check(settings))
        except Exception as error:  # every failure is a finding
            told = mask(" ".join(str(error).split())) or type(error).__name__
            yield Finding(what=what, ok=False, told=told)


def python(settings: Settings) -> str:
    """Check the version of Python."""
    found = platform.python_version()
    if not (3, 11) <= sys.version_info < (3, 15):
        raise Ill(f"{found} runs here, 3.11 to 3.14 are meant; make .venv anew with one of these")
    return found


def packages(settings: Settings) -> str:
    """Check that what is installed is what was tested together."""
    wrong = [told for one in requires("palimpsest") or () if (told := unfit(Requirement(one)))]
    if wrong:
        raise Ill(f"{'; '.join(wrong)}; {SYNC}")
    return ", ".join(f"{name} {version(name)}" for name in ("palimpsest", "langgraph", "langchain-openai", "chromadb"))


def unfit(need: Requirement) -> str:
    """Say what is wrong with an installed package; nothing if it fits, or belongs to an extra."""
    if need.marker and not need.marker.evaluate({"extra": ""}):
        return ""
    try:
        found = version(need.name)
    except PackageNotFoundError:
        return f"{need.name} is missing"
    return "" if need.specifier.contains(found, prereleases=True) else f"{need.name} is {found}, not {need.specifier}"


def home(settings: Settings) -> str:
    """Check that the data folder can be written."""
    return str(checked_home(settings.home).absolute())


def disk(settings: Settings) -> str:
    """Check that there is room, and that the databases in the folder are whole."""
    folder = checked_home(settings.home)
    free = shutil.disk_usage(folder).free // 2**20
    if free < LEAST_FREE_MB:
        raise Ill(f"only {free} MB are free at {folder}; make room, or set PALIMPSEST_HOME to another disk")
    for path in (folder / name for name in FILES):
        if path.is_file() and (damage := damage_of(path)):
            raise Ill(f"{path} is damaged ({damage}); copy the folder away, then mend the copy or take a backup")
    used = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file()) / 2**20
    return f"{used:.1f} MB used, {free} MB free"


def damage_of(path: Path) -> str:
    """Say what SQLite finds wrong with a file; nothing if it is whole."""
    try:
        with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)) as connection:
            found = str(connection.execute("PRAGMA quick_check(1)").fetchone()[0])
    except sqlite3.Error as error:
        return str(error)
    return "" if found == "ok" else found


def threads(settings: Settings) -> str:
    """Check that the threads can be read."""
    with open_checkpoints(settings) as saver:
        return f"{len(saver.threads())} kept"


def memory(settings: Settings) -> str:
    """Check that the store opens."""
    with open_memory(settings) as store:
        return ", ".join(f"{name} {value}" for name, value in store.stats().items() if name != "embedder")


def chroma(settings: Settings) -> str:
    """Check that the Chroma server, if there is one, answers: small searches go on without it, unnoticed."""
    if not settings.chroma_url:
        return "embedded"
    where = mask(settings.chroma_url)
    try:
        urllib.request.urlopen(f"{settings.chroma_url.rstrip('/')}/api/v2/heartbeat", timeout=WAIT_S).close()
    except OSError as error:
        raise Ill(f"no Chroma answers at {where}; start it (compose.yaml), or check PALIMPSEST_CHROMA_URL") from error
    return f"{where} answers"


def embedder(settings: Settings) -> str:
    """Check that the embedder works and is the one of the index."""
    with open_memory(settings) as store:
        store.search(("users",), query="ping", limit=1)
        if store.words_alone:
            raise Ill(f"none can be loaded, so keywords alone are searched; {SYNC}, or set PALIMPSEST_EMBEDDINGS")
        return str(store.stats()["embedder"])


def model(settings: Settings) -> str:
    """Check that the configured model can be built."""
    name = settings.default_model
    ModelShelf(settings)(name)
    if name != REHEARSAL:
        return name
    server = local_server()
    real = f"{server.name} answers: use --model local" if server else "set OPENAI_API_KEY or OPENAI_BASE_URL"
    return f"the built-in rehearsal, not a language model; for a real one {real}"


def key(settings: Settings) -> str:
    """Check that the key, if there is one, can be sent."""
    key_of(settings)
    return "set" if settings.api_key else "none (OPENAI_API_KEY)"


def endpoint(settings: Settings) -> str:
    """Check that the endpoint answers, takes the key and offers the model. No model is called."""
    provider, colon, name = settings.default_model.partition(":")
    if settings.default_model in (REHEARSAL, LOCAL) or (colon and provider != "openai"):
        return "none to ask before the model is"
    where = settings.base_url or OPENAI
    offered = offered_at(where, settings)
    wanted = name or provider
    if offered and wanted not in offered:
        close = get_close_matches(wanted, offered, MOST_NAMED) or sorted(offered)[:MOST_NAMED]
        raise Ill(f"{mask(where)} does not offer {wanted!r}; set PALIMPSEST_MODEL, for example to {', '.join(close)}")
    return f"{mask(where)} answers" + (f" and offers {wanted}" if offered else ", but does not list its models")


def offered_at(where: str, settings: Settings) -> list[str]:
    """Ask an endpoint for its models; return their names, none if it has no such list."""
    headers = {"Authorization": f"Bearer {key_of(settings).get_secret_value()}"}
    request = urllib.request.Request(f"{where.rstrip('/')}/models", headers=headers)
    try:
        with urllib.request.urlopen(request, timeout=WAIT_S) as answer:
            return [str(one["id"]) for one in json.load(answer)["data"]]
    except urllib.error.HTTPError as error:
        if error.code in (401, 403):
            raise Ill(f"the endpoint refuses the key ({error.code}); check OPENAI_API_KEY") from error
        if error.code >= 500:
            raise Ill(f"the endpoint is out of order ({error.code}); look at its log, or try again later") from error
        return []
    except OSError as error:
        raise Ill(f"nothing answers at {mask(where)}; check OPENAI_BASE_URL and the network") from error
    except (ValueError, KeyError, TypeError):
        return []


def spans(settings: Settings) -> str:
    """Check that the exporters that the environment asks for can be made."""
    with open_tracing(settings) as tracing:
        if settings.spans and not tracing:
            raise Ill("OTEL_* asks for spans, but the extra is missing: .venv/bin/uv sync --extra otel")
        return f"sent by {', '.join(settings.spans)}" if tracing else "off: nothing leaves this machine"


CHECKS = (python, packages, home, disk, threads, memory, chroma, embedder, model, key, endpoint, spans)

"""The doctor: one finding for each thing that can be wrong, with what to do about it. It changes nothing."""

import platform
import shutil
import sys
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib.metadata import version

from graph.agent import open_checkpoints, open_memory
from graph.models import PROBE_TIMEOUT_S, ModelShelf, local_server
from graph.settings import REHEARSAL, Settings, checked_home
from memory.secrets import mask

PACKAGES = ("palimpsest", "langgraph", "langchain-openai", "chromadb")
LEAST_FREE_MB = 200


@dataclass(frozen=True, kw_only=True)
class Finding:
    """One check: whether it is well, and what was found or what to do."""

    what: str
    ok: bool
    told: str


def examine(settings: Settings) -> Iterator[Finding]:
    """Check everything in the order in which a start needs it."""
    yield Finding(
        what="python", ok=sys.version_info >= (3, 11), told=f"{platform.python_version()} (3.11 to 3.14 are meant)"
    )
    yield Finding(what="packages", ok=True, told=", ".join(f"{name} {version(name)}" for name in PACKAGES))
    for what, check in CHECKS.items():
        try:
            yield Finding(what=what, ok=True, told=check(settings))
        except Exception as error:  # every failure is a finding
            yield Finding(what=what, ok=False, told=" ".join(str(error).split()) or type(error).__name__)


def home(settings: Settings) -> str:
    """Check that the data folder can be written and has room."""
    folder = checked_home(settings.home)
    free = shutil.disk_usage(folder).free // 2**20
    if free < LEAST_FREE_MB:
        raise OSError(f"only {free} MB are free at {folder}; make room, or set PALIMPSEST_HOME to another disk")
    return f"{folder} ({free} MB free)"


def checkpoints(settings: Settings) -> str:
    """Check that the threads can be read."""
    with open_checkpoints(settings) as saver:
        return f"{len(saver.threads())} threads"


def memory(settings: Settings) -> str:
    """Check that the store opens and its embedder works."""
    with open_memory(settings) as store:
        store.search(("users",), query="ping", limit=1)
        if store.words_alone:
            raise OSError("no embedder can be loaded, so keywords alone are searched; the warning above says why")
        return ", ".join(f"{name} {value}" for name, value in store.stats().items())


def model(settings: Settings) -> str:
    """Check that the configured model can be built and its endpoint answers."""
    name = settings.default_model
    ModelShelf(settings)(name)
    if name == REHEARSAL:
        server = local_server()
        hint = (
            f"{server.name} answers: use --model local"
            if server
            else "set OPENAI_API_KEY or OPENAI_BASE_URL for a real one"
        )
        return f"the built-in rehearsal, not a language model; {hint}"
    if settings.base_url:
        reach(settings)
    return f"{name} at {mask(settings.base_url) or 'the provider'} (not called)"


def reach(settings: Settings) -> None:
    """Check that the endpoint answers at all and takes the key."""
    request = urllib.request.Request(
        f"{settings.base_url.rstrip('/')}/models", headers={"Authorization": f"Bearer {settings.api_key}"}
    )
    try:
        urllib.request.urlopen(request, timeout=PROBE_TIMEOUT_S * 10).close()
    except urllib.error.HTTPError as error:
        if error.code in (401, 403):
            raise OSError(f"the endpoint refuses the key ({error.code}); check OPENAI_API_KEY") from error
    except (OSError, ValueError) as error:
        raise OSError(f"nothing answers at {mask(settings.base_url)}; check OPENAI_BASE_URL and the network") from error


CHECKS: dict[str, Callable[[Settings], str]] = {"home": home, "threads": checkpoints, "memory": memory, "model": model}

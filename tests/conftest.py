"""Fixtures: a home on disk for every test, and agents on real stores with a scripted model."""

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings as hypothesis_settings

from graph.agent import Agent, open_agent
from graph.scripted import ScriptedModel, Step
from graph.settings import Settings
from nodes.context import Context

os.environ["PALIMPSEST_LANGUAGE"] = "en"  # wherever the tests run
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # for what the tests start: several processes share few cores
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # a shell's background job: what we start would never hear Ctrl-C
    signal.signal(signal.SIGINT, signal.default_int_handler)
hypothesis_settings.register_profile("palimpsest", deadline=None)
hypothesis_settings.load_profile("palimpsest")


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings(home=tmp_path / "home", model="rehearsal")


@pytest.fixture
def agent(settings: Settings) -> Iterator[Agent]:
    """The agent on Chroma and SQLite, with the rehearsal model."""
    with open_agent(settings) as opened:
        yield opened


@pytest.fixture
def scripted(settings: Settings) -> Iterator[Callable[..., tuple[Agent, ScriptedModel]]]:
    """Open an agent whose model follows a script; the script must be used up when the test ends."""
    with ExitStack() as stack:

        def opened(*steps: Step, **options: Any) -> tuple[Agent, ScriptedModel]:
            model = stack.enter_context(ScriptedModel(steps))
            return stack.enter_context(open_agent(settings, model=model, **options)), model

        yield opened


def config(thread: Any = "t") -> dict[str, Any]:
    """Name a thread."""
    return {"configurable": {"thread_id": thread}}


def said(text: Any) -> dict[str, Any]:
    """Write a turn's input."""
    return {"messages": [{"role": "user", "content": text}]}


def ask(agent: Agent, text: Any, thread: str = "t", **context: Any) -> dict[str, Any]:
    """Run one turn and return the state."""
    values: dict[str, Any] = agent.invoke(said(text), config(thread), context=Context(**context))
    return values


def answer(agent: Agent, text: Any, thread: str = "t", **context: Any) -> str:
    """Run one turn and return the answer."""
    return str(ask(agent, text, thread, **context)["messages"][-1].text)

"""One writer on a thread where the checkpoints lie in Postgres: also from machines that share nothing else."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from threading import Event
from typing import Any

import psycopg
import pytest
from conftest import config, said
from langchain_core.messages import BaseMessage
from talking import Talking
from test_locks import WATCHDOG_S, exchanges, slow

from graph.agent import Agent, build_agent, compiled
from graph.locks import ThreadBusy
from graph.postgres import open_postgres_saver
from graph.settings import CannotStart

pytest_plugins = ["store_fixtures"]

HERE = Path(__file__).parent


@contextmanager
def on_postgres(url: str, model: Talking, *, wait_s: float = 60) -> Iterator[Agent]:
    """Open the agent on checkpoints in Postgres alone, as on a machine of its own."""
    with open_postgres_saver(url, wait_s=wait_s) as saver:
        yield compiled(build_agent(model=model), saver, None)


@pytest.fixture
def url(postgres_url: str) -> str:
    from store_fixtures import new_schema  # at the top it would come before pytest has seen the plugin

    return new_schema(postgres_url)


def start(code: str, url: str, *arguments: str, home: Path) -> subprocess.Popen[bytes]:
    """Run code of this file's in a process with a home of its own."""
    home.mkdir()
    program = f"import sys\nsys.path[:0] = {[str(HERE), str(HERE.parent)]!r}\nfrom test_locks_postgres import *\n{code}"
    env = {**os.environ, "PALIMPSEST_HOME": str(home)}
    return subprocess.Popen([sys.executable, "-c", program, url, *arguments], stderr=subprocess.PIPE, env=env, cwd=home)


TALKS = """
with on_postgres(sys.argv[1], Talking(then=slow)) as agent:
    for n in range(6):
        agent.invoke(said(f"{sys.argv[2]}{n}"), config())
"""


def test_two_machines_on_one_thread_lose_nothing(url: str, tmp_path: Path):
    """B063, B068: they also make the tables, at the same moment."""
    running = [start(TALKS, url, name, home=tmp_path / name) for name in "ab"]
    for process in running:
        assert process.communicate()[1] == b"" and process.returncode == 0
    with on_postgres(url, Talking()) as agent:
        assert sorted(question for question, _ in exchanges(agent)) == sorted(f"{x}{n}" for x in "ab" for n in range(6))
    assert not (tmp_path / "a" / "locks").exists()


DIES = """
with on_postgres(sys.argv[1], Talking(then=lambda *_: os.kill(os.getpid(), signal.SIGKILL))) as agent:
    agent.invoke(said("dies"), config())
"""


def test_a_lock_dies_with_its_process(url: str, tmp_path: Path):
    process = start(DIES, url, home=tmp_path / "home")
    process.communicate()
    assert process.returncode == -signal.SIGKILL
    with on_postgres(url, Talking(then=slow), wait_s=20) as agent:
        agent.invoke(said("lives"), config())
        assert [m.text for m in agent.get_state(config()).values["messages"]] == ["dies", "lives", "answer to lives"]


def test_a_second_saver_waits_is_refused_and_frees_what_it_took(url: str):
    inside, go_on = Event(), Event()

    def hold(messages: list[BaseMessage], tools: list[str]) -> str:
        inside.set()
        go_on.wait(WATCHDOG_S)
        return slow(messages, tools)

    with (
        on_postgres(url, Talking([hold], then=slow)) as one,
        on_postgres(url, Talking(then=slow), wait_s=0.2) as other,
        ThreadPoolExecutor(1) as pool,
    ):
        first = pool.submit(one.invoke, said("first"), config())
        assert inside.wait(WATCHDOG_S)
        with pytest.raises(ThreadBusy, match="'t' did not end within"):
            other.invoke(said("second"), config())
        other.invoke(said("elsewhere"), config("other"))
        go_on.set()
        first.result(WATCHDOG_S)
        other.invoke(said("third"), config())
        assert [question for question, _ in exchanges(other)] == ["first", "third"]


def test_more_runs_at_once_than_locks_have_connections_all_get_their_turn(url: str):
    with on_postgres(url, Talking(then=slow)) as agent, ThreadPoolExecutor(40) as pool:
        list(pool.map(lambda n: agent.invoke(said(f"m{n}"), config(f"t{n}")), range(40)))
        assert all(len(agent.get_state(config(f"t{n}")).values["messages"]) == 2 for n in range(40))


def test_a_lock_whose_connection_broke_does_not_keep_the_thread(url: str):
    """B070: the answer of its run is kept, and the next one takes the lock anew."""

    def cut(messages: list[BaseMessage], tools: list[str]) -> str:
        with psycopg.connect(url, autocommit=True) as admin:
            admin.execute("SELECT pg_terminate_backend(pid) FROM pg_locks WHERE locktype = 'advisory'")
        time.sleep(0.2)
        return slow(messages, tools)

    with on_postgres(url, Talking([cut], then=slow), wait_s=20) as agent:
        for text in ("first", "second"):
            agent.invoke(said(text), config())
        assert [question for question, _ in exchanges(agent)] == ["first", "second"]


def test_a_turn_outlives_every_connection_that_broke_while_the_model_thought(url: str):
    """B070: each is tested before it is lent, and replaced."""

    def cut(messages: list[BaseMessage], tools: list[str]) -> str:
        with psycopg.connect(url, autocommit=True) as admin:
            admin.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid()")
        time.sleep(0.2)
        return slow(messages, tools)

    with on_postgres(url, Talking([cut, cut], then=slow), wait_s=20) as agent:
        for text in ("first", "second", "third"):
            agent.invoke(said(text), config())
        assert [question for question, _ in exchanges(agent)] == ["first", "second", "third"]


def test_a_database_that_is_gone_is_one_line_and_the_thread_goes_on_when_it_is_back(postgres_url: str):
    """B070: and no run waits for a lock that nobody holds."""
    admin = psycopg.connect(postgres_url, autocommit=True)
    admin.execute("CREATE DATABASE gone")
    url = postgres_url.replace("/postgres", "/gone")

    def cut(messages: list[BaseMessage], tools: list[str]) -> str:
        admin.execute("ALTER DATABASE gone ALLOW_CONNECTIONS false")
        admin.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = 'gone'")
        return slow(messages, tools)

    with admin, on_postgres(url, Talking([cut], then=slow)) as agent:
        for text in ("first", "second"):
            with pytest.raises(CannotStart, match="does not answer") as told:
                agent.invoke(said(text), config())
            assert "\n" not in str(told.value)
        admin.execute("ALTER DATABASE gone ALLOW_CONNECTIONS true")
        agent.invoke(said("third"), config())
        assert agent.get_state(config()).values["messages"][-1].text == "answer to third"


def test_one_name_in_two_schemas_is_two_threads(url: str, postgres_url: str):
    from store_fixtures import new_schema

    with open_postgres_saver(url) as one, open_postgres_saver(new_schema(postgres_url), wait_s=0) as other:
        locks: list[Any] = [one.locks, other.locks]
        with locks[0].holding("t"), locks[1].holding("t"):
            pass

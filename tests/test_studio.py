"""Studio's server, the real one: started from langgraph.json without a key, driven by langgraph_sdk, killed with -9."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from langgraph_sdk import get_sync_client

from graph.agent import open_agent
from graph.settings import Settings

ROOT = Path(__file__).parent.parent
START_WITHIN_S = 60


@contextmanager
def served(home: Path, tmp_path: Path) -> Iterator[tuple[Any, subprocess.Popen[bytes]]]:
    """Run `langgraph dev` on a free port; yield a client and the process; end the whole process group."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("OPENAI_", "PALIMPSEST_", "LANGSMITH_"))
    }
    env = {**kept, "PALIMPSEST_HOME": str(home), "LANGGRAPH_CLI_NO_ANALYTICS": "1", "LANGGRAPH_NO_VERSION_CHECK": "1"}
    # The server keeps a folder of its own beside langgraph.json; a copy of that file keeps it out of the repository.
    (tmp_path / "langgraph.json").write_text((ROOT / "langgraph.json").read_text())
    command = [
        str(Path(sys.executable).with_name("langgraph")),
        "dev",
        "--no-browser",
        "--no-reload",
        "--port",
        str(port),
    ]
    log = (tmp_path / "server.log").open("wb")
    process = subprocess.Popen(command, cwd=tmp_path, env=env, stdout=log, stderr=log, start_new_session=True)
    try:
        wait_for(f"http://127.0.0.1:{port}/ok", process, tmp_path / "server.log")
        with get_sync_client(url=f"http://127.0.0.1:{port}") as client:
            yield client, process
    finally:
        kill(process)
        log.close()


def kill(process: subprocess.Popen[bytes]) -> None:
    """End the server as a crash would."""
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def wait_for(url: str, process: subprocess.Popen[bytes], log: Path) -> None:
    """Wait until the server answers."""
    end = time.monotonic() + START_WITHIN_S
    while time.monotonic() < end and process.poll() is None:
        try:
            urllib.request.urlopen(url, timeout=1).close()
            return
        except OSError:
            time.sleep(0.1)
    raise AssertionError(f"the server did not start:\n{log.read_text()[-3000:]}")


def turn(text: str) -> dict[str, Any]:
    return {"messages": [{"role": "user", "content": text}]}


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "home"


def test_the_server_runs_our_graph_and_a_kill_loses_nothing(home: Path, tmp_path: Path):
    """B156: line 8 of the first issue, as a person at Studio would meet it."""
    with served(home, tmp_path) as (client, process):
        drawn = client.assistants.get_graph("palimpsest")
        assert {node["id"] for node in drawn["nodes"]} >= {"recall", "reason", "tools", "remember", "summarize"}
        assistant = client.assistants.search()[0]["assistant_id"]
        schemas = client.assistants.get_schemas(assistant)
        fields = schemas["context_schema"]["properties"]
        assert fields["user"]["description"] and fields["max_steps"]["maximum"] == 100
        assert fields["memory"]["enum"] == ["tool", "inject", "both"]
        assert "messages" in schemas["input_schema"]["properties"]

        thread = client.threads.create()["thread_id"]
        parts = list(
            client.runs.stream(
                thread,
                "palimpsest",
                input=turn("I'm allergic to peanuts."),
                context={"user": "ann"},
                stream_mode="updates",
            )
        )
        assert [next(iter(part.data)) for part in parts if part.event == "updates"] == [
            "recall",
            "reason",
            "tools",
            "reason",
            "remember",
        ]
        kill(process)

    with served(home, tmp_path) as (client, _):
        messages = client.threads.get_state(thread)["values"]["messages"]
        assert [message["type"] for message in messages] == ["human", "ai", "tool", "ai"]
        found = client.store.search_items(("users", "ann", "memories"))["items"]
        assert [item["value"]["text"] for item in found] == ["I'm allergic to peanuts."]

        state = client.runs.wait(
            thread, "palimpsest", input=turn("What should I avoid eating?"), context={"user": "ann"}
        )
        assert "peanuts" in state["messages"][-1]["content"]
        with open_agent(Settings(home=home, model="rehearsal")) as agent:  # the terminal, on the same folder, meanwhile
            agent.invoke(
                turn("My dog is called Rex."), {"configurable": {"thread_id": "terminal"}}, context={"user": "ann"}
            )
            there = agent.get_state({"configurable": {"thread_id": thread}}).values["messages"]
        assert len(there) == len(state["messages"])
        other = client.threads.create()["thread_id"]
        state = client.runs.wait(other, "palimpsest", input=turn("What is my dog called?"), context={"user": "ann"})
        assert "Rex" in state["messages"][-1]["content"]
        state = client.runs.wait(None, "palimpsest", input=turn("What is my dog called?"), context={"user": "bob"})
        assert "don't know" in state["messages"][-1]["content"]


def test_langgraph_json_names_what_exists():
    named = json.loads((ROOT / "langgraph.json").read_text())
    for path in (
        named["graphs"]["palimpsest"].replace(":", "."),
        named["checkpointer"]["path"],
        named["store"]["path"],
    ):
        module, name = path.replace(":", ".").rsplit(".", 1)
        assert callable(getattr(__import__(module, fromlist=[name]), name))

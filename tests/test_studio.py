"""Studio's server, the real one: `palimpsest studio` without a key, driven by langgraph_sdk, killed with -9."""

import json
import socket
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import httpx
import pytest
from dev_server import ROOT, DevServer, running

from graph.agent import open_agent
from graph.serve import check_port, configuration
from graph.settings import CannotStart, Settings
from graph.views import VIEWS
from memory.blocks import Author, Blocks
from memory.facts import Facts
from nodes.context import Context

pytestmark = pytest.mark.xdist_group("studio")
STUDIO = ("-m", "graph", "studio", "--user", "me")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DevServer]:
    more = {"graphs": {"desk": "desk_graph:agent"}}
    with running(tmp_path_factory.mktemp("studio"), more=more, command=STUDIO) as started:
        yield started


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DevServer]:
    login = {"auth": {"path": "login_auth:auth", "disable_studio_auth": True}}
    with running(tmp_path_factory.mktemp("guarded"), more=login) as started:
        yield started


@pytest.fixture
def client(server: DevServer) -> Iterator[Any]:
    with server.client() as opened:
        yield opened


def turn(text: str) -> dict[str, Any]:
    return {"messages": [{"role": "user", "content": text}]}


def ask(client: Any, text: str, thread: str | None = None, **options: Any) -> dict[str, Any]:
    state: dict[str, Any] = client.runs.wait(thread, options.pop("graph", "palimpsest"), input=turn(text), **options)
    return state


def test_the_command_prints_where_to_look(server: DevServer):
    assert f"https://smith.langchain.com/studio/?baseUrl={server.url}\n" in server.said
    assert f"{server.url}/memory\n" in server.said


def test_a_port_in_use_is_told_before_anything_starts():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        with pytest.raises(CannotStart, match="choose another by --port"):
            check_port("127.0.0.1", taken.getsockname()[1])
    for host, port in (("192.0.2.1", 2024), ("127.0.0.1", 70_000)):  # not this machine's; not a port
        with pytest.raises(CannotStart):
            check_port(host, port)


def test_it_serves_what_this_folder_or_else_the_repository_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    assert configuration() == ROOT / "langgraph.json"
    (tmp_path / "langgraph.json").write_text("{}")
    assert configuration().resolve() == tmp_path / "langgraph.json"


def test_every_edge_of_the_drawing_says_when_it_is_taken(client: Any):
    drawn = client.assistants.get_graph("palimpsest")
    assert {node["id"] for node in drawn["nodes"]} >= {"recall", "reason", "tools", "remember", "summarize"}
    for edge in drawn["edges"]:
        assert edge.get("data") or not edge.get("conditional"), edge
    ways = {(edge["source"], edge["target"]): edge.get("data") for edge in drawn["edges"]}
    assert ways["reason", "tools"] == "calls" and ways["remember", "summarize"] == "page too long"


def test_the_context_is_a_form_that_explains_and_bounds_every_field(client: Any):
    assistant = client.assistants.search(graph_id="palimpsest")[0]["assistant_id"]
    schemas = client.assistants.get_schemas(assistant)
    form = schemas["context_schema"]["properties"]
    assert form.keys() == Context.__dataclass_fields__.keys()
    for name, field in form.items():
        assert field["description"] and "default" in field, name
        assert bounded(field), name
    assert form["memory"]["enum"] == ["tool", "inject", "both"] and form["max_steps"]["maximum"] == 100
    assert form["instructions"]["langgraph_type"] == "prompt"  # Studio offers it at its node
    assert "messages" in schemas["input_schema"]["properties"]


def bounded(field: dict[str, Any]) -> bool:
    """Whether a field of the form says which values it takes."""
    if "anyOf" in field:
        return any(bounded(one) for one in field["anyOf"])
    limits = {"string": ("maxLength", "enum"), "array": ("maxItems",), "number": ("maximum",), "integer": ("maximum",)}
    return field["type"] == "boolean" or any(limit in field for limit in limits.get(field["type"], ()))


def test_a_value_out_of_bounds_is_refused_by_its_name(client: Any):
    state = client.runs.wait(None, "palimpsest", input=turn("Hi"), context={"max_steps": 0}, raise_error=False)
    assert "max_steps" in str(state)


def test_assistants_of_one_graph_differ_by_their_context(client: Any):
    ask(client, "I'm allergic to peanuts.", context={"user": "two", "memory": "both"})
    answers = {}
    for name, context in {"reads": {"user": "two"}, "other": {"user": "three"}}.items():
        assistant = client.assistants.create("palimpsest", context=context, name=name)["assistant_id"]
        answers[name] = ask(client, "What should I avoid eating?", graph=assistant)["messages"][-1]["content"]
    assert "peanuts" in answers["reads"] and "peanuts" not in answers["other"]


def test_an_interrupt_shows_what_to_approve_and_goes_on_by_the_answers(client: Any):
    thread = client.threads.create()["thread_id"]
    ask(client, "Refund both.", thread, graph="desk")
    paused = client.threads.get_state(thread)
    shown = {one["value"]["args"]["order"]: one for task in paused["tasks"] for one in task["interrupts"]}
    assert shown.keys() == {"A-1", "A-2"}
    first = shown["A-1"]["value"]
    assert first["tool"] == "refund" and first["args"] == {"order": "A-1", "euros": 40}
    assert first["about"] == "Pay money back to a customer." and first["answers"] == ["approve", "edit", "refuse"]
    assert client.threads.get(thread)["status"] == "interrupted"
    resume = {
        shown["A-1"]["id"]: {"decision": "edit", "args": {"order": "A-1", "euros": 4}},
        shown["A-2"]["id"]: {"decision": "refuse", "reason": "too late"},
    }
    state = client.runs.wait(thread, "desk", command={"resume": resume})
    results = [message["content"] for message in state["messages"] if message["type"] == "tool"]
    assert results[0].endswith("before it ran.)\npaid 4 euros for A-1") and "too late" in results[1]
    assert state["messages"][-1]["content"] == "Both are settled."


def test_what_ran_beside_an_interrupt_is_there_when_a_message_comes_instead_of_an_answer(client: Any):
    """B049: with the saver as the server gives it."""
    thread = client.threads.create()["thread_id"]
    ask(client, "Look it up and refund it.", thread, graph="desk")
    state = ask(client, "Never mind.", thread, graph="desk")
    assert [one["content"] for one in state["messages"] if one["type"] == "tool"] == ["A-3 is a lamp"]
    assert state["messages"][-1]["content"] == "Both are settled."


def test_the_store_view_shows_each_kind_by_user(server: DevServer, client: Any):
    ask(client, "I'm allergic to peanuts.", context={"user": "view"})
    ask(client, "我对花生过敏。", context={"user": "查看"})
    with open_agent(Settings(home=server.home, model="rehearsal")) as agent:  # the terminal, on the same folder
        store: Any = agent.store
        Facts(store, user="view").set("home", "杭州")
        Blocks(store, user="view").append("human", "allergic", author=Author(by="agent"))
    kinds = {tuple(one) for one in client.store.list_namespaces(prefix=["users", "view"], max_depth=3)["namespaces"]}
    assert {kind for *_, kind in kinds} >= {"blocks", "facts", "memories", "transcript", "threads"}

    def shown(user: str, kind: str) -> list[str]:
        return [str(item["value"]) for item in client.store.search_items(["users", user, kind])["items"]]

    assert "allergic" in str(shown("view", "blocks")) and "杭州" in str(shown("view", "facts"))
    assert "peanuts" in str(shown("view", "memories")) and "花生" not in str(shown("view", "memories"))
    assert "花生" in str(shown("查看", "memories")) and shown("查看", "blocks") == []


def test_a_turn_is_forked_edited_and_replayed(client: Any):
    thread = client.threads.create()["thread_id"]
    ask(client, "What is 12 * 7?", thread)
    past = client.threads.get_history(thread, limit=20)
    begun = next(one for one in past if one["next"] == ["recall"])
    asked = begun["values"]["messages"][-1]

    edited = client.threads.update_state(  # the question in other words, under its id
        thread,
        {"messages": [{"role": "user", "content": "What is 12 * 8?", "id": asked["id"]}]},
        checkpoint_id=begun["checkpoint"]["checkpoint_id"],
    )
    fork = client.runs.wait(thread, "palimpsest", input=None, checkpoint=edited["checkpoint"])
    assert "96" in fork["messages"][-1]["content"] and len(fork["messages"]) == 4

    replay = client.runs.wait(thread, "palimpsest", input=None, checkpoint=begun["checkpoint"])
    assert "84" in replay["messages"][-1]["content"] and len(replay["messages"]) == 4
    corrected = {"role": "assistant", "content": "Eighty-four.", "id": replay["messages"][-1]["id"]}
    client.threads.update_state(thread, {"messages": [corrected]}, as_node="remember")
    assert client.threads.get_state(thread)["values"]["messages"][-1]["content"] == "Eighty-four."
    assert len(ask(client, "What is 1 + 1?", thread)["messages"]) == 8

    copy = client.threads.copy(thread)["thread_id"]
    assert "3" in ask(client, "What is 1 + 2?", copy)["messages"][-1]["content"]
    assert len(client.threads.get_state(thread)["values"]["messages"]) == 8


def test_what_another_user_says_on_a_thread_does_not_come_into_it(client: Any):
    """B122: the run is refused before the server stores what it was given."""
    thread = client.threads.create()["thread_id"]
    ask(client, "What is 2 + 2?", thread, context={"user": "nora"})
    before = client.threads.get_state(thread)
    told = ask(client, "Bob was here", thread, context={"user": "bob"}, raise_error=False)
    assert "another user" in str(told)
    after = client.threads.get_state(thread)
    assert (after["values"], after["checkpoint"]) == (before["values"], before["checkpoint"])
    assert "Bob" not in str(ask(client, "What is 1 + 1?", thread, context={"user": "nora"})["messages"])


def test_the_memory_page_stands_on_the_same_server(server: DevServer, client: Any):
    ask(client, "I'm allergic to peanuts.", context={"user": "me"})
    assert "memory/page.js" in httpx.get(f"{server.url}/memory").text
    session = httpx.get(f"{server.url}/memory/api/session").json()
    assert session["user"] == "me" and session["free"]
    for name in VIEWS:  # the server refuses what blocks its event loop
        given = {"query": "peanuts", "id": "t", "thread": "t", "message": "m", "source": "no such file"}
        given |= {"shared": "false", "collection": "main"}
        answer = httpx.get(f"{server.url}/memory/api/{name}", params=given)
        assert answer.status_code == (404 if name in ("thread", "passages") else 200), answer.text
    (memory,) = httpx.get(f"{server.url}/memory/api/memories").json()["items"]
    assert "peanuts" in memory["text"]
    headers = {"x-palimpsest-token": session["token"]}
    for token, status in (({}, 403), (headers, 200)):
        answer = httpx.post(f"{server.url}/memory/api/forget", json={"id": memory["id"]}, headers=token)  # type: ignore[arg-type]
        assert answer.status_code == status
    assert httpx.get(f"{server.url}/memory/api/memories").json()["items"] == []


def test_other_sites_cannot_use_the_server_through_a_browser(server: DevServer):
    """The server alone answers every site: its CORS rule is `*`."""
    body = {"namespace_prefix": ["users"], "limit": 1}
    for headers, status in (
        ({"origin": "https://evil.example"}, 403),
        ({"host": f"evil.example:{server.port}"}, 403),
        ({"origin": "https://smith.langchain.com"}, 200),
        ({"origin": "http://localhost:3000"}, 200),
    ):
        answer = httpx.post(f"{server.url}/store/items/search", json=body, headers=headers)
        assert answer.status_code == status, headers
        asked = {**headers, "access-control-request-method": "POST"}
        preflight = httpx.options(f"{server.url}/threads", headers=asked)
        assert preflight.is_success == (status == 200)


def test_each_login_reaches_its_own_threads_memory_and_page(guarded: DevServer):
    """`user_of` takes the server's user before the context's; Bob names Ann in vain."""
    with ExitStack() as stack:
        ann, bob = (
            stack.enter_context(guarded.client(authorization=f"Bearer {name}'s token")) for name in ("ann", "bob")
        )
        strangers = [stack.enter_context(guarded.client(**one)) for one in ({}, {"x-auth-scheme": "langsmith"})]
        thread = ann.threads.create()["thread_id"]
        ask(ann, "My code is 7731.", thread, context={"user": "bob"})
        ask(bob, "My code is 9944.", context={"user": "ann"})
        for client, own, other in ((ann, "7731", "9944"), (bob, "9944", "7731")):
            answer = ask(client, "What is my code?", context={"user": "ann"})["messages"][-1]["content"]
            assert own in answer and other not in answer
        for refused in (
            lambda: bob.threads.get_state(thread),
            lambda: ask(bob, "What is my code?", thread),
            lambda: bob.store.search_items(["users", "ann"]),
            lambda: bob.store.search_items(["users"]),
            *(one.threads.search for one in strangers),
        ):
            with pytest.raises(httpx.HTTPStatusError) as error:
                refused()
            assert error.value.response.status_code in (401, 403, 404)
        assert "7731" in str(ann.store.search_items(["users", "ann"]))
        assert thread not in str(bob.threads.search())


def test_each_login_sees_its_own_memory_page(guarded: DevServer):
    for name, user in (("ann", "ann"), ("bob", "bob.b@例子")):
        headers = {"authorization": f"Bearer {name}'s token"}
        with guarded.client(**headers) as client:
            ask(client, f"I'm allergic to {name}-nuts.")
        session = httpx.get(f"{guarded.url}/memory/api/session", params={"user": "ann"}, headers=headers).json()
        assert session["user"] == user and not session["free"]
        page = httpx.get(f"{guarded.url}/memory/api/memories", params={"user": "ann"}, headers=headers).text
        assert [f"{one}-nuts" in page for one in ("ann", "bob")] == [name == "ann", name == "bob"]
    for headers in ({}, {"authorization": "Bearer guess"}, {"x-auth-scheme": "langsmith"}):
        assert httpx.get(f"{guarded.url}/memory/api/memories", headers=headers).status_code == 401
    assert httpx.get(f"{guarded.url}/memory").is_success  # where a person logs in


def test_a_kill_loses_nothing(server: DevServer):
    """B156: line 8 of the first issue, as a person at Studio would meet it."""
    with server.client() as client:
        thread = client.threads.create()["thread_id"]
        parts = client.runs.stream(
            thread, "palimpsest", input=turn("I'm allergic to peanuts."), context={"user": "ann"}, stream_mode="updates"
        )
        nodes = [next(iter(part.data)) for part in parts if part.event == "updates"]
        assert nodes == ["recall", "reason", "tools", "reason", "remember"]
    server.kill()
    server.start()
    with server.client() as client:
        messages = client.threads.get_state(thread)["values"]["messages"]
        assert [message["type"] for message in messages] == ["human", "ai", "tool", "ai"]
        found = client.store.search_items(("users", "ann", "memories"))["items"]
        assert [item["value"]["text"] for item in found] == ["I'm allergic to peanuts."]

        state = ask(client, "What should I avoid eating?", thread, context={"user": "ann"})
        assert "peanuts" in state["messages"][-1]["content"]
        with open_agent(Settings(home=server.home, model="rehearsal")) as agent:  # the terminal, meanwhile
            config: Any = {"configurable": {"thread_id": "terminal"}}
            agent.invoke(turn("My dog is called Rex."), config, context=Context(user="ann"))  # type: ignore[arg-type]
            there = agent.get_state({"configurable": {"thread_id": thread}}).values["messages"]
        assert len(there) == len(state["messages"])
        other = client.threads.create()["thread_id"]
        state = ask(client, "What is my dog called?", other, context={"user": "ann"})
        assert "Rex" in state["messages"][-1]["content"]
        state = ask(client, "What is my dog called?", context={"user": "bob"})
        assert "don't know" in state["messages"][-1]["content"]


def test_langgraph_json_names_what_exists():
    named = json.loads((ROOT / "langgraph.json").read_text())
    for path in (
        named["graphs"]["palimpsest"].replace(":", "."),
        named["checkpointer"]["path"],
        named["store"]["path"],
        named["http"]["app"].replace(":", "."),
    ):
        module, name = path.replace(":", ".").rsplit(".", 1)
        assert getattr(__import__(module, fromlist=[name]), name)
    assert named["http"]["enable_custom_route_auth"], "without it a login would not reach the memory page"

"""Models over the real client and a strict loopback server: what a turn makes of good, bad and broken endpoints."""

import json
import logging
import socket
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Annotated, Any

import pytest
from conftest import ask, config, said
from langchain_core.messages import AIMessage, ToolMessage
from wire import Calls, Drop, Empty, Fault, Fragments, OpenAIWire, Stall, Text, call_fragment

from graph.agent import Agent, open_agent
from graph.models import ModelShelf, build_embedder, local_server
from graph.settings import BadSetting, Settings
from memory.memories import Memories
from memory.transcript import Transcript
from nodes.context import Context

KEY = "hunter2-hunter2"
MODEL = "openai:test-model"
TWO_CALLS = Calls(
    ("calculator", {"expression": "2+2"}), ("memory_save", {"text": "Ann likes green tea 🍵"}), content="One moment."
)
WAYS = pytest.mark.parametrize(
    ("stream", "live"),
    [(True, False), (True, True), (False, False), (False, True)],
    ids=["streamed", "streamed-live", "whole", "whole-live"],
)
"""Context.stream, and whether the caller listens with stream_mode="messages", under which LangChain streams unasked."""


class Bookings:
    """What a tool was really called with."""

    def __init__(self) -> None:
        self.made: list[str] = []

    def book(self, place: Annotated[str, "Where."] = "anywhere") -> str:
        """Book a table."""
        self.made.append(place)
        return f"booked {place}"


class Script:
    """What the shared endpoint says next: a list of replies, or a function of the request."""

    def __init__(self) -> None:
        self.replies: list[Any] = []
        self.answer: Callable[[dict[str, Any]], Any] | None = None

    def __call__(self, body: dict[str, Any]) -> Any:
        return self.answer(body) if self.answer else self.replies.pop(0)


class Endpoint:
    """One endpoint and one agent for all tests that need no settings of their own: building both takes long."""

    def __init__(self, wire: OpenAIWire, agent: Agent, script: Script, bookings: Bookings, home: Path) -> None:
        self.wire, self.agent, self.script, self.bookings, self.home = wire, agent, script, bookings, home
        self.tests = 0
        self.earlier = 0

    @property
    def chats(self) -> list[dict[str, Any]]:
        """The requests of this test."""
        return self.wire.chats[self.earlier :]

    def says(self, *replies: Any) -> None:
        self.script.replies += replies

    def turn(
        self, text: str, *, stream: bool = True, live: bool = False, thread: str = "t", user: str = "me"
    ) -> dict[str, Any]:
        """Run a turn in one of the four ways; return the state. Threads and users are this test's own."""
        context = Context(user=f"{user}-{self.tests}", stream=stream)
        place = config(f"{thread}-{self.tests}")
        if not live:
            return self.agent.invoke(said(text), place, context=context)
        parts = self.agent.stream(said(text), place, context=context, stream_mode=["messages", "values"])
        return [part for mode, part in parts if mode == "values"][-1]

    def memories(self, user: str = "me") -> Memories:
        return Memories(self.agent.store, user=f"{user}-{self.tests}")


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Endpoint]:
    script, bookings = Script(), Bookings()
    with OpenAIWire(script, chunk_chars=4) as wire:
        settings = settings_for(tmp_path_factory.mktemp("shared"), wire.url)
        with open_agent(settings, tools=[bookings.book]) as agent:
            yield Endpoint(wire, agent, script, bookings, settings.home)


@pytest.fixture
def endpoint(shared: Endpoint) -> Iterator[Endpoint]:
    """The shared endpoint with an empty script; at the end it must be used up, and no request refused."""
    shared.tests += 1
    shared.earlier = len(shared.wire.chats)
    shared.script.replies, shared.script.answer = [], None
    shared.bookings.made.clear()
    yield shared
    assert shared.script.replies == [] and shared.wire.rejections == []


Speaking = Callable[..., tuple[Agent, OpenAIWire]]


@pytest.fixture
def speaking(tmp_path: Path) -> Iterator[Speaking]:
    """Open agents with settings of their own, whose endpoint's script must be used up when the test ends."""
    with ExitStack() as stack:

        def opened(*replies: Any, **settings: Any) -> tuple[Agent, OpenAIWire]:
            wire = stack.enter_context(OpenAIWire(replies))
            return stack.enter_context(open_agent(settings_for(tmp_path, wire.url, **settings))), wire

        yield opened


def settings_for(tmp_path: Path, url: str, **others: Any) -> Settings:
    given = {"model": MODEL, "api_key": KEY, "timeout_s": 5.0, "max_retries": 0, **others}
    return Settings(home=tmp_path / "home", base_url=url, **given)


def meaning(values: dict[str, Any]) -> list[Any]:
    """Return what a state says, without ids and without what only one of the two wires reports."""
    told: list[Any] = [values["stop_reason"]]
    for message in values["messages"]:
        calls = [(call["name"], call["args"]) for call in getattr(message, "tool_calls", [])]
        usage = message.usage_metadata if isinstance(message, AIMessage) else {}
        tokens = [(usage or {}).get(name) for name in ("input_tokens", "output_tokens", "total_tokens")]
        told.append((message.type, message.text, calls, getattr(message, "status", ""), tokens))
    return told


@WAYS
def test_a_turn_with_two_parallel_calls_goes_through_in_every_way(endpoint: Endpoint, stream, live):
    endpoint.says(TWO_CALLS, Text("It is 4 ✅"))
    values = endpoint.turn("2+2? And I like green tea 🍵", stream=stream, live=live)
    results = [message for message in values["messages"] if isinstance(message, ToolMessage)]
    assert [(role, text) for role, text, *_ in meaning(values)[1:]] == [
        ("human", "2+2? And I like green tea 🍵"),
        ("ai", "One moment."),
        ("tool", "4"),
        ("tool", results[1].text),
        ("ai", "It is 4 ✅"),
    ]
    assert values["stop_reason"] == "answered"
    assert all(message.usage_metadata for message in values["messages"] if isinstance(message, AIMessage))
    assert [memory.id for memory in endpoint.memories().all()] == [json.loads(results[1].text)["id"]]
    assert [body.get("stream", False) for body in endpoint.chats] == [stream, stream]


def test_whole_and_streamed_states_are_equal(endpoint: Endpoint):
    states = []
    for n, (stream, live) in enumerate([(True, False), (True, True), (False, False), (False, True)]):
        endpoint.says(TWO_CALLS, Text("It is 4."))
        states.append(meaning(endpoint.turn("2+2?", stream=stream, live=live, thread=f"{n}", user=f"u{n}")))
    assert states[0] == states[1] == states[2] == states[3]


async def test_the_awaited_client_gives_the_same(endpoint: Endpoint):
    for stream in (True, False):
        endpoint.says(TWO_CALLS, Text("It is 4."))
        context, place = Context(stream=stream), config(f"awaited-{stream}")
        values = await endpoint.agent.ainvoke(said("2+2?"), place, context=context)
        assert [message.text for message in values["messages"]][-1] == "It is 4."


def test_what_was_saved_over_the_wire_is_in_the_next_threads_prompt(endpoint: Endpoint):
    endpoint.says(TWO_CALLS, Text("Done."), Text("Green tea."), Text("I don't know."), Text("As I said."))
    endpoint.turn("I like green tea", thread="monday", user="ann")
    endpoint.turn("Which tea do I like?", thread="friday", user="ann")
    endpoint.turn("Which tea do I like?", thread="sunday", user="bob")
    endpoint.turn("Sure?", thread="monday", user="ann")
    system = [body["messages"][0]["content"] for body in endpoint.chats]
    assert "green tea 🍵" in system[2] and "green tea 🍵" not in system[3]
    assert [message["role"] for message in endpoint.chats[4]["messages"]] == [
        "system", "user", "assistant", "tool", "tool", "assistant", "user",
    ]  # fmt: skip


def test_every_own_tool_is_sent_with_a_schema_that_a_strict_server_takes(endpoint: Endpoint):
    endpoint.says(Text("Hi."))
    endpoint.turn("Hi")
    sent = {tool["function"]["name"]: tool["function"] for tool in endpoint.chats[0]["tools"]}
    assert {"recall", "memory_save", "calculator", "current_time", "book"} <= sent.keys()
    assert all("runtime" not in tool["parameters"]["properties"] for tool in sent.values())


@WAYS
@pytest.mark.parametrize(
    "calls",
    [
        Calls(("book", '{"place": "Par')),
        Calls(("book", '{"place": "Paris"')),
        Calls(("book", '{"place": "Paris"}'), finish="length"),
        Calls(("book", '{"place": "Par'), finish="length"),
        Calls(("book", '["Paris"]')),
    ],
    ids=["open-text", "open-object", "length", "open-length", "list"],
)
def test_arguments_that_are_not_whole_are_never_executed(endpoint: Endpoint, stream, live, calls):
    """B028, B031, and LangChain completing open JSON."""
    endpoint.script.answer = lambda body: Text("Hello.") if body["messages"][-1]["role"] == "tool" else calls
    assert endpoint.turn("Book Paris", stream=stream, live=live)["messages"][-1].text
    assert endpoint.bookings.made == []
    endpoint.script.answer = lambda body: Text("Hello.")
    assert endpoint.turn("Hi again", stream=stream, live=live)["messages"][-1].text == "Hello."


@pytest.mark.parametrize("live", [False, True])
def test_a_stream_closed_cleanly_at_any_place_runs_no_half_call(endpoint: Endpoint, live):
    """B028: no transport error, no finish reason, no [DONE]."""
    whole = Calls(("book", {"place": "Paris"}, "c1"))

    def cut(after_chunks: int) -> Callable[[dict[str, Any]], Any]:
        drop = Drop(after_chunks=after_chunks, reply=whole, clean=True)
        return lambda body: Text("Done.") if body["messages"][-1]["role"] == "tool" else drop

    for n in range(1, 9):
        endpoint.script.answer = cut(n)
        assert endpoint.turn("Book", live=live, thread=str(n))["messages"][-1].text
    assert set(endpoint.bookings.made) <= {"Paris"}


@pytest.mark.parametrize("live", [False, True])
def test_fragments_without_an_index_are_one_call(endpoint: Endpoint, live):
    """B041."""
    first = call_fragment('{"expression":', index=None, id="a", name="calculator")
    endpoint.says(Fragments([first, call_fragment('"1+1"}', index=None, id="", name="")]), Text("2"))
    values = endpoint.turn("1+1?", live=live)
    assert [m.text for m in values["messages"] if isinstance(m, ToolMessage)] == ["2"]


@pytest.mark.parametrize("live", [False, True])
def test_two_calls_under_one_index_are_not_glued_together(endpoint: Endpoint, live):
    parts = [
        call_fragment(f'{{"expression":"{n}+1"}}', index=0, id=call_id, name="calculator")
        for n, call_id in ((1, "a"), (2, "b"))
    ]
    endpoint.says(Fragments(parts), Text("2 and 3"))
    values = endpoint.turn("1+1? 2+1?", live=live)
    assert [m.text for m in values["messages"] if isinstance(m, ToolMessage)] == ["2", "3"]


@WAYS
def test_an_invented_or_nameless_tool_gets_a_result_and_the_thread_stays_valid(endpoint: Endpoint, stream, live):
    """B027, B081."""
    endpoint.says(Calls(("查天气", {}), ("", {}), ("web search", {"q": "x"})), Text("I cannot."), Text("Hi."))
    values = endpoint.turn("Weather?", stream=stream, live=live)
    results = [message for message in values["messages"] if isinstance(message, ToolMessage)]
    assert [result.status for result in results] == ["error"] * 3
    assert endpoint.turn("Hi", stream=stream, live=live)["messages"][-1].text == "Hi."


@WAYS
def test_calls_without_ids_and_with_double_ids_get_their_own_results(endpoint: Endpoint, stream, live):
    """B032."""
    sums = [("calculator", {"expression": f"{n}+0"}, call_id) for n, call_id in enumerate([None, "", "a", "a"])]
    endpoint.says(Calls(*sums), Text("Done."), Text("Hi."))
    values = endpoint.turn("Add", stream=stream, live=live)
    assert [m.text for m in values["messages"] if isinstance(m, ToolMessage)] == ["0", "1", "2", "3"]
    assert endpoint.turn("Hi", stream=stream, live=live)["messages"][-1].text == "Hi."


@WAYS
def test_an_empty_answer_is_asked_again_once_then_told(endpoint: Endpoint, stream, live):
    """B076, B149."""
    endpoint.says(Empty(), Text("Here."), Empty(None), Text("  \n"), Text("Back."))
    assert endpoint.turn("Hi", stream=stream, live=live)["messages"][-1].text == "Here."
    values = endpoint.turn("Hi", stream=stream, live=live)
    assert values["stop_reason"] == "empty_answer" and values["messages"][-1].text
    assert endpoint.turn("Hi", stream=stream, live=live)["messages"][-1].text == "Back."


@pytest.mark.parametrize("fault", [Fault(status=429, retry_after=0.01), Fault(status=500, retry_after=0.01)])
def test_a_passing_fault_is_retried_and_nobody_notices(speaking: Speaking, fault):
    agent, wire = speaking(fault, Text("Fine."), max_retries=2)
    assert ask(agent, "Hi")["messages"][-1].text == "Fine."
    assert len(wire.chats) == 2


@pytest.mark.parametrize(("stream", "live"), [(True, False), (False, True)], ids=["streamed", "whole-live"])
@pytest.mark.parametrize(
    ("reply", "words"),
    [
        (Fault(status=429, retry_after=0.01), "no capacity"),
        (Fault(status=500), "500"),
        (Fault(status=502, raw="<html>Bad gateway</html>"), "502"),
        (Fault(status=400, code="context_length_exceeded", message="too long"), "too long"),
        (Fault(status=500, after_chunks=3), "error"),
        (Drop(after_chunks=0), "broke off"),
    ],
    ids=["429", "500", "html", "too-long", "mid-stream-error", "dropped"],
)
def test_an_endpoint_that_fails_is_told_and_the_thread_goes_on(endpoint: Endpoint, stream, live, reply, words):
    endpoint.says(reply, Text("Back again."))
    values = endpoint.turn("Are you there?", stream=stream, live=live)
    assert values["stop_reason"] == "model_error"
    assert words in values["messages"][-1].text and "never reaches" not in values["messages"][-1].text
    assert endpoint.turn("And now?", stream=stream, live=live)["messages"][-1].text == "Back again."
    assert "Are you there?" in [message["content"] for message in endpoint.chats[-1]["messages"]]


def test_a_whole_answer_that_breaks_off_is_told_and_the_thread_goes_on(speaking: Speaking):
    agent, _ = speaking(Drop(after_chunks=4), Text("Back again."))
    values = ask(agent, "Are you there?", stream=False)
    assert values["stop_reason"] == "model_error" and "broke off" in values["messages"][-1].text
    assert ask(agent, "And now?", stream=False)["messages"][-1].text == "Back again."


@pytest.mark.parametrize("reply", [Stall(30), Stall(30, after_chunks=3)])
def test_a_silent_endpoint_is_told_as_a_timeout(speaking: Speaking, reply):
    agent, _ = speaking(reply, Text("Awake."), timeout_s=0.3)
    values = ask(agent, "Hello?")
    assert values["stop_reason"] == "model_error" and "PALIMPSEST_TIMEOUT_S" in values["messages"][-1].text
    assert ask(agent, "Hello?")["messages"][-1].text == "Awake."


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"api_key": "wrong-key-12345"}, "OPENAI_API_KEY"),
        ({"model": "openai:no-such-model"}, "PALIMPSEST_MODEL"),
        ({"base_url": "http://127.0.0.1:9/v1"}, "OPENAI_BASE_URL"),
        ({"model": "nobody:gpt"}, "openai:nobody:gpt"),
    ],
    ids=["401", "404", "unreachable", "unknown-provider"],
)
def test_a_wrong_setting_is_named_and_set_right_the_thread_goes_on(tmp_path: Path, wrong, words):
    with OpenAIWire([Text("Now I hear you.")], key=KEY) as wire:
        right = settings_for(tmp_path, wire.url)
        with open_agent(Settings(**{**vars(right), **wrong})) as agent:
            values = ask(agent, "Hear me?")
        assert values["stop_reason"] == "model_error" and words in values["messages"][-1].text
        assert "\n" not in values["messages"][-1].text and "wrong-key-12345" not in str(values)
        with open_agent(right) as agent:
            assert ask(agent, "And now?")["messages"][-1].text == "Now I hear you."
        assert "Hear me?" in [message["content"] for message in wire.chats[-1]["messages"]]


@WAYS
def test_nul_and_lone_surrogates_pass_neither_way(endpoint: Endpoint, stream, live):
    """B040, B060."""
    half = Calls(("memory_save", '{"text": "a \\ud83c b \\u0000 c"}'), content="say \ud835\x00")
    endpoint.says(half, Text("\x00done \udf78"), Text("Hi."))
    for text in ("book a \x00 table \ud835", "again"):
        values = endpoint.turn(text, stream=stream, live=live)
        all_of_it = json.dumps([message.model_dump() for message in values["messages"]], ensure_ascii=False)
        assert all_of_it.encode() and "\\u0000" not in all_of_it
    assert "\x00" not in str(endpoint.chats)


@WAYS
def test_the_key_is_in_no_state_file_or_log(endpoint: Endpoint, stream, live, caplog):
    """B062: not even when the server quotes it."""
    caplog.set_level(logging.INFO)
    quoting = Fault(status=400, message=f"The key {KEY} or Bearer {KEY} is not for this.")
    endpoint.says(quoting, TWO_CALLS, Text("Fine."), Fault(status=401, message=KEY))
    states = [endpoint.turn(text, stream=stream, live=live) for text in ("One", "Two", "Three")]
    assert [state["stop_reason"] for state in states] == ["model_error", "answered", "model_error"]
    assert endpoint.wire.requests[-1].headers["authorization"] == f"Bearer {KEY}"
    files = [path for path in endpoint.home.rglob("*") if path.is_file()]
    assert len(files) >= 2
    assert [path for path in files if KEY.encode() in path.read_bytes()] == []
    assert KEY not in str(states) and KEY not in caplog.text


def test_the_endpoints_embedder_serves_memory_end_to_end(speaking: Speaking):
    agent, wire = speaking(model="rehearsal", embeddings="openai:test-embedding")
    ask(agent, "I'm allergic to peanuts.", "monday")
    recalled = ask(agent, "I'm allergic to peanuts.", "friday")["recalled"]
    assert [memory["text"] for memory in recalled["memories"]] == ["I'm allergic to peanuts."]
    memories = Memories(agent.store, user="me")
    (best,) = memories.search("I'm allergic to peanuts.", limit=1)
    assert best.score == pytest.approx(1.0, abs=0.001)
    memories.save("我对花生过敏 🥜")
    assert memories.search("我对花生过敏 🥜", limit=1)[0].text == "我对花生过敏 🥜"
    assert "test-embedding" in str(agent.store.stats()["embedder"]) and "dims=32" in agent.store.stats()["embedder"]
    assert wire.chats == [] and wire.rejections == []


@pytest.mark.parametrize("wrong", [{"api_key": "", "base_url": ""}, {"api_key": "sk-…"}])
def test_an_embedder_without_a_key_is_one_line_at_the_start(tmp_path: Path, wrong):
    """B108: not at the first save."""
    settings = settings_for(tmp_path, "http://127.0.0.1:9/v1", model="rehearsal", embeddings="test-embedding")
    with pytest.raises(BadSetting, match="OPENAI_API_KEY") as told, open_agent(Settings(**{**vars(settings), **wrong})):
        pass
    assert "\n" not in str(told.value) and "sk-…" not in str(told.value)


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"base_url": "http://127.0.0.1:9/v1"}, "127.0.0.1:9"),
        ({"embeddings": "no-such"}, "no-such"),
        ({"api_key": "wrong-key-12345"}, "the key"),
    ],
)
def test_an_embedder_that_does_not_answer_is_told_at_the_start_and_words_find_all_the_same(
    tmp_path: Path, wrong, words, caplog
):
    """B108: nothing hangs, nothing is lost, and nobody is left in the dark."""
    with OpenAIWire(key=KEY) as wire:
        settings = settings_for(tmp_path, wire.url, model="rehearsal", embeddings="test-embedding")
        with open_agent(Settings(**{**vars(settings), **wrong})) as agent:
            ask(agent, "I'm allergic to peanuts.")
            assert "peanuts" in ask(agent, "Am I allergic to peanuts?", thread="other")["messages"][-1].text
    told = [record.getMessage() for record in caplog.records if "searching by keywords alone" in record.getMessage()]
    assert len(told) == 1 and words in told[0] and "\n" not in told[0] and "wrong-key-12345" not in told[0]


def test_an_embedder_that_goes_away_costs_no_answer_and_the_turn_is_filed_later(tmp_path: Path):
    """B108: nothing is lost, and what could not be filed is told and filed by the next turn."""
    with ExitStack() as stack:
        wire = stack.enter_context(OpenAIWire())
        settings = settings_for(tmp_path, wire.url, model="rehearsal", embeddings="test-embedding")
        agent = stack.enter_context(open_agent(settings))
        ask(agent, "I'm allergic to peanuts.", thread="before")
        wire.models = ()
        values = ask(agent, "2+2?")
        assert "4" in values["messages"][-1].text and values["recalled"]["status"] == "failed"
        assert "404" in values["steps"][-1]["detail"]["failed"]
        wire.models = ("test-embedding",)
        values = ask(agent, "3+3?")
        filed = Transcript(agent.store, user="me", thread="t").entries()
        assert [entry.text for entry in filed] == [message.text for message in values["messages"]]


def test_without_a_name_the_built_in_embedder_is_used(tmp_path: Path):
    assert build_embedder(settings_for(tmp_path, "")) is None


def test_a_model_is_built_at_its_first_use_and_once(tmp_path: Path):
    shelf = ModelShelf(settings_for(tmp_path, "http://127.0.0.1:9/v1"))
    assert shelf.built == {}
    barrier = threading.Barrier(4)

    def fetch(name: str) -> Any:
        barrier.wait()
        return shelf(name)

    with ThreadPoolExecutor(4) as pool:
        models = list(pool.map(fetch, ["", MODEL, "", f" {MODEL} "]))
    assert len({id(model) for model in models}) == 1


def test_a_model_that_cannot_be_built_does_not_spoil_the_others(tmp_path: Path):
    shelf = ModelShelf(settings_for(tmp_path, "", api_key=""))
    for _ in range(2):
        with pytest.raises(BadSetting, match="OPENAI_API_KEY"):
            shelf("openai:gpt-4.1-mini")
    assert shelf("rehearsal") is shelf("rehearsal")


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("nobody:gpt", "nobody"),
        ("anthropic:claude", "langchain-anthropic"),
        (":", "provider:name"),
        ("nobody:", "provider:name"),
        ("local", "Ollama"),
    ],
)
def test_a_name_that_means_no_model_is_one_line(tmp_path: Path, name: str, words: str):
    shelf = ModelShelf(settings_for(tmp_path, ""), ports={"Ollama": 9})
    with pytest.raises(BadSetting, match=words) as told:
        shelf(name)
    assert "\n" not in str(told.value)


@pytest.mark.parametrize("key", ["sk-…", "sk-abc def", "sk-abc\ndef"])
def test_a_key_that_no_header_can_carry_is_refused_without_being_quoted(tmp_path: Path, key: str):
    with pytest.raises(BadSetting, match="OPENAI_API_KEY") as told:
        ModelShelf(settings_for(tmp_path, "", api_key=key))("")
    assert key not in str(told.value)


def port_of(wire: OpenAIWire) -> int:
    return int(wire.url.removesuffix("/v1").rsplit(":", 1)[1])


def test_a_local_server_is_found_past_what_else_lives_on_the_ports(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    with OpenAIWire(models=()) as empty, OpenAIWire(models=("qwen3", "llama3")) as full, greeter() as other:
        ports = {"nothing": 9, "not HTTP": other, "no model": port_of(empty), "Ollama": port_of(full), "last": 9}
        found = local_server(ports)
    assert found is not None
    assert (found.name, found.base_url, found.models) == ("Ollama", full.url, ("qwen3", "llama3"))


def test_no_local_server_is_none():
    assert local_server({"nothing": 9}) is None


def greeter() -> Any:
    """Open a port that speaks first and no HTTP, as an SSH server does."""
    stack = ExitStack()
    listening = stack.enter_context(socket.create_server(("127.0.0.1", 0)))

    def greet() -> None:
        try:
            connection, _ = listening.accept()
        except OSError:
            return
        with connection:
            connection.sendall(b"SSH-2.0-nothing\r\n")
            connection.recv(1000)

    thread = threading.Thread(target=greet)
    thread.start()
    stack.callback(thread.join)

    class Port:
        def __enter__(self) -> int:
            return int(listening.getsockname()[1])

        def __exit__(self, *_: object) -> None:
            stack.close()

    return Port()


def test_local_means_the_first_model_of_the_server_and_sends_it_no_key(tmp_path: Path):
    with OpenAIWire([Text("Hi from here.")], models=("qwen3", "llama3")) as wire:
        settings = settings_for(tmp_path, "https://api.example.com/v1")
        shelf = ModelShelf(settings, ports={"Ollama": port_of(wire)})
        with open_agent(settings, model=shelf) as agent:
            assert ask(agent, "Hi", model="local")["messages"][-1].text == "Hi from here."
        assert wire.chats[0]["model"] == "qwen3"
        assert KEY not in str(wire.requests)


def test_the_rehearsals_notice_names_the_server_that_runs_here(tmp_path: Path):
    with OpenAIWire() as wire:
        settings = settings_for(tmp_path, "", model="rehearsal")
        shelf = ModelShelf(settings, ports={"LM Studio": port_of(wire)})
        with open_agent(settings, model=shelf) as agent:
            english, chinese = ask(agent, "Hello", "a"), ask(agent, "你好", "b")
    for state in (english, chinese):
        first = state["messages"][-1].text.splitlines()[0]
        assert "LM Studio" in first and "--model local" in first

"""Tools as people write them, and worse: what they take, give and raise, in the real graph; sync and async alike."""

import itertools
import json
import threading
from collections.abc import AsyncIterator, Callable
from typing import Annotated, Any

import pytest
from conftest import config
from hypothesis import given, settings
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, HumanMessage, RemoveMessage, ToolMessage
from langchain_core.runnables import RunnableConfig
from langchain_core.tools import InjectedToolArg, InjectedToolCallId, StructuredTool, ToolException, tool
from langgraph.graph.message import REMOVE_ALL_MESSAGES
from langgraph.prebuilt import ToolRuntime
from langgraph.types import Command
from pydantic import BaseModel
from tool_graphs import WAYS, Session, aok, call, named, ok, raising, record, result, results, session
from wire_rules import Rules, reject, wire_messages

from graph.scripted import ScriptedModel
from nodes.contract import BadTool, mount

pytestmark = pytest.mark.filterwarnings("ignore:tool '")
BOTH_WAYS = pytest.mark.parametrize("way", WAYS)


async def items(x: int) -> AsyncIterator[Any]:
    """Give items."""
    yield {"城市": x}
    yield "二"


async def endless(x: int) -> AsyncIterator[int]:
    """Give items for ever."""
    for n in itertools.count():
        yield n


async def torn(x: int) -> AsyncIterator[int]:
    """Give one item and fail."""
    yield 1
    raise ConnectionError("gone")


def promise(x: int) -> Any:
    """Give a coroutine."""

    async def later() -> Any:
        return items(x)

    return later()


@BOTH_WAYS
def test_async_generators_and_coroutines_are_read_and_awaited(way):
    tools = [items, endless, torn, promise]
    calls = [call(tool.__name__, f"c{n}", x=1) for n, tool in enumerate(tools)]
    with session(calls, "Read.", tools=tools, way=way) as s:
        whole, long, broken, promised = results(s.turn(max_result_chars=1_000_000))
    assert whole.text == promised.text == '[{"城市": 1}, "二"]'
    assert len(json.loads(long.text)) == 10_001 and "more than 10000 items" in long.text
    assert record(broken)["kind"] == "internal" and "ConnectionError" in broken.text


class Weird(BaseException):
    """Is no Exception."""


class Mute(ToolException):
    """Fails when it is asked what it is."""

    def __str__(self) -> str:
        raise RuntimeError


@BOTH_WAYS
@pytest.mark.parametrize(
    "error", [Weird(), BaseExceptionGroup("g", [SystemExit(1)]), Mute()], ids=lambda one: type(one).__name__
)
def test_no_exception_of_a_tool_ends_the_run(way, error):
    """B026: nor does one that cannot say what it is."""
    calls = [call("boom", "c1", x=1), call("aboom", "c2", x=1), call("ok", "c3", x=1)]
    with session(calls, "Half.", tools=[ok, *raising(error)], way=way) as s:
        values = s.turn()
    assert [record(one)["kind"] for one in results(values)] == ["internal", "internal", ""]
    assert type(error).__name__ in results(values)[0].text and values["stop_reason"] == "answered"


ANSWER = ToolMessage("done", tool_call_id="c1")


@BOTH_WAYS
@pytest.mark.parametrize(
    ("command", "told"),
    [
        (Command(goto="nowhere"), "(no output)"),
        (Command(update={"messages": [ANSWER, HumanMessage("by the way")]}), "done"),
        (Command(graph=Command.PARENT, goto="other"), "UnfitCommand"),
        (Command(update={"messages": [ANSWER], "owner": "eve"}), "UnfitCommand"),
        (Command(update={"messages": [ANSWER], "steps": "none"}), "UnfitCommand"),
        (Command(update={"messages": [RemoveMessage(id=REMOVE_ALL_MESSAGES), ANSWER]}), "UnfitCommand"),
        (Command(update={"messages": [ANSWER, object()]}), "NotImplementedError"),
        (Command(update={"messages": []}), "ValueError"),
    ],
    ids=["goto", "more messages", "parent of none", "owner", "steps", "removal", "no message", "no result"],
)
def test_whatever_a_tool_commands_its_call_is_answered_and_the_thread_stays_its_users(way, command, told):
    """A tool may add messages and write the summary; what is the graph's own, and what was said, it may not touch."""
    with session(call("go", x=1), "Gone.", "Yes.", tools=[named("go", lambda x: command)], way=way) as s:
        values = s.turn()
        assert s.turn("Still there?")["messages"][-1].text == "Yes."
    assert told in result(values).text and values["messages"][0].text == "Do it"
    assert (values["owner"], values["stop_reason"]) == ("me", "answered")


def nested(depth: int) -> list[Any]:
    """Nest lists."""
    made: list[Any] = []
    for _ in range(depth):
        made = [made]
    return made


class Shy:
    """Fails whatever is asked of it."""

    def __str__(self) -> str:
        raise RuntimeError


UNKEPT = [nested(300), nested(5000), Shy(), (1 // 0 for _ in range(2)), 10**30, {"n": [10**30, "\ud800"]}]
UNKEPT.append(CIRCLE := [0])
CIRCLE.append(CIRCLE)


@BOTH_WAYS
@pytest.mark.parametrize("value", UNKEPT, ids=lambda value: type(value).__name__)
def test_no_artifact_block_or_extra_of_a_result_keeps_the_turn_from_being_stored(way, value):
    """B056: on a real saver."""

    @tool(response_format="content_and_artifact")
    def beside(x: int) -> Any:
        """Give it beside the content."""
        return "content", value

    def within(x: int) -> Any:
        """Give it within a block."""
        return [{"type": "text", "text": "content", "more": value}]

    def around(x: int, call_id: Annotated[str, InjectedToolCallId]) -> Any:
        """Give it around the content."""
        return ToolMessage("content", tool_call_id=call_id, additional_kwargs={"more": value})

    tools = [beside, within, around]
    with session([call(one, one, x=1) for one in ("beside", "within", "around")], "Done.", tools=tools, way=way) as s:
        got = results(s.turn())
        stored = s.agent.get_state(config()).values["messages"]
    assert [one for one in stored if isinstance(one, ToolMessage)] == got and len(got) == 3
    assert got[0].text == "content" and got[2].text == "content"


def remote(*names: str) -> StructuredTool:
    """Return a tool as MCP gives it, with parameters of these names, that tells what it got."""

    async def ask(**arguments: Any) -> str:
        return json.dumps(arguments)

    properties = {name: {"type": "object", "description": "any"} for name in names}
    schema = {"type": "object", "properties": properties}
    return StructuredTool(name="remote", description="Ask.", coroutine=ask, args_schema=schema)


NAMES = ["config", "self", "run_manager", "args", "kwargs", "callbacks", "arguments", "runtime", "state", "store"]
NAMES += ["tool_call_id", "name", "from", "汉字"]


@BOTH_WAYS
def test_no_name_of_a_remote_tools_parameter_gets_lost_on_the_way(way):
    args = {name: {"n": n} for n, name in enumerate(NAMES)}
    with session(call("remote", **args), "Asked.", tools=[remote(*NAMES)], way=way) as s:
        assert json.loads(result(s.turn()).text) == args


async def of_a_server(runtime: ToolRuntime | None = None, **arguments: Any) -> Any:
    if arguments["q"] == "none":
        raise ToolException("the server knows no such thing")
    blocks = [{"type": "text", "text": f"found {arguments['q']}", "id": "b1"}, PICTURE]
    return blocks, {"structured": {"by": runtime.tool_call_id if runtime else None}}


PICTURE = {"type": "image", "base64": "AA", "mime_type": "image/png"}


@BOTH_WAYS
def test_a_tool_of_an_mcp_server_works_as_its_adapter_makes_it(way):
    """A JSON schema, a coroutine of any arguments, blocks with an artifact, ToolException for the server's errors."""
    schema = {"type": "object", "properties": {"q": {"type": "string", "description": "what"}}, "required": ["q"]}
    mcp = StructuredTool(
        name="look",
        description="Look.",
        coroutine=of_a_server,
        args_schema=schema,
        response_format="content_and_artifact",
    )
    calls = [call("look", f"c{n}", **args) for n, args in enumerate([{"q": "茶"}, {"q": "none"}, {"q": 1}, {}])]
    with session(calls, "Looked.", tools=[mcp], way=way) as s:
        found, none, wrong, missing = results(s.turn())
    assert found.content[0]["text"] == "found 茶" and found.content[1] == PICTURE
    assert found.artifact == {"structured": {"by": "c0"}}
    assert none.text == "Error (business): the server knows no such thing"
    assert [record(one)["kind"] for one in (wrong, missing)] == ["invalid_arguments"] * 2
    assert "q: is required and missing." in missing.text


@BOTH_WAYS
def test_a_tool_that_changes_its_arguments_changes_no_message(way):
    def spoil(numbers: list[int], more: dict[str, list[int]]) -> str:
        """Spoil."""
        numbers.append(9)
        more["x"].clear()
        return "spoilt"

    given = {"numbers": [1], "more": {"x": [2]}}
    with session(call("spoil", **given), "Spoilt.", tools=[spoil], way=way) as s:
        values = s.turn()
    assert values["messages"][1].tool_calls[0]["args"] == {"numbers": [1], "more": {"x": [2]}}


def stall(x: int) -> str:
    """Stall."""
    threading.Event().wait(0.5)
    return "late"


KINDS: dict[str, tuple[dict[str, Any], str]] = {
    "ok": ({"x": 1}, ""),
    "aok": ({"x": "2"}, ""),
    "boom": ({"x": 1}, "internal"),
    "aboom": ({"x": 1}, "internal"),
    "items": ({"x": 1}, ""),
    "torn": ({"x": 1}, "internal"),
    "stall": ({"x": 1}, "timeout"),
    "nope": ({"x": 1}, "unknown_tool"),
    "promise": ({"y": 1}, "invalid_arguments"),
}
ANSWERS = st.lists(st.tuples(st.sampled_from([*KINDS, "broken"]), st.booleans()), min_size=1, max_size=5)


@settings(max_examples=25)
@given(st.lists(ANSWERS, min_size=1, max_size=3), st.sampled_from(WAYS), st.booleans())
def test_whatever_is_called_each_call_has_one_result_in_its_place_and_the_next_turn_works(answers, way, memory):
    """Ids may be missing or come back; the list that the model is sent passes a strict server's rules."""
    steps, expected = [], []
    for answer in answers:
        calls, bad = [], []
        for m, (name, has_id) in enumerate(answer):
            id = f"c{m}" if has_id else None
            if name == "broken":
                bad.append({"name": "ok", "args": '{"x": ', "id": id, "error": None, "type": "invalid_tool_call"})
            else:
                calls.append({"name": name, "args": KINDS[name][0], "id": id, "type": "tool_call"})
        steps.append(AIMessage("", tool_calls=calls, invalid_tool_calls=bad))
        expected += [KINDS[one["name"]][1] for one in calls] + ["invalid_arguments"] * len(bad)
    tools = [ok, aok, items, torn, promise, stall, *raising(ValueError("no"))]
    model = ScriptedModel([*steps, *["Done."] * 9])
    s = Session(model, tools, way, memory=memory)
    values = s.turn(tool_timeout_s=0.2, max_repeats=100)
    kinds = [record(one)["kind"] for one in results(values)]
    assert kinds and kinds == expected[: len(kinds)] and values["messages"][-1].text
    assert s.turn("And now?")["stop_reason"] == "answered"
    for sent, _ in model.calls:
        assert (
            reject({"model": "test-model", "messages": wire_messages(sent)}, Rules(unique_ids_in_thread=True)) is None
        )


def some(*args: int) -> str:
    """Take any number."""
    return ""


def any_names(**more: int) -> str:
    """Take any names."""
    return ""


def by_place(x: int, /) -> str:
    """Take by position."""
    return ""


def hidden(run_manager: int) -> str:
    """Take what LangChain keeps from the model."""
    return ""


def renamed(args: dict[str, int]) -> str:
    """Take what LangChain renames."""
    return ""


def from_nobody(secret: Annotated[str, InjectedToolArg]) -> str:
    """Take what nobody injects."""
    return ""


@BOTH_WAYS
def test_a_tool_of_two_functions_gets_the_config_where_only_one_takes_it(way):
    def bare(x: int) -> str:
        return f"{x} by the function"

    async def served(x: int, config: RunnableConfig) -> str:
        return f"{x} in {config['configurable']['thread_id']}"

    look = StructuredTool.from_function(func=bare, coroutine=served, name="look", description="Look.")
    with session(call("look", x=1), "Done.", tools=[look], way=way) as s:
        assert results(s.turn())[0].text == ("1 by the function" if way == "invoke" else "1 in t")


class Form(BaseModel):
    """A form, no function."""

    x: int


@pytest.mark.parametrize(
    ("given", "told"),
    [
        (some, "'args'"),
        (any_names, "'more'"),
        (by_place, "'x'"),
        (hidden, "'run_manager'"),
        (renamed, "'args'"),
        (from_nobody, "'secret'"),
        (len, "'obj'"),
        (Form, "a function or a LangChain tool"),
    ],
    ids=lambda one: getattr(one, "__name__", ""),
)
def test_a_parameter_that_no_call_can_give_is_refused_at_mounting(given: Callable[..., Any], told: str):
    with pytest.raises(BadTool, match=told):
        mount([given])

"""The engine in the real graph: every call ends in one honest result, sync and async alike."""

import asyncio
import threading
from collections.abc import Callable
from typing import Annotated, Any

import numpy as np
import pytest
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langchain_core.runnables import RunnableLambda
from langchain_core.tools import InjectedToolCallId, StructuredTool, ToolException, tool
from langgraph.graph import END, START, StateGraph
from langgraph.prebuilt import InjectedState, InjectedStore, ToolRuntime
from langgraph.types import Command
from pydantic import BaseModel, field_validator
from tool_graphs import WAYS, broken_call, call, named, record, result, results, session

from nodes.context import Context
from nodes.contract import marked, mount
from nodes.failures import ToolProblem
from nodes.state import State
from nodes.tools import Tools, next_after_reason

pytestmark = [pytest.mark.parametrize("way", WAYS), pytest.mark.filterwarnings("ignore:tool '")]


def ok(x: int) -> str:
    """Say it is done."""
    return f"done {x}"


async def aok(x: int) -> str:
    """Say it is done."""
    await asyncio.sleep(0)
    return f"done {x}"


class Speechless(Exception):
    """Has no text."""

    def __str__(self) -> str:
        return ""


def raising(error: BaseException, name: str = "boom") -> list[Callable[..., Any]]:
    """Return a sync and an async tool that raise."""

    def boom(x: int) -> str:
        raise error

    async def aboom(x: int) -> str:
        await asyncio.sleep(0)
        raise error

    return [named(name, boom), named(f"a{name}", aboom)]


# Gates


def test_each_gate_tells_its_reason_and_nothing_behind_it_runs(way):
    ran: list[int] = []

    def count(x: int) -> str:
        """Count."""
        ran.append(x)
        return "counted"

    calls = [
        call("nope", "c1", x=1),
        call("count", "c2", y=1),
        call("count", "c3", x="one"),
        call("count", "c4", x="5"),
    ]
    with session(calls, "Done.", tools=[count], way=way) as s:
        got = results(s.turn())
    assert [record(one)["kind"] for one in got] == ["unknown_tool", "invalid_arguments", "invalid_arguments", ""]
    assert "count" in got[0].text and "'nope'" in got[0].text
    assert "unknown: y; the parameters are x" in got[1].text
    assert 'x: Input should be a valid integer; got "one"' in got[2].text
    assert [one.status for one in got] == ["error"] * 3 + ["success"] and ran == [5]
    assert [record(one)["attempts"] for one in got] == [0, 0, 0, 1]


@pytest.mark.parametrize("name", ["", "ok ", "web_serach", "查天气", "x" * 100, "functions.ok"])
def test_a_name_that_is_no_tool_gets_a_result_under_its_call_that_names_the_real_ones(way, name):
    """B027, B081."""
    with session(call(name, "c1", x=1), "I cannot.", tools=[ok], way=way) as s:
        got = result(s.turn())
        sent, _ = s.model.calls[-1]
    assert (got.tool_call_id, got.status, record(got)["kind"]) == ("c1", "error", "unknown_tool")
    assert "ok" in got.text and isinstance(sent[-1], ToolMessage) and sent[-1].tool_call_id == "c1"


def test_a_tool_that_is_not_mounted_for_this_run_is_unknown_in_it(way):
    """B027: disabled for this user."""
    with session(call("ok", x=1), "I cannot.", tools=[ok], way=way) as s:
        got = result(s.turn(tools=("calculator",)))
    assert record(got)["kind"] == "unknown_tool" and "Your tools are: calculator." in got.text


def test_a_call_without_whole_arguments_is_not_run_and_says_so(way):
    """B028."""
    with session(broken_call("c1"), "Saved nothing.", way=way) as s:
        values = s.turn()
    got = result(values)
    assert (record(got)["kind"], got.tool_call_id) == ("invalid_arguments", "c1")
    assert "not run" in got.text and "complete JSON" in got.text
    assert values["stop_reason"] == "answered"


def test_a_call_cut_off_by_the_length_limit_is_not_run(way):
    """B028, facts.md: finish reason `length`."""
    ran: list[int] = []
    cut = AIMessage(
        "",
        tool_calls=[{"name": "note", "args": {"x": 1}, "id": "c1"}],
        response_metadata={"finish_reason": "length"},
    )
    with session(cut, "No.", tools=[named("note", lambda x: ran.append(x))], way=way) as s:
        got = result(s.turn())
    assert ran == [] and "cut off by its length limit" in got.text


def test_a_validator_of_the_tools_own_model_is_told_as_its_field(way):
    class Args(BaseModel):
        city: str

        @field_validator("city")
        @classmethod
        def is_full(cls, city: str) -> str:
            if len(city) < 3:
                raise ValueError("must be a full city name")
            return city

    weather = StructuredTool(name="weather", description="Tell.", args_schema=Args, func=lambda city: f"sun in {city}")
    with session(
        call("weather", city="B"), call("weather", "c2", city="Berlin"), "Sun.", tools=[weather], way=way
    ) as s:
        bad, good = results(s.turn())
    assert record(bad)["kind"] == "invalid_arguments"
    assert 'city: Value error, must be a full city name; got "B".' in bad.text
    assert good.text == "sun in Berlin"


def test_a_validation_error_of_the_tools_own_work_is_not_blamed_on_the_arguments(way, caplog):
    class Reply(BaseModel):
        n: int

    def parse(x: int) -> str:
        """Parse a reply."""
        return str(Reply.model_validate({"n": "token=tok-SECRET99"}))

    async def aparse(x: int) -> str:
        """Parse a reply."""
        return parse(x)

    with session([call("parse", x=1), call("aparse", "c2", x=1)], "No.", tools=[parse, aparse], way=way) as s:
        got = results(s.turn())
    assert [record(one)["kind"] for one in got] == ["internal", "internal"]
    assert "SECRET99" not in got[0].text + caplog.text and "ValidationError" in got[0].text


# Running


ERRORS = [
    ConnectionError("secret-host refused sk-12345678abcd"),
    KeyError(""),
    Speechless(),
    TimeoutError(),
    asyncio.CancelledError(),
    SystemExit(1),
    StopIteration(),
    RecursionError("deep"),
    ToolException(""),
]
RAISED = [(error, boom) for error in ERRORS for boom in ("boom", "aboom")]
RAISED.append((KeyboardInterrupt(), "boom"))  # in a loop it is the user's own


@pytest.mark.parametrize(("error", "boom"), RAISED, ids=lambda one: one if isinstance(one, str) else type(one).__name__)
def test_one_of_several_calls_that_raises_leaves_the_others_whole(way, error, boom):
    """B026, with all its variants."""
    calls = [call("ok", "c1", x=1), call(boom, "c2", x=2), call("ok", "c3", x=3)]
    with session(calls, "Half of it.", tools=[ok, *raising(error)], way=way) as s:
        values = s.turn()
        sent, _ = s.model.calls[-1]
    got = results(values)
    assert [one.tool_call_id for one in got] == ["c1", "c2", "c3"]
    assert [one.status for one in got] == ["success", "error", "success"]
    assert got[0].text == "done 1" and got[2].text == "done 3"
    expected = "RuntimeError" if isinstance(error, StopIteration) and "a" in (way[0], boom[0]) else type(error).__name__
    assert expected in got[1].text and record(got[1])["kind"] == "internal"
    assert "secret-host" not in got[1].text and "sk-1234" not in got[1].text
    assert [one.text for one in sent if isinstance(one, ToolMessage)] == [one.text for one in got]
    assert values["stop_reason"] == "answered"


def test_calls_of_one_answer_run_at_once(way):
    barrier = threading.Barrier(2)
    loops: dict[Any, asyncio.Barrier] = {}

    def meet(x: int) -> str:
        """Wait for the other."""
        return f"met {barrier.wait(timeout=30) >= 0}"

    async def ameet(x: int) -> str:
        """Wait for the other."""
        meeting = loops.setdefault("one", asyncio.Barrier(2))
        await asyncio.wait_for(meeting.wait(), 30)
        return "met"

    tools = [meet, ameet] if way == "ainvoke" else [meet]
    with session(
        *([call(one.__name__, f"c{n}", x=n) for n in (1, 2)] for one in tools), "Both.", tools=tools, way=way
    ) as s:
        got = results(s.turn())
    assert all(one.text.startswith("met") for one in got) and len(got) == 2 * len(tools)


def test_as_many_calls_as_a_model_makes_at_once_run_at_once(way):
    """On a machine of two cores too."""
    barrier = threading.Barrier(16)

    def meet(x: int) -> str:
        """Wait for the others."""
        barrier.wait(timeout=30)
        return "met"

    with session([call("meet", f"c{n}", x=n) for n in range(16)], "All.", tools=[meet], way=way) as s:
        assert [one.text for one in results(s.turn())] == ["met"] * 16


def test_results_stand_in_the_order_of_the_calls_whoever_ends_first(way):
    second = threading.Event()

    def first(x: int) -> str:
        """End last."""
        assert second.wait(30)
        return "first"

    def last(x: int) -> str:
        """End first."""
        second.set()
        return "last"

    with session([call("first", "c1", x=1), call("last", "c2", x=2)], "Done.", tools=[first, last], way=way) as s:
        assert [one.text for one in results(s.turn())] == ["first", "last"]


@pytest.mark.parametrize("own", [True, False], ids=["the tool's", "the context's"])
def test_a_call_over_its_time_limit_is_told_so_and_its_sibling_is_whole(way, own):
    end = threading.Event()

    def hang(x: int) -> str:
        """Hang."""
        end.wait()
        return "late"

    async def ahang(x: int) -> str:
        """Hang, and ignore being cancelled."""
        while not end.is_set():
            try:
                await asyncio.to_thread(end.wait)
            except asyncio.CancelledError:
                continue
        return "late"

    marks = marked(timeout_s=0.05) if own else marked()
    calls = [call("hang", "c1", x=1), call("ok", "c2", x=2)]
    try:
        with session(calls, "Half.", tools=[marks(hang), marks(ahang), marked(timeout_s=20)(ok)], way=way) as s:
            slow, quick = results(s.turn(tool_timeout_s=30 if own else 0.05))
    finally:
        end.set()
    assert record(slow)["kind"] == "timeout" and quick.text == "done 2"
    assert "within 0.05 s" in slow.text and "may still be running" in slow.text


def test_a_timeout_that_the_tool_raises_itself_is_not_the_limit(way):
    """B026: asyncio.TimeoutError."""
    tools = raising(TimeoutError("upstream"))
    with session([call("boom", "c1", x=1), call("aboom", "c2", x=1)], "No.", tools=tools, way=way) as s:
        assert [record(one)["kind"] for one in results(s.turn())] == ["internal", "internal"]


def test_what_a_tool_says_itself_reaches_the_model_with_secrets_masked(way):
    problem = raising(ToolProblem("the order is closed; api_key=abcd1234efgh"), "closed")
    mcp = raising(ToolException("no such table"), "mcp")
    names = ("closed", "aclosed", "mcp", "amcp")
    calls = [call(name, f"c{n}", x=1) for n, name in enumerate(names)]
    with session(calls, "No.", tools=[*problem, *mcp], way=way) as s:
        got = results(s.turn())
    assert [record(one)["kind"] for one in got] == ["business"] * 4
    assert got[0].text == "Error (business): the order is closed; api_key=[secret]"
    assert got[3].text == "Error (business): no such table"


def test_an_internal_error_leaks_nothing_to_the_model_and_logs_all_of_it_masked_under_one_id(way, caplog):
    def connect(x: int) -> str:
        """Connect."""
        raise OSError("/srv/app/db.py: postgres://admin:hunter22@db refused, Authorization: Bearer abc.def.ghi")

    with session(call("connect", x=1), "No.", tools=[connect], way=way) as s:
        got = result(s.turn())
    id = record(got)["id"]
    assert id and id in got.text and "OSError" in got.text
    assert not any(word in got.text for word in ("/srv", "hunter22", "abc.def", "Traceback", "postgres"))
    (logged,) = [one.getMessage() for one in caplog.records if one.levelname == "ERROR"]
    assert id in logged and "Traceback" in logged and "in connect" in logged and "/srv/app/db.py" in logged
    assert "hunter22" not in logged and "abc.def.ghi" not in logged


# Retries, with pauses that only are noted


def run_with_pauses(given: Any, way: str) -> tuple[ToolMessage, list[float]]:
    """Run one call of a tool in a graph of the tools node alone; return its result and the pauses."""
    pauses: list[float] = []

    async def asleep(seconds: float) -> None:
        pauses.append(seconds)

    node = Tools(mount([given]), sleep=pauses.append, asleep=asleep)
    builder = StateGraph(State, context_schema=Context)
    builder.add_node("tools", RunnableLambda(node.run, afunc=node.arun))
    builder.add_conditional_edges(START, next_after_reason, {"calls": "tools", "no calls left": END})
    asked = AIMessage("", tool_calls=[{"name": "flaky", "args": {"x": 1}, "id": "c1"}])
    state: Any = {"messages": [HumanMessage("x"), asked]}
    graph = builder.compile()
    values = graph.invoke(state) if way == "invoke" else asyncio.run(graph.ainvoke(state))
    return result(values), pauses


def flaky_until(attempt: int, error: Exception) -> Callable[[int], str]:
    attempts = iter(range(1, 10))

    def flaky(x: int) -> str:
        """Fail at first."""
        if (n := next(attempts)) < attempt:
            raise error
        return f"came at attempt {n}"

    return flaky


@pytest.mark.parametrize(("attempt", "pauses"), [(1, []), (2, [0.2]), (3, [0.2, 1.0])])
def test_a_transient_error_of_an_idempotent_tool_is_tried_again_after_growing_pauses(way, attempt, pauses):
    flaky = marked(idempotent=True, transient=(ConnectionError,))(flaky_until(attempt, ConnectionResetError()))
    got, paused = run_with_pauses(flaky, way)
    assert got.text == f"came at attempt {attempt}" and paused == pauses
    assert record(got)["attempts"] == attempt and record(got)["ok"] is True


def test_after_three_attempts_it_is_an_error(way):
    flaky = marked(idempotent=True, transient=(ConnectionError,))(flaky_until(9, ConnectionResetError()))
    got, paused = run_with_pauses(flaky, way)
    assert paused == [0.2, 1.0] and record(got)["attempts"] == 3 and "ConnectionResetError" in got.text


@pytest.mark.parametrize(
    "marks",
    [
        marked(transient=(ConnectionError,)),
        marked(idempotent=True),
        marked(idempotent=True, transient=(TimeoutError,)),
        marked(),
    ],
    ids=["not idempotent", "nothing transient", "another error", "no marks"],
)
def test_nothing_else_is_ever_tried_again(way, marks):
    got, paused = run_with_pauses(marks(flaky_until(2, ConnectionResetError())), way)
    assert paused == [] and record(got)["attempts"] == 1 and got.status == "error"


# What tools are given, and what they give


def test_state_store_and_runtime_are_injected_and_cannot_be_forged(way):
    def inside(
        x: int,
        state: Annotated[Any, InjectedState],
        store: Annotated[Any, InjectedStore()],
        runtime: ToolRuntime[Context, Any],
    ) -> str:
        """Look inside."""
        return f"{len(state['messages'])} {store is runtime.store} {runtime.context.user} {runtime.tool_call_id}"

    calls = [call("inside", "c1", x=1), call("inside", "c2", x=2, state={"messages": []})]
    with session(calls, "Seen.", tools=[inside], way=way) as s:
        good, forged = results(s.turn(user="ann"))
    assert good.text == "2 True ann c1"
    assert record(forged)["kind"] == "invalid_arguments" and "unknown: state" in forged.text


def test_a_command_updates_the_state_and_its_result_is_recorded_like_any(way, caplog):
    caplog.set_level("INFO", "palimpsest.tools")

    def name_it(text: str, call_id: Annotated[str, InjectedToolCallId]) -> Command:
        """Name the summary."""
        return Command(update={"summary": text, "messages": [ToolMessage("x" * 500, tool_call_id=call_id)]})

    with session([call("name_it", text="so far"), call("ok", "c2", x=1)], "Done.", tools=[name_it, ok], way=way) as s:
        values = s.turn(max_result_chars=200)
    first, second = results(values)
    assert values["summary"] == "so far" and second.text == "done 1"
    assert record(first)["ok"] is True and "tool_result" in first.text and len(first.text) < 400
    told = [one for step in values["steps"] if step["node"] == "tools" for one in step["detail"]["calls"]]
    assert [one["tool"] for one in told] == ["name_it", "ok"] and all(one["ok"] for one in told)
    assert sum(getattr(one, "event", "") == "done" for one in caplog.records) == 2


def test_messages_and_lists_of_messages_are_results_too(way):
    def own(x: int, call_id: Annotated[str, InjectedToolCallId]) -> Any:
        """Make a message."""
        made = ToolMessage("mine \ud800", tool_call_id=call_id, status="error" if x else "success", artifact={"a": x})
        return [made] if x == 2 else made

    calls = [call("own", f"c{n}", x=n) for n in range(3)]
    with session(calls, "Done.", tools=[own], way=way) as s:
        got = results(s.turn())
    assert [one.text for one in got] == ["mine \ufffd"] * 3 and got[1].artifact == {"a": 1}
    assert [record(one)["kind"] for one in got] == ["", "business", "business"]


def test_content_and_artifact_are_kept_apart_in_plain_form(way):
    """B056: a NumPy scalar as artifact can be saved."""

    @tool(response_format="content_and_artifact")
    def score(x: int) -> Any:
        """Score."""
        return {"城市": "深圳"}, {"score": np.float32(0.5), "raw": b"\xff"}

    with session(call("score", x=1), "Done.", tools=[score], way=way) as s:
        got = result(s.turn())
    assert got.text == '{"城市": "深圳"}'
    assert got.artifact == {"score": 0.5, "raw": "<1 bytes of binary data>"}


@pytest.mark.parametrize(
    ("value", "shown"),
    [(None, "(no output)"), ([], "[]"), (b"\xff", "<1 bytes of binary data>"), ({"n": float("nan")}, '{"n": "nan"}')],
)
def test_any_value_reaches_the_model_as_true_text(way, value, shown):
    def give(x: int) -> Any:
        """Give it."""
        return value

    async def agive(x: int) -> Any:
        """Give it."""
        return value

    with session([call("give", x=1), call("agive", "c2", x=1)], "Done.", tools=[give, agive], way=way) as s:
        s.turn()
        sent, _ = s.model.calls[-1]
    assert [one.text for one in sent if isinstance(one, ToolMessage)] == [shown, shown]


def test_a_generator_is_read_within_the_limit_and_its_error_is_the_calls(way):
    def stream(x: int) -> Any:
        """Stream."""
        yield 1
        if x:
            raise ConnectionError("gone")

    with session([call("stream", x=0), call("stream", "c2", x=1)], "Done.", tools=[stream], way=way) as s:
        whole, torn = results(s.turn())
    assert whole.text == "[1]" and record(torn)["kind"] == "internal" and "ConnectionError" in torn.text


def test_an_answer_of_many_calls_gets_as_many_results(way):
    calls = [call("ok" if n % 2 else "aok", f"c{n}", x=n) for n in range(30)]
    with session(calls, "Done.", tools=[ok, aok], way=way) as s:
        assert [one.text for one in results(s.turn())] == [f"done {n}" for n in range(30)]


# Log lines


def test_each_step_of_a_call_is_one_structured_line_without_arguments(way, caplog):
    caplog.set_level("INFO", "palimpsest.tools")
    calls = [call("ok", "c1", x=424242), call("boom", "c2", x=1), call("nope", "c3")]
    with session(calls, broken_call("c4"), "Done.", tools=[ok, *raising(ValueError("no"))], way=way) as s:
        s.turn(thread="t-7")
    lines = [one for one in caplog.records if hasattr(one, "event")]
    seen = sorted((one.call, one.event, getattr(one, "kind", ""), getattr(one, "attempt", None)) for one in lines)
    assert seen == [
        ("c1", "done", "", 1),
        ("c1", "start", "", 1),
        ("c2", "error", "internal", 1),
        ("c2", "start", "", 1),
        ("c3", "refused", "unknown_tool", 0),
        ("c4", "refused", "invalid_arguments", None),
    ]
    assert {one.thread_id for one in lines} == {"t-7"} and all(isinstance(one.step, int) for one in lines)
    assert all(one.tool and f"tool={one.tool}" in one.getMessage() for one in lines)
    assert all(one.ms >= 0 for one in lines if one.event in ("done", "error"))
    assert "424242" not in caplog.text


def test_nothing_is_logged_below_error_unless_asked_for(way, caplog):
    with session(call("ok", x=1), "Done.", tools=[ok], way=way) as s:
        s.turn()
    assert [one for one in caplog.records if one.name == "palimpsest.tools"] == []


# Limits of the loop


def test_at_the_step_limit_an_answer_is_asked_for_without_tools(way):
    """B045."""
    calls = [call("ok", f"c{n}", x=n) for n in range(3)]
    with session(*calls, "So far: done 0 to 2.", "Going on.", tools=[ok], way=way) as s:
        values = s.turn(max_steps=4)
        asked, tools = s.model.calls[-1]
        assert (values["stop_reason"], values["messages"][-1].text) == ("max_steps", "So far: done 0 to 2.")
        assert tools == [] and "no more tool calls" in asked[0].text
        assert s.turn("continue please")["messages"][-1].text == "Going on."
        sent, _ = s.model.calls[-1]
    assert [one.text for one in sent if isinstance(one, ToolMessage)] == ["done 0", "done 1", "done 2"]


def test_a_call_at_the_last_step_is_never_run(way):
    """B046: either the tool runs and its result is used, or nothing runs."""
    ran: list[int] = []
    note = named("note", lambda x: ran.append(x))
    with session(call("note", "c1", x=1), call("note", "c2", x=2), tools=[note], way=way) as s:
        values = s.turn(max_steps=2)
    assert ran == [1] and values["stop_reason"] == "max_steps"
    assert values["messages"][-1].text and not values["messages"][-1].tool_calls


def test_one_step_is_a_plain_answer(way):
    with session("Hello.", tools=[ok], way=way) as s:
        values = s.turn(max_steps=1)
        assert s.model.calls[0][1] == []
    assert (values["stop_reason"], values["messages"][-1].text) == ("answered", "Hello.")


def test_an_identical_save_is_a_no_op_that_says_so(way):
    """B048."""

    def save(messages: list[Any], tools: list[str]) -> Any:
        saved = isinstance(messages[-1], ToolMessage) and "stored" in messages[-1].text
        return "Noted." if saved else call("memory_save", f"c{len(messages)}", text="User likes tea")

    with session(save, save, save, tools=[], way=way) as s:
        values = s.turn("remember that I like tea")
        items = s.store.search(("users", "me", "memories"))
    first, second = results(values)
    assert '"saved": "new"' in first.text and '"saved": "already stored"' in second.text
    assert len(items) == 1 and values["messages"][-1].text == "Noted."


def test_an_empty_answer_after_a_memory_edit_gets_a_second_chance(way):
    """B149."""
    saved = call("memory_save", text="The user lives in Porto")
    with session(saved, "", "Noted: Porto.", way=way) as s:
        values = s.turn("please remember that I live in Porto")
    assert (values["stop_reason"], values["messages"][-1].text) == ("answered", "Noted: Porto.")


async def test_an_async_tool_serves_a_sync_call_inside_a_running_loop(way):
    """B036: as in a notebook."""
    with session(call("aok", x=1), "Done.", tools=[aok], way=way) as s:
        given: Any = {"messages": [("user", "x")]}
        config: Any = {"configurable": {"thread_id": "t"}}
        values = s.agent.invoke(given, config) if way == "invoke" else await s.agent.ainvoke(given, config)
    assert result(values).text == "done 1"

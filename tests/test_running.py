"""Running calls in the real graph: at once, in order, within time, again only where that is safe; sync and async."""

import asyncio
import threading
from collections.abc import Callable
from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langchain_core.runnables import RunnableLambda
from langchain_core.tools import ToolException
from langgraph.graph import END, START, StateGraph
from tool_graphs import WAYS, Speechless, call, ok, raising, record, result, results, session

from nodes.context import Context
from nodes.contract import marked, mount
from nodes.failures import ToolProblem
from nodes.state import State
from nodes.tools import Tools, next_after_reason

pytestmark = [pytest.mark.parametrize("way", WAYS), pytest.mark.filterwarnings("ignore:tool '")]


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

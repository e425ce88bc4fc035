"""What tools are given and what they give, in the real graph, and the log lines that tell of it; sync and async."""

from typing import Annotated, Any

import numpy as np
import pytest
from langchain_core.messages import ToolMessage
from langchain_core.tools import InjectedToolCallId, tool
from langgraph.prebuilt import InjectedState, InjectedStore, ToolRuntime
from langgraph.types import Command
from tool_graphs import WAYS, aok, broken_call, call, ok, raising, record, result, results, session

from nodes.context import Context
from nodes.contract import marked

pytestmark = [pytest.mark.parametrize("way", WAYS), pytest.mark.filterwarnings("ignore:tool '")]


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


def test_each_step_of_a_call_is_one_structured_line_without_arguments(way, caplog):
    """Start, refused, retry, error and done, each with thread, step, tool, call, attempt and milliseconds."""
    caplog.set_level("INFO", "palimpsest.tools")
    errors = iter([ConnectionError("secret"), None])

    def flaky(x: int) -> str:
        """Fail at first."""
        if error := next(errors):
            raise error
        return "came"

    calls = [call("ok", "c1", x=424242), call("boom", "c2", x=1), call("nope", "c3"), call("flaky", "c5", x=1)]
    tools = [ok, *raising(ValueError("no")), marked(idempotent=True, transient=(ConnectionError,))(flaky)]
    with session(calls, broken_call("c4"), "Done.", tools=tools, way=way) as s:
        s.turn(thread="t-7")
    lines = [one for one in caplog.records if hasattr(one, "event")]
    assert sorted((one.call, one.event, one.attempt, getattr(one, "kind", "")) for one in lines) == [
        ("c1", "done", 1, ""),
        ("c1", "start", 1, ""),
        ("c2", "error", 1, "internal"),
        ("c2", "start", 1, ""),
        ("c3", "refused", 0, "unknown_tool"),
        ("c4", "refused", 0, "invalid_arguments"),
        ("c5", "done", 2, ""),
        ("c5", "retry", 1, ""),
        ("c5", "start", 1, ""),
        ("c5", "start", 2, ""),
    ]
    names = {"c1": "ok", "c2": "boom", "c3": "nope", "c4": "memory_save", "c5": "flaky"}
    for one in lines:
        known = {"thread_id": "t-7", "tool": names[one.call], "call": one.call, "attempt": one.attempt, "ms": one.ms}
        assert isinstance(one.step, int) and isinstance(one.ms, int) and one.ms >= 0
        assert one.getMessage().startswith(f"{one.event} ")
        assert all(getattr(one, key) == value and f"{key}={value}" in one.getMessage() for key, value in known.items())
    assert next(one.error for one in lines if one.event == "retry") == "ConnectionError"
    spent = {(one.event, one.attempt): one.ms for one in lines if one.call == "c5"}
    assert spent["start", 1] <= spent["retry", 1] <= spent["start", 2] <= spent["done", 2]
    assert "424242" not in caplog.text and "secret" not in caplog.text


def test_nothing_is_logged_below_error_unless_asked_for(way, caplog):
    with session(call("ok", x=1), "Done.", tools=[ok], way=way) as s:
        s.turn()
    assert [one for one in caplog.records if one.name == "palimpsest.tools"] == []

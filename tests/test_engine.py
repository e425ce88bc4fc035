"""The engine in the real graph: its gates, and the end of the loop; sync and async alike."""

from typing import Any

import pytest
from langchain_core.messages import AIMessage, ToolMessage
from langchain_core.tools import StructuredTool, ToolException, tool
from langgraph.errors import GraphRecursionError
from pydantic import BaseModel, field_validator
from tool_graphs import WAYS, aok, broken_call, call, named, ok, record, result, results, session

pytestmark = [pytest.mark.parametrize("way", WAYS), pytest.mark.filterwarnings("ignore:tool '")]


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


@pytest.mark.parametrize("memory", [True, False])
@pytest.mark.parametrize("limit", range(1, 13))
def test_before_langgraphs_own_limit_the_turn_ends_with_what_was_found(way, limit, memory):
    """B045, B046: never did a tool run and the run end in an exception."""
    ran: list[int] = []
    calls = [call("note", f"c{n}", x=n) for n in range(8)]

    def reply(messages: list[Any], tools: list[str]) -> Any:
        return calls[len(results({"messages": messages}))] if tools else f"Found {len(ran)} things."

    with session(tools=[named("note", lambda x: ran.append(x))], way=way, memory=memory) as s:
        s.model._steps.extend([reply] * 8)
        whole = s.agent
        s.agent = whole.with_config(recursion_limit=limit)
        try:
            values = s.turn()
        except GraphRecursionError:
            assert ran == [] and limit < (4 if memory else 2)  # not even a plain answer fits
        else:
            assert (values["stop_reason"], values["messages"][-1].text) == ("max_steps", f"Found {len(ran)} things.")
            assert len(results(values)) == len(ran) == max(0, (limit - (5 if memory else 2)) // 2)
        s.agent = whole
        s.model._steps[:] = ["Going on."]
        assert s.turn("continue please")["messages"][-1].text == "Going on."
        sent, _ = s.model.calls[-1]
    assert sum(isinstance(one, ToolMessage) for one in sent) == len(ran)


def test_a_result_that_is_the_answer_is_given_as_such(way):
    """B046: `return_direct`, unless it failed or other tools were called beside it."""

    @tool(return_direct=True)
    def fetch(x: int) -> str:
        """Fetch."""
        if x < 0:
            raise ToolException("nothing is below zero")
        return f"the text {x} 汉"

    calls = [call("fetch", "c1", x=-1), [call("fetch", "c2", x=1), call("ok", "c3", x=1)]]
    last = [call("fetch", "c4", x=2), call("fetch", "c5", x=3)]
    with session(*calls, last, "Next.", tools=[fetch, ok], way=way) as s:
        values = s.turn()
        assert len(s.model.calls) == 3 and values["stop_reason"] == "answered"
        assert values["messages"][-1].text == "the text 2 汉\nthe text 3 汉"
        assert s.turn("and now?")["messages"][-1].text == "Next."


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

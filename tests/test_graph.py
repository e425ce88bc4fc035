"""The graph: its shape, its loop, its ends, and what a thread keeps; on Chroma, SQLite and a scripted model."""

import asyncio
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from uuid import UUID

import pytest
from conftest import answer, ask, config, said
from langchain_core.messages import AIMessage, BaseMessage, SystemMessage, ToolMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.store.memory import InMemoryStore

from graph.agent import RECURSION_LIMIT, aopen_agent, build_agent, compiled
from graph.scripted import ScriptedModel
from graph.settings import Settings
from memory.memories import Memories
from memory.transcript import Transcript
from nodes.context import Context, NotYourThread, UnknownTool

ADD = {"name": "calculator", "args": {"expression": "2+2"}, "id": "c1"}


def test_the_drawing_shows_five_nodes_and_the_loop():
    drawn = compiled(build_agent(model=ScriptedModel([])), None, None).get_graph()
    edges = {(edge.source, edge.target, edge.conditional) for edge in drawn.edges}
    assert set(drawn.nodes) == {"__start__", "recall", "reason", "tools", "remember", "summarize", "__end__"}
    assert edges == {
        ("__start__", "recall", True),
        ("__start__", "reason", True),
        ("recall", "reason", True),
        ("recall", "remember", True),
        ("reason", "tools", True),
        ("reason", "remember", True),
        ("reason", "__end__", True),
        ("tools", "reason", False),
        ("remember", "summarize", True),
        ("remember", "__end__", True),
        ("summarize", "reason", True),
        ("summarize", "__end__", True),
    }


def test_the_limit_on_steps_is_set():
    assert compiled(build_agent(model=ScriptedModel([])), None, None).config["recursion_limit"] == RECURSION_LIMIT


def test_all_four_ways_of_calling_give_the_same_answer(scripted):
    agent, _ = scripted(*[ADD, "It is 4."] * 4)

    async def asynchronous() -> list[str]:
        values = await agent.ainvoke(said("2+2?"), config("b"))
        streamed = [part async for part in agent.astream(said("2+2?"), config("d"), stream_mode="values")]
        return [values["messages"][-1].text, streamed[-1]["messages"][-1].text]

    streamed = list(agent.stream(said("2+2?"), config("c"), stream_mode="values"))
    answers = [answer(agent, "2+2?", "a"), streamed[-1]["messages"][-1].text, *asyncio.run(asynchronous())]
    assert answers == ["It is 4."] * 4


async def test_an_agent_opens_and_closes_under_a_running_loop(settings: Settings):
    async with aopen_agent(settings, model=ScriptedModel(["Hello."])) as agent:
        values = await agent.ainvoke(said("Hi"), config())
    assert values["messages"][-1].text == "Hello."


def test_the_builder_takes_any_saver_and_store():
    graph = build_agent(model=ScriptedModel(["Hi."])).compile(checkpointer=InMemorySaver(), store=InMemoryStore())
    assert answer(graph, "Hello") == "Hi."


def test_the_graph_runs_without_saver_and_store():
    graph = build_agent(model=ScriptedModel(["Hi."])).compile()
    assert graph.invoke(said("Hello"))["messages"][-1].text == "Hi."


def test_a_tool_result_follows_its_call_at_once_and_in_order(scripted):
    calls = [{"name": "calculator", "args": {"expression": f"{n}+0"}, "id": f"c{n}"} for n in range(4)]
    agent, model = scripted(calls, "Done.")
    ask(agent, "Add")
    results = [message for message in model.calls[1][0] if isinstance(message, ToolMessage)]
    assert [(result.tool_call_id, result.text) for result in results] == [(f"c{n}", str(n)) for n in range(4)]


def test_an_invented_tool_gets_a_result_that_names_the_real_ones(scripted):
    """B027."""
    agent, model = scripted({"name": "web_serach", "args": {"q": "x"}}, "I cannot search.")
    values = ask(agent, "Search x")
    result = model.calls[1][0][-1]
    assert isinstance(result, ToolMessage) and result.status == "error"
    assert "calculator" in result.text
    assert values["stop_reason"] == "answered"


def test_an_answer_with_only_broken_calls_goes_back_to_the_model(scripted):
    """B028."""
    broken = AIMessage(
        "",
        invalid_tool_calls=[
            {"name": "memory_save", "args": '{"text": "abc', "id": "c1", "error": None, "type": "invalid_tool_call"}
        ],
    )
    agent, model = scripted(broken, "Saved nothing.")
    assert answer(agent, "Save abc") == "Saved nothing."
    call, result = model.calls[1][0][-2:]
    assert isinstance(call, AIMessage) and [one["args"] for one in call.tool_calls] == [{}]
    assert isinstance(result, ToolMessage) and "not run" in result.text


def test_a_tool_that_raises_leaves_its_siblings_whole(scripted):
    """B026."""

    def boom(x: int) -> str:
        """Fail.

        Args:
            x: any number
        """
        raise ConnectionError("secret-host refused sk-12345678")

    agent, model = scripted([ADD, {"name": "boom", "args": {"x": 1}}, {**ADD, "id": "c3"}], "Half of it.", tools=[boom])
    ask(agent, "Do three things")
    results = [message for message in model.calls[1][0] if isinstance(message, ToolMessage)]
    assert [result.status for result in results] == ["success", "error", "success"]
    assert "sk-12345678" not in results[1].text and "boom" in results[1].text


def test_an_async_tool_serves_the_sync_graph(scripted):
    """B036."""

    async def lookup(key: str) -> str:
        """Look up.

        Args:
            key: what to look up
        """
        await asyncio.sleep(0)
        return f"value of {key}"

    agent, model = scripted({"name": "lookup", "args": {"key": "a"}}, "Done.", tools=[lookup])
    ask(agent, "Look up a")
    assert model.calls[1][0][-1].text == "value of a"


def test_wrong_arguments_are_named_field_by_field(scripted):
    agent, model = scripted({"name": "recall", "args": {"query": "tea", "k": 99}}, "Done.")
    ask(agent, "What tea?")
    assert "k: Input should be less than or equal to 20" in model.calls[1][0][-1].text


def test_the_last_step_answers_without_tools_and_says_so(scripted):
    agent, model = scripted(ADD, "Only 4.")
    values = ask(agent, "Add", max_steps=2)
    assert (values["messages"][-1].text, values["stop_reason"]) == ("Only 4.", "max_steps")
    assert model.calls[0][1] and not model.calls[1][1]


def test_a_model_that_calls_tools_to_the_end_still_leaves_an_answer(scripted):
    """B045."""
    agent, _ = scripted(ADD, {**ADD, "id": "c2"}, "Going on.")
    values = ask(agent, "Add", max_steps=2)
    assert values["stop_reason"] == "max_steps" and values["messages"][-1].text
    assert not values["messages"][-1].tool_calls
    assert answer(agent, "continue please") == "Going on."


def test_an_empty_answer_gets_a_second_chance_then_an_explicit_failure(scripted):
    """B076, B149."""
    agent, _ = scripted("", "Now I speak.", "  ", "", "Hello again.")
    assert answer(agent, "Hi") == "Now I speak."
    values = ask(agent, "Hi")
    assert values["stop_reason"] == "empty_answer" and values["messages"][-1].text
    assert answer(agent, "Hi") == "Hello again."


@pytest.mark.parametrize("blank", ["", "  \n", "\x00", []])
def test_an_empty_question_is_told_so_and_no_model_is_called(scripted, blank):
    agent, model = scripted()
    values = ask(agent, blank)
    assert values["stop_reason"] == "empty_question" and model.calls == []


def test_a_model_that_fails_ends_the_turn_with_the_reason_and_keeps_the_thread(scripted):
    agent, model = scripted(ConnectionError("Bearer abcdef refused"), "Back again.")
    values = ask(agent, "Hi")
    assert values["stop_reason"] == "model_error"
    assert "abcdef" not in values["messages"][-1].text
    assert answer(agent, "Still there?") == "Back again."
    assert "Hi" in [message.text for message in model.calls[1][0]]


@pytest.mark.parametrize("dirty", ["book a \x00 table", "bold \ud835 text", "\ud83c\udf78"])
def test_what_no_encoder_could_carry_is_cleaned_at_the_border(scripted, settings: Settings, dirty: str):
    """B040, B060: in the question, in a tool's arguments and result, in the answer."""

    def echo(text: str) -> str:
        """Say it back.

        Args:
            text: what to say
        """
        return f"{dirty} {text}"

    agent, model = scripted({"name": "echo", "args": {"text": dirty}}, f"You said {dirty}", tools=[echo])
    values = ask(agent, dirty)
    for message in [*values["messages"], *model.calls[1][0]]:
        message.text.encode()
        assert "\x00" not in message.text
    assert agent.get_state(config()).values["messages"] == values["messages"]


def test_the_system_prompt_is_sent_once_and_never_stored(scripted):
    """B012."""
    agent, model = scripted(*["Yes."] * 30)
    for n in range(30):
        values = ask(agent, f"Turn {n}", max_messages=1000)
    assert not any(isinstance(message, SystemMessage) for message in values["messages"])
    systems = [[message for message in sent if isinstance(message, SystemMessage)] for sent, _ in model.calls]
    assert {len(found) for found in systems} == {1}
    assert all(isinstance(sent[0], SystemMessage) for sent, _ in model.calls)


def test_steps_tell_the_current_turn_only(scripted):
    agent, _ = scripted(ADD, "4", "Hi")
    assert [step["node"] for step in ask(agent, "2+2")["steps"]] == ["recall", "reason", "tools", "reason", "remember"]
    assert [step["node"] for step in ask(agent, "Hello")["steps"]] == ["recall", "reason", "remember"]


@pytest.mark.parametrize("way", ["invoke", "ainvoke"])
@pytest.mark.parametrize("tools", [("*",), ("no such tool",)])
def test_a_thread_belongs_to_the_user_who_began_it_and_nothing_that_another_says_comes_into_it(scripted, way, tools):
    """B122: also if its very first run broke off at once."""
    agent, model = scripted("Hi Ann.")

    def turn(text: str, user: str, **context: Any) -> dict[str, Any]:
        given = {"messages": [("user", text)]}, {"configurable": {"thread_id": "t"}}
        options = {"context": Context(user=user, extract="off", **context)}
        return agent.invoke(*given, **options) if way == "invoke" else asyncio.run(agent.ainvoke(*given, **options))

    if tools == ("*",):
        turn("I am Ann", "ann")
    else:
        with pytest.raises(UnknownTool):
            turn("I am Ann", "ann", tools=tools)
        model._steps.clear()
    before = agent.get_state({"configurable": {"thread_id": "t"}})
    with pytest.raises(NotYourThread):
        turn("Bob was here", "bob")
    assert agent.get_state({"configurable": {"thread_id": "t"}}) == before
    model._steps.append("Yes, Ann.")
    assert "Bob" not in "".join(message.text for message in turn("Still there?", "ann")["messages"])
    assert "Bob" not in "".join(entry.text for entry in Transcript(agent.store, user="ann", thread="t").entries())


def test_a_tool_name_that_does_not_exist_is_refused_before_anything_runs(scripted):
    agent, model = scripted()
    with pytest.raises(UnknownTool, match="calculatr"):
        ask(agent, "Hi", tools=("calculatr",))
    assert model.calls == []


def test_only_mounted_tools_are_offered_and_run(scripted):
    agent, model = scripted(ADD, "I cannot.", "Hi.")
    ask(agent, "2+2", tools=("current_time",))
    assert model.calls[0][1] == ["current_time"]
    assert model.calls[1][0][-1].status == "error"
    ask(agent, "Hi", memory="inject")
    assert "recall" not in model.calls[2][1] and "memory_save" in model.calls[2][1]


def test_a_bad_context_is_refused_with_the_field_named():
    with pytest.raises(ValueError, match="max_steps"):
        Context(max_steps=0)
    with pytest.raises(ValueError, match="max_stepps"):
        Context(**{"max_stepps": 3})


def test_every_message_of_a_turn_is_in_the_transcript_once(scripted):
    agent, _ = scripted(ADD, "It is 4.", "And 5.")
    ask(agent, "2+2")
    values = ask(agent, "Plus one?")
    entries = Transcript(agent.store, user="me", thread="t").entries()
    assert [(entry.id, entry.text) for entry in entries] == [(m.id, m.text) for m in values["messages"]]


def test_the_page_is_cut_and_nothing_said_is_lost(scripted):
    """B005, B011: the newest question stays; the summary replaces what left; the transcript keeps every word."""
    summary = "## What the user wants\n- turn {}\n## Key context and decisions\n## Things referred to\n## Open items"
    steps: list[Any] = []
    for n in range(6):
        steps += [f"Answer {n}"] + [summary.format(n)] * (n in (2, 4))
    agent, model = scripted(*steps)
    for n in range(6):
        values = ask(agent, f"Question {n}", max_messages=5, extract="off")
    assert len(values["messages"]) <= 6 and values["messages"][-2].text == "Question 5"
    assert "turn 4" in values["summary"]
    said_first = [message.text for message in model.calls[-1][0]]
    assert "turn 4" in said_first[0] and said_first[-1] == "Question 5"
    texts = [entry.text for entry in Transcript(agent.store, user="me", thread="t").entries()]
    assert texts == [text for n in range(6) for text in (f"Question {n}", f"Answer {n}")]


@pytest.mark.parametrize("bad", [TimeoutError("no"), "", "   ", "Error: 429"])
def test_a_summary_that_failed_removes_nothing(scripted, bad):
    """B013."""
    agent, _ = scripted("A", "B", "C", bad)
    for text in ("1", "2", "3"):
        values = ask(agent, text, max_messages=5, extract="off")
    assert len(values["messages"]) == 6 and not values.get("summary")
    assert values["steps"][-1]["detail"]["removed"] == 0


def test_statements_become_memories_before_old_messages_leave(scripted):
    extracted = '```json\n{"memories": [{"text": "The dog is called Rex", "source": "%s"}], "facts": []}\n```'

    def extract(messages: list[BaseMessage], tools: list[str]) -> str:
        first = messages[-1].text.split('"id": "', 1)[1].split('"', 1)[0]
        return extracted % first

    agent, _ = scripted("A", "B", "C", extract, "## What the user wants\n- a dog")
    for text in ("My dog is called Rex", "2", "3"):
        ask(agent, text, max_messages=5)
    assert [memory.text for memory in Memories(agent.store, user="me").all()] == ["The dog is called Rex"]
    assert Memories(agent.store, user="me").all()[0].sources[0].thread == "t"


def test_housekeeping_does_not_appear_in_the_answer_stream(scripted):
    """B024."""
    agent, _ = scripted("A", "B", "C", '{"memories": [], "facts": []}', "## What the user wants\n- secret summary")
    seen = ""
    for text in ("1", "2", "3"):
        parts = agent.stream(said(text), config(), context=Context(max_messages=5), stream_mode="messages")
        seen += "".join(message.text for message, _ in parts if isinstance(message, AIMessage))
    assert seen == "ABC"


def test_an_answer_that_ran_into_the_length_limit_says_so(scripted):
    agent, _ = scripted(AIMessage("Once upon a", response_metadata={"finish_reason": "length"}))
    assert ask(agent, "Tell me a tale")["stop_reason"] == "cut_off"


def test_an_answer_instead_of_calls_reaches_the_stream_too(scripted):
    """What stands in for an answer that only called tools is a message of its own: its parts were streamed before."""
    agent, _ = scripted(ADD)
    parts = agent.stream(said("Add"), config(), context=Context(max_steps=1), stream_mode="messages")
    seen = "".join(message.text for message, _ in parts if isinstance(message, AIMessage))
    assert seen == agent.get_state(config()).values["messages"][-1].text != ""


def test_nothing_new_on_an_answered_thread_asks_no_model(scripted):
    agent, model = scripted("Tea it is.")
    ask(agent, "I like tea.")
    values = agent.invoke({"messages": []}, config())
    assert values["stop_reason"] == "empty_question" and len(model.calls) == 1


@pytest.mark.parametrize("form", [str, UUID])
def test_runs_take_turns_whatever_names_the_thread(scripted, form):
    """B068."""
    agent, _ = scripted(*["Yes."] * 6)
    name = form("0197f3a0-0000-7000-8000-000000000001")
    bound = agent.with_config(configurable={"thread_id": name})
    with ThreadPoolExecutor(6) as pool:
        list(pool.map(lambda n: (bound if n % 2 else agent).invoke(said(f"m{n}"), config(name)), range(6)))
    assert len(agent.get_state(config(str(name))).values["messages"]) == 12


@pytest.mark.parametrize("node", ["recall", "reason", "tools", "remember", "summarize"])
def test_a_state_edited_by_hand_as_any_node_goes_on(node):
    graph = compiled(build_agent(model=ScriptedModel([AIMessage("One."), AIMessage("Two.")])), InMemorySaver(), None)
    config = {"configurable": {"thread_id": "t"}}
    graph.invoke({"messages": [("user", "first")]}, config)
    graph.update_state(config, {"messages": [("user", "edited")]}, as_node=node)
    assert graph.invoke({"messages": [("user", "second")]}, config)["messages"][-1].text == "Two."


def test_without_a_store_no_step_is_spent_on_memory():
    graph = compiled(build_agent(model=ScriptedModel([AIMessage("One."), AIMessage("Two.")])), InMemorySaver(), None)
    config = {"configurable": {"thread_id": "t"}}
    for question in ("first", "second"):
        ran = list(graph.stream({"messages": [("user", question)]}, config, stream_mode="updates"))
        assert [list(part) for part in ran] == [["reason"]]
        assert [step["node"] for step in graph.get_state(config).values["steps"]] == ["recall", "reason"]
    with pytest.raises(NotYourThread):
        graph.invoke({"messages": [("user", "mine?")]}, config, context=Context(user="bob"))

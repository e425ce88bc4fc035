"""Calls written as text: real calls if nothing is left to guess, else an answer or a call that did not come about."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import AIMessage
from tool_graphs import WAYS, result, session

from nodes.spoken import looks_like_call, with_spoken_calls

ADD = '{"name": "calculator", "arguments": {"expression": "2+2"}}'
MOUNTED = ["calculator", "recall"]
WHOLE = [
    ADD,
    f"  {ADD}\n",
    f"<tool_call>\n{ADD}\n</tool_call>",
    f"<tool_call>{ADD}",
    f"<function_call>{ADD}</function_call>",
    f"[TOOL_CALLS] [{ADD}]",
    f"```json\n{ADD}\n```",
    f"```\n{ADD}\n```",
    '{"name": "calculator", "parameters": {"expression": "2+2"}}',
    '{"name": "calculator", "arguments": "{\\"expression\\": \\"2+2\\"}"}',
    '{"type": "function", "id": "x", "name": "calculator", "args": {"expression": "2+2"}}',
    f'{{"type": "function", "function": {ADD}}}',
    f'{{"tool_calls": [{{"id": "x", "type": "function", "function": {ADD}}}]}}',
    '{"tool": "calculator", "tool_input": {"expression": "2+2"}}',
    '{"action": "calculator", "action_input": {"expression": "2+2"}}',
    '<function=calculator>{"expression": "2+2"}</function>',
    f"<|python_tag|>{ADD}",
    f"<|tool_call|>[{ADD}]",
    f"<tool_calls>[{ADD}]</tool_calls>",
    f"<TOOL_CALL>{ADD}</TOOL_CALL>",
    f"\ufeff{ADD}",
]
BROKEN = [
    '<tool_call>\n{"name": "calculator", "arguments": {"expres',
    "<tool_call>calculator(2+2)</tool_call>",
    "[TOOL_CALLS] [{",
    '{"name": "Lookup", "arguments": {"q": "nothing"}}',
    f"I will compute it.\n<tool_call>{ADD[:-1]}",
    "<tool_call>" + "[" * 100_000,
    '<invoke name="calculator"><parameter name="expression">2+2</parameter></invoke>',
    "<tool_call>\n<function=calculator>\n<parameter=expression>2+2</parameter>\n</function>\n</tool_call>",
    '<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>calculator\n{"expression": "2+2"}',
    "<function=calculator>{expression: 2+2}</function>",
]
ANSWERS = [
    "4",
    '{"name": "Ann", "age": 3}',
    '[{"name": "Ann", "arguments": null}]',
    '{"expression": "2+2"}',
    "[]",
    "{}",
    '{"name": "calculator"}',
    f"You can write {ADD} to call it.",
    f"Like this:\n```xml\n<tool_call>{ADD}</tool_call>\n```",
    f"<tool_call>{ADD}</tool_call> is how a call looks.",
    f"Its tag is `<tool_call>{ADD}</tool_call>`",
    '{"action": "buy", "input": {"item": "tea"}}',
    '{"function": "f(x)"}',
    '{"tool_calls": []}',
    "[" * 100_000,
]


@pytest.mark.parametrize("text", WHOLE)
def test_a_whole_call_of_a_mounted_tool_is_a_call(text):
    """B039."""
    made = with_spoken_calls(AIMessage(text, id="m"), MOUNTED)
    assert [(call["name"], call["args"]) for call in made.tool_calls] == [("calculator", {"expression": "2+2"})]
    assert made.text == "" and made.id == "m" and made.tool_calls[0]["id"]


def test_what_is_said_before_a_tagged_call_stays():
    made = with_spoken_calls(AIMessage(f"I will compute it.\n<tool_call>{ADD}</tool_call>"), MOUNTED)
    assert (made.text, len(made.tool_calls)) == ("I will compute it.", 1)


def test_several_calls_come_in_their_order_with_ids_of_their_own():
    other = '{"name": "recall", "arguments": {"query": "tea"}}'
    for text in (f"<tool_call>{ADD}</tool_call>\n<tool_call>{other}</tool_call>", f"[{ADD}, {other}]"):
        made = with_spoken_calls(AIMessage(text), MOUNTED).tool_calls
        assert [call["name"] for call in made] == ["calculator", "recall"]
        assert made[0]["id"] != made[1]["id"]


@pytest.mark.parametrize("text", BROKEN, ids=range(len(BROKEN)))
def test_a_call_that_is_not_whole_or_not_mounted_is_no_answer_either(text):
    answer = AIMessage(text)
    assert with_spoken_calls(answer, MOUNTED) is answer
    assert looks_like_call(answer)


@pytest.mark.parametrize("text", ANSWERS, ids=range(len(ANSWERS)))
def test_ordinary_answers_json_and_quoted_calls_included_stay_untouched(text):
    answer = AIMessage(text)
    assert with_spoken_calls(answer, MOUNTED) is answer
    assert not looks_like_call(answer)


def test_one_call_that_is_not_mounted_keeps_all_from_running():
    answer = AIMessage(f'[{ADD}, {{"name": "rm", "arguments": {{}}}}]')
    assert with_spoken_calls(answer, MOUNTED) is answer


def test_an_answer_with_real_calls_is_left_as_it_is():
    answer = AIMessage(ADD, tool_calls=[{"name": "recall", "args": {"query": "x"}, "id": "c"}])
    assert with_spoken_calls(answer, MOUNTED) is answer and answer.text == ADD


PIECES = [
    "<tool_call>",
    "</tool_call>",
    "[TOOL_CALLS]",
    "<function=calculator>",
    "<|python_tag|>",
    "`",
    "```",
    "```json\n",
    "\n",
    ADD,
    "{",
    "}",
    "[",
    "]",
    "text",
    '"',
]


@given(st.lists(st.sampled_from(PIECES), max_size=8).map("".join) | st.text())
def test_any_text_is_read_without_an_error_and_runs_only_what_it_spells_out(text):
    answer = AIMessage(text)
    made = with_spoken_calls(answer, MOUNTED)
    looks_like_call(answer)
    for call in made.tool_calls:
        assert call["name"] in MOUNTED and call["args"] == json.loads(ADD)["arguments"]
    assert made.tool_calls or made is answer


@pytest.mark.parametrize("way", WAYS)
def test_a_spoken_call_runs_and_its_text_is_not_shown(way):
    """B039."""
    with session(f"<tool_call>\n{ADD}\n</tool_call>", "It is 4.", way=way) as s:
        values: Any = s.turn()
    assert result(values).text == "4"
    assert values["messages"][-1].text == "It is 4." and "tool_call" not in values["messages"][1].text


@pytest.mark.parametrize("way", WAYS)
def test_a_spoken_call_that_cannot_run_gets_a_second_chance_then_an_explicit_failure(way):
    """B039: raw call text is never the final answer."""
    lookup = '{"name": "Lookup", "arguments": {"q": "nothing"}}'
    with session(lookup, "I cannot look it up.", lookup, lookup, way=way) as s:
        assert s.turn()["messages"][-1].text == "I cannot look it up."
        values = s.turn()
    assert values["stop_reason"] == "empty_answer" and "Lookup" not in values["messages"][-1].text

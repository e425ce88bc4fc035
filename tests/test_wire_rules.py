"""Every rule refuses its bad examples and takes the nearest good one, by itself and over HTTP."""

import http.client
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage, ToolMessage
from wire import OpenAIWire, Rules, Text, reject, wire_messages
from wire_rules import RULES, strict_json

SYSTEM = {"role": "system", "content": "Be brief."}
USER = {"role": "user", "content": "2+2?"}
ANSWER = {"role": "assistant", "content": "4"}
SCHEMA = {"type": "object", "properties": {"expression": {"type": "string"}}, "required": ["expression"]}


def call(call_id: Any = "c1", name: Any = "calculator", arguments: Any = "{}", kind: str = "function") -> dict:
    return {"id": call_id, "type": kind, "function": {"name": name, "arguments": arguments}}


def calls(*made: Any) -> dict:
    return {"role": "assistant", "content": None, "tool_calls": list(made)}


def result(call_id: Any = "c1", content: Any = "4") -> dict:
    return {"role": "tool", "tool_call_id": call_id, "content": content}


def said(content: Any, role: str = "user") -> dict:
    return {"role": role, "content": content}


def thread(*messages: Any, **settings: Any) -> dict:
    return {"model": "test-model", "messages": list(messages), **settings}


def offer(parameters: Any = SCHEMA, name: Any = "calculator", **function: Any) -> dict:
    tool = {"type": "function", "function": {"name": name, "parameters": parameters, **function}}
    return thread(USER, tools=[tool])


def schema(**field: Any) -> dict:
    return {"type": "object", "properties": {"field": field}}


def post(wire: OpenAIWire, payload: bytes, path: str = "/v1/chat/completions", **headers: str) -> tuple[int, Any]:
    connection = http.client.HTTPConnection(wire.url.split("/")[2], timeout=5)
    connection.request("POST", path, payload, headers)
    response = connection.getresponse()
    answer = response.status, json.loads(response.read())
    connection.close()
    return answer


ALTERNATING = Rules(alternating_roles=True)
IMAGE = {"type": "image_url", "image_url": {"url": "data:image/png;base64,aGk="}}
CLOSED = {**SCHEMA, "additionalProperties": False}
TOOLS = offer()["tools"]

BAD: dict[str, list[dict | tuple[dict, Rules]]] = {
    "text_is_unicode": [
        thread(said("bold \ud835 text")),
        thread(calls(call(arguments='{"\udf78": 1}')), result()),
    ],
    "messages_have_shape": [
        {"model": "test-model"},
        thread(),
        thread("hello"),
        thread(said("x", "function")),
        thread(said("x", "weird")),
        thread({**ANSWER, "reasoning_content": "hm"}),
    ],
    "system_comes_first": [
        thread(USER, SYSTEM),
        thread(SYSTEM, SYSTEM, USER),
        thread(SYSTEM, said("x", "developer")),
    ],
    "names_fit": [thread({**USER, "name": name}) for name in ("Travel Desk", "查天气", "", "a" * 65, "a\n", None)],
    "content_says_something": [
        *(thread(said(content)) for content in (None, "", "  \n", [], 7, ["a"], [{"type": "text", "text": ""}])),
        *(thread(USER, said(content, "assistant")) for content in (None, "", [], [IMAGE])),
        *(thread(USER, calls(call()), result(content=content)) for content in (None, "", [], [IMAGE])),
        thread(said([{"type": "image_url", "image_url": {}}])),
        thread(said([{"type": "text"}])),
        (thread(said([{"type": "text", "text": "a"}])), Rules(plain_strings=True)),
    ],
    "calls_are_whole": [
        thread(USER, {**ANSWER, "tool_calls": []}),
        thread(USER, {**ANSWER, "tool_calls": "calculator"}),
        *(thread(USER, calls(call(call_id)), result(call_id)) for call_id in (None, "", 7, "c" * 41)),
        *(thread(USER, calls(call(name=name)), result()) for name in (None, "", "Web Lookup", "web_search ")),
        *(thread(USER, calls(odd), result()) for odd in (call(arguments={}), call(kind="custom"), {"id": "c1"}, 7)),
        thread(USER, calls(call(), call()), result()),
        (thread(USER, *[calls(call()), result()] * 2), Rules(unique_ids_in_thread=True)),
    ],
    "arguments_parse": [
        thread(USER, calls(call(arguments=text)), result()) for text in ("", '{"a": "cut', "[1]", '{"a": NaN}')
    ],
    "results_follow_calls": [
        thread(USER, result()),
        thread(USER, calls(call())),
        thread(USER, calls(call()), USER, result()),
        thread(USER, calls(call("c1"), call("c2")), result("c1"), ANSWER),
        thread(USER, calls(call()), result(), result()),
        thread(USER, calls(call()), result("c9"), result()),
        thread(USER, calls(call()), result(), ANSWER, result()),
        thread(USER, calls(call()), {"role": "tool", "content": "4"}),
    ],
    "roles_alternate": [(thread(USER, USER), ALTERNATING), (thread(USER, ANSWER, ANSWER), ALTERNATING)],
    "tools_have_schemas": [
        thread(USER, tools=[]),
        thread(USER, tools=[{"type": "custom"}]),
        thread(USER, tools=TOOLS * 2),
        *(offer(name=name) for name in ("查天气", "Web Lookup", "a" * 80, "", None)),
        *(offer(odd) for odd in (None, {}, {"type": "string"}, {"type": "object"}, schema(type="int"))),
        offer(schema(type="array")),
        offer(schema(anyOf=[{"type": "array"}, {"type": "null"}])),
        offer(description="d" * 1025),
        offer(strict=True),
        offer({**CLOSED, "required": []}, strict=True),
    ],
    "choice_is_possible": [
        thread(USER, tool_choice="auto"),
        thread(USER, parallel_tool_calls=False),
        thread(USER, tools=TOOLS, tool_choice="always"),
        thread(USER, tools=TOOLS, tool_choice={"type": "function", "function": {"name": "search"}}),
    ],
    "numbers_make_sense": [
        *(thread(USER, max_tokens=limit) for limit in (0, -1, 1.5, "many", True)),
        thread(USER, max_completion_tokens=0),
        thread(USER, max_tokens=9, max_completion_tokens=9),
        thread(USER, temperature=2.5),
        thread(USER, top_p=-1),
    ],
    "options_need_a_stream": [thread(USER, stream_options={"include_usage": True})],
}

GOOD = [
    thread(SYSTEM, USER, ANSWER, USER),
    thread(said("深圳 🎉"), calls(call(arguments='{"q": "深圳 🎉"}')), result(content="晴")),
    thread(USER, calls(call("c1"), call("c2")), result("c2"), result("c1"), ANSWER),
    thread(USER, calls(call("c" * 40)), result("c" * 40)),
    thread(USER, *[calls(call()), result()] * 2),
    thread(USER, {**calls(call()), "content": ""}, result()),
    thread(USER, {**said(None, "assistant"), "refusal": "No."}),
    thread({**USER, "name": "Travel_Desk-1"}, USER),
    thread(said([IMAGE]), said([IMAGE, {"type": "text", "text": ""}])),
    offer(),
    offer(CLOSED, strict=True),
    offer(schema(anyOf=[{"type": "array", "items": {}}, {"type": ["string", "null"]}])),
    thread(USER, tools=[{"type": "function", "function": {"name": "now"}}], tool_choice="required"),
    thread(USER, tools=TOOLS, tool_choice={"type": "function", "function": {"name": "calculator"}}),
    thread(USER, max_tokens=1, temperature=0, top_p=1, stream=True, stream_options={"include_usage": True}),
]


def test_every_rule_has_bad_examples():
    assert [rule.__name__ for rule in RULES] == list(BAD)


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_a_rule_refuses_its_bad_examples_and_is_the_one_to_do_so(rule):
    for example in BAD[rule.__name__]:
        body, rules = example if isinstance(example, tuple) else (example, Rules())
        assert reject(body, rules) is not None, body
        assert reject(body, rules) == next(iter(rule(body, rules)), None), body


@pytest.mark.parametrize("body", GOOD)
def test_what_a_real_server_takes_is_taken(body):
    assert reject(body) is None


@pytest.mark.parametrize(
    ("body", "off"),
    [
        (thread(SYSTEM, USER, SYSTEM), Rules(one_system_first=False)),
        (thread(USER, said("", "assistant")), Rules(speech_needs_text=False)),
        (thread(USER, calls(call()), result(content="")), Rules(results_need_text=False)),
        (thread(USER, calls(call(arguments='{"a": "cut')), result()), Rules(json_arguments=False)),
    ],
)
def test_a_switch_turns_its_rule_off(body, off):
    assert reject(body) is not None
    assert reject(body, off) is None


def test_results_of_one_turn_may_stand_in_a_row_where_roles_alternate():
    body = thread(SYSTEM, USER, calls(call("c1"), call("c2")), result("c1"), result("c2"), ANSWER)
    assert reject(body, ALTERNATING) is None


def test_a_schema_fault_names_the_place():
    assert "context=('properties', 'field')" in str(reject(offer(schema(type="array"))))


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=6,
)
CALL = st.just(call()) | st.fixed_dictionaries(
    {}, optional={"id": JSON, "type": st.just("function"), "function": st.just(call()["function"]) | JSON}
)
MESSAGE = JSON | st.fixed_dictionaries(
    {"role": st.sampled_from(["system", "user", "assistant", "tool"])},
    optional={"content": JSON | st.just("x"), "name": JSON, "tool_call_id": JSON | st.just("c1")}
    | {"tool_calls": JSON | st.lists(CALL, max_size=3)},
)
NODE = st.fixed_dictionaries(
    {}, optional=dict.fromkeys(("type", "properties", "items", "anyOf", "required", "$defs"), JSON)
)
TOOL = JSON | NODE.map(lambda node: offer({**CLOSED, **node}, strict=True)["tools"][0])


@settings(deadline=None, max_examples=200)
@given(
    messages=st.lists(MESSAGE, max_size=4) | JSON,
    extra=st.fixed_dictionaries({}, optional={"tools": JSON | st.lists(TOOL, max_size=2), "tool_choice": JSON}),
)
def test_any_json_gets_a_verdict(messages, extra):
    for body in ({"messages": messages, **extra}, {"messages": [USER], **extra}):
        assert isinstance(reject(body, Rules(alternating_roles=True)), str | None)


def test_every_bad_example_is_answered_with_400_and_every_good_one_with_200():
    with OpenAIWire(lambda body: Text("ok")) as wire:
        for body in (example for group in BAD.values() for example in group if isinstance(example, dict)):
            status, answer = post(wire, json.dumps(body).encode())
            assert (status, answer["error"]["type"]) == (400, "invalid_request_error"), body
            assert answer["error"]["message"] == wire.rejections[-1] == reject(body)
        for body in GOOD:
            if not body.get("stream"):
                assert post(wire, json.dumps(body).encode())[0] == 200, body


def test_switches_reach_the_server():
    body = thread(USER, USER)
    with OpenAIWire(lambda body: Text("ok"), rules=Rules(alternating_roles=True)) as wire:
        assert post(wire, json.dumps(body).encode())[0] == 400


@pytest.mark.parametrize("payload", [b'{"messages": "\xff"}', b"{", b"[]", b"", b'{"temperature": NaN}', b"{}"])
def test_a_body_that_is_no_json_object_in_utf8_is_refused(payload):
    with OpenAIWire() as wire:
        assert post(wire, payload)[0] == 400


def test_strict_json_refuses_what_only_python_calls_json():
    assert strict_json('{"a": 1}') == {"a": 1}
    for text in ("NaN", '{"a": Infinity}', "{"):
        with pytest.raises(ValueError):
            strict_json(text)


def test_converted_messages_keep_invalid_calls_and_raw_ones():
    cut = {"name": "save", "args": '{"text": "cut', "id": "c1", "error": None}
    raw = [call("c2", "save", '{"text": "cut')]
    sent = wire_messages(
        [
            SystemMessage("Be brief."),
            HumanMessage("hi"),
            AIMessage("", invalid_tool_calls=[cut]),
            ToolMessage("no", tool_call_id="c1"),
            AIMessage("", additional_kwargs={"tool_calls": raw}),
            ToolMessage("no", tool_call_id="c2"),
        ]
    )
    assert [message["tool_calls"] for message in sent if message["role"] == "assistant"] == [
        [{"type": "function", "id": "c1", "function": raw[0]["function"]}],
        raw,
    ]
    assert "not a JSON object" in str(reject({"messages": sent}))
    assert reject({"messages": sent}, Rules(json_arguments=False)) is None

"""The scripted server against the client it is made for: what ChatOpenAI sees is what the script says."""

import asyncio
import functools
import json
import operator
import socket
import threading
import time
from pathlib import Path
from typing import Any

import openai
import pytest
from langchain_core.exceptions import ModelConnectionError, ModelInvalidRequestError, ModelRateLimitError
from langchain_core.messages import AIMessage, AIMessageChunk, HumanMessage, SystemMessage, ToolMessage
from langchain_openai import ChatOpenAI, OpenAIEmbeddings
from test_wire_rules import post
from wire import (
    Calls,
    Drop,
    Empty,
    Fault,
    Fragments,
    OpenAIWire,
    ScriptError,
    Stall,
    Text,
    call_fragment,
    reject,
    wire_messages,
)

HELLO = {"model": "test-model", "messages": [{"role": "user", "content": "hi"}]}
CHINESE = "深圳今天晴，气温 27 度 🎉。"
TWO_CALLS = Calls(("weather", {"city": "深圳 🎉"}, "w1"), ("calculator", {"expression": "2+2"}, "c1"))


def client(wire: OpenAIWire, **settings: Any) -> ChatOpenAI:
    """Return a client for the server; without certificates, whose loading takes 50 ms, unless told otherwise."""
    plain = {"http_client": openai.DefaultHttpxClient(verify=False)}
    plain |= {"http_async_client": openai.DefaultAsyncHttpxClient(verify=False)}
    given = {"model": "test-model", "base_url": wire.url, "api_key": "any", "timeout": 5, "max_retries": 0}
    return ChatOpenAI(**{**given, **plain, "use_responses_api": False, "stream_usage": True, **settings})


def streamed(wire: OpenAIWire, **settings: Any) -> AIMessageChunk:
    return functools.reduce(operator.add, client(wire, **settings).stream("hi"))


def invoked(wire: OpenAIWire, **settings: Any) -> AIMessage:
    return client(wire, **settings).invoke("hi")


def meaning(message: AIMessage) -> tuple[Any, ...]:
    return message.content, message.tool_calls, message.response_metadata["finish_reason"], message.usage_metadata


def raw_stream(wire: OpenAIWire) -> bytes:
    """Ask for a stream without any client library; return the bytes of the answer, HTTP framing included."""
    body = json.dumps({**HELLO, "stream": True}).encode()
    head = f"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Length: {len(body)}\r\n\r\n".encode()
    host, port = wire.url.split("/")[2].split(":")
    with socket.create_connection((host, int(port)), timeout=5) as connection:
        connection.sendall(head + body)
        return b"".join(iter(lambda: connection.recv(65536), b""))


@pytest.mark.parametrize("chunk_chars", [1, 3, None])
@pytest.mark.parametrize(
    "reply",
    [
        Text("hello"),
        Text(CHINESE),
        Text("a lone \ud835 surrogate"),
        Text("cut off", finish="length"),
        Text("4", reasoning="two and two"),
        Empty(),
        Empty(None),
        Calls(("now", {}, None)),
        Calls(("now", {}, "n1"), content="Let me look."),
        TWO_CALLS,
    ],
    ids=lambda reply: type(reply).__name__,
)
def test_streamed_and_not_mean_the_same(reply, chunk_chars):
    with OpenAIWire([reply, reply], chunk_chars=chunk_chars) as wire:
        heard = streamed(wire)
        assert meaning(heard) == meaning(invoked(wire))
    assert heard.content == (reply.content or "")
    assert [bool(body.get("stream")) for body in wire.chats] == [True, False]


def test_text_and_arguments_come_in_pieces_unless_told_otherwise():
    for chunk_chars, pieces in ((3, ["abc", "def", "g"]), (None, ["abcdefg"])):
        with OpenAIWire([Text("abcdefg")], chunk_chars=chunk_chars) as wire:
            assert [chunk.content for chunk in client(wire).stream("hi") if chunk.content] == pieces


def test_a_character_is_torn_between_two_writes():
    with OpenAIWire([Text(CHINESE)]) as wire:
        answer = raw_stream(wire)
    pieces = answer.partition(b"\r\n\r\n")[2].split(b"\r\n")[1::2]
    assert any(piece.decode("utf-8", "ignore").encode() != piece for piece in pieces)
    b"".join(pieces).decode("utf-8")


def test_call_ids_are_fresh_unless_given():
    with OpenAIWire([Calls(("now", {}), ("now", {})), Calls(("now", {}, "mine"))]) as wire:
        ids = [call["id"] for _ in range(2) for call in streamed(wire).tool_calls]
    assert (len(set(ids)), ids[2]) == (3, "mine")


def test_what_the_client_sends_is_what_wire_messages_foretells():
    thread = [
        SystemMessage("Be brief."),
        HumanMessage(["深圳", {"type": "text", "text": "?"}], name="Ann"),
        AIMessage([{"type": "text", "text": "hm"}], tool_calls=[{"name": "now", "args": {"tz": "深圳"}, "id": "c1"}]),
        ToolMessage([{"type": "text", "text": "10:00"}], tool_call_id="c1", name="now"),
        AIMessage("", invalid_tool_calls=[{"name": "now", "args": '{"tz', "id": "c2", "error": None}]),
        ToolMessage("no", tool_call_id="c2"),
        AIMessage("", additional_kwargs={"tool_calls": [{"id": "c3", "type": "function", "function": {}}]}),
    ]
    with OpenAIWire() as wire, pytest.raises(openai.BadRequestError):
        client(wire).invoke(thread)
    assert wire.chats[0]["messages"] == wire_messages(thread)
    assert wire.rejections == [reject(wire.chats[0])]


def test_model_key_and_path_are_checked():
    with OpenAIWire([Text("ok")], key="secret") as wire:
        right = client(wire, api_key="secret")
        assert right.invoke("hi").content == "ok"
        with pytest.raises(openai.AuthenticationError, match="Incorrect API key"):
            client(wire).invoke("hi")
        with pytest.raises(openai.NotFoundError, match="'gpt-9' does not exist"):
            client(wire, api_key="secret", model="gpt-9").invoke("hi")
        with pytest.raises(openai.NotFoundError, match="Unknown request URL: POST /v1/responses"):
            client(wire, api_key="secret", use_responses_api=True).invoke("hi")
        assert post(wire, b"{}")[0] == 401
    assert len(wire.rejections) == 4
    assert wire.requests[0].headers["authorization"] == "Bearer secret"


def test_models_are_listed():
    with OpenAIWire(models=("one", "two")) as wire, openai.OpenAI(base_url=wire.url, api_key="any") as sdk:
        assert [model.id for model in sdk.models.list()] == ["one", "two"]


def test_vectors_depend_on_the_text_alone_and_base64_equals_floats():
    with OpenAIWire(dimensions=8) as wire, openai.OpenAI(base_url=wire.url, api_key="any") as sdk:
        packed = OpenAIEmbeddings(
            model="test-embedding", base_url=wire.url, api_key="any", check_embedding_ctx_length=False
        ).embed_documents(["深圳", "tea", "深圳"])
        plain = sdk.embeddings.create(model="test-embedding", input="深圳", encoding_format="float")
        with pytest.raises(openai.BadRequestError):
            sdk.embeddings.create(model="test-embedding", input="")
    assert packed[0] == packed[2] == pytest.approx(plain.data[0].embedding)
    assert packed[0] != packed[1]
    assert sum(number * number for number in packed[0]) == pytest.approx(1)
    assert wire.requests[0].body["encoding_format"] == "base64"


def test_vectors_are_those_of_an_embedder_that_is_given():
    with (
        OpenAIWire(embed=lambda text: [float(len(text)), 1.0]) as wire,
        openai.OpenAI(base_url=wire.url, api_key="any") as sdk,
    ):
        answer = sdk.embeddings.create(model="test-embedding", input=["深圳", "tea"])
    assert [row.embedding for row in answer.data] == [[2.0, 1.0], [3.0, 1.0]]


def test_usage_can_be_missing_null_or_repeated():
    counted = {"input_tokens": 9, "output_tokens": 2, "total_tokens": 11}
    for usage, seen in (("once", 1), ("missing", None), ("null", 0), ("repeated", 5)):
        with OpenAIWire([Text("hello", usage=usage)]) as wire:
            metadata = streamed(wire).usage_metadata
        expected = None if seen is None else {key: seen * value for key, value in counted.items()}
        assert (metadata and {key: metadata[key] for key in counted}) == expected, usage
    with OpenAIWire([Text("hello")]) as wire:
        assert streamed(wire, stream_usage=False).usage_metadata is None


def test_cut_off_arguments_arrive_as_they_were_cut():
    cut = Calls(("save", '{"text": "half of a sent', "c1"), finish="length")
    with OpenAIWire([cut, cut]) as wire:
        assert invoked(wire).invalid_tool_calls[0]["args"] == '{"text": "half of a sent'
        whole = streamed(wire)
    assert whole.tool_call_chunks[0]["args"] == '{"text": "half of a sent'
    assert whole.tool_calls[0]["args"] == {"text": "half of a sent"}  # the trap: completed in silence


def test_fragments_go_out_as_they_are():
    nameless = [call_fragment('{"x":', name="ok", id="a", index=None), call_fragment("1}", name="", id="", index=None)]
    shared = [call_fragment('{"x":1}', name="ok", id="a", index=0), call_fragment("2}", index=0)]
    with OpenAIWire([Fragments(nameless), Fragments(shared), Fragments([call_fragment("1}", id="a")])]) as wire:
        assert [chunk["args"] for chunk in streamed(wire).tool_call_chunks] == ['{"x":', "1}"]
        assert streamed(wire).tool_call_chunks[0]["args"] == '{"x":1}2}'
        assert streamed(wire).tool_call_chunks[0]["index"] is None  # the client makes no difference
    with pytest.raises(ScriptError, match="streamed only"), OpenAIWire([Fragments(shared)]) as wire:
        post(wire, json.dumps(HELLO).encode())


@pytest.mark.parametrize("ask", [streamed, invoked])
def test_an_error_status_is_retried_by_the_client_as_it_would_be_in_life(ask):
    script = [Fault(status=429, retry_after=0.01), Fault(status=500, retry_after=0.01), Text("ok")]
    with OpenAIWire(script) as wire:
        assert ask(wire, max_retries=2).content == "ok"
    with OpenAIWire([Fault(status=429)]) as wire, pytest.raises(ModelRateLimitError):
        ask(wire)
    with OpenAIWire([Fault(status=400, message="Too long.")]) as wire:
        with pytest.raises(ModelInvalidRequestError, match="Too long"):
            ask(wire, max_retries=2)
        assert wire.rejections == []
    with OpenAIWire([Fault(status=502, raw="<html>")]) as wire, pytest.raises(openai.InternalServerError):
        ask(wire)


def test_an_error_in_mid_stream_comes_after_its_chunks():
    seen = []
    script = [Fault(after_chunks=3, message="Overloaded.")]
    with OpenAIWire(script) as wire, pytest.raises(openai.APIError, match="Overloaded"):
        seen.extend(chunk.content for chunk in client(wire, max_retries=2).stream("hi"))
    assert "".join(seen) == "This s"


@pytest.mark.parametrize(("ask", "chunks"), [(streamed, 0), (streamed, 3), (invoked, 0), (invoked, 3)])
def test_a_dropped_connection_is_a_connection_error(ask, chunks):
    with OpenAIWire([Drop(after_chunks=chunks)]) as wire, pytest.raises(ModelConnectionError):
        ask(wire)


def test_a_clean_drop_looks_like_the_end():
    with OpenAIWire([Drop(after_chunks=3, clean=True)]) as wire:
        whole = streamed(wire)
    assert whole.content == "This s"
    assert "finish_reason" not in whole.response_metadata


@pytest.mark.parametrize(("ask", "chunks"), [(streamed, 0), (streamed, 3), (invoked, 0)])
def test_a_stall_runs_into_the_clients_timeout_and_does_not_hold_the_exit(ask, chunks):
    began, threads = time.monotonic(), threading.enumerate()
    with OpenAIWire([Stall(60, after_chunks=chunks)]) as wire, pytest.raises(openai.APITimeoutError):
        ask(wire, timeout=0.2)
    assert time.monotonic() - began < 5
    assert set(threading.enumerate()) <= set(threads)


def test_after_a_stall_the_answer_goes_on():
    with OpenAIWire([Stall(0.05), Stall(0.05, after_chunks=3)]) as wire:
        assert [streamed(wire).content for _ in range(2)] == ["Better late than never."] * 2


async def test_async_requests_at_once_get_one_reply_each():
    with OpenAIWire([Text(str(number)) for number in range(8)]) as wire:
        model = client(wire, http_client=None, http_async_client=None)
        answers = await asyncio.gather(*(model.ainvoke("hi") for _ in range(8)))
        assert sorted(answer.content for answer in answers) == list("01234567")
    with OpenAIWire([TWO_CALLS, Drop(after_chunks=3)]) as wire:
        chunks = [chunk async for chunk in client(wire).astream("hi")]
        assert len(functools.reduce(operator.add, chunks).tool_calls) == 2
        with pytest.raises(ModelConnectionError):
            [chunk async for chunk in client(wire).astream("hi")]


def test_a_reply_may_be_a_function_of_the_body():
    def echo(body):
        return Text(body["messages"][-1]["content"].upper())

    with OpenAIWire([echo, Text("b")]) as wire:
        assert [invoked(wire).content, invoked(wire).content] == ["HI", "b"]
    with OpenAIWire(echo) as wire:
        assert [invoked(wire).content for _ in range(3)] == ["HI"] * 3


def test_a_reply_too_few_or_left_over_raises_at_the_exit():
    with pytest.raises(ScriptError, match="no reply left"), OpenAIWire() as wire:
        assert post(wire, json.dumps(HELLO).encode())[1]["error"]["code"] == "script_error"
    with pytest.raises(ScriptError, match="left over: Text"), OpenAIWire([Text("unheard")]):
        pass
    with OpenAIWire([Text("again"), Text("unheard")], exact=False) as wire:
        invoked(wire)
    with OpenAIWire([Text("again")], exact=False) as wire:
        assert [invoked(wire).content for _ in range(2)] == ["again"] * 2


def test_a_reply_that_fails_raises_at_the_exit_and_no_reply_is_taken_for_a_refused_request():
    with pytest.raises(ZeroDivisionError), OpenAIWire([lambda body: Text(1 // 0)]) as wire:
        post(wire, json.dumps(HELLO).encode())
    with pytest.raises(ScriptError, match="FileNotFound"), OpenAIWire([lambda body: Path("gone").stat()]) as wire:
        post(wire, json.dumps(HELLO).encode())
    with pytest.raises(ScriptError, match="after the end"), OpenAIWire([Drop(after_chunks=99)]) as wire:
        raw_stream(wire)
    with OpenAIWire([Text("ok")]) as wire:
        assert post(wire, b'{"model": "test-model"}')[0] == 400
        assert invoked(wire).content == "ok"


def test_the_tests_own_error_is_not_hidden_by_the_scripts():
    with pytest.raises(KeyError) as caught, OpenAIWire([Text("unheard")]):
        raise KeyError("mine")
    assert "left over" in caught.value.__notes__[0]


def test_the_server_is_on_loopback_and_gone_after_its_exit():
    with OpenAIWire() as wire:
        assert wire.url.startswith("http://127.0.0.1:")
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", int(wire.url.split(":")[2].split("/")[0])), timeout=1)

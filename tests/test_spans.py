"""OpenTelemetry spans: one for each node, model call and tool call, without a word of what was said; off by default."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import StatusCode
from terminals import Terminal
from tool_graphs import WAYS, Session, call, session

from graph.agent import open_agent
from graph.settings import BadSetting, Settings, load_settings
from graph.spans import Spans, open_spans
from memory.memories import Memories
from nodes.contract import marked

pytestmark = pytest.mark.filterwarnings("ignore:tool '")
BOTH = pytest.mark.parametrize("way", WAYS)
OTLP = {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:4318"}


@contextmanager
def watched(*steps: Any, **options: Any) -> Iterator[tuple[Session, InMemorySpanExporter]]:
    """Open a session whose spans are kept in memory."""
    kept, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(kept))
    with session(*steps, **options) as s:
        s.agent = s.agent.with_config(callbacks=[Spans(provider.get_tracer("test"))])
        yield s, kept


def tree(kept: InMemorySpanExporter) -> dict[str, list[str]]:
    """Return the names of the spans under each, sorted."""
    spans = kept.get_finished_spans()
    names = {span.context.span_id: span.name for span in spans if span.context}
    found: dict[str, list[str]] = {}
    for span in spans:
        found.setdefault(names[span.parent.span_id] if span.parent else "", []).append(span.name)
    return {parent: sorted(children) for parent, children in found.items()}


def named(kept: InMemorySpanExporter, name: str) -> list[ReadableSpan]:
    return [span for span in kept.get_finished_spans() if span.name == name]


@BOTH
def test_every_node_model_call_and_tool_call_has_a_span_in_that_of_its_turn(way):
    calls = [call("calculator", f"c{n}", expression=f"{n}+1") for n in range(4)]
    with watched([*calls, call("nothing", "c9")], "Done.", way=way) as (s, kept):
        s.turn("Add")
    found = tree(kept)
    assert found[""] == ["invoke_agent palimpsest"]
    assert found["invoke_agent palimpsest"] == sorted(["recall", "reason", *["tools"] * 5, "reason", "remember"])
    assert found["tools"] == ["execute_tool calculator"] * 4 and found["reason"] == ["chat scriptedmodel"] * 2
    for span in kept.get_finished_spans():
        assert span.start_time and span.end_time and span.start_time <= span.end_time


@BOTH
def test_spans_hold_numbers_and_names_of_ours_and_no_word_of_what_was_said(way):
    """B062."""
    marks = ["Zanzibar", "鹦鹉螺", "sk-live-4567"]
    text = " ".join(marks)

    def look_up(what: str) -> str:
        """Look up."""
        return f"{what}: {text}"

    usage: Any = {"input_tokens": 321, "output_tokens": 5, "total_tokens": 326}
    steps = [[call("look_up", what=text), call(marks[0], "c2", x=text)], AIMessage(text, usage_metadata=usage)]
    with watched(*steps, ConnectionError(text), tools=[look_up], way=way) as (s, kept):
        Memories(s.store, user=marks[0]).save(text)
        s.turn(text, user=marks[0], recall_threshold=-1.0)
        s.turn(text, user=marks[0])
    written = json.dumps([json.loads(span.to_json()) for span in kept.get_finished_spans()], ensure_ascii=False)
    assert not [mark for mark in marks if mark in written]
    reason = named(kept, "reason")[1].attributes or {}
    assert reason["palimpsest.counted"] == 321 and reason["palimpsest.stop_reason"] == "answered"
    recall = named(kept, "recall")[0].attributes or {}
    assert (recall["palimpsest.status"], recall["palimpsest.memories"]) == ("found", 1)
    gates = sorted(str((span.attributes or {})["palimpsest.gate"]) for span in named(kept, "tools"))
    assert gates == ["", "unknown_tool"]
    chat = [span.attributes or {} for span in kept.get_finished_spans() if span.name.startswith("chat")]
    assert any(one.get("gen_ai.usage.input_tokens") == 321 for one in chat)


@BOTH
def test_failures_pauses_and_calls_that_hang_are_told_as_what_they_are(way):
    release = threading.Event()

    def hang() -> str:
        """Hang."""
        release.wait(60)
        return "late"

    def boom() -> str:
        """Fail."""
        raise KeyError("secret")

    @marked(approval=True)
    def send(to: str) -> str:
        """Send."""
        return "sent"

    steps = [[call("hang"), call("boom", "c2")], "Over.", call("send", to="Ann")]
    with watched(*steps, tools=[hang, boom, send], way=way) as (s, kept):
        s.turn("Go", tool_timeout_s=0.1)
        (failed,) = named(kept, "execute_tool boom")
        assert failed.status.status_code == StatusCode.ERROR and (failed.attributes or {})["error.type"] == "KeyError"
        assert "secret" not in failed.to_json()
        assert len(named(kept, "execute_tool hang")) == 1  # it was closed with its turn
        release.set()
        s.turn("Send")
        assert (named(kept, "tools")[-1].attributes or {})["palimpsest.paused"] is True


def test_an_error_in_tracing_breaks_no_turn():
    with session("Hi.") as s:
        s.agent = s.agent.with_config(callbacks=[Spans(None)])  # type: ignore[arg-type]  # every call of it raises
        assert s.turn("Hello")["messages"][-1].text == "Hi."


@pytest.mark.parametrize(
    ("environ", "exporters"),
    [
        ({}, ()),
        ({"OTEL_SERVICE_NAME": "mine"}, ()),
        ({"OTEL_TRACES_EXPORTER": "none", **OTLP}, ()),
        ({"OTEL_SDK_DISABLED": "true", **OTLP}, ()),
        (OTLP, ("otlp_proto_http",)),
        ({"OTEL_TRACES_EXPORTER": "otlp"}, ("otlp_proto_http",)),
        (
            {"OTEL_TRACES_EXPORTER": "otlp, console", "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"},
            ("otlp_proto_grpc", "console"),
        ),
        ({"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://x"}, ("otlp_proto_http",)),
    ],
)
def test_only_the_standard_variables_switch_spans_on(environ: dict[str, str], exporters: tuple[str, ...]):
    assert load_settings(environ, env_file=None).spans == exporters


def test_nothing_watches_by_default(settings: Settings):
    with open_agent(settings) as agent:
        assert not (agent.config or {}).get("callbacks")


def test_an_exporter_that_is_not_there_is_a_usage_error():
    with pytest.raises(BadSetting, match=r"'jaeger'; installed are .*otlp_proto_http"), open_spans(["jaeger"]):
        pass


class Collector(BaseHTTPRequestHandler):
    """Takes what an exporter sends."""

    got: list[tuple[str, bytes]]

    def do_POST(self) -> None:
        """Keep it."""
        self.got.append((self.path, self.rfile.read(int(self.headers["content-length"]))))
        self.send_response(200)
        self.end_headers()

    def log_message(self, *parts: Any) -> None:
        """Say nothing."""


def test_a_collector_that_the_environment_names_gets_the_spans_before_the_program_ends(tmp_path: Path):
    Collector.got = []
    with HTTPServer(("127.0.0.1", 0), Collector) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        env = {"OTEL_EXPORTER_OTLP_ENDPOINT": f"http://127.0.0.1:{server.server_port}", "OTEL_SERVICE_NAME": "desk"}
        code, out, err = Terminal(tmp_path).run("ask", "My parrot is called Nautilus.", **env)
        server.shutdown()
    assert code == 0 and "Nautilus" in out and err == ""
    assert {path for path, _ in Collector.got} == {"/v1/traces"}
    sent = b"".join(body for _, body in Collector.got)
    assert b"desk" in sent and b"execute_tool memory_save" in sent and b"Nautilus" not in sent


def test_the_consoles_spans_leave_standard_output_alone(tmp_path: Path):
    code, out, err = Terminal(tmp_path).run("ask", "2+2?", OTEL_TRACES_EXPORTER="console")
    assert code == 0 and out.endswith("2+2 = 4\n") and "invoke_agent" not in out
    assert '"name": "invoke_agent palimpsest"' in err and '"service.name": "palimpsest"' in err

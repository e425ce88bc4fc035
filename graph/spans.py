"""OpenTelemetry spans: one for a turn, one for each node, model call and tool call in it, with names and numbers alone.

No question, answer, argument, result or memory is in a span, and nothing is sent anywhere unless the environment names
an exporter (graph/settings.py). With a provider of your own: `agent.invoke(…, {"callbacks": [Spans(tracer)]})`.
"""

import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib.metadata import entry_points, version
from typing import Any
from uuid import UUID

from langchain_core.callbacks import BaseCallbackHandler
from langgraph.errors import GraphBubbleUp
from opentelemetry.sdk.resources import SERVICE_NAME, Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, ConsoleSpanExporter, SpanExporter
from opentelemetry.trace import Span, StatusCode, Tracer, set_span_in_context

from graph.settings import BadSetting

TOLD = {"status", "stop_reason", "gate", "kind", "tool", "report"}
"""Texts of a step's detail that are ours and go into its span; of everything else only how much there was."""


class Spans(BaseCallbackHandler):
    """Opens and closes spans as LangGraph and LangChain tell of runs within runs. An error in it breaks no turn."""

    run_inline = True

    def __init__(self, tracer: Tracer) -> None:
        self.tracer = tracer
        self.open: dict[UUID, tuple[Span, UUID]] = {}

    def begin(self, name: str, run: UUID, parent: UUID | None, **attributes: Any) -> None:
        """Open a span under that of its parent, else under what is current: the caller's own."""
        above = self.open.get(parent) if parent else None
        context = set_span_in_context(above[0]) if above else None
        span = self.tracer.start_span(name, context, attributes=attributes)
        self.open[run] = (span, above[1] if above else run)

    def end(self, run: UUID, attributes: Mapping[str, Any] | None = None, error: BaseException | None = None) -> None:
        """Close a span, and with the one of a turn all that a run left open."""
        if run not in self.open:
            return
        span, root = self.open.pop(run)
        span.set_attributes(dict(attributes or {}))
        if isinstance(error, GraphBubbleUp):
            span.set_attribute("palimpsest.paused", True)
        elif error is not None:
            span.set_attribute("error.type", type(error).__name__)
            span.set_status(StatusCode.ERROR)
        span.end()
        for left in [one for one, (_, turn) in self.open.items() if turn == run and root == run]:
            self.end(left)

    def on_chain_start(self, serialized: Any, inputs: Any, *, run_id: UUID, **told: Any) -> None:
        """Open the span of a turn or a node."""
        parent, metadata = told.get("parent_run_id"), told.get("metadata") or {}
        name = str(told.get("name"))
        if parent is None:
            thread = str(metadata.get("thread_id", ""))
            self.begin(f"invoke_agent {name}", run_id, None, **{"gen_ai.conversation.id": thread})
        elif metadata.get("langgraph_node") == name and "graph:step" in str(told.get("tags")) and name != "__start__":
            self.begin(name, run_id, parent, **{"palimpsest.node": name})

    def on_chain_end(self, outputs: Any, *, run_id: UUID, **told: Any) -> None:
        """Close it with what the step, or of a turn its end, tells."""
        is_turn = run_id in self.open and self.open[run_id][1] == run_id
        stop = outputs.get("stop_reason") if isinstance(outputs, dict) else None
        self.end(run_id, {"palimpsest.stop_reason": str(stop or "")} if is_turn else attributes_of(outputs))

    def failed(self, error: BaseException, *, run_id: UUID, **told: Any) -> None:
        """Close a span as failed, or as one that waits for a person."""
        self.end(run_id, error=error)

    on_chain_error = on_tool_error = on_llm_error = failed

    def on_tool_start(self, serialized: Any, input_str: str, *, run_id: UUID, **told: Any) -> None:
        """Open the span of an attempt of a tool."""
        name = str(told.get("name") or (serialized or {}).get("name"))
        self.begin(f"execute_tool {name}", run_id, told.get("parent_run_id"), **{"gen_ai.tool.name": name})

    def on_tool_end(self, output: Any, *, run_id: UUID, **told: Any) -> None:
        """Close it."""
        self.end(run_id)

    def on_chat_model_start(self, serialized: Any, messages: Any, *, run_id: UUID, **told: Any) -> None:
        """Open the span of a call of a model."""
        metadata = told.get("metadata") or {}
        name = str(metadata.get("ls_model_name") or metadata.get("ls_provider") or "model")
        self.begin(f"chat {name}", run_id, told.get("parent_run_id"), **{"gen_ai.request.model": name})

    def on_llm_end(self, response: Any, *, run_id: UUID, **told: Any) -> None:
        """Close it with the tokens that the provider counted."""
        message = getattr(response.generations[0][0], "message", None)
        usage = getattr(message, "usage_metadata", None) or {}
        counted = {f"gen_ai.usage.{name}": usage.get(name) for name in ("input_tokens", "output_tokens")}
        self.end(run_id, {name: number for name, number in counted.items() if number})


def attributes_of(outputs: Any) -> dict[str, Any]:
    """Return what a node's update tells of its step, without any text of a person or a model."""
    updates = outputs if isinstance(outputs, list) else [outputs]
    steps = [step for one in updates if isinstance(one, dict) for step in one.get("steps") or ()]
    if not steps:
        return {}
    detail = dict(steps[-1]["detail"])
    (call,) = detail.pop("calls", [])[:1] or [{}]
    if isinstance(call, dict):
        detail |= {key: value for key, value in call.items() if key != "tool" or call.get("gate") != "unknown_tool"}
    return {f"palimpsest.{key}": told for key, value in detail.items() if (told := measure(key, value)) is not None}


def measure(key: str, value: Any) -> Any:
    """Return a number, a word of our own, or how many there are; None for what says more."""
    if isinstance(value, bool | int | float):
        return value
    if isinstance(value, list):
        return len(value)
    return value if key in TOLD else None


@contextmanager
def open_spans(exporters: Sequence[str]) -> Iterator[list[BaseCallbackHandler]]:
    """Open exporters by their standard names and yield what makes spans for them; send what is left at the end.

    Where they send to, and as what service, the standard OTEL_* variables say. Raises BadSetting.
    """
    made = Resource.create()
    if str(made.attributes.get(SERVICE_NAME, "")).startswith("unknown_service"):
        made = made.merge(Resource({SERVICE_NAME: "palimpsest"}))
    provider = TracerProvider(resource=made)
    for name in exporters:
        provider.add_span_processor(BatchSpanProcessor(exporter(name)))
    try:
        yield [Spans(provider.get_tracer("palimpsest", version("palimpsest")))]
    finally:
        provider.shutdown()


def exporter(name: str) -> SpanExporter:
    """Make an exporter. The console's writes to standard error: standard output is for answers."""
    if name == "console":
        return ConsoleSpanExporter(out=sys.stderr)
    known = {one.name: one for one in entry_points(group="opentelemetry_traces_exporter")}
    if name not in known:
        raise BadSetting(f"OTEL_TRACES_EXPORTER names {name!r}; installed are {', '.join(sorted(known))}, or none")
    made: SpanExporter = known[name].load()()
    return made

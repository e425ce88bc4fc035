"""What a turn tells of itself: one `Step` for each node that ran, with a documented detail for each kind of node.

The steps stand in the state's `steps`, so in every checkpoint, and `stream_mode="custom"` yields them as they happen: a
`Began` when a node starts, an `Ended` with the step when it is done. Nothing here is sent anywhere or logged.
"""

import time
from collections.abc import Mapping
from typing import Any, Literal, NotRequired, cast

from langgraph.config import get_stream_writer
from typing_extensions import TypedDict  # pydantic, and so Studio, cannot read typing's before 3.12

from memory.text import clean_all
from nodes.quoting import as_json

SHOWN_CHARS = 500
"""Of a question and of a call's arguments; the whole stands in `messages`."""


class RecalledMemory(TypedDict):
    """One memory that recall brought up: `score` is the cosine to the question, `at` ISO-8601 in UTC.

    `origin` is empty for what the user said, else a team and one of its users, a tool, or an earlier conversation.
    """

    id: str
    text: str
    at: str
    score: float | None
    why: str
    origin: str


class CitedPassage(TypedDict):
    """A passage of a document and its place; `number` is the one to cite it by in this turn."""

    number: int
    source: str
    heading: str
    position: str
    score: float | None


class RecalledPassage(CitedPassage):
    """A passage as the model reads it."""

    text: str


class RecallDetail(TypedDict):
    """What was looked for and found; `status` is "off" if nothing was searched, `error` says why a search failed.

    `trigger` is what in the question refers to earlier conversations and forced a search; empty if nothing does.
    """

    query: str
    trigger: str
    status: Literal["found", "nothing", "failed", "off"]
    memories: list[RecalledMemory]
    facts: int
    passages: list[CitedPassage]
    error: str


class ReasonDetail(TypedDict):
    """One question to the model, the turn's `number`-th.

    `sent` messages of `tokens` by our estimate, `counted` by the provider (0 if it did not say), with `tools` mounted;
    `page_tokens` is what the whole page would need. `changes` says what was repaired, shortened or left out in between.
    `objection` is what the first answer was sent back with, "broken_off" if it was just asked for again; `calls` names
    the tools called, `cited` the passages of documents that the answer names. `stop_reason` is empty while the turn
    goes on, `why` says what went wrong.
    """

    number: int
    sent: int
    tokens: int
    counted: int
    page_tokens: int
    tools: int
    changes: list[str]
    objection: str
    calls: list[str]
    cited: list[CitedPassage]
    stop_reason: str
    why: str


class Call(TypedDict):
    """A call as the model made it; `args` are the first characters of their JSON."""

    id: str
    tool: str
    args: str


class CallDetail(TypedDict):
    """What became of a call: which `gate` refused it, or what `kind` of error it ended in after how many `attempts`.

    `chars` is the size of the result that the model gets, `report` what the log knows an internal error by.
    """

    id: str
    tool: str
    args: str
    ok: bool
    gate: str
    kind: str
    attempts: int
    ms: int
    chars: int
    report: str


class ToolsDetail(TypedDict):
    """The calls of this task of the graph: one, or those that a tool's own command to the graph brought results of."""

    calls: list[CallDetail]


class RememberDetail(TypedDict, total=False):
    """What was kept: how many messages were `filed`, which statements and facts extraction found that were new.

    `blocks` is what the turn's edits made of core memory, each as fill and version.
    `failed` says what could not be kept and is due again, `why` why nothing was to do. At the end of a conversation
    `closed` tells whether its `abstract` could be written.
    """

    filed: int
    memories: list[str]
    facts: list[str]
    blocks: list[str]
    failed: str
    why: str
    closed: bool
    abstract: str


class SummarizeDetail(TypedDict):
    """What left the page, by ids, and what the `summary` became of it in so many `parts`; `why` if nothing could."""

    removed: int
    ids: list[str]
    parts: int
    summary: str
    why: str


class RecallStep(TypedDict):
    """A step of recall."""

    node: Literal["recall"]
    ms: int
    detail: RecallDetail


class ReasonStep(TypedDict):
    """A step of reason."""

    node: Literal["reason"]
    ms: int
    detail: ReasonDetail


class ToolsStep(TypedDict):
    """A step of tools."""

    node: Literal["tools"]
    ms: int
    detail: ToolsDetail


class RememberStep(TypedDict):
    """A step of remember."""

    node: Literal["remember"]
    ms: int
    detail: RememberDetail


class SummarizeStep(TypedDict):
    """A step of summarize."""

    node: Literal["summarize"]
    ms: int
    detail: SummarizeDetail


Step = RecallStep | ReasonStep | ToolsStep | RememberStep | SummarizeStep
"""One step of a turn; `node` tells which. `ms` are its milliseconds."""

Detail = RecallDetail | ReasonDetail | ToolsDetail | RememberDetail | SummarizeDetail


class Began(TypedDict):
    """A node has started; the tools node with its call."""

    trace: Literal["began"]
    node: str
    call: NotRequired[Call]


class Ended(TypedDict):
    """A node is done."""

    trace: Literal["ended"]
    step: Step


class Watch:
    """Measures one node's step with a monotonic clock, and tells the stream of its start and its end."""

    def __init__(self, node: str, call: Call | None = None) -> None:
        self.node, self.start = node, time.monotonic()
        began = Began(trace="began", node=node)
        get_stream_writer()(began if call is None else {**began, "call": call})

    def step(self, detail: Detail) -> list[Step]:
        """Return the step as a state update: the node, its milliseconds so far, and what it tells."""
        ms = round((time.monotonic() - self.start) * 1000)
        step = cast(Step, {"node": self.node, "ms": ms, "detail": clean_all(detail)})
        get_stream_writer()(Ended(trace="ended", step=step))
        return [step]


def call_told(call: Mapping[str, Any]) -> Call:
    """Write a call, valid or not, as the trace shows it."""
    args = call["args"] if isinstance(call["args"], str) else as_json(call["args"])
    return Call(id=str(call["id"] or ""), tool=str(call["name"] or ""), args=args[:SHOWN_CHARS])

"""summarize: cut the page at a safe place and write what leaves it into the running summary.

It removes nothing that the transcript does not hold, and nothing if the summary failed: the next turn tries again.
"""

import re
from collections.abc import Sequence
from typing import Literal

from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, RemoveMessage, SystemMessage
from langgraph.runtime import Runtime

from nodes import prompts
from nodes.calls import Failure, Plan, Request
from nodes.context import Context, context_of
from nodes.cut import safe_cut
from nodes.extract import THINKING
from nodes.remember import unfiled
from nodes.state import State
from nodes.text import text_of
from nodes.trace import Watch
from nodes.valid import as_json

HEADINGS = tuple(line for line in prompts.SUMMARIZE.split("\n") if line.startswith("## "))
SHORTEST_PROSE = 40
ERROR = re.compile(r"\W*(?:(?:error|exception|traceback|http \d{3})\b|错误|出错)", re.IGNORECASE)


def summarize(state: State, runtime: Runtime[Context]) -> Plan:
    """Replace `summary` and remove what it covers from `messages`; change neither if it cannot be done safely."""
    watch, context = Watch("summarize"), context_of(runtime)
    leaving = state["messages"][: safe_cut(state["messages"], keep=context.max_messages // 2)]
    if not leaving:
        return {"steps": watch.step(removed=0, why="no safe place to cut")}
    if runtime.store is None or (missing := unfiled(leaving, runtime)):
        return {
            "steps": watch.step(
                removed=0, why="not all of it is in the transcript", missing=missing if runtime.store else []
            )
        }
    messages = [SystemMessage(prompts.SUMMARIZE), HumanMessage(material(state.get("summary", ""), leaving))]
    reply = yield Request(model=context.model, messages=messages, stream=False, quiet=True)
    if isinstance(reply, Failure):
        return {"steps": watch.step(removed=0, why=reply.reason)}
    summary = THINKING.sub("", text_of(reply)).strip()
    if not is_summary(summary):
        return {
            "steps": watch.step(removed=0, why="the model's answer is no summary: it is too short or an error message")
        }
    removals = [RemoveMessage(id=str(message.id)) for message in leaving]
    return {
        "summary": summary,
        "messages": removals,
        "steps": watch.step(removed=len(removals), chars=len(summary)),
    }


def material(summary: str, leaving: Sequence[AnyMessage]) -> str:
    """Write the previous summary and what leaves the page, visible text and calls, as JSON lines."""
    lines: list[dict[str, object]] = [{"previous_summary": summary}]
    for message in leaving:
        lines.append({"id": message.id, "role": message.type, "text": text_of(message)})
        calls = message.tool_calls if isinstance(message, AIMessage) else []
        lines += [
            {"id": message.id, "role": "call", "text": f"{call['name']} {as_json(call['args'])}"} for call in calls
        ]
    return "\n".join(map(as_json, lines))


def is_summary(text: str) -> bool:
    """Whether a text can be the summary: sections that hold something, or prose; no fragment, no error message."""
    said = "\n".join(line for line in text.split("\n") if not line.startswith("#")).strip(" \n-*")
    has_sections = any(heading in text for heading in HEADINGS)
    return bool(said) and (has_sections or (len(said) >= SHORTEST_PROSE and not ERROR.match(said)))


def next_after_remember(state: State, runtime: Runtime[Context]) -> Literal["page too long", "page fits"]:
    """Cut the page if it holds more messages than it should."""
    return "page too long" if len(state["messages"]) > context_of(runtime).max_messages else "page fits"

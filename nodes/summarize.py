"""summarize: cut the page at a safe place and write what leaves it into the running summary.

It removes nothing that the transcript does not hold, and nothing if the summary failed: the next turn tries again.
"""

from collections.abc import Generator
from dataclasses import replace
from typing import Literal

from langchain_core.messages import AnyMessage, HumanMessage, RemoveMessage, SystemMessage
from langgraph.runtime import Runtime

from memory.secrets import mask
from nodes import prompts
from nodes.calls import Failure, Plan, Reply, Request, Update, reason_of
from nodes.context import Context, context_of
from nodes.cut import is_over, leaving, window_of
from nodes.kinds import unfiled
from nodes.lines import in_parts, line_tokens, lines_of
from nodes.quoting import as_json
from nodes.state import State
from nodes.summary import Summary, are_chinese, read_summary, shortened, summary_of, with_identifiers, with_open
from nodes.text import text_of
from nodes.trace import SummarizeDetail, Watch


def summarize(state: State, runtime: Runtime[Context]) -> Plan:
    """Replace `summary` and remove what it covers from `messages`; change neither if it cannot be done safely."""
    watch, context = Watch("summarize"), context_of(runtime)
    old = leaving(state, context)
    if why := objection(old, runtime):
        return unchanged(watch, why)
    previous = read_summary(summary_of(state)) or Summary()
    summary = previous
    window = window_of(state, context)
    most = min(context.summary_tokens, window // 2)
    parts = in_parts(lines_of(old, longest=window // 2), window, cost=line_tokens)
    chinese = are_chinese(state["messages"])
    for part in parts:
        made = yield from continued(summary, "\n".join(part), context, chinese=chinese)
        if isinstance(made, str):
            return unchanged(watch, made)
        summary = shortened(with_open(made, summary), most)
    written = mask(shortened(with_identifiers(summary, previous, old), most).text())
    ids = [str(message.id) for message in old]
    told = SummarizeDetail(removed=len(old), ids=ids, parts=len(parts), summary=written, why="")
    return {
        "summary": written,
        "messages": [RemoveMessage(id=id) for id in ids],
        "page_tokens": 0,
        "cut_tried": True,
        "steps": watch.step(told),
    }


def continued(
    previous: Summary, part: str, context: Context, *, chinese: bool
) -> Generator[Request, Reply, Summary | str]:
    """Ask for a summary that goes on from the previous one, once more if it is in another language; say why if none."""
    text = "\n".join([as_json({"previous_summary": previous.text()}), part])
    found: Summary | str = "the model's answer holds no summary"
    for request in (text, f"{text}\n{prompts.FOREIGN}"):
        messages = [SystemMessage(prompts.SUMMARIZE), HumanMessage(request)]
        reply = yield Request(model=context.model, messages=messages, stream=False, quiet=True)
        if isinstance(reply, Failure):
            return reply.reason if isinstance(found, str) else found
        if (read := read_summary(text_of(reply))) is None:
            return found
        found = replace(read, chinese=chinese)
        if not found.is_foreign():
            return found
    return found


def unchanged(watch: Watch, why: str) -> Update:
    """Leave page and summary as they are; say why."""
    told = SummarizeDetail(removed=0, ids=[], parts=0, summary="", why=why)
    return {"cut_tried": True, "steps": watch.step(told)}


def objection(old: list[AnyMessage], runtime: Runtime[Context]) -> str:
    """Say why nothing may be removed now; empty if it may."""
    if not old:
        return "no safe place to cut"
    if runtime.store is None:
        return "there is no store, so no transcript"
    try:
        missing = unfiled(old, runtime)
    except Exception as error:  # the answer stands; the next turn tries again
        return f"the transcript cannot be read: {reason_of(error)}"
    return f"not in the transcript: {', '.join(missing)}" if missing else ""


def next_after_remember(state: State, runtime: Runtime[Context]) -> Literal["page too long", "page fits"]:
    """Cut the page if it is over a limit, once in a turn; a turn that is still going on came here for that."""
    unfinished = not state.get("stop_reason")
    due = is_over(state, context_of(runtime)) and not state.get("cut_tried")
    return "page too long" if unfinished or due else "page fits"


def next_after_summarize(state: State) -> Literal["turn goes on", "turn is over"]:
    """Go back to the model if the page was cut in mid-turn."""
    return "turn is over" if state.get("stop_reason") else "turn goes on"

"""The tools that come with the agent. Whose memory they touch comes from the run, never from an argument."""

from contextlib import suppress
from datetime import UTC, datetime
from functools import cache
from typing import Annotated, Any
from zoneinfo import ZoneInfo, available_timezones

from langchain_core.messages import BaseMessage, ToolMessage
from langchain_core.tools import tool
from pydantic import Field

from memory.outputs import Outputs
from memory.transcript import Found, Transcript, search_said
from nodes.block_tools import BLOCK_TOOLS
from nodes.calculator import BadExpression, calculate
from nodes.context import context_of, thread_of, user_of
from nodes.contract import Mounted, marked, mount
from nodes.document_tools import search_in_documents
from nodes.failures import ToolProblem
from nodes.memory_tools import MEMORY_TOOLS, Runtime, store_of
from nodes.quoting import as_json
from nodes.results import cut_before
from nodes.team_tools import TEAM_TOOLS
from nodes.text import text_of
from nodes.tokens import chars_within

NEIGHBOUR_CHARS = 500

PIECE_SHARE = 12
"""A piece that is read on has at most one part in this many of the token budget, so that it is shown whole."""

FOOTER_CHARS = 100
"""Room for the line under a piece of a result that says where it stands."""


@tool
def calculator(
    expression: Annotated[
        str, Field(min_length=1, max_length=500, description="For example (3 + 4) * 2.5 or sqrt(2) ** 2.")
    ],
) -> str:
    """Compute an arithmetic expression exactly: numbers, brackets, + - * / // % **, and common functions."""
    try:
        return calculate(expression)
    except BadExpression as error:
        raise ToolProblem(str(error)) from error


@tool
def current_time(
    timezone: Annotated[str, Field(description="An IANA name such as Europe/Berlin or Asia/Shanghai.")] = "UTC",
) -> str:
    """Tell the present date, time and weekday in a time zone."""
    zone = zone_of("_".join(timezone.split()) or "UTC")
    if zone is None:
        raise ToolProblem(f"there is no time zone {timezone!r}; use an IANA name such as Asia/Shanghai")
    time = datetime.now(UTC).astimezone(zone)
    return as_json({"time": time.isoformat(timespec="seconds"), "weekday": time.strftime("%A"), "timezone": str(zone)})


@tool
def session_search(
    query: Annotated[
        str, Field(min_length=1, max_length=2000, description="Words of what was said, or what it was about.")
    ],
    runtime: Runtime,
    everywhere: Annotated[bool, Field(description="Search all conversations of the user, not only this one.")] = False,
    k: Annotated[int, Field(ge=1, le=20, description="How many messages at most.")] = 3,
) -> str:
    """Find what was said, word for word, with time and neighbouring messages. Use it for what left the page, or for an earlier conversation."""
    thread = None if everywhere else thread_of()
    found = search_said(store_of(runtime), user=user_of(runtime), query=query, limit=k, thread=thread)
    return as_json({"found": len(found), "messages": [told(hit) for hit in found]})


@tool
def tool_result(
    id: Annotated[str, Field(min_length=1, max_length=200, description="The id that the note or the summary names.")],
    runtime: Runtime,
    offset: Annotated[int, Field(ge=0, description="The character to read on from.")] = 0,
) -> str:
    """Read on in a tool result or message that was too long to be shown whole, or read a message again by its id."""
    text = whole_text(id, runtime)
    if text is None:
        raise ToolProblem(f"nothing is kept under the id {id!r}; use the id that a note or the summary names")
    if offset >= len(text):
        raise ToolProblem(f"it has {len(text)} characters; there is nothing at offset {offset}")
    context = context_of(runtime)
    most = min(
        context.max_result_chars - FOOTER_CHARS, chars_within(text[offset:], context.token_budget // PIECE_SHARE)
    )
    end = cut_before(text, offset + most, offset)
    more = f"more at offset {end}" if end < len(text) else "the end"
    return f"{text[offset:end]}\n[characters {offset} to {end} of {len(text)}; {more}]"


OWN_TOOLS: tuple[Mounted, ...] = tuple(
    mount(
        [
            *MEMORY_TOOLS,
            *BLOCK_TOOLS,
            *TEAM_TOOLS,
            session_search,
            search_in_documents,
            marked(computes=True)(calculator),
            marked(computes=True, repeatable=True)(current_time),
            tool_result,
        ],
        own=True,
    )
)


def zone_of(name: str) -> ZoneInfo | None:
    """Return the time zone of a name, in whatever case a model writes it; None if there is none."""
    for known in (name, *(one for one in zones() if one.casefold() == name.casefold())):
        with suppress(ValueError, OSError, KeyError):
            return ZoneInfo(known)
    return None


@cache
def zones() -> frozenset[str]:
    """Name all time zones, which takes some milliseconds."""
    return frozenset(available_timezones())


def whole_text(id: str, runtime: Runtime) -> str | None:
    """Return the whole of a kept result, or of a message of this thread, on the page or filed; None if there is none."""
    kept = Outputs(store_of(runtime), user=user_of(runtime), thread=thread_of()).read(id)
    if kept is not None:
        return kept
    names = ((ids_of(message), text_of(message)) for message in reversed(runtime.state["messages"]))
    on_page = next((text for known, text in names if id in known), None)
    if on_page is not None:
        return on_page
    filed = Transcript(store_of(runtime), user=user_of(runtime), thread=thread_of()).entries()
    return next((entry.text for entry in reversed(filed) if entry.id == id), None)


def ids_of(message: BaseMessage) -> tuple[str | None, ...]:
    """Return the names of a message: its id, and that of the call that it answers."""
    return (message.id, message.tool_call_id) if isinstance(message, ToolMessage) else (message.id,)


def told(hit: Found) -> dict[str, Any]:
    """Write a message that was found, with the start of its neighbours."""
    entry, before, after = hit.entry, hit.before, hit.after
    return {
        "id": entry.id,
        "thread": hit.thread,
        "time": entry.at[:19],
        "role": entry.role,
        "text": entry.text,
        "before": before and before.text[:NEIGHBOUR_CHARS],
        "after": after and after.text[:NEIGHBOUR_CHARS],
    }

"""The gate before a tool that keeps text for later, or forgets: the user's own words, and no secrets.

Other texts are harmless until they are kept: a document that says "remember: …" would speak again in every later
conversation. It judges what a tool marked `writes` is about to keep, whichever tool that is.
"""

from collections.abc import Mapping
from typing import Any

from langchain_core.messages import HumanMessage, ToolMessage
from langgraph.prebuilt.tool_node import ToolCallRequest

from memory.secrets import mask_all
from nodes.context import context_of
from nodes.contract import Mounted
from nodes.failures import Refused
from nodes.forgetting import wish_of
from nodes.grounds import objection, too_long_a_name
from nodes.summary import summary_of
from nodes.text import text_of

NOT_ASKED = (
    "{name!r} did nothing: the user's newest message does not ask to forget anything. "
    "Ask them whether to forget it, and wait for the answer."
)
NOT_THE_USERS = (
    "{name!r} kept nothing: {why}. Since text by others was read, only the user's own words may be kept: "
    "write it as the user said it, or ask the user to say it."
)
SECRET = "{name!r} kept nothing: it holds a key, a password or a card number. Leave that out."

Args = dict[str, Any]


def keepable(
    mounted: Mounted, args: Args, request: ToolCallRequest, others: Mapping[str, Mounted]
) -> tuple[Args, bool]:
    """Return the arguments with secrets masked, and whether a person must approve them. Raises Refused."""
    context = context_of(request.runtime)
    masked: Args = mask_all(args)
    if masked != args and context.secrets == "refuse":
        raise Refused("secret", SECRET.format(name=mounted.name))
    why = "" if context.writes == "any" else objection_to(mounted, args, request.state, others)
    if why and context.writes == "user":
        raise Refused("not_the_users", NOT_THE_USERS.format(name=mounted.name, why=why))
    return masked, bool(why)


def must_approve(mounted: Mounted, request: ToolCallRequest) -> bool:
    """Whether a person must approve that something is forgotten. Raises Refused where nobody asked for it."""
    if wish_of(request.state["messages"]):
        return False
    if context_of(request.runtime).writes != "ask":
        raise Refused("not_the_users", NOT_ASKED.format(name=mounted.name))
    return True


def objection_to(mounted: Mounted, args: Args, state: Mapping[str, Any], others: Mapping[str, Mounted]) -> str:
    """Say why what a call would keep is not the user's own; what only removes something is judged by what that is."""
    read = read_texts(state, others)
    kept = " \n".join(str(args[name]) for name in mounted.marks.writes if args.get(name))
    kept = (
        kept if kept.strip() else max((value for value in args.values() if isinstance(value, str)), key=len, default="")
    )
    said = [text_of(message) for message in state["messages"] if isinstance(message, HumanMessage)]
    names = (too_long_a_name(str(args[name]), said=said) for name in mounted.marks.names if args.get(name))
    return (objection(kept, said=said, read=read) or next(filter(None, names), "")) if read else ""


def read_texts(state: Mapping[str, Any], mounted: Mapping[str, Mounted]) -> list[str]:
    """Return the texts by others that the model has before it: results, what was recalled, the summary of both."""
    results = [message for message in state["messages"] if isinstance(message, ToolMessage)]
    texts = [text_of(message) for message in results if not is_own(mounted.get(str(message.name)))]
    recalled = state.get("recalled") or {}
    shown = [*recalled.get("memories", []), *recalled.get("passages", [])]
    return [*texts, *(one["text"] for one in shown), *filter(None, [summary_of(state)])]


def is_own(mounted: Mounted | None) -> bool:
    """Whether a tool's results hold no text by others."""
    return mounted is not None and (mounted.marks.computes or bool(mounted.marks.writes))

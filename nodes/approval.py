"""Asking a person before a tool runs, by LangGraph's `interrupt`."""

from typing import Any

from langgraph.types import interrupt

from memory.text import clean_all
from nodes.arguments import BadArguments, checked
from nodes.contract import Mounted
from nodes.failures import REFUSED, Refused

YES = {
    "approve",
    "approved",
    "accept",
    "accepted",
    "allow",
    "yes",
    "y",
    "ok",
    "同意",
    "批准",
    "允许",
    "可以",
    "是",
    "好",
}
NO = {
    "refuse",
    "refused",
    "reject",
    "rejected",
    "ignore",
    "deny",
    "no",
    "n",
    "",
    "拒绝",
    "不同意",
    "不允许",
    "不",
    "否",
}
EDIT = {"edit", "修改"}
NAMES = ("decision", "type", "action")
"""Under which an answer says what it is: ours, that of LangChain's middleware and inbox, and what people guess."""

UNCLEAR = (
    'answer with {"decision": "approve"}, {"decision": "edit", "args": {…}} or {"decision": "refuse", "reason": "…"}'
)
NO_REASON = "no reason was given"
ANSWERS = ["approve", "edit", "refuse"]


def approved(mounted: Mounted, args: dict[str, Any], *, text: str = "") -> dict[str, Any]:
    """Pause until a person decides; return the arguments to run with. Raises Refused with the person's reason.

    The run ends with an interrupt that shows tool, arguments and the `text` that they stand for. Resume it with `True`,
    "approve" or `{"decision": "approve"}`; `{"decision": "edit", "args": {…}}`; or `{"decision": "refuse", "reason":
    "…"}`, False, or any other text, which is the reason. LangChain's forms of an answer are read as well. What is no
    answer, and an edit that does not fit, is asked for again, and says why under `problem`.
    """
    shown = {"tool": mounted.name, "args": clean_all(args), "about": mounted.tool.description, "answers": ANSWERS}
    shown |= {"text": clean_all(text)} if text else {}
    while True:
        said = interrupt(shown)
        answer = the_one(said)
        decision = next((answer[name] for name in NAMES if name in answer), UNCLEAR)
        word = decision.strip(" .!。！").casefold() if isinstance(decision, str) else str(decision)
        if decision is True or word in YES:
            return args
        if decision is UNCLEAR:
            shown = {**shown, "problem": UNCLEAR}
            continue
        if word not in EDIT:
            given = answer.get("reason") or answer.get("message") or answer.get("args")
            reason = "" if not decision or word in NO or isinstance(given, str) else str(decision)
            told = str(given or reason or NO_REASON)
            raise Refused("refused", REFUSED.format(name=mounted.name, reason=told))
        try:
            return checked(edited(answer), mounted.parameters, mounted.judge)
        except BadArguments as error:
            shown = {**shown, "problem": str(error)}


def the_one(said: Any) -> dict[str, Any]:
    """Return an answer as a dictionary; LangChain's middleware and its inbox give a list of one."""
    if isinstance(said, dict) and said.keys() == {"decisions"}:
        said = said["decisions"]
    if isinstance(said, list) and len(said) == 1 and isinstance(said[0], dict):
        said = said[0]
    return said if isinstance(said, dict) else {"decision": said}


def edited(answer: dict[str, Any]) -> dict[str, Any]:
    """Return the arguments of an edit. Raises BadArguments if there are none."""
    args = answer.get("args", answer.get("edited_action"))
    if isinstance(args, dict) and args.keys() in ({"name", "args"}, {"action", "args"}):
        args = args["args"]
    if not isinstance(args, dict):
        raise BadArguments("an edit needs the arguments: {'decision': 'edit', 'args': {…}}.")
    return args

"""Asking a person before a tool runs, by LangGraph's `interrupt`."""

from typing import Any

from langgraph.types import interrupt

from memory.text import clean_all
from nodes.arguments import BadArguments, checked
from nodes.contract import Mounted
from nodes.failures import REFUSED, Refused

YES = {"approve", "approved", "yes", "y", "ok"}
NO = {"refuse", "refused", "reject", "no", "n", ""}
NO_REASON = "no reason was given"
ANSWERS = ["approve", "edit", "refuse"]


def approved(mounted: Mounted, args: dict[str, Any], *, text: str = "") -> dict[str, Any]:
    """Pause until a person decides; return the arguments to run with. Raises Refused with the person's reason.

    The run ends with an interrupt that shows tool, arguments and the `text` that they stand for. Resume it with `True`,
    "approve" or `{"decision": "approve"}`; `{"decision": "edit", "args": {…}}`; or `{"decision": "refuse", "reason":
    "…"}`, False, or any other text, which is the reason. An edit that does not fit is asked for again, and says why
    under `problem`.
    """
    shown = {"tool": mounted.name, "args": clean_all(args), "about": mounted.tool.description, "answers": ANSWERS}
    shown |= {"text": clean_all(text)} if text else {}
    while True:
        said = interrupt(shown)
        answer = said if isinstance(said, dict) else {"decision": said}
        decision = answer.get("decision")
        word = decision.strip().casefold() if isinstance(decision, str) else str(decision)
        if decision is True or word in YES:
            return args
        if word != "edit":
            reason = "" if not decision or word in NO else str(decision)
            told = str(answer.get("reason") or reason or NO_REASON)
            raise Refused("refused", REFUSED.format(name=mounted.name, reason=told))
        try:
            return checked(edited(answer), mounted.parameters, mounted.judge)
        except BadArguments as error:
            shown = {**shown, "problem": str(error)}


def edited(answer: dict[str, Any]) -> dict[str, Any]:
    """Return the arguments of an edit. Raises BadArguments if there are none."""
    args = answer.get("args")
    if not isinstance(args, dict):
        raise BadArguments("an edit needs the arguments: {'decision': 'edit', 'args': {…}}.")
    return args

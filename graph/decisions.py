"""Asking a person what a turn waits for: a call to approve, edit or refuse, or a tool's own question.

What is answered goes back to nodes/approval.py; nothing runs that was not approved in so many words.
"""

import json
import re
from collections.abc import Sequence
from typing import Any

from langgraph.types import Interrupt

from graph.keyboard import Keyboard
from graph.screen import Screen
from graph.telling import asked_for
from nodes.quoting import as_json

APPROVE = {"approve", "a", "yes", "y", "ok", "同意", "批准"}
EDIT = {"edit", "e", "修改"}
REFUSE = {"refuse", "r", "no", "n", "拒绝", "不同意"}
BREAK = re.compile(r"[\s,;:，。；：！]+")
"""Between a decision and its reason; Chinese has no blanks there."""

MAY = "may {call} run?"
CHOICES = "approve, edit or refuse? "
UNCLEAR = "write approve, edit or refuse (a, e, r; after refuse, why)"
NO_OBJECT = 'the arguments must be one JSON object, such as {{"to": "Ann"}}'


def decide(pauses: Sequence[Interrupt], keyboard: Keyboard, screen: Screen) -> dict[str, Any] | None:
    """Ask for each pause; return the answers by id, None if the input ends or the person breaks off."""
    answers = {}
    try:
        for pause in pauses:
            if (answer := decided(pause.value, keyboard, screen)) is None:
                return None
            answers[pause.id] = answer
    except KeyboardInterrupt:
        screen.note("")
        return None
    return answers


def decided(pause: Any, keyboard: Keyboard, screen: Screen) -> Any:
    """Ask what one pause waits for; return what to resume with, None at the end of input."""
    if not (isinstance(pause, dict) and "answers" in pause):
        screen.note(asked_for(pause))
        return keyboard.line(screen.say("answer: "))
    say = screen.say
    screen.note(say(MAY, call=asked_for(pause)), *([f"  {pause['problem']}"] if pause.get("problem") else []))
    while (said := keyboard.line(say(CHOICES))) is not None:
        first, rest = [*BREAK.split(said.strip(), 1), ""][:2]
        word = first.casefold().strip(".!")
        if word in APPROVE and not rest:
            return {"decision": "approve"}
        if word in REFUSE:
            reason = rest.strip() or keyboard.line(say("why? ")) or ""
            return {"decision": "refuse", "reason": reason}
        if word in EDIT:
            args = rest or keyboard.line(say("arguments: "), given=as_json(pause["args"]))
            if isinstance(edited := json_of(args), dict):
                return {"decision": "edit", "args": edited}
            screen.note(say(NO_OBJECT))
        else:
            screen.note(say(UNCLEAR))
    return None


def json_of(text: str | None) -> Any:
    """Read JSON; None if it is none."""
    try:
        return json.loads(text or "")
    except ValueError:
        return None

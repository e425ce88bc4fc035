"""Steps of a turn in words, for a person: a line for each, and lines below it for what it found, did and left out.

It reads whatever it is given: steps of older versions, and those that a user's own nodes leave.
"""

from collections.abc import Sequence
from typing import Any

from rich.text import Text
from rich.tree import Tree

from graph.history import Told
from nodes.quoting import as_json

LONGEST = 200
"""Characters of one thing that is shown on a line."""


def headline(step: Any) -> str:
    """Say in one line what a step did and how long it took."""
    node, detail = step["node"], step["detail"]
    tell = HEADLINES.get(node)
    return f"{tell(detail) if tell else f'{node} {as_json(detail)[:LONGEST]}'}  ({step['ms']} ms)"


def traced(step: Any) -> list[str]:
    """Tell a step as it happens: its line, and those below it."""
    return [f"  {headline(step)}", *(f"    {line}" for line in lines_below(step))]


def lines_below(step: Any) -> list[str]:
    """Say what is worth knowing beyond that."""
    tell = BELOW.get(step["node"])
    return [short(line) for line in tell(step["detail"])] if tell else []


def short(text: object) -> str:
    """Write something on one line, cut if it is long."""
    line = " ".join(str(text).split())
    return line if len(line) <= LONGEST else f"{line[:LONGEST]}…"


def many(found: Any, one: str, more: str = "") -> str:
    """Count things; older steps hold the number alone."""
    number = found if isinstance(found, int) else len(found or ())
    return f"{number} {one if number == 1 else more or f'{one}s'}"


def recall_line(detail: Any) -> str:
    """Tell recall's step."""
    if detail.get("status") == "failed":
        return f"recall failed: {short(detail.get('error', ''))}"
    found = f"{many(detail.get('memories'), 'memory', 'memories')}, {many(detail.get('facts'), 'fact')}"
    found += f", {many(detail['passages'], 'passage')}" if detail.get("passages") else ""
    return f"recall {short(detail.get('query', ''))!r}: {detail.get('status', 'off')}, {found}"


def recall_below(detail: Any) -> list[str]:
    """List the hits with score and reason."""
    hits = detail.get("memories") or []
    lines = [f"{scored(one['score'])}  {one['at'][:10]}  {one['text']}  [{one['why']}]" for one in hits]
    return lines + [f"{scored(one['score'])}  {place(one)}" for one in detail.get("passages") or []]


def place(one: Any) -> str:
    """Write where a passage of a document stands, after the number that it is cited by."""
    return f"[{one['number']}] " + ", ".join(filter(None, (one["source"], one["heading"], one["position"])))


def scored(score: float | None) -> str:
    """Write a score; what was not found by a vector has none."""
    return "-.--" if score is None else f"{score:.2f}"


def reason_line(detail: Any) -> str:
    """Tell reason's step."""
    counted = f", {detail['counted']} counted" if detail.get("counted") else ""
    sent = f"{many(detail.get('sent', 0), 'message')} sent, {detail.get('tokens', 0)} tokens{counted}"
    calls = detail.get("calls")
    end = detail.get("why") or detail.get("stop_reason") or (f"calls {', '.join(calls)}" if calls else "")
    return f"reason {detail.get('number', '')}: {sent}; {short(end)}"


def reason_below(detail: Any) -> list[str]:
    """List what was changed on the way to the model, and what it was told of a first answer that was none."""
    sent_back = [f"sent back: {detail['objection']}"] if detail.get("objection") else []
    cites = [f"cites {place(one)}" for one in detail.get("cited") or []]
    return [*detail.get("changes", []), *sent_back, *cites]


def tools_line(detail: Any) -> str:
    """Tell a call's step."""
    return "; ".join(map(call_line, detail.get("calls", []))) or "tools"


def call_line(call: Any) -> str:
    """Tell what became of one call."""
    end = "ok" if call.get("ok") else call.get("kind") or "error"
    if call.get("gate"):
        end = f"not run: {call['gate']}"
    attempts = f", {call['attempts']} attempts" if call.get("attempts", 0) > 1 else ""
    return f"{called(call)}: {end}{attempts}, {call.get('ms', 0)} ms, {many(call.get('chars', 0), 'character')}"


def called(call: Any) -> str:
    """Write a call as it was made."""
    return f"{call.get('tool', '')}({short(call.get('args', ''))})"


def remember_line(detail: Any) -> str:
    """Tell remember's step."""
    parts = [f"{many(detail.get('filed', 0), 'message')} filed"]
    if detail.get("memories") or detail.get("facts"):
        parts.append(f"{many(detail.get('memories'), 'memory', 'memories')}, {many(detail.get('facts'), 'fact')} found")
    if "closed" in detail:
        parts.append("conversation closed" if detail["closed"] else "not closed")
    why = detail.get("failed") or detail.get("why")
    return f"remember: {', '.join(parts)}{f'; {short(why)}' if why else ''}"


def remember_below(detail: Any) -> list[str]:
    """List what was found, and the abstract."""
    lists = [detail.get(name) for name in ("blocks", "memories", "facts")]
    abstract = [detail["abstract"]] if detail.get("abstract") else []
    return [one for found in lists if isinstance(found, list) for one in found] + abstract


def summarize_line(detail: Any) -> str:
    """Tell summarize's step."""
    if not detail.get("removed"):
        return f"summarize: nothing left the page: {short(detail.get('why', ''))}"
    return f"summarize: {many(detail['removed'], 'message')} left the page"


def summarize_below(detail: Any) -> list[str]:
    """Show what the summary became."""
    return str(detail.get("summary", "")).splitlines()


def tree_of(thread: str, turns: Sequence[Told], *, gone: int) -> Tree:
    """Draw the turns of a thread; `gone` earlier ones have no checkpoints any more."""
    lost = f"; {gone} earlier gone with their checkpoints, `threads show` has what was said" if gone else ""
    tree = Tree(Text(f"thread {thread}: {many(turns, 'turn')}{lost}"))
    for turn in turns:
        left = "" if turn.current else "  (left by a fork)"
        branch = tree.add(Text(f"{turn.at[:16].replace('T', ' ')}  {short(turn.question) or '(no question)'}{left}"))
        for step in turn.steps:
            twig = branch.add(Text(headline(step)))
            for below in lines_below(step):
                twig.add(Text(below))
        branch.add(Text(end_of(turn)))
    return tree


def end_of(turn: Told) -> str:
    """Say how a turn ended, or why it did not."""
    if turn.stop_reason:
        return f"{turn.stop_reason}: {short(turn.answer)}" if turn.answer else turn.stop_reason
    if turn.waits:
        return f"waits for a person: {'; '.join(short(asked_for(one)) for one in turn.waits)}"
    return f"broken off: {short(turn.error)}" if turn.error else "not finished"


def asked_for(pause: Any) -> str:
    """Write what a person is asked: a call to approve, or a tool's own question."""
    if isinstance(pause, dict) and "tool" in pause:
        return f"{pause['tool']}({as_json(pause.get('args', {}))})"
    return pause if isinstance(pause, str) else as_json(pause)


HEADLINES = {
    "recall": recall_line,
    "reason": reason_line,
    "tools": tools_line,
    "remember": remember_line,
    "summarize": summarize_line,
}
BELOW = {
    "recall": recall_below,
    "reason": reason_below,
    "remember": remember_below,
    "summarize": summarize_below,
}

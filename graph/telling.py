"""Steps of a turn in words, for a person: a line for each, and lines below it for what it found, did and left out.

It reads whatever it is given: steps of older versions, and those that a user's own nodes leave.
"""

from collections.abc import Sequence
from typing import Any

from rich.text import Text
from rich.tree import Tree

from graph.history import Told
from graph.texts import ENGLISH, Say
from nodes.quoting import as_json

GONE = "{n} earlier gone with their checkpoints, `threads show` has what was said"
LONGEST = 200
"""Characters of one thing that is shown on a line."""


def headline(step: Any, say: Say = ENGLISH) -> str:
    """Say in one line what a step did and how long it took."""
    node, detail = step["node"], step["detail"]
    tell = HEADLINES.get(node)
    line = tell(detail, say) if tell else f"{node} {as_json(detail)[:LONGEST]}"
    return say("{line}  ({ms} ms)", line=line, ms=step["ms"])


def traced(step: Any, say: Say = ENGLISH) -> list[str]:
    """Tell a step as it happens: its line, and those below it."""
    return [f"  {headline(step, say)}", *(f"    {line}" for line in lines_below(step, say))]


def lines_below(step: Any, say: Say = ENGLISH) -> list[str]:
    """Say what is worth knowing beyond that."""
    tell = BELOW.get(step["node"])
    return [short(line) for line in tell(step["detail"], say)] if tell else []


def short(text: object) -> str:
    """Write something on one line, cut if it is long."""
    line = " ".join(str(text).split())
    return line if len(line) <= LONGEST else f"{line[:LONGEST]}…"


def number_of(found: Any) -> int:
    """Count things; older steps hold the number alone."""
    return found if isinstance(found, int) else len(found or ())


def known(detail: Any, say: Say) -> list[str]:
    """Count the memories and facts of a step."""
    memories, facts = (number_of(detail.get(name)) for name in ("memories", "facts"))
    return [say.many(memories, "{n} memory", "{n} memories"), say.many(facts, "{n} fact", "{n} facts")]


def recall_line(detail: Any, say: Say) -> str:
    """Tell recall's step."""
    if detail.get("status") == "failed":
        return say("recall failed: {error}", error=short(detail.get("error", "")))
    passages = number_of(detail.get("passages"))
    found = known(detail, say) + ([say.many(passages, "{n} passage", "{n} passages")] if passages else [])
    query, status = repr(short(detail.get("query", ""))), say.told(detail.get("status", "off"))
    return say("recall {query}: {status}, {found}", query=query, status=status, found=say.joined(found))


def recall_below(detail: Any, say: Say) -> list[str]:
    """List the hits with score and reason."""
    hits = detail.get("memories") or []
    lines = [f"{scored(one['score'])}  {one['at'][:10]}  {one['text']}  [{say.told(one['why'])}]" for one in hits]
    return lines + [f"{scored(one['score'])}  {place(one)}" for one in detail.get("passages") or []]


def place(one: Any) -> str:
    """Write where a passage of a document stands, after the number that it is cited by."""
    return f"[{one['number']}] " + ", ".join(filter(None, (one["source"], one["heading"], one["position"])))


def scored(score: float | None) -> str:
    """Write a score; what was not found by a vector has none."""
    return "-.--" if score is None else f"{score:.2f}"


def reason_line(detail: Any, say: Say) -> str:
    """Tell reason's step."""
    messages = say.many(detail.get("sent", 0), "{n} message sent", "{n} messages sent")
    sent = say("{sent}, {tokens} tokens", sent=messages, tokens=detail.get("tokens", 0))
    counted = [say("{n} counted", n=detail["counted"])] if detail.get("counted") else []
    calls, why = detail.get("calls"), say.told(detail.get("why") or detail.get("stop_reason") or "")
    end = why or (say("calls {names}", names=", ".join(calls)) if calls else "")
    told = say.joined([sent, *counted])
    return say("reason {number}: {sent}; {end}", number=detail.get("number", ""), sent=told, end=short(end))


def reason_below(detail: Any, say: Say) -> list[str]:
    """List what was changed on the way to the model, and what it was told of a first answer that was none."""
    sent_back = [say("sent back: {objection}", objection=detail["objection"])] if detail.get("objection") else []
    cites = [say("cites {place}", place=place(one)) for one in detail.get("cited") or []]
    return [*detail.get("changes", []), *sent_back, *cites]


def tools_line(detail: Any, say: Say) -> str:
    """Tell a call's step."""
    return "; ".join(call_line(one, say) for one in detail.get("calls", [])) or "tools"


def call_line(call: Any, say: Say = ENGLISH) -> str:
    """Tell what became of one call."""
    end = say.told("ok" if call.get("ok") else call.get("kind") or "error")
    if call.get("gate"):
        end = say("not run: {gate}", gate=call["gate"])
    attempts = [say("{n} attempts", n=call["attempts"])] if call.get("attempts", 0) > 1 else []
    size = say.many(call.get("chars", 0), "{n} character", "{n} characters")
    told = say.joined([end, *attempts, say("{ms} ms", ms=call.get("ms", 0)), size])
    return say("{call}: {told}", call=called(call), told=told)


def called(call: Any) -> str:
    """Write a call as it was made."""
    return f"{call.get('tool', '')}({short(call.get('args', ''))})"


def remember_line(detail: Any, say: Say) -> str:
    """Tell remember's step."""
    parts = [say.many(detail.get("filed", 0), "{n} message filed", "{n} messages filed")]
    if detail.get("memories") or detail.get("facts"):
        parts.append(say("{parts} found", parts=say.joined(known(detail, say))))
    if "closed" in detail:
        parts.append(say("conversation closed" if detail["closed"] else "not closed"))
    why = [say.told(short(why))] if (why := detail.get("failed") or detail.get("why")) else []
    return say("remember: {parts}", parts=say("; ").join([say.joined(parts), *why]))


def remember_below(detail: Any, say: Say) -> list[str]:
    """List what was found, and the abstract."""
    lists = [detail.get(name) for name in ("blocks", "memories", "facts")]
    abstract = [detail["abstract"]] if detail.get("abstract") else []
    return [one for found in lists if isinstance(found, list) for one in found] + abstract


def summarize_line(detail: Any, say: Say) -> str:
    """Tell summarize's step."""
    if not detail.get("removed"):
        return say("summarize: nothing left the page: {why}", why=say.told(short(detail.get("why", ""))))
    left = say.many(detail["removed"], "{n} message left the page", "{n} messages left the page")
    return say("summarize: {left}", left=left)


def summarize_below(detail: Any, say: Say) -> list[str]:
    """Show what the summary became."""
    return str(detail.get("summary", "")).splitlines()


def tree_of(thread: str, turns: Sequence[Told], *, gone: int, say: Say = ENGLISH) -> Tree:
    """Draw the turns of a thread; `gone` earlier ones have no checkpoints any more."""
    told = [say.many(len(turns), "{n} turn", "{n} turns"), *([say(GONE, n=gone)] if gone else [])]
    tree = Tree(Text(say("thread {thread}: {turns}", thread=thread, turns=say("; ").join(told))))
    for turn in turns:
        left = "" if turn.current else f"  {say('(left by a fork)')}"
        question = short(turn.question) or say("(no question)")
        branch = tree.add(Text(f"{turn.at[:16].replace('T', ' ')}  {question}{left}"))
        for step in turn.steps:
            twig = branch.add(Text(headline(step, say)))
            for below in lines_below(step, say):
                twig.add(Text(below))
        branch.add(Text(end_of(turn, say)))
    return tree


def end_of(turn: Told, say: Say) -> str:
    """Say how a turn ended, or why it did not."""
    if turn.stop_reason:
        end = say.told(turn.stop_reason)
        return say("{end}: {answer}", end=end, answer=short(turn.answer)) if turn.answer else end
    if turn.waits:
        return say("waits for a person: {asked}", asked="; ".join(short(asked_for(one)) for one in turn.waits))
    return say("broken off: {error}", error=say.told(short(turn.error))) if turn.error else say("not finished")


def asked_for(pause: Any) -> str:
    """Write what a person is asked: a call to approve, or a tool's own question."""
    if isinstance(pause, dict) and "tool" in pause:
        text = f" {as_json(pause['text'])}" if "text" in pause else ""
        return f"{pause['tool']}({as_json(pause.get('args', {}))}){text}"
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

"""The running summary: four sections, bounded, in the user's language, with what must stay verbatim kept beside them.

It calls no model: nodes/summarize.py does. What a model gives back is read here, whatever its form.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import chain

from langchain_core.messages import AIMessage, AnyMessage

from memory.text import is_chinese
from nodes.quoting import as_json, on_one_line
from nodes.text import THINKING, text_of
from nodes.tokens import chars_within, pieces, text_tokens

ENGLISH = ("## What the user wants", "## Key context and decisions", "## Things referred to", "## Open items")
CHINESE = ("## 用户想要什么", "## 关键背景与决定", "## 提到的事物", "## 未完成事项")
WANTS, CONTEXT, THINGS, OPEN = range(4)

FENCE = re.compile(r"^\s*```\w*\s*\n(.*?)\n\s*```\s*$", re.DOTALL)
ERROR = re.compile(r"\W*(?:(?:error|exception|traceback|http \d{3})\b|错误|出错)", re.IGNORECASE)
IDENTIFIER = re.compile(
    r"https?://[^\s，。；、）)\]>\"']+(?<![.,;:!?])|[\w.+-]+@[\w-]+(?:\.[\w-]+)+|(?:[A-Za-z]:)?[\\/](?:[\w.-]+[\\/])+[\w.-]+"
    r"|\b(?=[A-Za-z-_]*\d)(?=\d*[-_A-Za-z])[A-Za-z0-9]+(?:[-_./][A-Za-z0-9]+)*\b|\b\d{4,}\b"
)
NUMBER = re.compile(r"^\d+\s*[.)、:：]\s*")
SHORTEST_PROSE = 40
MOST_THINGS = 60
"""Identifiers that are kept beside the model's own words; the oldest give way."""


@dataclass(frozen=True, kw_only=True)
class Summary:
    """Four sections, each a list of lines without bullets."""

    sections: tuple[tuple[str, ...], ...] = field(default=((), (), (), ()))
    chinese: bool = False

    def text(self) -> str:
        """Write the summary; a section without lines keeps its heading."""
        headings = CHINESE if self.chinese else ENGLISH
        parts = [
            [heading, *(f"- {on_one_line(line)}" for line in lines)]
            for heading, lines in zip(headings, self.sections, strict=True)
        ]
        return "\n".join(line for part in parts for line in part)


def read_summary(answer: str) -> Summary | None:
    """Read what a model gave as a summary: fenced, after thoughts, with sections missing, or as prose.

    None if it holds nothing, or is an error message.
    """
    text = read_text(answer)
    sections: list[list[str]] = [[], [], [], []]
    current = CONTEXT
    for raw in text.split("\n"):
        line = raw.strip()
        if (heading := heading_of(line)) is not None:
            current = heading
        elif said := line.lstrip("-*• ").strip():
            sections[current].append(said)
    said = "\n".join(line for lines in sections for line in lines)
    headings = [line for line in map(str.strip, text.split("\n")) if heading_of(line) is not None]
    if not said or (not headings and (len(said) < SHORTEST_PROSE or ERROR.match(said))):
        return None
    return Summary(sections=tuple(map(tuple, sections)), chinese=is_chinese("".join(headings) or said))


def read_text(answer: str) -> str:
    """Return what a model said without its thoughts and fences."""
    text = THINKING.sub("", answer).strip()
    fenced = FENCE.match(text)
    return (fenced[1] if fenced else text).strip()


def heading_of(line: str) -> int | None:
    """Return which section a line is the heading of, in either language and any level."""
    if not line.startswith(("#", "**")):
        return None
    plain = NUMBER.sub("", line.strip("#*:： ")).casefold()
    for headings in (ENGLISH, CHINESE):
        for n, heading in enumerate(headings):
            if plain == heading.strip("# ").casefold():
                return n
    return None


def with_identifiers(summary: Summary, previous: Summary, leaving: Sequence[AnyMessage]) -> Summary:
    """Add what the model did not carry over of the identifiers in what leaves and in the previous summary."""
    text = summary.text()
    kept = [line for line in previous.sections[THINGS] if not any(word in text for word in IDENTIFIER.findall(line))]
    kept = [line for line in kept if IDENTIFIER.search(line)]
    for message in leaving:
        if message.type in ("human", "ai") and (
            missing := [one for one in identifiers(text_of(message)) if one not in text]
        ):
            kept.append(f"{', '.join(missing)} ({message.id})")
    things = (*summary.sections[THINGS], *dict.fromkeys(kept))
    sections = (*summary.sections[:THINGS], things[-MOST_THINGS:], summary.sections[OPEN])
    return Summary(sections=sections, chinese=summary.chinese)


def identifiers(text: str) -> list[str]:
    """Return what a paraphrase would spoil: links, addresses, paths, codes and long numbers, each once."""
    return list(dict.fromkeys(IDENTIFIER.findall(text)))


def shortened(summary: Summary, limit: int) -> Summary:
    """Return the summary within `limit` tokens: the oldest lines go, open items last of all."""
    sections = [list(lines) for lines in summary.sections]
    room = limit - text_tokens(Summary(chinese=summary.chinese).text()) - sum(map(cost, chain(*sections)))
    while room < 0 and any(sections):
        longest = max((WANTS, CONTEXT, THINGS), key=lambda n: len(sections[n]))
        victim = sections[longest] or sections[OPEN]
        line = victim.pop(0)
        room += cost(line)
        if not victim and len(line) > 2 and cost(line) > limit // 2:
            victim.append(line[: len(line) // 2] + "…")
            room -= cost(victim[0])
    return Summary(sections=tuple(map(tuple, sections)), chinese=summary.chinese)


def cost(line: str) -> int:
    """Estimate the tokens of a line with its bullet and its end."""
    return text_tokens(f"\n- {line}")


def lines_of(messages: Iterable[AnyMessage], *, longest: int = 1_000_000) -> list[str]:
    """Write messages for the summariser, visible text and calls only, as JSON lines; one over `longest` as several."""
    said: list[tuple[str | None, str, str]] = []
    for message in messages:
        said.append((message.id, message.type, text_of(message)))
        calls = message.tool_calls if isinstance(message, AIMessage) else []
        said += [(message.id, "call", f"{call['name']} {as_json(call['args'])}") for call in calls]
    return [
        as_json({"id": id, "role": role, "text": piece}) for id, role, text in said for piece in pieces(text, longest)
    ]


def in_parts(lines: Sequence[str], limit: int) -> list[str]:
    """Join lines to parts of at most `limit` tokens; a longer line is cut into several, and none of it is lost."""
    parts: list[str] = []
    room = 0
    for line in lines:
        for piece in pieces(line, limit):
            tokens = text_tokens(piece) + 1
            if parts and tokens <= room:
                parts[-1] += f"\n{piece}"
                room -= tokens
            else:
                parts.append(piece)
                room = limit - tokens
    return parts


def newest_part(lines: Sequence[str], limit: int) -> list[str]:
    """Return the newest lines that together have at most `limit` tokens, the oldest cut to what room is left."""
    kept: list[str] = []
    for line in reversed(lines):
        tokens = text_tokens(line) + 1
        if tokens > limit:
            return [line[len(line) - chars_within(line[::-1], limit) :], *kept] if limit > 0 else kept
        kept.insert(0, line)
        limit -= tokens
    return kept

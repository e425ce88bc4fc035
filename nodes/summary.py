"""The running summary: four sections, bounded, in the user's language, with what must stay verbatim kept beside them.

It calls no model: nodes/summarize.py does. What a model gives back is read here, whatever its form.
"""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Any

from langchain_core.messages import AnyMessage, HumanMessage

from memory.text import is_chinese
from nodes.quoting import on_one_line
from nodes.text import THINKING, text_of
from nodes.tokens import text_tokens

ENGLISH = ("## What the user wants", "## Key context and decisions", "## Things referred to", "## Open items")
CHINESE = ("## 用户想要什么", "## 关键背景与决定", "## 提到的事物", "## 未完成事项")
WANTS, CONTEXT, THINGS, OPEN = range(4)

FENCE = re.compile(r"^\s*```\w*\s*\n(.*?)\n\s*```\s*$", re.DOTALL)
BROKE = re.compile(
    r"^\W*(?:(?:error|exception)\b(?! (?:handling|messages?|codes?|logs?|reports?)\b)|traceback|http \d{3}|timeout"
    r"|unauthorized|too many requests|rate.?limit|connection (?:error|refused|reset))"
    r"|<html|\brate.?limit (?:reached|exceeded)"
    r"|(?:exceeded|insufficient)\W.{0,30}quota|maximum context length|request timed out|upstream connect error"
    r"|service (?:is )?(?:temporarily )?unavailable|bad gateway|internal server error|invalid api key"
    r"|(?:model|server) is (?:currently )?overloaded|content was filtered"
    r"|^\W*(?:系统)?(?:错误|出错)|服务器(?:繁忙|错误|异常)|(?:请求|连接)超时|稍后再试|网络(?:异常|错误)|内容违规",
    re.IGNORECASE,
)
REFUSES = re.compile(
    r"(?:^\W*(?:(?:i['’]?m |i am )?(?:very )?(?:sorry|afraid)|as an? (?:ai|language)|unfortunately"
    r"|(?:非常)?抱歉|对不起)[^.。;]{0,80}(?:can(?:no|['’])t\b|cannot|unable|not able|无法|不能)"
    r"|^\W*I (?:can(?:not|['’]t)|am (?:unable|not able))\b|^\W*我?(?:无法|不能))"
    r"[^.。;]{0,40}(?:summar|help|assist|comply|provide|access|process|complete|continue|do (?:that|this|so)|fulfil"
    r"|总结|概括|摘要|归纳|协助|帮|提供|访问|处理|完成|继续|满足)",
    re.IGNORECASE,
)
"""It refuses what a summariser is asked for: a user may say too what they cannot do."""

OF_A_USER = re.compile(r"\busers?\b|用户", re.IGNORECASE)
"""What prose must speak of that would be taken for the message of an error: it may be about one."""

ERROR_KEYS = {"error", "errors", "detail", "message", "code", "status", "type", "request_id"}
IDENTIFIER = re.compile(
    r"https?://[^\s，。；、）)\]>\"']+(?<![.,;:!?])|(?<![\w.+-])[\w.+-]+@[\w-]+(?:\.[\w-]+)+|(?:[A-Za-z]:)?[\\/](?:[\w.-]+[\\/])+[\w.-]+"
    r"|\b(?=[A-Za-z-_]*\d)(?=\d*[-_A-Za-z])[A-Za-z0-9]+(?:[-_./][A-Za-z0-9]+)*\b|\b\d{4,}\b"
)
NUMBER = re.compile(r"^\d+\s*[.)、:：]\s*")
SOURCE = re.compile(r"\s*\([^()]*\)$")
"""The id of a message that stands behind a line."""

NOTHING = re.compile(r"\W*(?:none|nothing|n/a|no (?:more )?open items|无|暂无|没有)\W*", re.IGNORECASE)
SHORTEST_PROSE = 40
"""Letters; a Chinese character counts three."""

MOST_OPEN = 30
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

    def is_foreign(self) -> bool:
        """Whether its lines are in Chinese although its user's talk is not, or the other way round."""
        lines = [*chain(*self.sections)]
        chinese = sum(map(is_chinese, lines))
        return not chinese if self.chinese else chinese * 2 > len(lines)


def summary_of(state: Mapping[str, Any]) -> str:
    """Return the running summary of a thread, empty if there is none that could be one."""
    summary = state.get("summary", "")
    return summary if isinstance(summary, str) else ""


def are_chinese(messages: Sequence[AnyMessage]) -> bool:
    """Whether the user's messages are in Chinese, most of them."""
    said = [is_chinese(text_of(message)) for message in messages if isinstance(message, HumanMessage)]
    return sum(said) * 2 > len(said)


def read_summary(answer: str) -> Summary | None:
    """Read what a model gave as a summary: fenced, after thoughts, with sections missing, as JSON or as prose.

    None if it holds nothing, or is an error message.
    """
    text = written_out(read_text(answer))
    sections: list[list[str]] = [[], [], [], []]
    current, headings = CONTEXT, ""
    for line in map(str.strip, text.split("\n")):
        if (heading := heading_of(line)) is not None:
            current, headings = heading, headings + line
        elif said := line.lstrip("-*• ").strip():
            sections[current].append(said)
    said = "\n".join(line for lines in sections for line in lines)
    if not said or (not headings and not is_prose(said)):
        return None
    return Summary(sections=tuple(map(tuple, sections)), chinese=is_chinese(headings or said))


def is_prose(said: str) -> bool:
    """Whether a text without headings tells of a conversation, rather than why there is no summary (B013)."""
    length = len(said) + 2 * len(re.findall(r"[\u3040-\u9fff]", said))
    return length >= SHORTEST_PROSE and not is_failure(said)


def is_failure(said: str) -> bool:
    """Whether a text is a refusal, or the error message that some server gave as an answer (B013)."""
    return bool(REFUSES.search(said) or (BROKE.search(said) and not OF_A_USER.search(said)))


def written_out(text: str) -> str:
    """Return a summary that came as a JSON object in the form of sections, any other as it is (B023).

    Nothing is left of JSON that broke off. What stands under an unknown key goes to the context, with its key.
    """
    if not text.startswith("{"):
        return text
    try:
        value = json.loads(text)
    except ValueError:
        return ""
    lines: list[str] = []
    if value.keys() <= ERROR_KEYS:
        return ""
    for key, said in value.items():
        items = [one for one in (said if isinstance(said, list) else [said]) if one not in (None, "", {}, [])]
        known = heading_of(f"## {key}") is not None
        lines.append(f"## {key}" if known else ENGLISH[CONTEXT])
        lines += [on_one_line(str(one) if known else f"{key}: {one}") for one in items]
    return "\n".join(lines)


def read_text(answer: str) -> str:
    """Return what a model said without its thoughts and fences."""
    text = THINKING.sub("", answer).strip()
    fenced = FENCE.match(text)
    return (fenced[1] if fenced else text).strip()


def heading_of(line: str) -> int | None:
    """Return which section a line is the heading of, in either language and any level."""
    if not line.startswith(("#", "**")) and not line.endswith((":", "：")):
        return None
    plain = NUMBER.sub("", line.strip("#*:： ")).casefold()
    known = [heading.strip("# ").casefold() for heading in (*ENGLISH, *CHINESE)]
    return known.index(plain) % len(ENGLISH) if plain in known else None


def with_identifiers(summary: Summary, previous: Summary, leaving: Sequence[AnyMessage]) -> Summary:
    """Add what the model did not carry over of the identifiers in what leaves and in the previous summary."""
    known = {*identifiers(summary.text())}
    kept = [line for line in previous.sections[THINGS] if {*identifiers(SOURCE.sub("", line))} - known]
    for message in leaving:
        if message.type in ("human", "ai") and (
            missing := [one for one in identifiers(text_of(message)) if one not in known]
        ):
            kept.append(f"{', '.join(missing)} ({message.id})")
    things = (*summary.sections[THINGS], *dict.fromkeys(kept))
    sections = (*summary.sections[:THINGS], things[-MOST_THINGS:], summary.sections[OPEN])
    return replace(summary, sections=sections)


def with_open(summary: Summary, previous: Summary) -> Summary:
    """Add the open items of the previous summary of which this one says nothing: neither that they are, nor were."""
    lines = [words_of(line) for line in chain(*summary.sections)]
    silent = [
        line
        for line in previous.sections[OPEN]
        if not NOTHING.fullmatch(line)
        and not any(len(words & words_of(line)) * 2 >= len(words_of(line)) for words in lines)
    ]
    open = (*silent, *summary.sections[OPEN])[-MOST_OPEN:]
    return replace(summary, sections=(*summary.sections[:OPEN], open))


def words_of(line: str) -> set[str]:
    """Return the words of a line, and its Chinese characters."""
    return {*re.findall(r"[\u3400-\u9fff]|[^\W\u3400-\u9fff]+", SOURCE.sub("", line).casefold())}


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

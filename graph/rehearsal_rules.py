"""What the rehearsal model understands: a few patterns of English and Chinese. No learning, no guessing beyond them."""

import re
import unicodedata
from collections.abc import Sequence
from functools import cache
from typing import Any
from zoneinfo import available_timezones

from memory.words import query_terms, terms
from nodes.calculator import SUPERSCRIPT

MOST_QUOTED = 300
READ_CHARS = 2_000
"""Of a longer text only as much of either end is read: the patterns are made for what people type."""

SENTENCE = re.compile(r"[^.!?。！？\n]+(?:\.(?=\S)[^.!?。！？\n]*)*[.!?。！？]*")
ASKED = re.compile(
    r"[?？]\s*$|^\s*(?:what|who|whom|whose|when|where|which|why|how|is|are|am|do|does|did|can|could|should|shall|will|would|may|have|has)\b(?!.*[.!]\s*$)"
    r"|^\W*(?:please\s+)?(?:tell|remind)\s+me\s+(?:what|who|when|where|which|why|how|my|about)\b"
    r"|什么|谁|哪|几点|几号|几个|怎么|怎样|多少|是否|为什么|何时|^\W*(?:请)?告诉我|吗[。！]?\s*$|呢[。！]?\s*$",
    re.IGNORECASE | re.DOTALL,
)
PERSONAL = re.compile(r"\b(?:I|I'm|I’m|I've|I’ve|I'd|my|mine|we|we're|our|me|us)\b|我|咱|本人", re.IGNORECASE)
NO_STATEMENT = re.compile(
    r"^\W*(?:please\s+)?(?:tell|give|show|help|let|send|teach|write|explain|excuse|thank|thanks|sorry|ok|okay|hi|hello|hey|bye|good (?:morning|evening|night))\b"
    r"|^\W*(?:I'm|I’m|I am|we are) (?:fine|ok|okay|good|well|sorry|not sure|back|here|done|lost|confused|curious)\W*$"
    r"|^\W*I (?:think so|hope so|guess so|see|agree|understand|do|did|am|got it|appreciate (?:it|that)|(?:don't|don’t|do not) (?:know|understand|get it|think so)|have a question)\W*$"
    r"|^\W*I(?:'d like| would like| want| need| wonder)(?: to)?(?: know| ask| understand|,? if| what| who| when| where| how)\b"
    r"|^\W*(?:请|麻烦)?(?:你|您)?(?:帮我|给我|让我|告诉我|教我|替我|我想知道|我想问|我明白|我知道了|我懂了|我看看|我没事|我很好|我不知道|我不明白|我记住了|谢谢|谢了|你好|再见)",
    re.IGNORECASE,
)
APOLOGY = re.compile(
    r"^\W*(?:sorry|apologies|my mistake|oops|抱歉|对不起|不好意思)\s*[,，:：;；.。!！—-]+\s*", re.IGNORECASE
)
"""What goes before a correction; what follows is judged by itself."""

REMEMBER = re.compile(
    r"^\W*(?P<polite>please\s+|(?:could|can|would|will) you\s+(?:please\s+)?)?(?:(?:remember|note down|don't forget|don’t forget|do not forget|keep in mind)(?:\s+that\b)?|(?:take\s+)?note(?=\s+that\b|\s*[:,])(?:\s+that\b)?)(?:\s+for me\b)?(?:\s*[:,])?\s+(?P<en>\S.*)$"
    r"|^\W*(?:我想|我要|我希望)?(?P<qing>请|麻烦|让)?(?:你|您)?(?P<bang>帮我|帮忙|替我)?(?:记住|记一下|记下来|记下|别忘了)[：:，,\s]*(?P<zh>\S.*)$",
    re.IGNORECASE | re.DOTALL,
)
REMEMBER_LAST = re.compile(
    r"[,，。.;；!！]?\s{0,9}(?:please remember (?:that|this|it)|remember that|remember this|(?:请|麻烦)?(?:你|您)?(?:帮我)?(?:记住|记一下))[.!。！]*$",
    re.IGNORECASE,
)
ASKS_BACK = re.compile(r"(?:what|who|when|where|how|which|why|me)\b", re.IGNORECASE)
ZH_ASKS_BACK = re.compile(r"了|没|什么|谁|哪|吗|多少")
TIME = re.compile(
    r"\bwhat(?:'s|’s| is)?\s+(?:the\s+)?(?:current\s+|exact\s+)?(?:time|date|day)\s*(?:is it\b(?!\s+(?:that|when|my))|now\b|today\b|in\b|\?|$)"
    r"|\bcurrent time\b|\b(?:today's|today’s) date\b|\bwhat day is (?:it|today)\b(?!\s+(?:that|when|my))|\btell me the (?:current )?(?:time|date)\W*(?:now|today|please|in\b.*)?\W*$"
    r"|^\W*(?:the\s+)?(?:time|date)(?:\s+(?:now|today|please|in\s.{1,40}))?\W*$"
    r"|现在(?:是)?几点(?!\w)|现在(?:是)?几点(?:了|钟|啊|呢)|现在(?:是)?(?:什么时间|什么时候|的?时间)|^几点了|今天(?:是)?(?:几号|几月|星期几|周几|礼拜几|什么日子|的?日期)|当前时间|^[\u3400-\u9fff]{0,4}时间[?？]?$",
    re.IGNORECASE,
)
UNSPACED_HAN = r"(?<=[\d)])\s*{}\s*(?=[\d(-])"
SURE = {
    r"(?<=[\d)])\s+plus\s+(?=[\d(-])": " + ",
    r"(?<=[\d)])\s+minus\s+(?=[\d(-])": " - ",
    r"(?<=[\d)])\s+multiplied by\s+(?=[\d(-])": " * ",
    r"(?<=[\d)])\s+divided by\s+(?=[\d(-])": " ÷ ",
    r"(?<=[\d)])\s+(?:to the power of|to the)\s+(?=\d)(?:(\d+)(?:th|rd|nd)? power)?": r" ** \1",
    UNSPACED_HAN.format("加上?"): " + ",
    UNSPACED_HAN.format("减去?"): " ~ ",
    UNSPACED_HAN.format("乘以?"): " * ",
    UNSPACED_HAN.format("除以"): " ÷ ",
    r"(?<=[\d)])\s*的\s*(\d+)\s*次方": r"**\1",
    r"(?<=[\d)])(?:的平方(?!根)| squared\b)": "**2",
    r"(?<=[\d)])(?:的立方(?!根)| cubed\b)": "**3",
    r"\bsquare root of\s+(\d[\d.]*)": r"sqrt(\1)",
    r"(?<![\d.])(\d[\d.]*)的平方根": r"sqrt(\1)",
    r"(?<![\d.])(\d[\d.]*)\s*(?:%|percent) of\s+(?=\d)": r"\1 ÷ 100 * ",
    "×": "*",
}
"""Words between numbers that always mean an operation; ÷ and ~ stand for / and - that are no date and no range."""

PERHAPS = {r"(?<=[\d)])\s*(?:\btimes\b|(?<=\s)over\b|[x·])\s*(?=[\d(-])": " ∙ "}
"""Words that mean one only where a sum is asked for; ∙ stands for their *."""

FUNCTION = r"(?:sqrt|abs|round|floor|ceil|log10|log2|log|exp|sin|cos|tan|min|max)[ \t]{0,3}\("
SUM = re.compile(
    rf"(?<![A-Za-z0-9_.:/\\-])(?=[\d(.+-]|{FUNCTION})(?:{FUNCTION}|[\d.,()+\-*/%^÷~∙_ \t])+(?![A-Za-z_]?:)"
)
OPERATION = re.compile(rf"[\d)][ \t]*(?:\*\*|//|[-+*/%^÷~∙])[ \t]*[-+]?(?:[\d(.]|{FUNCTION})|{FUNCTION}[^)]*\d")
CERTAIN = re.compile(rf"[+*^÷~]|\)[ \t]*[-/%]|[-/%][ \t]*\(|{FUNCTION}")
NO_SUM = re.compile(
    r"^(?:\d{4}([-/.])\d{1,2}\1\d{1,2}|\d{1,2}([-/.])\d{1,2}\2\d{2,4}|\d{1,4}-\d{3,4}-\d{4}|0\d{2,3}-\d{7,8}|\d{3}-\d{4}|\d+(?:-\d+){3,}|0\d+[-/]\d+|24/7)$"
    r"|[\d)][ \t]+\d|\d[ \t]*\((?<![a-z0-9]\()|\)[ \t]*\d"
)
SUM_BEFORE = re.compile(
    r"(?:\bwhat(?:'s|’s|\s+is|\s+are)(?:\s+the)?(?:\s+(?:result|value|sum)(?:\s+of)?)?|\bhow much (?:is|are)|\b(?:calculate|compute|evaluate|solve|work out|do)|算一?下?|算算|计算(?:一下)?|求)[\s:：,]*$",
    re.IGNORECASE,
)
SUM_AFTER = re.compile(r"^\s*(?:=|等于|是多少|得多少|得几|是几|equals\b|makes\b)", re.IGNORECASE)
AROUND_SUM = re.compile(
    r"^\W*(?:please|请|请问)?[\s:：]*|[\s?？=。.!！]*(?:please|谢谢)?[\s?？=。.!！]*$", re.IGNORECASE
)
DOCUMENT = re.compile(
    r"\b(?:documents?|handbook|manual|polic(?:y|ies)|guide|paper|files?)\b|文档|手册|文件|资料|制度|规定|说明书",
    re.IGNORECASE,
)
THINGS = re.compile(
    r"https?://\S+|[\w.+-]+@[\w-]+\.\w+|(?:[A-Za-z]:)?[\\/][\w./\\-]+|\b[A-Za-z]+[-_]?\d[\w-]*\b|\b\d[\d.,:/-]*\d\b|[“\"《][^”\"》]{2,60}[”\"》]"
)
CITIES = {
    "北京|上海|深圳|广州|杭州|成都|中国|beijing|shenzhen|china": "Asia/Shanghai",
    "香港": "Asia/Hong_Kong",
    "台北|台湾|taiwan": "Asia/Taipei",
    "东京|日本|japan": "Asia/Tokyo",
    "首尔|韩国|korea": "Asia/Seoul",
    "新加坡": "Asia/Singapore",
    "悉尼": "Australia/Sydney",
    "莫斯科": "Europe/Moscow",
    "迪拜": "Asia/Dubai",
    "印度|新德里|delhi|mumbai|india": "Asia/Kolkata",
    "伦敦|英国|england|uk": "Europe/London",
    "巴黎|法国|france": "Europe/Paris",
    "柏林|德国|germany|munich|hamburg": "Europe/Berlin",
    "纽约|波士顿|boston|washington": "America/New_York",
    "洛杉矶|旧金山|西雅图|san francisco|seattle": "America/Los_Angeles",
}
NAME = re.compile(
    r"\b(?:[Mm]y name is|[Cc]all me)\s+(?P<en>(?!ASAP\b)[A-Z][\w'-]*(?:[ ]+[A-Z][\w'-]*){0,4})"
    r"|(?:我叫(?!了|不|外卖|车)|我的名字(?:是|叫))(?P<zh>[\u3400-\u9fff·]{1,8})(?=\W|$)"
)
ALLERGY = re.compile(
    r"\bI(?:'m|’m| am)(?: also| very| really| severely| deathly)? allergic to (?P<en>[\w\s,'-]{1,80}?)(?=[.!,;]|[ ]{1,9}and[ ]{1,9}I\b|$)"
    r"|我(?:也|还)?对(?P<zh>(?:(?!不|没)[\u3400-\u9fff、]){1,12}?)(?:严重|都|也)?过敏",
    re.IGNORECASE,
)
MATTERS = re.compile(
    r"^\W*(?:(?:for|about|on|in|with|when I ask (?:about|for)|when it comes to) (?P<about>[\w' -]{1,60}?),?\s+)?(?P<en>(?:what matters (?:most )?to me is (?:only )?|all I care about is |I (?:only|mostly|just) care about |I care (?:most|only) about |(?:please )?always (?:start|begin|lead) with )[\w' -]{1,60}"
    r"|only (?:the )?[\w' -]{1,60}? (?:matters?|counts?|interests?)(?: to| for)? me|(?:the )?[\w' -]{1,60}? (?:matters?|counts?) most(?: to me)?)"
    r"|^\W*(?:(?:查|看|问|关于|对于|说到)?(?P<zh_about>[\u3400-\u9fff]{1,12}?)(?:的时候|时|方面)?[，,]?)??(?P<zh>(?:对我来说)?(?:我|本人)?(?:只|最|主要|更)(?:关心|在意|在乎|看重)(?:的是)?[^，。！？,.!?]{1,40}|(?:对我来说)?[\u3400-\u9fff]{1,20}(?:对我)?最(?:重要|要紧))",
    re.IGNORECASE,
)
IDENTIFIER = re.compile(r"[A-Za-z]{0,8}[-_#]?\d[A-Za-z0-9_-]*")
FACT_WORDS = {"name": r"\bname\b|名字|叫什么|称呼|我是谁|who am i", "allergy": r"allerg|过敏|avoid eating|不能吃"}


def readable(text: str) -> str:
    """Return a text that the patterns read quickly: of a long one, its two ends."""
    return text if len(text) <= 2 * READ_CHARS else f"{text[:READ_CHARS]}\n{text[-READ_CHARS:]}"


def sentences(text: str) -> list[str]:
    """Cut a text into sentences, their end marks kept."""
    return [found.strip() for found in SENTENCE.findall(text) if found.strip()]


def is_question(text: str) -> bool:
    """Whether a sentence asks something."""
    return bool(ASKED.search(text.strip()))


def statements(text: str) -> list[str]:
    """Return what the user states about themselves: whole sentences, without "remember that"."""
    told = wanted_memory(text)
    if told:
        return [told]
    return [one for one in sentences(text) if is_statement(one)]


def is_statement(sentence: str) -> bool:
    """Whether a sentence says something about the user: no question, request or small talk."""
    said = APOLOGY.sub("", sentence)
    return bool(PERSONAL.search(said)) and not is_question(said) and not NO_STATEMENT.search(said)


def wanted_memory(text: str) -> str:
    """Return what the user asks to remember, empty if they do not ask."""
    text = text.strip()
    if found := REMEMBER.match(text):
        polite = found["polite"] or found["qing"] or found["bang"]
        told = (found["en"] or found["zh"]).strip()
        asks_back = ASKS_BACK.match(told) if found["en"] else ZH_ASKS_BACK.search(told)
        if is_question(text) and asks_back and not (polite and found["zh"]):
            return ""
        return capital(told.rstrip("?？ ") if polite else told)
    found = REMEMBER_LAST.search(text)
    return text[: found.start()].strip() if found else ""


def capital(text: str) -> str:
    """Write the first letter large."""
    return text[:1].upper() + text[1:]


def asked_sum(text: str) -> str:
    """Return the arithmetic expression in a text, empty if there is none; dates, codes, ranges and fractions are none."""
    text = spoken(unicodedata.normalize("NFKC", SUPERSCRIPT.sub(r"**\1", text)), SURE)
    loose = spoken(text, PERHAPS)
    asked = [one for one in map(expression, SUM.finditer(loose)) if one and is_asked(one, loose)]
    return max(asked, key=len, default="").replace("÷", "/").replace("~", "-").replace("∙", "*").replace("^", "**")


def spoken(text: str, words: dict[str, str]) -> str:
    """Write operations that are said in words with their signs."""
    for pattern, sign in words.items():
        text = re.sub(pattern, sign, text, flags=re.IGNORECASE)
    return text


def expression(found: re.Match[str]) -> str:
    """Return the longest piece of what looks like arithmetic that has an operation; empty if none has."""
    text = re.sub(r"(?<=\d),(?=\d{3}(?!\d))", "", found.group())
    pieces = [text] if "(" in text else text.split(",")
    pieces = [piece.rstrip(" \t.,(+-*/%^÷~∙_").strip() for piece in pieces]
    return max((piece for piece in pieces if OPERATION.search(piece) and not NO_SUM.search(piece)), key=len, default="")


def is_asked(sum_: str, text: str) -> bool:
    """Whether a text asks for this sum: it is all of the text, its signs are no date's or range's, or words ask."""
    if CERTAIN.search(sum_):
        return True
    plain = re.sub(r"(?<=\d),(?=\d{3}(?!\d))", "", text)
    before, _, after = plain.partition(sum_)
    return not AROUND_SUM.sub("", before + after) or bool(SUM_BEFORE.search(before) or SUM_AFTER.search(after))


def asked_zone(text: str) -> str | None:
    """Return the time zone asked for if the text asks for the time; UTC where no place is named; None if it does not ask."""
    if not TIME.search(text.strip()):
        return None
    lowered = text.casefold()
    known = {**CITIES, **zones()}
    named = (zone for city, zone in known.items() if re.search(rf"(?<![a-z])(?:{city})(?![a-z])", lowered))
    return next(named, "UTC")


@cache
def zones() -> dict[str, str]:
    """Return the time zones by their city, in small letters."""
    return {
        re.escape(zone.rsplit("/", 1)[-1].replace("_", " ").casefold()): zone
        for zone in sorted(available_timezones())
        if "/" in zone and not zone.startswith("Etc/")
    }


def facts_in(text: str) -> list[tuple[str, str]]:
    """Return (key, value) of what must never blur, from what the user states: their name, their allergies, what matters to them."""
    found = []
    for sentence in (one for one in sentences(text) if not is_question(one)):
        for key, pattern in (("name", NAME), ("allergy", ALLERGY)):
            found += [(key, (one["en"] or one["zh"]).strip()) for one in pattern.finditer(sentence)]
        found += filter(None, [what_matters(sentence)])
    return found


def what_matters(text: str) -> tuple[str, str] | None:
    """Return (about what, what matters) if the user says what counts for them, in their own words."""
    for sentence in sentences(text):
        if not is_question(sentence) and (found := MATTERS.search(sentence)):
            about, value = found["about"] or found["zh_about"], found["en"] or found["zh"]
            return (about or ("关心" if found["zh"] else "matters")).strip(), value.strip()
    return None


def names(texts: Sequence[str], thing: str) -> bool:
    """Whether one of the texts holds all words that name a thing."""
    wanted = set(query_terms(thing.replace("_", " ")))
    return any(wanted <= set(terms(text)) for text in texts)


def asks_for(question: str, key: str) -> bool:
    """Whether a question is about the fact with this key."""
    return bool(re.search(FACT_WORDS.get(key, re.escape(key)), question, re.IGNORECASE))


def things_in(text: str) -> list[str]:
    """Return the identifiers of a text: links, addresses, paths, codes, numbers, titles."""
    return [found.rstrip(".,;:") for found in THINGS.findall(text)]


def best_sentence(question: str, passages: Sequence[dict[str, Any]]) -> tuple[dict[str, Any], str]:
    """Return the sentence or row that shares most words with a question, and its passage; the first passages go first."""
    asked = set(query_terms(question))
    found = [(passage, one) for passage in passages for one in sentences_of(str(passage["text"]))]
    if not found:
        return passages[0], str(passages[0]["text"])[:MOST_QUOTED]
    passage, sentence = max(found, key=lambda pair: len(asked & set(terms(pair[1]))))
    return passage, sentence[:MOST_QUOTED]


def sentences_of(passage: str) -> list[str]:
    """Cut a passage into sentences and rows of tables, titles and the headers of tables left out."""
    found: list[str] = []
    for line in passage.splitlines():
        cells = [cell.strip() for cell in line.strip("| ").split("|")]
        if line.startswith("|") and not line.strip("|-: "):
            found = found[:-1]
        elif line.startswith("|"):
            found.append(" · ".join(cells))
        elif not line.lstrip().startswith(("#", "```")):
            found += sentences(line)
    return found

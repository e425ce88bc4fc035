"""What the rehearsal model understands: a few patterns of English and Chinese. No learning, no guessing beyond them."""

import re
from functools import cache
from zoneinfo import available_timezones

SENTENCE = re.compile(r"[^.!?。！？\n]+(?:\.(?=\S)[^.!?。！？\n]*)*[.!?。！？]*")
ASKED = re.compile(
    r"[?？]\s*$|^\s*(?:what|who|whom|whose|when|where|which|why|how|is|are|am|do|does|did|can|could|should|shall|will|would|may|have|has)\b"
    r"|什么|谁|哪|几点|几号|几个|怎么|怎样|多少|是否|为什么|何时|吗[。！]?\s*$|呢[。！]?\s*$",
    re.IGNORECASE,
)
PERSONAL = re.compile(r"\b(?:I|I'm|I’m|I've|I’ve|I'd|my|mine|we|we're|our|me|us)\b|我|咱|本人", re.IGNORECASE)
REMEMBER = re.compile(
    r"^\W*(?:please\s+|could you\s+|can you\s+)?(?:remember|note down|note|don't forget|keep in mind)(?:\s+that|\s*[:,])?\s+(?P<en>.+)$"
    r"|^\W*(?:请|麻烦)?(?:帮我|你)?(?:记住|记一下|记下来|记下|别忘了)[：:，,\s]*(?P<zh>.+)$",
    re.IGNORECASE | re.DOTALL,
)
REMEMBER_LAST = re.compile(
    r"^(?P<what>.+?)[,，。.;；]?\s*(?:please remember (?:that|this|it)|remember that|remember this|(?:请|麻烦)?(?:帮我)?记住|记一下)[.!。！]*\s*$",
    re.IGNORECASE | re.DOTALL,
)
TIME = re.compile(
    r"\bwhat(?:'s|’s| is)?\s+(?:the\s+)?(?:current\s+|exact\s+)?(?:time|date|day)\s*(?:is it|now|today|in\b|\?|$)|\bwhat time is it\b|\bcurrent time\b|\btoday's date\b|\bwhat day is (?:it|today)\b"
    r"|现在(?:是)?(?:几点|什么时间|的?时间)|^几点了|今天(?:是)?(?:几号|几月|星期几|周几|什么日子|的?日期)|当前时间",
    re.IGNORECASE,
)
SPOKEN = {
    r"\bplus\b|加上|加": "+",
    r"\bminus\b|减去|减": "-",
    r"\b(?:multiplied by|times)\b|乘以|乘": "*",
    r"\b(?:divided by|over)\b|除以": "/",
    r"\bto the power of\b|的?次方": "**",
    "×": "*",
    "÷": "/",
    "（": "(",
    "）": ")",
    "＋": "+",
    "－": "-",
}
SUM = re.compile(
    r"(?<![\w.-])(?:(?:sqrt|abs|round|log|exp)?\s*\(|-?\d[\d,_]*(?:\.\d+)?)[\d\s.,()+\-*/%^]*(?:sqrt|abs|round)?[\d\s.()+\-*/%^]*"
)
OPERATION = re.compile(r"\d\)?\s*(?:\*\*|//|[+*/%^]|(?<=\s)-(?=\s)|-(?=\d))\s*[(\d-]|sqrt\s*\(")
DATE_OR_CODE = re.compile(r"^\d{1,4}([-/])\d{1,2}\1\d{1,4}$|^\d[\d-]{6,}$|^\d+/\d+$")
THINGS = re.compile(
    r"https?://\S+|[\w.+-]+@[\w-]+\.\w+|(?:[A-Za-z]:)?[\\/][\w./\\-]+|\b[A-Za-z]+[-_]?\d[\w-]*\b|\b\d[\d.,:/-]*\d\b|[“\"《][^”\"》]{2,60}[”\"》]"
)
CITIES = {
    "北京": "Asia/Shanghai",
    "上海": "Asia/Shanghai",
    "香港": "Asia/Hong_Kong",
    "台北": "Asia/Taipei",
    "东京": "Asia/Tokyo",
    "首尔": "Asia/Seoul",
    "新加坡": "Asia/Singapore",
    "伦敦": "Europe/London",
    "巴黎": "Europe/Paris",
    "柏林": "Europe/Berlin",
    "纽约": "America/New_York",
    "洛杉矶": "America/Los_Angeles",
    "beijing": "Asia/Shanghai",
}
NAME = re.compile(
    r"\b(?:my name is|call me)\s+(?P<en>[A-Z][\w'-]*(?:\s+[A-Z][\w'-]*)*)|(?:我叫|我的名字(?:是|叫))(?P<zh>[\u3400-\u9fff·]{1,8})"
)
ALLERGY = re.compile(
    r"\ballergic to (?P<en>[\w\s,'-]+?)(?=[.!,;]|\s+and\s+I\b|$)|对(?P<zh>[\u3400-\u9fff、和]{1,12}?)过敏",
    re.IGNORECASE,
)


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
    return [one for one in sentences(text) if PERSONAL.search(one) and not is_question(one)]


def wanted_memory(text: str) -> str:
    """Return what the user asks to remember, empty if they do not ask."""
    if found := REMEMBER.match(text.strip()):
        told = found["en"] or found["zh"]
        return (
            ""
            if is_question(text) and told.lower().startswith(("what", "who", "when", "where", "how", "me"))
            else capital(told.strip())
        )
    found = REMEMBER_LAST.match(text.strip())
    return found["what"].strip() if found else ""


def capital(text: str) -> str:
    """Write the first letter large."""
    return text[:1].upper() + text[1:]


def asked_sum(text: str) -> str:
    """Return the arithmetic expression in a text, empty if there is none; dates, codes and fractions of words are none."""
    for spoken, sign in SPOKEN.items():
        text = re.sub(spoken, sign, text, flags=re.IGNORECASE)
    found = [one.group().strip().rstrip(".,").replace("^", "**") for one in SUM.finditer(text)]
    sums = [
        one
        for one in found
        if OPERATION.search(one) and (not DATE_OR_CODE.match(one) or one == text.strip(" ?？=").strip())
    ]
    return re.sub(r"(?<=\d),(?=\d{3}\b)", "", max(sums, key=len)) if sums else ""


def asked_zone(text: str) -> str | None:
    """Return the time zone asked for if the text asks for the time; UTC where no place is named; None if it does not ask."""
    if not TIME.search(text):
        return None
    lowered = text.casefold()
    named = [zone for city, zone in CITIES.items() if city in lowered] + [
        zone for city, zone in zones().items() if re.search(rf"\b{re.escape(city)}\b", lowered)
    ]
    return named[0] if named else "UTC"


@cache
def zones() -> dict[str, str]:
    """Return the time zones by their city, in small letters."""
    return {
        zone.rsplit("/", 1)[-1].replace("_", " ").casefold(): zone
        for zone in sorted(available_timezones())
        if "/" in zone and not zone.startswith("Etc/")
    }


def facts_in(text: str) -> list[tuple[str, str]]:
    """Return (key, value) of what must never blur: a name, an allergy."""
    found = []
    for key, pattern in (("name", NAME), ("allergy", ALLERGY)):
        found += [(key, (one["en"] or one["zh"]).strip()) for one in pattern.finditer(text)]
    return found


def things_in(text: str) -> list[str]:
    """Return the identifiers of a text: links, addresses, paths, codes, numbers, titles."""
    return [found.rstrip(".,;:") for found in THINGS.findall(text)]

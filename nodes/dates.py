"""Relative times made absolute: "last Friday" is worth nothing a month later. English and Chinese.

The resolved date stands in brackets behind the words, which stay as they were said. What can be resolved only by
guessing ("on Friday", "last summer", "soon", "two or three days ago") is left alone, and so is what has its date
already, and what only looks like a time: 说明天气 does not say 明天.
"""

import re
from collections.abc import Callable
from datetime import date, datetime, timedelta

DAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
ZH_DAYS = "一二三四五六日"
ONES = ["one", "two", "three", "four", "five", "six", "seven", "eight", "nine"]
TEENS = ["ten", "eleven", "twelve", "thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen"]
TENS = ["twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"]
NUMBERS = (
    {"a": 1, "an": 1}
    | {word: n for n, word in enumerate([*ONES, *TEENS], 1)}
    | {
        f"{ten}{link}{one}": 10 * n + m
        for n, ten in enumerate(TENS, 2)
        for m, one in enumerate(ONES, 1)
        for link in "- "
    }
    | {ten: 10 * n for n, ten in enumerate(TENS, 2)}
)
ZH_NUMBER = re.compile("(?:([一二两三四五六七八九])百零?)?(?:([一二三四五六七八九]?)(十))?([一二两三四五六七八九]?)")
ZH_DIGITS = "零一二三四五六七八九"
DIGITS = "[0-9０-９]{1,3}"
WHOLE = "".join(
    rf"(?<!{before})"
    for before in (r"[\d.,/–-]", "half ", "s and ", "r and ", "h and ", "k and ", "or ", "to ", "hundred ")
)
COUNT = rf"{WHOLE}(?P<n>{DIGITS}|{'|'.join(sorted(NUMBERS, key=len, reverse=True))})"
ZH_COUNT = (
    r"(?<![\d.,/第几零〇一二两三四五六七八九十百千万亿半多来])"
    r"(?P<more>[0-9零一二两三四五六七八九十]{1,4}个?(?:年|月|周|星期)零?)?"
    rf"(?P<n>{DIGITS}|[零一二两三四五六七八九十百]{{1,6}})"
)
"""A number of units: as many as it says, and no part of a larger number, a fraction or a guess."""

DAY = rf"(?P<day>{'|'.join(DAYS)}|(?-i:Mon|Tues?|Wed|Thu(?:rs?)?|Fri|Sat|Sun)\b\.?)"
DATED = re.compile(r"\s{0,2}[(（]\D{0,12}\d")
"""What stands behind words that have their date already."""

NAMED_DAYS = {
    r"(?:the )?day before yesterday": -2,
    r"yesterday|last night": -1,
    r"today|tonight|this (?:morning|afternoon|evening)": 0,
    r"(?<!the day after )tomorrow": 1,
    r"(?:the )?day after tomorrow": 2,
    "(?<!大)大前天": -3,
    "(?<![大目以之从提])前天(?!气)": -2,
    "昨天|昨日|昨晚|昨夜": -1,
    "(?<![至如])今天|今日|今晚|今早": 0,
    "(?<![说声证表发文聪])(?:明天|明日|明晚|明早)": 1,
    "(?<![大以之然今最随])后天(?![性养])": 2,
    "(?<!大)大后天": 3,
}

Rule = Callable[[re.Match[str], date], str]


def on(days: int) -> Rule:
    """Name a day by its distance."""
    return lambda found, today: (today + timedelta(days=days)).isoformat()


def weekday(found: re.Match[str], today: date) -> str:
    """Name a weekday: "last" is the one before today; "this" and "next" are of this week and the next, from Monday."""
    place = [day[:3] for day in DAYS].index(found["day"][:3].casefold())
    which = found["which"].casefold()
    if which == "last":
        return (today - timedelta(days=(today.weekday() - place - 1) % 7 + 1)).isoformat()
    return (monday(today) + timedelta(days=place + 7 * (which == "next"))).isoformat()


def zh_weekday(found: re.Match[str], today: date) -> str:
    """Name a weekday of another week, which in Chinese is always counted from Monday."""
    place = ZH_DAYS.index(found["day"].replace("天", "日"))
    return (monday(today) + timedelta(days=place + 7 * shift(found["which"]))).isoformat()


def whole(unit: str) -> Rule:
    """Name a week or weekend by its first day, a month or a year."""

    def rule(found: re.Match[str], today: date) -> str:
        n = shift(found["which"])
        if unit == "week":
            return f"{(monday(today) + timedelta(days=7 * n)).isoformat()}~"
        if unit == "weekend":
            return f"{(monday(today) + timedelta(days=7 * n + 5)).isoformat()}~"
        return months_from(today, n)[:7] if unit == "month" else str(today.year + n)

    return rule


def away(sign: int) -> Rule:
    """Name a day, month or year by a number of units from today."""

    def rule(found: re.Match[str], today: date) -> str:
        count = number(found["n"].casefold())
        if count is None or found.groupdict().get("more"):  # "a year and three months" is neither
            return ""
        n, unit = sign * count, found["unit"].casefold().lstrip("个")
        if unit[0] in "d天日":
            return (today + timedelta(days=n)).isoformat()
        if unit[0] in "w周星礼":
            return (today + timedelta(days=7 * n)).isoformat()
        return months_from(today, n)[:7] if unit[0] in "m月" else str(today.year + n)

    return rule


def number(text: str) -> int | None:
    """Read a whole number in digits or words; None for 三四, which is three or four."""
    if text.isdecimal():
        return int(text)
    if found := ZH_NUMBER.fullmatch(text):
        hundreds, tens, ten, ones = (part and part.replace("两", "二") for part in found.groups())
        values = [ZH_DIGITS.find(part or "零") for part in (hundreds, tens or (ten and "一"), ones)]
        return values[0] * 100 + values[1] * 10 + values[2]
    return NUMBERS.get(text)


def shift(which: str) -> int:
    """Return how many units a word goes back or on: 上上 is two back."""
    words = {"last": -1, "this": 0, "next": 1, "大前": -3, "去": -1, "前": -2, "今": 0, "明": 1, "后": 2, "大后": 3}
    return words[which.casefold()] if which.casefold() in words else which.count("下") - which.count("上")


def monday(day: date) -> date:
    """Return the first day of a week."""
    return day - timedelta(days=day.weekday())


def months_from(day: date, n: int) -> str:
    """Return the first day of a month so many months away."""
    years, month = divmod(day.year * 12 + day.month - 1 + n, 12)
    return f"{years:04}-{month + 1:02}-01"


EN_WHICH = r"(?<!the )(?<!of )(?<!every )(?P<which>last|this|next)\s+"
ZH_WHICH = r"(?<![晚早桌路线网世日书根基版])(?P<which>(?<!上)上{1,3}|(?<!下)下{1,3}|[这本])"
"""早上周会 and 日本月饼 name no week and no month."""

RULES: list[tuple[re.Pattern[str], Rule]] = [
    (re.compile(pattern, re.IGNORECASE | re.ASCII), rule)
    for pattern, rule in [
        *(
            (rf"\b(?:{words})\b(?!['’]s (?:youth|world))" if words.isascii() else words, on(n))
            for words, n in NAMED_DAYS.items()
        ),
        (rf"\b{EN_WHICH}{DAY}(?!\w| of\b)", weekday),
        (rf"\b{EN_WHICH}week\b(?! of\b)", whole("week")),
        (rf"\b{EN_WHICH}weekend\b(?! of\b)", whole("weekend")),
        (rf"\b{EN_WHICH}month\b(?! of\b)", whole("month")),
        (rf"\b{EN_WHICH}year\b(?! of\b)", whole("year")),
        (rf"\bin {COUNT} (?P<unit>day|week|month|year)s?(?:['’] time)?\b(?!['’]s)", away(1)),
        (rf"\b{COUNT} (?P<unit>day|week|month|year)s? from (?:now|today)\b", away(1)),
        (rf"\b{COUNT} (?P<unit>day|week|month|year)s? ago(?: today)?\b", away(-1)),
        (
            rf"{ZH_WHICH}一?个?(?:周|星期|礼拜)(?P<day>[一二三四五六日天])",
            zh_weekday,
        ),
        (
            rf"{ZH_WHICH}一?个?(?:周|星期|礼拜)(?![一二三四五六日天末])",
            whole("week"),
        ),
        (rf"{ZH_WHICH}一?个?周末", whole("weekend")),
        (rf"{ZH_WHICH}一?个?月(?![亮球饼光])", whole("month")),
        (r"(?<![大目以之从提过如说声证然最随])(?P<which>大[前后]|[去前今明后])年(?![龄轻])(?:的?今天)?", whole("year")),
        (rf"{ZH_COUNT}(?P<unit>天|周|个?星期|个?礼拜|个月|年)(?:以后|之后|后)", away(1)),
        (rf"{ZH_COUNT}(?P<unit>天|周|个?星期|个?礼拜|个月|年)(?:以前|之前|前)(?:的?今天)?", away(-1)),
    ]
]


def absolute(text: str, at: datetime) -> str:
    """Write behind each relative time of a text, said at a time, its date; all the rest stays as it is.

    A week stands as its first day and `~`, a month as 2026-05, a year as 2026. What comes out comes out the same again.
    """
    today = at.date()
    found: dict[int, tuple[re.Match[str], str]] = {}
    for pattern, rule in RULES:
        for match in pattern.finditer(text):
            known = found.get(match.end())
            if not DATED.match(text, match.end()) and (known is None or match.start() < known[0].start()):
                found[match.end()] = (match, told(match.group(), rule(match, today)))
    for end in sorted(found, reverse=True):
        text = f"{text[:end]}{found[end][1]}{text[end:]}"
    return absolute(text, at) if any(date for _, date in found.values()) else text  # a date may part two times


def told(words: str, when: str) -> str:
    """Put a date in the brackets of the words' script."""
    return "" if not when else f" ({when})" if words.isascii() else f"（{when}）"

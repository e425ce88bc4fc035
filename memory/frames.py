"""Frames: statements of which only one can hold at a time, such as a name or a home. The last one said then holds.

Deliberately few and narrow: the whole statement must be of the frame and about the user alone, so that nothing else is
lost with it. Everything else is contradicted only by who names what it replaces.
"""

import re
import unicodedata

MONTH = r"(?:January|February|March|April|May|June|July|August|September|October|November|December)"
OPENING = re.compile(
    r"^\W*(?:(?:sorry|apologies|my mistake|my bad|actually|correction|to correct myself|update|wait|no|oh|well|oops|sadly|i mean|by the way|抱歉|对不起|不好意思|不对|不是|等等|(?:我)?(?:刚才|之前)?(?:说|写|打|记)错了|(?:更正|纠正|更新|改)一?下?|其实|对了|换号了)[\s,，:：;；.。!！-]+)*",
    re.IGNORECASE,
)
CLOSING = rf"(?:[\s,，]*(?:now|instead|again|these days|at the moment|(?:since|in|as of|from) (?:{MONTH}(?: \d{{4}})?|\d{{4}})|last (?:week|month|year)|this (?:week|month|year)|了|[（(][\d\s~至年月日-]+[)）]|[.!。！]))*\s*"
WHO, WHOSE = r"(?:I|(?:the )?user)", r"(?:my|(?:the )?user[’']s)"
MOVED = (
    r"(?:(?: (?:now|currently|just|recently))? (?:lives?|moved|relocated)|(?:[’']ve| have| has)(?: (?:now|just|recently))? "
    r"(?:moved|relocated)|(?:[’']m| am| is)(?: (?:now|currently))? (?:living|based))"
)
ZH = r"(?:我|用户|本人)"
WHEN = r"(?:现在|目前|最近|刚刚?|已经|今年|去年|前年|昨天|今天|上个?月|上周|这个?月|[\d一二三四五六七八九十]+[年月](?:份|初|底|中旬)?|[（(][\d\s~至年月日-]+[)）])*"
NAME = r"(?:[A-Z][\w'’.-]*(?: [A-Z][\w'’.-]*){0,4}|(?!了|不|外卖|车|你|他|她|它|人|醒|我)[\u3400-\u9fff·]{2,8}(?<![来去走吃睡玩]))"
NO_PLACE = r"(?!(?:\w+ )*(?:Management|Marketing|Sales|Engineering|Finance|Operations|Research|Design|Development|Product|Team|Department|Linux|Windows|Mac|macOS|Python|Rust|Java|Excel|Slack|Teams|Notion|Outlook|Gmail|Android)\b)"
"""What people say they moved to that is none."""

PLACE = rf"(?:{NO_PLACE}(?:[A-Z][\w'’.-]*|am|upon|de|la|del)(?: (?:[A-Z][\w'’.-]*|am|upon|de|la|del))*(?:, [A-Z][\w'’.-]*(?: [A-Z][\w'’.-]*)?)?)"
ZH_PLACE = (
    r"(?:(?!一|这|那|哪|自己|[^和或与及]*[和或与及]|[一二三四五六七八九十]+[楼层号室]|.*(?:酒店|宾馆|旅馆|医院|学校|宿舍|公寓))"
    r"[\u3400-\u9fff]{2,12}?(?<![里间上下家楼层]))"
)
"""A town or the like; on the third floor, in a hotel or with one's parents one lives in a town as well."""

THINGS = {
    "phone": (
        r"(?:new |cell |mobile )?(?:phone|mobile|cell)(?: number)?|number",
        r"手机号码?|电话号码?|电话",
        r"\+?\d[\d\s()./-]{4,}",
    ),
    "email": (r"(?:new )?e-?mail(?: address)?", r"邮箱(?:地址)?|电子邮件", r"[^\s@]+@[^\s@]+"),
    "birthday": (r"birthday|date of birth", r"生日|出生日期", rf"(?:[^,，;；]*(?:\d|{MONTH})[^,，;；]*?)"),
    "age": (r"age", r"年龄", r"\d{1,3}岁?"),
    "native language": (
        r"(?:native|first) language|mother tongue",
        r"母语",
        r"(?:[A-Z]\w+|[\u3400-\u9fff]{1,5}[语话文])",
    ),
}
"""What everybody has one of, as a rule, by its names and the form of its value."""

PATTERNS = {
    "name": [
        rf"(?i:{WHOSE} (?:full |real )?name(?: is|[’']s)) {NAME}",
        rf"(?i:{WHO}(?: am| is|[’']m) (?:called|named)) {NAME}",
        rf"{ZH}(?:的名字(?:是|叫)|(?:改名)?叫(?:做)?){NAME}",
    ],
    "home": [
        rf"(?i:{WHO}{MOVED}(?: now)? (?:in|to)) {PLACE}",
        rf"{ZH}{WHEN}(?:家?住在?|家在|搬到了?|搬去了?|搬家到了?|定居在){ZH_PLACE}",
    ],
    **{
        thing: [
            rf"(?i:{WHOSE} (?:{name})(?: is|[’']s)(?: now)?) {value}",
            rf"{ZH}{WHEN}的?(?:{zh})(?:是|改成了?|换成了?)[:：]? ?{value}",
        ]
        for thing, (name, zh, value) in THINGS.items()
    },
}
PATTERNS["age"] += [
    rf"(?i:{WHO}(?: am| is|[’']m)(?: now)? \d{{1,3}} years old)",
    rf"{ZH}(?:今年|现在)?(?:已经)?\d{{1,3}}岁",
]
FRAMES = {frame: re.compile(f"(?:{'|'.join(patterns)}){CLOSING}") for frame, patterns in PATTERNS.items()}


def frame_of(statement: str) -> str:
    """Return the frame that all of a statement is in, empty if there is none."""
    text = OPENING.sub("", unicodedata.normalize("NFKC", statement).strip())
    return next((frame for frame, pattern in FRAMES.items() if pattern.fullmatch(text)), "")

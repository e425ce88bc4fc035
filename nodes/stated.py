"""What of a message its user states as so: no question, no supposition, nobody else's words, no pasted text.

Rules for the clear cases, on the safe side: what is dropped here is only not remembered unasked. Understanding the rest
is the extractor's task.
"""

import re

from nodes.grounds import denies

FENCED = re.compile(
    r"(```|~~~).*?(?:\1|\Z)|<(?P<tag>[a-z][\w-]*)(?:\s[^<>]*)?>.*?</(?P=tag)>", re.DOTALL | re.IGNORECASE
)
CITED = re.compile(r"^[ \t]*[>|].*$", re.MULTILINE)
HANDED = re.compile(
    r"^(?!.*\babout me\b)(?=.*(?:\b(?:summari[sz]e|translate|proofread|review|rewrite|paraphrase|explain|correct|check|read|analy[sz]e|here(?:['’]s| is| are)|below|following|forwarded|pasted?|e-?mail|letter|article|document|transcript|file|text|log|wrote|says|said)\b"
    r"|总结|概括|翻译|校对|润色|改写|解释|检查|看看|读一下|分析|以下|如下|下面|这封|这篇|这段|转发|粘贴|邮件|信件|文章|文档|文件|日志|写道|原文)).*[:：]\s*$",
    re.IGNORECASE,
)
"""A line that hands over a text: it asks for something to be done with it, or names it, and ends in a colon."""

HANDED_AT_ONCE = re.compile(
    r"((?:^|(?<=\w)(?=\W*[.!?。！？]))\W*(?:please |can you |could you |请|帮我|麻烦)*(?:summari[sz]e|translate|proofread|rewrite|paraphrase|correct|continue|(?:write|compose|tell) (?:me |us )?an?\b|role-?play|pretend|act as|总结|翻译|校对|润色|改写|续写|写一?[个篇首段封]|扮演)[^:：\n]{0,60}[:：]).+",
    re.IGNORECASE,
)

TOLD = re.compile(
    r"((?<!I )(?<!['’]ve )(?:\b(?:said|says|told (?:me|us|him|her|them)|wrote|writes|replied)\b|(?<!我)(?:说|写道|写|回答|告诉我))[^:：.!?。！？\n]{0,12}[:：]).+"
)
"""Speech behind a colon: "she told me: …"."""

SPOKEN_BY = re.compile(
    r"^[ \t]*(?P<when>[\[(]?\d{1,4}[-/.:]\d[-/.:\d ]{0,20}(?:AM|PM)?[\])]?[ \t]*[-–]?[ \t]*)?(?P<who>[A-Z][\w'’-]{0,20}(?: [A-Z][\w'’-]{0,20})?|[\u3400-\u9fff]{1,4})[:：][ \t]*\S.*$",
    re.MULTILINE,
)
MYSELF = frozenset(["Me", "I", "Myself", "本人", "我"])
"""A line of a talk: with its time, or one of several with other speakers."""

HEADER = re.compile(r"^(?:From|To|Cc|Sent|Date|Subject|发件人|收件人|抄送|时间|主题)[:：].*$", re.MULTILINE)
"""Two of these, and the rest is somebody's mail."""

QUOTED = re.compile(
    r"(?<!\d)\"[^\"\n]*\"|“[^”\n]*”|«[^»\n]*»|「[^」\n]*」|『[^』\n]*』|(?<!\w)['‘][^'’\n]{8,}['’](?!\w)"
)
REPORTED = re.compile(
    r"(?:\b(?:said|says?|saying|told|tells?|wrote|writes?|asked|asks?|claims?|claimed|thinks?|thought|replied|answered|shouted|quotes?|quoting)\b[^.!?]{0,30}"
    r"|(?:说|写|问|喊|回答|告诉|认为|觉得|回复|道)[^。！？]{0,8})\W*$",
    re.IGNORECASE,
)
SPEAKS = re.compile(r"\b(?:I|I['’]\w+|my|me|mine|we|our)\b|我|咱", re.IGNORECASE)
LONG_QUOTE = 60
MOST_CHARS = 8_000
"""Longer messages are hardly typed."""

SENTENCE = re.compile(r"(?<=[.!?;])\s+|(?<=[。！？；])|\n+")
CLAUSE = re.compile(r"(?<=[,，])\s*")
ASKS = re.compile(
    r"[?？]\W*$|[吗呢么]\W*$|什么|谁|哪[里个儿些]|怎么|怎样|多少|几[点号个]|是不是|有没有|能不能|可不可以"
    r"|^\W*(?:and |so |but )?(?:what|who|whom|whose|when|where|which|why|how|is|are|am|was|were|do|does|did|can|could|should|shall|will|would|may|have|has)\b",
    re.IGNORECASE,
)
REMEMBER = (
    r"(?:please |(?:can|could|will|would) you |I(?:['’]d| would) like you to )*"
    r"(?:remember|note|keep in mind|make a note|don['’]?t forget)(?: that|[:,])?\s+"
    r"|(?:请|麻烦|能不能|可不可以|能否|可以|能|帮我|你|再)*(?:记住|记下|记一下|别忘了?|不要忘)[，,:：]?"
)
"""What asks to remember the statement behind it."""

DECLARES = re.compile(
    rf"^\W*(?:and |but |so |由于|因为|那么?|可是|但是?)?(?:{REMEMBER})?(?:I\b|I['’]|my\b(?! \w+[?？])|we\b|our\b|我|咱)",
    re.IGNORECASE,
)
ASKS_TO_REMEMBER = re.compile(
    rf"^\W*(?:{REMEMBER})(?:(?:I|we)\b|(?:I|we)['’]|(?:my|our) \w+(?: \w+)? (?:is|are)\b|我(?!.*(?:什么|谁|哪|怎么|多少|几))|咱)",
    re.IGNORECASE,
)
SUPPOSES = re.compile(
    r"\b(?:if|unless|suppos(?:e|ing)|imagine|assum(?:e|ing)|in case|let['’]?s say|hypothetically|pretend)\b"
    r"|\b(?:role-?play|just (?:kidding|joking|a joke)|I['’]m (?:only |just )?(?:kidding|joking))\b"
    r"|如果|假如|假设|假使|要是|倘若|万一|若是|的话|设想|想象|假装|扮演|装作|开玩笑|逗你",
    re.IGNORECASE,
)
FOLLOWS = re.compile(r"\b(?:would|could|might)\b|\w['’]d\b|就|会|可能|可以", re.IGNORECASE)
PERHAPS = re.compile(
    r"\b(?:maybe|perhaps|might|possibly|I wish|if only|I dream(?:ed|t)?|not sure (?:if|whether)|could have|I doubt|(?:is|it['’]s|that['’]s) (?:false|untrue|not true|a lie)"
    r"|(?:almost|nearly) (?!always|never|every|all|any|no|as|the|an?)[a-z]\w+)\b"
    r"|怀疑|不是真的|是假的|差点|也许|或许|可能|说不定|不确定|不知道是不是|但愿|就好了|梦见",
    re.IGNORECASE,
)
FORGET = re.compile(
    r"\b(?:forget|delete|erase|remove|drop|discard|wipe|unlearn)\b|\b(?:don['’]?t|do not|stop|no longer) (?:want you to |need to )?(?:remember|keep|store|sav(?:e|ing)|remembering|keeping|storing)\b"
    r"|\b(?:oublie|olvida|borra|vergiss|lösche|esquece|dimentica|забудь|удали)\w*|忘れ|消して|削除|잊어|삭제"
    r"|忘掉|忘记|忘了|删掉|删除|删了|清除|抹掉|去掉|移除|(?:别|不要|不用|不必)再?(?:记|保存|留)",
    re.IGNORECASE,
)
PAST = re.compile(r"\b(?:used to|formerly|previously|back then)\b|以前|曾经?|从前|过去常", re.IGNORECASE)
WAS = re.compile(rf"{PAST.pattern}|\b(?:was|were|had|did|\w+ed)\b|过", re.IGNORECASE)
OTHERS = re.compile(
    r"\b(?:my|our) (?:\w+ )?(friend|wife|husband|partner|girlfriend|boyfriend|mother|mom|mum|father|dad|sister|brother|son|"
    r"daughter|child|uncle|aunt|cousin|niece|nephew|grand\w+|boss|colleague|neighbou?r|roommate|flatmate|teacher|doctor)s?\b"
    r"|我(?:们)?(?:的)?(朋友|妈妈?|母亲|爸爸?|父亲|爷爷|奶奶|外婆|外公|哥哥?|姐姐?|弟弟?|妹妹?|老婆|妻子|老公|丈夫|儿子|女儿|孩子|同事|老板|同学|室友|邻居|老师)",
    re.IGNORECASE,
)
NOT_TO_FORGET = re.compile(
    r"\b(?:(?:don['’]?t|do not|never|not) (?:you )?forget|I (?:always |often |sometimes )?forg[eo]t)\b|(?:别|不要|不能|没|勿)忘|我(?:总是?|老是?|常常?)?忘",
    re.IGNORECASE,
)


def stated(message: str, *, supposing: bool = False) -> list[str]:
    """Return the clauses of a message that its user states; with `supposing`, also what they only suppose."""
    clauses: list[str] = []
    for sentence in SENTENCE.split(QUOTED.sub(unquoted, own_words(message))):
        parts = [part for part in CLAUSE.split(sentence) if part.strip()]
        if ASKS.search(sentence) and not ASKS_TO_REMEMBER.search(sentence):
            parts = [part for part in parts[:-1] if DECLARES.search(part)]
        if not supposing and SUPPOSES.search(sentence):
            parts = [before_if for part in parts if (before_if := SUPPOSES.split(part)[0]).strip()]
            parts = [part for part in parts if not FOLLOWS.search(part)]
        clauses += [part for part in parts if not wants_forgotten(part) and (supposing or not PERHAPS.search(part))]
    return clauses


def own_words(message: str) -> str:
    """Return a message without the texts of others that its user pasted: fenced, cited, or handed over by a line.

    Of a long one only its ends can be the user's own.
    """
    if len(message) > MOST_CHARS:
        message = f"{message[: MOST_CHARS // 2]}\n{message[-MOST_CHARS // 2 :]}"
    message = CITED.sub("", FENCED.sub(" ", message))
    headers = list(HEADER.finditer(message))
    message = message[: headers[0].start()] if len(headers) > 1 else message
    speakers = {line["who"] for line in SPOKEN_BY.finditer(message)}
    is_talk = len(speakers) > 1 and bool(speakers & MYSELF)

    def own(line: re.Match[str]) -> str:
        return line.group() if line["who"] in MYSELF or not (line["when"] or is_talk) else ""

    lines = SPOKEN_BY.sub(own, message).split("\n")
    handed = next((n for n, line in enumerate(lines[:-1]) if HANDED.search(line.strip())), len(lines))
    return TOLD.sub(r"\1", HANDED_AT_ONCE.sub(r"\1", "\n".join(lines[: handed + 1])))


def says_other(clause: str, statement: str) -> bool:
    """Whether a clause denies what a statement says, speaks of the past, or of somebody else than the user."""
    about = {part for found in OTHERS.findall(clause) for part in found if part}
    is_mine = re.search(r"\bI\b|我(?!们)", OTHERS.sub("", clause))
    is_theirs = bool(about) and not is_mine and not any(one.casefold() in statement.casefold() for one in about)
    is_past = bool(PAST.search(clause)) and not WAS.search(statement)
    return denies(clause) != denies(statement) or is_past or is_theirs


def unquoted(quote: re.Match[str]) -> str:
    """Drop a quotation of somebody's words; a name or title in quotes stays."""
    words = quote.group()
    before = quote.string[max(quote.start() - 60, 0) : quote.start()]
    is_speech = SPEAKS.search(words) or len(words) > LONG_QUOTE or REPORTED.search(before)
    return " " if is_speech else words


def is_supposed(statement: str) -> bool:
    """Whether a statement itself says that it is only supposed."""
    return bool(SUPPOSES.search(statement) or PERHAPS.search(statement))


def wants_forgotten(text: str) -> bool:
    """Whether a text asks to forget something."""
    return bool(FORGET.search(NOT_TO_FORGET.sub(" ", text)))

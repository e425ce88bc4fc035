"""Whose words a text is made of: the user's own, or those of a document, a tool's result, a recalled memory.

A bag of words with a few hard rules, not an understanding: names, numbers, links and what only the others said must be
the user's; so must most of the rest, and its "not". Where it errs, it refuses, and quoting the user mends that.
"""

import re
import unicodedata
from collections.abc import Sequence

from memory.sameness import is_negated
from memory.words import telling_terms

LEAST_SHARE = 2 / 3
"""Part of the words of a text that the user must have said."""

MOST_NEW = 4
"""What else it may hold, however long it is: a word counts two, a Chinese character one."""

MOST_NAMED = 5

REPORTS = re.compile(
    r"\b(?:users?|please|now|currently|told|said|fl(?:y|ies|ying)|stud(?:y|ies|ied)|"
    r"(?:want|like|love|prefer|live|work|need|plan|mention|state|say|call|name|own|use|wish|go|know|speak|travel|move|visit|dislike|hate)(?:e?s|e?d|ing)?)\b"
    r"|用户|希望|被?称为|喜欢|想要|需要|计划|打算|住在|名字|名叫|表示|提到|要求|偏好|目前|现在|请|叫|说|是|有|在"
    r"|ユーザー|です|ます|사용자",
    re.IGNORECASE,
)
"""Words of a report on what somebody said; they carry nothing from anywhere."""

MONTH = (
    r"(?:jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?|oct(?:ober)?"
    r"|nov(?:ember)?|dec(?:ember)?)\b\.?"
)
DATE = re.compile(
    r"\d{4}-\d\d?-\d\d?|\d{4} ?年(?: ?\d\d? ?月)?(?: ?\d\d? ?[日号])?|\d\d? ?月 ?\d\d? ?[日号]"
    rf"|\b\d\d?(?:st|nd|rd|th)? {MONTH}(?:,? \d{{4}}\b)?|\b{MONTH} \d\d?(?:st|nd|rd|th)?\b(?:,? \d{{4}}\b)?"
    rf"|\b{MONTH} \d{{4}}\b|\b(?:mon|tues|wednes|thurs|fri|satur|sun)day\b|\b(?:19|20)\d\d\b",
    re.IGNORECASE,
)
"""A date is worked out from "next Friday": it need not be the user's, if nobody else said it either."""

SHORTEST = 3
"""A clause of fewer words is judged with the rest."""

UNSPACED = "\u0e00"
"""Thai, and all that comes after it: Chinese, Japanese, Korean."""

UNIT = re.compile(
    r"(?<![\w.,:/-])(?P<number>\d+(?:[.,]\d+)?)(?:st|nd|rd|th|(?P<unit>[a-z]{1,3}))(?![\w-])", re.IGNORECASE
)
"""A number written together with its unit, or as one of a row: 70kg is 70 kg, the 5th is 5."""

MUST_BE_SAID = re.compile(r"[\d@/\\.:]")
CLAUSE = re.compile(r"(?<=[.!?;,])\s+|[。！？；，\n]+")
REMINDER = re.compile(r"(?:don['’]?t|do not|never) forget|no problem|别忘|不要忘|不能忘|勿忘", re.IGNORECASE)


def objection(text: str, *, said: Sequence[str], read: Sequence[str]) -> str:
    """Say, for the model, why a text is not the user's own; empty if it is.

    `said` is what the user said, `read` what others did that the model has before it.
    """
    text, said, read = plain(text), [plain(one) for one in said], [plain(one) for one in read]
    theirs, ours = set(words_of("\n".join(read))), set(words_of("\n".join(said)))
    text = without_new_dates(text, said, read)
    words = words_of(text)
    strange = [
        one for one in words if one not in ours and (MUST_BE_SAID.search(one) or (one in theirs and len(one) > 1))
    ]
    if strange:
        return f"the user did not say {', '.join(map(repr, dict.fromkeys(strange[:MOST_NAMED])))}"
    new = [one for one in words if one not in ours]
    if len(words) - len(new) < LEAST_SHARE * len(words) or not words or weight(new) > MOST_NEW:
        return "too little of it is what the user said"
    if not all(is_backed(set(words_of(clause)), clause, ours, said) for clause in CLAUSE.split(text)):
        return "a part of it says other than the user did, with a 'not' or without one"
    return ""


def too_long_a_name(name: str, *, said: Sequence[str]) -> str:
    """Say, for the model, why a name is more than one: it may hold two words that the user did not say, or four
    characters of Chinese, and no link or number; empty if it is none.
    """
    ours = set(words_of("\n".join(map(plain, said))))
    new = [one for one in words_of(plain(name)) if one not in ours]
    is_long = weight(new) > MOST_NEW or any(map(MUST_BE_SAID.search, new))
    return f"{name!r} says too much for a name" if is_long else ""


def weight(words: Sequence[str]) -> int:
    """Count words twice and characters of scripts without spaces once; pairs of these are in the count already."""
    return sum(2 if min(one) < UNSPACED else len(one) == 1 for one in words)


def plain(text: str) -> str:
    """Fold width and compatibility forms, and drop what nobody sees, so that words look alike if they are."""
    folded = unicodedata.normalize("NFKC", text)
    return "".join(char for char in folded if unicodedata.category(char) != "Cf")


def words_of(text: str) -> list[str]:
    """List what a text tells: stems, single Chinese characters and pairs, and links, addresses and paths whole."""
    text = UNIT.sub(lambda found: f"{found['number']} {found['unit'] or ''}", text.replace("_", " "))
    terms = telling_terms(REPORTS.sub(" ", text))
    return [term for term in terms if term.isalnum() or re.search(r"[@/\\.:]", term)]


def without_new_dates(text: str, said: Sequence[str], read: Sequence[str]) -> str:
    """Take out the dates that nobody said."""
    known = "\n".join([*said, *read]).casefold()
    return DATE.sub(lambda found: found.group() if found.group().casefold() in known else " ", text)


def is_backed(words: set[str], clause: str, ours: set[str], said: Sequence[str]) -> bool:
    """Whether a clause is mostly the user's, unless it is a word or two, and denies only what the user denied."""
    shared = words & ours
    if len(words) >= SHORTEST and len(shared) < LEAST_SHARE * len(words):
        return False
    return not shared or same_sense(clause, words, said)


def same_sense(text: str, words: set[str], said: Sequence[str]) -> bool:
    """Whether the clause of the user that shares most with a text is negated if the text is, and only then."""
    clauses = [one for whole in said for one in CLAUSE.split(whole)]
    counts = [len(words & set(words_of(one))) for one in clauses]
    closest = [one for one, count in zip(clauses, counts, strict=True) if count == max(counts)]
    return any(denies(one) == denies(text) for one in closest)


def denies(text: str) -> bool:
    """Whether a text denies something; "don't forget" does not."""
    return is_negated(REMINDER.sub(" ", text))

"""When two statements say the same: judged by their words, never by likeness.

With the built-in embedder pairs that differ in one name, number or "not" have cosines of .73 to .99, pairs that say one
thing in other words .59 to .96 (tests/bench_memory.py): no threshold parts them. So two statements count as one if they
are the same words in the same order but for who speaks (I, the user), articles, endings, emphasis, case, width and
punctuation. Names keep their endings.
"""

import re
import unicodedata
from collections.abc import Sequence

CJK = r"\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af"
TOKEN = re.compile(
    rf"[!<>=]=|[{CJK}]|(?<!\w)[-\u2212]?\d(?:[\w.,:/@-]*[^\W{CJK}])?|[^\W{CJK}]+(?:[._@/-]+[^\W{CJK}]+)*|(?<=\w)'s\b|[^\w\s]"
)
"""A character, a number with its sign and unit, a word with what it is joined to, a possessive, or a sign."""
PUNCTUATION = frozenset(".,;:!\"'()[]{}-–—…`*、。·「」『』“”‘’《》【】~|¿¡؟،؛")
UNSEEN = dict.fromkeys([0xAD, 0x200B, 0x200E, 0x200F, *range(0x202A, 0x202F), *range(0x2060, 0x206A), 0xFEFF])
"""Signs that nobody sees; not those that join letters or make one sign of several."""

HIGHER = re.compile("(?<=[0-9０-９])(?=[⁰¹²³⁴⁵⁶⁷⁸⁹])")
PARTED = re.compile("(?<=[0-9０-９])(?=[¼-¾⅐-⅞])")
UNIT = re.compile(r"(?<=[0-9]) (?=(?:am|pm|kg|km|cm|mm|mg|ml)\b)", re.IGNORECASE)
"""Where a normal form would write 10³ as 103 and 1½ as 11⁄2, and where a unit stands apart or not."""

ALONE, END = r"(?<![\w@./-])", r"(?![\w@'-]|[./]\w)"
SPOKEN = (
    (re.compile("[’‘`]"), "'"),
    (re.compile(r"\b(I|it|he|she|that|there|we|you|they)'(m|s|re)\b", re.IGNORECASE), r"\1 is"),
    (re.compile(r"\b(I|you|we|they|he|she|it)'(ve|d|ll)\b", re.IGNORECASE), r"\1 \2"),
    (re.compile(r"\b(do|does|did|is|are|was|were|have|has|had|would|could|should)nt\b", re.IGNORECASE), r"\1 not"),
    (re.compile(r"\bcan(?:not|'t)\b", re.IGNORECASE), "can not"),
    (re.compile(r"\bwon't\b", re.IGNORECASE), "will not"),
    (re.compile(r"n't\b", re.IGNORECASE), " not"),
    (re.compile(rf"{ALONE}(?:(?:the |this )?user's|my){END}", re.IGNORECASE), " userʼs "),
    (re.compile(rf"{ALONE}(?:(?:the |this )?user|I|me){END}", re.IGNORECASE), " user "),
    (re.compile(r"用户|本人"), "我"),
    (re.compile(r"非常|真的|很"), ""),
)
DROPPED = frozenset(["a", "an", "the", "really", "very", "also", "too", "now", "currently", "please"])
FORMS = {"am": "is", "are": "is", "has": "have", "does": "do", "s": "'s", "ve": "have", "ll": "will"}
VERBS = re.compile(
    "likes|loves|lives|works|wants|needs|prefers|hates|dislikes|enjoys|plays|owns|uses|speaks|drinks|eats|drives|reads"
    "|studies|teaches|knows|plans|takes|wears|travels|visits",
    re.IGNORECASE,
)
"""With such a word a statement begins that leaves out of whom it speaks; written large there, it is no name."""
NEGATION = re.compile(
    r"\b(?:not|no|never|none|nobody|nothing|neither|nor|without|cannot|(?:do|does|did|is|are|was|were|have|has|had|would|could|should)nt|dislikes?|hates?|stopped|quit)\b|n[’']t\b"
    r"|(?<![差离])(?<!不得)不(?!起(?!床)|错|过|但|久|仅|只是|断|管|论|同|好意思|得不)|没(?!关系)|从未|并非|无法|讨厌|戒(?=了|掉|烟|酒)|(?<![特区级分告离性])别(?![人的墅名处针])",
    re.IGNORECASE,
)
SUBJECTS = ("user", "我")
WISHES = frozenset(
    word
    for line in (
        "prefer like want love enjoy favour favor favourite favorite choose ask rather always alway best would",
        "for at by in on of to is it its what when which that this user userʼs",
    )
    for word in line.split()
)
"""Words that make no difference to what a statement is about; "from", "without" and the like do."""


def canonical(text: str) -> str:
    """Return what makes a statement the same as another."""
    text = PARTED.sub(" ", HIGHER.sub("^", text.translate(UNSEEN)))
    text = UNIT.sub("", unicodedata.normalize("NFKC", text.lower() if " " in text and text.isupper() else text))
    for pattern, plain in SPOKEN:
        text = pattern.sub(plain, text)
    found = [token for token in TOKEN.findall(text) if token not in PUNCTUATION]
    kept = [token for n, token in enumerate(found) if token.casefold() not in DROPPED or is_named(token, n, found)]
    tokens = [folded(token.lower() if n == 0 and VERBS.fullmatch(token) else token) for n, token in enumerate(kept)]
    if len(tokens) > 1 and tokens[0] in SUBJECTS:
        tokens = tokens[1:]
    return " ".join(tokens) or text.casefold().strip()


def is_named(token: str, n: int, tokens: Sequence[str]) -> bool:
    """Whether what looks like an article is a name: vitamin A."""
    return n > 0 and (token == "A" or (token == "a" and n == len(tokens) - 1))


def gist(text: str) -> str:
    """Return what a statement is about, without what only says that it is liked or wished: "window seats" of many.

    It decides what need not be shown twice, never what is kept. Where two names stand, their order matters.
    """
    tokens = canonical(re.sub("喜欢|喜爱|偏好|偏爱|想要|总是", "", text)).split()
    kept = [token for token in tokens if token not in WISHES and folded(token) not in WISHES]
    names = re.findall(r"(?<=[\w,;] )[A-Z]\w+|^[A-Z]\w+ (?=\w+s )", text)
    return " ".join(kept if len(names) > 1 or re.search(f"[{CJK}]", text) else sorted(kept))


def is_negated(text: str) -> bool:
    """Whether a statement denies something."""
    return bool(NEGATION.search(text))


def folded(token: str) -> str:
    """Fold a word's case and its plural or third person; a word written large may be a name and keeps its ending."""
    lower = token.casefold()
    if token != lower or not token.isascii() or len(lower) < 4 or not lower.isalpha():
        return FORMS.get(lower, lower)
    lower = FORMS.get(lower, lower)
    if lower.endswith("ies"):
        return lower[:-3] + "y"
    if lower.endswith(("sses", "shes", "ches", "xes", "zes", "oes")):
        return lower[:-2]
    return lower[:-1] if lower.endswith("s") and not lower.endswith(("ss", "us", "is")) else lower


def wording(text: str) -> str:
    """Return a text without case, width, spacing and final punctuation: what makes it another wording."""
    return " ".join(unicodedata.normalize("NFKC", text).casefold().split()).rstrip(".。!！ ")

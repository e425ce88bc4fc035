"""Cleaning text at the border, once: what no encoder, database or terminal could carry.

It does not normalise, trim or translate: the rest of a text stays as it was written.
"""

import re
import unicodedata

CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")
DIRT = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ud800-\udfff]")
SMALLEST_INT, LARGEST_INT = -(2**63), 2**64 - 1
SENTENCE_END = re.compile(r"[。！？!?…]+[”’」』）)\"']*|\.(?=\s)|\n+")
SURROGATE = re.compile(r"[\ud800-\udfff]")
JOINER, MOST_JOINED = "\u200d", 32
FLAGS = frozenset(map(chr, range(0x1F1E6, 0x1F200)))
"""Two of these letters make a flag."""

SKIN_TONES = frozenset(map(chr, range(0x1F3FB, 0x1F400)))


def clean(text: str) -> str:
    """Join surrogate pairs, replace lone halves by U+FFFD, drop control characters but tab and line ends."""
    if not DIRT.search(text):
        return text
    if SURROGATE.search(text):
        text = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return CONTROL.sub("", text)


def is_bare(text: str) -> bool:
    """Whether a text shows nothing: it is empty, blank, or made of signs that nobody sees."""
    return all(char.isspace() or unicodedata.category(char) == "Cf" for char in text)


def within_sign(text: str, n: int) -> bool:
    """Whether the characters around a place are one to a reader: accents, skin tones, families, flags."""
    if not 0 < n < len(text):
        return False
    here, before = text[n], text[n - 1]
    start = text[max(n - MOST_JOINED, 0) : n]
    flags = len(start) - len(start.rstrip("".join(FLAGS)))
    return (
        unicodedata.category(here) in ("Mn", "Me", "Mc")
        or here == JOINER
        or before == JOINER
        or here in SKIN_TONES
        or (here in FLAGS and flags % 2 == 1)
        or (before == "\r" and here == "\n")
    )


def clean_all(value: object) -> object:
    """Clean every string inside nested dicts, lists and tuples; write numbers as any encoder takes them.

    Checkpoints hold no whole number of more than 64 bits, which models do write, and no scalar of NumPy's (B056, B057).
    """
    kind = type(value)
    if kind is str:
        return clean(value)  # type: ignore[arg-type]
    if value is None or kind is bool:
        return value
    if kind.__module__ == "numpy" and getattr(value, "shape", None) == ():
        value = value.item()  # type: ignore[attr-defined]  # a scalar of NumPy's, which memory/ need not import
    match value:
        case int() if not SMALLEST_INT <= value <= LARGEST_INT:
            return str(value)
        case str():
            return clean(value)
        case dict() | list() if not value:
            return value
        case dict():
            return {clean_all(key): clean_all(item) for key, item in value.items()}
        case list():
            return [clean_all(item) for item in value]
        case tuple() if type(value) is tuple:
            return tuple(clean_all(item) for item in value)
    return value


def is_chinese(text: str) -> bool:
    """Whether the text is written in Chinese: it holds Han characters and no kana."""
    han = len(re.findall(r"[\u3400-\u9fff]", text))
    kana = re.search(r"[\u3040-\u30ff]", text)
    return han > 0 and not kana


def cut(text: str, low: int, high: int) -> int:
    """Find where to cut in low..high: after the last sentence end, else after the last space, else `high`."""
    ends = [match.end() for match in SENTENCE_END.finditer(text, low, high)]
    if ends:
        return ends[-1]
    space = max(text.rfind(" ", low, high), text.rfind("\n", low, high))
    return space + 1 if space > low else high

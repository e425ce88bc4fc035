"""Finding a text within a text as a reader would, so that what is plainly there can be replaced.

Compared are NFC, with one kind of line end, and without blanks at the ends of lines; nothing else is normalised.
"""

import re
import unicodedata
from difflib import SequenceMatcher

from memory.text import clean, within_sign

LINE_END = re.compile("\r\n|[\r\x85\u2028\u2029]")
BLANKS = " \t\u00a0\u3000"
BLANK = f"[{BLANKS}]"

SOUGHT_CHARS = 500
"""Of a longer text the start is compared, to name what is closest to it."""

WHOLE_LINE_CHARS = 200
"""What is closest is shown with the rest of its lines, if they add at most this many characters."""


def uniform(text: str) -> str:
    """Return a text as it is kept and compared: cleaned, in NFC, with a line feed for every kind of line end."""
    return unicodedata.normalize("NFC", LINE_END.sub("\n", clean(text)))


def places(text: str, old: str) -> list[tuple[int, int]]:
    """Return start and end of every place at which `old` stands in `text`, overlapping ones too; both uniform.

    A letter with a mark on it is another letter, and a face in a family none, even where they are two characters.
    """
    if len("".join(old.split())) > len(text):
        return []
    found: dict[int, int] = {}
    for match in re.finditer(f"(?=({pattern_of(old)}))", text):
        start, end = match.span(1)
        if not within_sign(text, start) and not within_sign(text, end):
            found.setdefault(end, start)  # the blanks of a first line that is blank may be in it or not
    return sorted((start, end) for end, start in found.items())


def pattern_of(old: str) -> str:
    """Write a text as a pattern that does not care for blanks at the ends of lines."""
    if not old.strip(f"{BLANKS}\n"):
        return re.escape(old)
    lines = old.split("\n")
    bodies = [line.rstrip(BLANKS) for line in lines]
    trailing = lines[-1][len(bodies[-1]) :]
    tail = f"(?:{re.escape(trailing)}|{BLANK}*(?=\n|\\Z))" if trailing else ""
    if bodies[0] or len(lines) == 1:
        return f"{BLANK}*\n".join(map(re.escape, bodies)) + tail
    rest = f"{BLANK}*\n".join(map(re.escape, bodies[1:]))
    return f"(?:{re.escape(lines[0])})?\n{rest}{tail}"


def closest(text: str, old: str) -> str:
    """Return the part of `text` that is most like `old`, with the rest of its lines if they are short."""
    sought = old[:SOUGHT_CHARS]
    match = SequenceMatcher(None, text, sought, autojunk=False).find_longest_match()
    if not match.size:
        return ""
    start = max(match.a - match.b, 0)
    end = min(start + len(sought), len(text))
    line_start = text.rfind("\n", 0, start) + 1
    line_end = text.find("\n", end) if "\n" in text[end:] else len(text)
    if line_end - line_start <= end - start + WHOLE_LINE_CHARS:
        start, end = line_start, line_end
    return text[start:end]

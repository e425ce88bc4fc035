"""How a person at a terminal is told something in their language: English, or Chinese by graph/assets/chinese.json.

The English text is the key, as in gettext, with the same named values in braces; what is not there is said in English.
It prints nothing, and touches neither what a model reads nor what scripts read as JSON.
"""

import json
import re
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

TABLE = Path(__file__).with_name("assets") / "chinese.json"
PLACE = re.compile(r"{(\w+)[^}]*}")
FEW = 15
"""Letters by which a text that begins with a value is known."""


@dataclass(frozen=True)
class Say:
    """Says texts in one language: `en` or `zh`. A text that the table lacks stays English."""

    language: str = "en"

    def __call__(self, english: str, **values: object) -> str:
        """Write a text of the table with its values."""
        return self._form(english).format(**values)

    def many(self, number: int, one: str, more: str) -> str:
        """Count things; the table holds the singular."""
        return self._form(one if number == 1 or self.language != "en" else more).format(n=number)

    def joined(self, parts: Iterable[str]) -> str:
        """Write a list on one line."""
        return self(", ").join(parts)

    def told(self, text: str) -> str:
        """Write a text that was made in English elsewhere, such as an error's: the table knows it by its form."""
        if self.language == "en":
            return text
        for pattern, form in forms():
            if found := pattern.fullmatch(text):
                return form.format(**{name: self.told(value) for name, value in found.groupdict().items()})
        return text

    def _form(self, english: str) -> str:
        return english if self.language == "en" else chinese().get(english, english)


ENGLISH = Say()


def say_in(language: str) -> Say:
    """Return how to say things in a language on this console: in English where it cannot show the other."""
    try:
        "中文".encode(sys.stderr.encoding or "ascii")
    except (LookupError, UnicodeEncodeError):
        return ENGLISH
    return Say(language)


@cache
def chinese() -> dict[str, str]:
    """Return the table, from the English text to the Chinese one."""
    table: dict[str, str] = json.loads(TABLE.read_text(encoding="utf-8"))
    return table


@cache
def forms() -> list[tuple[re.Pattern[str], str]]:
    """Return the form of each English text as a pattern, with the Chinese; the ones with most words of their own first.

    A text that has few, and begins with a value, would fit what it is not: it is left out.
    """
    own = {english: len(re.sub(r"\W", "", PLACE.sub("", english))) for english in chinese()}
    keys = [english for english in own if own[english] >= (FEW if english.startswith("{") else 1)]
    return [(pattern_of(english), chinese()[english]) for english in sorted(keys, key=lambda one: -own[one])]


def pattern_of(english: str) -> re.Pattern[str]:
    """Write the pattern that a text fits, whatever its values; a value that comes twice is the same twice."""
    parts, pattern = PLACE.split(english), ""
    for n, part in enumerate(parts):
        if n % 2:
            pattern += f"(?P={part})" if part in parts[1:n:2] else f"(?P<{part}>.*)"
        else:
            pattern += re.escape(part)
    return re.compile(pattern, re.DOTALL)

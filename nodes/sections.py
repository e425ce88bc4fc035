"""Sections of the system message that share a room: each is written to fit its part of it.

A section is a function from tokens to its text within them, if that is possible; what it leaves out, it says.
"""

from collections.abc import Callable, Sequence

from nodes.summary import Summary, read_summary, shortened
from nodes.tokens import chars_within, text_tokens

Section = Callable[[int], str]

BOUNDLESS = 10**9
BETWEEN = 1
"""Tokens of the empty line between two sections."""


def fitted(sections: Sequence[Section], room: int) -> list[str]:
    """Write the sections within `room` tokens; what one does not need of an equal part goes to the others.

    That is max-min fairness: no section, however long, takes from one that is shorter.
    """
    texts = [section(BOUNDLESS) for section in sections]
    needs = [text_tokens(text) + BETWEEN for text in texts]
    for place, n in enumerate(sorted(range(len(texts)), key=needs.__getitem__)):
        share = max(room // (len(texts) - place), 0)
        if needs[n] > share:
            short = sections[n](share - BETWEEN)
            texts[n] = short if text_tokens(short) + BETWEEN <= share else ""
        room -= text_tokens(texts[n]) + BETWEEN
    return [text for text in texts if text]


def listed(head: str, lines: Sequence[str], more: str) -> Section:
    """Make a section of lines, the most important first; `more` tells with {count} how many have no room."""

    def within(tokens: int) -> str:
        whole = "\n".join([head, *lines])
        if text_tokens(whole) <= tokens:
            return whole
        kept = [head, more.format(count=len(lines))]
        tokens -= sum(text_tokens(f"\n{line}") for line in kept)
        for line in lines:
            if (size := text_tokens(f"\n{line}")) <= tokens:
                kept.insert(-1, line)
                tokens -= size
        return "\n".join([*kept[:-1], more.format(count=len(lines) - len(kept) + 2)])

    return within


def cut_short(text: str, more: str) -> Section:
    """Make a section of a text of which the start is shown; `more` tells with {count} how many characters are not."""

    def within(tokens: int) -> str:
        if text_tokens(text) <= tokens:
            return text
        end = chars_within(text, tokens - text_tokens(more.format(count=len(text))))
        return f"{text[:end]}{more.format(count=len(text) - end)}"

    return within


def summarized(head: str, text: str, foot: str) -> Section:
    """Make a section of the running summary: its oldest lines go first, open items last of all."""

    def within(tokens: int) -> str:
        whole = f"{head}\n{text}\n{foot}"
        if text_tokens(whole) <= tokens:
            return whole
        summary = read_summary(text) or Summary(sections=((), (text,), (), ()))
        return f"{head}\n{shortened(summary, tokens - text_tokens(f'{head}{foot}') - 1).text()}\n{foot}"

    return within

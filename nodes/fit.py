"""Making a prompt fit: what the model is shown is shortened, what is stored is not.

In this order, until it fits: single messages that are too large, with a pointer to the whole; the oldest turns before
the question; a question that leaves no room; earlier steps of the current turn, first shortened, then left out; its
newest step, which the model has just asked for, first shortened, then all but its first calls left out; the question
itself. Of the question something is always shown, and no call is shown without its result.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, ToolMessage

from nodes.quoting import as_json
from nodes.text import last_human, text_of
from nodes.tokens import PER_MESSAGE, chars_within, message_tokens, text_tokens

LARGE_SHARE = 4
"""A message over this part of the budget is shortened first: 4 is a quarter."""

QUESTION_SHARE = 2
"""A question over this part of the budget is shortened when the rest of its turn has no room: 2 is a half."""

SMALLEST = 64
"""Tokens to which any text can be shortened; the note takes most of them."""

FLOOR = 6 * SMALLEST
"""Tokens within which any list can be shown: a question, a text with one call and its arguments, and a result."""

NOTE = "\n[… {missing} characters are not shown here; tool_result(id={id!r}) reads them …]\n"
SHORT_NOTE = "\n[… {missing} characters are not shown here …]\n"
DROPPED = "[{count} earlier messages of this conversation are not shown here; session_search finds them.]"


@dataclass(frozen=True, kw_only=True)
class Fitted:
    """The messages that fit; how many were left out or shortened; the tokens `before` and after."""

    messages: list[AnyMessage]
    dropped: int
    shortened: int
    before: int
    tokens: int


def fit(messages: Sequence[AnyMessage], budget: int) -> Fitted:
    """Return a valid list as one of at most `budget` tokens by our estimate, or FLOOR if that is more."""
    page = Page(list(messages), budget)
    before = page.tokens()
    if before <= budget:
        return Fitted(messages=page.shown, dropped=0, shortened=0, before=before, tokens=before)
    large = budget // LARGE_SHARE
    newest = len(page.groups) - 1
    page.shorten_groups([n for n in range(newest + 1) if n != page.question], large)
    page.leave_out_turns()
    page.shorten_groups([page.question], budget // QUESTION_SHARE)
    for cap in halves(large):
        page.shorten_groups(range(page.question + 1, newest), cap)
    for n in range(page.question + 1, newest):
        page.groups[n] = [] if page.is_over() else page.groups[n]
    for cap in halves(large):
        page.shorten_groups(range(max(page.question + 1, newest), newest + 1), cap)
    page.leave_out_calls(newest)
    page.shorten_groups([page.question], budget - page.tokens(but_question=True))
    kept = [n for group in page.groups for n in group]
    shortened = sum(page.shown[n] is not page.given[n] for n in kept)
    return Fitted(
        messages=[page.shown[n] for n in kept],
        dropped=len(messages) - len(kept),
        shortened=shortened,
        before=before,
        tokens=page.tokens(),
    )


class Page:
    """A list in groups, each the places of a message, or of an answer with the results of its calls."""

    def __init__(self, messages: list[AnyMessage], budget: int) -> None:
        self.given, self.shown, self.budget = messages, [*messages], budget
        self.sizes = [message_tokens(message) for message in messages]
        self.groups: list[list[int]] = []
        for n, message in enumerate(messages):
            if isinstance(message, ToolMessage) and self.groups:
                self.groups[-1].append(n)
            else:
                self.groups.append([n])
        asked = last_human(messages)
        self.question = next((n for n, group in enumerate(self.groups) if asked in group), -1)

    def tokens(self, *, but_question: bool = False) -> int:
        """Estimate all that is left, or all but the question."""
        groups = [group for n, group in enumerate(self.groups) if not (but_question and n == self.question)]
        return sum(self.sizes[n] for group in groups for n in group)

    def is_over(self) -> bool:
        """Whether it does not fit yet."""
        return self.tokens() > self.budget

    def shorten_groups(self, numbers: Iterable[int], cap: int) -> None:
        """Show the messages of these groups with at most about `cap` tokens each."""
        if not self.is_over():
            return
        cap = max(cap, SMALLEST)
        for n in (n for number in numbers if number >= 0 for n in self.groups[number] if self.sizes[n] > cap):
            short = shorter(self.given[n], cap)
            if (size := message_tokens(short)) < self.sizes[n]:
                self.shown[n], self.sizes[n] = short, size

    def leave_out_turns(self) -> None:
        """Leave out the oldest turns, each whole: what stays begins as a turn does."""
        dropped = False
        for n in range(self.question):
            if not self.is_over() and (isinstance(self.given[self.groups[n][0]], HumanMessage) or not dropped):
                return
            self.groups[n], dropped = [], True

    def leave_out_calls(self, number: int) -> None:
        """Leave out the last calls of an answer with their results, one by one."""
        while self.is_over() and number >= 0 and len(self.groups[number]) > 2:
            first, result = self.groups[number][0], self.given[self.groups[number].pop()]
            answer = self.shown[first]
            assert isinstance(answer, AIMessage) and isinstance(result, ToolMessage)
            calls = [call for call in answer.tool_calls if call["id"] != result.tool_call_id]
            self.shown[first] = answer.model_copy(update={"tool_calls": calls})
            self.sizes[first] = message_tokens(self.shown[first])


def halves(cap: int) -> Iterator[int]:
    """Yield ever smaller caps down to the smallest."""
    while cap > SMALLEST:
        cap = max(cap // 2, SMALLEST)
        yield cap


def shorter(message: AnyMessage, cap: int) -> AnyMessage:
    """Return a message with about `cap` tokens, it having more: a note in its text tells how to read the whole."""
    update: dict[str, Any] = {"content": shortened_text(message, cap)}
    if isinstance(message, AIMessage) and message.tool_calls:
        share = max(cap // (2 * len(message.tool_calls)), SMALLEST // 4)
        update["tool_calls"] = [{**call, "args": shortened_args(call["args"], share)} for call in message.tool_calls]
    return message.model_copy(update=update)


def shortened_text(message: AnyMessage, cap: int) -> str:
    """Return head and tail of a message's text, and between them how to read the whole; media stand as `[image]`."""
    text = text_of(message)
    cap -= PER_MESSAGE
    if text_tokens(text) <= cap:
        return text
    note = NOTE if text_tokens(NOTE.format(missing=len(text), id=message.id)) < cap else SHORT_NOTE
    room = cap - text_tokens(note.format(missing=len(text), id=message.id))
    head, tail = chars_within(text, room * 3 // 4), chars_within(text[::-1], room // 4)
    note = note.format(missing=len(text) - head - tail, id=message.id)
    return f"{text[:head]}{note}{text[len(text) - tail :]}"


def shortened_args(args: dict[str, Any], cap: int) -> dict[str, Any]:
    """Return a call's arguments with the long ones cut and the last left out, so that they have about `cap` tokens."""
    if text_tokens(as_json(args)) <= cap:
        return args
    kept: dict[str, Any] = {}
    for key, value in args.items():
        text = value if isinstance(value, str) else as_json(value)
        fits = text_tokens(text) <= cap // len(args)
        kept[key] = value if fits else f"{text[: chars_within(text, cap // len(args))]}…"
        if text_tokens(as_json(kept)) > 2 * cap:  # its names alone are too long
            del kept[key]
            break
    return kept

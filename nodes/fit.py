"""Making a prompt fit: what the model is shown is shortened, what is stored is not.

In this order, until it fits: single messages that are too large, with a pointer to the whole; the oldest groups
before the question; results within the current turn; the oldest groups of the turn; the question itself. Of the
question something is always shown, and no call is shown without its result.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from langchain_core.messages import AnyMessage, ToolMessage

from nodes.text import last_human, text_of
from nodes.tokens import message_tokens

LARGE_SHARE = 4
"""A message over this part of the budget is shortened first: 4 is a quarter."""

SMALLEST = 64
NOTE = "\n[… {missing} characters are not shown here; {how} …]\n"
HOW_RESULT = "tool_result(id={id!r}) shows them"
HOW_SAID = "session_search finds them"
DROPPED = "[{count} earlier messages of this conversation are not shown here; session_search finds them.]"


@dataclass(frozen=True, kw_only=True)
class Fitted:
    """The messages that fit, the tokens before and after; how many were left out, and how many shortened."""

    messages: list[AnyMessage]
    before: int
    tokens: int
    dropped: int = 0
    shortened: int = 0


def fit(messages: Sequence[AnyMessage], budget: int) -> Fitted:
    """Return a valid list as one of at most `budget` tokens by our estimate, as far as the question allows."""
    page = Page(list(messages), budget)
    before = page.tokens
    page.shorten_to(budget // LARGE_SHARE, of_turn=False)
    page.drop_before_question()
    cap = budget // LARGE_SHARE
    while page.is_over() and cap > SMALLEST:
        cap //= 2
        page.shorten_to(cap, of_turn=True)
    page.drop_within_turn()
    page.shorten_question()
    kept = [group for group in page.groups if group]
    return Fitted(
        messages=[m for group in kept for m in group],
        before=before,
        tokens=page.tokens,
        dropped=page.dropped,
        shortened=page.shortened,
    )


class Page:
    """The groups of a list: a message, or an answer with the results of its calls."""

    def __init__(self, messages: list[AnyMessage], budget: int) -> None:
        self.budget = budget
        self.groups: list[list[AnyMessage]] = []
        for message in messages:
            if isinstance(message, ToolMessage) and self.groups:
                self.groups[-1].append(message)
            else:
                self.groups.append([message])
        flat = last_human(messages)
        self.question = next((n for n, group in enumerate(self.groups) if flat >= 0 and group[0] is messages[flat]), -1)
        self.dropped = self.shortened = 0
        self.tokens = sum(map(message_tokens, messages))

    def is_over(self) -> bool:
        """Whether it does not fit yet."""
        return self.tokens > self.budget

    def shorten_to(self, cap: int, *, of_turn: bool) -> None:
        """Shorten messages of more than `cap` tokens but the question; only those of the current turn if asked."""
        if not self.is_over():
            return
        for n, group in enumerate(self.groups):
            if n != self.question and (n > self.question or not of_turn):
                group[:] = [self.shorter(message, cap) for message in group]

    def shorter(self, message: AnyMessage, cap: int) -> AnyMessage:
        """Return a message within the cap: head and tail of its text, and where the rest is."""
        tokens, text = message_tokens(message), text_of(message)
        if tokens <= cap or not text:
            return message
        room = max(len(text) * max(cap, 1) // tokens - len(NOTE) - 60, 0)
        if room >= len(text):
            return message
        how = HOW_RESULT.format(id=message.tool_call_id) if isinstance(message, ToolMessage) else HOW_SAID
        head, tail = text[: room * 3 // 4], text[len(text) - room // 4 :]
        self.shortened += 1
        note = NOTE.format(missing=len(text) - len(head) - len(tail), how=how)
        made = message.model_copy(update={"content": f"{head}{note}{tail}"})
        self.tokens += message_tokens(made) - tokens
        return made

    def drop_before_question(self) -> None:
        """Leave out the oldest groups of earlier turns."""
        for n in range(self.question):
            if not self.is_over():
                return
            self.leave_out(n)

    def drop_within_turn(self) -> None:
        """Leave out the oldest groups of the current turn, but not the newest."""
        for n in range(self.question + 1, len(self.groups) - 1):
            if not self.is_over():
                return
            self.leave_out(n)

    def leave_out(self, n: int) -> None:
        """Empty one group."""
        self.dropped += len(self.groups[n])
        self.tokens -= sum(map(message_tokens, self.groups[n]))
        self.groups[n] = []

    def shorten_question(self) -> None:
        """Show only head and tail of a question that alone is too large."""
        if self.is_over() and self.question >= 0:
            others = self.tokens - sum(map(message_tokens, self.groups[self.question]))
            cap = max(self.budget - others, SMALLEST)
            self.groups[self.question] = [self.shorter(message, cap) for message in self.groups[self.question]]

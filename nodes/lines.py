"""Messages as JSON lines for the requests of the housekeeping: all that they hold, in words, in pieces of a size."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TypeVar

from langchain_core.messages import AIMessage, AnyMessage

from nodes.media import in_words
from nodes.quoting import as_json
from nodes.tokens import newest_within, pieces, text_tokens

T = TypeVar("T")

ID_CHARS = 100
"""Characters of a message's id that are shown; a provider's have some forty."""


def lines_of(messages: Iterable[AnyMessage], *, longest: int = 1_000_000) -> list[str]:
    """Write messages and their calls as JSON lines of at most `longest` tokens; what is longer goes in several.

    A call whose arguments were broken is shown with what the model wrote.
    """
    return [
        line
        for message in messages
        for role, text in said_in(message)
        for line in written(message, role, text, longest)
    ]


def said_in(message: AnyMessage) -> Iterator[tuple[str, str]]:
    """Yield (role, text) of a message and of each of its calls."""
    yield message.type, in_words(message)
    if isinstance(message, AIMessage):
        for call in [*message.tool_calls, *message.invalid_tool_calls]:
            args = call["args"]
            yield "call", f"{call['name']} {args if isinstance(args, str) else as_json(args)}"


def written(message: AnyMessage, role: str, text: str, longest: int) -> Iterator[str]:
    """Yield one text as lines."""
    shown = {"id": message.id and message.id[:ID_CHARS], "role": role}
    room = max(longest - json_tokens({**shown, "text": ""}), 1)
    for piece in pieces(text, room, cost=json_tokens):
        yield as_json({**shown, "text": piece})


def json_tokens(value: object) -> int:
    """Estimate the tokens of a value as JSON, in which quotes, line ends and marks of roles take more room."""
    return text_tokens(as_json(value))


def in_parts(lines: Iterable[T], limit: int, *, cost: Callable[[T], int]) -> list[list[T]]:
    """Part lines in their order into groups that cost at most `limit`, or of one line that costs more."""
    parts: list[list[T]] = []
    room = 0
    for line in lines:
        room -= (tokens := cost(line))
        if parts and room >= 0:
            parts[-1].append(line)
        else:
            parts.append([line])
            room = limit - tokens
    return parts


def line_tokens(line: str) -> int:
    """Estimate the tokens of a line with its end."""
    return text_tokens(line) + 1


def newest_lines(lines: Sequence[str], limit: int) -> list[str]:
    """Return the newest lines that together have at most `limit` tokens."""
    return [*lines[len(lines) - newest_within(lines, limit, cost=line_tokens) :]]

"""Messages as JSON lines for the requests of the housekeeping: all that they hold, in words, in pieces of a size."""

from collections.abc import Iterable, Iterator, Sequence

from langchain_core.messages import AIMessage, AnyMessage

from nodes.media import in_words
from nodes.quoting import as_json
from nodes.tokens import pieces, text_tokens

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


def in_parts(lines: Iterable[str], limit: int) -> list[str]:
    """Join lines to parts of at most `limit` tokens, or of one line that is longer."""
    parts: list[str] = []
    room = 0
    for line in lines:
        tokens = text_tokens(line) + 1
        if parts and tokens <= room:
            parts[-1] += f"\n{line}"
            room -= tokens
        else:
            parts.append(line)
            room = limit - tokens
    return parts


def newest_lines(lines: Sequence[str], limit: int) -> list[str]:
    """Return the newest lines that together have at most `limit` tokens."""
    kept: list[str] = []
    for line in reversed(lines):
        limit -= text_tokens(line) + 1
        if limit < 0:
            break
        kept.insert(0, line)
    return kept

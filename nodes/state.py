"""The state of a thread: what the checkpointer keeps. Only plain values and messages; no secrets, no live objects."""

from typing import (
    Annotated,
    Any,
    Literal,
    NotRequired,  # pydantic, and so Studio, cannot read typing's before 3.12
    cast,
)
from uuid import uuid4

from langchain_core.messages import AIMessage, AnyMessage, BaseMessage, RemoveMessage, convert_to_messages
from langgraph.graph.message import REMOVE_ALL_MESSAGES, add_messages
from langgraph.managed import RemainingSteps
from typing_extensions import TypedDict

from memory.text import clean_all
from nodes.collect import judged
from nodes.trace import RecalledMemory, RecalledPassage, Step
from nodes.whole import draft_of

StopReason = Literal[
    "answered",
    "cut_off",
    "max_steps",
    "stuck",
    "empty_answer",
    "broken_calls",
    "empty_question",
    "model_error",
    "closed",
]


class Recalled(TypedDict):
    """What recall found. `nothing` and `failed` are different: `error` says why a search failed.

    `status` speaks of memory, `documents` of the search in documents.
    """

    status: Literal["found", "nothing", "failed", "off"]
    memories: list[RecalledMemory]
    facts: list[tuple[str, str]]
    passages: list[RecalledPassage]
    documents: Literal["found", "nothing", "failed", "off"]
    error: str


def add_clean_messages(old: list[AnyMessage], new: Any) -> list[AnyMessage]:
    """Merge messages by id as `add_messages` does, after cleaning the border's dirt from what comes in.

    Control characters and lone surrogates never enter the state (B040, B060); a removal of a message that is not
    there is no error (B007); every message gets an id.
    """
    incoming = [clean_message(message) for message in convert_to_messages(list(map(readable, listed(new))))]
    restart = max((n for n, m in enumerate(incoming) if is_removal(m) and m.id == REMOVE_ALL_MESSAGES), default=-1)
    if restart >= 0:
        old, incoming = [], incoming[restart + 1 :]
    known = {message.id for message in old}
    kept = []
    for message in incoming:
        if message.id in known or not is_removal(message):
            known.add(message.id)
            kept.append(message)
    return cast(list[AnyMessage], add_messages(cast(Any, list(old)), cast(Any, kept)))


def listed(new: Any) -> list[Any]:
    """Return what came in as a list of messages: `(role, text)` is one message, a tuple of messages is several."""
    if isinstance(new, tuple) and not any(isinstance(part, str) for part in new):
        return list(new)
    return new if isinstance(new, list) else [new]


def readable(message: Any) -> Any:
    """Return an answer in OpenAI's form as a message; LangChain fails on one with a call that was cut off (B031)."""
    is_answer = isinstance(message, dict) and (message.get("role") or message.get("type")) in ("assistant", "ai")
    calls = message.get("tool_calls") if is_answer else None
    if not calls or not all(isinstance(call, dict) and isinstance(call.get("function"), dict) for call in calls):
        return message
    made, broken = judged([draft_of(call) for call in calls], cut=False, ended=True)
    rest = {
        name: value for name, value in message.items() if name not in ("role", "type", "content", "tool_calls", "id")
    }
    text, id = message.get("content") or "", message.get("id")
    return AIMessage(text, id=id, tool_calls=made, invalid_tool_calls=broken, additional_kwargs=rest)


def is_removal(message: BaseMessage) -> bool:
    """Whether this is a deletion marker, not something that was said."""
    return isinstance(message, RemoveMessage)


def clean_message(message: BaseMessage) -> BaseMessage:
    """Return the message without control characters and lone surrogates, and with an id."""
    update = {}
    for name in CLEANED:
        value = getattr(message, name, None)
        if value is not None and (made := clean_all(value)) is not value and made != value:
            update[name] = made
    if not update.get("id", message.id) and not is_removal(message):
        update["id"] = str(uuid4())
    return message.model_copy(update=update) if update else message


CLEANED = (
    "id",
    "name",
    "content",
    "tool_calls",
    "invalid_tool_calls",
    "tool_call_id",
    "additional_kwargs",
    "response_metadata",
    "artifact",
)


def add_steps(old: list[Step], new: list[Step]) -> list[Step]:
    """Append to the turn's steps; recall, the first node of a turn, starts them anew."""
    return new if new and new[0]["node"] == "recall" else old + new


class Input(TypedDict):
    """What a caller gives: the new messages of the turn."""

    messages: Annotated[list[AnyMessage], add_clean_messages]

    close: NotRequired[bool]
    """Whether the conversation ends with this input: the rest is filed, an abstract goes into the catalogue."""


class State(Input):
    """What a thread holds between turns."""

    owner: NotRequired[str]
    """Whose thread this is: the user of its first turn; no other user may go on with it."""

    summary: NotRequired[str]
    """The running summary of what left `messages`; four sections, replaced at each compaction."""

    recalled: NotRequired[Recalled]
    """What long-term memory holds on the current question; replaced at each turn."""

    extracted_to: NotRequired[str]
    """Id of the newest user message from which memories were extracted; nothing is extracted twice."""

    page_tokens: NotRequired[int]
    """Estimate of the prompt that the whole page would need, as of the last model call."""

    token_ratio: NotRequired[float]
    """Tokens that the provider counted for one of our estimate; 1 until it reports."""

    cut_tried: NotRequired[bool]
    """Whether the page was cut, or could not be, in the current turn."""

    stop_reason: NotRequired[StopReason]
    """How the turn ended; `answered` when all went well. Empty while it runs."""

    steps: Annotated[list[Step], add_steps]
    """The steps of the current turn, in order; emptied when the next one starts."""

    remaining_steps: NotRequired[RemainingSteps]
    """Not stored: how far the run is from LangGraph's `recursion_limit`."""

"""ScriptedModel: a chat model for tests that says what its script says, and fails on a missing or an unused step."""

import json
from collections.abc import Callable, Iterator, Sequence
from threading import Lock
from types import TracebackType
from typing import Any, Self

from langchain_core.callbacks import CallbackManagerForLLMRun
from langchain_core.language_models import BaseChatModel, LanguageModelInput
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage, ToolCall
from langchain_core.messages.tool import tool_call_chunk
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from langchain_core.runnables import Runnable
from pydantic import PrivateAttr

from nodes.contract import tool_name

Step = str | AIMessage | dict[str, Any] | list[dict[str, Any]] | Exception | Callable[..., Any]
"""A text; a message; a call `{"name", "args"}` or several; an error to raise; or a function of (messages, tools)."""


class ScriptError(AssertionError):
    """The graph asked for more or fewer answers than the script has."""


class ScriptedModel(BaseChatModel):
    """Answers with its steps in order. `calls` records every (messages, tool names) that it was given.

    Use it as a context manager, or call `finish()`, to fail on steps that nobody asked for.
    """

    _steps: list[Step] = PrivateAttr()
    _calls: list[tuple[list[BaseMessage], list[str]]] = PrivateAttr(default_factory=list)
    _lock: Lock = PrivateAttr(default_factory=Lock)
    _missing: ScriptError | None = PrivateAttr(default=None)

    def __init__(self, steps: Sequence[Step]) -> None:
        super().__init__()
        self._steps = list(steps)

    @property
    def calls(self) -> list[tuple[list[BaseMessage], list[str]]]:
        """Every (messages, tool names) given so far, oldest first."""
        return self._calls

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def bind_tools(self, tools: Sequence[Any], **kwargs: Any) -> Runnable[LanguageModelInput, AIMessage]:
        """Record the tools with each call, as the real one would send them."""
        return self.bind(tools=[tool_name(tool) for tool in tools], **kwargs)

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        return ChatResult(generations=[ChatGeneration(message=self._next(messages, kwargs.get("tools", [])))])

    def _stream(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> Iterator[ChatGenerationChunk]:
        for piece in pieces_of(self._next(messages, kwargs.get("tools", []))):
            chunk = ChatGenerationChunk(message=piece)
            if run_manager:
                run_manager.on_llm_new_token(str(piece.content), chunk=chunk)
            yield chunk

    def _next(self, messages: list[BaseMessage], tools: list[str]) -> AIMessage:
        with self._lock:
            self._calls.append((list(messages), list(tools)))
            if not self._steps:
                self._missing = ScriptError(
                    f"the script has no step for call {len(self._calls)}; the last message was {messages[-1].text!r}"
                )
                raise self._missing
            step = self._steps.pop(0)
        return message_of(step, messages, tools, call=len(self._calls))

    def finish(self) -> None:
        """Raise ScriptError if a step was missing, which the graph turns into an answer, or was not used."""
        if self._missing:
            raise self._missing
        if self._steps:
            raise ScriptError(f"{len(self._steps)} steps of the script were not used; the next is {self._steps[0]!r}")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            self.finish()


def message_of(step: Step, messages: list[BaseMessage], tools: list[str], *, call: int) -> AIMessage:
    """Make the message that a step means."""
    match step:
        case AIMessage():
            return step
        case str():
            return AIMessage(step)
        case Exception():
            raise step
        case dict():
            return message_of([step], messages, tools, call=call)
        case list():
            calls = [
                ToolCall(name=one["name"], args=one.get("args", {}), id=one.get("id", f"call-{call}-{n}"))
                for n, one in enumerate(step)
            ]
            return AIMessage("", tool_calls=calls)
    return message_of(step(messages, tools), messages, tools, call=call)


def pieces_of(message: AIMessage) -> Iterator[AIMessageChunk]:
    """Cut a message into chunks as a server streams it: text in words, the arguments of calls as text."""
    words: list[Any] = message.content.split(" ") if isinstance(message.content, str) else [message.content]
    for n, word in enumerate(words):
        last = n == len(words) - 1
        yield AIMessageChunk(content=f"{word} " if isinstance(word, str) and not last else word, id=message.id)
    raw: list[tuple[str | None, str | None, str | None]] = [
        (call["name"], json.dumps(call["args"]), call["id"]) for call in message.tool_calls
    ]
    raw += [(call["name"], call["args"], call["id"]) for call in message.invalid_tool_calls]
    chunks = [tool_call_chunk(name=name, args=args, id=call_id, index=n) for n, (name, args, call_id) in enumerate(raw)]
    yield AIMessageChunk(
        content="",
        tool_call_chunks=chunks,
        usage_metadata=message.usage_metadata,
        response_metadata=message.response_metadata,
        additional_kwargs=message.additional_kwargs,
        id=message.id,
    )

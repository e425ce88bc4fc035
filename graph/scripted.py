"""ScriptedModel: a chat model for tests that says what its script says, and fails on a missing or an unused step."""

from collections.abc import Callable, Sequence
from threading import Lock
from types import TracebackType
from typing import Any, Self

from langchain_core.messages import AIMessage, BaseMessage, ToolCall
from pydantic import PrivateAttr

from graph.offline import OfflineModel

Step = str | AIMessage | dict[str, Any] | list[dict[str, Any]] | Exception | Callable[..., Any]
"""A text; a message; a call `{"name", "args"}` or several; an error to raise; or a function of (messages, tools)."""


class ScriptError(AssertionError):
    """The graph asked for more or fewer answers than the script has."""


class ScriptedModel(OfflineModel):
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

    def reply(self, messages: Sequence[BaseMessage], tools: Sequence[str]) -> AIMessage:
        """Take the next step of the script."""
        with self._lock:
            self._calls.append((list(messages), list(tools)))
            if not self._steps:
                self._missing = ScriptError(
                    f"the script has no step for call {len(self._calls)}; the last message was {messages[-1].text!r}"
                )
                raise self._missing
            step = self._steps.pop(0)
        return message_of(step, list(messages), list(tools), call=len(self._calls))

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

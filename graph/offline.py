"""Chat models that need no endpoint: what the rehearsal and the scripted model share of LangChain's interface."""

import json
from abc import abstractmethod
from collections.abc import Iterator, Sequence
from typing import Any

from langchain_core.callbacks import CallbackManagerForLLMRun
from langchain_core.language_models import BaseChatModel, LanguageModelInput
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage
from langchain_core.messages.tool import tool_call_chunk
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from langchain_core.runnables import Runnable

from nodes.contract import tool_name


class OfflineModel(BaseChatModel):
    """Answers by `reply`, whole or streamed."""

    @abstractmethod
    def reply(self, messages: Sequence[BaseMessage], tools: Sequence[str]) -> AIMessage:
        """Answer messages, with tools of these names at hand."""

    def answer(self, messages: Sequence[BaseMessage], tools: Sequence[str], schemas: Sequence[Any]) -> AIMessage:
        """As `reply`, with the tools at hand in the form that they were bound in."""
        return self.reply(messages, tools)

    def bind_tools(self, tools: Sequence[Any], **kwargs: Any) -> Runnable[LanguageModelInput, AIMessage]:
        """Note the tools and their names for each call."""
        return self.bind(tools=[tool_name(tool) for tool in tools], schemas=list(tools), **kwargs)

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        answer = self.answer(messages, kwargs.get("tools", []), kwargs.get("schemas", []))
        return ChatResult(generations=[ChatGeneration(message=answer)])

    def _stream(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> Iterator[ChatGenerationChunk]:
        for piece in pieces_of(self.answer(messages, kwargs.get("tools", []), kwargs.get("schemas", []))):
            chunk = ChatGenerationChunk(message=piece)
            if run_manager:
                run_manager.on_llm_new_token(str(piece.content), chunk=chunk)
            yield chunk


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

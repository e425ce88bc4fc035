"""Whole answers over OpenAI's wire, each call judged by the text of its arguments that came, as streamed ones are.

langchain-openai raises for arguments that are a list or a text, and takes `null`, `0` and `[]` for none at all.
"""

import json
from collections.abc import Callable
from functools import partial
from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.outputs import ChatResult

from nodes.collect import Draft, judged


def in_one_piece(model: BaseChatModel) -> BaseChatModel:
    """Return a copy of a model that answers in one piece.

    Under `stream_mode="messages"` LangChain's `invoke` streams too, and completes arguments that were cut off (B028).
    """
    made = model.model_copy(update={"disable_streaming": True})
    if read := getattr(made, "_create_chat_result", None):  # of ChatOpenAI and all that are built on it
        object.__setattr__(made, "_create_chat_result", partial(with_calls_as_they_came, read))
    return made


def with_calls_as_they_came(read: Callable[..., ChatResult], response: Any, info: Any = None) -> ChatResult:
    """Read a response by the client's own `read`, but its calls by their text."""
    choices = response.get("choices") if isinstance(response, dict) else getattr(response, "choices", None)
    calls = [calls_out_of(choice) for choice in choices or []]
    result = read(response, info)
    for generation, drafts in zip(result.generations, calls, strict=False):
        message: Any = generation.message
        message.tool_calls, message.invalid_tool_calls = judged(drafts, cut=False, ended=True)
    return result


def calls_out_of(choice: Any) -> list[Draft]:
    """Take the calls out of one choice of a response, which is a dictionary or the SDK's object."""
    if isinstance(choice, dict):
        calls = choice["message"].pop("tool_calls", None)
    else:
        calls, choice.message.tool_calls = choice.message.tool_calls, None
    return [draft_of(call if isinstance(call, dict) else call.model_dump(warnings=False)) for call in calls or []]


def draft_of(call: dict[str, Any]) -> Draft:
    """Read one call of the wire; some servers write the arguments as an object, not as its text."""
    function = call.get("function") or {}
    args = function.get("arguments")
    text = args if isinstance(args, str) else "" if args is None else json.dumps(args)
    return Draft(index=None, id=call.get("id") or "", name=function.get("name") or "", args=text)

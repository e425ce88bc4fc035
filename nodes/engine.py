"""The tool engine: between a call of the model and its one result. A failure is a result, never an exception.

Gates, in order: mounted, complete, arguments valid; then it runs, with a time limit; its result is bounded.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from typing import Any

from langchain_core.messages import ToolMessage
from langchain_core.tools import BaseTool, StructuredTool
from langgraph.errors import GraphBubbleUp
from langgraph.prebuilt.tool_node import ToolCallRequest, ToolInvocationError
from langgraph.types import Command
from pydantic import ValidationError

from memory.text import clean
from nodes.context import context_of
from nodes.text import text_of
from nodes.valid import NO_OUTPUT

log = logging.getLogger("palimpsest.tools")

UNKNOWN_TOOL = "Error (unknown_tool): there is no tool {name!r}. Your tools are: {mounted}."
NO_TOOLS = "none; answer in words"
BROKEN_CALL = (
    "Error (invalid_arguments): the call of {name!r} was not run: {error}. Send it again with complete JSON arguments."
)
INVALID = "Error (invalid_arguments): {name!r} was not run. {problems}"
TIMEOUT = (
    "Error (timeout): {name!r} gave no result within {seconds:g} s. "
    "It may still be running; do not assume that it failed or succeeded."
)
INTERNAL = "Error (internal): {name!r} failed with {kind}. Try other arguments or go on without it."
BUSINESS = "Error (business): {error}"
CUT = "{head}\n[… {missing} of {total} characters left out here …]\n{tail}"

Result = ToolMessage | Command[Any]


class ToolProblem(Exception):
    """Raised by a tool to tell the model what went wrong in words that it may read; everything else stays internal."""


def run_call(request: ToolCallRequest, execute: Callable[[ToolCallRequest], Result]) -> Result:
    """Run one call through the gates in this thread's own worker, so that its time can be limited."""
    if refused := refusal(request):
        return refused
    seconds = context_of(request.runtime).tool_timeout_s
    # Not `with`: leaving it would wait for a tool that no longer answers. A timed-out thread runs on, unobserved.
    pool = ThreadPoolExecutor(1, thread_name_prefix=f"tool-{request.tool_call['name']}")
    try:
        result = pool.submit(copy_context().run, execute, request).result(seconds)
        return bounded(request, result)
    except GraphBubbleUp:
        raise
    except Exception as error:
        return failed(request, error)
    finally:
        pool.shutdown(wait=False)


async def arun_call(request: ToolCallRequest, execute: Callable[[ToolCallRequest], Awaitable[Result]]) -> Result:
    """As `run_call`, awaited."""
    if refused := refusal(request):
        return refused
    try:
        async with asyncio.timeout(context_of(request.runtime).tool_timeout_s):
            result = await execute(request)
        return bounded(request, result)
    except GraphBubbleUp:
        raise
    except Exception as error:
        return failed(request, error)


def refusal(request: ToolCallRequest) -> ToolMessage | None:
    """Return why a call may not run at all, None if it may."""
    name, context = request.tool_call["name"], context_of(request.runtime)
    if request.tool is not None and context.mounts(name):
        return None
    mounted = [tool.name for tool in request.runtime.tools if context.mounts(tool.name)]
    return error_result(request.tool_call, UNKNOWN_TOOL.format(name=name, mounted=", ".join(mounted) or NO_TOOLS))


def failed(request: ToolCallRequest, error: Exception) -> ToolMessage:
    """Turn an exception into what the model may know; the log keeps the rest."""
    name = request.tool_call["name"]
    if isinstance(error, ToolInvocationError):
        text = INVALID.format(name=name, problems=problems_of(error.source))
    elif isinstance(error, TimeoutError):
        text = TIMEOUT.format(name=name, seconds=context_of(request.runtime).tool_timeout_s)
    elif isinstance(error, ToolProblem):
        text = BUSINESS.format(error=error)
    else:
        log.warning("tool %s failed", name, exc_info=error)
        text = INTERNAL.format(name=name, kind=type(error).__name__)
    return error_result(request.tool_call, text)


def problems_of(error: ValidationError) -> str:
    """Say field by field what is wrong with the arguments."""
    return " ".join(f"{'.'.join(map(str, one['loc'])) or 'arguments'}: {one['msg']}." for one in error.errors())


def error_result(call: Any, text: str) -> ToolMessage:
    """Make the one result of a call that failed."""
    return ToolMessage(clean(text), name=call["name"] or "unknown", tool_call_id=call["id"], status="error")


def broken_result(call: Any) -> ToolMessage:
    """Make the result of a call whose arguments never became valid JSON."""
    return error_result(
        call,
        BROKEN_CALL.format(name=call["name"] or "", error=call["error"] or "its arguments are not valid JSON"),
    )


def bounded(request: ToolCallRequest, result: Result) -> Result:
    """Keep a result non-empty and within the limit: head and tail, with a note of what is missing between."""
    if not isinstance(result, ToolMessage):
        return result
    text, limit = text_of(result), context_of(request.runtime).max_result_chars
    if not text.strip() and not isinstance(result.content, list):
        return result.model_copy(update={"content": NO_OUTPUT})
    if len(text) <= limit:
        return result
    head, tail = text[: limit * 3 // 4], text[-limit // 4 :]
    cut = CUT.format(head=head, tail=tail, missing=len(text) - len(head) - len(tail), total=len(text))
    return result.model_copy(update={"content": cut})


def callable_both_ways(tool: BaseTool) -> BaseTool:
    """Let a tool that has only a coroutine serve `invoke` too, in a loop of its own (B036)."""
    if not isinstance(tool, StructuredTool) or tool.func is not None or tool.coroutine is None:
        return tool
    coroutine = tool.coroutine

    def in_own_loop(**arguments: Any) -> Any:
        async def call() -> Any:
            return await coroutine(**arguments)

        return asyncio.run(call())

    return tool.model_copy(update={"func": in_own_loop})

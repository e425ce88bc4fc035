"""Letting any tool serve `invoke` and `ainvoke` alike (B036), and what it gives and raises mean the same in both.

A tool that is sync runs in a thread of its own, so it hangs no event loop; one that is async gets a loop where there is
none. Coroutines and async generators that a tool gives are awaited and read.
"""

import asyncio
from collections.abc import AsyncIterator, Collection, Iterator
from contextlib import contextmanager
from functools import wraps
from inspect import isawaitable, signature
from typing import Any, get_type_hints

from langchain_core.messages import ToolMessage
from langchain_core.runnables import RunnableConfig
from langchain_core.tools import BaseTool, StructuredTool
from langchain_core.tools import Tool as TextTool
from langgraph.errors import is_invalid_resume
from langgraph.types import Command
from pydantic import ValidationError

from nodes.limits import off_loop
from nodes.results import MAX_ITEMS, presentable

CLASHING = {"self", "config", "run_manager"}
"""Names that LangChain's own `_run` takes: an argument of such a name would not reach the tool."""


class FailedInside(Exception):
    """An error of a tool's own work that elsewhere means more: invalid arguments, or the end of the program."""


def callable_both_ways(tool: BaseTool, parameters: Collection[str]) -> BaseTool:
    """Return a copy of a tool that can be called both ways; the model may give it these parameters."""
    is_plain = isinstance(tool, StructuredTool | TextTool)
    has_coroutine = type(tool)._arun is not BaseTool._arun
    given: tuple[Any, Any] = (
        (tool.func, tool.coroutine)
        if isinstance(tool, StructuredTool | TextTool)
        else (tool._run, tool._arun if has_coroutine else None)
    )
    if given == (None, None):
        return tool
    func, coroutine = both_ways(*given, tool.response_format)
    made = tool.model_copy(update={"func": func, "coroutine": coroutine} if is_plain else None)
    is_bare = is_plain and not any(is_served(one) for one in given if one)
    if is_bare or not is_plain or CLASHING & set(parameters):
        run, arun = (unsigned(func), unsigned(coroutine)) if is_bare else (func, coroutine)
        object.__setattr__(made, "_run", run)  # the instance's own go before its class's
        object.__setattr__(made, "_arun", arun)
    return made


def is_served(function: Any) -> bool:
    """Whether LangChain gives a function more than its arguments: the run's config or callbacks."""
    try:
        return "callbacks" in signature(function).parameters or RunnableConfig in get_type_hints(function).values()
    except Exception:  # nothing can be known of it
        return True


def unsigned(function: Any) -> Any:
    """Return a function without its signature, which LangChain else reads anew at every call: a fifth of its time."""
    return lambda *args, **kwargs: function(*args, **kwargs)


def both_ways(func: Any, coroutine: Any, response_format: str) -> tuple[Any, Any]:
    """Return a function and a coroutine function that each do what the one or the other that is there does."""

    @wraps(func or coroutine)
    def sync(*args: Any, **kwargs: Any) -> Any:
        with own_errors():  # this is a thread
            try:
                value = (func or coroutine)(*args, **kwargs)
            except NotImplementedError:  # the `_run` of a class that has only `_arun`
                if not func or not coroutine:
                    raise
                value = coroutine(*args, **kwargs)
            return shown(asyncio.run(settled(value)) if is_pending(value) else value, response_format)

    @wraps(coroutine or func)
    async def asynchronous(*args: Any, **kwargs: Any) -> Any:
        if not coroutine:
            return await off_loop(lambda: sync(*args, **kwargs))
        with own_errors(asyncio.CancelledError, KeyboardInterrupt, GeneratorExit):  # in a loop they are the run's
            return shown(await settled(coroutine(*args, **kwargs)), response_format)

    return sync, asynchronous


@contextmanager
def own_errors(*passing: type[BaseException]) -> Iterator[None]:
    """Raise FailedInside for errors of a tool's own work that would be taken for more than that."""
    try:
        yield
    except passing:
        raise
    except BaseException as error:
        of_arguments = isinstance(error, ValidationError) and not is_invalid_resume(error)
        if of_arguments or not isinstance(error, Exception):
            raise FailedInside from error
        raise


def is_pending(value: Any) -> bool:
    """Whether a value has to be awaited."""
    return isawaitable(value) or isinstance(value, AsyncIterator)


async def settled(value: Any) -> Any:
    """Return what a value comes to when it is awaited; an async generator as the items that it gives, up to a limit."""
    while isawaitable(value):
        value = await value
    if not isinstance(value, AsyncIterator):
        return value
    items: list[Any] = []
    async for item in value:
        items.append(item)
        if len(items) > MAX_ITEMS:
            break
    return iter(items)  # as of a generator, so that a limit is told


def shown(value: Any, response_format: str) -> Any:
    """Return what a tool gave with its content made presentable; messages and commands to the graph stay."""
    if response_format == "content_and_artifact":
        return (shown(value[0], "content"), value[1]) if isinstance(value, tuple) and len(value) == 2 else value
    parts = value if isinstance(value, list) and value else [value]
    return value if all(isinstance(part, ToolMessage | Command) for part in parts) else presentable(value)

"""The contract of a tool: what the model is told of it, and how it may be run. Checked once, when the graph is built.

A tool is a plain function with type hints and a docstring, or any LangChain tool, MCP's included. Nothing runs here.
"""

import asyncio
import functools
import re
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from langchain_core.tools import BaseTool, StructuredTool
from langchain_core.tools import tool as as_tool
from langchain_core.utils.function_calling import convert_to_openai_tool

from nodes.limits import off_loop
from nodes.results import presentable

NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
Schema = dict[str, Any]


class BadTool(ValueError):
    """A tool that cannot be mounted; the message names it and says what it lacks."""


@dataclass(frozen=True, kw_only=True)
class Marks:
    """How a tool may be run.

    `approval`: a person is asked first. `idempotent`: running it twice does no harm, so `transient` errors are tried
    again. `repeatable`: the same call with the same arguments may come any number of times, as in polling.
    `timeout_s`: its own time limit in seconds, instead of the context's.
    """

    approval: bool = False
    idempotent: bool = False
    repeatable: bool = False
    transient: tuple[type[Exception], ...] = ()
    timeout_s: float | None = None


@dataclass(frozen=True)
class Marked:
    """A tool with its marks, as `marked` makes it."""

    tool: BaseTool | Callable[..., Any]
    marks: Marks


Tool = BaseTool | Callable[..., Any] | Marked


@dataclass(frozen=True, kw_only=True)
class Mounted:
    """A tool as the engine runs it: callable both ways, its marks, and the schema that the model is sent."""

    tool: BaseTool
    marks: Marks
    schema: Schema

    @property
    def name(self) -> str:
        """The tool's name."""
        return self.tool.name


def marked(
    *,
    approval: bool = False,
    idempotent: bool = False,
    repeatable: bool = False,
    transient: tuple[type[Exception], ...] = (),
    timeout_s: float | None = None,
) -> Callable[[BaseTool | Callable[..., Any]], Marked]:
    """Mark a tool, as a decorator or a function: `@marked(approval=True)`, `marked(timeout_s=5)(tool)`."""
    marks = Marks(
        approval=approval, idempotent=idempotent, repeatable=repeatable, transient=transient, timeout_s=timeout_s
    )
    return lambda tool: Marked(tool, marks)


def mount(tools: Sequence[Tool], *, own: bool = False) -> list[Mounted]:
    """Check tools and make them runnable. Raises BadTool; warns of a parameter without a description unless `own`."""
    return distinct([mounted_one(tool, own=own) for tool in tools])


def distinct(mounted: list[Mounted]) -> list[Mounted]:
    """Return tools whose names differ. Raises BadTool if two are alike."""
    names = [one.name for one in mounted]
    if double := sorted({name for name in names if names.count(name) > 1}):
        raise BadTool(f"tool names must differ, got twice: {', '.join(double)}; rename yours")
    return mounted


def mounted_one(tool: Tool, *, own: bool) -> Mounted:
    """Check one tool."""
    marks = tool.marks if isinstance(tool, Marked) else Marks()
    given = tool.tool if isinstance(tool, Marked) else tool
    made = callable_both_ways(given if isinstance(given, BaseTool) else from_function(given))
    if not NAME.fullmatch(made.name):
        raise BadTool(f"a tool's name must be 1 to 64 of a-z, A-Z, 0-9, _ and -, got {made.name!r}; rename it")
    schema = strict_schema(made)
    for parameter in undescribed(schema["function"]["parameters"]):
        told = f"tool {made.name!r}: the parameter {parameter!r} has no description; say in the docstring what it is"
        if own:
            raise BadTool(told)
        warnings.warn(told, stacklevel=4)
    return Mounted(tool=made, marks=marks, schema=schema)


def from_function(function: Callable[..., Any]) -> BaseTool:
    """Make a tool of a function; parameters may be described in a Google-style docstring."""
    try:
        return as_tool(parse_docstring=True, error_on_invalid_docstring=False)(function)
    except ValueError as error:
        name = getattr(function, "__name__", repr(function))
        raise BadTool(f"{name!r} cannot be a tool: {error}") from error


def callable_both_ways(tool: BaseTool) -> BaseTool:
    """Let a tool of functions serve `invoke` and `ainvoke` (B036), with results made presentable."""
    if not isinstance(tool, StructuredTool) or (tool.func is None and tool.coroutine is None):
        return tool
    func, coroutine = tool.func, tool.coroutine
    shown = presentable if tool.response_format == "content" else lambda value: value
    origin: Callable[..., Any] = func or coroutine  # type: ignore[assignment]

    @functools.wraps(origin)
    def sync(*args: Any, **kwargs: Any) -> Any:
        if func is not None:
            return shown(func(*args, **kwargs))
        return shown(asyncio.run(awaited(origin, *args, **kwargs)))

    @functools.wraps(origin)
    async def asynchronous(*args: Any, **kwargs: Any) -> Any:
        if coroutine is not None:
            return shown(await coroutine(*args, **kwargs))
        return await off_loop(lambda: shown(origin(*args, **kwargs)))

    return tool.model_copy(update={"func": sync, "coroutine": asynchronous})


async def awaited(coroutine: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Await a coroutine function."""
    return await coroutine(*args, **kwargs)


def strict_schema(tool: BaseTool) -> Schema:
    """Return the tool in OpenAI's form, with `additionalProperties: false` wherever an object names its properties."""
    schema: Schema = convert_to_openai_tool(tool)
    schema["function"]["parameters"] = closed(schema["function"].get("parameters") or {"type": "object"})
    schema["function"]["parameters"].setdefault("properties", {})
    return schema


def closed(node: Any) -> Any:
    """Close every object of a JSON schema to unnamed properties; one that maps free keys to a type stays open."""
    if isinstance(node, list):
        return [closed(item) for item in node]
    if not isinstance(node, dict):
        return node
    shut = {
        key: closed(value) if key not in ("default", "enum", "const", "examples") else value
        for key, value in node.items()
    }
    is_object = node.get("type") == "object"
    return {**shut, "additionalProperties": False} if is_object and "additionalProperties" not in node else shut


def tool_name(tool: Any) -> str:
    """Return the name of a tool in any form that models are bound to."""
    if isinstance(tool, dict):
        return str(tool.get("function", tool).get("name"))
    return str(getattr(tool, "name", tool))


def undescribed(parameters: Schema, path: str = "") -> Iterator[str]:
    """Yield the dotted names of parameters without a description, at the first level and below."""
    for name, schema in parameters.get("properties", {}).items():
        if not schema.get("description"):
            yield f"{path}{name}"

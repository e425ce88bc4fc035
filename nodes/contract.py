"""The contract of a tool: what the model is told of it, and how it may be run. Checked once, when the graph is built.

A tool is a plain function with type hints and a docstring, or any LangChain tool, MCP's included. Nothing runs here.
"""

import asyncio
import re
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import wraps
from typing import Any

from jsonschema import Draft202012Validator
from jsonschema.exceptions import SchemaError
from jsonschema.protocols import Validator
from jsonschema.validators import validator_for
from langchain_core.messages import ToolMessage
from langchain_core.tools import BaseTool, StructuredTool
from langchain_core.tools import Tool as TextTool
from langchain_core.tools import tool as as_tool
from langchain_core.utils.function_calling import convert_to_openai_tool
from langgraph.errors import is_invalid_resume
from langgraph.types import Command
from pydantic import BaseModel, ValidationError

from nodes.limits import off_loop
from nodes.results import presentable
from nodes.tokens import schema_tokens

NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
DATA = {"default", "enum", "const", "examples"}
"""Keywords of a schema whose values are no schemas."""

MAPS = {"properties", "$defs", "definitions"}
"""Keywords whose values map names, any names, to schemas."""

PARTIAL = {"allOf", "not", "if", "then", "else", "dependentSchemas"}
"""Keywords under which a schema speaks of a part of an object: closed, it would refuse the whole."""

Schema = dict[str, Any]


class BadTool(ValueError):
    """A tool that cannot be mounted; the message names it and says what it lacks."""


class FailedInside(Exception):
    """An error of a tool's own work that elsewhere means more: invalid arguments, or the end of the program."""


@dataclass(frozen=True, kw_only=True)
class Marks:
    """How a tool may be run.

    `approval`: a person is asked first. `idempotent`: running it twice does no harm, so `transient` errors are tried
    again. `repeatable`: the same call with the same arguments may come any number of times, as in polling.
    `timeout_s`: its own time limit in seconds, instead of the context's. `writes`: the parameters whose texts it keeps
    for later, which must be the user's own words (nodes/keeping.py). `computes`: its result quotes nobody.
    """

    approval: bool = False
    idempotent: bool = False
    repeatable: bool = False
    transient: tuple[type[Exception], ...] = ()
    timeout_s: float | None = None
    writes: tuple[str, ...] = ()
    computes: bool = False


@dataclass(frozen=True)
class Marked:
    """A tool with its marks, as `marked` makes it."""

    tool: BaseTool | Callable[..., Any]
    marks: Marks


Tool = BaseTool | Callable[..., Any] | Marked


@dataclass(frozen=True, kw_only=True)
class Mounted:
    """A tool as the engine runs it: callable both ways, its marks, and the schema that the model is sent.

    `judge` judges the arguments: the tool's pydantic model, or its JSON schema if that is all it has.
    """

    name: str
    tool: BaseTool
    marks: Marks
    schema: Schema
    judge: type[BaseModel] | Validator = field(repr=False)
    tokens: int
    """What the schema adds to every prompt."""

    @property
    def parameters(self) -> Schema:
        """The JSON schema of the arguments."""
        parameters: Schema = self.schema["function"]["parameters"]
        return parameters


def marked(**marks: Any) -> Callable[[BaseTool | Callable[..., Any]], Marked]:
    """Mark a tool with fields of Marks, as a decorator or a function: `@marked(approval=True)`."""
    made = Marks(**marks)
    return lambda tool: Marked(tool, made)


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
    made = given if isinstance(given, BaseTool) else from_function(given)
    if not NAME.fullmatch(made.name):
        raise BadTool(f"a tool's name must be 1 to 64 of a-z, A-Z, 0-9, _ and -, got {made.name!r}; rename it")
    schema = strict_schema(made)
    judge = judge_of(made, schema["function"]["parameters"])
    for parameter in undescribed(schema["function"]["parameters"]):
        told = f"tool {made.name!r}: the parameter {parameter!r} has no description; say in the docstring what it is"
        if own:
            raise BadTool(told)
        warnings.warn(told, stacklevel=4)
    return Mounted(
        name=made.name,
        tool=callable_both_ways(made),
        marks=marks,
        schema=schema,
        judge=judge,
        tokens=schema_tokens([schema]),
    )


def from_function(function: Callable[..., Any]) -> BaseTool:
    """Make a tool of a function; parameters may be described in a Google-style docstring."""
    name = getattr(function, "__name__", repr(function))
    if not callable(function):
        raise BadTool(f"a tool must be a function or a LangChain tool, got {function!r}")
    try:
        return as_tool(parse_docstring=True, error_on_invalid_docstring=False)(function)
    except Exception as error:  # whatever LangChain or pydantic trips over: the tool is at fault
        raise BadTool(f"{name!r} cannot be a tool: {error}") from error


def callable_both_ways(tool: BaseTool) -> BaseTool:
    """Let a tool serve `invoke` and `ainvoke` (B036), hang no event loop, and give results that are presentable."""
    if isinstance(tool, StructuredTool | TextTool):
        if tool.func is None and tool.coroutine is None:
            return tool
        func, coroutine = both_ways(tool.func, tool.coroutine, tool.response_format)
        return tool.model_copy(update={"func": func, "coroutine": coroutine})
    has_coroutine = type(tool)._arun is not BaseTool._arun
    made = tool.model_copy()
    func, coroutine = both_ways(tool._run, tool._arun if has_coroutine else None, tool.response_format)
    object.__setattr__(made, "_run", func)  # the instance's own go before its class's
    object.__setattr__(made, "_arun", coroutine)
    return made


def both_ways(func: Any, coroutine: Any, response_format: str) -> tuple[Any, Any]:
    """Return a function and a coroutine function that each do what the one or the other that is there does."""

    @wraps(func or coroutine)
    def sync(*args: Any, **kwargs: Any) -> Any:
        try:
            value = func(*args, **kwargs) if func else asyncio.run(coroutine(*args, **kwargs))
        except NotImplementedError:  # the `_run` of a class that has only `_arun`
            if not func or not coroutine:
                raise
            value = asyncio.run(coroutine(*args, **kwargs))
        except (ValidationError, SystemExit, KeyboardInterrupt) as error:  # in a thread, the tool's own
            raise inside(error) from error
        return shown(value, response_format)

    @wraps(coroutine or func)
    async def asynchronous(*args: Any, **kwargs: Any) -> Any:
        if not coroutine:
            return await off_loop(lambda: sync(*args, **kwargs))
        try:
            return shown(await coroutine(*args, **kwargs), response_format)
        except (ValidationError, SystemExit) as error:
            raise inside(error) from error

    return sync, asynchronous


def inside(error: BaseException) -> BaseException:
    """Mark an error as one of a tool's own work; a resume that does not fit stays what it is."""
    return error if is_invalid_resume(error) else FailedInside()


def shown(value: Any, response_format: str) -> Any:
    """Return what a tool gave with its content made presentable; messages and commands to the graph stay."""
    if response_format == "content_and_artifact":
        return (shown(value[0], "content"), value[1]) if isinstance(value, tuple) and len(value) == 2 else value
    parts = value if isinstance(value, list) and value else [value]
    return value if all(isinstance(part, ToolMessage | Command) for part in parts) else presentable(value)


def judge_of(tool: BaseTool, parameters: Schema) -> type[BaseModel] | Validator:
    """Return what judges the arguments. Raises BadTool for a JSON schema that is none."""
    model = tool.tool_call_schema
    if isinstance(model, type) and issubclass(model, BaseModel) and not isinstance(tool, TextTool):
        return model
    kind = validator_for(parameters, default=Draft202012Validator)
    try:
        kind.check_schema(parameters)
    except SchemaError as error:
        raise BadTool(f"tool {tool.name!r}: its parameters are no JSON schema: {error.message}") from error
    judge: Validator = kind(parameters)
    return judge


def strict_schema(tool: BaseTool) -> Schema:
    """Return the tool in OpenAI's form, with `additionalProperties: false` wherever an object names its properties."""
    schema: Schema = convert_to_openai_tool(tool)
    parameters = {"type": "object", "properties": {}} | (schema["function"].get("parameters") or {})
    schema["function"]["parameters"] = closed(parameters)
    return schema


def closed(node: Any) -> Any:
    """Close every object of a JSON schema that names its properties; one of free keys stays open."""
    if isinstance(node, list):
        return [closed(item) for item in node]
    if not isinstance(node, dict):
        return node
    shut = {
        key: {name: closed(one) for name, one in value.items()}
        if key in MAPS and isinstance(value, dict)
        else value
        if key in DATA | PARTIAL
        else closed(value)
        for key, value in node.items()
    }
    names_all = isinstance(node.get("properties"), dict) and not PARTIAL & node.keys()
    return {"additionalProperties": False, **shut} if names_all and "patternProperties" not in node else shut


def tool_name(tool: Any) -> str:
    """Return the name of a tool in any form that models are bound to."""
    if isinstance(tool, dict):
        return str(tool.get("function", tool).get("name"))
    return str(getattr(tool, "name", tool))


def undescribed(parameters: Schema) -> Iterator[str]:
    """Yield the names of parameters without a description."""
    for name, schema in parameters.get("properties", {}).items():
        if not schema.get("description"):
            yield name

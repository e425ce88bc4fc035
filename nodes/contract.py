"""The contract of a tool: what the model is told of it, and how it may be run. Checked once, when the graph is built.

A tool is a plain function with type hints and a docstring, or any LangChain tool, MCP's included. Nothing runs here.
"""

import re
import warnings
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field
from inspect import signature
from typing import Any, get_type_hints

from langchain_core.runnables import RunnableConfig
from langchain_core.tools import BaseTool, InjectedToolArg, StructuredTool
from langchain_core.tools import tool as as_tool
from pydantic import BaseModel

from nodes.both_ways import callable_both_ways
from nodes.results import cut_before
from nodes.schema import Judge, Schema, parameters_of, undescribed
from nodes.tokens import schema_tokens

NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
MAX_DESCRIPTION_CHARS = 1024
"""OpenAI refuses a function with a longer one."""

GIVABLE = (
    "take each by a name of its own, other than args, kwargs, callbacks and run_manager, and inject only what is known"
)


class BadTool(ValueError):
    """A tool that cannot be mounted; the message names it and says what it lacks."""


@dataclass(frozen=True, kw_only=True)
class Marks:
    """How a tool may be run.

    `approval`: a person is asked first. `idempotent`: running it twice does no harm, so `transient` errors are tried
    again. `repeatable`: the same call with the same arguments may come any number of times, as in polling.
    `timeout_s`: its own time limit in seconds, instead of the context's. `writes`: the parameters whose texts it keeps
    for later, which must be the user's own words (nodes/keeping.py), `names` those that only name it, in a word or two.
    `computes`: its result quotes nobody. `forgets`: it takes away for good, so the user must have asked for it.
    """

    approval: bool = False
    idempotent: bool = False
    repeatable: bool = False
    transient: tuple[type[Exception], ...] = ()
    timeout_s: float | None = None
    writes: tuple[str, ...] = ()
    names: tuple[str, ...] = ()
    computes: bool = False
    forgets: bool = False


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
    judge: Judge = field(repr=False)
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
    try:
        parameters, judge = parameters_of(made)
    except Exception as error:  # whatever it is: the schema is at fault
        told = getattr(error, "message", error)
        raise BadTool(f"tool {made.name!r}: its parameters are no JSON schema: {told}") from error
    check_givable(made, parameters["properties"])
    for lack in lacks(made, parameters):
        if own:
            raise BadTool(f"tool {made.name!r}: {lack}")
        warnings.warn(f"tool {made.name!r}: {lack}", stacklevel=4)
    description = made.description[: cut_before(made.description, MAX_DESCRIPTION_CHARS)]
    function = {"name": made.name, "description": description, "parameters": parameters}
    schema = {"type": "function", "function": function}
    return Mounted(
        name=made.name,
        tool=callable_both_ways(made, parameters["properties"]),
        marks=marks,
        schema=schema,
        judge=judge,
        tokens=schema_tokens([schema]),
    )


def lacks(tool: BaseTool, parameters: Schema) -> Iterator[str]:
    """Yield what a model is told too little of a tool, or too much."""
    if (length := len(tool.description)) > MAX_DESCRIPTION_CHARS:
        yield f"its description has {length} characters; the model is sent the first {MAX_DESCRIPTION_CHARS} at most"
    for name in undescribed(parameters):
        yield f"the parameter {name!r} has no description; say in the docstring what it is"


def from_function(function: Callable[..., Any]) -> BaseTool:
    """Make a tool of a function; parameters may be described in a Google-style docstring."""
    name = getattr(function, "__name__", repr(function))
    if not callable(function) or isinstance(function, type):
        raise BadTool(f"a tool must be a function or a LangChain tool, got {function!r}")
    try:
        return as_tool(parse_docstring=True, error_on_invalid_docstring=False)(function)
    except Exception as error:  # whatever LangChain or pydantic trips over: the tool is at fault
        raise BadTool(f"{name!r} cannot be a tool: {unhinted(function) or error}") from error


def unhinted(function: Callable[..., Any]) -> str:
    """Name the parameters of a function that have no type hint, for which LangChain blames the docstring."""
    try:
        parameters = signature(function).parameters.values()
    except (TypeError, ValueError):
        return ""
    bare = [repr(one.name) for one in parameters if one.annotation is one.empty]
    return f"no type hint says what {', '.join(bare)} must be" if bare else ""


def check_givable(tool: BaseTool, parameters: Collection[str]) -> None:
    """Raise BadTool if no call can give a parameter of a function: it goes by position, or is hidden from the model."""
    function = (tool.func or tool.coroutine) if isinstance(tool, StructuredTool) else None
    if function is None:
        return
    try:
        declared = list(signature(function).parameters.values())
    except (TypeError, ValueError) as error:
        raise BadTool(f"{tool.name!r} cannot be a tool: its parameters cannot be read ({error})") from error
    named = {one.name: one for one in declared if one.kind in (one.POSITIONAL_OR_KEYWORD, one.KEYWORD_ONLY)}
    rest = next((one.name for one in declared if one.kind is one.VAR_KEYWORD), None)
    model, wrong = tool.args_schema, {name for name in parameters if name not in named and rest is None}
    if isinstance(model, type) and issubclass(model, BaseModel):
        wrong = {name for name in model.model_fields if name not in named and (rest is None or name == rest)}
        due = {name for name, one in named.items() if one.default is one.empty and not is_config(function, name)}
        wrong |= due - {*model.model_fields, "callbacks"}
        wrong |= {name for name, one in model.model_fields.items() if one.is_required() and is_bare(one.metadata)}
    if wrong:
        raise BadTool(f"tool {tool.name!r}: no call can give {', '.join(map(repr, sorted(wrong)))}; {GIVABLE}")


def is_config(function: Callable[..., Any], name: str) -> bool:
    """Whether a parameter takes the run's config, which LangChain gives."""
    try:
        return get_type_hints(function).get(name) is RunnableConfig
    except NameError:  # an annotation that is not defined here
        return False


def is_bare(metadata: Sequence[Any]) -> bool:
    """Whether an annotation says that something is injected, but not what."""
    return any(one is InjectedToolArg or type(one) is InjectedToolArg for one in metadata)


def tool_name(tool: Any) -> str:
    """Return the name of a tool in any form that models are bound to."""
    if isinstance(tool, dict):
        return str(tool.get("function", tool).get("name"))
    return str(getattr(tool, "name", tool))

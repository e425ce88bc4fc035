"""What a call that gave no value tells the model, and what only the log keeps."""

import logging
import traceback
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

from langchain_core.tools import ToolException
from langgraph.prebuilt.tool_node import ToolInvocationError

from memory.secrets import mask
from nodes.arguments import BadArguments, of_model, say
from nodes.both_ways import FailedInside
from nodes.limits import OverTime
from nodes.results import Kind

log = logging.getLogger("palimpsest.tools")

UNKNOWN_TOOL = "there is no tool {name!r}. Your tools are: {mounted}."
NO_TOOLS = "none; answer in words"
REPEATED = (
    "{name!r} was called with these very arguments before in this turn; its result stands above. "
    "Use it, or change the arguments."
)
BROKEN = "the call of {name!r} was not run: {error}. Send it again with complete JSON arguments."
NOT_AN_OBJECT = "its arguments are not a JSON object"
INVALID = "{name!r} was not run. {problems}"
REFUSED = "the user did not allow {name!r}: {reason}"
OVERTIME = (
    "{name!r} gave no result within {seconds:g} s. It may still be running; do not assume that it failed or succeeded."
)
INTERNAL = "{name!r} failed inside ({error}, report {id}). Try other arguments, or go on without it and say so."


class ToolProblem(Exception):
    """Raised by a tool to tell the model what went wrong in words that it may read; everything else stays internal."""


class Refused(Exception):
    """A gate did not let a call through; `told` is for the model."""

    def __init__(self, kind: Kind, told: str) -> None:
        super().__init__(told)
        self.kind, self.told = kind, told


@dataclass(frozen=True, kw_only=True)
class Failure:
    """What the model is told of a call without a value; `id` is the report in the log, empty if there is none."""

    kind: Kind
    told: str
    id: str = ""

    @property
    def text(self) -> str:
        """The result of the call, as the model reads it."""
        return f"Error ({self.kind}): {self.told}"

    @property
    def ran(self) -> bool:
        """Whether the tool was started at all."""
        return self.kind in ("timeout", "business", "internal")


def unknown_tool(name: str, mounted: Sequence[str]) -> Refused:
    """Refuse the call of a tool that is not there (B027)."""
    return Refused("unknown_tool", UNKNOWN_TOOL.format(name=name, mounted=", ".join(mounted) or NO_TOOLS))


def broken(call: Mapping[str, Any]) -> Refused:
    """Refuse a call whose arguments never became a JSON object (B028)."""
    told = BROKEN.format(name=call["name"] or "", error=call.get("error") or NOT_AN_OBJECT)
    return Refused("invalid_arguments", told)


def failure_of(error: BaseException, *, name: str, seconds: float) -> Failure:
    """Turn an exception into what the model may know; the log keeps the rest, secrets masked, under the same id."""
    match error:
        case Refused():
            return Failure(kind=error.kind, told=error.told)
        case BadArguments():
            return Failure(kind="invalid_arguments", told=INVALID.format(name=name, problems=error))
        case ToolInvocationError():  # a validator of the tool's own model
            return Failure(
                kind="invalid_arguments", told=INVALID.format(name=name, problems=say(of_model(error.source)))
            )
        case OverTime():
            return Failure(kind="timeout", told=OVERTIME.format(name=name, seconds=seconds))
        case ToolProblem() | ToolException() if told := text_of_error(error):
            return Failure(kind="business", told=mask(told))
    id, cause = uuid4().hex[:8], error.__cause__ if isinstance(error, FailedInside) else error
    log.error("tool %s failed, report %s\n%s", name, id, mask("".join(traceback.format_exception(cause))))
    return Failure(kind="internal", told=INTERNAL.format(name=name, error=type(cause).__name__, id=id), id=id)


def text_of_error(error: BaseException) -> str:
    """Return what an error says; nothing if it cannot even say that."""
    try:
        return str(error).strip()
    except Exception:
        return ""

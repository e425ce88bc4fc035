"""Graphs for tests of tools: the real one on LangGraph's in-memory saver and store, driven sync and async."""

import asyncio
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from langchain_core.messages import AIMessage, ToolMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.store.memory import InMemoryStore
from langgraph.types import Command

from graph.agent import build_agent, compiled
from graph.scripted import ScriptedModel, Step
from nodes.context import Context

WAYS = ("invoke", "ainvoke")


class Session:
    """One agent with a scripted model; `turn` runs a turn in one of the two ways, `resume` goes on after a pause."""

    def __init__(
        self,
        model: ScriptedModel,
        tools: Sequence[Any],
        way: str,
        store: Any = None,
        *,
        memory: bool = True,
        saver: Any = None,
    ) -> None:
        self.model, self.way = model, way
        self.store = InMemoryStore() if store is None and memory else store
        self.agent = compiled(build_agent(model=model, tools=tools), saver or InMemorySaver(), self.store)

    def turn(self, text: Any = "Do it", thread: str = "t", **context: Any) -> dict[str, Any]:
        """Run a turn, or go on with `None` or a Command, and return the state."""
        given = {"messages": [("user", text)]} if isinstance(text, str) else text
        config: Any = {"configurable": {"thread_id": thread}}
        options = {"config": config, "context": Context(**context)}
        if self.way == "invoke":
            return self.agent.invoke(given, **options)
        return asyncio.run(self.agent.ainvoke(given, **options))

    def resume(self, answer: Any, **context: Any) -> dict[str, Any]:
        """Answer the interrupt, or the interrupts by id, and go on."""
        return self.turn(Command(resume=answer), **context)


@contextmanager
def session(*steps: Step, tools: Sequence[Any] = (), way: str = "invoke", **options: Any) -> Iterator[Session]:
    """Open a session whose script must be used up."""
    with ScriptedModel(steps) as model:
        yield Session(model, tools, way, **options)


def call(name: str, id: str = "c1", /, **args: Any) -> dict[str, Any]:
    """Write a call for the script."""
    return {"name": name, "args": args, "id": id}


def results(values: dict[str, Any]) -> list[ToolMessage]:
    """Return the results in a state, in order."""
    return [message for message in values["messages"] if isinstance(message, ToolMessage)]


def result(values: dict[str, Any]) -> ToolMessage:
    """Return the one result in a state."""
    (only,) = results(values)
    return only


def record(message: ToolMessage) -> dict[str, Any]:
    """Return a result's record."""
    return message.additional_kwargs["record"]


def named(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """Give a function a name and a docstring, as a tool needs."""
    function.__name__, function.__doc__ = name, function.__doc__ or f"Do {name}."
    return function


def broken_call(id: str = "c1", args: str = '{"text": "abc') -> AIMessage:
    """Write an answer whose only call has arguments that do not parse."""
    bad = {"name": "memory_save", "args": args, "id": id, "error": None, "type": "invalid_tool_call"}
    return AIMessage("", invalid_tool_calls=[bad])


def ok(x: int) -> str:
    """Say it is done."""
    return f"done {x}"


async def aok(x: int) -> str:
    """Say it is done."""
    await asyncio.sleep(0)
    return f"done {x}"


class Speechless(Exception):
    """Has no text."""

    def __str__(self) -> str:
        return ""


def raising(error: BaseException, name: str = "boom") -> list[Callable[..., Any]]:
    """Return a sync and an async tool that raise."""

    def boom(x: int) -> str:
        raise error

    async def aboom(x: int) -> str:
        await asyncio.sleep(0)
        raise error

    return [named(name, boom), named(f"a{name}", aboom)]

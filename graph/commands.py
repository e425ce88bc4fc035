"""What the commands do. They print answers to stdout and everything else to stderr."""

import argparse
import asyncio
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import fields, replace
from typing import Any
from uuid import uuid4

from langchain_core.messages import AIMessage, BaseMessage, convert_to_openai_messages
from langchain_core.runnables import RunnableConfig
from pydantic import ValidationError

from graph.agent import Agent, build_agent, compiled, open_agent
from graph.agent_doctor import diagnose
from graph.block_commands import BLOCK_COMMANDS, blocks_from
from graph.doctor import examine
from graph.estate import ACTIONS as ESTATE
from graph.locks import ThreadBusy
from graph.models import ModelShelf
from graph.records import memory, print_json, threads
from graph.savers import BadThread, check_thread
from graph.settings import BadSetting, CannotStart, Settings, load_settings
from memory.block_specs import BlockRefused
from memory.errors import StoreError
from memory.owner import BadUser, owned
from memory.text import clean
from nodes.context import Context, NotYourThread, UnknownTool, check_tools
from nodes.text import text_of
from nodes.toolbox import OWN_TOOLS

USAGE_ERRORS = (BadSetting, BadThread, BlockRefused, BadUser, NotYourThread, UnknownTool)
FAILURES = (CannotStart, StoreError, ThreadBusy, OSError, sqlite3.Error)
ANSWERED = ("answered", "cut_off", "max_steps", "stuck")


def run(arguments: argparse.Namespace) -> int:
    """Run the parsed command; return its exit code."""
    settings = load_settings()
    if arguments.user is not None:
        settings = replace(settings, user=arguments.user)
    settings = replace(settings, model=arguments.model or settings.model)
    blocks = [f"blocks={settings.blocks}"] if settings.blocks else []
    context = context_from([*blocks, *arguments.set], user=settings.user)
    if arguments.thread is not None:
        check_thread(arguments.thread)
    command = {
        "chat": chat,
        "ask": ask,
        "memory": {**BLOCK_COMMANDS, **ESTATE}.get(getattr(arguments, "action", ""), memory),
        "threads": threads,
        "graph": graph,
        "doctor": doctor,
    }
    return command[arguments.command](arguments, settings, context)


def one_line(error: BaseException) -> str:
    """Write an error as one line for a person."""
    return " ".join(str(error).split()) or type(error).__name__


def context_from(pairs: list[str], *, user: str) -> Context:
    """Build the context from `key=value` texts. Raises BadSetting, naming the field and what it takes."""
    given: dict[str, Any] = {}
    defaults = {field.name: field.default for field in fields(Context)}
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not equals or key not in defaults:
            raise BadSetting(f"--set takes key=value with a key among {', '.join(defaults)}; got {pair[:80]!r}")
        given[key] = value_of(key, clean(value), defaults[key])
    try:
        context = Context(**{"user": user, **given})
    except ValidationError as error:
        first = error.errors()[0]
        flag = "--set " if first["loc"][0] in given else "--"
        where = ".".join(map(str, first["loc"])) + " (or PALIMPSEST_BLOCKS)" * (first["loc"][0] == "blocks")
        raise BadSetting(f"{flag}{where}: {first['msg']}, got {str(first['input'])[:80]!r}") from error
    owned(context.user)
    check_tools(context, [tool.name for tool in OWN_TOOLS])
    return context


def value_of(key: str, text: str, default: object) -> Any:
    """Read the text of one field: tools and blocks are lists, nothing at all is None where that is the default."""
    if key == "blocks":
        return blocks_from(text)
    if key == "tools":
        return [one.strip() for one in text.split(",") if one.strip()]
    return None if default is None and not text.strip() else text


def config_of(thread: str) -> RunnableConfig:
    """Name the thread of a run."""
    return {"configurable": {"thread_id": thread}}


def chat(arguments: argparse.Namespace, settings: Settings, context: Context) -> int:
    """Answer lines until /quit or the end of input; return 1 if the last answer failed."""
    thread = arguments.thread or str(uuid4())
    code = 0
    with open_agent(settings, model=built(settings, context)) as agent, asyncio.Runner() as runner:
        print(f"thread {thread} (go on later with --thread {thread}); /quit ends", file=sys.stderr)
        for line in lines_in():
            if line in ("/quit", "/exit"):
                break
            try:
                code = 0 if runner.run(streamed(agent, line, thread, context)) in ANSWERED else 1
            except KeyboardInterrupt:
                print(flush=True)
                print("(stopped)", file=sys.stderr)
    return code


def built(settings: Settings, context: Context) -> ModelShelf:
    """Return the models with that of the context built: one that cannot be is told before anything is asked."""
    models = ModelShelf(settings)
    models(context.model)
    return models


def lines_in() -> Iterator[str]:
    """Yield what the user writes, cleaned, blank lines left out."""
    keyboard = sys.stdin.isatty()
    while True:
        try:
            line = input("> ") if keyboard else next(sys.stdin)
        except (EOFError, StopIteration):
            return
        if text := clean(line).strip():
            yield text


async def streamed(agent: Agent, line: str, thread: str, context: Context) -> str:
    """Print one answer as it comes; return its stop reason.

    It is async for Ctrl-C alone, which stops the answer at once and keeps the thread: a thread that waits for a model
    could not be stopped.
    """
    modes: list[Any] = ["messages", "values"]
    values: dict[str, Any] = {}
    printing = ""
    parts: Any = agent.astream(question(line), config_of(thread), context=context, stream_mode=modes)
    async for mode, part in parts:
        if mode == "values":
            values = part
        elif part[1].get("langgraph_node") == "reason" and isinstance(part[0], AIMessage):
            if not (text := text_of(part[0])):
                continue
            if printing not in ("", str(part[0].id)):
                print()  # another message of the turn: what was said before a call, or before it broke off
            printing = str(part[0].id)
            print(text, end="", flush=True)
    if printing:
        print(flush=True)
    tell_what_failed(values)
    return str(values.get("stop_reason", ""))


def question(text: str) -> Any:
    """Write the input of a turn."""
    return {"messages": [{"role": "user", "content": text}]}


def ask(arguments: argparse.Namespace, settings: Settings, context: Context) -> int:
    """Answer one question."""
    text = clean(sys.stdin.read() if arguments.text == "-" else arguments.text).strip()
    if not text:
        raise BadSetting('the question is empty; write one, for example: palimpsest ask "What do you know about me?"')
    thread = arguments.thread or str(uuid4())
    with open_agent(settings, model=built(settings, context)) as agent:
        values = agent.invoke(question(text), config_of(thread), context=context)
    tell_what_failed(values)
    answer, stop = text_of(values["messages"][-1]), values["stop_reason"]
    if arguments.json:
        messages = [{"id": message.id, **as_openai(message)} for message in values["messages"]]
        print_json({"answer": answer, "stop_reason": stop, "steps": values["steps"], "messages": messages})
    elif stop in ANSWERED:
        print(answer)
    else:
        print(f"palimpsest: {answer} (thread {thread})", file=sys.stderr)
    return 0 if stop in ANSWERED else 1


def tell_what_failed(values: dict[str, Any]) -> None:
    """Print to stderr what of the turn could not be kept or was cut off; the answer stands all the same."""
    if values.get("stop_reason") == "cut_off":
        print("palimpsest: the answer is cut off, by its length limit or a lost connection", file=sys.stderr)
    for step in values.get("steps", []):
        if step["node"] == "remember" and (reason := step["detail"].get("failed")):
            print(
                f"palimpsest: not all of this turn went into memory; the next one tries again: {reason}",
                file=sys.stderr,
            )


def as_openai(message: BaseMessage) -> dict[str, Any]:
    """Write a message in the form that everybody knows."""
    written = convert_to_openai_messages(message)
    assert isinstance(written, dict)
    return written


def graph(arguments: argparse.Namespace, settings: Settings, context: Context) -> int:
    """Print the graph as Mermaid, or draw it with Graphviz."""
    drawable = compiled(build_agent(settings=settings), None, None).get_graph()
    if not arguments.png:
        print(drawable.draw_mermaid())
        return 0
    if not (dot := shutil.which("dot")):
        raise CannotStart("a picture needs Graphviz's `dot`, which is missing; without --png you get Mermaid")
    styles = {True: "dashed", False: "solid"}
    edges = [
        f'"{e.source}" -> "{e.target}" [style={styles[e.conditional]} label="{e.data or ""}"]' for e in drawable.edges
    ]
    text = "digraph palimpsest {\nnode [shape=box style=rounded]\n" + "\n".join(edges) + "\n}"
    done = subprocess.run([dot, "-Tpng", "-o", arguments.png], input=text.encode(), capture_output=True, check=False)
    if done.returncode:
        raise CannotStart(f"dot could not draw {arguments.png!r}: {done.stderr.decode(errors='replace')}")
    print(f"wrote {arguments.png}", file=sys.stderr)
    return 0


def doctor(arguments: argparse.Namespace, settings: Settings, context: Context) -> int:
    """Print each check; return 1 if one failed."""
    findings = list(diagnose(settings, context) if arguments.agent else examine(settings))
    for finding in findings:
        print(f"{'ok  ' if finding.ok else 'FAIL'}  {finding.what}: {finding.told}")
    return 0 if all(finding.ok for finding in findings) else 1

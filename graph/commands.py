"""What the commands do. They print answers to stdout and everything else to stderr."""

import argparse
import shutil
import subprocess
import sys
from dataclasses import fields, replace
from typing import Any
from uuid import uuid4

from pydantic import ValidationError

from graph.agent import build_agent, compiled, open_agent
from graph.agent_doctor import diagnose
from graph.block_commands import BLOCK_COMMANDS, blocks_from
from graph.chat import chat
from graph.docs import docs
from graph.doctor import examine
from graph.estate import ACTIONS as ESTATE
from graph.models import ModelShelf
from graph.outcomes import ANSWERED, as_openai, print_json, sources, what_failed
from graph.records import memory, threads
from graph.savers import check_thread
from graph.serve import studio
from graph.settings import BadSetting, CannotStart, Settings, load_settings
from graph.telling import asked_for
from graph.texts import say_in
from graph.turn import given
from memory.owner import owned
from memory.text import clean
from nodes.context import Context, check_tools
from nodes.text import text_of
from nodes.toolbox import OWN_TOOLS

ASKS = "may {call} run? Answer in palimpsest chat --thread {thread}"


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
        "docs": docs,
        "graph": graph,
        "studio": studio,
        "doctor": doctor,
    }
    return command[arguments.command](arguments, settings, context)


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
    """Read the text of one field: tools, triggers and blocks are lists, nothing is None where that is the default."""
    if key == "blocks":
        return blocks_from(text)
    if isinstance(default, tuple):
        return [one.strip() for one in text.split(",") if one.strip()]
    return None if default is None and not text.strip() else text


def built(settings: Settings, context: Context) -> ModelShelf:
    """Return the models with that of the context built: one that cannot be is told before anything is asked."""
    models = ModelShelf(settings)
    models(context.model)
    return models


def ask(arguments: argparse.Namespace, settings: Settings, context: Context) -> int:
    """Answer one question."""
    text = clean(sys.stdin.read() if arguments.text == "-" else arguments.text).strip()
    if not text:
        raise BadSetting('the question is empty; write one, for example: palimpsest ask "What do you know about me?"')
    thread = arguments.thread or str(uuid4())
    with open_agent(settings, model=built(settings, context)) as agent:
        values = agent.invoke(given(text), {"configurable": {"thread_id": thread}}, context=context)
    for line in sources(values):
        print(line, file=sys.stderr)
    say = say_in(settings.language)
    for line in what_failed(values, say):
        print(f"palimpsest: {line}", file=sys.stderr)
    answer, stop = text_of(values["messages"][-1]), values["stop_reason"]
    waits = [pause.value for pause in values.get("__interrupt__", ())]
    if arguments.json:
        messages = [as_openai(message) for message in values["messages"]]
        told = {"answer": answer, "stop_reason": stop, "steps": values["steps"], "messages": messages}
        print_json({**told, "waits": waits})
    elif stop in ANSWERED:
        print(answer)
    else:
        asks = say(ASKS, call="; ".join(map(asked_for, waits)), thread=thread) if waits else ""
        print(f"palimpsest: {asks or say('{answer} (thread {thread})', answer=answer, thread=thread)}", file=sys.stderr)
    return 0 if stop in ANSWERED else 1


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
    well, say = True, say_in(settings.language)
    for finding in diagnose(settings, context) if arguments.agent else examine(settings):
        state = say("ok  " if finding.ok else "FAIL")
        print(say("{state}  {what}: {told}", state=state, what=finding.what, told=say.told(finding.told)), flush=True)
        well = well and finding.ok
    return 0 if well else 1

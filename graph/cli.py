"""The command line: `palimpsest chat`, `ask`, `memory`, `threads`, `docs`, `graph`, `studio`, `doctor`.

It parses, prints and chooses exit codes: 0 for an answer, 1 for a failure, 2 for a usage error. What it does is in
graph/commands.py, imported after parsing, so that `--help` waits for nothing.
"""

import argparse
import os
import sys
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

DESCRIPTION = "An agent whose working page stays short and whose record stays whole."
EPILOG = """\
Without a key the built-in rehearsal model answers: offline, by rules. For a real model set OPENAI_API_KEY,
or OPENAI_BASE_URL for a compatible server, and PALIMPSEST_MODEL; or start Ollama, llama.cpp or LM Studio and
use --model local. Data lies in PALIMPSEST_HOME (default: .palimpsest in this folder)."""


COMMON: dict[str, Any] = {
    "--user": {"metavar": "NAME", "help": "whose memory is used (default: PALIMPSEST_USER, else me)"},
    "--thread": {"metavar": "ID", "help": "which conversation to go on with (default: a new one)"},
    "--model": {"metavar": "NAME", "help": "provider:name, local, or rehearsal"},
    "--set": {
        "metavar": "KEY=VALUE",
        "action": "append",
        "default": [],
        "help": "any field of the context, for example max_steps=5",
    },
}
"""Options of several commands; a command takes those that mean something to it, and refuses the others."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; return its exit code."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        stream = getattr(sys, name)
        if stream is None:  # closed by the caller
            setattr(sys, name, Path(os.devnull).open(mode, encoding="utf-8"))  # noqa: SIM115  # as long as the process
        elif hasattr(stream, "reconfigure"):  # a console that cannot show a character shows a substitute (B155)
            stream.reconfigure(errors="replace")
    arguments = parsed(argv)
    try:
        return run(arguments)
    except KeyboardInterrupt:
        return told("interrupted", code=130)


def run(arguments: argparse.Namespace) -> int:
    """Run the parsed command; turn its failures into one line and an exit code."""
    from graph import commands, outcomes  # LangGraph and Chroma take seconds; --help must not

    try:
        code = int(commands.run(arguments))
        sys.stdout.flush()  # here, where a reader that left can be answered
        return code
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # the reader left, as `head` does
        return 1
    except outcomes.USAGE_ERRORS as error:
        return told(outcomes.one_line(error), code=2)
    except outcomes.FAILURES as error:
        return told(outcomes.one_line(error), code=1)


def parsed(argv: Sequence[str] | None) -> argparse.Namespace:
    """Parse the command; of several things that are named, argparse passes over those that stand behind an option."""
    reading = parser()
    arguments, rest = reading.parse_known_args(argv)
    if rest and (arguments.command != "docs" or any(one.startswith("-") for one in rest)):
        reading.error(f"unrecognized arguments: {' '.join(rest)}")
    if rest:
        arguments.what = [*arguments.what, *rest]
    return arguments


def told(message: str, *, code: int) -> int:
    """Print one line for a person to stderr, in their language; return the exit code."""
    from graph.settings import spoken_language
    from graph.texts import say_in

    print(f"palimpsest: {say_in(spoken_language()).told(message)}", file=sys.stderr)
    return code


def parser() -> argparse.ArgumentParser:
    """Build the parser of all commands."""
    top = argparse.ArgumentParser(prog="palimpsest", description=DESCRIPTION, epilog=EPILOG)
    top.formatter_class = argparse.RawDescriptionHelpFormatter
    top.set_defaults(user=None, thread=None, model=None, set=[])
    top.add_argument("--version", action="version", version=f"palimpsest {version('palimpsest')}")
    commands = top.add_subparsers(dest="command", required=True, metavar="COMMAND")

    def add(name: str, text: str, *takes: str) -> argparse.ArgumentParser:
        made = commands.add_parser(name, help=text, description=text)
        for option in takes:
            made.add_argument(option, **COMMON[option])
        return made

    chat = add(
        "chat", "Talk with the agent, at a keyboard or line by line from a pipe; /help lists its commands.", *COMMON
    )
    chat.add_argument("--json", action="store_true", help="print one object a line for each turn")
    ask = add("ask", "Ask one question; stdout is the answer alone.", *COMMON)
    ask.add_argument("text", help="the question; - reads it from stdin")
    ask.add_argument("--json", action="store_true", help="print answer, stop_reason, steps and messages as one object")
    memory = add(
        "memory",
        "Look into a user's long-term memory, edit it, carry it elsewhere, or erase it.",
        "--user",
        "--set",
    )
    memory.add_argument(
        "action",
        choices=[
            "list",
            "search",
            "show",
            "why",
            "split",
            "blocks",
            "edit",
            "undo",
            "reindex",
            "export",
            "import",
            "forget-user",
        ],
        help="show ID: one memory with its past and its messages; why QUERY: what a question brings up and why the "
        "rest is not; split ID: make other wordings memories of their own again; blocks: core memory, or with a "
        "LABEL all versions of that block; edit LABEL or ID: change a block, or a memory, in $EDITOR; "
        "undo [LABEL or ID]: take back an edit (again: take back the undo); reindex: after a change of embedder; "
        "export USER: everything of a user as JSON Lines, without checkpoints; import FILE: an export, into a user who "
        "has nothing yet; forget-user USER: erase everything of a user from all files",
    )
    memory.add_argument("query", nargs="?", default="", help="what to search for; or the ID, LABEL, USER or FILE")
    memory.add_argument("--text", help="edit: the new text, instead of the editor; - reads it from stdin")
    memory.add_argument("--to", metavar="VERSION", type=int, help="undo: the version to bring back")
    memory.add_argument("--output", metavar="FILE", help="export: where to (default: stdout)")
    memory.add_argument("--yes", action="store_true", help="forget-user: without asking")
    memory.add_argument("--as-of", metavar="DATE", help="list, search: what held on that day")
    memory.add_argument("--limit", type=at_least_one, default=10, help="how many at most (default: 10)")
    memory.add_argument("--json", action="store_true", help="print a list of objects")
    threads = add("threads", "List, show, trace, close, prune or delete a user's conversations.", *COMMON)
    threads.add_argument(
        "action",
        choices=["list", "show", "trace", "close", "sweep", "prune", "delete"],
        help="trace: what each turn did, step by step; "
        "close: file the rest and write an abstract; sweep: close all that were idle for long; "
        "prune: delete old checkpoints; delete: all but the memories",
    )
    threads.add_argument("id", nargs="?", default="", help="the conversation (or --thread); prune takes all without")
    threads.add_argument("--idle-hours", type=at_least_none, default=24, help="what sweep calls long (default: 24)")
    threads.add_argument("--keep", type=at_least_one, default=5, help="checkpoints that prune keeps (default: 5)")
    threads.add_argument("--json", action="store_true", help="print a list of objects")
    docs = add("docs", "Add files, folders and pages, and search in them; answers cite them by number.", "--user")
    docs.add_argument(
        "action",
        choices=["add", "list", "search", "show", "remove", "refresh"],
        help="add: what is new or changed comes in; refresh: looks at what was named before again, and removes what "
        "has vanished; show: the text as it was read",
    )
    docs.add_argument("what", nargs="*", help="paths, folders, patterns and addresses; a query; or names from the list")
    docs.add_argument("--collection", metavar="NAME", help="default: main; list and search take all")
    docs.add_argument("--shared", action="store_true", help="the collections that every user reads")
    docs.add_argument(
        "--allow-private", action="store_true", help="fetch from addresses of this machine's networks too"
    )
    docs.add_argument("--limit", type=at_least_one, default=5, help="passages that search shows (default: 5)")
    docs.add_argument("--json", action="store_true", help="print a list of objects; add and refresh: a report")
    graph = add("graph", "Print the graph as Mermaid text, or draw it as a picture where Graphviz is installed.")
    graph.add_argument("--png", metavar="FILE", help="write a picture to this file (needs Graphviz's dot)")
    studio = add(
        "studio",
        "Start LangGraph's server for Studio, with the memory page at /memory; needs no key.",
        "--user",
        "--model",
    )
    studio.add_argument(
        "--host", default="127.0.0.1", help="where to listen (default: %(default)s, this machine alone)"
    )
    studio.add_argument("--port", type=at_least_one, default=2024, help="port to listen on (default: %(default)s)")
    studio.add_argument("--browser", action="store_true", help="open Studio, a page of smith.langchain.com, when ready")
    doctor = add(
        "doctor",
        "Check model, endpoint, embedder, stores, versions and disk, and say how to mend each.",
        "--user",
        "--model",
        "--set",
    )
    doctor.add_argument(
        "--agent", action="store_true", help="instead: why did it not remember? tools, blocks, refusals"
    )
    return top


def at_least_one(text: str) -> int:
    """Read a number of things to show."""
    number = int(text) if text.isdecimal() else 0
    if number < 1:
        raise argparse.ArgumentTypeError(f"expected a whole number of at least 1, got {text!r}")
    return number


def at_least_none(text: str) -> float:
    """Read a number of hours."""
    try:
        number = float(text)
    except ValueError:
        number = -1
    if not 0 <= number < 1e6:
        raise argparse.ArgumentTypeError(f"expected a number of hours from 0 on, got {text!r}")
    return number


if __name__ == "__main__":
    sys.exit(main())

"""Commands for documents: `palimpsest docs add | list | search | show | remove | refresh`."""

import argparse
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from fnmatch import fnmatchcase
from typing import Any

from langgraph.store.base import BaseStore
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

from graph.fetching import Limits
from graph.ingest import Intake, Report
from graph.outcomes import print_json
from graph.records import opened_store, show
from graph.settings import BadSetting, CannotStart, Settings
from graph.texts import Say, say_in
from memory.documents import EVERY, SHARED, Documents, File, collections_of, search_documents
from nodes.context import Context

MAIN = "main"
DONE = (
    "added {added}, changed {changed}, unchanged {unchanged}, removed {removed}; "
    "{passages} passages written; {failed} failed"
)
INTERRUPTED = "interrupted; what is done is kept, and the same command goes on"


def docs(arguments: argparse.Namespace, settings: Settings, context: Context) -> int:
    """Run one action on the user's documents, or on the shared ones."""
    named: list[str] = arguments.what
    if arguments.action in ("add", "search", "show", "remove") and not any(one.strip() for one in named):
        raise BadSetting(f"name it: palimpsest docs {arguments.action} {WANTED[arguments.action]}")
    if arguments.collection is not None and not arguments.collection.strip():
        raise BadSetting("--collection needs a name; leave it out for the collection main")
    owner = SHARED if arguments.shared else context.user
    with opened_store(settings) as store:
        return ACTIONS[arguments.action](store, owner, arguments, say_in(settings.language))


def one_collection(store: BaseStore, owner: str, arguments: argparse.Namespace) -> Documents:
    """Return the collection that is meant: the one named, else main."""
    return Documents(store, user=owner, collection=arguments.collection or MAIN)


def add(store: BaseStore, owner: str, arguments: argparse.Namespace, say: Say) -> int:
    """Bring in what is named."""
    return bring_in(store, owner, arguments, say, lambda intake: intake.add(arguments.what))


def refresh(store: BaseStore, owner: str, arguments: argparse.Namespace, say: Say) -> int:
    """Look again at what was named before."""
    return bring_in(store, owner, arguments, say, Intake.refresh)


def bring_in(
    store: BaseStore, owner: str, arguments: argparse.Namespace, say: Say, act: Callable[[Intake], Report]
) -> int:
    """Do it under a progress bar, and tell what came of it, also when it was interrupted."""
    code = 0
    with progress() as told:
        limits = Limits(allow_private=arguments.allow_private)
        intake = Intake(one_collection(store, owner, arguments), limits=limits, told=told)
        try:
            act(intake)
        except KeyboardInterrupt:
            code = 130
    report = intake.report
    for kind, found in (("FAILED", report.failed), ("passed by", report.skipped), ("note", report.notes)):
        for name, reason in found:
            print(f"{say(kind)}  {name}: {say.told(reason)}", file=sys.stderr)
    if arguments.json:
        print_json(asdict(report))
    else:
        lists = {name: len(getattr(report, name)) for name in ("added", "changed", "removed", "failed")}
        print(say(DONE, **lists, unchanged=report.unchanged, passages=report.passages))
    if code:
        print(f"palimpsest: {say(INTERRUPTED)}", file=sys.stderr)
    return code or (1 if report.failed else 0)


@contextmanager
def progress() -> Iterator[Callable[[float, int, int], None]]:
    """Show a bar with files, passages and the time left, where there is a terminal to show it."""
    columns = (
        TextColumn("{task.fields[at]}/{task.fields[files]} files"),
        BarColumn(),
        TextColumn("{task.fields[passages]} passages"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), disable=not sys.stderr.isatty()) as bar:
        task = bar.add_task("", total=None, at=0, files="?", passages=0)
        yield lambda done, total, passages: bar.update(
            task, completed=done, total=total, at=int(done), files=total, passages=passages
        )


def listing(store: BaseStore, owner: str, arguments: argparse.Namespace, say: Say) -> int:
    """List the files of one collection, or of all."""
    names = [arguments.collection] if arguments.collection else collections_of(store, user=owner)
    found = [(name, file) for name in names for file in Documents(store, user=owner, collection=name).files()]
    lines = [
        f"{say.many(file.passages, '{n:6} passage', '{n:6} passages')}  {file.at[:10]}  {name}: {file.name}"
        for name, file in found
    ]
    return show([{"collection": name, **asdict(file)} for name, file in found], lines, arguments, say)


def search(store: BaseStore, owner: str, arguments: argparse.Namespace, say: Say) -> int:
    """Search as the agent does; without a threshold, so that a person sees what stands below it."""
    query, collections = " ".join(arguments.what), [arguments.collection or EVERY]
    found = search_documents(
        store, user=owner, query=query, limit=arguments.limit, collections=collections, threshold=-1.0
    )
    lines = [
        f"[{n}] {'' if one.score is None else f'{one.score:.2f}  '}"
        f"{', '.join(filter(None, (one.file.name, ' › '.join(one.passage.heading), one.passage.position)))}\n"
        f"    {' '.join(one.passage.shown.split())}"
        for n, one in enumerate(found, 1)
    ]
    return show([asdict(one) for one in found], lines, arguments, say)


def whole(store: BaseStore, owner: str, arguments: argparse.Namespace, say: Say) -> int:
    """Print documents: their passages in order are what was read of them."""
    docs = one_collection(store, owner, arguments)
    files = chosen(docs, arguments.what)
    if arguments.json:
        found = [{**asdict(file), "passages": [asdict(one) for one in docs.passages(file)]} for file in files]
        return show(found, [], arguments, say)
    for file in files:
        sys.stdout.writelines(passage.text for passage in docs.passages(file))
    return 0


def remove(store: BaseStore, owner: str, arguments: argparse.Namespace, say: Say) -> int:
    """Take files out of the collection."""
    docs = one_collection(store, owner, arguments)
    files = chosen(docs, arguments.what)
    docs.remove(files)
    print(say.many(len(files), "removed {n} file", "removed {n} files"))
    return 0


def chosen(docs: Documents, names: Iterable[str]) -> list[File]:
    """Return the files of these names, sources or patterns. Raises CannotStart for one that fits nothing."""
    files, found = docs.files(), dict[str, File]()
    for name in names:
        same = [file for file in files if name in (file.name, file.source)]
        fit = same or [file for file in files if fnmatchcase(file.name, name)]
        if not fit:
            raise CannotStart(f"there is no {name!r} in this collection; `palimpsest docs list` has the names")
        found |= {file.source: file for file in fit}
    return list(found.values())


WANTED = {"add": "PATH or URL…", "search": "WORDS", "show": "NAME", "remove": "NAME…"}
ACTIONS: dict[str, Callable[[BaseStore, str, Any, Say], int]] = {
    "add": add,
    "list": listing,
    "search": search,
    "show": whole,
    "remove": remove,
    "refresh": refresh,
}

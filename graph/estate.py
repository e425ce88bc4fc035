"""Commands on everything that is kept for one user: `palimpsest memory export | import | forget-user`."""

import argparse
import os
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from graph.admission import owner_in
from graph.agent import open_checkpoints
from graph.keyboard import history_file, kept
from graph.outcomes import print_json
from graph.records import opened_store
from graph.savers import InThreads
from graph.settings import BadSetting, CannotStart, Settings
from memory import portable
from memory.owner import places_of
from memory.sharing import withdraw
from nodes.context import Context

BUSY_S = 5.0
"""How long erasing waits for a run of the user before it is refused."""

Receipt = Counter[str]

KEPT_ELSEWHERE = """\
Not erased, because it lies elsewhere: backups and snapshots of the disk{servers}; what a model's provider logged;
runs that `langgraph dev` keeps in .langgraph_api/ where it was started (stop it and delete that folder)."""
SERVERS = ", the logs (WAL), replicas and backups of the database server, and the files of a Chroma server"


def export_user(arguments: argparse.Namespace, settings: Settings, context: Context) -> int:
    """Write everything of a user as JSON Lines, in UTF-8 whatever the terminal."""
    user = arguments.query or context.user
    prefixes = places_of(user)
    with opened_store(settings) as store:
        items = store.estate.items(prefixes)
    with target(arguments.output) as file:
        file.writelines(portable.written(user, items))
    print(f"exported {len(items)} items of {user!r}; checkpoints are not part of it", file=sys.stderr)
    return 0


@contextmanager
def target(path: str | None) -> Iterator[IO[bytes]]:
    """Open where an export goes: stdout, or a file that only its owner may read and that is whole or not there."""
    if not path:
        sys.stdout.flush()
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
        return
    draft = Path(f"{path}.{os.getpid()}.part")
    try:
        with open(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:  # noqa: PTH123  # a mode
            yield file
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)


def import_user(arguments: argparse.Namespace, settings: Settings, context: Context) -> int:
    """Read an export into a user who has nothing yet: all of it or, after an error, none of it."""
    if not arguments.query:
        raise BadSetting("name the file: palimpsest memory import FILE, or - for stdin; --user NAME for another user")
    if arguments.query == "-":
        user, items = portable.read(sys.stdin.buffer, user=arguments.user)
    else:
        with Path(arguments.query).open("rb") as file:
            user, items = portable.read(file, user=arguments.user)
    prefixes = places_of(user)
    with opened_store(settings) as store:
        if store.estate.items(prefixes):
            raise CannotStart(
                f"{user!r} has memories already, and two histories cannot be one; nothing was written. "
                f"Import for another user with --user, or first: palimpsest memory forget-user"
            )
        store.estate.restore(prefixes, items)
        store.flush()
    print(f"imported {len(items)} items for {user!r}", file=sys.stderr)
    return 0


def forget_user(arguments: argparse.Namespace, settings: Settings, context: Context) -> int:
    """Erase everything of a user, after a yes; print how much of each kind there was."""
    user = arguments.query
    if not user.strip():
        raise BadSetting("name the user: palimpsest memory forget-user NAME; nobody is meant by default")
    confirm(user, arguments.yes)
    receipt = Receipt()
    for part in erased(user, settings):
        receipt.update(part)
    servers = SERVERS if settings.database_url or settings.chroma_url else ""
    if arguments.json:
        print_json({"user": user, "erased": dict(receipt)})
    else:
        print("\n".join(f"{count:>8}  {kind}" for kind, count in sorted(receipt.items())) or "(nothing was kept)")
    print(KEPT_ELSEWHERE.format(servers=servers), file=sys.stderr)
    return 0


def confirm(user: str, said_yes: bool) -> None:
    """Ask for the user's name again; raise BadSetting for anything else, or where nobody can answer."""
    if said_yes:
        return
    asked = f"This erases everything that is kept of {user!r}, for good. Write the name again to go on: "
    if not sys.stdin.isatty():
        raise BadSetting(f"this would erase everything that is kept of {user!r}; add --yes to confirm it")
    if input(asked) != user:
        raise BadSetting("the names differ; nothing was erased")


def erased(user: str, settings: Settings) -> Iterator[Receipt]:
    """Erase everything of a user step by step; yield what each step erased.

    Killed anywhere and begun again, it ends: threads are found by their checkpoints until those are gone, and files are
    rid of what was deleted last of all. Raises ThreadBusy, before anything is erased, while a run of the user goes on.
    """
    prefixes = places_of(user)
    with opened_store(settings) as store, open_checkpoints(settings, wait_s=BUSY_S) as saver:
        threads = threads_of(user, saver)
        for thread in threads:
            with saver.locks.holding(thread):
                pass
        for thread, has_summary in threads.items():
            with saver.locks.holding(thread):
                gone = saver.trim([thread], keep=0)
                saver.delete_thread(thread)
            yield Receipt(checkpoints=gone, summaries=int(has_summary))
        yield Receipt({"shared memories": withdraw(store, user)})
        places = (one.namespace for one in store.estate.items(prefixes))
        kinds = Receipt(place[2] if place[0] == "users" else place[0] for place in places) + Receipt(
            store.estate.count(prefixes)
        )
        store.estate.erase(prefixes)
        yield kinds
        typed = history_file(settings.home, user)
        yield +Receipt(history=len(kept(typed)))
        typed.unlink(missing_ok=True)
        saver.compact()
        store.estate.scrub()
        if store.estate.items(prefixes) or threads_of(user, saver):
            raise CannotStart(f"{user!r} wrote something meanwhile; end what runs for this user, and forget again")


def threads_of(user: str, saver: InThreads) -> dict[str, bool]:
    """Return the threads that a user began, and whether each has a running summary."""
    found = {}
    for thread in saver.threads():
        newest = saver.get_tuple({"configurable": {"thread_id": thread, "checkpoint_ns": ""}})
        if newest and owner_in(newest) == user:
            found[thread] = bool(newest.checkpoint["channel_values"].get("summary"))
    return found


ACTIONS: dict[str, Callable[[argparse.Namespace, Settings, Context], int]] = {
    "export": export_user,
    "import": import_user,
    "forget-user": forget_user,
}

"""Every verb on what belongs to a user: of what memory/ holds, of the agent's own tools, of the terminal.

What is not in these tables fails tests/test_tenants.py: whoever adds a verb says here how it is used. Both users use
the same thread, message ids, keys, labels, files and words; each text holds its writer's mark.
"""

import importlib
import inspect
import pkgutil
from collections.abc import Callable, Iterator
from typing import Any

from langgraph.store.base import BaseStore

import memory
from memory.blocks import Author, Blocks
from memory.catalogue import Catalogue, Thread
from memory.documents import Documents, File, collections_of, has_documents, search_documents
from memory.facts import Facts
from memory.ledger import Ledger
from memory.memories import Memories, Source
from memory.outputs import Outputs
from memory.passages import Document, Passage
from memory.sharing import withdraw
from memory.transcript import Entry, Transcript, search_said

T, QUERY = "t", "Which tea and city and file?"
AUTHOR = Author(by="person", thread=T, message="m")
Verb = Callable[[BaseStore, str, str], Any]
"""Given store, user and the user's mark; returns what the caller would see."""


def entry(mark: str) -> Entry:
    return Entry(id="m", role="human", text=f"My tea is {mark}", at="2026-05-01T12:00:00", data={"content": mark})


def file() -> File:
    return File(source="/a.md", name="a.md")


def found_memories(store: BaseStore, user: str) -> list[str]:
    return [one.id for one in Memories(store, user=user).all(past=True)]


def forget_one(store: BaseStore, user: str) -> Any:
    ids = found_memories(store, user)
    return [Memories(store, user=user).forget(id) for id in ids[:1]]


def undone(store: BaseStore, user: str) -> Any:
    blocks = Blocks(store, user=user)
    return blocks.undo("human", author=AUTHOR) if blocks.get("human").version else None


def replaced(store: BaseStore, user: str, mark: str) -> Any:
    blocks = Blocks(store, user=user)
    text = blocks.get("human").text
    return blocks.replace("human", text, f"{mark} again", author=AUTHOR) if text else None


VERBS: dict[str, Verb] = {
    "Blocks.all": lambda s, u, m: Blocks(s, user=u).all(),
    "Blocks.get": lambda s, u, m: Blocks(s, user=u).get("human"),
    "Blocks.history": lambda s, u, m: Blocks(s, user=u).history("human"),
    "Blocks.append": lambda s, u, m: Blocks(s, user=u).append("human", m, author=AUTHOR),
    "Blocks.replace": lambda s, u, m: replaced(s, u, m),
    "Blocks.rewrite": lambda s, u, m: Blocks(s, user=u).rewrite("human", f"{m} whole", author=AUTHOR),
    "Blocks.undo": lambda s, u, m: undone(s, u),
    "Catalogue.noting": lambda s, u, m: Catalogue(s, user=u).noting(T, m),
    "Catalogue.note": lambda s, u, m: Catalogue(s, user=u).note(T, m),
    "Catalogue.close": lambda s, u, m: Catalogue(s, user=u).close(T, f"About tea and {m}"),
    "Catalogue.writing": lambda s, u, m: Catalogue(s, user=u).writing(
        Thread(id=T, title=m, began="", used="", turns=1)
    ),
    "Catalogue.search": lambda s, u, m: Catalogue(s, user=u).search(QUERY, limit=9),
    "Catalogue.get": lambda s, u, m: Catalogue(s, user=u).get(T),
    "Catalogue.all": lambda s, u, m: Catalogue(s, user=u).all(),
    "Catalogue.forget": lambda s, u, m: Catalogue(s, user=u).forget(T),
    "Documents.get": lambda s, u, m: Documents(s, user=u).get(["/a.md"]),
    "Documents.files": lambda s, u, m: Documents(s, user=u).files(),
    "Documents.entries": lambda s, u, m: list(Documents(s, user=u).entries()),
    "Documents.put": lambda s, u, m: Documents(s, user=u).put(file(), Document(text=f"The file on tea: {m}"), rev=m),
    "Documents.begin": lambda s, u, m: None,  # `put` uses it
    "Documents.finish": lambda s, u, m: None,  # `put` uses it
    "Documents.note": lambda s, u, m: [Documents(s, user=u).note(one) for one in Documents(s, user=u).files()],
    "Documents.remove": lambda s, u, m: Documents(s, user=u).remove(Documents(s, user=u).files()),
    "Documents.take": lambda s, u, m: Documents(s, user=u).take(file().id, ("gone", 1)),
    "Documents.passages": lambda s, u, m: [
        list(Documents(s, user=u).passages(one)) for one in Documents(s, user=u).files()
    ],
    "Documents.putting": lambda s, u, m: Documents(s, user=u).putting(
        file(), 0, Passage(text=m, lead="", heading=(), position="")
    ),
    "Documents.deleting": lambda s, u, m: Documents(s, user=u).deleting(file().id, ("r", 1)),
    "Documents.noting": lambda s, u, m: Documents(s, user=u).noting(file()),
    "search_documents": lambda s, u, m: search_documents(s, user=u, query=QUERY, limit=9, threshold=-1.0),
    "has_documents": lambda s, u, m: has_documents(s, user=u),
    "collections_of": lambda s, u, m: collections_of(s, user=u),
    "Facts.set": lambda s, u, m: Facts(s, user=u).set("tea", m, thread=T, message="m"),
    "Facts.all": lambda s, u, m: Facts(s, user=u).all(),
    "Facts.get": lambda s, u, m: Facts(s, user=u).get("tea"),
    "Facts.history": lambda s, u, m: Facts(s, user=u).history("tea"),
    "Ledger.read": lambda s, u, m: Ledger(s, user=u).read(T),
    "Ledger.note": lambda s, u, m: Ledger(s, user=u).note(T, [m]),
    "Ledger.unread": lambda s, u, m: Ledger(s, user=u).unread(T, [[m]]),
    "Ledger.failed": lambda s, u, m: Ledger(s, user=u).failed(T, m, "2026-05-01"),
    "Ledger.succeeded": lambda s, u, m: Ledger(s, user=u).succeeded(T),
    "Ledger.failures": lambda s, u, m: Ledger(s, user=u).failures(),
    "Ledger.forget": lambda s, u, m: Ledger(s, user=u).forget([f"m-{m}"], "2020-01-01"),
    "Ledger.forgotten": lambda s, u, m: Ledger(s, user=u).forgotten([f"m-{m}"]),
    "Ledger.erase": lambda s, u, m: Ledger(s, user=u).erase(T),
    "Memories.save": lambda s, u, m: Memories(s, user=u).save(
        f"My tea is {m}", sources=[Source(thread=T, message="m")]
    ),
    "Memories.settle": lambda s, u, m: Memories(s, user=u).settle("tea"),
    "Memories.search": lambda s, u, m: Memories(s, user=u).search(QUERY, limit=9, threshold=-1.0),
    "Memories.judged": lambda s, u, m: Memories(s, user=u).judged(QUERY, limit=9, threshold=-1.0),
    "Memories.get": lambda s, u, m: [Memories(s, user=u).get(id) for id in found_memories(s, u)],
    "Memories.all": lambda s, u, m: Memories(s, user=u).all(past=True),
    "Memories.split": lambda s, u, m: [Memories(s, user=u).split(id) for id in found_memories(s, u)],
    "Memories.forget": lambda s, u, m: forget_one(s, u),
    "Memories.edit": lambda s, u, m: Memories(s, user=u).edit(["nothing"], lambda seen: {}),
    "Outputs.keeping": lambda s, u, m: s.batch([Outputs(s, user=u, thread=T).keeping(f"long {m}")[1]]),
    "Outputs.read": lambda s, u, m: Outputs(s, user=u, thread=T).read(
        Outputs(s, user=u, thread=T).keeping(f"long {m}")[0]
    ),
    "Outputs.erase": lambda s, u, m: Outputs(s, user=u, thread=T).erase(),
    "Transcript.file": lambda s, u, m: Transcript(s, user=u, thread=T).file([entry(m)]),
    "Transcript.missing": lambda s, u, m: Transcript(s, user=u, thread=T).missing([entry(m)]),
    "Transcript.stored": lambda s, u, m: Transcript(s, user=u, thread=T).stored([entry(m)]),
    "Transcript.entries": lambda s, u, m: Transcript(s, user=u, thread=T).entries(),
    "Transcript.erase": lambda s, u, m: Transcript(s, user=u, thread=T).erase(),
    "search_said": lambda s, u, m: search_said(s, user=u, query=QUERY, limit=9),
    "withdraw": lambda s, u, m: withdraw(s, u),
}

INNER = {"found"}
"""Functions of a module that others of it call with what they found."""

TOOLS: dict[str, Callable[[str], dict[str, Any]]] = {
    "recall": lambda m: {"query": QUERY, "k": 9},
    "memory_save": lambda m: {"text": f"My tea is {m}", "about": "tea"},
    "memory_get": lambda m: {"id": "{memory}"},
    "memory_forget": lambda m: {"id": "{memory}"},
    "fact_set": lambda m: {"key": "tea", "value": m},
    "core_memory_append": lambda m: {"label": "human", "content": f"tea {m}"},
    "core_memory_replace": lambda m: {"label": "human", "old": "tea", "new": f"tea {m}"},
    "team_save": lambda m: {"team": "dock", "text": f"My tea is {m}"},
    "session_search": lambda m: {"query": QUERY, "everywhere": True, "k": 9},
    "search_documents": lambda m: {"query": QUERY, "k": 9},
    "calculator": lambda m: {"expression": "1 + 1"},
    "current_time": lambda m: {},
    "tool_result": lambda m: {"id": "{message}"},
}
"""Arguments of each own tool. {memory} and {message} stand for an id of the *other* user's."""

COMMANDS: dict[str, Callable[[str], list[str]] | str] = {
    "chat": "reads its lines from stdin; `ask` is the same turn",
    "studio": "starts a server: tests/test_studio.py has two logins on it",
    "graph": lambda m: ["graph"],
    "doctor": lambda m: ["doctor", "--agent"],
    "ask": lambda m: ["ask", f"Remember that my tea is {m}", "--json"],
    "memory list": lambda m: ["memory", "list", "--json"],
    "memory search": lambda m: ["memory", "search", "tea", "--json"],
    "memory show": lambda m: ["memory", "show", "{memory}"],
    "memory why": lambda m: ["memory", "why", "tea"],
    "memory split": lambda m: ["memory", "split", "{memory}"],
    "memory reindex": lambda m: ["memory", "reindex"],
    "memory blocks": lambda m: ["memory", "blocks", "human", "--json"],
    "memory edit": lambda m: ["memory", "edit", "human", "--text", f"tea {m}"],
    "memory undo": lambda m: ["memory", "undo", "human"],
    "memory export": lambda m: ["memory", "export"],
    "memory import": "wants an empty user: tests/test_portable.py",
    "memory forget-user": "comes last in the test, and must leave the other user whole",
    "threads list": lambda m: ["threads", "list", "--json"],
    "threads show": lambda m: ["threads", "show", "{thread}", "--json"],
    "threads trace": lambda m: ["threads", "trace", "{thread}", "--json"],
    "threads close": lambda m: ["threads", "close", "{thread}"],
    "threads sweep": lambda m: ["threads", "sweep", "--idle-hours", "0"],
    "threads prune": lambda m: ["threads", "prune", "--keep", "1"],
    "threads delete": lambda m: ["threads", "delete", "{thread}"],
    "docs add": lambda m: ["docs", "add", f"{m}.md"],
    "docs list": lambda m: ["docs", "list", "--json"],
    "docs search": lambda m: ["docs", "search", "tea", "--json"],
    "docs show": lambda m: ["docs", "show", f"{m}.md"],
    "docs refresh": lambda m: ["docs", "refresh"],
    "docs remove": lambda m: ["docs", "remove", f"{m}.md"],
}
"""Words of each command, or why it is not among them. {thread} and {memory} are the *other* user's."""


def verbs_in_memory() -> Iterator[str]:
    """Yield every public method of a class, and every public function, that takes a store and a user."""
    for module in pkgutil.iter_modules(memory.__path__):
        found = importlib.import_module(f"memory.{module.name}")
        for name, one in vars(found).items():
            if getattr(one, "__module__", None) != found.__name__ or name.startswith("_") or not callable(one):
                continue
            takes = inspect.signature(one.__init__ if inspect.isclass(one) else one).parameters
            if not {"store", "user"} <= set(takes):
                continue
            verbs = [verb for verb, code in vars(one).items() if verb[0] != "_" and inspect.isfunction(code)]
            yield from [name] if inspect.isfunction(one) else (f"{name}.{verb}" for verb in verbs)

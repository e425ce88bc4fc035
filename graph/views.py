"""What the memory page shows and does, as plain data: each function is one view, or one edit, of one user's memory.

It knows nothing of HTTP: graph/page.py calls it with what a request gives, off the event loop.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import islice
from typing import Any

from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.store.base import BaseStore

from graph.block_commands import PERSON
from memory.block_specs import DEFAULT_BLOCKS, MAX_LIMIT, BlockSpec
from memory.blocks import Block, Blocks
from memory.catalogue import Catalogue
from memory.documents import SHARED, Documents, File, collections_of, search_documents
from memory.facts import Facts
from memory.labels import unlabel
from memory.memories import Memories
from memory.owner import everything, owned
from memory.passages import Passage
from memory.transcript import Entry, Transcript

AT_ONCE = 100
"""Memories that are sent at once; the page asks for more."""

FOUND = 20


class Missing(LookupError):
    """Something that this user has not; the message says what and what to do."""


@dataclass(frozen=True, kw_only=True)
class Desk:
    """One user's memory, opened."""

    store: BaseStore
    saver: BaseCheckpointSaver[Any]
    user: str
    blocks: Sequence[BlockSpec] = DEFAULT_BLOCKS
    is_login: bool = False
    """Whether the server says who the user is; otherwise any user may be looked at."""


Given = Mapping[str, Any]
"""What a request gives: the fields of a query, or of a JSON object."""

View = Callable[[Desk, Given], Any]


def text(given: Given, name: str) -> str:
    """Read a text that must be given. Raises ValueError."""
    if not isinstance(value := given.get(name), str):
        raise ValueError(f"{name} must be a text, got {value!r}")
    return value


def number(given: Given, name: str, default: int | None = None) -> int:
    """Read a whole number from 0 on. Raises ValueError."""
    value = given.get(name, default)
    if isinstance(value, str) and value.isdecimal() and len(value) < 10:
        value = int(value)
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise ValueError(f"{name} must be a whole number from 0 on, got {value!r}")
    return value


def blocks(desk: Desk, given: Given) -> Any:
    """Show the blocks, each with its versions, the newest first."""
    shown = []
    for spec in specs_of(desk).values():
        history = [block_of(desk, one) for one in reversed(kept_block(desk, spec).history(spec.label))]
        shown.append({**history[0], "history": history})
    return shown


def specs_of(desk: Desk) -> dict[str, BlockSpec]:
    """Return the blocks that are set, and after them those that another context brought: of these no limit is known."""
    own = {spec.label: spec for spec in desk.blocks}
    others = {item.value["label"] for item in everything(desk.store, owned(desk.user, "blocks"))} - own.keys()
    return own | {label: BlockSpec(label=label, limit=MAX_LIMIT) for label in sorted(others)}


def kept_block(desk: Desk, spec: BlockSpec) -> Blocks:
    """Return the blocks of which this is the only one: two contexts may have labels that are too much alike for one."""
    return Blocks(desk.store, user=desk.user, specs=(spec,))


def named_block(desk: Desk, given: Given) -> tuple[str, Blocks]:
    """Return the block that a request names. Raises Missing."""
    spec = specs_of(desk).get(label := text(given, "label"))
    if spec is None:
        raise Missing(f"this user has no block {label!r}; look at the list again")
    return label, kept_block(desk, spec)


def block_of(desk: Desk, block: Block) -> dict[str, Any]:
    """Write a version of a block as plain data; a limit that is not known is 0."""
    kept, spec = asdict(block), block.spec
    limit = spec.limit if spec in desk.blocks else 0
    told = {"label": spec.label, "description": spec.description, "limit": limit, "chars": len(block.text)}
    return {name: value for name, value in kept.items() if name != "spec"} | told


def edit_block(desk: Desk, given: Given) -> Any:
    """Write the whole text of a block, if it is still at the version that the person saw. Raises BlockRefused."""
    label, kept = named_block(desk, given)
    return block_of(desk, kept.rewrite(label, text(given, "text"), author=PERSON, seen=number(given, "seen")).block)


def undo_block(desk: Desk, given: Given) -> Any:
    """Bring back a version of a block, if it is still at the one that the person saw. Raises BlockRefused."""
    label, kept = named_block(desk, given)
    version = number(given, "version")
    past = next((one for one in kept.history(label) if one.version == version), None)
    if past is None:
        raise Missing(f"the block has no version {version}; look at its history again")
    return block_of(
        desk, kept.rewrite(label, past.text, author=PERSON, seen=number(given, "seen"), action="undo").block
    )


def facts(desk: Desk, given: Given) -> Any:
    """Show every value that each fact had, and when; the newest first."""
    kept = Facts(desk.store, user=desk.user)
    keys = sorted(item.value["key"] for item in everything(desk.store, kept.namespace))
    return [{"key": key, "values": [asdict(one) for one in reversed(kept.history(key))]} for key in keys]


def memories(desk: Desk, given: Given) -> Any:
    """Show a page of the memories, those that hold no longer too, the newest first, and how many there are."""
    found, start = Memories(desk.store, user=desk.user).all(past=True), number(given, "offset", 0)
    return {"total": len(found), "items": [asdict(one) for one in found[start : start + AT_ONCE]]}


def said(desk: Desk, given: Given) -> Any:
    """Show what was said in one message, in each of its versions; nothing if it is not in the transcript any more."""
    id, message = text(given, "thread"), text(given, "message")
    entries = Transcript(desk.store, user=desk.user, thread=id).entries()
    return [entry_of(entry) for entry in entries if entry.id == message]


def entry_of(entry: Entry) -> dict[str, Any]:
    """Write an entry of the transcript as plain data; of the whole message what a person reads."""
    calls = [{"name": call["name"], "args": call["args"]} for call in entry.data.get("tool_calls") or ()]
    return {"id": entry.id, "role": entry.role, "text": entry.text, "at": entry.at, "calls": calls}


def forget(desk: Desk, given: Given) -> Any:
    """Delete a memory, so that nothing brings it back."""
    if not Memories(desk.store, user=desk.user).forget(id := text(given, "id")):
        raise Missing("this memory is gone already")
    return {"forgotten": id}


def search(desk: Desk, given: Given) -> Any:
    """Search, and tell what each hit owes to which leg: cosine and rank by meaning, share and rank by words.

    Of memories it tells too which of them recall would leave out, and why; of passages in which document they stand.
    """
    kind, query = given.get("kind", "memories"), text(given, "query")
    store: Any = desk.store
    if kind == "documents":
        passages = search_documents(store, user=desk.user, query=query, limit=FOUND, threshold=-1.0)
        return [{**passage_of(one.passage), **one.parts, "in": [one.collection, one.file.name]} for one in passages]
    if kind == "transcript":
        hits = store.find(owned(desk.user, kind), query, limit=FOUND, neighbours=True)
        return [{**hit_of(hit), "thread": unlabel(hit.namespace[-1])} for hit in hits]
    if kind != "memories":
        raise ValueError(f"kind must be memories, transcript or documents, got {kind!r}")
    found = Memories(store, user=desk.user).judged(query, limit=FOUND)
    return [{**hit_of(one.hit), "left_out": one.left_out} for one in found]


def hit_of(hit: Any) -> dict[str, Any]:
    """Write a hit with its parts as plain data."""
    return {"id": hit.key, "text": hit.value["text"], "at": hit.value["at"], **hit.parts}


def documents(desk: Desk, given: Given) -> Any:
    """Show the user's collections and those that all read, each with its files."""
    owners = {desk.user: False, SHARED: True}
    return [
        {
            "name": name,
            "shared": shared,
            "files": list(map(file_of, Documents(desk.store, user=owner, collection=name).files())),
        }
        for owner, shared in owners.items()
        for name in collections_of(desk.store, user=owner)
    ]


def file_of(file: File) -> dict[str, Any]:
    """Write a file as plain data."""
    return {name: getattr(file, name) for name in ("source", "name", "title", "size", "passages", "at")}


def passages(desk: Desk, given: Given) -> Any:
    """Show some of the passages of a file, in their order, and how many there are. Raises Missing."""
    owner = SHARED if text(given, "shared") == "true" else desk.user
    kept = Documents(desk.store, user=owner, collection=text(given, "collection"))
    (file,) = kept.get([text(given, "source")])
    if file is None or not file.rev:
        raise Missing("this document is gone; look at the list again")
    start = number(given, "offset", 0)
    return {"total": file.passages, "items": list(map(passage_of, islice(kept.passages(file), start, start + AT_ONCE)))}


def passage_of(one: Passage) -> dict[str, Any]:
    """Write a passage as plain data."""
    return {"text": one.shown.rstrip(), "place": [*one.heading, *filter(None, [one.position])]}


def threads(desk: Desk, given: Given) -> Any:
    """Show the conversations, the last used first."""
    return [{**asdict(one), "is_open": one.is_open} for one in Catalogue(desk.store, user=desk.user).all()]


def thread(desk: Desk, given: Given) -> Any:
    """Show a conversation word for word, and the running summary with which of the messages are still on the page."""
    id = text(given, "id")
    if Catalogue(desk.store, user=desk.user).get(id) is None:
        raise Missing("this user has no such conversation; look at the list again")
    state = state_of(desk, id)
    page = {message.id for message in state.get("messages", ())}
    entries = Transcript(desk.store, user=desk.user, thread=id).entries()
    return {
        "summary": state.get("summary", ""),
        "entries": [{**entry_of(entry), "on_page": not state or entry.id in page} for entry in entries],
    }


def state_of(desk: Desk, id: str) -> dict[str, Any]:
    """Return the state of a thread; empty without a checkpoint, or if the thread of this id is another user's."""
    found = desk.saver.get_tuple({"configurable": {"thread_id": id}})
    state: dict[str, Any] = found.checkpoint["channel_values"] if found else {}
    return state if state.get("owner") == desk.user else {}


VIEWS: dict[str, View] = {
    "blocks": blocks,
    "facts": facts,
    "memories": memories,
    "said": said,
    "search": search,
    "documents": documents,
    "passages": passages,
    "threads": threads,
    "thread": thread,
}
EDITS: dict[str, View] = {"edit": edit_block, "undo": undo_block, "forget": forget}

"""Documents: what was written before, as passages with their place. Files are named, compared and replaced whole.

A file's entry (its `File`) says which revision of its passages holds; nothing else is ever found or shown. So a file is
never half in, whatever is killed, and however large it is it is written in strokes. It reads no files: texts come in.
"""

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from math import log10
from typing import Any

from langgraph.store.base import BaseStore, GetOp, Item, PutOp, SearchItem

from memory.closeness import search_in, shares_words
from memory.labels import label, unlabel
from memory.owner import Namespace, owned
from memory.passages import Document, Passage, split
from memory.text import clean
from memory.times import clock_of, stamp

SHARED = ""
"""The owner of collections that every user reads; no user has this id."""

EVERY = "*"
CLOSER = 0.1
"""A passage that shares few words with the question must be closer than unrelated texts may be, and by so much more for
each ten times as many passages that it was found among: chance has more tries (measured: DECISIONS.md)."""
MOST_FILES = 10**6
AT_ONCE = 256
"""Passages in one stroke: about 5 MB of vectors, four seconds of the built-in embedder."""


Revision = tuple[str, int]
"""What a file held at a time, named by its content, and in how many passages."""

NOTHING: Revision = ("", 0)


@dataclass(frozen=True, kw_only=True)
class File:
    """One file or page of a collection. `source` is its path or address, `name` what people call it, `root` what was
    named to bring it in. `rev` is the revision that holds, empty while there is none; `pending` one that is being
    written or taken away, or was when a process died.
    """

    source: str
    name: str
    root: str = ""
    title: str = ""
    size: int = 0
    mtime_ns: int = 0
    rev: str = ""
    passages: int = 0
    at: str = ""
    pending: Revision = NOTHING

    @property
    def id(self) -> str:
        """Name the file by its source."""
        return hashlib.sha256(self.source.encode("utf-8", "surrogatepass")).hexdigest()[:16]


@dataclass(frozen=True, kw_only=True)
class Found:
    """A passage that a search found, in which file; `score` is the cosine to the query, None without an embedder.

    `parts` is what it owes to each leg, empty where the store does not tell.
    """

    passage: Passage
    file: File
    collection: str
    number: int
    score: float | None
    parts: Mapping[str, Any]


class Documents:
    """One collection of one user; of all of them with SHARED for the user."""

    def __init__(
        self, store: BaseStore, *, user: str, collection: str = "main", clock: Callable[[], datetime] | None = None
    ) -> None:
        self.store = store
        self.namespace = place_of(user, collection)
        self.clock = clock or clock_of(store)

    def get(self, sources: Sequence[str]) -> list[File | None]:
        """Return the entries of files by their sources."""
        ids = [File(source=source, name="").id for source in sources]
        found: list[Any] = self.store.batch([GetOp((*self.namespace, "files"), id) for id in ids])
        return [file_of(item.value) if isinstance(item, Item) else None for item in found]

    def files(self) -> list[File]:
        """List the files that are in, by name."""
        return sorted((file for file in self.entries() if file.rev), key=lambda file: (file.name, file.source))

    def entries(self) -> Iterator[File]:
        """Yield every entry, those of files that are not in yet as well."""
        for item in self.store.search((*self.namespace, "files"), limit=MOST_FILES):
            yield file_of(item.value)

    def put(
        self, file: File, document: Document, *, rev: str, told: Callable[[int, int], None] = lambda done, total: None
    ) -> File:
        """Replace a file's passages by those of a document; `told` hears how many are done, and of how many.

        The last stroke writes the entry in its transaction: from then on the new passages hold, and no old one.
        """
        document = replace(document, text=clean(document.text), title=clean(document.title))
        passages = split(document)
        revision, at = (rev, len(passages)), stamp(self.clock())
        new = replace(file, title=document.title, rev=rev, passages=len(passages), at=at, pending=NOTHING)
        puts = [self.putting(new, n, passage) for n, passage in enumerate(passages)]
        last = max(len(puts) - 1, 0) // AT_ONCE * AT_ONCE
        old = self.get([file.source])[0] or replace(file, rev="", passages=0)
        goes_on = self.begin(old, revision) if last or old.pending != NOTHING else False
        for start in range(0, last, AT_ONCE):
            stroke = puts[start : start + AT_ONCE]
            if not (goes_on and self.store.get(stroke[-1].namespace, stroke[-1].key)):
                self.store.batch(stroke)
            told(start + AT_ONCE, len(puts))
        self.finish(new, puts[last:])
        told(len(puts), len(puts))
        return new

    def begin(self, old: File, revision: Revision) -> bool:
        """Note which revision is being written; return whether a killed writer had begun with it."""
        if old.pending == revision:
            return True
        self.take(old.id, old.pending)
        self.store.batch([self.noting(replace(old, pending=NOTHING if old.rev == revision[0] else revision))])
        return False

    def finish(self, new: File, puts: Sequence[PutOp]) -> None:
        """Write the last stroke and the entry, and take the old passages away: few at once, many after that."""
        old = self.get([new.source])[0] or new  # another process may have written meanwhile
        stale = NOTHING if old.rev == new.rev else (old.rev, old.passages)
        if stale[1] <= AT_ONCE:
            self.store.batch([*puts, *self.deleting(new.id, stale), self.noting(new)])
        else:
            self.store.batch([*puts, self.noting(replace(new, pending=stale))])
            self.note(replace(new, pending=stale))

    def note(self, file: File) -> None:
        """Write the entry of a file whose passages stay; those of another revision go."""
        self.take(file.id, file.pending)
        self.store.batch([self.noting(replace(file, pending=NOTHING))])

    def remove(self, files: Iterable[File]) -> None:
        """Delete files with their passages; each is gone at once, also if it takes long to delete what it left."""
        for file in files:
            self.take(file.id, file.pending)
            if file.passages > AT_ONCE:
                file = replace(file, rev="", passages=0, pending=(file.rev, file.passages))
                self.store.batch([self.noting(file)])
                self.take(file.id, file.pending)
            gone = self.deleting(file.id, (file.rev, file.passages))
            self.store.batch([*gone, PutOp((*self.namespace, "files"), file.id, None)])

    def take(self, id: str, revision: Revision) -> None:
        """Delete the passages of a revision in strokes."""
        ops = self.deleting(id, revision)
        for start in range(0, len(ops), AT_ONCE):
            self.store.batch(ops[start : start + AT_ONCE])

    def passages(self, file: File) -> Iterator[Passage]:
        """Yield a file's passages; their texts, joined, are the document."""
        for start in range(0, file.passages, AT_ONCE):
            keys = [key_of(file.id, file.rev, n) for n in range(start, min(start + AT_ONCE, file.passages))]
            found: list[Any] = self.store.batch([GetOp((*self.namespace, "passages"), key) for key in keys])
            yield from (passage_of(item.value) for item in found if isinstance(item, Item))

    def putting(self, file: File, n: int, passage: Passage) -> PutOp:
        """Write a passage; what is searched of it begins with its lead."""
        value = {
            "text": passage.lead + passage.text,
            "lead": len(passage.lead),
            "heading": list(passage.heading),
            "position": passage.position,
            "file": file.id,
            "rev": file.rev,
            "n": n,
        }
        return PutOp((*self.namespace, "passages"), key_of(file.id, file.rev, n), value, index=["text"])

    def deleting(self, id: str, revision: Revision) -> list[PutOp]:
        """Delete the passages of a revision."""
        rev, count = revision
        return [PutOp((*self.namespace, "passages"), key_of(id, rev, n), None) for n in range(count)]

    def noting(self, file: File) -> PutOp:
        """Write a file's entry; it is not searched."""
        return PutOp((*self.namespace, "files"), file.id, {**asdict(file), "pending": list(file.pending)}, index=False)


def search_documents(
    store: BaseStore,
    *,
    user: str,
    query: str,
    limit: int,
    collections: Sequence[str] = (EVERY,),
    threshold: float | None = None,
) -> list[Found]:
    """Find passages in the user's collections and the shared ones, or in those of some names, best first.

    A passage is left out that holds few of the question's words and is not close to it; `threshold` is the least cosine
    that counts as close. Passages of a revision that does not hold are passed over.
    """
    prefixes = readable(user, collections)
    query, wanted = clean(query), limit
    if not prefixes or limit <= 0 or not query.strip():
        return []
    while True:
        hits = search_in(store, *prefixes, query=query, limit=wanted)
        found = list(in_their_files(store, [hit for hit in hits if is_close(hit, store, threshold)]))
        if len(found) >= limit or len(hits) < wanted:
            return found[:limit]
        wanted *= 4


def has_documents(store: BaseStore, *, user: str, collections: Sequence[str] = (EVERY,)) -> bool:
    """Whether there is anything to find for this user."""
    return any(store.search(prefix, limit=1) for prefix in readable(user, collections))


def collections_of(store: BaseStore, *, user: str) -> list[str]:
    """Name the collections of a user, or the shared ones."""
    places = store.list_namespaces(prefix=owned_by(user), suffix=("files",), limit=MOST_FILES)
    return sorted(unlabel(place[2]) for place in places)


def readable(user: str, collections: Sequence[str]) -> list[Namespace]:
    """Name the places that a user may search: all of their own and the shared ones, or those of some names."""
    return [
        prefix
        for owner in (user, SHARED)
        for prefix in ([owned_by(owner)] if EVERY in collections else [place_of(owner, one) for one in collections])
    ]


def is_close(hit: SearchItem, store: BaseStore, threshold: float | None) -> bool:
    """Whether a hit is more than chance: by its words, or by its meaning where the embedder's floor is known."""
    floor, among = getattr(store, "threshold", 0.0), getattr(hit, "among", 0)
    least = floor + CLOSER * log10(max(among, 1)) if floor or not among else 1.0
    least = least if threshold is None else threshold
    return bool(among and shares_words(hit)) or (hit.score is not None and hit.score >= least)


def in_their_files(store: BaseStore, hits: Sequence[SearchItem]) -> Iterator[Found]:
    """Yield those hits that are passages of the revision that holds, with their file."""
    hits = [hit for hit in hits if hit.namespace[-1] == "passages"]
    asked = [GetOp((*hit.namespace[:-1], "files"), hit.value["file"]) for hit in hits]
    entries: list[Any] = store.batch(asked) if asked else []
    for hit, entry in zip(hits, entries, strict=True):
        file = file_of(entry.value) if isinstance(entry, Item) else None
        if file and file.rev == hit.value["rev"]:
            collection = unlabel(hit.namespace[2])
            number, passage, parts = hit.value["n"], passage_of(hit.value), getattr(hit, "parts", {})
            yield Found(passage=passage, file=file, collection=collection, number=number, score=hit.score, parts=parts)


def owned_by(user: str) -> Namespace:
    """Name the place of all collections of a user, or of the shared ones."""
    return ("documents", label(SHARED) if user == SHARED else owned(user)[1])


def place_of(user: str, collection: str) -> Namespace:
    """Name the place of one collection: `("documents", U, C)`. Raises ValueError for a blank name."""
    if not clean(collection).strip():
        raise ValueError(f"a collection needs a name, got {collection!r}")
    return (*owned_by(user), label(clean(collection)))


def key_of(id: str, rev: str, n: int) -> str:
    """Name a passage by its file, the file's revision and its number."""
    return f"{id}.{rev}.{n:06}"


def file_of(value: dict[str, Any]) -> File:
    """Read a stored entry."""
    return File(**{**value, "pending": tuple(value["pending"])})


def passage_of(value: dict[str, Any]) -> Passage:
    """Read a stored passage."""
    text, lead = value["text"], value["lead"]
    return Passage(text=text[lead:], lead=text[:lead], heading=tuple(value["heading"]), position=value["position"])

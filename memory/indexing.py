"""What of an item is searched: its texts by path, their terms, and their vectors.

Where those are kept is memory/legs.py's matter.
"""

import logging
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from langgraph.store.base import IndexConfig, get_text_at_path
from numpy.typing import NDArray

from memory.embedding import Embedder, EmbeddingError, NoEmbedder, as_embedder, default_embedder
from memory.errors import BadValue
from memory.words import terms

Paths = Literal[False] | Sequence[str] | None
"""What to index of one item: False for nothing, None for the store's own fields."""

EMBEDDED_AT_ONCE = 256
NOT_EMBEDDED = (
    "%s; searching by keywords alone. What is written meanwhile is embedded at the next start with an embedder."
)

log = logging.getLogger(__name__)


class StoreIndex(IndexConfig, total=False):
    """LangGraph's index configuration, every field optional, and whether words count beside meaning."""

    hybrid: bool
    words_alone: bool


BUILT_IN: StoreIndex = {"hybrid": True}
"""The bundled embedder; the text of a value under "text", or the whole value if it has none; both legs."""
WORDS_ALONE: StoreIndex = {"words_alone": True}
"""Keywords alone, where no embedder can be loaded: the vectors that are there stay, what is written waits for one."""


@dataclass(frozen=True, kw_only=True)
class Entry:
    """What is searched of one item: its terms, and a vector of unit length for each part of its texts."""

    terms: Counter[str]
    vectors: NDArray[np.float32]


Placed = tuple[int, int, Entry]
"""What is searched of an item, after the ids of the item and of its namespace."""


MOST_PARTS = 256
"""Vectors of one text at most: a text of a megabyte would take a minute. Its keywords are all there."""


class Index:
    """An embedder, the fields it reads, and whether keywords take part in the order.

    `embedder` is None where there is none, or once it turned out that it cannot be loaded.
    """

    def __init__(self, embedder: Embedder | None, fields: Sequence[str] | None, *, hybrid: bool) -> None:
        self.embedder = embedder
        self.hybrid = hybrid
        self._fields = fields
        self._asked: tuple[str, NDArray[np.float32]] | None = None

    def entries(self, items: Sequence[tuple[str, Mapping[str, Any], Paths]]) -> list[Entry]:
        """Derive what is searched of items given by name, value and paths.

        Raises BadValue, naming the item, if the embedder returns no usable vector for one.
        """
        texts = [self._texts(value, paths) for _, value, paths in items]
        vectors = self._vectors(texts, [name for name, _, _ in items])
        return [
            Entry(terms=Counter(term for text in mine for term in terms(text)), vectors=rows)
            for mine, rows in zip(texts, vectors, strict=True)
        ]

    def query(self, text: str) -> NDArray[np.float32] | None:
        """Embed a query, a long one by its beginning and its end; None without an embedder.

        One turn asks the same of several namespaces.
        """
        if (asked := self._asked) is not None and asked[0] == text and self.embedder is not None:
            return asked[1]
        parts = self.embedder.split(text) if self.embedder else [text]
        vectors = self._embed([parts[0], *parts[1:][-1:]], query=True)
        if vectors is None:
            return None
        vector = unit(vectors.mean(axis=0, keepdims=True)).reshape(-1)
        self._asked = text, vector
        return vector

    def _vectors(self, texts: Sequence[Sequence[str]], names: Sequence[str]) -> list[NDArray[np.float32]]:
        """Embed the texts of items; return a row for each part of each item's, none without an embedder."""
        split = self.embedder.split if self.embedder else lambda text: [text]
        parts = [[part for text in mine for part in spread(split(text))] for mine in texts]
        owners = [name for name, mine in zip(names, parts, strict=True) for _ in mine]
        vectors = self._embed([part for mine in parts for part in mine], owners)
        if vectors is None:
            return [np.empty((0, 0), dtype=np.float32)] * len(texts)
        ends = np.cumsum([len(mine) for mine in parts])
        return [unit(vectors[end - len(mine) : end]) for mine, end in zip(parts, ends, strict=True)]

    def _embed(
        self, parts: list[str], owners: Sequence[str] = (), *, query: bool = False
    ) -> NDArray[np.float32] | None:
        """Embed texts; None without an embedder, or with one that cannot be loaded."""
        if (embedder := self.embedder) is None:
            return None
        vectors = np.empty((len(parts), embedder.dims), dtype=np.float32)
        try:
            for start in range(0, len(parts), EMBEDDED_AT_ONCE):
                end = start + EMBEDDED_AT_ONCE
                vectors[start:end] = embedder(parts[start:end], query=query)
        except NoEmbedder as error:
            log.warning(NOT_EMBEDDED, error)
            self.embedder = None
            return None
        except EmbeddingError as error:
            if error.position is None or query:
                raise
            raise BadValue(f"{owners[start + error.position]} was not stored: {error}") from error
        return vectors

    def _texts(self, value: Mapping[str, Any], paths: Paths) -> list[str]:
        if paths is False:
            return []
        if paths is None and self._fields is None:
            text = value.get("text")
            return [text] if isinstance(text, str) and text.strip() else get_text_at_path(value, "$")
        chosen = paths if paths is not None else self._fields or ()
        return [text for path in chosen for text in get_text_at_path(value, path) if text.strip()]


def index_from(config: StoreIndex | None, embedder: Embedder | None) -> Index | None:
    """Read an index configuration; None means no index. Raises BadValue if it lacks its dimensions."""
    if config is None:
        return None
    if config.get("words_alone"):
        return Index(None, config.get("fields"), hybrid=True)
    if embedder is None and "embed" in config:
        if "dims" not in config:
            raise BadValue('an index with "embed" needs "dims", the length of its vectors')
        embedder = as_embedder(config["embed"], config["dims"])
    fields = config.get("fields")
    if fields is None and "embed" in config:
        fields = ["$"]
    try:
        embedder = embedder or default_embedder()
    except NoEmbedder as error:
        log.warning(NOT_EMBEDDED, error)
    return Index(embedder, fields, hybrid=config.get("hybrid", "embed" not in config))


def spread(parts: list[str]) -> list[str]:
    """Return parts, or evenly spaced ones of very many, the first and the last among them."""
    last = len(parts) - 1
    return parts if last < MOST_PARTS else [parts[n * last // (MOST_PARTS - 1)] for n in range(MOST_PARTS)]


def unit(vectors: NDArray[np.float32]) -> NDArray[np.float32]:
    """Scale vectors to length 1, so that a product is a cosine."""
    scaled: NDArray[np.float32] = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    return scaled

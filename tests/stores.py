"""What tests of the store share: a hash for an embedder, and what the fixture `opening` gives."""

import hashlib
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Any

import numpy as np

from memory.embedding import Embedder, Fingerprint
from memory.store import ChromaStore

Opener = Callable[..., AbstractContextManager[ChromaStore]]
DIMS = 32


def hashed(texts: Sequence[str], query: bool = False) -> list[np.ndarray]:
    """Embed by the hash of each word: equal words, equal parts; without any quality."""
    vectors = []
    for text in texts:
        vector = np.full(DIMS, 1e-3, dtype=np.float32)
        for word in text.casefold().split():
            seed = int.from_bytes(hashlib.sha256(word.encode()).digest()[:8])
            vector += np.random.default_rng(seed).standard_normal(DIMS).astype(np.float32)
        vectors.append(vector)
    return vectors


def hash_embedder(version: str = "1", *, dims: int = DIMS, max_chars: int = 500) -> Embedder:
    """Make an embedder for tests in which quality does not matter."""
    mark = Fingerprint(model="hash", version=version, dims=dims)
    return Embedder(hashed, mark, max_chars=max_chars)


def hash_index(**options: Any) -> dict[str, Any]:
    """Make LangGraph's index configuration over it: the order is the cosine's."""
    return {"dims": DIMS, "embed": lambda texts: [v.tolist() for v in hashed(texts)], **options}

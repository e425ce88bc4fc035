"""Measure the store against plain Chroma in one run: search, put, opening. Not a test; run by hand:

    python tests/bench_store.py                         100,000 items of 1,000 users
    python tests/bench_store.py --items 20000 --users 200
    python tests/bench_store.py --grow 1000000          and once more with so many items, users in proportion

The embedder is a table, so that what is measured is the store. Ratios within the run are what counts.
"""

import argparse
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any
from zlib import crc32

import numpy as np
from langgraph.store.base import PutOp

from memory.embedding import Embedder, Fingerprint
from memory.store import ChromaStore, open_store

DIMS = 384
POOL = np.random.default_rng(0).standard_normal((4096, DIMS)).astype(np.float32)
WORDS = [f"{first}{last}" for first in "bcdfghjklmnpqrstvwxz" for last in map(str, range(1000))]
ROUNDS = 50


def encode(texts: Sequence[str], query: bool) -> Any:
    """Look each text up as the sum of two rows of a table."""
    codes = [crc32(text.encode()) for text in texts]
    return [POOL[code % 4096] + 0.5 * POOL[(code >> 12) % 4096] for code in codes]


EMBEDDER = Embedder(encode, Fingerprint(model="table", version="1", dims=DIMS), max_chars=2000)


def texts(count: int, seed: int) -> list[str]:
    """Make texts of about 20 words, common ones more often."""
    rng = random.Random(seed)
    return [" ".join(WORDS[int(len(WORDS) * rng.random() ** 3)] for _ in range(20)) for _ in range(count)]


def puts(made: Sequence[str], users: int, start: int = 0) -> list[PutOp]:
    """Spread texts over users."""
    return [
        PutOp(("users", f"u{n % users}", "memories"), f"k{n}", {"text": text})
        for n, text in enumerate(made, start=start)
    ]


def timed(work: Callable[[int], object], rounds: int = ROUNDS) -> list[float]:
    """Return the milliseconds of each round."""
    found = []
    for n in range(rounds):
        start = time.perf_counter()
        work(n)
        found.append((time.perf_counter() - start) * 1000)
    return found


def p50(times: list[float]) -> float:
    """Return the median."""
    return statistics.median(times)


def fill(store: ChromaStore, items: int, users: int) -> float:
    """Put items in batches of 1,000; return the seconds."""
    begin = time.perf_counter()
    for start in range(0, items, 1000):
        store.batch(puts(texts(min(1000, items - start), start), users, start))
    store.flush()
    return time.perf_counter() - begin


class Plain:
    """Chroma as people use it: one collection, the user in the metadata."""

    def __init__(self, home: Path, users: int) -> None:
        import chromadb
        from chromadb.config import Settings

        client = chromadb.PersistentClient(str(home), settings=Settings(anonymized_telemetry=False))
        configuration: Any = {"hnsw": {"space": "cosine"}}
        self.collection = client.create_collection("plain", embedding_function=None, configuration=configuration)
        self.users = users

    def put(self, made: Sequence[str], start: int) -> None:
        """Add texts with their vectors."""
        numbers = range(start, start + len(made))
        self.collection.upsert(
            ids=[f"k{n}" for n in numbers],
            embeddings=np.stack(encode(made, False)),
            documents=list(made),
            metadatas=[{"user": f"u{n % self.users}"} for n in numbers],
        )

    def search(self, text: str, user: int) -> None:
        """Query one user's items."""
        where: Any = {"user": f"u{user}"}
        self.collection.query(query_embeddings=encode([text], True), n_results=5, where=where)


def opening(home: Path, user: int) -> float:
    """Open the folder in a new process and search; return milliseconds without the imports."""
    code = f"""
import sys, time; sys.path.insert(0, {str(Path(__file__).parent)!r})
from bench_store import EMBEDDER, open_store
start = time.perf_counter()
with open_store({str(home)!r}, embedder=EMBEDDER) as store:
    assert store.search(("users", "u{user}"), query="b1 c2 d3", limit=5)
    print((time.perf_counter() - start) * 1000)
"""
    return float(subprocess.check_output([sys.executable, "-c", code], text=True))


def compare(home: Path, items: int, users: int) -> float:
    """Measure both stores at one size; return our search's median."""
    plain = Plain(home / "plain", users)
    begin = time.perf_counter()
    for start in range(0, items, 1000):
        plain.put(texts(min(1000, items - start), start), start)
    filled = time.perf_counter() - begin
    print(f"filling with {items:,} items: plain {filled / items * 1000:.2f} ms an item", end=", ", flush=True)
    with open_store(home / "ours", embedder=EMBEDDER) as store:
        print(f"ours, Chroma included, {fill(store, items, users) / items * 1000:.2f} ms an item")
        questions = texts(ROUNDS, -1)
        theirs = p50(timed(lambda n: plain.search(questions[n], n % users)))
        mine = searching(store, users)
        print(
            f"hybrid search, p50: plain with a filter {theirs:.1f} ms, ours {mine:.1f} ms: {theirs / mine:.0f}x faster"
        )
        for count, rounds in ((1, ROUNDS), (1000, 5)):
            put_both(plain, store, items * (1 + count), count, rounds)
    print(f"opening until the first answer: {p50([opening(home / 'ours', n) for n in range(3)]):.0f} ms")
    return mine


def put_both(plain: Plain, store: ChromaStore, start: int, count: int, rounds: int) -> None:
    """Measure puts of `count` new items, in turns."""
    batches = [texts(count, start + n) for n in range(2 * rounds)]
    ops = [puts(batch, plain.users, start + n * count) for n, batch in enumerate(batches)]
    theirs = p50(timed(lambda n: plain.put(batches[n], start + n * count), rounds))
    mine = p50(timed(lambda n: store.batch(ops[n]), rounds))
    store.flush()
    settled = p50(timed(lambda n: (store.batch(ops[rounds + n]), store.flush()), rounds))
    print(
        f"put of {count:,}, p50: plain {theirs:.1f} ms, ours {mine:.1f} ms ({mine / theirs:.2f}x), "
        f"until Chroma has it too {settled:.1f} ms ({settled / theirs:.2f}x)"
    )


def searching(store: ChromaStore, users: int) -> float:
    """Measure one user's hybrid search."""
    questions = texts(ROUNDS, -1)
    spaces = [("users", f"u{random.Random(n).randrange(users)}") for n in range(ROUNDS)]
    return p50(timed(lambda n: store.search(spaces[n], query=questions[n], limit=5)))


def main() -> None:
    """Print a line for each measure."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--items", type=int, default=100_000)
    parser.add_argument("--users", type=int, default=1000)
    parser.add_argument("--grow", type=int, help="and once more with so many items, users in proportion")
    options = parser.parse_args()
    home = Path(tempfile.mkdtemp(prefix="bench-"))
    try:
        small = compare(home, options.items, options.users)
        if options.grow:
            users = options.users * options.grow // options.items
            with open_store(home / "grown", embedder=EMBEDDER) as store:
                seconds = fill(store, options.grow, users)
                large = searching(store, users)
            print(
                f"hybrid search among {options.grow:,} items of {users:,} users: {large:.1f} ms, "
                f"{large / small:.2f}x that of {options.items:,} (filled in {seconds:.0f} s)"
            )
    finally:
        shutil.rmtree(home, ignore_errors=True)


if __name__ == "__main__":
    main()

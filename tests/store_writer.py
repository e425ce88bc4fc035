"""A process that writes to a store until it is killed, and says what it has done. Run by test_store_crash.py.

It reads lines of JSON, [place, seed, log], and forks for each, so that a kill costs no start of Python. The forked
process appends to the log a line before each operation and one after it.
"""

import json
import os
import random
import sys
from pathlib import Path
from typing import Any

import chromadb  # noqa: F401  loaded once, before any fork
from langgraph.store.base import PutOp
from stores import hash_embedder

from memory.store import ChromaStore, open_store

PLACES = [("users", "ann"), ("users", "bob"), ("users", "ann", "deep")]


def operation(rng: random.Random) -> list[PutOp]:
    """Make a write of one to four items: new, changed, deleted, or not indexed."""
    return [
        PutOp(
            rng.choice(PLACES),
            f"k{rng.randrange(40)}",
            None if (kind := rng.random()) < 0.2 else {"text": f"word{rng.randrange(10**9)} shared tea"},
            index=False if kind > 0.9 else None,
        )
        for _ in range(rng.choice((1, 1, 1, 4)))
    ]


def plain(ops: list[PutOp]) -> list[Any]:
    """Write operations as JSON."""
    return [[list(op.namespace), op.key, op.value, op.index is not False] for op in ops]


def write_until_killed(store: ChromaStore, rng: random.Random, log: int) -> None:
    """Write, telling before and after."""
    while True:
        ops = operation(rng)
        os.write(log, (json.dumps({"begun": plain(ops)}) + "\n").encode())
        store.batch(ops)
        os.write(log, b'{"done": true}\n')


def main() -> None:
    """Fork a writer for each line of the input; print its process id."""
    for line in sys.stdin:
        place, seed, log_path = json.loads(line)
        if (child := os.fork()) == 0:
            log = os.open(Path(log_path), os.O_WRONLY | os.O_CREAT | os.O_APPEND)
            with open_store(**place, embedder=hash_embedder()) as store:
                write_until_killed(store, random.Random(seed), log)
        print(child, flush=True)
        os.waitpid(child, 0)
        print("gone", flush=True)


if __name__ == "__main__":
    main()

"""Several processes at one store: each puts, deletes, and looks for what the others did. Run by
test_store_processes.py with: log, seconds, and for each process its place as JSON.

They are forked before anything is opened, so that they cost one start of Python. Whoever has put an item says so
in the log, and only then; whoever will delete one says so before and after.
"""

import json
import os
import random
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import chromadb  # noqa: F401  loaded once, before any fork
from stores import hash_embedder

from memory.store import ChromaStore, open_store

SPACES = [("users", "ann"), ("users", "bob")]


@dataclass
class Log:
    """What all processes say, in one file."""

    path: Path
    here: set[str] = field(default_factory=set)
    leaving: set[str] = field(default_factory=set)
    gone: set[str] = field(default_factory=set)

    def say(self, what: str, word: str) -> None:
        """Append a line, as one write."""
        file = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        os.write(file, f"{what} {word}\n".encode())
        os.close(file)

    def read(self) -> "Log":
        """Read what was said so far."""
        fresh = Log(self.path)
        for line in self.path.read_text().splitlines():
            what, _, word = line.partition(" ")
            getattr(fresh, what).add(word)
        return fresh


def space_of(word: str) -> tuple[str, str]:
    """Tell where an item lies."""
    return SPACES[len(word) % 2]


def look(store: ChromaStore, log: Log, rng: random.Random) -> None:
    """Look for something that is there and for something that is gone."""
    before = log.read()
    if there := sorted(before.here - before.leaving):
        word = rng.choice(there)
        hits = store.find(space_of(word), word, limit=1)
        found = bool(hits) and hits[0].key == word and (hits[0].score or 0) > 0.9
        assert found or word in log.read().leaving, f"{word} was put and is not found: {hits}"
    if before.gone:
        word = rng.choice(sorted(before.gone))
        hits = store.find(space_of(word), word, limit=3)
        assert word not in [hit.key for hit in hits], f"{word} was deleted and is found"


def work(place: dict[str, Any], log: Log, seconds: float, seed: int) -> None:
    """Work for the given time."""
    rng, mine, done = random.Random(seed), [], 0
    with open_store(**place, embedder=hash_embedder()) as store:
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            action = rng.random()
            if action < 0.5:
                word = f"w{seed}x{done}"
                store.put(space_of(word), word, {"text": word})
                log.say("here", word)
                mine.append(word)
            elif action < 0.6 and mine:
                word = mine.pop(rng.randrange(len(mine)))
                log.say("leaving", word)
                store.delete(space_of(word), word)
                log.say("gone", word)
            else:
                look(store, log, rng)
            done += 1


def main() -> None:
    """Fork a process for each place; end as badly as the worst of them."""
    log, seconds = Log(Path(sys.argv[1])), float(sys.argv[2])
    for seed, place in enumerate(sys.argv[3:], start=1):
        if os.fork() == 0:
            work(json.loads(place), log, seconds, seed)
            sys.exit(0)
    sys.exit(max(os.waitstatus_to_exitcode(os.wait()[1]) for _ in sys.argv[3:]))


if __name__ == "__main__":
    main()

"""A process is killed with SIGKILL at any instant of a write load: nothing that returned is lost.

A few kills by default; PALIMPSEST_KILLS=200 for the full measure.
"""

import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from stores import hash_embedder

from memory.store import ChromaStore, open_store

pytest_plugins = ["store_fixtures"]
KILLS = int(os.environ.get("PALIMPSEST_KILLS", "8"))
Key = tuple[tuple[str, ...], str]
State = dict[Key, tuple[Any, bool]]


def replay(log: Path) -> tuple[State, State]:
    """Read what is certain to be stored, and what the operation under way at the kill may have changed."""
    certain: State = {}
    begun: list[Any] = []
    for line in log.read_text().splitlines():
        entry = json.loads(line)
        if "begun" in entry:
            begun = entry["begun"]
        else:
            certain.update(as_state(begun))
            begun = []
    return certain, as_state(begun)


def as_state(ops: list[Any]) -> State:
    return {(tuple(place), key): (value, indexed) for place, key, value, indexed in ops}


def check_legs(store: ChromaStore, state: State) -> None:
    """Every living item is found by both legs, and no leg knows another."""
    for (place, key), (value, indexed) in state.items():
        if value is None or not indexed:
            continue
        (hit,) = store.find(place, value["text"].split()[0], limit=1)
        assert (hit.key, hit.parts["keyword_rank"], hit.parts["vector_rank"]) == (key, 1, 1)
    store.flush()
    with store._db.reading() as session:
        ids = "SELECT i.id FROM mem_items i JOIN mem_spaces p ON p.id = i.space JOIN store s ON s.prefix = p.prefix"
        ids += " AND s.key = i.key"
        assert not session.run(f"SELECT 1 FROM mem_postings WHERE item NOT IN ({ids})")
        assert not session.run(f"SELECT 1 FROM mem_vectors WHERE id % {2**36} NOT IN ({ids})")
        expected = {f"{row[0]}.0" for row in session.run("SELECT id FROM mem_items WHERE parts = 1")}
        assert session.run("SELECT count(*) FROM mem_items WHERE state <> 2") == [(0,)]
    collection = store._upkeep._chroma._current()
    assert set(collection.get(include=[])["ids"]) == expected
    near = collection.query(query_embeddings=[[1.0] * 32], n_results=max(len(expected), 1), include=[])
    assert set(near["ids"][0]) == expected


def test_after_a_kill_at_any_instant_record_and_legs_agree(place: dict[str, Any], tmp_path: Path) -> None:
    """B116."""
    rng = random.Random(int(os.environ.get("PALIMPSEST_SEED", "1")))
    log, place = tmp_path / "log", {**place, "home": str(place["home"])}
    log.touch()
    writer = subprocess.Popen(
        [sys.executable, Path(__file__).with_name("store_writer.py")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parent)},
    )
    assert writer.stdin and writer.stdout
    state: State = {}
    with writer:
        for kill in range(KILLS):
            log.write_text("")
            writer.stdin.write(json.dumps([place, rng.randrange(10**9), str(log)]) + "\n")
            writer.stdin.flush()
            child = int(writer.stdout.readline())
            if kill % 4:  # three of four amid the writing, one at any moment of the opening
                wait_for_words(log)
            time.sleep(rng.uniform(0.0, 0.3))
            os.kill(child, signal.SIGKILL)
            assert writer.stdout.readline() == "gone\n"
            certain, possible = replay(log)
            state.update(certain)
            state = checked(place, state, possible, thorough=kill % 5 == 4 or kill == KILLS - 1)
        writer.stdin.close()
    assert state


def wait_for_words(log: Path) -> None:
    """Wait until the writer is at work."""
    end = time.monotonic() + 30
    while not log.stat().st_size and time.monotonic() < end:
        time.sleep(0.01)


def checked(place: dict[str, Any], state: State, possible: State, *, thorough: bool) -> State:
    """Open the store again and compare; return what is stored: all of the last operation, or nothing of it."""
    with open_store(**place, embedder=hash_embedder()) as store:
        found = {(place, key): store.get(place, key) for place, key in state.keys() | possible.keys()}
        stored = {place: item.value if item else None for place, item in found.items()}
        outcomes = [state | possible, dict.fromkeys(possible, (None, True)) | state]
        matching = [o for o in outcomes if {place: value for place, (value, _) in o.items()} == stored]
        assert matching, f"{stored} is stored, expected one of {outcomes}"
        if thorough:
            check_legs(store, matching[0])
    return matching[0]

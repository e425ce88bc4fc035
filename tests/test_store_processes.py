"""Several processes at one store: none loses what another wrote, none sees what another deleted.

A few seconds by default; PALIMPSEST_SECONDS=60 for the full measure.
"""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from store_sharer import Log, space_of
from stores import Opener, hash_embedder

from memory.store import open_store

pytest_plugins = ["store_fixtures"]
SECONDS = float(os.environ.get("PALIMPSEST_SECONDS", "1.5"))


def test_each_process_sees_what_others_committed(place: dict[str, Any], tmp_path: Path) -> None:
    """B063, B104. Two of four processes compare vectors whole, two ask Chroma."""
    log = Log(tmp_path / "log")
    log.path.touch()
    sharer = Path(__file__).with_name("store_sharer.py")
    options = [json.dumps({**place, "home": str(place["home"]), "exact_max": most}) for most in (5000, 0)]
    sharers = subprocess.run(
        [sys.executable, sharer, log.path, str(SECONDS), *options * 2],
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parent)},
        capture_output=True,
        text=True,
    )
    # A server that is just making its index refuses a search; the record's vectors answer it.
    told = [line for line in sharers.stderr.splitlines() if "Chroma could not search" not in line]
    assert (sharers.returncode, told) == (0, [])
    said = log.read()
    with open_store(**place, embedder=hash_embedder()) as store:
        assert {hit.key for hit in store.search((), limit=10**6)} == said.here - said.gone
        for word in sorted(said.here - said.gone)[:50]:
            assert store.find(space_of(word), word, limit=1)[0].key == word
        store.flush()
        assert store.stats()["due"] == 0
    assert said.here


def test_two_stores_in_one_process_see_each_other(opening: Opener) -> None:
    with opening(embedder=hash_embedder(), exact_max=0) as one, opening(embedder=hash_embedder(), exact_max=0) as two:
        for n in range(5):
            one.put(("a",), f"one{n}", {"text": f"first{n}"})
            one.flush()
            two.put(("a",), f"two{n}", {"text": f"second{n}"})
            two.flush()
            assert two.find(("a",), f"first{n}")[0].key == f"one{n}"
            assert one.find(("a",), f"second{n}")[0].key == f"two{n}"
            one.delete(("a",), f"two{n}")
            assert f"two{n}" not in [hit.key for hit in two.find(("a",), f"second{n}")]


def test_a_search_does_not_wait_for_another_process_at_work(opening: Opener) -> None:
    with opening(embedder=hash_embedder(), exact_max=0) as one, opening(embedder=hash_embedder(), exact_max=0) as two:
        one.put(("a",), "k", {"text": "tea"})
        with two._db.indexing():
            assert [hit.key for hit in one.find(("a",), "tea")] == ["k"]

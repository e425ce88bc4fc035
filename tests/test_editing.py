"""Edits are read, changed and written as one step: no update is lost, in one process or across several."""

import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from langgraph.store.base import BaseStore
from langgraph.store.memory import InMemoryStore
from stores import Opener, hash_embedder

from memory.editing import edit, edit_one

pytest_plugins = ["store_fixtures"]
PLACE, TIMES = ("users", "ann", "count"), 25

ADDER = """
import sys, json
from pathlib import Path
from stores import hash_embedder
from memory.editing import edit_one
from memory.store import open_store
place = json.loads(sys.argv[1])
with open_store(**place, embedder=hash_embedder()) as store:
    for _ in range(int(sys.argv[2])):
        edit_one(store, ("users", "ann", "count"), "n", lambda old: {"n": (old or {"n": 0})["n"] + 1})
"""


def add_one(store: BaseStore) -> None:
    edit_one(store, PLACE, "n", lambda old: {"n": (old or {"n": 0})["n"] + 1})


def test_no_edit_of_many_threads_is_lost(opening: Opener) -> None:
    with opening(embedder=hash_embedder()) as one, opening(embedder=hash_embedder()) as two:
        with ThreadPoolExecutor(8) as pool:
            list(pool.map(add_one, [one, two] * TIMES))
        assert one.get(PLACE, "n").value == {"n": 2 * TIMES}  # type: ignore[union-attr]


def test_no_edit_is_lost_on_another_kind_of_store() -> None:
    store = InMemoryStore()
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(add_one, [store] * TIMES))
    assert store.get(PLACE, "n").value == {"n": TIMES}  # type: ignore[union-attr]


def test_no_edit_of_several_processes_is_lost(place: dict[str, Any], opening: Opener) -> None:
    told = json.dumps({**place, "home": str(place["home"])})
    env_path = str(Path(__file__).parent)
    children = [
        subprocess.Popen([sys.executable, "-c", ADDER, told, str(TIMES)], env={**os.environ, "PYTHONPATH": env_path})
        for _ in range(3)
    ]
    assert [child.wait(timeout=300) for child in children] == [0, 0, 0]
    with opening(embedder=hash_embedder()) as store:
        assert store.get(PLACE, "n").value == {"n": 3 * TIMES}  # type: ignore[union-attr]


@pytest.mark.parametrize("kind", ["ours", "another"])
def test_an_edit_of_several_items_is_whole_or_not_at_all(opening: Opener, kind: str) -> None:
    with opening(embedder=hash_embedder()) as ours:
        store: BaseStore = ours if kind == "ours" else InMemoryStore()
        store.put(PLACE, "old", {"text": "tea"}, index=False)
        written = edit(
            store, PLACE, ["old", "none"], lambda seen: {"old": None, "new": seen["old"], "none": seen["none"]}
        )
        assert written["new"] == {"text": "tea"}
        assert (store.get(PLACE, "old"), store.get(PLACE, "none")) == (None, None)

        def refuse(seen: Any) -> Any:
            seen["new"]["text"] = "spoilt"
            raise ValueError("no")

        with pytest.raises(ValueError, match="no"):
            edit(store, PLACE, ["new"], refuse)
        assert store.get(PLACE, "new").value == {"text": "tea"}  # type: ignore[union-attr]


def test_what_is_edited_is_searched_as_it_now_is(opening: Opener) -> None:
    with opening(embedder=hash_embedder()) as store:
        for text in ("green tea", "black coffee"):
            edit_one(store, PLACE, "k", lambda old, text=text: {"text": text}, index=["text"])  # type: ignore[misc]
        store.put(PLACE, "other", {"text": "a cup of tea"}, index=["text"])
        assert store.find(PLACE, "coffee")[0].key == "k"
        assert store.find(PLACE, "green tea")[0].key == "other"

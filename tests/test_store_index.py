"""The indexes: another embedder, lost or damaged parts, rebuilding, foreign writers, places that fail."""

import resource
import shutil
import signal
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from langgraph.store.base import PutOp
from langgraph.store.sqlite import SqliteStore
from stores import Opener, hash_embedder, hashed

from memory.embedding import Embedder, EmbeddingError, Fingerprint, Lazy, NoEmbedder
from memory.errors import BadValue, EmbedderChanged, NewerVersion, StoreError, Unreadable, Unwritable
from memory.indexing import WORDS_ALONE
from memory.store import open_store

pytest_plugins = ["store_fixtures"]
ANN = ("users", "ann")


def keys(items: Any) -> list[str]:
    return [item.key for item in items]


def broken(returned: Any) -> Embedder:
    """Make an embedder that returns something wrong for the text "bad"."""

    def encode(texts: list[str], query: bool) -> list[Any]:
        good = hashed(texts)
        return [returned if text == "bad" else vector for text, vector in zip(texts, good, strict=True)]

    return Embedder(encode, hash_embedder().fingerprint, max_chars=500)


@pytest.mark.parametrize("version, dims", [("2", 32), ("1", 16)], ids=["same dimension", "other dimension"])
def test_another_embedder_never_meets_the_old_vectors(opening: Opener, version: str, dims: int) -> None:
    """B093: search stops and names the mend; the record stays open for reading and writing; a rebuild mends it."""
    with opening(embedder=hash_embedder()) as store:
        store.put(ANN, "a", {"text": "green tea"})

    def shorter(texts: list[str], query: bool) -> list[np.ndarray]:
        return [vector[:dims] for vector in hashed(texts)]

    other = Embedder(shorter, Fingerprint(model="hash", version=version, dims=dims), max_chars=500)
    with opening(embedder=other) as store:
        for search in (lambda: store.search(ANN, query="tea"), lambda: store.find(ANN, "tea")):
            with pytest.raises(EmbedderChanged, match=r"hash@1 .*memory reindex"):
                search()
        store.put(ANN, "b", {"text": "black tea"})
        assert keys(store.search(ANN)) == ["b", "a"]
        store.flush()
        assert store.reindex() == 2
        assert keys(store.find(ANN, "black tea")) == ["b", "a"]
        assert store.stats()["due"] == 0
        collection = store._upkeep._chroma._current()
        assert collection.count() == 2 and len(collection.get(include=["embeddings"])["embeddings"][0]) == dims
    with opening(embedder=hash_embedder()) as store, pytest.raises(EmbedderChanged):
        store.search(ANN, query="tea")


def test_vectors_that_cannot_be_searched_are_refused_with_the_items_name(opening: Opener) -> None:
    """B095."""
    wrong: list[Any] = [[float("nan")] * 32, [float("inf")] * 32, [0.0] * 32, [1.0] * 31, []]
    for returned in wrong:
        with opening(embedder=broken(returned)) as store:
            with pytest.raises(BadValue, match="users/ann/k1"):
                store.batch([PutOp(ANN, "k0", {"text": "good"}), PutOp(ANN, "k1", {"text": "bad"})])
            assert store.search(()) == []
    few = Embedder(lambda texts, query: hashed(texts)[1:], hash_embedder().fingerprint, max_chars=500)
    with opening(embedder=few) as store:
        with pytest.raises(EmbeddingError, match="0 vectors for 1 texts"):
            store.put(ANN, "k", {"text": "tea"})
        assert store.search(()) == []


def test_a_rebuild_reports_its_progress_and_goes_on_where_it_was_stopped(opening: Opener) -> None:
    with opening(embedder=hash_embedder()) as store:
        store.batch([PutOp(ANN, f"k{n}", {"text": f"word{n}"}) for n in range(600)])

    class Stop(Exception):
        pass

    def stop(done: int, total: int) -> None:
        assert total == 600
        raise Stop

    with opening(embedder=hash_embedder()) as store, pytest.raises(Stop):
        store.reindex(stop)
    seen: list[tuple[int, int]] = []
    with opening(embedder=hash_embedder()) as store:
        store.reindex(lambda done, total: seen.append((done, total)))
        assert not seen or seen[-1][1] < 600
        assert keys(store.find(ANN, "word599", limit=1)) == ["k599"]
        assert store.reindex(lambda done, total: seen.append((done, total))) == 600
        assert seen[-1] == (600, 600)
        assert store.stats()["vectors"] == store.stats()["documents"] == 600


def test_per_item_paths_survive_a_rebuild(opening: Opener) -> None:
    with opening(embedder=hash_embedder()) as store:
        store.put(ANN, "hidden", {"text": "zebra"}, index=False)
        store.put(ANN, "title", {"text": "zebra", "title": "lion"}, index=["title"])
        store.reindex()
        assert keys(store.find(ANN, "zebra lion")) == ["title"]
        assert not [hit for hit in store.find(ANN, "zebra") if hit.parts["keyword"]]


def test_a_lost_chroma_folder_is_made_again(tmp_path: Path) -> None:
    with open_store(tmp_path, embedder=hash_embedder()) as store:
        store.batch([PutOp(ANN, f"k{n}", {"text": f"word{n}"}) for n in range(50)])
    shutil.rmtree(tmp_path / "chroma")
    with open_store(tmp_path, embedder=hash_embedder(), exact_max=0) as store:
        assert keys(store.find(ANN, "word7", limit=1)) == ["k7"]
        store.flush()
        assert store._upkeep._chroma._current().count() == 50


def test_a_collection_deleted_under_a_store_is_made_again(opening: Opener) -> None:
    """B105."""
    with opening(embedder=hash_embedder(), exact_max=0) as store:
        store.batch([PutOp(ANN, f"k{n}", {"text": f"word{n}"}) for n in range(20)])
        store.flush()
        chroma = store._upkeep._chroma
        assert chroma._client is not None
        chroma._client.delete_collection(chroma._current().name)
        assert keys(store.find(ANN, "word7", limit=1)) == ["k7"]
        store.put(ANN, "new", {"text": "unheard"})
        store.flush()
        store.flush()
        assert chroma._current().count() == 21 and store.stats()["due"] == 0


def test_a_chroma_server_that_is_not_there_stops_no_search(caplog: pytest.LogCaptureFixture) -> None:
    with open_store(chroma_url="http://127.0.0.1:1", embedder=hash_embedder(), exact_max=0) as store:
        store.put(ANN, "k", {"text": "tea"})
        assert keys(store.find(ANN, "tea")) == ["k"]
        store.flush()
        assert store.stats()["due"] == 1
    assert "Could not connect" in caplog.text


def test_a_damaged_chroma_folder_stops_no_search(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with open_store(tmp_path, embedder=hash_embedder()) as store:
        store.batch([PutOp(ANN, f"k{n}", {"text": f"word{n}"}) for n in range(50)])
    (tmp_path / "chroma" / "chroma.sqlite3").write_bytes(b"no database" * 1000)
    with open_store(tmp_path, embedder=hash_embedder(), exact_max=0) as store:
        assert keys(store.find(ANN, "word7", limit=1)) == ["k7"]
        store.put(ANN, "new", {"text": "unheard"})
        assert keys(store.find(ANN, "unheard", limit=1)) == ["new"]
    assert "Chroma" in caplog.text


def test_what_a_plain_langgraph_store_writes_is_found(tmp_path: Path) -> None:
    with open_store(tmp_path, embedder=hash_embedder()) as store:
        store.put(ANN, "ours", {"text": "green tea"})
        store.put(ANN, "gone", {"text": "white tea"})
        with SqliteStore.from_conn_string(str(tmp_path / "memory.sqlite3")) as plain:
            assert plain.get(ANN, "ours").value == {"text": "green tea"}  # type: ignore[union-attr]
            plain.put(ANN, "theirs", {"text": "black coffee"})
            plain.put(ANN, "ours", {"text": "red wine"})
            plain.delete(ANN, "gone")
        assert keys(store.find(ANN, "black coffee", limit=1)) == ["theirs"]
        assert keys(store.find(ANN, "red wine", limit=1)) == ["ours"]
        assert not [hit for hit in store.find(ANN, "green white") if hit.parts["keyword"]]
        assert len(store.search(ANN, query="tea")) == 2


def test_a_record_of_a_newer_version_is_left_alone(tmp_path: Path) -> None:
    with open_store(tmp_path, embedder=hash_embedder()) as store:
        store.put(ANN, "k", {"text": "tea"})
    change_version(tmp_path, "99")
    before = (tmp_path / "memory.sqlite3").read_bytes()
    with pytest.raises(NewerVersion, match=r"format 99.*update Palimpsest"), open_store(tmp_path):
        pass
    assert (tmp_path / "memory.sqlite3").read_bytes() == before
    change_version(tmp_path, "1")
    with open_store(tmp_path, embedder=hash_embedder()) as store:
        assert store.get(ANN, "k") is not None


def change_version(home: Path, version: str) -> None:
    connection = sqlite3.connect(home / "memory.sqlite3")
    with connection:
        connection.execute("UPDATE mem_meta SET value = ? WHERE name = 'version'", (version,))
    connection.close()


def test_a_file_that_is_no_record_is_named_and_left_alone(tmp_path: Path) -> None:
    (tmp_path / "memory.sqlite3").write_bytes(b"my diary, not a database " * 100)
    with pytest.raises(Unreadable, match=r"memory\.sqlite3 is not a SQLite database"), open_store(tmp_path):
        pass
    assert (tmp_path / "memory.sqlite3").read_bytes() == b"my diary, not a database " * 100


def test_a_place_where_no_folder_can_be_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(Unwritable, match="file"), open_store(tmp_path / "file" / "home"):
        pass
    for url in ("postgresql://127.0.0.1:1/x", "no url"):
        with pytest.raises(Unwritable, match="no Postgres answers"), open_store(database_url=url):
            pass


def test_a_read_only_record_is_named(tmp_path: Path) -> None:
    with open_store(tmp_path, embedder=hash_embedder()) as store:
        store.put(ANN, "k", {"text": "tea"})
        store._db._writer.execute("PRAGMA query_only = ON")  # what a file mode does, but for root too
        with pytest.raises(Unwritable, match="read-only"):
            store.put(ANN, "l", {"text": "tea"})
        assert keys(store.search(ANN)) == ["k"]
        store._db._writer.execute("PRAGMA query_only = OFF")


@contextmanager
def files_limited_to(size: int) -> Iterator[None]:
    """Let writes beyond a size fail, as on a full disk."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, handler)


def test_a_full_disk_refuses_the_write_and_loses_nothing(tmp_path: Path) -> None:
    with open_store(tmp_path, embedder=hash_embedder()) as store:
        store.put(ANN, "k", {"text": "tea"})
        store.flush()
        with files_limited_to(1_000_000):
            with pytest.raises(Unwritable, match=r"space left|disk full"):
                store.put(ANN, "big", {"text": "tea", "blob": "x" * 5_000_000})
            assert keys(store.search(ANN, query="tea")) == ["k"]
        store.put(ANN, "l", {"text": "coffee"})
        assert keys(store.find(ANN, "coffee", limit=1)) == ["l"]
        assert store.get(ANN, "big") is None


def test_a_folder_deleted_under_a_store_is_noticed(tmp_path: Path) -> None:
    """B106."""
    home = tmp_path / "home"
    with open_store(home, embedder=hash_embedder()) as store:
        store.put(ANN, "k", {"text": "tea"})
        store.flush()
        shutil.rmtree(home)
        with pytest.raises(Unwritable, match="deleted or replaced while open"):
            store.put(ANN, "l", {"text": "tea"})
    with open_store(home, embedder=hash_embedder()) as store:
        store.put(ANN, "m", {"text": "tea"})
        assert keys(store.find(ANN, "tea")) == ["m"]


def test_a_batch_larger_than_chroma_takes_is_split(tmp_path: Path) -> None:
    """B089."""
    with open_store(tmp_path, embedder=hash_embedder(max_chars=40)) as store:
        text = " ".join(f"word{n}" for n in range(900))
        store.batch([PutOp(ANN, f"k{n}", {"text": f"start{n} {text}"}) for n in range(32)])
        assert store.stats()["vectors"] > 5461
        store.flush()
        assert store._upkeep._chroma._current().count() == store.stats()["vectors"]


def test_writing_and_deleting_over_and_over_does_not_fill_the_disk(tmp_path: Path) -> None:
    """B107: Chroma keeps what was deleted; once that is most of its folder, the folder is made anew."""
    sizes = []
    with open_store(tmp_path, embedder=hash_embedder(max_chars=40)) as store:
        text = " ".join(f"word{n}" for n in range(200))
        for _ in range(3):
            store.batch([PutOp(ANN, f"k{n}", {"text": f"start{n} {text}"}) for n in range(40)])
            store.flush()
            store.batch([PutOp(ANN, f"k{n}", None) for n in range(40)])
            store.flush()
            sizes.append(sum(file.stat().st_size for file in (tmp_path / "chroma").rglob("*") if file.is_file()))
        store.put(ANN, "last", {"text": "tea"})
        store.flush()
        assert store._upkeep._chroma._current().count() == 1
    assert sizes[-1] < max(sizes)


def test_without_an_embedder_words_are_searched_and_meaning_waits_for_one(opening: Opener, caplog: Any) -> None:
    """What was written by words alone is embedded by the next store that has an embedder; old vectors never lie."""
    with opening(embedder=hash_embedder()) as store:
        store.put(ANN, "old", {"text": "blue bicycle"})
        store.put(ANN, "gone", {"text": "red tram"})
    with opening(index=WORDS_ALONE) as store:
        store.put(ANN, "new", {"text": "我对花生过敏 green tea"})
        store.put(ANN, "old", {"text": "yellow boat"})
        store.delete(ANN, "gone")
        assert store.words_alone
        assert [keys(store.find(ANN, word)) for word in ("bicycle", "boat", "花生", "tram")] == [
            [],
            ["old"],
            ["new"],
            [],
        ]
        assert keys(store.search(ANN, query="green tea")) == ["new", "old"], "pages are filled by time, as always"
        assert [hit.score for hit in store.find(ANN, "tea")] == [None]
        with pytest.raises(BadValue, match="nothing to reindex with"):
            store.reindex()
    with opening(embedder=hash_embedder()) as store:
        assert [hit.score for hit in store.find(ANN, "yellow boat")][:1] == [pytest.approx(1)]
        store.flush()
        assert store.stats()["due"] == 0 and store.stats()["vectors"] == 2


def test_an_embedder_that_cannot_be_loaded_is_told_once_and_stops_nothing(opening: Opener, caplog: Any) -> None:
    def unloadable(texts: list[str], query: bool) -> list[Any]:
        raise NoEmbedder("the embedder hash cannot be loaded: no such file")

    with opening(embedder=Embedder(unloadable, hash_embedder().fingerprint, max_chars=500)) as store:
        store.put(ANN, "a", {"text": "green tea"})
        store.put(ANN, "b", {"text": "black coffee"})
        assert keys(store.find(ANN, "tea")) == ["a"] and store.words_alone
    assert [record.getMessage() for record in caplog.records if "keywords alone" in record.getMessage()] == [
        "the embedder hash cannot be loaded: no such file; searching by keywords alone. What is written meanwhile is "
        "embedded at the next start with an embedder."
    ]


def test_a_model_that_cannot_be_imported_is_no_embedder() -> None:
    with pytest.raises(NoEmbedder, match="the embedder no_such_package cannot be loaded"):
        Lazy("no_such_package", "Model")(["a"])


def test_errors_are_for_people() -> None:
    for error in (BadValue, EmbedderChanged, NewerVersion, Unreadable, Unwritable):
        assert issubclass(error, StoreError)

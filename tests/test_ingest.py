"""Bringing files in: incremental, whole or not at all, confined to what was named, and nothing stops the rest."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import doc_files
import pytest
from stores import hash_embedder

from graph.ingest import Intake, Report
from graph.reader import Reader
from memory.documents import SHARED, Documents, search_documents
from memory.store import ChromaStore, open_store

ROOT = Path(__file__).parent.parent
Add = Callable[..., Report]


@pytest.fixture
def store(tmp_path: Path) -> Iterator[ChromaStore]:
    with open_store(tmp_path / "home", embedder=hash_embedder()) as opened:
        yield opened


@pytest.fixture(scope="module")
def reader() -> Iterator[Reader]:
    """One process for all tests; Intake would end it after each."""

    class Kept(Reader):
        def __exit__(self, *_: object) -> None:
            return

    kept = Kept()
    yield kept
    kept.stop()


@pytest.fixture
def docs(store: ChromaStore) -> Documents:
    return Documents(store, user="ann")


@pytest.fixture
def add(docs: Documents, reader: Reader) -> Add:
    return lambda *named, **options: Intake(options.pop("docs", docs), reader=reader, **options).add(map(str, named))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Two texts in a folder and one below it."""
    folder = tmp_path / "hb"
    (folder / "sub").mkdir(parents=True)
    for name in ("a", "b", "sub/c"):
        (folder / f"{name}.md").write_text(f"# Title of {name}\n\nThe word of {name} is zebra.\n")
    return folder


def names(docs: Documents) -> list[str]:
    return [file.name for file in docs.files()]


def text(docs: Documents, name: str) -> str:
    [file] = [file for file in docs.files() if file.name == name]
    return "".join(passage.text for passage in docs.passages(file))


def test_a_folder_comes_in_with_all_below_it(docs, add, folder):
    report = add(folder)
    assert report.added == names(docs) == ["hb/a.md", "hb/b.md", "hb/sub/c.md"] and not report.failed
    assert text(docs, "hb/sub/c.md") == (folder / "sub/c.md").read_text()


def test_unchanged_files_cost_a_stat_and_write_nothing(docs, add, folder):
    add(folder)
    before = [item.updated_at for item in docs.store.search(docs.namespace, limit=100)]
    for path in folder.rglob("*.md"):
        path.chmod(0)
    report = add(folder)
    assert report.unchanged == 3 and report.passages == 0
    assert [item.updated_at for item in docs.store.search(docs.namespace, limit=100)] == before


def test_adding_again_doubles_nothing_and_a_changed_paragraph_takes_the_place_of_the_old(docs, add, folder):
    """B117."""
    (folder / "a.md").write_text("# Keys\n\nThe spare key hangs in the shed.\n\n# Bins\n\nBins go out on Monday.\n")
    for _ in range(2):
        add(folder)
    (folder / "a.md").write_text("# Keys\n\nThe spare key hangs in the attic.\n\n# Bins\n\nBins go out on Monday.\n")
    add(folder)
    for query in ("Where is the spare key?", "When do bins go out?"):
        found = search_documents(docs.store, user="ann", query=query, limit=3, threshold=-1)
        texts = [one.passage.text for one in found]
        assert len(set(texts)) == len(texts) and "shed" not in " ".join(texts)
    assert "attic" in text(docs, "hb/a.md")


def test_a_touched_file_is_read_and_nothing_but_its_date_is_written(docs, add, folder):
    add(folder)
    passages = docs.store.search((*docs.namespace, "passages"), limit=100)
    os.utime(folder / "a.md", (1, 1))
    assert add(folder).unchanged == 3
    assert docs.store.search((*docs.namespace, "passages"), limit=100) == passages
    assert docs.get([str(folder / "a.md")])[0].mtime_ns == 10**9


def test_a_changed_file_is_replaced_and_the_others_are_left(docs, add, folder):
    add(folder)
    (folder / "a.md").write_text("The word is giraffe.")
    report = add(folder)
    assert report.changed == ["hb/a.md"] and report.unchanged == 2 and text(docs, "hb/a.md") == "The word is giraffe."
    found = search_documents(docs.store, user="ann", query="giraffe", limit=9, threshold=1)
    assert [one.file.name for one in found] == ["hb/a.md"]


def test_refresh_takes_what_vanished_and_brings_what_is_new(docs, add, folder, reader):
    add(folder / "a.md", folder / "sub")
    (folder / "a.md").unlink()
    (folder / "sub/c.md").write_text("changed")
    (folder / "sub/d.md").write_text("new")
    report = Intake(docs, reader=reader).refresh()
    assert (report.removed, report.changed, report.added) == (["a.md"], ["sub/c.md"], ["sub/d.md"])
    assert names(docs) == ["sub/c.md", "sub/d.md"], "b.md was never named"


def test_a_file_that_can_no_longer_be_read_keeps_what_was_read_of_it(docs, add, folder):
    add(folder)
    (folder / "a.md").write_bytes(b"%PDF-1.4 no")
    report = add(folder)
    assert report.failed[0][0] == "hb/a.md" and "zebra" in text(docs, "hb/a.md")


def test_what_cannot_be_read_is_named_with_its_reason_and_stops_nothing(docs, add, folder):
    (folder / "broken.pdf").write_bytes(b"%PDF-1.4 no")
    (folder / "locked.pdf").write_bytes(doc_files.encrypted_pdf())
    (folder / "pictures.pdf").write_bytes(doc_files.pdf([""]))
    (folder / "empty.md").touch()
    with (folder / "giant.txt").open("wb") as file:
        file.truncate(2 * 2**30)
    os.mkfifo(folder / "pipe.txt")
    report = add(folder, folder / "nowhere.md", str(folder / "*.none"))
    reasons = dict(report.failed)
    assert reasons.pop("hb/broken.pdf").startswith("is damaged, or not what it seems to be (")
    assert reasons == {
        "hb/locked.pdf": "is encrypted; remove the password first",
        "hb/pictures.pdf": "holds no text on its 1 pages, only pictures; recognise it (OCR) first",
        "hb/empty.md": "is empty",
        "hb/giant.txt": "has 2048 MB; at most 100 are read",
        "hb/pipe.txt": "is no plain file",
        str(folder / "nowhere.md"): "is not there",
        str(folder / "*.none"): "matches no file",
    }
    assert len(report.added) == 3


def test_links_out_of_a_folder_are_not_followed_and_loops_end(docs, add, folder, tmp_path):
    (tmp_path / "secret.md").write_text("secret")
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere/x.md").write_text("secret")
    (folder / "out.md").symlink_to(tmp_path / "secret.md")
    (folder / "out").symlink_to(tmp_path / "elsewhere")
    (folder / "sub/loop").symlink_to(folder)
    (folder / "same.md").symlink_to(folder / "a.md")
    (folder / "self.md").symlink_to(folder / "self.md")
    for named in ([folder], [folder / "*.md", folder / "**/*.md", folder / "o*/*"]):
        report = add(*named)
        assert [reason for _, reason in report.skipped if "leads out" in reason]
        assert not [file for file in docs.files() if "secret" in text(docs, file.name)]
    assert sorted({file.source for file in docs.files()}) == sorted(
        str(folder / f"{n}.md") for n in ("a", "b", "sub/c")
    )


def test_a_link_that_is_named_itself_is_followed(docs, add, folder, tmp_path):
    (tmp_path / "named").symlink_to(folder)
    assert len(add(tmp_path / "named").added) == 3


def test_hidden_and_strange_files_are_passed_by_and_told(docs, add, folder):
    (folder / ".git").mkdir()
    (folder / ".git/x.md").write_text("x")
    (folder / ".env").write_text("KEY=secret")
    (folder / "photo.png").write_bytes(b"\x89PNG")
    report = add(folder)
    assert [name for name, _ in report.skipped] == ["hb/.git", "hb/.env", "hb/photo.png"] and not report.failed
    assert len(report.added) == 3


def test_names_of_any_characters_come_in(docs, add, tmp_path):
    folder = tmp_path / "手册 é"
    folder.mkdir()
    for name in ("年假.md", "a b.md", "emoji😀.txt", "x\ny.md", "[1].md"):
        (folder / name).write_text(f"text of {name}")
    assert len(add(folder).added) == 5 and len(add(folder / "[1].md").added) == 0


def test_a_name_that_no_terminal_or_store_could_carry_is_told_or_cleaned(docs, add, folder):
    (folder / "x\x1b[31m\ny.md").write_text("red")
    Path(os.fsdecode(os.fsencode(folder) + b"/\xff.md")).write_text("no text for a name")
    report = add(folder)
    assert "hb/x[31m y.md" in report.added
    assert report.failed == [("hb/\ufffd.md", "has a name that is not UTF-8; rename it")]


def test_a_file_of_a_folder_that_is_named_by_itself_stays_its_folders(docs, add, folder, reader):
    add(folder)
    (folder / "a.md").write_text("changed")
    assert add(folder / "a.md").changed == ["hb/a.md"]
    (folder / "new.md").write_text("new")
    assert Intake(docs, reader=reader).refresh().added == ["hb/new.md"]


def test_users_and_shared_collections_are_apart(store, add, folder):
    bob, everyone = Documents(store, user="bob"), Documents(store, user=SHARED)
    add(folder / "a.md")
    add(folder / "b.md", docs=bob)
    add(folder / "sub/c.md", docs=everyone)
    for user, own in (("ann", "a.md"), ("bob", "b.md")):
        found = search_documents(store, user=user, query="zebra", limit=9, threshold=-1)
        assert {one.file.name for one in found} == {own, "c.md"}
    Intake(bob).refresh()
    assert names(Documents(store, user="ann")) == ["a.md"] and names(everyone) == ["c.md"]


def test_progress_counts_up_to_the_end(add, folder):
    (folder / "long.txt").write_text("A line of text.\n\n" * 40_000)
    heard: list[tuple[float, int, int]] = []
    report = add(folder, told=lambda *told: heard.append(told))
    assert heard == sorted(heard) and heard[0] == (0, 4, 0) and heard[-1] == (4, 4, report.passages)
    assert len({done for done, _, _ in heard}) > 5, "it moves within a long file"


class Interrupt(BaseException):
    pass


def test_interrupted_what_is_done_stays_and_again_goes_on(docs, add, folder):
    def stop(done: float, total: int, passages: int) -> None:
        if done >= 2:
            raise Interrupt

    with pytest.raises(Interrupt):
        add(folder, told=stop)
    assert names(docs) == ["hb/a.md", "hb/b.md"]
    report = add(folder)
    assert (report.added, report.unchanged) == (["hb/sub/c.md"], 2)


def test_killed_in_the_middle_of_a_file_nothing_is_half_in(tmp_path):
    """Killed by -9, then the same command: what was in stays in, the large file comes in whole."""
    folder = tmp_path / "hb"
    folder.mkdir()
    (folder / "a.md").write_text("The word is zebra.")
    large = "".join(f"Line {n} of the large file. " + "word " * 20 + "\n\n" for n in range(8000))
    (folder / "b.md").write_text(large)
    command = [sys.executable, "-m", "graph", "docs", "add", str(folder)]
    environment = {**os.environ, "PALIMPSEST_HOME": str(tmp_path / "home"), "PYTHONPATH": str(ROOT)}
    process = subprocess.Popen(command, env=environment, stderr=subprocess.DEVNULL, start_new_session=True)
    pending = 0
    for _ in range(1200):
        time.sleep(0.05)
        if (tmp_path / "home/memory.sqlite3").exists():
            with open_store(tmp_path / "home", index={"words_alone": True}) as store:
                docs = Documents(store, user="me")
                pending = sum(file.pending[1] for file in docs.entries())
                written = len(store.search((*docs.namespace, "passages"), limit=10**6)) if pending else 0
            if pending and written > 256:
                break
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    assert pending, "it was killed within the large file"
    with open_store(tmp_path / "home") as store:
        docs = Documents(store, user="me")
        assert names(docs) == ["hb/a.md"]
        assert not [
            f for f in search_documents(store, user="me", query="large file", limit=9) if f.file.name == "hb/b.md"
        ]
        report = Intake(docs).add([str(folder)])
        assert (report.added, report.unchanged) == (["hb/b.md"], 1) and text(docs, "hb/b.md") == large
        assert len(store.search((*docs.namespace, "passages"), limit=10**6)) == sum(f.passages for f in docs.files())

"""Forgetting a user: no byte of theirs in any file, nobody else's touched; killed anywhere it ends at the next try."""

import asyncio
import json
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from conftest import ask, config
from talking import Talking

from graph.agent import open_agent, open_checkpoints, open_memory
from graph.cli import main
from graph.estate import erased, threads_of
from graph.keyboard import history_file
from graph.locks import ThreadBusy
from graph.settings import Settings
from memory.blocks import Author, Blocks
from memory.facts import Facts
from memory.labels import label
from memory.memories import Memories, Source
from memory.owner import BadUser, Team, places_of
from memory.portable import written
from memory.transcript import search_said
from nodes.context import Context, UnknownTool

pytest_plugins = ["store_fixtures"]
pytestmark = pytest.mark.filterwarnings("ignore:tool '")

MARKS = ("Zebrafish7731", "𪚥𡃁𠮷")
ANN, BOB = f"ann {MARKS[0]} {MARKS[1]}", "bob"


def live(settings: Settings, user: str, marks: tuple[str, str] = MARKS) -> None:
    """Use the agent as this user until something of every kind is kept, marked in English and in Chinese."""
    mark = " ".join(marks)

    def look_up(what: str) -> str:
        return f"{what}: {mark} " * 50

    look_up.__doc__ = "Look up."
    steps = [
        {"name": "look_up", "args": {"what": mark}},
        {"name": "memory_save", "args": {"text": f"My word is {mark}"}},
        f"I know {mark}.",
    ]
    found = json.dumps({"memories": [{"text": f"I said {mark}", "source": "first"}], "facts": []}, ensure_ascii=False)
    model = Talking(steps, then=f"Yes, {mark}.", extract=lambda asked: found, abstract=lambda asked: f"About {mark}.")
    context = {"user": user, "extract": "turn", "max_messages": 4, "max_result_chars": 300}
    with open_agent(settings, model=model, tools=[look_up]) as agent:
        first = {"role": "user", "content": f"My word is {mark}", "id": "first"}
        agent.invoke({"messages": [first]}, config(f"{user} one"), context=Context(**context))
        for n in range(6):
            ask(agent, f"{n}: I said {mark}", f"{user} one", **context)
        agent.invoke({"messages": [], "close": True}, config(f"{user} one"), context=Context(**context))
        ask(agent, f"Another talk of {mark}", f"{user} two", **context)
        store: Any = agent.store
        for text in (f"old {mark}", f"new {mark}"):
            Facts(store, user=user).set(f"key {mark}", text)
            Blocks(store, user=user).append("human", text, author=Author(by="person"))
        store.put(
            ("documents", label(user), "main", "passages"), mark, {"text": f"A document of {mark}"}, index=["text"]
        )
        shared = Memories(store, user=Team("dock"))
        shared.save(f"The dock knows {mark}", sources=[Source(thread="t", message="m", by=user)])
        store.put(("users", label(user), "a kind to come", mark), mark, {"text": mark})
        store.flush()
    history_file(settings.home, user).write_text(json.dumps(f"I typed {mark}", ensure_ascii=False), encoding="utf-8")


@pytest.fixture
def lived(settings: Settings) -> Settings:
    """A home in which two users have lived; ann's word stands in no file because of bob."""
    live(settings, ANN)
    live(settings, BOB, ("Coelacanth", "𠀋"))
    return settings


def forms_of(text: str) -> Iterator[bytes]:
    """Yield the bytes that a text may lie in a file as."""
    for form in (text, text.casefold()):
        yield from (form.encode(), form.encode("utf-16-le"), json.dumps(form)[1:-1].encode())


def files_with(home: Path, wanted: list[bytes]) -> dict[str, int]:
    """Return the files under a folder, names included, that hold one of the byte strings, and how many of them."""
    found: dict[str, int] = {}
    for path in home.rglob("*"):
        content = str(path.relative_to(home)).encode() + (path.read_bytes() if path.is_file() else b"")
        if count := sum(one in content for one in wanted):
            found[path.name] = found.get(path.name, 0) + count
    return found


def traces(settings: Settings) -> list[bytes]:
    """Return the byte strings that betray ann: her words, single rare characters, and her vectors' first numbers."""
    with sqlite3.connect(settings.home / "memory.sqlite3") as connection:
        sql = "SELECT p.prefix, v.vectors FROM mem_vectors v JOIN mem_spaces p ON p.id = v.id >> 36"
        rows = [(MARKS[0] in prefix, vectors[:24]) for prefix, vectors in connection.execute(sql)]
    connection.close()
    vectors = {vector for is_hers, vector in rows if is_hers} - {vector for is_hers, vector in rows if not is_hers}
    assert len(vectors) > 8
    return [form for mark in (*MARKS, *MARKS[1]) for form in forms_of(mark)] + sorted(vectors)


def state_of(settings: Settings, user: str) -> list[Any]:
    """Return all that a user has: what is kept, what a search finds, and the pages of the threads."""
    with open_memory(settings) as store, open_checkpoints(settings) as saver:
        pages = [
            saver.get_tuple(config(thread)).checkpoint["channel_values"]["messages"]
            for thread in sorted(threads_of(user, saver))
        ]
        found = search_said(store, user=user, query="my word Coelacanth 𠀋", limit=5)
        assert found and Memories(store, user=user).search("my word Coelacanth", limit=5)
        return [list(written(user, store.estate.items(places_of(user)))), pages, found]


def forgotten(settings: Settings, user: str) -> dict[str, int]:
    """Forget a user; return the receipt."""
    receipt: dict[str, int] = {}
    for part in erased(user, settings):
        for kind, count in part.items():
            receipt[kind] = receipt.get(kind, 0) + count
    return receipt


def test_no_byte_of_the_user_is_in_any_file_and_nobody_else_is_touched(lived: Settings):
    """B122, B150: the words in every kind and coding, the terms of the keywords, the numbers of the vectors."""
    wanted, before = traces(lived), state_of(lived, BOB)
    held = files_with(lived.home, wanted)
    assert {"memory.sqlite3", "threads.sqlite", "chroma.sqlite3"} <= held.keys()
    receipt = forgotten(lived, ANN)
    assert files_with(lived.home, wanted) == {}
    assert state_of(lived, BOB) == before and files_with(lived.home, list(forms_of("Coelacanth")))
    kinds = {"blocks", "facts", "memories", "transcript", "threads", "outputs", "documents", "a kind to come"}
    assert kinds | {"vectors", "keyword rows", "checkpoints", "summaries", "history"} <= receipt.keys()
    assert receipt["threads"] == 2 and receipt["summaries"] >= 1 and all(count > 0 for count in receipt.values())
    assert not any(forgotten(lived, ANN).values()) and files_with(lived.home, wanted) == {}


@pytest.mark.parametrize("step", range(1, 7))
def test_killed_at_any_step_it_ends_at_the_next_try(lived: Settings, step: int):
    wanted, before = traces(lived), state_of(lived, BOB)
    script = (
        "import os, signal, sys\n"
        "from graph.estate import erased\nfrom graph.settings import Settings\n"
        f"for n, _ in enumerate(erased({ANN!r}, Settings(home={str(lived.home)!r})), 1):\n"
        f"    if n == {step}: os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    done = subprocess.run([sys.executable, "-c", script], cwd=Path(__file__).parent.parent, check=False)
    assert done.returncode == (-signal.SIGKILL if step < 6 else 0)
    forgotten(lived, ANN)
    assert files_with(lived.home, wanted) == {} and state_of(lived, BOB) == before


def test_while_another_process_has_the_folder_open(lived: Settings):
    """It searches before and after, and closes last. (Numbers of vectors that it held may lie in its new index.)"""
    wanted = [form for mark in (*MARKS, *MARKS[1]) for form in forms_of(mark)]
    script = (
        "import sys\nfrom graph.agent import open_checkpoints\nfrom graph.settings import Settings\n"
        f"from memory.store import open_store\nsettings = Settings(home={str(lived.home)!r})\n"
        "with open_store(settings.home, exact_max=0) as store, open_checkpoints(settings) as saver:\n"
        "    for line in sys.stdin:\n"
        "        hits = store.search(('users',), query='my word', limit=50)\n"
        "        print(len(hits), len(saver.threads()), flush=True)\n"
    )
    command = [sys.executable, "-c", script]
    root = Path(__file__).parent.parent
    with subprocess.Popen(command, cwd=root, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as other:
        assert other.stdin and other.stdout
        told = []
        for n in range(3):
            print("search", file=other.stdin, flush=True)
            told.append(other.stdout.readline().split())
            if n == 0:
                forgotten(lived, ANN)
        other.stdin.close()
        assert other.wait(60) == 0
    assert [int(threads) for _, threads in told] == [4, 2, 2] and told[1] == told[2]
    assert files_with(lived.home, wanted) == {}


def test_while_a_run_of_the_user_goes_on_nothing_is_erased(lived: Settings):
    before = state_of(lived, BOB)
    with (
        open_checkpoints(lived) as saver,
        saver.locks.holding(f"{ANN} two"),
        pytest.raises(ThreadBusy, match="two"),
    ):
        forgotten(lived, ANN)
    assert forgotten(lived, ANN)["threads"] == 2 and state_of(lived, BOB) == before


def test_a_thread_of_another_user_that_an_import_named_stays(settings: Settings):
    live(settings, BOB, ("Coelacanth", "𠀋"))
    with open_memory(settings) as store:
        lines = list(written(BOB, store.estate.items(places_of(BOB))))
    (settings.home / "bob.jsonl").write_bytes(b"".join(lines))
    before = state_of(settings, BOB)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PALIMPSEST_HOME", str(settings.home))
        assert main(["memory", "import", str(settings.home / "bob.jsonl"), "--user", "eve"]) == 0
    assert forgotten(settings, "eve")["threads"] == 2
    assert state_of(settings, BOB) == before


@pytest.mark.parametrize(("way", "fails"), [("invoke", "model"), ("invoke", "recall"), ("ainvoke", "recall")])
def test_a_thread_whose_very_first_step_failed_is_erased_too(lived: Settings, way: str, fails: str):
    """It holds the question, and no answer; the other user's thread that broke off in the same way stays."""
    said, theirs = "Axolotl4711 𡘙", "Nautilus0815"
    steps = [RuntimeError("the model is away")] * 6 if fails == "model" else []
    with open_agent(lived, model=Talking(steps)) as agent:
        for user, text in ((ANN, said), (BOB, theirs)):
            given = {"messages": [("user", f"I keep an {text}")]}, config(f"{user} broken")
            options: dict[str, Any] = {"context": Context(user=user, tools=("*",) if fails == "model" else ("nope",))}
            with suppress(UnknownTool):
                agent.invoke(*given, **options) if way == "invoke" else asyncio.run(agent.ainvoke(*given, **options))
    wanted = [form for mark in said.split() for form in forms_of(mark)]
    assert "threads.sqlite" in files_with(lived.home, wanted)
    forgotten(lived, ANN)
    assert files_with(lived.home, wanted) == {} and files_with(lived.home, list(forms_of(theirs)))


@pytest.mark.parametrize("user", ["", "  ", None])
def test_nobody_in_particular_is_refused(settings: Settings, user: Any):
    """B122."""
    live(settings, BOB, ("Coelacanth", "𠀋"))
    before = state_of(settings, BOB)
    with pytest.raises(BadUser):
        forgotten(settings, user)
    assert state_of(settings, BOB) == before


@pytest.mark.parametrize(
    ("words", "code"),
    [
        ([], 2),
        ([""], 2),
        ([" ", "--yes"], 2),
        (["--yes"], 2),
        (["--user", "bob", "--yes"], 2),
        (["bob"], 2),
        (["nobody", "--yes"], 0),
        (["bob", "--yes", "--json"], 0),
    ],
)
def test_in_the_terminal_it_wants_a_name_and_a_yes(
    settings: Settings, words: list[str], code: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.setenv("PALIMPSEST_HOME", str(settings.home))
    with open_memory(settings) as store:
        Memories(store, user="bob").save("The tea is green")
        Memories(store, user="ann").save("The tea is red")
    assert main(["memory", "forget-user", *words]) == code
    with open_memory(settings) as store:
        assert len(Memories(store, user="ann").all()) == 1
        assert len(Memories(store, user="bob").all()) == (0 if "--json" in words else 1)
    if "--json" in words:
        assert json.loads(capsys.readouterr().out)["erased"]["memories"] == 1


def test_on_servers_no_row_of_the_user_is_left(settings: Settings, postgres_url: str, chroma_url: str):
    import psycopg
    from store_fixtures import new_schema

    url = new_schema(postgres_url)
    there = replace(settings, database_url=url, chroma_url=chroma_url)
    live(there, ANN)
    live(there, BOB, ("Coelacanth", "𠀋"))
    before = state_of(there, BOB)

    def rows_with(mark: str) -> int:
        with psycopg.connect(url) as connection:
            schema = connection.execute("SELECT current_schema()").fetchone()
            names = connection.execute("SELECT tablename FROM pg_tables WHERE schemaname = %s", schema).fetchall()
            forms = [mark, mark.casefold(), mark.encode().hex()]
            counts = [
                connection.execute(
                    f"SELECT count(*) FROM {name} t WHERE t::text LIKE ANY(%s)".encode(),
                    ([f"%{form}%" for form in forms],),
                ).fetchone()
                for (name,) in names
            ]
        return sum(int(count[0]) for count in counts if count)

    assert all(rows_with(mark) for mark in MARKS)
    forgotten(there, ANN)
    assert [rows_with(mark) for mark in MARKS] == [0, 0] and rows_with("Coelacanth")
    assert state_of(there, BOB) == before

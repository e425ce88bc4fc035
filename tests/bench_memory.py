"""Measure what memory makes of lives that change: tests/memory_streams.py, the made-on and the held-out half apart.

    PYTHONPATH=.:tests python tests/bench_memory.py [--mem0 PYTHON] [--langmem PYTHON]

Not a test; run by hand. The options name interpreters in whose environments these libraries are installed (uv venv;
uv pip install mem0ai, or langmem langchain-openai); they hear the same streams, by tests/rivals.py. All use the same
built-in embedder and one scripted model: in `plain` it keeps each statement as a person would write it down and names
nothing that this replaces, so that only the library can tell; in `named` it names it every time, the most that a model
can do. A question counts as right if what it brings up (k = 3) holds the value of the time and none that it replaced or
that replaced it; `found` counts those that hold the value, whatever else they hold. — is what a library has no notion
of: mem0's history lists old texts, but no question can be asked as of a date.
"""

import argparse
import ast
import json
import os
import re
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
from memory_streams import CHINESE, DIFFERENT, ENGLISH, MIXED, SAME, Slot, halves
from wire import Calls, OpenAIWire, Text

from memory.embedding import default_embedder
from memory.memories import Memories, Source
from memory.store import ChromaStore, open_store
from memory.transcript import Entry, Transcript

START = datetime(2026, 1, 1, 12, tzinfo=UTC)
HALVES = {"made on": False, "held out": True}
LIVES = {"en": ENGLISH, "zh": CHINESE, "mixed": MIXED}
PROTOCOL = {
    "palimpsest": "the statement goes to Memories.save as memory_save does; `named` gives the id that it replaces",
    "mem0": 'its prompt (v3) knows only ADD and is answered {"memory": [{"text": statement}]}; `named` calls '
    "Memory.update(id, text) with the right id; message ids go in as metadata; qdrant on disk, no spaCy, no fastembed",
    "langmem": "its extractor is answered by a call of Memory(content); `named` by PatchDoc on the right instance, if "
    "it was shown among the existing ones; InMemoryStore, its default schema",
}
NONE = "—"


class Ours:
    """The memories and the transcript of this project."""

    def __init__(self, store: ChromaStore) -> None:
        self.store = store

    def hear(self, user: str, said: str, kept: str, message: str, at: datetime, old: str) -> None:
        """File what was said and keep the statement made of it, instead of the old one if that is named."""
        entry = Entry(id=message, role="human", text=said, at=at.isoformat(), data={"content": said})
        Transcript(self.store, user=user, thread="t").file([entry])
        memories = Memories(self.store, user=user)
        replaces = next((one.id for one in memories.all() if old and one.text == old), "")
        memories.save(kept, sources=[Source(thread="t", message=message)], at=at, replaces=replaces)

    def search(self, user: str, query: str, limit: int, when: datetime | None = None) -> list[str]:
        """Return the texts that a question brings up."""
        return [memory.text for memory in Memories(self.store, user=user).search(query, limit=limit, when=when)]

    def kept(self, user: str) -> list[tuple[str, str]]:
        """Return every memory, past ones too, with a message that it cites: empty if the transcript lacks one."""
        known = {entry.id for entry in Transcript(self.store, user=user, thread="t").entries()}
        cited = [(one.text, one.sources) for one in Memories(self.store, user=user).all(past=True)]
        return [(text, sources[-1].message if known >= {s.message for s in sources} else "") for text, sources in cited]

    def size(self, user: str) -> int:
        """Return the bytes of all that is kept of memories, as JSON."""
        items = self.store.search(Memories(self.store, user=user).namespace, limit=10_000)
        return sum(len(json.dumps(item.value)) for item in items)


class Rival:
    """A library in a process of its own, by tests/rivals.py."""

    def __init__(self, process: "subprocess.Popen[str]", model: "Scripted", log: Path) -> None:
        self.process, self.model, self.log = process, model, log

    def hear(self, user: str, said: str, kept: str, message: str, at: datetime, old: str) -> None:
        """Let it hear a message, with the model that knows what to keep of it."""
        self.model.kept, self.model.old = kept, old
        self("hear", user, said, kept, message, at.isoformat(), old)

    def search(self, user: str, query: str, limit: int, when: datetime | None = None) -> list[str]:
        """Return the texts that a question brings up."""
        found: list[str] = self("search", user, query, limit)
        return found

    def kept(self, user: str) -> list[tuple[str, str]]:
        """Return everything kept, with the message that it cites."""
        return [(text, message) for text, message in self("kept", user)]

    def size(self, user: str) -> int:
        """Return the bytes of all that is kept of memories, as JSON."""
        size: int = self("size", user)
        return size

    def __call__(self, *call: Any) -> Any:
        """Have a method called; what the library says besides goes to stderr."""
        assert self.process.stdin and self.process.stdout
        print(json.dumps(call), file=self.process.stdin, flush=True)
        if not (answer := self.process.stdout.readline()):
            raise ChildProcessError(self.last_words())
        return json.loads(answer)

    def last_words(self) -> str:
        """Return the end of what the process wrote to stderr."""
        return "\n".join(self.log.read_text(encoding="utf-8").strip().splitlines()[-8:])


System = Ours | Rival


class Scripted:
    """The model: it keeps `kept` of whatever it reads and patches `old` with it if that is among what it may patch."""

    def __init__(self) -> None:
        self.kept, self.old = "", ""

    def __call__(self, body: dict[str, Any]) -> Text | Calls:
        """Answer in the form that a library asks for."""
        if not body.get("tools"):
            return Text(json.dumps({"memory": [{"text": self.kept, "attributed_to": "user"}]}, ensure_ascii=False))
        shown = re.findall(
            r'<instance id=(\S+) schema_type="Memory">\n(.*?)\n</instance>', str(body["messages"][0]["content"])
        )
        known = next((id for id, value in shown if self.old and ast.literal_eval(value)["content"] == self.old), None)
        if known is None:
            return Calls(("Memory", {"content": self.kept}))
        patch = {"op": "replace", "path": "/content", "value": self.kept}
        return Calls(("PatchDoc", {"json_doc_id": known, "planned_edits": "replace", "patches": [patch]}))


@contextmanager
def rival(name: str, python: str, home: str) -> Iterator[Rival]:
    """Start a library. Raises OSError if it cannot be run."""
    embedder, model = default_embedder(), Scripted()
    with OpenAIWire(model, embed=lambda text: embedder([text])[0].tolist()) as wire:
        env = os.environ | {"MEM0_TELEMETRY": "False", "MEM0_DIR": home, "LANGSMITH_TRACING": "false"}
        command = [python, "-W", "ignore", str(Path(__file__).with_name("rivals.py")), name, wire.url]
        with (
            Path(home, "stderr").open("w", encoding="utf-8") as log,
            subprocess.Popen(
                [*command, str(embedder.dims), home], stdin=-1, stdout=-1, stderr=log, text=True, env=env
            ) as process,
        ):
            library = Rival(process, model, Path(log.name))
            print(f"{name} {library('version')}: {PROTOCOL[name]}")
            yield library
            assert process.stdin
            process.stdin.close()


def main() -> None:
    """Measure this project and the libraries that were named."""
    parser = argparse.ArgumentParser()
    for name in ("mem0", "langmem"):
        parser.add_argument(f"--{name}", metavar="PYTHON")
    given = vars(parser.parse_args())
    with tempfile.TemporaryDirectory() as home, open_store(home) as store:
        print(f"palimpsest: {PROTOCOL['palimpsest']}")
        measure("palimpsest", Ours(store))
        print(f"cosines: different {cosines(DIFFERENT)}, the same {cosines(SAME)}")
    for name, python in given.items():
        with tempfile.TemporaryDirectory() as home, ExitStack() as stack:
            try:
                if not python:
                    raise ValueError(f"name an interpreter that has it by --{name}")
                system = stack.enter_context(rival(name, python, home))
                measure(name, system)
            except (OSError, ValueError) as error:
                print(f"{name}: not measured: {error}")


def measure(name: str, system: System) -> None:
    """Print every measure of one system."""
    for half, held_out in HALVES.items():
        for language, slots in LIVES.items():
            for model in ("plain", "named"):
                told = accuracy(
                    system,
                    halves(slots, held_out),
                    f"{half}-{language}-{model}".replace(" ", "-"),
                    names=model == "named",
                )
                print(f"{name:10}  {half:8}  {language:5}  {model}  {told}", flush=True)
    for half, held_out in HALVES.items():
        false = merged(system, halves(DIFFERENT, held_out), f"different-{held_out}")
        true = merged(system, halves(SAME, held_out), f"same-{held_out}")
        print(f"{name:10}  {half:8}  false merges {false}  merges of what says the same {true}", flush=True)
    print(f"{name:10}  memories and their bytes after 100, 200 … 500 repeated turns: {growth(system)}", flush=True)


def accuracy(system: System, slots: tuple[Slot, ...], user: str, *, names: bool) -> str:
    """Live through all slots day by day; tell the shares of right answers now and then, and of citations."""
    last: dict[int, str] = {}
    events = [(day, n) for day in range(3) for n, slot in enumerate(slots) if day < len(slot.said)]
    for day, n in events:
        said, kept, _ = slots[n].said[day]
        old = last.get(n, "") if names and not slots[n].adds else ""
        system.hear(user, said, kept, f"{n}-{day}", START + timedelta(days=10 * day), old)
        last[n] = kept
    ends = [(slot, len(slot.said) - 1, system.search(user, slot.query, 3)) for slot in slots]
    then = NONE
    if isinstance(system, Ours):
        moments = [(slots[n], day, START + timedelta(days=10 * day + 1)) for day, n in events]
        then = share([is_right(slot, day, system.search(user, slot.query, 3, at)) for slot, day, at in moments])
    cited = [bool(message) for _, message in system.kept(user)]
    now, found = share([is_right(*end) for end in ends]), share([is_found(*end) for end in ends])
    return f"now {now}  found {found}  as of {then}  citations that resolve {share(cited) if any(cited) else NONE}"


def is_right(slot: Slot, last: int, shown: Sequence[str]) -> bool:
    """Whether a question brought up the value of the time and none that it replaced or that replaced it."""
    values = [value for _, _, value in slot.said]
    wrong = [] if slot.adds else [value for value in values if value != values[last]]
    return is_found(slot, last, shown) and not any(value in " ".join(shown) for value in wrong)


def is_found(slot: Slot, last: int, shown: Sequence[str]) -> bool:
    """Whether a question brought up the value of the time."""
    return slot.said[last][2] in " ".join(shown)


def merged(system: System, pairs: tuple[tuple[str, str], ...], user: str) -> str:
    """Tell of how many pairs only one memory is left, each pair said by a user of its own."""
    left = []
    for n, pair in enumerate(pairs):
        for m, text in enumerate(pair):
            system.hear(f"{user}-{n}", text, text, f"{n}-{m}", START + timedelta(days=m), "")
        left.append(len(system.kept(f"{user}-{n}")) < 2)
    return share(left)


def growth(system: System) -> str:
    """Say the same two things 500 times; tell how much is kept after each hundred."""
    sizes = []
    for n in range(1, 501):
        text = ("The user likes tea", "I like tea", "用户住在杭州")[n % 3]
        system.hear("repeats", text, text, f"{n:04}", START + timedelta(minutes=n), "")
        if n % 100 == 0:
            sizes.append(f"{len(system.kept('repeats'))} ({system.size('repeats'):,})")
    return ", ".join(sizes)


def cosines(pairs: tuple[tuple[str, str], ...]) -> str:
    """Return the least and the largest cosine within the pairs."""
    vectors = [default_embedder()(list(pair)) for pair in pairs]
    found = [float(a @ b / np.linalg.norm(a) / np.linalg.norm(b)) for a, b in vectors]
    return f"{min(found):.2f} to {max(found):.2f}"


def share(right: Sequence[bool]) -> str:
    """Write how many of how many."""
    return f"{sum(right)}/{len(right)}"


if __name__ == "__main__":
    main()

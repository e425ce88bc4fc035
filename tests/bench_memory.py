"""Measure what memory makes of lives that change: tests/memory_streams.py, the made-on and the held-out half apart.

    PYTHONPATH=. python tests/bench_memory.py

Not a test; run by hand. Statements are saved as a model would write them, a day apart, with the built-in embedder. In
`plain` the model names nothing that a statement replaces, so that only the rules can tell; in `named` it names it
every time, which is the most that a model can do. A question counts as right if the memories that it brings up (k = 3)
hold the value of the time and, where values replace each other, no other. mem0 and langmem are not measured here.
"""

import json
import tempfile
from datetime import UTC, datetime, timedelta

import numpy as np
from memory_streams import CHINESE, DIFFERENT, ENGLISH, MIXED, SAME, Slot, halves

from memory.memories import Memories, Source
from memory.sameness import canonical
from memory.store import ChromaStore, open_store
from memory.transcript import Entry, Transcript

START = datetime(2026, 1, 1, 12, tzinfo=UTC)
HALVES = {"made on": False, "held out": True}


def main() -> None:
    """Print every measure for both halves."""
    with tempfile.TemporaryDirectory() as home, open_store(home) as store:
        print("accuracy of values: now, and as of the day after each was said")
        for half, held_out in HALVES.items():
            for name, slots in (("en", ENGLISH), ("zh", CHINESE), ("mixed", MIXED)):
                for names in (False, True):
                    user = f"{half} {name} {names}"
                    now, then, cited = accuracy(store, halves(slots, held_out), user, names)
                    model = "named" if names else "plain"
                    print(f"  {half:8}  {name:5}  {model}  now {now}  as of {then}  citations that resolve {cited}")
        for half, held_out in HALVES.items():
            different, same = halves(DIFFERENT, held_out), halves(SAME, held_out)
            false = sum(canonical(one) == canonical(other) for one, other in different)
            true = sum(canonical(one) == canonical(other) for one, other in same)
            print(f"{half:8}  false merges {false}/{len(different)}  merges of what says the same {true}/{len(same)}")
        print(f"cosines: different {cosines(store, DIFFERENT)}, the same {cosines(store, SAME)}")
        print(f"bytes kept after 100, 200 … 500 repeated turns: {growth(store)}")


def accuracy(store: ChromaStore, slots: tuple[Slot, ...], user: str, names: bool) -> tuple[str, str, str]:
    """Live through all slots day by day; return the shares of right answers now and then, and of citations."""
    memories, transcript = Memories(store, user=user), Transcript(store, user=user, thread="t")
    last: dict[int, str] = {}
    events = [(day, n) for day in range(3) for n, slot in enumerate(slots) if day < len(slot.said)]
    for day, n in events:
        said, kept, _ = slots[n].said[day]
        id, at = f"{n}-{day}", START + timedelta(days=10 * day)
        transcript.file([Entry(id=id, role="human", text=said, at=at.isoformat(), data={"content": said})])
        replaces = last.get(n, "") if names and not slots[n].adds else ""
        last[n] = memories.save(kept, sources=[Source(thread="t", message=id)], at=at, replaces=replaces)[0].id
    now = [is_right(memories, slot, len(slot.said) - 1, None) for slot in slots]
    then = [is_right(memories, slots[n], day, START + timedelta(days=10 * day + 1)) for day, n in events]
    known = {entry.id for entry in transcript.entries()}
    cited = [source.message in known for memory in memories.all(past=True) for source in memory.sources]
    return share(now), share(then), share(cited)


def is_right(memories: Memories, slot: Slot, last: int, when: datetime | None) -> bool:
    """Whether a question brings up the value of the time and none that it replaced or that replaced it."""
    shown = " ".join(memory.text for memory in memories.search(slot.query, limit=3, when=when))
    values = [value for _, _, value in slot.said]
    wrong = [] if slot.adds else [value for value in values if value != values[last]]
    return values[last] in shown and not any(value in shown for value in wrong)


def cosines(store: ChromaStore, pairs: tuple[tuple[str, str], ...]) -> str:
    """Return the least and the largest cosine within the pairs."""
    embed = store._index.embedder  # type: ignore[union-attr]
    vectors = [embed(list(pair)) for pair in pairs]
    found = [float(a @ b / np.linalg.norm(a) / np.linalg.norm(b)) for a, b in vectors]
    return f"{min(found):.2f} to {max(found):.2f}"


def growth(store: ChromaStore) -> list[int]:
    """Say the same two things 500 times; return the bytes of all memories after each hundred."""
    memories, sizes = Memories(store, user="repeats"), []
    for n in range(500):
        text = ("The user likes tea", "I like tea", "用户住在杭州")[n % 3]
        memories.save(text, sources=[Source(thread="t", message=f"{n:04}")])
        if n % 100 == 99:
            items = store.search(memories.namespace, limit=100)
            sizes.append(sum(len(json.dumps(item.value)) for item in items))
    return sizes


def share(right: list[bool]) -> str:
    """Write how many of how many."""
    return f"{sum(right)}/{len(right)}"


if __name__ == "__main__":
    main()

"""Measure what the store finds, through its own API: LoCoMo turns, CMRC passages and sentences, two languages.

    python tests/bench_retrieval.py --locomo FILE --cmrc FILE --bilingual FILE [--embedder default|e5]

Prints a row per leg: `bm25` and `vector` order the same hits by one leg's score alone, `fused` is the store's
order. R@k is the part of a question's right items in the first k, all@10 asks for all of them. Not a test.
"""

import argparse
import json
import re
import sys
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from langgraph.store.base import PutOp

from memory.embedding import default_embedder, e5_embedder
from memory.store import ChromaStore, Hit, open_store

LEGS = {"bm25": "keyword_rank", "vector": "vector_rank", "fused": None}
DEPTH = 200  # hits looked at: enough for the first ten of each leg
SENTENCE_PASSAGES = 300
BATCH = 256


@dataclass(frozen=True, kw_only=True)
class Question:
    """A question, the keys of the items that answer it, and the groups whose rows it counts in."""

    text: str
    right: frozenset[str]
    groups: tuple[str, ...]


class Table:
    """Ranks of right items, by group and leg."""

    def __init__(self) -> None:
        self._ranks: dict[tuple[str, str], list[list[int]]] = defaultdict(list)

    def add(self, question: Question, hits: Sequence[Hit]) -> None:
        """Note where each leg has the right items (ranks from 1; 10**6 for those not found)."""
        for leg, part in LEGS.items():
            ranks = {hit.key: hit.parts[part] for hit in hits} if part else {}
            ranks = ranks or {hit.key: rank for rank, hit in enumerate(hits, start=1)}
            mine = [int(ranks.get(key) or 10**6) for key in question.right]
            for group in question.groups:
                self._ranks[group, leg].append(mine)

    @classmethod
    def merged(cls, tables: Iterable["Table"]) -> "Table":
        """Put several tables' ranks together."""
        whole = cls()
        for table in tables:
            for key, ranks in table._ranks.items():
                whole._ranks[key] += ranks
        return whole

    def rows(self) -> Iterator[str]:
        """Format a row per group and leg."""
        for group in sorted({group for group, _ in self._ranks}):
            for leg in LEGS:
                yield f"{group:34} {leg:7} {_measures(self._ranks[group, leg])}"


def _measures(ranks: list[list[int]]) -> str:
    def recall(k: int) -> float:
        return float(np.mean([np.mean([rank <= k for rank in mine]) for mine in ranks]))

    every = np.mean([max(mine) <= 10 for mine in ranks])
    reciprocal = np.mean([1 / min(mine) for mine in ranks])
    return (
        f"R@5 {recall(5):.3f} R@10 {recall(10):.3f} all@10 {every:.3f} MRR {reciprocal:.3f}"
        f"   R@1 {recall(1):.3f} R@3 {recall(3):.3f}   {len(ranks)} questions"
    )


def fill(store: ChromaStore, namespace: tuple[str, ...], texts: Mapping[str, str]) -> None:
    """Put texts by key, in order."""
    ops = [PutOp(namespace, key, {"text": text}) for key, text in texts.items()]
    for start in range(0, len(ops), BATCH):
        store.batch(ops[start : start + BATCH])


def ask(store: ChromaStore, namespace: tuple[str, ...], questions: Iterable[Question], *, neighbours: bool) -> Table:
    """Ask every question and note the ranks."""
    table = Table()
    for question in questions:
        table.add(question, store.find(namespace, question.text, limit=DEPTH, neighbours=neighbours))
    return table


def locomo(store: ChromaStore, file: Path) -> list[Table]:
    """One item per turn: the session's day, the speaker, the words, a shared photo's caption."""
    tables = []
    for number, sample in enumerate(json.loads(file.read_text()), start=1):
        turns = dict(_turns(sample["conversation"]))
        half = "1-5 (settings chosen here)" if number <= 5 else "6-10"
        questions = list(_locomo_questions(sample["qa"], turns, half))
        namespace = ("users", "locomo", "transcript", str(number))
        fill(store, namespace, turns)
        tables.append(ask(store, namespace, questions, neighbours=True))
    return tables


def _turns(conversation: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    sessions = sorted(int(name[8:]) for name in conversation if re.fullmatch(r"session_\d+", name))
    for session in sessions:
        day = conversation[f"session_{session}_date_time"].split(" on ")[-1].replace(",", "")
        for turn in conversation[f"session_{session}"]:
            photo = f" [photo: {turn['blip_caption']}]" if turn.get("blip_caption") else ""
            yield turn["dia_id"], f"{day} {turn['speaker']}: {turn['text']}{photo}"


def _locomo_questions(asked: Iterable[Any], turns: Mapping[str, str], half: str) -> Iterator[Question]:
    for entry in asked:
        named = re.findall(r"D:?(\d+):0*(\d+)", " ".join(entry.get("evidence", [])))
        right = frozenset(f"D{session}:{turn}" for session, turn in named) & turns.keys()
        if right and entry["category"] in {1, 2, 3, 4}:
            of_category = f"locomo {half} category {entry['category']}"
            yield Question(text=entry["question"], right=right, groups=("locomo all", f"locomo {half}", of_category))


def cmrc(store: ChromaStore, file: Path) -> list[Table]:
    """Question to passage; question to the sentence that holds the answer, alone and with neighbours."""
    passages = [passage for article in json.loads(file.read_text())["data"] for passage in article["paragraphs"]]
    texts = {str(number): passage["context"] for number, passage in enumerate(passages)}
    whole = [
        Question(text=entry["question"], right=frozenset([str(number)]), groups=("cmrc passages",))
        for number, passage in enumerate(passages)
        for entry in passage["qas"]
    ]
    fill(store, ("documents", "cmrc"), texts)
    tables = [ask(store, ("documents", "cmrc"), whole, neighbours=False)]
    asked: list[tuple[str, frozenset[str]]] = []
    for number, passage in enumerate(passages[:SENTENCE_PASSAGES]):
        spans = [match.span() for match in re.finditer(r"[^。！？!?\n]+[。！？!?\n]*", passage["context"])]
        sentences = {f"{number}:{start}": passage["context"][start:end] for start, end in spans}
        fill(store, ("sentences", "cmrc", str(number)), sentences)
        for entry in passage["qas"]:
            starts = {answer["answer_start"] for answer in entry["answers"]}
            right = frozenset(f"{number}:{a}" for a, b in spans if any(a <= start < b for start in starts))
            asked.append((entry["question"], right))
    for neighbours, group in ((False, "cmrc sentences"), (True, "cmrc sentences with neighbours")):
        questions = [Question(text=text, right=right, groups=(group,)) for text, right in asked]
        tables.append(ask(store, ("sentences", "cmrc"), questions, neighbours=neighbours))
    return tables


def bilingual(store: ChromaStore, file: Path) -> list[Table]:
    """Question in one language, memories in the same or the other."""
    entries = json.loads(file.read_text())
    tables = []
    for memory in ("en", "zh"):
        namespace = ("users", memory, "memories")
        fill(store, namespace, {str(number): entry[memory] for number, entry in enumerate(entries)})
        for asked in ("en", "zh"):
            group = f"bilingual {asked} question, {memory} memory"
            questions = [
                Question(text=entry[f"q_{asked}"], right=frozenset([str(number)]), groups=(group,))
                for number, entry in enumerate(entries)
            ]
            tables.append(ask(store, namespace, questions, neighbours=False))
    return tables


def main() -> None:
    """Run what files were given for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    measures = {"locomo": locomo, "cmrc": cmrc, "bilingual": bilingual}
    for name in measures:
        parser.add_argument(f"--{name}", type=Path, metavar="FILE")
    parser.add_argument("--embedder", choices=("default", "e5"), default="default")
    chosen = parser.parse_args()
    embedder = e5_embedder() if chosen.embedder == "e5" else default_embedder()
    print(f"embedder {embedder.fingerprint.text}")
    for name, measure in measures.items():
        if file := getattr(chosen, name):
            started = time.monotonic()
            with open_store(embedder=embedder) as store:
                for row in Table.merged(measure(store, file)).rows():
                    print(row, flush=True)
            print(f"{name}: {time.monotonic() - started:.0f} s", flush=True)


if __name__ == "__main__":
    main()

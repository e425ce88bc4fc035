"""Measure documents on CMRC written out as files: how fast they come in, in how much memory, and what is found.

    python tests/bench_documents.py --cmrc FILE [--articles N] [--embedder default|e5]

Each article is a file with its title: once all as HTML, once all as Markdown. A question's right passage is one of its
article's file that holds the answer. `bigrams` counts the character pairs that question and passage share, as a demo
would; `words` and `meaning` order what the search found by one leg alone; `fused` is the search, `kept` what of it is
brought up unasked. "Unanswerable" are the questions of articles that were left out. Not a test.
"""

import argparse
import json
import resource
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from html import escape
from itertools import pairwise
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from graph.ingest import Intake
from memory.documents import Documents, search_documents
from memory.embedding import default_embedder, e5_embedder
from memory.store import ChromaStore, Hit, open_store

USER = "bench"
TOP = 3
LEFT_OUT = 4
"""One article in so many is left out, for questions that nothing answers."""


@dataclass(frozen=True, kw_only=True)
class Question:
    """A question, the file that answers it (empty: none does) and the texts of right answers."""

    text: str
    file: str
    answers: tuple[str, ...]


def written(article: dict[str, Any], kind: str) -> str:
    """Write an article as a file."""
    title, text = article["title"], article["paragraphs"][0]["context"]
    if kind == "md":
        return f"# {title}\n\n{text}\n"
    name = escape(title)
    return f"<html><head><title>{name}</title></head><body><h1>{name}</h1><p>{escape(text)}</p></body></html>"


def questions_of(articles: Sequence[dict[str, Any]], kind: str) -> Iterator[Question]:
    """List the questions, those of articles that were left out without a file."""
    for n, article in enumerate(articles):
        for asked in article["paragraphs"][0]["qas"]:
            name = "" if n % LEFT_OUT == 0 else f"cmrc/{n}.{kind}"
            answers = tuple(answer["text"] for answer in asked["answers"])
            yield Question(text=asked["question"], file=name, answers=answers)


def pairs(text: str) -> Counter[str]:
    """Count the pairs of neighbouring characters."""
    return Counter(map("".join, pairwise(text)))


class Ranks:
    """Ranks of the right passage, by leg."""

    def __init__(self) -> None:
        self.found: dict[str, list[int]] = defaultdict(list)

    def add(self, leg: str, ordered: Sequence[Any], is_right: Callable[[Any], bool]) -> None:
        """Note where a leg has the first right passage."""
        self.found[leg].append(next((n for n, one in enumerate(ordered, 1) if is_right(one)), 10**6))

    def rows(self) -> Iterator[str]:
        """Write a row for each leg."""
        for leg, ranks in self.found.items():
            shares = [sum(rank <= k for rank in ranks) / len(ranks) for k in (1, TOP, 10)]
            told = f"R@1 {shares[0]:.3f}  R@{TOP} {shares[1]:.3f}  R@10 {shares[2]:.3f}"
            yield f"  {leg:8} {told}   {len(ranks)} questions"


def measure(articles: Sequence[dict[str, Any]], kind: str, embedder: Any) -> Iterator[str]:
    """Bring the articles in as files of one kind, and ask all questions."""
    with tempfile.TemporaryDirectory() as room, open_store(embedder=embedder) as store:
        folder = Path(room) / "cmrc"
        folder.mkdir()
        for n, article in enumerate(articles):
            if n % LEFT_OUT:
                (folder / f"{n}.{kind}").write_text(written(article, kind), encoding="utf-8")
        docs = Documents(store, user=USER)
        for turn in ("added", "again"):
            start = time.monotonic()
            report = Intake(docs).add([str(folder)])
            seconds = time.monotonic() - start
            files = len(report.added) + report.unchanged
            rate = f"{files / seconds:7.1f} files/s  {report.passages / seconds:7.1f} passages/s"
            yield f"  {turn}: {files} files, {report.passages} passages in {seconds:.1f} s  {rate}"
        yield from asked(store, docs, list(questions_of(articles, kind)))


def asked(store: ChromaStore, docs: Documents, questions: Sequence[Question]) -> Iterator[str]:
    """Ask all questions; tell the ranks, and how often something is brought up."""
    place, ranks = (*docs.namespace, "passages"), Ranks()
    names = {file.id: file.name for file in docs.files()}
    texts = [(names[hit.value["file"]], hit.value["text"]) for hit in store.search(place, limit=10**6)]
    counted = [(name, text, pairs(text)) for name, text in texts]
    brought_up: list[bool] = []
    start = time.monotonic()
    for question in questions:
        kept = search_documents(store, user=USER, query=question.text, limit=TOP)
        if not question.file:
            brought_up.append(bool(kept))
            continue
        hits = store.find(place, question.text, limit=200)

        def is_right(pair: tuple[str, str], question: Question = question) -> bool:
            return pair[0] == question.file and any(answer in pair[1] for answer in question.answers)

        def named(found: Sequence[Hit]) -> list[tuple[str, str]]:
            return [(names[hit.value["file"]], hit.value["text"]) for hit in found]

        mine = pairs(question.text)
        demo = sorted(counted, key=lambda one: -(mine & one[2]).total())[:10]
        ranks.add("bigrams", [(name, text) for name, text, _ in demo], is_right)
        for leg, part in (("words", "keyword_rank"), ("meaning", "vector_rank")):
            ranks.add(
                leg, named(sorted((h for h in hits if h.parts[part]), key=lambda h: h.parts[part] or 0)), is_right
            )
        ranks.add("fused", named(hits), is_right)
        ranks.add("kept", [(one.file.name, one.passage.text) for one in kept], is_right)
    seconds = time.monotonic() - start
    yield from ranks.rows()
    yield f"  brought up for {sum(brought_up) / len(brought_up):.3f} of {len(brought_up)} unanswerable questions"
    yield f"  {1000 * seconds / len(questions):.0f} ms for a question with all ways to ask it"


def main() -> None:
    """Measure both kinds of files."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cmrc", type=Path, required=True, metavar="FILE")
    parser.add_argument(
        "--articles", type=int, metavar="N", help="the last N alone (thresholds were fitted on the first)"
    )
    parser.add_argument("--embedder", choices=("default", "e5"), default="default")
    chosen = parser.parse_args()
    embedder = e5_embedder() if chosen.embedder == "e5" else default_embedder()
    articles = json.loads(chosen.cmrc.read_text(encoding="utf-8"))["data"][-(chosen.articles or 0) :]
    for kind in ("html", "md"):
        print(f"{kind}: {len(articles)} articles, {embedder.fingerprint.text}", flush=True)
        for row in measure(articles, kind, embedder):
            print(row, flush=True)
    print(f"peak memory {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024} MB")


if __name__ == "__main__":
    main()

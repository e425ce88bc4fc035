"""Measure a conversation of 1,000 turns with 200 planted facts, against full resend and the summarisers of others.

    PYTHONPATH=. python tests/bench_compaction.py
    PYTHONPATH=. python tests/bench_compaction.py --turns 200
    PYTHONPATH=. python tests/bench_compaction.py --database-url postgresql://me:secret@localhost/empty

With a database, which should be empty, a row tells of our checkpoints and memory on Postgres.

langmem is no dependency; without it its row is left out. To measure it too, beside the project's own environment:

    pip install --no-deps --target /tmp/langmem langmem==0.0.30 trustcall dydantic
    PYTHONPATH=.:/tmp/langmem python tests/bench_compaction.py

Not a test; run by hand. Each system gets the same talk, the same models and the same limits: `tokens` cuts at a budget,
`messages` at 20. The summariser refuses a request over its window of 10,000 tokens. Tokens are by our estimate.
"""

import argparse
import platform
import random
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from sqlite3 import connect
from typing import Any

from langchain.agents import create_agent
from langchain.agents.middleware import SummarizationMiddleware
from langchain_core.messages import AIMessage, BaseMessage
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph import START, MessagesState, StateGraph
from pydantic import PrivateAttr

from graph.agent import open_agent
from graph.offline import OfflineModel
from graph.settings import Settings
from memory.transcript import search_said
from nodes import prompts
from nodes.context import Context
from nodes.text import text_of
from nodes.tokens import message_tokens
from nodes.toolbox import OWN_TOOLS

BUDGET = 8_000
WINDOW = 10_000
MESSAGES = 20
FIRST = ["Nadia", "Omar", "Ines", "Tariq", "Greta", "Pavel", "Lucia", "Henrik", "Mei", "Yusuf"]
LAST = ["Brandt", "Okafor", "Silva", "Novak", "Haddad", "Lindqvist", "Moreau", "Tanaka", "Petrov", "Castillo"]
SURNAMES, GIVEN = "王李张刘陈杨赵黄周吴", "伟芳娜敏静强磊洋艳勇"
FILLER = [
    "We",
    "talked",
    "about",
    "the",
    "harbour",
    "the",
    "weather",
    "and",
    "the",
    "plans",
    "for",
    "the",
    "week",
    "and",
    "nothing",
    "of",
    "it",
    "matters",
    "much",
]


@dataclass(frozen=True)
class Fact:
    """One planted statement: what is asked for, and the words that must come back."""

    said: str
    query: str
    value: str


def facts(rng: random.Random) -> list[Fact]:
    """Make 100 facts in English and 100 in Chinese; names and values are all different."""
    made = []
    for n, (one, other) in enumerate((a, b) for a in FIRST for b in LAST):
        value = f"{rng.choice('ABCDEFGH')}{rng.choice('KLMNPQ')}-{1000 + 7 * n}"
        made.append(Fact(f"The locker code of {one} {other} is {value}.", f"locker code of {one} {other}", value))
    for n, name in enumerate(a + b for a in SURNAMES for b in GIVEN):
        value = f"HT{20260000 + 13 * n}"
        made.append(Fact(f"{name}的合同编号是{value}，请记住。", f"{name}的合同编号", value))
    rng.shuffle(made)
    return made


def talk(turns: int, planted: Sequence[Fact], rng: random.Random) -> Iterator[tuple[str, Fact | None]]:
    """Yield each turn's question, every few of them with a fact in it."""
    left = list(planted)
    for n in range(turns):
        filler = " ".join(rng.choice(FILLER) for _ in range(40))
        fact = left.pop() if left and len(left) > len(planted) * (turns - n - 1) / turns else None
        yield f"Turn {n}: {f'{fact.said} ' if fact else ''}{filler}", fact


class Model(OfflineModel):
    """Answers shortly; as a summariser it keeps what fits into a few lines, and refuses what its window cannot hold."""

    _chats: list[int] = PrivateAttr(default_factory=list)
    _read: list[str] = PrivateAttr(default_factory=list)
    _refused: list[int] = PrivateAttr(default_factory=list)
    _summarises: Callable[[str], bool] = PrivateAttr()

    def __init__(self, summarises: Callable[[str], bool]) -> None:
        super().__init__()
        self._summarises = summarises

    @property
    def _llm_type(self) -> str:
        return "bench"

    def reply(self, messages: Sequence[BaseMessage], tools: Sequence[str]) -> AIMessage:
        """Answer, or summarise if the request is one for a summary."""
        tokens = sum(map(message_tokens, messages))
        if not self._summarises("\n".join(m.text for m in (messages[0], messages[-1]))):
            self._chats.append(tokens + sum(one.tokens for one in OWN_TOOLS if one.name in tools))
            return AIMessage("Noted; " + " ".join(FILLER))
        if tokens > WINDOW:
            self._refused.append(tokens)
            raise ValueError(f"maximum context length is {WINDOW} tokens, your request has {tokens}")
        text = "\n".join(map(text_of, messages))
        self._read.append(text)
        return AIMessage("## Key context and decisions\n- they go on talking\n## Open items\n- none")


@dataclass
class Measure:
    """What one system did."""

    name: str
    tokens: dict[int, int] = field(default_factory=dict)
    bytes: dict[int, float] = field(default_factory=dict)
    left: int = 0
    reached: int = 0
    calls: int = 0
    refused: int = 0
    failed: int = 0
    found: str = "-"
    seconds: float = 0.0


System = tuple[Callable[[str], object], Callable[[], str], Callable[[], int], Model]
"""How to take a turn; the text of the page; the bytes of the checkpoints; the model."""


def measure(name: str, system: System, turns: int, planted: Sequence[Fact]) -> Measure:
    """Run the talk through a system."""
    take, page, size, model = system
    result, start, before = Measure(name), time.perf_counter(), 0
    marks = [mark for mark in (10, 100, 500, 1000) if mark <= turns]
    for n, (question, _) in enumerate(talk(turns, planted, random.Random(1)), start=1):
        if n + 8 in marks or n == 2:  # the first turn also makes the tables, each tenth trims the last system's
            before = size()
        try:
            take(question)
        except Exception:
            result.failed += 1
        if n in marks:
            result.tokens[n] = model._chats[-1]
            result.bytes[n] = (size() - before) / 9
    on_page, read = page(), "\n".join(model._read)
    gone = [fact for fact in planted if fact.value not in on_page]
    result.left, result.reached = len(gone), sum(fact.value in read for fact in gone)
    result.calls, result.refused = len(model._read), len(model._refused)
    result.seconds = time.perf_counter() - start
    return result


def asked(text: str) -> Any:
    """Write a turn's input."""
    return {"messages": [{"role": "user", "content": text}]}


def sqlite_size(saver: SqliteSaver) -> int:
    """Return the bytes of a file of checkpoints."""
    pages, size = (saver.conn.execute(f"PRAGMA {name}").fetchone()[0] for name in ("page_count", "page_size"))
    return int(pages) * int(size)


CONFIG: Any = {"configurable": {"thread_id": "t"}}


def run_ours(kind: str, home: Path, turns: int, planted: Sequence[Fact]) -> Measure:
    """Run Palimpsest on the files of its home."""
    return run_palimpsest("Palimpsest", kind, Settings(home=home, model="rehearsal"), turns, planted)


def run_postgres(kind: str, home: Path, turns: int, planted: Sequence[Fact], url: str = "") -> Measure:
    """Run Palimpsest on a database; each regime in a thread of its own, as the files of the others are."""
    if not url:
        raise ImportError("no --database-url")
    settings = Settings(home=home, model="rehearsal", database_url=url)
    return run_palimpsest("Palimpsest on Postgres", kind, settings, turns, planted)


def run_palimpsest(name: str, kind: str, settings: Settings, turns: int, planted: Sequence[Fact]) -> Measure:
    """Run Palimpsest, with its search tools mounted and its own embedder; then search for every fact."""
    thread: Any = {"configurable": {"thread_id": kind}}
    model = Model(lambda text: prompts.SUMMARIZE in text)
    limits: Any = {"max_messages": MESSAGES} if kind == "messages" else {"max_messages": 10_000}
    context = Context(
        token_budget=BUDGET, extract="off", memory="tool", tools=("session_search", "tool_result"), **limits
    )
    with open_agent(settings, model=model) as agent:
        saver: Any = agent.checkpointer
        assert agent.store is not None

        def page() -> str:
            return "\n".join(map(text_of, agent.get_state(thread).values["messages"]))

        system: System = (lambda text: agent.invoke(asked(text), thread, context=context), page, saver.size, model)
        result = measure(name, system, turns, planted)
        found = 0
        for fact in planted:
            hits = search_said(agent.store, user="me", query=fact.query, limit=3, thread=kind)
            found += any(fact.said in hit.entry.text for hit in hits)
        result.found = f"{found}/{len(planted)}"
    return result


def run_langchain(kind: str, home: Path, turns: int, planted: Sequence[Fact]) -> Measure:
    """Run LangChain's agent with SummarizationMiddleware as it comes, but for the trigger."""
    model = Model(lambda text: "Context Extraction Assistant" in text)
    trigger: Any = ("messages", MESSAGES) if kind == "messages" else ("tokens", BUDGET)
    keep: Any = ("messages", MESSAGES // 2) if kind == "messages" else ("messages", 20)
    middleware: Any = SummarizationMiddleware(model, trigger=trigger, keep=keep)
    with closing(connect(home / "t.sqlite", check_same_thread=False)) as connection:
        saver = SqliteSaver(connection)
        agent: Any = create_agent(model, [], middleware=[middleware], checkpointer=saver)
        return measure("LangChain middleware", graph_system(agent, saver, model), turns, planted)


def run_langmem(kind: str, home: Path, turns: int, planted: Sequence[Fact]) -> Measure:
    """Run langmem's node before a model, as its documentation shows it; it cuts by tokens alone."""
    from langmem.short_term import RunningSummary, SummarizationNode  # no dependency

    class State(MessagesState):
        context: dict[str, Any]
        summarized_messages: list[Any]

    asks = ("Create a summary of the conversation above", "Extend this summary by taking into account")
    model = Model(lambda text: any(one in text for one in asks))
    budget = BUDGET if kind == "tokens" else 1_500
    node = SummarizationNode(model=model.bind(), max_tokens=budget, max_tokens_before_summary=budget)
    builder: Any = StateGraph(State)
    builder.add_node("summarize", node)
    builder.add_node("chat", lambda state: {"messages": [model.invoke(state["summarized_messages"])]})
    builder.add_edge(START, "summarize")
    builder.add_edge("summarize", "chat")
    with closing(connect(home / "t.sqlite", check_same_thread=False)) as connection:
        saver = SqliteSaver(connection)
        saver.serde = saver.serde.with_msgpack_allowlist([RunningSummary])
        graph = builder.compile(checkpointer=saver)
        take, _, size, _ = graph_system(graph, saver, model)

        def shown() -> str:
            return "\n".join(map(text_of, graph.get_state(CONFIG).values["summarized_messages"]))

        return measure("langmem node", (take, shown, size, model), turns, planted)


def run_resend(kind: str, home: Path, turns: int, planted: Sequence[Fact]) -> Measure:
    """Run a plain graph that sends everything; its checkpoints are trimmed on the way, else they fill the disk."""
    model = Model(lambda text: False)
    builder: Any = StateGraph(MessagesState)
    builder.add_node("chat", lambda state: {"messages": [model.invoke(state["messages"])]})
    builder.add_edge(START, "chat")
    with closing(connect(home / "t.sqlite", check_same_thread=False)) as connection:
        saver = SqliteSaver(connection)
        take, page, size, _ = graph_system(builder.compile(checkpointer=saver), saver, model)

        def trimming(text: str) -> None:
            if len(model._chats) % 10 == 0:
                saver.setup()
                newest = "SELECT max(checkpoint_id) FROM checkpoints"
                for table in ("checkpoints", "writes"):
                    connection.execute(f"DELETE FROM {table} WHERE checkpoint_id < ({newest})")
                connection.commit()
                connection.execute("VACUUM")
            take(text)

        return measure("full resend", (trimming, page, size, model), turns, planted)


def graph_system(graph: Any, saver: SqliteSaver, model: Model) -> System:
    """Wrap a graph over a file of checkpoints."""

    def take(text: str) -> object:
        return graph.invoke(asked(text), CONFIG)

    return (
        take,
        lambda: "\n".join(map(text_of, graph.get_state(CONFIG).values["messages"])),
        lambda: sqlite_size(saver),
        model,
    )


def table(results: Sequence[Measure]) -> str:
    """Write the results as a Markdown table."""
    marks = list(results[0].tokens)
    heads = ["system", *(f"tokens @{m}" for m in marks), *(f"kB/turn @{m}" for m in marks)]
    heads += ["facts read of those gone", "found by search", "summaries", "refused", "turns failed", "s"]
    lines = ["| " + " | ".join(heads) + " |", "|" + " --- |" * len(heads)]
    for one in results:
        cells = [one.name, *(f"{one.tokens[m]:,}" for m in marks), *(f"{one.bytes[m] / 1000:.1f}" for m in marks)]
        cells += [
            f"{one.reached}/{one.left}",
            one.found,
            str(one.calls),
            str(one.refused),
            str(one.failed),
            f"{one.seconds:.0f}",
        ]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def main() -> None:
    """Run each system in each regime and print a table for each."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--turns", type=int, default=1000)
    parser.add_argument("--database-url", default="", help="a Postgres to measure too")
    parser.add_argument(
        "--only", default="", help="part of the names of the systems to run: ours, postgres, langchain, langmem, resend"
    )
    arguments = parser.parse_args()
    planted = facts(random.Random(0))[: max(arguments.turns // 5, 1)]
    print(f"{arguments.turns} turns, {len(planted)} facts; Python {platform.python_version()}; {' '.join(sys.argv)}")
    systems = {
        "ours": run_ours,
        "postgres": partial(run_postgres, url=arguments.database_url),
        "langchain": run_langchain,
        "langmem": run_langmem,
        "resend": run_resend,
    }
    for kind in ("messages", "tokens"):
        results = []
        for name, run in systems.items():
            if arguments.only not in name:
                continue
            with ExitStack() as stack:
                home = Path(stack.enter_context(tempfile.TemporaryDirectory()))
                try:
                    results.append(run(kind, home, arguments.turns, planted))
                except ImportError as error:
                    print(f"left out: {name} ({error}); see the head of this file")
        print(f"\ncut by {kind}: {MESSAGES if kind == 'messages' else f'{BUDGET:,}'}\n{table(results)}", flush=True)


if __name__ == "__main__":
    main()

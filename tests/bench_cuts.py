"""Count what goes wrong in the cuts of others and in ours, over the same 1,000 conversations drawn by hypothesis.

    PYTHONPATH=. python tests/bench_cuts.py
    PYTHONPATH=.:/tmp/langmem python tests/bench_cuts.py --count 200

langmem is no dependency; tests/bench_compaction.py says how to install it beside the project's own environment.
Not a test; run by hand. Each row tells in how many of 1,000 conversations a thing went wrong after so many cuts. What
is `unread` left the page without the summariser having been shown all of it. `raised` ended the conversation: langmem's
node does so where results stand in another order than their calls.
"""

import argparse
import platform
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

from cuts import KINDS, MESSAGES, RAISED, Cutter, Ours, drawn, failures
from langchain.agents.middleware import SummarizationMiddleware
from langchain_core.messages import AIMessage, AnyMessage, BaseMessage
from langchain_core.messages.utils import count_tokens_approximately
from pydantic import PrivateAttr

from graph.offline import OfflineModel
from nodes.state import add_clean_messages

MARKS = (1, 5, 20)
TOKENS = 3_000
"""What langmem's node, which knows tokens alone, keeps: a page of about as many messages as the others'."""


class Reader(OfflineModel):
    """Says the same to every request, and keeps what it was shown."""

    _read: list[str] = PrivateAttr(default_factory=list)

    @property
    def _llm_type(self) -> str:
        return "reader"

    def reply(self, messages: Sequence[BaseMessage], tools: Sequence[str]) -> AIMessage:
        """Keep the request."""
        self._read.append("\n".join(str(message.content) for message in messages))
        return AIMessage("They talked.")


class Theirs:
    """What others' cuts have in common: they run before the model is called."""

    def __init__(self) -> None:
        self.model = Reader()

    def after_turn(self, page: list[AnyMessage]) -> list[AnyMessage]:
        """Leave it."""
        return page

    def read(self) -> str:
        """Return all that the summariser was shown."""
        return "\n".join(self.model._read)


class LangChain(Theirs):
    """SummarizationMiddleware as it comes, but for the trigger and what it keeps."""

    def __init__(self) -> None:
        super().__init__()
        trigger: Any = ("messages", MESSAGES)
        self.middleware: Any = SummarizationMiddleware(self.model, trigger=trigger, keep=("messages", MESSAGES // 2))

    def before_model(self, page: list[AnyMessage]) -> list[AnyMessage]:
        """Run its hook and apply what it returns."""
        update = self.middleware.before_model({"messages": page}, None)
        return add_clean_messages(page, update["messages"]) if update else page


class LangMem(Theirs):
    """SummarizationNode as its documentation shows it; it keeps the whole page and shows the model a shorter one."""

    def __init__(self) -> None:
        super().__init__()
        from langmem.short_term import SummarizationNode  # no dependency

        self.node: Any = SummarizationNode(
            model=self.model.bind(), max_tokens=TOKENS, token_counter=count_tokens_approximately
        )
        self.whole: list[AnyMessage] = []
        self.context: dict[str, Any] = {}

    def before_model(self, page: list[AnyMessage]) -> list[AnyMessage]:
        """Run the node on all that was said; return what the model gets."""
        known = {message.id for message in self.whole}
        self.whole += [message for message in page if message.id not in known and not is_summary(message)]
        update = self.node.invoke({"messages": self.whole, "context": self.context})
        self.context = update.get("context", self.context)
        return list(update["summarized_messages"])


def is_summary(message: AnyMessage) -> bool:
    """Whether the node put this message there."""
    return message.type == "system"


def table(rows: Sequence[tuple[str, dict[int, Counter[str]]]], count: int) -> str:
    """Write the failures per 1,000 conversations as a Markdown table."""
    kinds = (*KINDS, RAISED)
    lines = [f"| cut by | after | {' | '.join(kinds)} |", "|" + " --- |" * (len(kinds) + 2)]
    for name, found in rows:
        for mark, wrong in found.items():
            cells = [f"{wrong[kind] * 1000 / count:.0f}" for kind in kinds]
            lines.append(f"| {name} | {mark} | {' | '.join(cells)} |")
    return "\n".join(lines)


def main() -> None:
    """Run each cutter and print the table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--count", type=int, default=1_000)
    count = parser.parse_args().count
    pool = drawn(400)
    rows = []
    cutters: list[tuple[str, Callable[[], Cutter]]] = [
        ("Palimpsest", Ours), ("LangChain middleware", LangChain), ("langmem node", LangMem)
    ]  # fmt: skip
    for name, make in cutters:
        try:
            rows.append((name, failures(make, pool, count=count, marks=MARKS)))
        except ImportError as error:
            print(f"left out: {name} ({error}); see the head of this file")
    print(
        f"{count} conversations of {len(pool)} drawn turns; Python {platform.python_version()}\n\n{table(rows, count)}"
    )


if __name__ == "__main__":
    main()

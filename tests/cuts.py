"""Long conversations that are cut again and again, and what can go wrong in a cut: for tests, and for others' cuts.

The turns are drawn by hypothesis (tests/histories.py), the same for whoever cuts; a mark at the end of each text tells
whether the text is still there, or was read.
"""

import random
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from histories import turns
from hypothesis import HealthCheck, Phase, given, seed, settings
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, ToolMessage
from langgraph.graph import END, START, StateGraph
from langgraph.store.memory import InMemoryStore
from talking import Talking, filed

from graph.agent import next_step, node
from nodes.context import Context
from nodes.remember import remember
from nodes.state import State
from nodes.summarize import summarize
from nodes.text import last_human

MESSAGES = 12
"""Messages on the page above which it is cut to half."""

KINDS = ("result without its call", "call without its result", "newest question gone", "what stays changed", "unread")
RAISED = "raised"
"""The cut itself ended in an error, and the conversation with it."""


class Cutter(Protocol):
    """What cuts a page: before each call of the model, or when the turn is over."""

    def before_model(self, page: list[AnyMessage]) -> list[AnyMessage]:
        """Return the page as the model gets it."""

    def after_turn(self, page: list[AnyMessage]) -> list[AnyMessage]:
        """Return the page as the next turn finds it."""

    def read(self) -> str:
        """Return all that a summariser was shown."""


def drawn(count: int) -> list[list[AnyMessage]]:
    """Draw turns, always the same ones, each ended by an answer."""
    found: list[list[AnyMessage]] = []

    @seed(0)
    @settings(
        max_examples=count, database=None, deadline=None, phases=[Phase.generate],
        suppress_health_check=[*HealthCheck],
    )  # fmt: skip
    @given(turns(most=3, finished=True))
    def draw(history: list[AnyMessage]) -> None:
        starts = [n for n, message in enumerate(history) if isinstance(message, HumanMessage)]
        found.extend(history[start:end] for start, end in zip(starts, [*starts[1:], len(history)], strict=True))

    draw()
    return found


def conversation(pool: Sequence[list[AnyMessage]], rng: random.Random) -> Iterator[list[AnyMessage]]:
    """Yield turns without end, each message with an id and a mark of its own."""
    n = 0
    while True:
        prefix, turn = f"{n}-", []
        for message in rng.choice(pool):
            n += 1
            turn.append(marked(message, prefix, f" mark-{n}."))
        yield turn


def marked(message: AnyMessage, prefix: str, mark: str) -> AnyMessage:
    """Give a message, its calls and what it answers ids of their own, and its text a mark."""
    content = message.content
    if isinstance(content, str):
        said: Any = content + mark if content or not isinstance(message, AIMessage) else content
    else:
        said = [{**block, "text": block["text"] + mark} if "text" in block else block for block in content]  # type: ignore[operator]
    update: dict[str, Any] = {"id": f"{prefix}{message.id}", "content": said}
    if isinstance(message, AIMessage):
        update["tool_calls"] = [{**call, "id": f"{prefix}{call['id']}"} for call in message.tool_calls]
    if isinstance(message, ToolMessage):
        update["tool_call_id"] = f"{prefix}{message.tool_call_id}"
    return message.model_copy(update=update)


def mark_of(message: AnyMessage) -> str:
    """Return the mark of a message, empty if it says nothing."""
    _, found, rest = str(message.content).rpartition("mark-")
    return f"{found}{rest.partition('.')[0]}." if found else ""


@dataclass
class Course:
    """One conversation under way: what is on the page, what was said, and what went wrong so far."""

    cutter: Cutter
    page: list[AnyMessage] = field(default_factory=list)
    said: list[AnyMessage] = field(default_factory=list)
    cuts: int = 0
    wrong: set[str] = field(default_factory=set)

    def take(self, turn: Sequence[AnyMessage]) -> None:
        """Walk one turn as an agent does."""
        for message in turn:
            if isinstance(message, AIMessage):
                self.cut(self.cutter.before_model(list(self.page)))
            self.page.append(message)
            self.said.append(message)
        self.cut(self.cutter.after_turn(list(self.page)))

    def cut(self, after: list[AnyMessage]) -> None:
        """Judge a page that a cutter gave back."""
        before, known = self.page, {message.id for message in self.said}
        kept = [message for message in after if message.id in known]
        gone = {message.id for message in before} - {message.id for message in kept}
        self.page = after
        if not gone & known:
            return
        self.cuts += 1
        called = {call["id"] for message in kept if isinstance(message, AIMessage) for call in message.tool_calls}
        answered = {message.tool_call_id for message in self.said if isinstance(message, ToolMessage)}
        results = {message.tool_call_id for message in kept if isinstance(message, ToolMessage)}
        left = [message for message in before if message.id in gone & known]
        read = self.cutter.read()
        checks = (
            results - called,
            (called & answered) - results,
            self.said[last_human(self.said)].id not in {message.id for message in kept},
            kept != before[len(before) - len(kept) :],
            any(mark not in read for mark in map(mark_of, left)),
        )
        self.wrong |= {kind for kind, is_wrong in zip(KINDS, checks, strict=True) if is_wrong}


def failures(
    make: Any, pool: Sequence[list[AnyMessage]], *, count: int, marks: Sequence[int]
) -> dict[int, Counter[str]]:
    """Return, after so many cuts each, in how many of `count` conversations each thing went wrong."""
    found = {mark: Counter[str]() for mark in marks}
    for n in range(count):
        course, rng = Course(make()), random.Random(n)
        talk, left = conversation(pool, rng), list(marks)
        while left:
            try:
                course.take(next(talk))
            except Exception:
                if isinstance(course.cutter, Ours):
                    raise
                for mark in left:
                    found[mark].update({*course.wrong, RAISED})
                break
            while left and course.cuts >= left[0]:
                found[left.pop(0)].update(course.wrong)
            if len(course.said) > MOST_SAID:
                raise RuntimeError(f"only {course.cuts} cuts in {len(course.said)} messages")
    return found


MOST_SAID = 5_000


class Ours:
    """Our two nodes after an answer, remember and summarize, as the graph runs them."""

    def __init__(self) -> None:
        self.model, self.store, self.summary = Talking(), InMemoryStore(), ""
        builder: Any = StateGraph(State, context_schema=Context)
        builder.add_node("remember", node(remember, lambda name: self.model))
        builder.add_node("summarize", node(summarize, lambda name: self.model))
        builder.add_edge(START, "remember")
        builder.add_conditional_edges("remember", next_step, {"page too long": "summarize", "page fits": END})
        self.graph = builder.compile(store=self.store)

    def before_model(self, page: list[AnyMessage]) -> list[AnyMessage]:
        """Leave it: in a turn it is cut for the budget alone."""
        return page

    def after_turn(self, page: list[AnyMessage]) -> list[AnyMessage]:
        """File the page and cut it."""
        given: Any = {"messages": page, "summary": self.summary, "stop_reason": "answered", "steps": []}
        values = self.graph.invoke(given, context=Context(max_messages=MESSAGES, extract="off"))
        self.summary = values.get("summary", "")
        return list(values["messages"])

    def read(self) -> str:
        """Return all that the summariser was shown."""
        return "\n".join(self.model.asked("summary"))

    def lost(self, course: Course) -> list[str]:
        """Return the marks of what is neither on the page nor in the transcript."""
        kept = "\n".join(text for texts in filed(self.store, thread="no thread").values() for text in texts)
        kept += str([message.content for message in course.page])
        return [mark for mark in map(mark_of, course.said) if mark not in kept]


class LastOnes(Ours):
    """The naive cut: the newest messages, whatever they are; nothing is read."""

    def before_model(self, page: list[AnyMessage]) -> list[AnyMessage]:
        """Keep the newest half."""
        return page[-MESSAGES // 2 :] if len(page) > MESSAGES else page

    def after_turn(self, page: list[AnyMessage]) -> list[AnyMessage]:
        """Leave it."""
        return page

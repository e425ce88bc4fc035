"""A model for long conversations: it answers from a script and does its housekeeping by functions."""

import json
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage
from langgraph.store.base import BaseStore
from pydantic import PrivateAttr
from stores import hash_embedder

from graph.agent import CHECKPOINTS, Agent, build_agent, compiled
from graph.scripted import ScriptedModel, Step, message_of
from graph.sqlite import open_saver
from memory.store import open_store
from memory.transcript import Transcript
from nodes import prompts
from nodes.summary import ENGLISH
from nodes.tokens import text_tokens

KINDS = {"summary": prompts.SUMMARIZE, "extract": prompts.EXTRACT, "abstract": prompts.ABSTRACT}
Reflex = Callable[[str], Any]
"""From the request's last message to what to answer."""

NOTHING = '{"memories": [], "facts": []}'


def summary_of(*lines: str) -> str:
    """Write a summary with lines under its second heading."""
    return "\n".join([*ENGLISH[:2], *(f"- {line}" for line in lines), *ENGLISH[2:]])


def carry_on(request: str) -> str:
    """Summarise as a plain model would: the previous context lines, and one that counts the new messages."""
    previous, *new = request.split("\n")
    lines = [line for line in json.loads(previous)["previous_summary"].split("\n") if line.startswith("- ")]
    return summary_of(*(line[2:] for line in lines), f"{len(new)} more messages")


class Talking(ScriptedModel):
    """Says what its script says, `then` the same again and again; housekeeping goes to the reflexes.

    `asked` holds each request's kind and full text. `window` is the most tokens that a housekeeping request may have.
    """

    _reflexes: dict[str, Reflex] = PrivateAttr()
    _asked: list[tuple[str, str]] = PrivateAttr(default_factory=list)
    _then: Step | None = PrivateAttr()
    _window: int = PrivateAttr()

    def __init__(
        self, steps: Sequence[Step] = (), *, then: Step | None = None, window: int = 10**9, **reflexes: Reflex
    ) -> None:
        super().__init__(steps)
        defaults: dict[str, Reflex] = {
            "summary": carry_on,
            "extract": lambda request: NOTHING,
            "abstract": lambda request: "A talk about this and that.",
        }
        self._reflexes = defaults | reflexes
        self._then, self._window = then, window

    def asked(self, kind: str) -> list[str]:
        """Return the texts of the requests of one kind: chat, summary, extract, abstract."""
        return [text for one, text in self._asked if one == kind]

    def reply(self, messages: Sequence[BaseMessage], tools: Sequence[str]) -> AIMessage:
        """Take the next step of the script, or answer by the reflex of the request's kind."""
        kind = next((name for name, prompt in KINDS.items() if messages[0].text == prompt), "chat")
        with self._lock:
            self._asked.append((kind, "\n".join(message.text for message in messages)))
            again = kind == "chat" and not self._steps and self._then is not None
            if again:
                self._calls.append((list(messages), list(tools)))
        if again and self._then is not None:
            return message_of(self._then, list(messages), list(tools), call=len(self._asked))
        if kind == "chat":
            return super().reply(messages, tools)
        if (tokens := sum(text_tokens(message.text) for message in messages)) > self._window:
            raise ValueError(f"this model's maximum context length is {self._window} tokens, your request has {tokens}")
        step = self._reflexes[kind](messages[-1].text)
        return message_of(step, list(messages), list(tools), call=len(self._asked))


@contextmanager
def opened(home: Path, model: ScriptedModel, *, wait_s: float = 60, tools: Sequence[Any] = ()) -> Iterator[Agent]:
    """Open the agent on Chroma and SQLite as `open_agent` does, with a hash for an embedder, which is quick."""
    home.mkdir(exist_ok=True)
    opened_saver = open_saver(home / CHECKPOINTS, wait_s=wait_s)
    with opened_saver as saver, open_store(home, embedder=hash_embedder()) as store, model:
        yield compiled(build_agent(model=model, tools=tools), saver, store)


def filed(store: BaseStore | None, *, user: str = "me", thread: str = "t") -> dict[str, list[str]]:
    """Return the texts that the transcript holds, by the id of their message."""
    assert store is not None
    texts: dict[str, list[str]] = {}
    for entry in Transcript(store, user=user, thread=thread).entries():
        texts.setdefault(entry.id, []).append(entry.text)
    return texts


def ids_in(request: str) -> list[str]:
    """Return the ids of the messages that a housekeeping request shows, in order."""
    return list(dict.fromkeys(re.findall(r'^\{"id": "([^"]+)"', request, re.MULTILINE)))

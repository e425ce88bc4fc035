"""A chat of its own process: `python chat_child.py HOME STEPS [THREAD]`, with a scripted model and tools of its own."""

import asyncio
import json
import sys
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

from langchain_core.outputs import ChatGenerationChunk
from talking import Talking, opened

from graph.chat import converse
from graph.cli import told
from graph.keyboard import Keyboard, history_file
from graph.screen import screen_for
from graph.session import Session
from nodes.context import Context
from nodes.contract import marked


class Typing(Talking):
    """Stops for a moment after each word, for ever after the word STALL."""

    async def _astream(self, *given: Any, **more: Any) -> AsyncIterator[ChatGenerationChunk]:
        for chunk in self._stream(*given, **more):
            yield chunk
            await asyncio.sleep(600 if "STALL" in str(chunk.message.content) else 0.002)


@marked(approval=True)
def send(to: str, amount: int = 1) -> str:
    """Send money.

    Args:
        to: who gets it
        amount: how much
    """
    with Path("sent").open("a", encoding="utf-8") as file:
        file.write(f"{amount} to {to}\n")
    return f"sent {amount} to {to}"


def sleep() -> str:
    """Never come back in time."""
    time.sleep(600)
    return "slept"


def main(home: str, steps: str, thread: str | None = None, *flags: str) -> int:
    """Talk."""
    for stream in (sys.stdin, sys.stdout, sys.stderr):
        stream.reconfigure(errors="replace")  # as graph/cli.py does
    model = Typing(json.loads(steps), then="Yes.", abstract=lambda request: "They talked.")
    with opened(Path(home), model, tools=[send, sleep]) as agent:
        keyboard = Keyboard(history_file(Path(home), "me"))
        session = Session(agent, context=Context(), keyboard=keyboard, screen=screen_for(as_json="--json" in flags))
        return converse(session, thread)


if __name__ == "__main__":
    try:
        sys.exit(main(*sys.argv[1:]))
    except KeyboardInterrupt:
        sys.exit(told("interrupted", code=130))  # as graph/cli.py does

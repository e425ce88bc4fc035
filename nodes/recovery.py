"""Results that were stored when their run stopped, and that a new message would leave behind.

A call that is done is stored at once, beside the checkpoint. An answer to a pause or `invoke(None)` takes it up from
there; where the user goes on with a new message, LangGraph forgets it, and the model would be told that there is none.
"""

import asyncio
from collections.abc import Sequence
from typing import Any

from langchain_core.messages import AIMessage, AnyMessage, BaseMessage, ToolMessage
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import BaseCheckpointSaver, CheckpointTuple
from langgraph.config import get_config

from nodes.context import thread_of
from nodes.pairs import results_of
from nodes.text import calls_of

SAVER = "__pregel_checkpointer"
"""Where LangGraph keeps a run's saver in the config of its nodes; it has no public name."""

MOST_LOOKED_AT = 20
"""Checkpoints of the thread, the newest first."""


def left_behind(messages: Sequence[AnyMessage]) -> list[AnyMessage]:
    """Return the stored results of the newest answer whose calls have none in the list."""
    answer, config = unanswered(messages), get_config()["configurable"]
    saver = config.get(SAVER)
    if answer is None or not isinstance(saver, BaseCheckpointSaver):
        return []
    place = {"thread_id": thread_of(), "checkpoint_ns": str(config.get("checkpoint_ns", "")).rpartition("|")[0]}
    for kept in checkpoints(saver, {"configurable": place}):
        page = kept.checkpoint["channel_values"].get("messages")
        if page and page[-1].id == answer.id:
            written = [value for _, channel, value in kept.pending_writes or () if channel == "messages"]
            if found := [one for value in written for one in value if isinstance(one, ToolMessage)]:
                return list(found)
    return []


def checkpoints(saver: BaseCheckpointSaver[Any], place: RunnableConfig) -> list[CheckpointTuple]:
    """Return the newest checkpoints of a thread, from a saver that can be asked in one way alone too, as a server's."""

    async def awaited() -> list[CheckpointTuple]:
        return [kept async for kept in saver.alist(place, limit=MOST_LOOKED_AT)]

    try:
        return list(saver.list(place, limit=MOST_LOOKED_AT))
    except NotImplementedError:
        return asyncio.run(awaited())  # this is no thread with a loop of its own


def unanswered(messages: Sequence[BaseMessage]) -> BaseMessage | None:
    """Return the newest answer if one of its calls has no result."""
    n = max((n for n, message in enumerate(messages) if isinstance(message, AIMessage)), default=-1)
    calls, results = calls_of(messages[n]) if n >= 0 else [], results_of(messages)
    return messages[n] if any((n, position) not in results for position in range(len(calls))) else None

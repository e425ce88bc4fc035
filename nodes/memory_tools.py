"""The tools by which the model reads and writes long-term memory. Whose it is comes from the run, never an argument."""

from typing import Annotated, Any

from langchain_core.tools import tool
from langgraph.prebuilt import ToolRuntime
from langgraph.store.base import BaseStore
from pydantic import Field

from memory.memories import Memories, Source
from nodes.context import Context, thread_of, user_of
from nodes.contract import marked
from nodes.failures import ToolProblem
from nodes.quoting import as_json
from nodes.text import last_human

ANYTHING = 0.1
"""When the model asks by itself, more is shown than would be brought up unasked; it sees the scores."""

Runtime = ToolRuntime[Context, Any]


@tool
def recall(
    query: Annotated[str, Field(min_length=1, max_length=2000, description="What to look for, in the user's words.")],
    runtime: Runtime,
    k: Annotated[int, Field(ge=1, le=20, description="How many memories at most.")] = 3,
) -> str:
    """Search this user's long-term memory. Use it when the answer may depend on what the user said in earlier conversations and the recalled memories above do not settle it."""
    memories = memories_of(runtime)
    try:
        found = memories.search(query, limit=k, threshold=ANYTHING)
    except Exception as error:
        raise ToolProblem(
            f"the search in long-term memory failed ({type(error).__name__}); this does not mean that nothing is there"
        ) from error
    hits = [{"id": m.id, "date": m.at[:10], "text": m.text, "score": m.score and round(m.score, 3)} for m in found]
    return as_json({"found": len(hits), "memories": hits})


@tool
def memory_save(
    text: Annotated[
        str,
        Field(
            min_length=1,
            max_length=2000,
            description="One statement that stands alone, in the user's language, with absolute dates.",
        ),
    ],
    runtime: Runtime,
) -> str:
    """Keep one lasting statement about the user for later conversations. Use it when the user states a preference, a plan, a name, a limit, or asks you to remember something; not for guesses or for what a document says."""
    memory, is_new = memories_of(runtime).save(text, sources=[source_of(runtime)])
    return as_json({"saved": "new" if is_new else "already stored", "id": memory.id, "text": memory.text})


MEMORY_TOOLS = (recall, marked(writes=("text",))(memory_save))
"""Those that keep a text are marked so, which puts them behind the gate of nodes/keeping.py."""


def store_of(runtime: Runtime) -> BaseStore:
    """Return the run's store."""
    if runtime.store is None:
        raise ToolProblem("this agent was built without a store, so it keeps nothing")
    return runtime.store


def memories_of(runtime: Runtime) -> Memories:
    """Return the memories of the run's user."""
    return Memories(store_of(runtime), user=user_of(runtime))


def source_of(runtime: Runtime) -> Source:
    """Name the user message that a memory comes from."""
    messages = runtime.state["messages"]
    newest = last_human(messages)
    return Source(thread=thread_of(), message=str(messages[newest].id) if newest >= 0 else "none")

"""The tools by which the model reads and writes long-term memory. Whose it is comes from the run, never an argument."""

from typing import Annotated, Any

from langchain_core.messages import HumanMessage, ToolMessage
from langchain_core.tools import tool
from langgraph.prebuilt import ToolRuntime
from langgraph.store.base import BaseStore
from pydantic import Field

from memory.facts import Fact, How
from memory.memories import Memories, Memory, Source
from memory.sameness import wording
from memory.transcript import Transcript
from nodes import kinds
from nodes.context import Context, context_of, local, thread_of, user_of
from nodes.contract import marked
from nodes.dates import absolute
from nodes.failures import ToolProblem
from nodes.forgetting import is_meant, wish_of
from nodes.grounds import LEAST_SHARE, words_of
from nodes.quoting import as_json
from nodes.team_tools import shared_by_id, with_shared
from nodes.text import text_of

ANYTHING = 0.1
"""When the model asks by itself, more is shown than would be brought up unasked; it sees the scores."""

NOTHING_FOUND = "The search worked; nothing that is kept fits."
SEARCH_FAILED = "the search in long-term memory failed ({error}); this does not mean that nothing is there"
NO_SUCH_MEMORY = "there is no memory with the id {id!r}; use an id that recall or the recalled memories show"
NOT_REPLACED = "there is no memory with the id {id!r}, so it replaced nothing"
NOT_MEANT = (
    "the user asked to forget something, but not visibly this: {text!r}. Ask them whether to forget that, and wait"
)
TRANSCRIPT_KEEPS = "It is no longer remembered. The conversation in which it was said keeps its words."
GONE = "the conversation was deleted"
Runtime = ToolRuntime[Context, Any]
Id = Annotated[str, Field(min_length=1, max_length=100, description="As recall shows it.")]


@tool
def recall(
    query: Annotated[str, Field(min_length=1, max_length=2000, description="What to look for, in the user's words.")],
    runtime: Runtime,
    k: Annotated[int, Field(ge=1, le=20, description="How many memories at most.")] = 3,
    as_of: Annotated[str, Field(max_length=40, description="A date: what held then.")] = "",
) -> str:
    """Search this user's long-term memory. Call it when the answer depends on earlier conversations and the memories above do not settle it, when the user refers back ("as we agreed", "上次"), and before you say that you do not know something about them; for several things in several calls at once. Not for general knowledge or what stands on this page."""
    memories, when = memories_of(runtime), as_of.strip() or None
    try:
        options: dict[str, Any] = {"limit": k, "threshold": ANYTHING, "when": when}
        found = with_shared(memories.search(query, **options), runtime, query, **options)
        facts = kinds.facts_of(runtime).all(when=when) if when else []
    except ValueError as error:
        raise ToolProblem(str(error)) from error
    except Exception as error:
        raise ToolProblem(SEARCH_FAILED.format(error=type(error).__name__)) from error
    answer: dict[str, Any] = {"found": len(found), "memories": [shown(*one) for one in found]}
    if when:
        answer["facts"] = [{"key": fact.key, "value": fact.value, "since": fact.since[:10]} for fact in facts]
    return as_json(answer if found or facts else {**answer, "note": NOTHING_FOUND})


@tool
def memory_save(
    text: Annotated[
        str,
        Field(
            min_length=1,
            max_length=2000,
            description="One statement that stands alone, in the user's language, absolute dates.",
        ),
    ],
    runtime: Runtime,
    about: Annotated[str, Field(max_length=200, description="Its subject, in a word or two.")] = "",
    replaces: Annotated[str, Field(max_length=100, description="Id of a shown memory that this makes untrue.")] = "",
) -> str:
    """Keep one lasting statement about the user for later conversations. Use it when the user states a preference, a plan, a name, a limit, or asks you to remember something; not for guesses or for what a document says."""
    memories = memories_of(runtime)
    dated = absolute(text, local(kinds.present(runtime), context_of(runtime)))
    try:
        memory, is_new = memories.save(dated, sources=[source_of(runtime, text)], about=about, replaces=replaces)
    except ValueError as error:
        raise ToolProblem(str(error)) from error
    is_merged = wording(dated) in map(wording, memory.variants)
    saved = "new" if is_new else "merged with what says the same" if is_merged else "already stored"
    answer = {"saved": saved, "id": memory.id, "text": memory.text}
    if replaces and (old := memories.get(replaces)) and old.superseded_by == memory.id:
        answer["replaced"] = old.text
    elif replaces:
        answer["note"] = NOT_REPLACED.format(id=replaces)
    return as_json(answer)


@tool
def memory_get(id: Id, runtime: Runtime) -> str:
    """Read one memory in full: when it held, what it replaced, and the messages that it comes from, word for word."""
    memories = memories_of(runtime)
    if memories.get(id.strip()) is None and (shared := shared_by_id(id.strip(), runtime)):
        return as_json(shown(*shared))
    memory = known(id, memories)
    history = [one for one in memories.all(past=True) if one.superseded_by == memory.id]
    facts = {"holds": memory.until is None, "since": memory.at, "until": memory.until, "seen": memory.seen}
    return as_json(
        {
            **shown(memory, memory.origin),
            **facts,
            "superseded_by": memory.superseded_by or None,
            "held_before": memory.past,
            "other_wordings": memory.variants,
            "replaced": [{**shown(one), "since": one.at, "until": one.until} for one in history],
            "sources": [row for source in memory.sources for row in said(source, runtime)],
        }
    )


@tool
def memory_forget(id: Id, runtime: Runtime) -> str:
    """Forget one memory for good. Only when the user's newest message asks for it; to correct one, use memory_save with `replaces`."""
    memories, wish = memories_of(runtime), wish_of(runtime.state["messages"])
    memory = known(id, memories)
    if wish and not is_meant(memory, wish, memories):
        raise ToolProblem(NOT_MEANT.format(text=memory.text))
    memories.forget(memory.id)
    return as_json({"forgotten": memory.id, "note": TRANSCRIPT_KEEPS})


@tool
def fact_set(
    key: Annotated[str, Field(min_length=1, max_length=100, description="Such as allergy or 过敏.")],
    value: Annotated[str, Field(min_length=1, max_length=500, description="One short value, in the user's words.")],
    runtime: Runtime,
    how: Annotated[How, Field(description="It holds now, instead of others; also, beside them; no longer.")] = "now",
) -> str:
    """Set what must never blur about the user and always stands above. Use it when the user states, changes or ends an allergy, a limit, a name, a setting."""
    source = source_of(runtime)
    store_of(runtime)
    try:
        holding = kinds.facts_of(runtime).set(key, value, how, thread=source.thread, message=source.message)
    except ValueError as error:
        raise ToolProblem(str(error)) from error
    return as_json({"saved": key, "holds_now": [since(fact) for fact in holding]})


MEMORY_TOOLS = (
    recall,
    marked(writes=("text", "about"))(memory_save),
    memory_get,
    marked(forgets=True)(memory_forget),
    marked(writes=("value",), names=("key",))(fact_set),
)
"""Those that keep a text, or forget, are marked so, which puts them behind the gates of nodes/keeping.py."""


def shown(memory: Memory, origin: str = "") -> dict[str, Any]:
    """Write a memory for the model, with whom or what it is from if that is not its user."""
    row: dict[str, Any] = {"id": memory.id, "date": memory.at[:10], **({"from": origin} if origin else {})}
    row["text"] = memory.text
    row |= {"about": memory.about} if memory.about else {}
    return row | ({} if memory.score is None else {"score": round(memory.score, 3)})


def since(fact: Fact) -> dict[str, str]:
    """Write a value that holds."""
    return {"value": fact.value, "since": fact.since[:10]}


def known(id: str, memories: Memories) -> Memory:
    """Return the user's memory with this id. Raises ToolProblem; another user's id is as unknown as one made up."""
    memory = memories.get(id.strip())
    if memory is None:
        raise ToolProblem(NO_SUCH_MEMORY.format(id=id))
    return memory


def said(source: Source, runtime: Runtime) -> list[dict[str, Any]]:
    """Return the message of a source word for word, from the transcript or, in this turn, from the page."""
    place = {"thread": source.thread, "message": source.message}
    entries = Transcript(store_of(runtime), user=user_of(runtime), thread=source.thread).entries()
    if source.thread == thread_of():
        entries += [
            kinds.entry_of(one, kinds.present(runtime))
            for one in runtime.state["messages"]
            if str(one.id) == source.message
        ]
    rows = {
        entry.text: {**place, "time": entry.at[:19], "text": entry.text}
        for entry in reversed(entries)
        if entry.id == source.message
    }
    return [*reversed(rows.values())] or [{**place, "text": None, "note": GONE}]


def store_of(runtime: Runtime) -> BaseStore:
    """Return the run's store."""
    if runtime.store is None:
        raise ToolProblem("this agent was built without a store, so it keeps nothing")
    return runtime.store


def memories_of(runtime: Runtime) -> Memories:
    """Return the memories of the run's user."""
    store_of(runtime)
    return kinds.memories_of(runtime)


def source_of(runtime: Runtime, text: str = "") -> Source:
    """Name the message that a text comes from: the user's that shares most words with it, or the newest; if most of
    it is from none of them, the result of a tool that shares most.
    """
    words, messages = set(words_of(text)), runtime.state["messages"]
    shared = [(len(words & set(words_of(text_of(one)))), n) for n, one in enumerate(messages)]
    best = max((pair for pair in shared if isinstance(messages[pair[1]], HumanMessage)), default=(0, -1))
    others = max((pair for pair in shared if isinstance(messages[pair[1]], ToolMessage)), default=(0, -1))
    if best[0] < LEAST_SHARE * len(words) and others[0] > best[0]:
        source = messages[others[1]]
        return Source(thread=thread_of(), message=str(source.id), by=f"tool {source.name}")
    return Source(thread=thread_of(), message=str(messages[best[1]].id) if best[1] >= 0 else "none")

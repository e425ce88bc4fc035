"""Passages of documents in a turn: looked up, numbered through the turn, and those of them that an answer cites."""

import json
import re
from collections.abc import Mapping
from typing import Annotated, Any

from langchain_core.messages import AIMessage, ToolMessage
from langchain_core.tools import tool
from langgraph.store.base import BaseStore
from pydantic import Field

from memory.documents import Found, has_documents, search_documents
from nodes.context import context_of, user_of
from nodes.failures import ToolProblem
from nodes.memory_tools import Runtime, store_of
from nodes.prompts import told_passage
from nodes.quoting import as_json
from nodes.text import last_human, text_of
from nodes.trace import CitedPassage, RecalledPassage

NAME = "search_documents"
DEFAULT_K, MOST_K = 3, 10
NOT_IN_DOCUMENTS = "Nothing in the documents fits. Search again in other words, or say that the documents do not tell."
NO_DOCUMENTS = "This user has no documents."
CITES = re.compile(r"[\[【]((?:\d{1,4}(?!\d)[,，、;\s]*)+)[\]】]")


@tool(NAME)
def search_in_documents(
    query: Annotated[
        str, Field(min_length=1, max_length=2000, description="What to look for, in the words of the documents.")
    ],
    runtime: Runtime,
    k: Annotated[int, Field(ge=1, le=MOST_K, description="How many passages at most.")] = DEFAULT_K,
) -> str:
    """Search the documents that the user has added: handbooks, papers, tables, notes. Use it for what may be written there and the passages above do not settle. Cite what you use by its number, like [1]."""
    store, context, user = store_of(runtime), context_of(runtime), user_of(runtime)
    first = number_of(runtime.state, runtime.tool_call_id or "")
    try:
        found = search_documents(store, user=user, query=query, limit=k, collections=context.collections)
        known = bool(found) or has_documents(store, user=user, collections=context.collections)
    except Exception as error:
        raise ToolProblem(
            f"the search in the documents failed ({type(error).__name__}); this does not mean that nothing is there"
        ) from error
    passages = [told_passage(numbered(n, one)) for n, one in enumerate(found, first)]
    note = {} if found else {"note": NOT_IN_DOCUMENTS if known else NO_DOCUMENTS}
    return as_json({"found": len(found), "passages": passages, **note})


def passages_on(question: str, store: BaseStore, runtime: Any) -> list[RecalledPassage] | None:
    """Look up what the documents say on a question, numbered from 1; None if the user has none."""
    user, context = user_of(runtime), context_of(runtime)
    found = search_documents(
        store, user=user, query=question, limit=context.passages_k, collections=context.collections
    )
    if not found and not has_documents(store, user=user, collections=context.collections):
        return None
    return [numbered(n, one) for n, one in enumerate(found, 1)]


def numbered(number: int, found: Found) -> RecalledPassage:
    """Write a passage as the state keeps it."""
    return RecalledPassage(
        number=number,
        source=found.file.name,
        heading=" › ".join(found.passage.heading),
        position=found.passage.position,
        score=found.score and round(found.score, 3),
        text=found.passage.shown,
    )


def number_of(state: Mapping[str, Any], call: str) -> int:
    """Return the first number of a search's passages: after those in the prompt and those of the searches before it."""
    number = 1 + len((state.get("recalled") or {}).get("passages", []))
    turn = state["messages"][last_human(state["messages"]) + 1 :]
    for made in (one for message in turn if isinstance(message, AIMessage) for one in message.tool_calls):
        if made["id"] == call:
            break
        if made["name"] == NAME:
            k = made["args"].get("k", DEFAULT_K)
            number += k if isinstance(k, int) and 0 < k <= MOST_K else MOST_K
    return number


def cited(answer: str, state: Mapping[str, Any]) -> list[CitedPassage]:
    """Return the passages that an answer names by their numbers, of those that the model had before it in this turn."""
    known = {one["number"]: one for one in (state.get("recalled") or {}).get("passages", [])}
    for message in state["messages"][last_human(state["messages"]) + 1 :]:
        if isinstance(message, ToolMessage) and message.name == NAME:
            known |= {one["number"]: one for one in read_back(text_of(message))}
    numbers = [int(number) for marks in CITES.findall(answer) for number in re.findall(r"\d+", marks)]
    return [place_of(known[number]) for number in dict.fromkeys(numbers) if number in known]


def place_of(passage: Any) -> CitedPassage:
    """Return a passage's number and place, without its text."""
    return CitedPassage(
        number=passage["number"],
        source=passage["source"],
        heading=passage["heading"],
        position=passage["position"],
        score=passage["score"],
    )


def read_back(result: str) -> list[Any]:
    """Read the passages out of a result; of one that was cut there are none."""
    try:
        passages = json.loads(result).get("passages", [])
        return [{**one, "number": int(one["cite"].strip("[]"))} for one in passages]
    except (ValueError, AttributeError, KeyError, TypeError):
        return []

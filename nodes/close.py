"""The end of a conversation: a dated abstract of it goes into the catalogue, where later threads can recall it."""

from collections.abc import Generator

from langchain_core.messages import HumanMessage, SystemMessage
from langgraph.runtime import Runtime

from memory.catalogue import Catalogue
from nodes import prompts
from nodes.calls import Failure, Reply, Request
from nodes.context import Context, context_of, thread_of, user_of
from nodes.cut import window_of
from nodes.lines import lines_of, newest_lines
from nodes.quoting import as_json
from nodes.state import State
from nodes.summary import is_failure, read_text, summary_of
from nodes.text import text_of
from nodes.trace import RememberDetail

MOST_CHARS = 1_000


def close(state: State, runtime: Runtime[Context]) -> Generator[Request, Reply, RememberDetail]:
    """Write the abstract from the running summary and what is still on the page; return what to tell of it.

    Nothing is done for a thread in which nothing was said since it was closed, or ever. If the model fails, the thread
    stays open, and the next sweep tries again.
    """
    assert runtime.store is not None
    context, catalogue = context_of(runtime), Catalogue(runtime.store, user=user_of(runtime))
    known = catalogue.get(thread_of())
    if known is None or not known.is_open:
        return {"closed": False, "why": "nothing was said since"}
    window = window_of(state, context)
    page = newest_lines(lines_of(state["messages"], longest=window // 4), window)
    text = "\n".join([as_json({"previous_summary": summary_of(state)}), *page])
    messages = [SystemMessage(prompts.ABSTRACT), HumanMessage(text)]
    reply = yield Request(model=context.model, messages=messages, stream=False, quiet=True)
    abstract = "" if isinstance(reply, Failure) else read_text(text_of(reply))[:MOST_CHARS]
    if not abstract or is_failure(abstract):
        return {"closed": False, "why": reply.reason if isinstance(reply, Failure) else "the answer holds no abstract"}
    catalogue.close(thread_of(), abstract)
    return {"closed": True, "abstract": abstract}


def is_closing(state: State) -> bool:
    """Whether the caller ended the conversation, and nothing is left to answer."""
    messages = state["messages"]
    return bool(state.get("close")) and not (messages and isinstance(messages[-1], HumanMessage))


def is_ending(state: State) -> bool:
    """Whether the caller ended the conversation, and its last question, if there was one, is answered."""
    return bool(state.get("close") and state.get("stop_reason"))

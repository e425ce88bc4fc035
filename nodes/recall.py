"""recall: what long-term memory holds on the question, read from the store before the model is asked."""

from collections.abc import Sequence
from typing import Literal

from langgraph.runtime import Runtime
from langgraph.store.base import BaseStore

from memory.facts import Facts
from nodes.bringing import brought_up, is_searched, trigger_in
from nodes.calls import Update
from nodes.close import is_closing
from nodes.context import Context, NotYourThread, check_tools, context_of, user_of
from nodes.document_tools import passages_on, place_of
from nodes.recovery import left_behind
from nodes.state import Recalled, State
from nodes.text import question_of
from nodes.trace import SHOWN_CHARS, RecallDetail, Watch


def recall(state: State, runtime: Runtime[Context], *, tools: Sequence[str]) -> Update:
    """Write what this user's memory holds on the question to `recalled`; start the turn's `steps`.

    To `messages` it adds only results that an earlier run had stored when it stopped.
    Raises UnknownTool and NotYourThread before anything is read or written.
    """
    user, watch = admitted(state, runtime, tools), Watch("recall")
    found = left_behind(state["messages"])
    if is_closing(state):
        told = RecallDetail(query="", trigger="", status="off", memories=[], facts=0, passages=[], error="")
        return begun({"messages": found, "owner": user, "stop_reason": "closed"}, state) | {"steps": watch.step(told)}
    question = question_of(state["messages"])
    recalled = recalled_for(question, runtime)
    told = RecallDetail(
        query=question[:SHOWN_CHARS],
        trigger=trigger_in(question, context_of(runtime)),
        status=recalled["status"],
        memories=recalled["memories"],
        facts=len(recalled["facts"]),
        passages=[place_of(one) for one in recalled["passages"]],
        error=recalled["error"],
    )
    update = {"messages": found, "owner": user, "recalled": recalled, "stop_reason": "", "cut_tried": False}
    return begun(update, state) | {"steps": watch.step(told)}


def begun(update: Update, state: State) -> Update:
    """Return what an update changes: what is as it was need not be written, stored and merged again."""
    held = {"messages": [], "cut_tried": bool(state.get("cut_tried")), "owner": state.get("owner")}
    return {name: value for name, value in update.items() if name not in held or held[name] != value}


def recalled_for(question: str, runtime: Runtime[Context]) -> Recalled:
    """Look up facts always, memories and documents if the policy injects them. A failed search is said, not raised."""
    recalled = Recalled(status="off", memories=[], facts=[], passages=[], documents="off", error="")
    if runtime.store is None:
        return recalled
    try:
        look_up_memory(recalled, question, runtime.store, runtime)
    except Exception as error:  # the turn goes on without memory, and says so
        recalled |= {"status": "failed", "error": f"{type(error).__name__}: {error}"}
    try:
        look_up_documents(recalled, question, runtime.store, runtime)
    except Exception as error:
        recalled |= {"documents": "failed", "error": f"{type(error).__name__}: {error}"}
    return recalled


def look_up_memory(recalled: Recalled, question: str, store: BaseStore, runtime: Runtime[Context]) -> None:
    """Fill in facts, and what of memories and earlier conversations is brought up on the question."""
    context, user = context_of(runtime), user_of(runtime)
    newest = sorted(Facts(store, user=user).all(), key=lambda fact: fact.since, reverse=True)
    recalled["facts"] = [(fact.key, fact.value) for fact in newest]
    trigger = trigger_in(question, context)
    if is_searched(context, trigger):
        recalled["memories"] = brought_up(question, runtime, trigger)
        recalled["status"] = "found" if recalled["memories"] else "nothing"


def look_up_documents(recalled: Recalled, question: str, store: BaseStore, runtime: Runtime[Context]) -> None:
    """Fill in what of the user's documents is close to the question."""
    context = context_of(runtime)
    if context.memory in ("inject", "both") and context.passages_k:
        passages = passages_on(question, store, runtime)
        recalled["passages"] = passages or []
        recalled["documents"] = "off" if passages is None else "found" if passages else "nothing"


def admitted(state: State, runtime: Runtime[Context], tools: Sequence[str]) -> str:
    """Return the user of the run. Raises UnknownTool and NotYourThread."""
    user = user_of(runtime)
    check_tools(context_of(runtime), tools)
    if state.get("owner", user) != user:
        raise NotYourThread("this thread was begun by another user; start one of your own")
    return user


def first_step(state: State, *, memory: bool) -> Literal["memory", "no memory"]:
    """Skip this node where there is no memory: `reason` then begins the turn."""
    return "memory" if memory or state.get("close") else "no memory"


def next_after_recall(state: State) -> Literal["question", "close"]:
    """Go to the model, or straight to the end of the conversation."""
    return "close" if is_closing(state) else "question"

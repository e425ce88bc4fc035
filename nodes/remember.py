"""remember: file the turn in the transcript, word for word; extract memories from what is due.

No model is called unless something is due. What cannot be extracted now is due again next turn.
"""

from collections.abc import Generator
from typing import Any

from langgraph.runtime import Runtime

from memory.catalogue import Catalogue
from nodes.block_tools import edits_in
from nodes.calls import Plan, Reply, Request, reason_of
from nodes.close import close, is_ending
from nodes.context import Context, thread_of, user_of
from nodes.glean import gleaned
from nodes.kinds import entry_of, present, transcript_of
from nodes.state import State
from nodes.text import question_of
from nodes.trace import RememberDetail, Watch


def remember(state: State, runtime: Runtime[Context]) -> Plan:
    """File every message of the thread that is not filed; extract what is due; write the abstract at the end of it.

    A store that fails does not take the answer with it: the step tells, and the next turn files what is missing.
    """
    watch = Watch("remember")
    if runtime.store is None:
        return {"close": False, "steps": watch.step({"filed": 0, "why": "no store"})}
    ended: dict[str, Any] = {"close": False} if is_ending(state) else {}
    update: dict[str, Any] = {}
    try:
        update, told = yield from kept(state, runtime)
    except Exception as error:
        told = RememberDetail(failed=reason_of(error))
    return {**update, **ended, "steps": watch.step(told)}


def kept(state: State, runtime: Runtime[Context]) -> Generator[Request, Reply, tuple[dict[str, Any], RememberDetail]]:
    """Do it; return the update of `extracted_to`, if it moves, and what to tell."""
    assert runtime.store is not None
    beside = []
    if state.get("stop_reason") not in ("", "closed", None):
        beside = [Catalogue(runtime.store, user=user_of(runtime)).noting(thread_of(), question_of(state["messages"]))]
    filed = transcript_of(runtime).file(
        [entry_of(message, present(runtime)) for message in state["messages"]], beside=beside
    )
    update, told = yield from gleaned(state, runtime)
    if is_ending(state) and "failed" not in told:
        told.update((yield from close(state, runtime)))
    if edits := edits_in(state["messages"]):
        told["blocks"] = edits
    return update, {"filed": len(filed), **told}

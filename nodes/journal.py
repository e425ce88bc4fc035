"""One structured log line for each step of a call: start, refused, retry, error, done. Never its arguments."""

import logging
from collections.abc import Mapping
from typing import Any

from langgraph.config import get_config

from nodes.context import thread_of

log = logging.getLogger("palimpsest.tools")


def note(event: str, call: Mapping[str, Any], *, attempt: int, ms: int, **values: Any) -> None:
    """Log a step with thread, LangGraph's step number, tool and call, and what is given, also as attributes.

    `attempt` is 0 before the first, `ms` the milliseconds since the call came in.
    """
    if not log.isEnabledFor(logging.INFO):
        return
    step = get_config().get("metadata", {}).get("langgraph_step")
    known = {"thread_id": thread_of(), "step": step, "tool": call["name"], "call": call["id"]}
    known |= {"attempt": attempt, "ms": ms, **values}
    text = " ".join(f"{key}={value}" for key, value in known.items())
    log.info("%s %s", event, text, extra={"event": event, **known})

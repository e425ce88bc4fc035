"""Whose a run is, before it begins: on another user's thread nothing of it is stored, else each checkpoint says it.

LangGraph stores what a run is given before its first node is asked. A node that refuses comes too late: what the other
user said would stand on the page.
"""

from typing import Any

from langchain_core.runnables import RunnableConfig
from langchain_core.runnables.config import merge_configs
from langgraph.checkpoint.base import CheckpointTuple

from nodes.context import Context, NotYourThread

RUN_BY = "run_by"
"""The key of a checkpoint's metadata that names the user of the run."""


def user_in(config: RunnableConfig, context: Any) -> str:
    """Return whose run this is by what it is given: the server's authenticated user, else the context's."""
    login = (config.get("configurable") or {}).get("langgraph_auth_user")
    if (identity := getattr(login, "identity", None)) is not None:
        return str(identity)
    return str(
        context.get("user", Context.user) if isinstance(context, dict) else getattr(context, "user", Context.user)
    )


def owner_in(found: CheckpointTuple | None) -> str | None:
    """Return whose thread it is by its newest checkpoint, also if its first run broke off at once; None if unknown."""
    if found is None:
        return None
    owner: str | None = found.checkpoint["channel_values"].get("owner") or found.metadata.get(RUN_BY)  # type: ignore[assignment]
    return owner


def admitted(found: CheckpointTuple | None, config: RunnableConfig | None, user: str) -> RunnableConfig:
    """Return the config of a run with its user noted for the checkpoints. Raises NotYourThread."""
    if owner_in(found) not in (None, user):
        raise NotYourThread("this thread was begun by another user; start one of your own")
    return merge_configs(config, {"metadata": {RUN_BY: user}})

"""A login for the server, as `auth` in langgraph.json names it: each user reaches their own threads and memory alone.

It is an example: a real one asks who a token belongs to. Its rules are what such a login needs for Palimpsest.
"""

from typing import Any

from langgraph_sdk import Auth

from memory.labels import label

auth = Auth()
TOKENS = {"ann's token": "ann", "bob's token": "bob.b@例子"}


@auth.authenticate
async def who(authorization: str | None) -> str:
    """Return whose token this is."""
    kind, _, token = (authorization or "").partition(" ")
    if kind != "Bearer" or token not in TOKENS:
        raise Auth.exceptions.HTTPException(status_code=401, detail="a token is needed")
    return TOKENS[token]


@auth.on
async def own(ctx: Auth.types.AuthContext, value: dict[str, Any]) -> dict[str, Any]:
    """Mark what a user makes, and show them nothing else."""
    metadata: dict[str, Any] = value.setdefault("metadata", {})
    metadata["owner"] = ctx.user.identity
    return {"owner": ctx.user.identity}


@auth.on.assistants
async def all_assistants(ctx: Auth.types.AuthContext, value: dict[str, Any]) -> bool:
    """Let everybody use the assistants, and nobody change them."""
    return ctx.action in ("read", "search")


@auth.on.store()
async def own_memory(ctx: Auth.types.AuthContext, value: dict[str, Any]) -> bool:
    """Let users into their own namespaces alone."""
    return tuple(value.get("namespace") or ())[:2] == ("users", label(ctx.user.identity))

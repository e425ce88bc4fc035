"""What teams share: their memories beside the user's own, each with where it is from, and the tool that adds to them.

Which teams those are comes from the run (nodes/context.py); a tool can only choose among them.
"""

from collections.abc import Sequence
from typing import Annotated, Any

from langchain_core.tools import tool
from langgraph.prebuilt import ToolRuntime
from pydantic import Field

from memory.memories import Memories, Memory, Source
from memory.owner import Team
from nodes.context import Context, teams_of, thread_of, user_of
from nodes.contract import marked
from nodes.failures import ToolProblem
from nodes.quoting import as_json
from nodes.text import last_human

NOT_GRANTED = (
    "nothing was saved: this run may read what the team {team!r} shares, or not even that, but not add to it. It may add "
    "to: {granted}. Who sets up the agent grants it (Context.team_writes)."
)


@tool
def team_save(
    team: Annotated[str, Field(min_length=1, max_length=200, description="The team's name, to the letter.")],
    text: Annotated[
        str, Field(min_length=1, max_length=2000, description="One statement that stands alone, with absolute dates.")
    ],
    runtime: ToolRuntime[Context, Any],
) -> str:
    """Share one statement with a team: all its members will recall it. Only when the user asks to share it with that team."""
    granted = teams_of(runtime, writing=True)
    if team not in granted or runtime.store is None:
        raise ToolProblem(NOT_GRANTED.format(team=team, granted=", ".join(map(repr, granted)) or "none"))
    newest = runtime.state["messages"][last_human(runtime.state["messages"])]
    source = Source(thread=thread_of(), message=str(newest.id), by=user_of(runtime))
    try:
        memory, is_new = Memories(runtime.store, user=Team(team)).save(text, sources=[source])
    except ValueError as error:
        raise ToolProblem(str(error)) from error
    return as_json({"shared": "new" if is_new else "already there", "team": team, "id": memory.id, "text": memory.text})


TEAM_TOOLS = (marked(writes=("text",))(team_save),)


def with_shared(own: Sequence[Memory], runtime: Any, query: str, **options: Any) -> list[tuple[Memory, str]]:
    """Return what was found of the user's own and of the teams' memories, each with its origin, best first.

    The options are those of `Memories.search`; the limit holds for all together.
    """
    found = [(memory, memory.origin) for memory in own]
    for team in (teams := teams_of(runtime)):
        for memory in Memories(runtime.store, user=Team(team)).search(query, **options):
            found.append((memory, f"team {team}: {memory.origin}"))
    return sorted(found, key=lambda pair: -(pair[0].score or 0.0))[: options["limit"]] if teams else found


def shared_by_id(id: str, runtime: Any) -> tuple[Memory, str] | None:
    """Return a memory that a team of the run shares, with its origin; whose conversation it is from stays untold."""
    for team in teams_of(runtime):
        if memory := Memories(runtime.store, user=Team(team)).get(id):
            return memory, f"team {team}: {memory.origin}"
    return None

"""The context: what may differ from run to run, as plain described values. Studio shows it as a form.

It holds no live object: the store, the models and the tools are given to the graph when it is built.
"""

from collections.abc import Iterable
from datetime import datetime
from typing import Annotated, Any, Literal
from zoneinfo import ZoneInfo

from langgraph.config import get_config
from pydantic import AfterValidator, ConfigDict, Field
from pydantic.dataclasses import dataclass

from memory.block_specs import DEFAULT_BLOCKS, BlockSpec, distinct

MemoryPolicy = Literal["tool", "inject", "both"]
TEAM_TOOL = "team_save"
EDIT_TOOLS = ("core_memory_append", "core_memory_replace")
ExtractPolicy = Literal["compaction", "close", "turn", "off"]
WritePolicy = Literal["user", "ask", "any"]
SecretPolicy = Literal["mask", "refuse"]

TRIGGERS = (
    "as we agreed",
    "as agreed",
    "we agreed",
    "as discussed",
    "we discussed",
    "we talked about",
    "we spoke about",
    "last time",
    "the other day",
    "remember when",
    "do you remember",
    "do you still know",
    "as I said",
    "I told you",
    "I mentioned",
    "the usual",
    "as usual",
    "like before",
    "上次",
    "上回",
    "还记得",
    "记不记得",
    "之前说",
    "之前聊",
    "之前提",
    "说好的",
    "说过",
    "提到过",
    "讨论过",
    "聊过",
    "约定",
    "老样子",
    "老规矩",
    "照旧",
)


def known_zone(name: str) -> str:
    """Return the name of a time zone, empty for the machine's. Raises ValueError if there is none."""
    try:
        return name and ZoneInfo(name.strip()).key
    except (ValueError, OSError, KeyError) as error:
        raise ValueError(f"expected an IANA name such as Asia/Shanghai, got {name!r}") from error


@dataclass(frozen=True, kw_only=True, config=ConfigDict(extra="forbid"))
class Context:
    """Settings of one run. Raises pydantic's ValidationError, which names the field, for a value out of bounds."""

    user: Annotated[
        str,
        Field(
            min_length=1,
            pattern=r"\S",
            max_length=512,
            description="Whose memory is read and written. A logged-in server user goes first.",
        ),
    ] = "me"
    model: Annotated[
        str,
        Field(
            max_length=200,
            description="provider:name such as openai:gpt-4.1-mini; local; rehearsal; empty for the configured one.",
        ),
    ] = ""
    instructions: Annotated[
        str,
        Field(
            max_length=100_000,
            description="What the agent is for and how it speaks; put before the house rules.",
            json_schema_extra={"langgraph_type": "prompt", "langgraph_nodes": ["reason"]},  # Studio shows it there
        ),
    ] = "You are a helpful assistant with a long-term memory."
    memory: Annotated[
        MemoryPolicy,
        Field(
            description="tool: the model decides when to recall; inject: the graph recalls before every answer; both."
        ),
    ] = "both"
    extract: Annotated[
        ExtractPolicy,
        Field(
            description="When statements become memories unasked: before old messages leave and at the end of a "
            "conversation; at its end alone; every turn; or never."
        ),
    ] = "compaction"
    timezone: Annotated[
        str,
        AfterValidator(known_zone),
        Field(
            max_length=64,
            description="Where the user's days begin, such as Asia/Shanghai, for words like tomorrow; "
            "empty for where this machine is.",
        ),
    ] = ""
    writes: Annotated[
        WritePolicy,
        Field(
            description="What tools may keep once text by others was read: user: only the user's own words; "
            "ask: the rest if a person approves; any: everything, attributed to what it comes from. "
            "What the user did not ask to forget is forgotten under ask alone, if a person approves."
        ),
    ] = "user"
    secrets: Annotated[
        SecretPolicy,
        Field(
            description="What becomes of keys, passwords and card numbers that a tool would keep: masked, or refused."
        ),
    ] = "mask"
    tools: Annotated[
        tuple[str, ...],
        Field(max_length=500, description="Names of the mounted tools. `*` mounts all that the graph was built with."),
    ] = ("*",)
    teams: Annotated[
        tuple[str, ...],
        Field(
            max_length=50,
            description="Teams whose shared memories are recalled beside the user's own; a login must grant them.",
        ),
    ] = ()
    team_writes: Annotated[
        tuple[str, ...], Field(max_length=50, description="Those of the teams to which this run may add memories.")
    ] = ()
    blocks: Annotated[
        tuple[BlockSpec, ...],
        Field(
            max_length=20, description="Blocks of core memory: always in the prompt, edited by the core_memory tools."
        ),
        AfterValidator(distinct),
    ] = DEFAULT_BLOCKS
    recall_k: Annotated[int, Field(ge=0, le=50, description="How many memories are put into the prompt at most.")] = 5
    recall_threshold: Annotated[
        float | None,
        Field(
            ge=-1.0,
            le=1.0,
            description="Cosine similarity under which a memory is not brought up; empty for the embedder's own.",
        ),
    ] = None
    collections: Annotated[
        tuple[str, ...],
        Field(
            max_length=100,
            description="Names of the collections of documents that are searched, the user's and shared; `*`: all.",
        ),
    ] = ("*",)
    passages_k: Annotated[
        int, Field(ge=0, le=20, description="How many passages of documents are put into the prompt at most.")
    ] = 3
    recall_tokens: Annotated[
        int, Field(ge=0, le=1_000_000, description="Tokens of recalled memories in the prompt at most.")
    ] = 1_500
    triggers: Annotated[
        tuple[str, ...],
        Field(
            max_length=100,
            description="Words by which a question refers to earlier conversations: they force a search, "
            "in memory and in what was said, whatever the policy.",
        ),
    ] = TRIGGERS
    max_messages: Annotated[
        int,
        Field(ge=4, le=10_000, description="Messages on the page above which the older half is summarised."),
    ] = 40
    token_budget: Annotated[
        int, Field(ge=4_000, le=10_000_000, description="Tokens of one prompt, all included; nothing larger is sent.")
    ] = 32_000
    summary_tokens: Annotated[int, Field(ge=100, le=100_000, description="Tokens of the running summary at most.")] = (
        1_500
    )
    max_steps: Annotated[
        int, Field(ge=1, le=100, description="Model calls in one turn; the last one answers without tools.")
    ] = 12
    max_repeats: Annotated[
        int, Field(ge=1, le=100, description="How often the same call with the same arguments runs in one turn.")
    ] = 2
    tool_timeout_s: Annotated[float, Field(gt=0, le=3600, description="Seconds that one tool call may take.")] = 30.0
    max_result_chars: Annotated[
        int, Field(ge=200, le=1_000_000, description="Characters of one tool result that reach the model.")
    ] = 20_000
    stream: Annotated[
        bool,
        Field(description="Ask the model for its answer token by token; off for servers that stream badly."),
    ] = True
    text_only: Annotated[
        bool,
        Field(description="The model reads text alone: for a picture, sound or file it is sent what was there."),
    ] = False
    merge_roles: Annotated[
        bool,
        Field(description="Send neighbouring messages of one role as one, for servers that want roles to take turns."),
    ] = False

    def mounts(self, tool: str) -> bool:
        """Whether the model may call this tool in this run. Memory tools go with the memory policy and the blocks."""
        if self.memory == "inject" and tool in ("recall", "search_documents"):
            return False
        if tool == TEAM_TOOL and not self.teams:
            return False
        if tool in EDIT_TOOLS and all(spec.read_only for spec in self.blocks):
            return False
        return "*" in self.tools or tool in self.tools


class UnknownTool(ValueError):
    """A name in `tools` that the graph was not built with."""


class NotYourThread(ValueError):
    """A thread that another user began."""


def check_tools(context: Context, known: Iterable[str]) -> None:
    """Raise UnknownTool if the context mounts a tool that does not exist."""
    if unknown := sorted(set(context.tools) - {*known, "*"}):
        raise UnknownTool(f"tools must be among {', '.join(known)} or *, got {', '.join(map(repr, unknown))}")


def local(moment: datetime, context: Context) -> datetime:
    """Return a time as it was on the user's clock."""
    return moment.astimezone(ZoneInfo(context.timezone) if context.timezone else None)


def context_of(runtime: Any) -> Context:
    """Return the run's context; plain `invoke` without `context=` has none and means the defaults.

    An update of the state by hand, which asks where to go on, has not even a runtime.
    """
    context = getattr(runtime, "context", None)
    return context if isinstance(context, Context) else Context()


def thread_of() -> str:
    """Return the run's thread; a run without a saver has none and shares one name."""
    return str(get_config().get("configurable", {}).get("thread_id") or "no thread")


def user_of(runtime: Any) -> str:
    """Return whose run this is: the server's authenticated user, else the context's. Never a tool's argument."""
    server = runtime.server_info
    if server is not None and server.user is not None:
        return str(server.user.identity)
    return context_of(runtime).user


def teams_of(runtime: Any, *, writing: bool = False) -> tuple[str, ...]:
    """Return the teams whose memories the run may read, or add to: those of the context that a login, if there is one,
    grants by the permission `team:NAME:read` or `team:NAME:write`. Never a tool's argument.
    """
    context, server = context_of(runtime), runtime.server_info
    teams = tuple(team for team in context.teams if not writing or team in context.team_writes)
    if not teams or server is None or server.user is None:
        return teams
    granted, rights = set(getattr(server.user, "permissions", None) or ()), ("write",) if writing else ("read", "write")
    return tuple(team for team in teams if any(f"team:{team}:{right}" in granted for right in rights))

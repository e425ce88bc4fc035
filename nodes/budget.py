"""One prompt within the token budget: system text, sections and messages, with tools and answer counted in.

It calls no model and writes no state; nodes/reason.py does.
"""

from dataclasses import dataclass

from langchain_core.messages import AnyMessage, SystemMessage

from nodes import prompts
from nodes.context import Context
from nodes.fit import DROPPED, fit
from nodes.sections import Section, fitted
from nodes.state import State
from nodes.tokens import ratio_of, text_tokens
from nodes.valid import merged, valid_messages

ANSWER_TOKENS, ANSWER_SHARE = 1_024, 8
"""Room for the answer within the budget, at most one part in this many of it."""

SECTIONS_SHARE = 2
"""Core memory, facts, memories and the summary together get one part in this many of the room that they share with
the messages: 2 is a half."""


@dataclass(frozen=True, kw_only=True)
class Prompt:
    """What the model is sent, its tokens, and the tokens of the whole page with room for the answer.

    `tokens` is the plain estimate, to be compared with what the provider reports; `page_tokens` is corrected by that.
    `refusal` says why it must not be sent, empty if it fits; no shorter page would help, so `page_tokens` is 0 then.
    """

    messages: list[AnyMessage]
    tokens: int
    page_tokens: int
    refusal: str
    changes: list[str]


def prompt_of(state: State, context: Context, core: Section, tool_tokens: int, *, final: bool) -> Prompt:
    """Build one system message and a valid list after it, within the budget, with tools and answer counted in."""
    valid = valid_messages(state["messages"], text_only=context.text_only)
    text = prompts.fixed_text(context, last=final and context.max_steps > 1)
    ratio = ratio_of(state)
    fixed = text_tokens(text) + tool_tokens
    aside = text_tokens(DROPPED) + min(ANSWER_TOKENS, context.token_budget // ANSWER_SHARE)
    room = int(context.token_budget / ratio) - fixed - aside
    told = fitted(prompts.sections(state, core, "\n\n".join(valid.system)), room // SECTIONS_SHARE)
    system = "\n\n".join([text, *told])
    around = text_tokens(system) + tool_tokens
    page = fit(valid.messages, room + fixed - around)
    changes = [*valid.changes, *([f"shortened {page.shortened}"] if page.shortened else [])]
    if page.dropped:
        system = f"{system}\n\n{DROPPED.format(count=page.dropped)}"
        changes.append(f"left out {page.dropped}")
    messages = merged(page.messages) if context.merge_roles else page.messages
    if apart := len(page.messages) - len(messages):
        changes.append(f"joined {apart} to the one before")
    tokens = text_tokens(system) + tool_tokens + page.tokens
    fits = tokens * ratio <= context.token_budget
    no_room = prompts.NO_ROOM.format(budget=context.token_budget, fixed=round(fixed * ratio))
    return Prompt(
        messages=[SystemMessage(system), *messages],
        tokens=tokens,
        page_tokens=round((around + aside + page.before) * ratio) if fits else 0,
        refusal="" if fits else no_room,
        changes=changes,
    )

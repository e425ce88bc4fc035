"""reason: one valid prompt, one answer of the model. The only question after it: are there calls left?"""

from collections.abc import Generator, Sequence
from dataclasses import replace
from typing import Literal, cast

from langchain_core.messages import AIMessage, AnyMessage, BaseMessage, HumanMessage, ToolMessage
from langgraph.runtime import Runtime

from nodes import prompts
from nodes.budget import Prompt, prompt_of
from nodes.calls import Failure, Plan, Reply, Request
from nodes.collect import BROKE_OFF, is_broken_off, is_cut
from nodes.context import Context, context_of
from nodes.contract import Mounted
from nodes.core import core_memory
from nodes.cut import can_cut
from nodes.document_tools import cited
from nodes.recall import admitted, recall
from nodes.repeats import is_stuck
from nodes.spoken import looks_like_call, with_spoken_calls
from nodes.state import State, StopReason
from nodes.text import calls_of, is_blank, last_human, text_of
from nodes.tokens import corrected, message_tokens, ratio_of, reported_tokens
from nodes.trace import ReasonDetail, Watch
from nodes.valid import merged

TO_END, TO_CUT, TO_CALL = 2, 3, 2
"""Supersteps that a store adds to the end of a turn; that a cut takes; that calls take with the answer to them."""

PAGE_FIRST = "the page is over the budget: it is cut first"
DIRECT = "the tools' results are the answer"


def reason(state: State, runtime: Runtime[Context], *, tools: Sequence[Mounted]) -> Plan:
    """Ask the model; append its answer to `messages`; write `stop_reason` when the turn is over.

    Without a store the turn begins here, with what `recall` then has to say.
    """
    if runtime.store is not None or state.get("close"):
        return (yield from answered(state, runtime, tools))
    names = [one.name for one in tools]
    if steps_taken(state["messages"]) and not state.get("stop_reason", "none"):
        admitted(state, runtime, names)
        return (yield from answered(state, runtime, tools))
    begun = recall(state, runtime, tools=names)
    found = begun.get("messages", [])
    messages = [*state["messages"], *found]
    update = yield from answered(cast(State, {**state, **begun, "messages": messages}), runtime, tools)
    said = [*found, *update.get("messages", [])]
    return {**begun, **update, "messages": said, "steps": [*begun["steps"], *update["steps"]]}


def answered(state: State, runtime: Runtime[Context], tools: Sequence[Mounted]) -> Plan:
    """Do it. What is no answer gets a second chance; then an explicit answer says what happened, as after a failure."""
    watch, context = Watch("reason"), context_of(runtime)
    number = steps_taken(state["messages"]) + 1
    told = nothing_sent(number)
    if not asks_something(state["messages"]):
        step = watch.step({**told, "stop_reason": "empty_question"})
        return {"messages": [AIMessage(prompts.NO_QUESTION)], "stop_reason": "empty_question", "steps": step}
    if given := direct_answer(state["messages"], tools):
        step = watch.step({**told, "stop_reason": "answered", "why": DIRECT})
        return {"messages": [AIMessage(given)], "stop_reason": "answered", "steps": step}
    last = last_step(state, runtime, number)
    final = last is not None
    mounted = [] if final else [one for one in tools if context.mounts(one.name)]
    prompt = prompt_of(state, context, core_memory(runtime), sum(one.tokens for one in mounted), final=final)
    if prompt.page_tokens > context.token_budget and may_cut(state, runtime):
        told |= {"page_tokens": prompt.page_tokens, "why": PAGE_FIRST}
        return {"page_tokens": prompt.page_tokens, "steps": watch.step(told)}
    told |= {"sent": 0 if prompt.refusal else len(prompt.messages), "tokens": prompt.tokens, "tools": len(mounted)}
    told |= {"changes": prompt.changes, "page_tokens": prompt.page_tokens}
    answer, told["objection"] = yield from asked(prompt, context, mounted)
    said, stop = verdict(answer, state, last, context)
    if isinstance(answer, Failure):
        told["why"] = answer.reason
    else:
        told |= {"counted": reported_tokens(answer), "calls": [name for _, name in calls_of(answer)]}
        told["cited"] = cited(text_of(said), state)
    return {
        "messages": [said],
        "stop_reason": stop,
        "page_tokens": prompt.page_tokens + message_tokens(said),
        "token_ratio": corrected(ratio_of(state), estimated=prompt.tokens, answer=said),
        "steps": watch.step({**told, "stop_reason": stop}),
    }


def asked(prompt: Prompt, context: Context, mounted: Sequence[Mounted]) -> Generator[Request, Reply, tuple[Reply, str]]:
    """Ask the model, again if its answer broke off or is none; return that and what the first was sent back with."""
    if prompt.refusal:
        return Failure(reason=prompt.refusal), ""
    schemas, names = [one.schema for one in mounted], [one.name for one in mounted]
    request = Request(model=context.model, messages=prompt.messages, tools=schemas, stream=context.stream)
    answer = read((yield request), names)
    if isinstance(answer, AIMessage) and is_broken_off(answer) and not calls_of(answer):
        return read((yield request), names), BROKE_OFF
    objection = "" if isinstance(answer, Failure) else no_answer(answer)
    if objection:
        messages = [*prompt.messages, HumanMessage(objection)]
        messages = merged(messages) if context.merge_roles else messages
        answer = read((yield replace(request, messages=messages)), names)
    return answer, objection


def verdict(
    answer: Reply, state: State, last: StopReason | None, context: Context
) -> tuple[AIMessage, StopReason | Literal[""]]:
    """Say what stands as the answer, an explicit failure where the model gave none, and how the turn ends with it."""
    if isinstance(answer, Failure):
        return AIMessage(prompts.MODEL_FAILED.format(reason=answer.reason)), "model_error"
    if no_answer(answer):
        return AIMessage(prompts.GAVE_NO_ANSWER), "empty_answer"
    if is_broken(answer) and is_broken(newest_answer(state)):
        return AIMessage(prompts.BROKEN_CALLS), "broken_calls"
    if last and calls_of(answer):
        return without_calls(answer), last
    return answer, stop_of(answer, last if context.max_steps > 1 else None)


def may_cut(state: State, runtime: Runtime[Context]) -> bool:
    """Whether the page can be cut, and was not yet in this turn."""
    can = runtime.store is not None and not state.get("cut_tried") and has_room(state, runtime, TO_CUT)
    return can and can_cut(state["messages"])


def has_room(state: State, runtime: Runtime[Context], steps: int) -> bool:
    """Whether a turn that takes so many more supersteps still ends before LangGraph's limit does it (B045, B046)."""
    due = steps + (TO_END if runtime.store is not None else 0)
    return state.get("remaining_steps", due + 1) > due


def direct_answer(messages: Sequence[AnyMessage], tools: Sequence[Mounted]) -> str:
    """Return what the newest calls gave if all of them were of tools whose result is the answer, and none failed."""
    direct = {one.name for one in tools if one.tool.return_direct}
    n = max((n for n, message in enumerate(messages) if not isinstance(message, ToolMessage)), default=0)
    newest = [message for message in messages[n + 1 :] if isinstance(message, ToolMessage)]
    are_whole = all(message.name in direct and message.status == "success" for message in newest)
    return "\n".join(map(text_of, newest)) if are_whole and isinstance(messages[n], AIMessage) else ""


def stop_of(answer: AIMessage, last: StopReason | None) -> StopReason | Literal[""]:
    """Say how the turn ends with this answer; empty if it goes on with its calls."""
    if calls_of(answer):
        return ""
    return last or ("cut_off" if is_cut(answer) else "answered")


def last_step(state: State, runtime: Runtime[Context], number: int) -> StopReason | None:
    """Say why this step must answer without tools, None if it need not."""
    if number >= context_of(runtime).max_steps or not has_room(state, runtime, TO_CALL):
        return "max_steps"
    return "stuck" if is_stuck(state["messages"]) else None


def read(reply: Reply, mounted: Sequence[str]) -> Reply:
    """Read calls that the model wrote as text as what they are."""
    return with_spoken_calls(reply, mounted) if isinstance(reply, AIMessage) else reply


def no_answer(answer: AIMessage) -> str:
    """Say to the model why what it gave is no answer; empty if it is one."""
    if calls_of(answer):
        return ""
    if is_blank(answer):
        return prompts.EMPTY_ANSWER
    return prompts.SPOKEN_CALL if looks_like_call(answer) else ""


def is_broken(message: BaseMessage | None) -> bool:
    """Whether an answer consists of calls that cannot run, and nothing else."""
    return isinstance(message, AIMessage) and bool(message.invalid_tool_calls) and not message.tool_calls


def newest_answer(state: State) -> BaseMessage | None:
    """Return the model's last answer of this turn."""
    turn = state["messages"][last_human(state["messages"]) + 1 :]
    return next((message for message in reversed(turn) if isinstance(message, AIMessage)), None)


def nothing_sent(number: int) -> ReasonDetail:
    """Begin to tell of a step."""
    return ReasonDetail(
        number=number,
        sent=0,
        tokens=0,
        counted=0,
        page_tokens=0,
        tools=0,
        changes=[],
        objection="",
        calls=[],
        cited=[],
        stop_reason="",
        why="",
    )


def without_calls(answer: AIMessage) -> AIMessage:
    """Keep the text of an answer that called tools when none were left, as another message than what was streamed."""
    text = prompts.STILL_CALLING if is_blank(answer) else answer.content
    return answer.model_copy(update={"id": None, "content": text, "tool_calls": [], "invalid_tool_calls": []})


def asks_something(messages: Sequence[AnyMessage]) -> bool:
    """Whether the turn has a question: the newest message of the user shows something, and is not answered yet."""
    newest = last_human(messages)
    answered = isinstance(messages[-1], AIMessage) and not calls_of(messages[-1]) if messages else False
    return newest >= 0 and not is_blank(messages[newest]) and not answered


def steps_taken(messages: Sequence[AnyMessage]) -> int:
    """Count the model's answers in the current turn."""
    return sum(isinstance(message, AIMessage) for message in messages[last_human(messages) + 1 :])

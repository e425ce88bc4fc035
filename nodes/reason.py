"""reason: one valid prompt, one answer of the model. The only question after it: are there calls left?"""

from collections.abc import Sequence
from typing import Literal

from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, SystemMessage
from langchain_core.tools import BaseTool
from langgraph.runtime import Runtime

from nodes import prompts
from nodes.calls import Failure, Plan, Request, Update
from nodes.context import Context, context_of
from nodes.state import State, StopReason
from nodes.text import calls_of, is_blank, last_human
from nodes.trace import Watch
from nodes.valid import valid_messages


def reason(state: State, runtime: Runtime[Context], *, tools: Sequence[BaseTool]) -> Plan:
    """Ask the model; append its answer to `messages`; write `stop_reason` when the turn is over.

    An empty answer gets a second chance; then, as after a failure, an explicit answer says what happened.
    """
    watch, context = Watch("reason"), context_of(runtime)
    number = steps_taken(state["messages"]) + 1
    if not asks_something(state["messages"]):
        return ended(AIMessage(prompts.NO_QUESTION), "empty_question", watch, number)
    final = number >= context.max_steps
    mounted = [] if final else [tool for tool in tools if context.mounts(tool.name)]
    messages, changes = prompt_of(state, context, final=final)
    request = Request(model=context.model, messages=messages, tools=mounted, stream=context.stream)
    answer = yield request
    if isinstance(answer, AIMessage) and is_empty(answer):
        again = [*messages, HumanMessage(prompts.EMPTY_ANSWER)]
        answer = yield Request(model=context.model, messages=again, tools=mounted, stream=context.stream)
    if isinstance(answer, Failure):
        return ended(AIMessage(prompts.MODEL_FAILED.format(reason=answer.reason)), "model_error", watch, number)
    if is_empty(answer):
        return ended(AIMessage(prompts.GAVE_NO_ANSWER), "empty_answer", watch, number)
    if final and calls_of(answer):
        return ended(without_calls(answer), "max_steps", watch, number)
    stop = "" if calls_of(answer) else "max_steps" if final and number > 1 else "answered"
    calls = [name for _, name in calls_of(answer)]
    steps = watch.step(number=number, sent=len(messages), changes=changes, calls=calls, stop_reason=stop)
    return {"messages": [answer], "stop_reason": stop, "steps": steps}


def prompt_of(state: State, context: Context, *, final: bool) -> tuple[list[AnyMessage], list[str]]:
    """Build what the model reads: one system message, then a valid list. Returns it with what was mended."""
    valid = valid_messages(state["messages"])
    system = prompts.system_text(context, state, valid.system)
    if final and context.max_steps > 1:
        system = f"{system}\n\n{prompts.LAST_STEP}"
    return [SystemMessage(system), *valid.messages], valid.changes


def ended(answer: AIMessage, stop: StopReason, watch: Watch, number: int) -> Update:
    """End the turn with an answer of our own that says what happened."""
    return {"messages": [answer], "stop_reason": stop, "steps": watch.step(number=number, stop_reason=stop)}


def without_calls(answer: AIMessage) -> AIMessage:
    """Keep the text of an answer that called tools when none were left to call."""
    text = prompts.GAVE_NO_ANSWER if is_blank(answer) else answer.content
    return answer.model_copy(update={"content": text, "tool_calls": [], "invalid_tool_calls": []})


def is_empty(answer: AIMessage) -> bool:
    """Whether the model neither said nor called anything."""
    return is_blank(answer) and not calls_of(answer)


def asks_something(messages: Sequence[AnyMessage]) -> bool:
    """Whether the turn has a question: the newest message of the user shows something."""
    newest = last_human(messages)
    return newest >= 0 and not is_blank(messages[newest])


def steps_taken(messages: Sequence[AnyMessage]) -> int:
    """Count the model's answers in the current turn."""
    return sum(isinstance(message, AIMessage) for message in messages[last_human(messages) + 1 :])


def next_after_reason(state: State) -> Literal["calls", "no calls left"]:
    """Go to the tools if the newest answer calls any, with valid arguments or not. `stop_reason` is never asked."""
    return "calls" if calls_of(state["messages"][-1]) else "no calls left"

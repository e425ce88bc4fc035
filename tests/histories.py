"""Histories of turns with parallel calls, large texts, Chinese and pictures, for tests of what reaches a model."""

from collections.abc import Sequence
from typing import Any

from hypothesis import strategies as st
from langchain_core.messages import AIMessage, AnyMessage, BaseMessage, HumanMessage, SystemMessage, ToolMessage
from wire_rules import Rules, reject, wire_messages

PICTURE = {"type": "image_url", "image_url": {"url": "data:image/png;base64," + "A" * 4000}}
WORDS = ("tea ", "订单号 ", "AB-1234 ", "{} [] ", "🎉", "naïve ")

TEXTS = st.builds(lambda word, times: word * times, st.sampled_from(WORDS), st.sampled_from((1, 3, 40, 400)))
ARGS = st.dictionaries(st.sampled_from(["text", "path"]), TEXTS, max_size=2)


@st.composite
def turns(draw: st.DrawFn, *, most: int = 6, finished: bool = False) -> list[AnyMessage]:
    """Draw a list of turns, each message with an id; the last turn may still be going on."""
    messages: list[AnyMessage] = []
    count = draw(st.integers(1, most))
    for turn in range(count):
        text = draw(TEXTS)
        content: Any = [{"type": "text", "text": text}, PICTURE] if draw(st.booleans()) else text
        messages.append(HumanMessage(content, id=f"h{turn}"))
        for step in range(draw(st.integers(0, 2))):
            ids = [f"c{turn}-{step}-{n}" for n in range(draw(st.integers(1, 3)))]
            calls = [{"name": "look_up", "args": draw(ARGS), "id": one} for one in ids]
            messages.append(AIMessage(draw(st.just("") | TEXTS), tool_calls=calls, id=f"a{turn}-{step}"))
            results = [ToolMessage(draw(TEXTS), tool_call_id=one, id=f"t{one}") for one in draw(st.permutations(ids))]
            messages += results
        if finished or turn < count - 1 or draw(st.booleans()):
            messages.append(AIMessage(draw(TEXTS), id=f"a{turn}"))
    return messages


def many_calls(count: int) -> list[AnyMessage]:
    """Make a turn whose one answer calls so many tools, each with long arguments and a long result."""
    calls = [{"name": "look_up", "args": {"text": "x" * 900}, "id": f"c{n}"} for n in range(count)]
    results = [ToolMessage("found " * 400, tool_call_id=f"c{n}", id=f"t{n}") for n in range(count)]
    return [HumanMessage("look up all of these", id="q"), AIMessage("", tool_calls=calls, id="a"), *results]


def refused(messages: Sequence[BaseMessage]) -> str | None:
    """Say why a strict server would refuse a list that follows one system message; None if it would not."""
    sent = wire_messages([SystemMessage("rules"), *messages])
    return reject({"model": "test-model", "messages": sent}, Rules(unique_ids_in_thread=True))

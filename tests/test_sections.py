"""nodes.sections and the prompt: whatever was kept, what the model gets fits the budget, and the question is in it."""

from typing import Any

import pytest
from conftest import answer, ask, config
from histories import many_calls, refused, turns
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from langchain_core.messages import AnyMessage, HumanMessage, SystemMessage
from langgraph.runtime import Runtime

from memory.block_specs import BlockSpec
from nodes import prompts
from nodes.budget import Prompt, prompt_of
from nodes.context import Context
from nodes.core import core_memory
from nodes.fit import FLOOR
from nodes.sections import BOUNDLESS, Section, fitted, listed
from nodes.text import last_human, text_of
from nodes.tokens import message_tokens, text_tokens

PHRASES = st.builds(
    lambda word, n: word * n, st.sampled_from(("tea ", "过敏", "AB-12 ", '"\n', "🎉")), st.integers(1, 300)
)
FACTS = st.lists(st.tuples(PHRASES, PHRASES), max_size=12)
MEMORIES = st.lists(
    PHRASES.map(lambda text: {"id": "m", "text": text, "at": "2026-01-01", "score": 0.5, "why": ""}), max_size=8
)
STATES = st.builds(
    lambda facts, memories, status, summary, ratio: {
        "recalled": {"facts": facts, "memories": memories, "status": status, "error": ""},
        "summary": summary,
        "token_ratio": ratio,
    },
    FACTS,
    MEMORIES,
    st.sampled_from(("found", "nothing", "failed", "off")),
    st.just("") | st.lists(PHRASES, max_size=6).map("\n- ".join),
    st.floats(0.5, 3.0),
)
BLOCKS = st.lists(
    st.builds(
        lambda about, text: (about[:500], text.strip("\n ")[:2000]),
        PHRASES,
        st.lists(PHRASES, max_size=9).map("\n".join),
    ),
    max_size=20,
)
BUDGETS = st.sampled_from((4_000, 4_001, 6_000, 12_000, 64_000))
ANYTHING = settings(deadline=None, max_examples=150, suppress_health_check=[HealthCheck.too_slow])


HISTORIES = turns(most=4) | st.sampled_from((2, 30, 100)).map(many_calls)


def core_of(blocks: Any, budget: int) -> Section:
    """Return the section of blocks with these descriptions and texts."""
    specs = tuple(BlockSpec(label=f"b{n}", description=about, text=text) for n, (about, text) in enumerate(blocks))
    return core_memory(Runtime(context=Context(blocks=specs, token_budget=budget)))


def whole(prompt: Prompt, tool_tokens: int) -> int:
    """Count what is sent, by our estimate."""
    return text_tokens(prompt.messages[0].text) + tool_tokens + sum(map(message_tokens, prompt.messages[1:]))


@ANYTHING
@given(HISTORIES, STATES, BUDGETS, st.integers(0, 5_000), st.booleans(), PHRASES, BLOCKS)
def test_what_the_model_gets_fits_the_whole_budget_and_the_question_is_in_it(
    messages: list[AnyMessage], state: Any, budget: int, tool_tokens: int, final: bool, system: str, blocks: Any
):
    """B005, B015: or nothing is sent, and only if what cannot be shortened leaves no room for a question."""
    context = Context(token_budget=budget)
    state = {**state, "messages": [SystemMessage(system), *messages]}
    prompt = prompt_of(state, context, core_of(blocks, budget), tool_tokens, final=final)
    assert prompt.tokens == whole(prompt, tool_tokens)
    room = budget / state["token_ratio"] * 7 / 8 - tool_tokens - text_tokens(prompts.fixed_text(context, last=final))
    assert not prompt.refusal or room < 2 * FLOOR + 100
    if not prompt.refusal:
        assert whole(prompt, tool_tokens) * state["token_ratio"] <= budget
        sent = prompt.messages[1:]
        assert refused(sent) is None
        question = sent[last_human(sent)]
        assert question.id == messages[last_human(messages)].id and text_of(question).strip()


@ANYTHING
@given(STATES, PHRASES, st.integers(-50, 8_000), BLOCKS)
def test_sections_fit_their_room_and_keep_their_order(state: Any, extra: str, room: int, blocks: Any):
    made = prompts.sections(state, core_of(blocks, 32_000), extra)
    shown, whole = fitted(made, room), fitted(made, BOUNDLESS)
    assert text_tokens("\n\n".join(shown)) <= max(room, 0)
    heads = [text.split("\n", 1)[0] for text in whole]
    places = [n for text in shown for n, head in enumerate(heads) if text.split("\n", 1)[0][:8] == head[:8]]
    assert places == sorted(places)


@settings(deadline=None)
@given(st.lists(st.integers(1, 400), min_size=1, max_size=6), st.integers(100, 1500))
def test_a_section_within_an_equal_part_is_whole_whatever_the_others_want(sizes: list[int], room: int):
    made = [listed(f"## {n}", ["x" * 40] * size, "({count} more)") for n, size in enumerate(sizes)]
    shown = fitted(made, room)
    for n, section in enumerate(made):
        text = section(BOUNDLESS)
        assert text_tokens(text) + 1 > room // len(made) or text in shown, n


def facts_shown(facts: list[tuple[str, str]], budget: int) -> str:
    state: Any = {
        "recalled": {"facts": facts, "memories": [], "status": "off", "error": ""},
        "messages": [HumanMessage("hi")],
    }
    return text_of(prompt_of(state, Context(token_budget=budget), core_of((), budget), 1000, final=False).messages[0])


@pytest.mark.parametrize("text", ["never peanuts, and no sesame either ", "对花生过敏，也不能吃芝麻"])
def test_the_newest_facts_stay_and_how_many_do_not_is_said(text: str):
    facts = [(f"fact {n}", text * 3) for n in range(200)]
    shown = facts_shown(facts, 4_000)
    count = shown.count('"key"')
    assert 5 < count < 200 and all(f'"fact {n}"' in shown for n in range(count))
    assert prompts.MORE_FACTS.format(count=200 - count) in shown
    assert facts_shown(facts, 64_000).count('"key"') == 200


def test_a_long_fact_does_not_push_out_the_shorter_ones_after_it():
    shown = facts_shown([("novel", "word " * 9_000), ("allergy", "peanuts")], 4_000)
    assert '"peanuts"' in shown and "novel" not in shown and prompts.MORE_FACTS.format(count=1) in shown


def test_a_prompt_without_room_is_not_sent_and_the_thread_goes_on_with_more(scripted):
    agent, model = scripted("Hi.", "Yes.")
    ask(agent, "hello")
    values = ask(agent, "我的航班几点？", token_budget=4_000, instructions="be brief " * 2_000)
    told = values["messages"][-1].text
    assert values["stop_reason"] == "model_error" and len(model.calls) == 1
    assert "may have 4000 tokens (token_budget)" in told and "raise token_budget" in told
    assert answer(agent, "and now?", token_budget=40_000, instructions="be brief " * 2_000) == "Yes."
    assert "我的航班几点？" in [message.text for message in agent.get_state(config()).values["messages"]]

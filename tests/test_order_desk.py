"""The order desk: what a user cares for, told in one thread, leads the answer in another one; another user's stays.

It is kept as a fact, which stands in every prompt: how answers shall be is close in meaning to no single question.
"""

import json
from collections.abc import Sequence
from typing import Any

import pytest
from conftest import ask
from langchain_core.messages import BaseMessage

from graph.agent import open_agent
from graph.scripted import ScriptedModel
from graph.settings import Settings
from nodes import prompts

ORDER = {"price": "1,200 EUR", "logistics": "sails from Rotterdam on Friday", "invoice": "paid"}
ASKED: dict[str, tuple[str, dict[str, str], str]] = {
    "en": (
        "For orders only logistics matter to me.",
        {"key": "orders", "value": "only logistics matter"},
        "What is up with order 1007?",
    ),
    "zh": (
        "查订单的时候我只关心物流 logistics。",
        {"key": "订单", "value": "只关心物流 logistics"},
        "订单 1007 怎么样了？",
    ),
}


def order_lookup(number: str) -> str:
    """Look up an order.

    Args:
        number: its number
    """
    return json.dumps({"number": number, **ORDER})


def told(messages: Sequence[BaseMessage], tools: Sequence[str]) -> str:
    """Tell an order as a model would that reads its prompt: what the facts name goes first."""
    system = messages[0].text
    facts = system.split(prompts.FACTS, 1)[-1].split("\n\n", 1)[0] if prompts.FACTS in system else ""
    fields = sorted(ORDER, key=lambda name: name not in facts)
    return "; ".join(f"{name}: {ORDER[name]}" for name in fields)


@pytest.mark.parametrize("language", ASKED)
def test_what_matters_to_a_user_leads_the_answer_in_a_later_thread_and_no_other_users(
    settings: Settings, language: str
):
    stated, kept, question = ASKED[language]
    look: Any = {"name": "order_lookup", "args": {"number": "1007"}}
    steps = [{"name": "fact_set", "args": kept}, "Noted.", look, told, look, told]
    with ScriptedModel(steps) as model, open_agent(settings, model=model, tools=[order_lookup]) as agent:
        ask(agent, stated, "monday", user="ann")
        ann = ask(agent, question, "friday", user="ann")["messages"][-1].text
        bob = ask(agent, question, "bobs", user="bob")["messages"][-1].text
    assert ann.startswith("logistics: sails from Rotterdam") and bob.startswith("price: ")
    assert sorted(ann.split("; ")) == sorted(bob.split("; ")), "nothing is left out"

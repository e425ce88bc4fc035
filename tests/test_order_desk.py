"""The order desk: what a user cares for, told in one thread, leads the answer days later in another; no other user's.

It is kept as a fact, which stands in every prompt: how answers shall be is close in meaning to no single question. The
model is the built-in one, whose rules know nothing of orders or logistics; the clock is the test's.
"""

import json
from datetime import UTC, datetime, timedelta

import pytest
from conftest import answer

from graph.agent import open_agent
from graph.settings import Settings
from memory.facts import Facts

MONDAY = datetime(2026, 5, 4, 9, tzinfo=UTC)
ORDERS = {
    "en": {"price": "1,200 EUR", "logistics": "sails from Rotterdam on Friday", "invoice": "paid"},
    "zh": {"价格": "9,600 元", "物流": "周五从鹿特丹启航", "发票": "已付"},
}
STORIES = {
    "en": ("For orders only logistics matter to me.", "orders", "What is up with order 1007?", "logistics"),
    "zh": ("查订单的时候我只关心物流。", "订单", "订单 1007 怎么样了？", "物流"),
    "en, otherwise": (
        "When I ask about orders, I care most about the invoice.",
        "orders",
        "And order 1007?",
        "invoice",
    ),
    "zh, otherwise": ("订单方面，对我来说发票最重要。", "订单", "订单1007到哪一步了？", "发票"),
}


def desk(language: str):
    """Return the tool of an order desk in this language."""

    def order_lookup(number: str) -> str:
        """Look up an order. 查询订单。

        Args:
            number: its number 订单号
        """
        return json.dumps({"number": number, **ORDERS[language]}, ensure_ascii=False)

    return order_lookup


@pytest.mark.parametrize("story", STORIES)
def test_what_matters_to_a_user_leads_the_answer_days_later_in_another_thread_and_no_other_users(
    settings: Settings, story: str
):
    stated, about, question, leads = STORIES[story]
    order, time = ORDERS[story[:2]], [MONDAY]
    with open_agent(settings, tools=[desk(story[:2])], clock=lambda: time[0]) as agent:
        assert stated.rstrip("。.")[-4:] in answer(agent, stated, "monday", user="ann")
        time[0] += timedelta(days=4)
    with open_agent(settings, tools=[desk(story[:2])], clock=lambda: time[0]) as agent:
        ann = answer(agent, question, "friday", user="ann")
        bob = answer(agent, question, "bobs", user="bob")
        (kept,), others = Facts(agent.store, user="ann").all(), Facts(agent.store, user="bob").all()
        assert Facts(agent.store, user="ann").get(about, when=MONDAY - timedelta(days=1)) == []
    lines = ann.splitlines()[1:], bob.splitlines()[1:]
    assert lines[0][0].startswith(leads) and order[leads] in lines[0][0]
    assert lines[1][0].startswith("number") and "1007" in lines[1][0]
    assert sorted(lines[0]) == sorted(lines[1]) and len(lines[0]) == 4, "nothing is left out"
    assert (kept.key, kept.since[:10], kept.thread, others) == (about, "2026-05-04", "monday", [])

"""What memory brings up unasked, through the real graph: when, how much, of how many kinds; and for whom."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from conftest import ask, config, said
from hypothesis import given
from hypothesis import strategies as st
from langgraph.store.memory import InMemoryStore
from memory_streams import WINDOW
from talking import Talking

from graph.agent import Agent, build_agent, compiled, open_agent
from graph.scripted import ScriptedModel
from graph.settings import Settings
from memory.facts import Facts
from memory.memories import Memories
from nodes import prompts
from nodes.bringing import considered, fitting, trigger_in
from nodes.context import TRIGGERS, Context
from nodes.tokens import text_tokens
from nodes.trace import RecalledMemory

Opened = Callable[[], tuple[Agent, Talking]]


@pytest.fixture(scope="module")
def talked(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Two users who each told something in a thread, with the embedder that a user has."""
    model = Talking(then="Noted: the red boxes go by ship.")
    with open_agent(Settings(home=tmp_path_factory.mktemp("bring") / "home"), model=model) as agent:
        for user, harbour in (("ann", "Rotterdam"), ("bob", "Genoa")):
            ask(
                agent,
                f"We ship the red boxes through {harbour}. 红色的箱子走{harbour}港。",
                f"{user}-old",
                user=user,
                extract="off",
            )
            Memories(agent.store, user=user).save(f"{user} prefers sea freight for the red boxes")  # type: ignore[arg-type]
            Facts(agent.store, user=user).set("allergy", f"nuts of {user}")  # type: ignore[arg-type]
        yield agent, model


def recalled(
    talked: Any, question: str, user: str = "ann", thread: str = "new", **context: Any
) -> list[RecalledMemory]:
    agent, _ = talked
    memories: list[RecalledMemory] = ask(agent, question, f"{thread}-{user}", user=user, extract="off", **context)[
        "recalled"
    ]["memories"]
    return memories


@pytest.mark.parametrize(
    ("question", "policy", "is_searched", "reaches_back"),
    [
        ("How do we ship the red boxes?", "tool", False, False),
        ("How do we ship the red boxes?", "inject", True, False),
        ("How do we ship the red boxes?", "both", True, False),
        ("As we agreed, through which harbour do we ship the red boxes?", "tool", True, True),
        ("LAST TIME, how did we ship the red boxes?", "tool", True, True),
        ("上次说的红色的箱子走哪个港？", "tool", True, True),
        ("你还记得红色的箱子怎么走吗", "inject", True, True),
    ],
)
@pytest.mark.parametrize("user", ["ann", "bob"])
def test_memory_is_searched_by_the_policy_or_when_the_question_refers_back(
    talked: Any, question: str, policy: Any, is_searched: bool, reaches_back: bool, user: str
):
    found = recalled(talked, question, user, memory=policy)
    mine, other = ("Rotterdam", "Genoa") if user == "ann" else ("Genoa", "Rotterdam")
    assert any("sea freight" in one["text"] for one in found) == is_searched
    assert any(mine in one["text"] for one in found) == reaches_back
    assert not any(other in one["text"] or ("bob" if user == "ann" else "ann") in one["text"] for one in found)
    system = talked[1].calls[-1][0][0].text
    assert f"nuts of {user}" in system, "facts always stand in the prompt"
    assert (prompts.MEMORIES in system) == is_searched and (
        "said by the user in an earlier conversation" in system
    ) == reaches_back


def test_the_words_that_force_a_search_are_configured_and_told(talked: Any):
    agent, _ = talked
    values = ask(
        agent,
        "Wie besprochen: the red boxes?",
        "de",
        user="ann",
        memory="tool",
        triggers=("wie besprochen",),
        extract="off",
    )
    assert values["steps"][0]["detail"]["trigger"] == "wie besprochen" and values["recalled"]["status"] == "found"
    values = ask(agent, "As we agreed: the red boxes?", "de", user="ann", memory="tool", triggers=(), extract="off")
    assert values["steps"][0]["detail"]["trigger"] == "" and values["recalled"]["status"] == "off"


@pytest.mark.parametrize("words", TRIGGERS)
def test_every_trigger_is_heard_within_a_sentence_and_not_within_a_word(words: str):
    context = Context()
    assert trigger_in(f"Well, {words.upper()}: what was it?", context)
    if words.isascii():
        assert not trigger_in(f"x{words}x", Context(triggers=(words,)))


@given(st.text(max_size=50), st.lists(st.text(max_size=5), max_size=4))
def test_any_words_can_be_triggers(question: str, words: list[str]):
    found = trigger_in(question, Context(triggers=tuple(words)))
    assert found == "" or found in words


def test_nothing_that_fits_is_a_fine_answer(talked: Any):
    agent, model = talked
    values = ask(agent, "Compute the orbit of Neptune", "neptune", user="ann", extract="off")
    assert values["recalled"]["status"] == "nothing" and values["recalled"]["memories"] == []
    assert prompts.NOTHING_RECALLED in model.calls[-1][0][0].text


@pytest.mark.parametrize("way", ["sync", "async"])
def test_twelve_restatements_leave_room_in_the_prompt(settings: Settings, way: str):
    """B134: k = 5; what is alike is one, and an allergy stands beside it."""
    with ScriptedModel(["ok"]) as model, open_agent(settings, model=model) as agent:
        memories = Memories(agent.store, user="me")  # type: ignore[arg-type]
        for text in (*WINDOW, "The user is allergic to nuts."):
            memories.save(text)
        context = Context(recall_k=5, recall_threshold=-1)
        run = agent.invoke if way == "sync" else lambda *a, **k: asyncio.run(agent.ainvoke(*a, **k))
        values = run(said("book a flight with meal"), config(), context=context)
    texts = [one["text"] for one in values["recalled"]["memories"]]
    assert "The user is allergic to nuts." in texts and len(texts) == 5
    assert (
        len(
            {
                text
                for text in texts
                if "window seat" in text and "flight" not in text.lower() and "fly" not in text.lower()
            }
        )
        <= 2
    )


def test_what_is_brought_up_stays_within_its_tokens_and_what_is_left_out_is_told(talked: Any):
    agent, _ = talked
    memories = Memories(agent.store, user="cleo")  # type: ignore[arg-type]
    for n in range(8):
        memories.save(f"tea {'A' * n} number {n}: " + f"green tea from garden {n} " * 20)
    memories.save("likes tea")
    context = Context(recall_k=9, recall_threshold=-1, recall_tokens=300)
    rows = recalled(talked, "tea", "cleo", recall_k=9, recall_threshold=-1, recall_tokens=300)
    assert 1 < len(rows) < 9 and sum(text_tokens(row["text"]) for row in rows) <= 300
    assert any(row["text"] == "likes tea" for row in rows), "a short one fits where a long one does not"
    reasons = [one.left_out for one in considered(agent.store, "tea", context, user="cleo")]  # type: ignore[arg-type]
    assert reasons.count("no room in 300 tokens (recall_tokens)") == 9 - len(rows)
    assert recalled(talked, "tea", "cleo", recall_tokens=0) == []


@given(st.lists(st.integers(0, 60), max_size=12), st.integers(0, 100))
def test_what_fits_never_exceeds_the_budget_and_nothing_that_would_fit_is_left(sizes: list[int], tokens: int):
    rows = [RecalledMemory(id=str(n), text="字" * size, at="", score=None, why="") for n, size in enumerate(sizes)]
    fits = fitting(rows, tokens)
    used = sum(size for size, fit in zip(sizes, fits, strict=True) if fit)
    assert used <= tokens
    assert all(size > tokens - used for size, fit in zip(sizes, fits, strict=True) if not fit)


def test_a_search_that_fails_is_told_and_the_facts_are_there_all_the_same():
    class Broken(InMemoryStore):
        def search(self, *args: Any, **options: Any) -> Any:
            if options.get("query"):
                raise OSError("gone")
            return super().search(*args, **options)

    store = Broken()
    Facts(store, user="me").set("name", "Mara")
    with ScriptedModel(["ok"]) as model:
        values = compiled(build_agent(model=model), None, store).invoke(said("who am I?"), context=Context())
    assert values["recalled"]["status"] == "failed" and values["recalled"]["facts"] == [("name", "Mara")]
    assert prompts.RECALL_FAILED in model.calls[0][0][0].text and "Mara" in model.calls[0][0][0].text

"""Compaction through the real graph: the page stays short, the record stays whole."""

import json
import random
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from conftest import ask, config, said
from histories import refused
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, AnyMessage, BaseMessage, HumanMessage, ToolMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.store.memory import InMemoryStore
from talking import NOTHING, Talking, filed, ids_in, opened, summary_of
from test_valid import MESSAGES
from wire_rules import Rules, reject, wire_messages

from graph.agent import Agent, build_agent, compiled
from memory.facts import Facts
from memory.memories import Memories
from memory.times import now
from memory.transcript import Transcript
from nodes import prompts
from nodes.context import Context
from nodes.cut import HARD_LIMIT
from nodes.kinds import entry_of
from nodes.state import add_clean_messages
from nodes.summary import CHINESE, ENGLISH
from nodes.text import last_human, question_of, text_of
from nodes.tokens import message_tokens, schema_tokens, text_tokens
from nodes.toolbox import OWN_TOOLS

BUDGET = 4_500 + sum(tool.tokens for tool in OWN_TOOLS) + text_tokens(prompts.fixed_text(Context()))
"""Beside tools and house rules, however many they become, there are 4,500 tokens for the page."""

Opened = Callable[..., tuple[Agent, Talking]]


def look_up(text: str, times: int = 1) -> str:
    """Look up.

    Args:
        text: what to look up
        times: how long the answer is
    """
    return text * times


@pytest.fixture
def talking(tmp_path: Path) -> Iterator[Opened]:
    """Open the agent on Chroma and SQLite with a talking model; its script must be used up."""
    with ExitStack() as stack:

        def make(*steps: Any, **reflexes: Any) -> tuple[Agent, Talking]:
            model = Talking(steps, **reflexes)
            return stack.enter_context(opened(tmp_path / "home", model, tools=[look_up])), model

        yield make


def in_memory(model: Talking) -> Agent:
    """Compile on LangGraph's own saver and store in memory, where many histories are cheap."""
    return compiled(build_agent(model=model, tools=[look_up]), InMemorySaver(), InMemoryStore())


def calls(*texts: str, times: int = 1) -> list[dict[str, Any]]:
    return [{"name": "look_up", "args": {"text": text, "times": times}} for text in texts]


class Watched:
    """A thread whose every message is noted as it comes, before anything may leave."""

    def __init__(self, agent: Agent, model: Talking, **context: Any) -> None:
        self.agent, self.model, self.context = agent, model, Context(**context)
        self.ever: list[AnyMessage] = []
        self.cuts = 0

    def seed(self, messages: list[Any]) -> None:
        """Put messages into the state as they may stand in an old or broken thread."""
        cleaned = add_clean_messages(self.page(), messages)
        self.agent.update_state(config(), {"messages": cleaned}, as_node="summarize")
        known = {message.id for message in self.ever}
        self.ever += [message for message in self.page() if message.id not in known]

    def page(self) -> list[AnyMessage]:
        return list(self.agent.get_state(config()).values.get("messages", []))

    def turn(self, content: Any) -> list[AnyMessage]:
        """Run one turn; check what must hold for every turn; return what is on the page."""
        question = HumanMessage(content, id=f"question-{len(self.ever)}")
        before, first = self.page(), len(self.model.calls)
        for values in self.agent.stream({"messages": [question]}, config(), context=self.context, stream_mode="values"):
            known = {message.id for message in before}
            new = [message for message in values["messages"] if message.id not in known]
            self.ever, before = [*self.ever, *new], [*before, *new]
        self.cuts += sum(bool(step["detail"].get("removed")) for step in values["steps"])
        page = self.page()
        assert page == before[len(before) - len(page) :]
        assert question in page and page[last_human(page)] == question
        for sent, _ in self.model.calls[first:]:
            assert refused(sent[1:]) is None
            assert sent[last_human(sent)].id == question.id
        self.check_record(page)
        return page

    def check_record(self, page: list[AnyMessage]) -> None:
        """All that was ever said is in the transcript, whole."""
        store = self.agent.store
        assert store is not None
        stored = {
            (e.id, json.dumps(e.data, sort_keys=True)) for e in Transcript(store, user="me", thread="t").entries()
        }
        expected = {(e.id, json.dumps(e.data, sort_keys=True)) for e in (entry_of(m, now()) for m in self.ever)}
        assert stored == expected
        assert {message.id for message in page} <= {message.id for message in self.ever}


@pytest.mark.parametrize("compactions", [1, 5, 20])
def test_after_any_number_of_compactions_the_page_is_valid_and_the_record_whole(talking: Opened, compactions: int):
    """B001, B003, B005: turns with parallel calls, Chinese, pictures; on Chroma and SQLite."""
    rng = random.Random(compactions)
    agent, model = talking(then="Yes.")
    thread = Watched(agent, model, max_messages=6)
    picture = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}
    while thread.cuts < compactions:
        n = len(thread.ever)
        if rng.random() < 0.5:
            model._steps += [calls(*(f"result {n}-{i}" for i in range(rng.randint(1, 3)))), f"回答 {n}"]
        page = thread.turn(rng.choice([f"问题 {n}", [{"type": "text", "text": f"picture {n}"}, picture]]))
    assert len(page) <= 6 + 5
    assert agent.get_state(config()).values["summary"]


@settings(
    deadline=None,
    max_examples=15,
    suppress_health_check=[HealthCheck.too_slow],
    phases=[Phase.explicit, Phase.reuse, Phase.generate],  # each example is a conversation: to shrink one takes minutes
)
@given(st.lists(MESSAGES, min_size=1, max_size=3))
def test_any_stored_history_is_compacted_without_loss(histories: list[list[BaseMessage]]):
    """B001, B007, B009, B012, B031: broken threads too, with late results, odd roles and ids that come back."""
    model = Talking(then="Yes.")
    thread = Watched(in_memory(model), model, max_messages=4, extract="off")
    for n, history in enumerate(histories):
        thread.seed([m.model_copy(update={"id": f"s{n}-{i}"}) for i, m in enumerate(history) if m.type != "remove"])
        for _ in range(3):
            page = thread.turn("and now?")
    assert len(page) <= 6 or thread.cuts


def test_the_page_is_cut_by_count_before_a_user_message(talking: Opened):
    agent, _ = talking(then="Yes.")
    for n in range(6):
        values = ask(agent, f"q{n}", max_messages=10)
        assert not values.get("summary") or n == 5
    assert [m.text for m in values["messages"]] == ["q3", "Yes.", "q4", "Yes.", "q5", "Yes."][
        -len(values["messages"]) :
    ]
    assert isinstance(values["messages"][0], HumanMessage) and len(values["messages"]) <= 5


LONG = "All work and no play makes a dull page. " * 250  # 2,500 tokens


def long_schema(text: str) -> str:
    """Take a text.

    Args:
        text: the text
    """
    return text


long_schema.__doc__ = f"Take a text.\n\nArgs:\n    text: {LONG}\n"


@pytest.mark.parametrize("what", ["nothing", "instructions", "facts", "recalled", "schemas", "messages"])
def test_the_page_is_cut_by_the_tokens_of_all_that_is_sent(tmp_path: Path, what: str):
    """B015: system text, facts, recalled memories and schemas count as the messages do."""
    model = Talking(then="Yes.")
    with opened(tmp_path / "home", model, tools=[long_schema] if what == "schemas" else ()) as agent:
        assert agent.store is not None
        if what == "facts":
            for n in range(10):
                Facts(agent.store, user="me").set(f"fact {n}", LONG[:1000])
        if what == "recalled":
            for n in range(5):
                Memories(agent.store, user="me").save(f"tea {n} {LONG[:1900]}")
        options = {"instructions": LONG} if what == "instructions" else {}
        text = f"tea {LONG[:4000]}"
        for content in (text, text, text + LONG if what == "messages" else text):
            values = ask(agent, content, token_budget=BUDGET, recall_threshold=-1.0, **options)
    assert bool(values.get("summary")) == (what != "nothing")
    assert len(values["messages"]) == 6 if what == "nothing" else len(values["messages"]) < 6


def test_pictures_do_not_cut_the_page(talking: Opened):
    """B018: 400,000 characters of base64 are one picture."""
    agent, _ = talking(then="Yes.")
    picture = {"type": "image_url", "image_url": {"url": "data:image/png;base64," + "A" * 400_000}}
    ask(agent, [{"type": "text", "text": "look"}, picture], token_budget=8000)
    values = ask(agent, "and?", token_budget=8000)
    assert not values.get("summary") and len(values["messages"]) == 4


def answer_with_usage(tokens: Any) -> AIMessage:
    usage = None if tokens is None else {"input_tokens": tokens, "output_tokens": 1, "total_tokens": tokens + 1}
    return AIMessage("Yes.", usage_metadata=usage)


@pytest.mark.parametrize(("reported", "cut"), [(None, False), (0, False), (1000, False), (12_000, True)])
def test_the_count_follows_what_the_provider_reports(talking: Opened, reported: Any, cut: bool):
    """B044: a prompt of about 4,000 tokens by our estimate; the provider may know better, or tell nothing."""
    agent, _ = talking(*[answer_with_usage(reported)] * 3)
    for text in (LONG, "and?", "and?"):
        values = ask(agent, text, token_budget=8000)
    assert bool(values.get("summary")) == cut


def test_a_true_report_leaves_the_ratio_at_one(talking: Opened):
    """The room that is kept for an answer is no part of the prompt that the report is about."""
    agent, model = talking()

    def answer(messages: list[BaseMessage], tools: list[str]) -> AIMessage:
        schemas = [one.schema for one in OWN_TOOLS if one.name in tools]
        sent = text_tokens(messages[0].text) + sum(map(message_tokens, messages[1:]))
        return answer_with_usage(sent + schema_tokens(schemas))

    model._steps += [answer] * 3
    for _ in range(3):
        values = ask(agent, "Hi", tools=("recall", "memory_save", "calculator"))
    assert values["token_ratio"] == pytest.approx(1.0, abs=0.01)


def test_a_long_tool_loop_is_cut_in_mid_turn_and_goes_on(talking: Opened):
    """B005: by the default policy, which reads before it cuts; the turn at hand is untouched."""
    agent, model = talking("A", "B", calls("x", times=10_000), calls("y", times=10_000), calls("z"), "Done.")
    ask(agent, "My dog is called Rex. " + LONG, token_budget=8000)
    ask(agent, "second", token_budget=8000)
    values = ask(agent, "Look up three things", token_budget=8000)
    nodes = [step["node"] for step in values["steps"]]
    assert nodes.count("summarize") >= 1 and nodes.index("summarize") < len(nodes) - 3
    assert [m.type for m in values["messages"]] == ["human", *["ai", "tool"] * 3, "ai"]
    assert values["messages"][0].text == "Look up three things" and values["messages"][-1].text == "Done."
    assert [len(m.text) for m in values["messages"] if isinstance(m, ToolMessage)] == [10_000, 10_000, 1]
    (first, *_), sent = model.asked("summary"), model.calls[-1][0]
    assert "called Rex" in first and "called Rex" in model.asked("extract")[0]
    assert sent[last_human(sent)].text == "Look up three things" and refused(sent[1:]) is None


def test_a_close_waits_for_the_answer_of_a_turn_that_was_cut_in_the_middle(talking: Opened):
    agent, model = talking("A", calls("x", times=20_000), "Done.")
    ask(agent, LONG, token_budget=BUDGET)
    values = agent.invoke({**said("Look up"), "close": True}, config(), context=Context(token_budget=BUDGET))
    assert values["messages"][-1].text == "Done." and not values["close"]
    (abstracted,) = model.asked("abstract")
    assert "Done." in abstracted


@pytest.mark.parametrize("who", ["tool", "user", "earlier"])
def test_one_huge_message_is_shortened_in_presentation_only_and_can_be_read_whole(talking: Opened, who: str):
    """B005, B035: also in the turn in which it came, when nothing of it is filed yet."""
    huge = "".join(f"clause {n} of the lease. " for n in range(1500))
    seen: list[str] = []
    ids: list[str] = []

    def read_on(messages: list[BaseMessage], tools: list[str]) -> Any:
        text, _, note = messages[-1].text.partition("\n[characters ")
        seen.extend([text] if note else [])
        if note.endswith("the end]"):
            return "I read it all."
        for shown in (message.text for message in messages[1:] if "are not shown here" in message.text):
            ids.append(shown.split("tool_result(id='", 1)[1].split("'", 1)[0])
        offset = int(note.rsplit("offset ", 1)[1].rstrip("]")) if note else 0
        return {"name": "tool_result", "args": {"id": ids[0], "offset": offset}, "id": f"read-{offset}"}

    first: list[Any] = {"tool": [calls(huge)], "user": [], "earlier": ["Got it."]}[who]
    agent, _ = talking(*first, then=read_on, summary=lambda request: TimeoutError("no"))
    options: dict[str, Any] = {"token_budget": BUDGET, "max_steps": 60, "max_result_chars": 1_000_000, "extract": "off"}
    if who == "earlier":
        ask(agent, huge, **options)
    values = ask(agent, huge if who == "user" else "What does clause 12 say?", **options)
    assert values["messages"][-1].text == "I read it all." and "".join(seen) == huge
    assert huge in [text_of(message) for message in values["messages"]]


FAILURES = [TimeoutError("no"), "", "  \n", "Error: 429", "<think>hm", "\n".join(ENGLISH)]


@pytest.mark.parametrize("bad", FAILURES)
def test_a_summary_that_failed_changes_nothing_and_is_tried_again(talking: Opened, bad: Any):
    """B013: past the budget, the oldest turns leave the prompt with a note, not the state."""
    replies = [bad]
    agent, model = talking(then="Yes.", summary=lambda request: replies[-1])
    for n in range(3):
        values = ask(agent, f"q{n} {LONG}", token_budget=7000, extract="off")
    assert len(values["messages"]) == 6 and not values.get("summary")
    told = [step["detail"] for step in values["steps"] if step["node"] == "summarize"]
    assert [one["removed"] for one in told] == [0] and told[0]["why"]
    sent = model.calls[-1][0]
    assert "earlier messages of this conversation are not shown here" in sent[0].text
    assert sent[-1].text.startswith("q2") and len(sent) < 6
    replies.append(summary_of("it works again"))
    values = ask(agent, "q3", token_budget=7000, extract="off")
    assert "it works again" in values["summary"] and len(values["messages"]) == 2


class Breaking(InMemoryStore):
    """A store that can be broken for a while."""

    broken = False

    def batch(self, ops: Any) -> Any:
        if self.broken:
            raise OSError("the disk is gone")
        return super().batch(ops)


@pytest.mark.parametrize("after", ["reason", "remember"])
def test_a_store_that_fails_at_the_cut_changes_nothing_and_the_answer_stands(after: str):
    """What is not known to be in the record does not leave; the next turn files it and cuts."""
    model, store = Talking(then="Yes."), Breaking()
    agent = compiled(build_agent(model=model), InMemorySaver(), store)
    context = Context(max_messages=4, extract="off")
    for n in range(3):
        store.broken = False
        for part in agent.stream(said(f"q{n}"), config(), context=context, stream_mode="updates"):
            store.broken = store.broken or (n == 2 and after in part)
    values = agent.get_state(config()).values
    assert [m.text for m in values["messages"]] == ["q0", "Yes.", "q1", "Yes.", "q2", "Yes."]
    assert not values.get("summary") and not model.asked("summary")
    (why,) = [step["detail"]["why"] for step in values["steps"] if step["node"] == "summarize"]
    assert "the transcript cannot be read" in why and "the disk is gone" in why
    store.broken = False
    values = ask(agent, "q3", max_messages=4, extract="off")
    assert values["summary"] and len(values["messages"]) <= 4
    assert {f"q{n}" for n in range(4)} <= {text for texts in filed(store).values() for text in texts}


@pytest.mark.parametrize(
    ("texts", "first", "second", "kept"),
    [
        (("我要订票", "靠窗", "三千元"), summary_of("they talked"), summary_of("他们谈了"), "他们谈了"),
        (("book it", "for 李伟", "by the window"), summary_of("他们谈了"), summary_of("they talked"), "they talked"),
        (("我要订票", "靠窗", "三千元"), summary_of("they talked"), TimeoutError("no"), "they talked"),
        (("我要订票", "靠窗", "三千元"), summary_of("they talked"), summary_of("again"), "again"),
    ],
)
def test_a_summary_in_another_language_is_asked_for_once_more(
    talking: Opened, texts: tuple[str, ...], first: Any, second: Any, kept: str
):
    """B131: better in another language than none."""
    agent, model = talking(then="Yes.", summary=lambda request: second if prompts.FOREIGN in request else first)
    for text in texts:
        values = ask(agent, text, max_messages=4, extract="off")
    assert kept in values["summary"] and len(model.asked("summary")) == 2
    assert values["summary"].startswith(CHINESE[0] if "票" in texts[0] else ENGLISH[0])


def test_all_that_leaves_reaches_a_summariser_with_a_small_window(talking: Opened):
    """B021, B025: the allergy of message 1, sixty long turns later."""
    agent, model = talking(then="Yes.", window=4000)
    ask(agent, "my allergy is penicillin, keep that in mind", max_messages=122, token_budget=4000)
    history = [m for n in range(60) for m in (HumanMessage(f"turn {n} {LONG[:2000]}", id=f"h{n}"), AIMessage(f"a {n}"))]
    agent.update_state(config(), {"messages": history}, as_node="summarize")
    values = ask(agent, "and now?", max_messages=4, token_budget=4000, extract="off")
    assert len(values["messages"]) == 2
    requests = model.asked("summary")
    assert len(requests) > 5 and "penicillin" in requests[0]
    shown = "\n".join(requests)
    assert all(f'"id": "h{n}"' in shown and f"turn {n} " in shown for n in range(60))


def test_one_message_larger_than_the_window_reaches_it_whole_and_in_parts(talking: Opened):
    agent, model = talking(then="Yes.", window=4000)
    words = [f"word{n}" for n in range(6000)]
    history = [HumanMessage(" ".join(words), id="big"), AIMessage("ok")]
    agent.update_state(config(), {"messages": history}, as_node="summarize")
    ask(agent, "and now?", max_messages=4, token_budget=4000, extract="off")
    lines = [
        json.loads(line) for request in model.asked("summary") for line in request.split("\n") if '"id": "big"' in line
    ]
    assert len(lines) > 5 and "".join(line["text"] for line in lines) == " ".join(words)


def test_each_summary_builds_on_the_one_before(talking: Opened):
    """B011."""
    agent, model = talking(then="Yes.")
    thread = Watched(agent, model, max_messages=4, extract="off")
    for _ in range(12):
        thread.turn("go on")
    requests = model.asked("summary")
    assert len(requests) >= 4
    for n, request in enumerate(requests[1:], start=1):
        previous = json.loads(next(line for line in request.split("\n") if line.startswith('{"previous_summary"')))
        assert previous["previous_summary"].count("more messages") == n
        assert not set(ids_in(request)) & set(ids_in(requests[n - 1]))
    assert agent.get_state(config()).values["summary"].count("more messages") == len(requests)


ODD = [
    *(
        ("summary", one)
        for one in (None, "", "  ", "## Open items", "x" * 50_000, '{"a": 1}', "\n".join(ENGLISH), 5, ["a"])
    ),
    *(("token_ratio", one) for one in (0, -1, float("nan"), float("inf"), 1e9, None, "1")),
    *(("page_tokens", one) for one in (-5, 10**12, 1.5)),
    *(("extracted_to", one) for one in (None, "", "gone", 5)),
    *(("stop_reason", one) for one in (None, "", "odd")),
    *(("recalled", one) for one in (None, {}, {"status": "found"})),
    *(("cut_tried", one) for one in (None, True, "x")),
    *(("close", one) for one in (None, 0)),
]


@pytest.mark.parametrize(("name", "value"), ODD, ids=str)
def test_a_state_edited_by_hand_goes_on_is_cut_and_loses_nothing(name: str, value: Any):
    model = Talking(then="Yes.")
    agent = in_memory(model)
    for n in range(3):
        ask(agent, f"q{n}", max_messages=4)
    agent.update_state(config(), {name: value}, as_node="summarize")
    for n in range(3, 7):
        values = ask(agent, f"q{n}", max_messages=4)
    assert values["messages"][-1].text == "Yes." and len(values["messages"]) <= 6 and values["summary"]
    assert {f"q{n}" for n in range(7)} <= {text for texts in filed(agent.store).values() for text in texts}


def test_open_items_stay_until_the_summary_says_what_became_of_them(talking: Opened):
    answers = iter(["## Open items\n- pay invoice INV-2041\n- 给李伟回电话", *[summary_of("they talked")] * 3])
    agent, _ = talking(then="Yes.", summary=lambda request: next(answers, summary_of("invoice INV-2041 was paid")))
    seen = []
    for n in range(15):
        values = ask(agent, f"q{n}", max_messages=4, extract="off")
        seen += [values["summary"]] if values.get("summary") not in (None, *seen[-1:]) else []
    assert all("- pay invoice INV-2041" in one for one in seen[:2]) and len(seen) >= 2
    assert "- pay invoice INV-2041" not in seen[-1] and "INV-2041 was paid" in seen[-1]
    assert all("- 给李伟回电话" in one for one in seen)


def test_a_fork_from_before_a_cut_and_a_replay_leave_a_whole_thread_and_a_whole_record(talking: Opened):
    agent, model = talking(then=lambda messages, tools: f"answer to {messages[-1].text}")
    for n in range(8):
        ask(agent, f"q{n}", max_messages=4, extract="off")
    history = list(agent.get_state_history(config()))
    early = next(one for one in history if one.next == ("reason",) and question_of(one.values["messages"]) == "q1")
    replayed = agent.invoke(None, early.config, context=Context(max_messages=4, extract="off"))
    assert [m.text for m in replayed["messages"]][-2:] == ["q1", "answer to q1"]
    edited = HumanMessage("q1, but other", id=early.values["messages"][-1].id)
    forked = agent.update_state(early.config, {"messages": [edited]})
    agent.invoke(None, forked, context=Context(max_messages=4, extract="off"))
    for n in range(3):
        values = ask(agent, f"later {n}", max_messages=4, extract="off")
    assert values["summary"] and "q5" not in str(values["messages"])
    record = {text for texts in filed(agent.store).values() for text in texts}
    assert {*(f"q{n}" for n in range(8)), "q1, but other", "answer to q1, but other", "later 2"} <= record
    for sent, _ in model.calls:
        assert refused(sent[1:]) is None


def test_identifiers_survive_a_summariser_that_drops_them(talking: Opened):
    agent, _ = talking(then="Yes.", summary=lambda request: summary_of("they talked"))
    for text in ("order QX-7781 for li.wei@example.com", "问题单 20261130 在 /srv/data/a.csv", "a", "b", "c", "d", "e"):
        values = ask(agent, text, max_messages=4, extract="off")
    for identifier in ("QX-7781", "li.wei@example.com", "20261130", "/srv/data/a.csv"):
        assert identifier in values["summary"]


def test_a_summary_stays_within_its_bound(talking: Opened):
    agent, _ = talking(then="Yes.", summary=lambda request: summary_of(*(f"line {n} of many" for n in range(3000))))
    for _ in range(6):
        values = ask(agent, "go on", max_messages=4, extract="off", summary_tokens=300)
    assert 200 < text_tokens(values["summary"]) <= 300 and "line 2999" in values["summary"]


def test_what_extraction_has_not_read_stays_until_the_hard_limit(talking: Opened):
    agent, model = talking(then="Yes.", extract=lambda request: ConnectionError("down"))
    sizes = [len(ask(agent, f"q{n}", max_messages=6)["messages"]) for n in range(9)]
    assert sizes[:6] == [2, 4, 6, 8, 10, 12] and max(sizes) <= HARD_LIMIT * 6 + 2
    assert not model.asked("summary")[1:] or sizes[6] < 12
    assert sizes[6] <= 6


def test_extraction_reads_all_in_parts_that_its_window_can_hold(talking: Opened):
    """B025: and goes on after the part that failed."""
    down: list[bool] = [False]

    def extract(request: str) -> Any:
        if down[0] and "the end" in request:
            return ConnectionError("down")
        return json.dumps({"memories": [], "facts": []})

    agent, model = talking(then="Yes.", extract=extract, window=4000)
    words = [f"word{n}" for n in range(4000)]
    texts = {"big": " ".join(words), "two": LONG, "three": "the end"}
    history = [HumanMessage(text, id=name) for name, text in texts.items()]
    agent.update_state(config(), {"messages": history}, as_node="summarize")
    down[0] = True
    assert ask(agent, "and?", token_budget=4000)["extracted_to"] == "big"
    lines = [
        json.loads(line) for request in model.asked("extract") for line in request.split("\n") if '"id": "big"' in line
    ]
    assert len(lines) > 5 and "".join(line["text"] for line in lines) == " ".join(words)
    down[0] = False
    first = len(model.asked("extract"))
    ask(agent, "and?", token_budget=4000, max_messages=4)
    assert '"id": "big"' not in "".join(model.asked("extract")[first:])


def test_facts_are_read_before_the_cut_and_in_every_prompt_after_it(talking: Opened):
    """Not from the summary, which may blur them."""

    def extract(request: str) -> str:
        first = next(
            (line for line in map(json.loads, request.split("\n")) if "peanuts" in line["text"] and "id" in line), None
        )
        if first is None:
            return NOTHING
        return json.dumps({"facts": [{"key": "allergy", "value": "peanuts", "source": first["id"]}], "memories": []})

    agent, model = talking(then="Yes.", extract=extract, summary=lambda request: summary_of("they talked of food"))
    for text in ("I must not eat peanuts", "b", "c", "d", "e"):
        ask(agent, text, max_messages=4)
    assert [(fact.key, fact.value) for fact in Facts(agent.store, user="me").all()] == [("allergy", "peanuts")]
    for sent, _ in model.calls[3:]:
        assert '{"key": "allergy", "value": "peanuts"}' in sent[0].text


def test_recalled_memories_are_never_extracted_again(talking: Opened):
    """B126: twenty turns of small talk about a known user leave one memory."""

    def parrot(request: str) -> str:
        lines = [json.loads(line) for line in request.split("\n")]
        source = next(line["id"] for line in lines if "id" in line)
        texts = [text for line in lines if "known" in line for text in (line["text"], f"Mara, {line['text']}")]
        return json.dumps({"memories": [{"text": text, "source": source} for text in texts], "facts": []})

    agent, model = talking(then="Yes.", extract=parrot)
    before, _ = Memories(agent.store, user="me").save("User is Mara, 41, pilot")
    for n in range(20):
        ask(agent, f"nice day {n}, pilot", max_messages=4, extract="turn", recall_threshold=-1.0)
    assert any("Mara" in sent[0].text for sent, _ in model.calls)
    assert any('"known"' in request and "Mara" in request for request in model.asked("extract"))
    assert Memories(agent.store, user="me").all(past=True) == [before]


def test_no_two_user_messages_meet_where_the_page_was_cut(talking: Opened):
    """B080: the summary stands in the one system message."""
    agent, model = talking(then="Yes.")
    for n in range(12):
        ask(agent, f"q{n}", max_messages=4, extract="off")
    for sent, _ in model.calls:
        body = {"model": "test-model", "messages": wire_messages(sent)}
        assert reject(body, Rules(alternating_roles=True)) is None


def test_summaries_extractions_and_abstracts_stay_out_of_the_stream_and_show_in_the_trace(talking: Opened):
    """B024: by `stream_mode="messages"`, and in the steps as what they are."""
    agent, _ = talking(then="Yes.", summary=lambda request: summary_of("SECRET"), abstract=lambda request: "SECRET")
    seen = ""
    for n in range(5):
        turn: Any = {**said(f"q{n}"), "close": n == 4}
        parts = agent.stream(turn, config(), context=Context(max_messages=4), stream_mode="messages")
        seen += "".join(message.text for message, _ in parts if isinstance(message, AIMessage))
    steps = {step["node"]: step["detail"] for step in agent.get_state(config()).values["steps"]}
    assert seen == "Yes." * 5
    assert steps["remember"]["closed"] and steps["remember"]["abstract"] == "SECRET"
    assert steps["summarize"]["removed"] == len(steps["summarize"]["ids"]) > 0

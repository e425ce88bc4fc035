"""graph.rehearsal: rules that drive the graph, in English and Chinese; deterministic, honest, quick on any text."""

import json
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage, ToolMessage

from graph.rehearsal import RehearsalModel
from graph.rehearsal_rules import READ_CHARS
from nodes import prompts
from nodes.calculator import calculate
from nodes.collect import collect
from nodes.context import Context
from nodes.extract import Saying, lines_of, read_extraction
from nodes.quoting import as_json
from nodes.sections import BOUNDLESS, fitted
from nodes.summary import CHINESE, ENGLISH

TOOLS = ["recall", "memory_save", "calculator", "current_time"]
MODEL = RehearsalModel()
EN, ZH = MODEL.notice
AT = datetime(2026, 12, 2, 9, tzinfo=UTC)


def system(memories: tuple[str, ...] = (), facts: tuple[tuple[str, str], ...] = (), **state: Any) -> SystemMessage:
    """The system message as the graph writes it, after a recall that injected these."""
    shown = [
        {"id": f"m{n}", "text": text, "at": "2026-03-04T05:06:07+00:00", "score": 0.9, "why": ""}
        for n, text in enumerate(memories)
    ]
    recalled = {"status": "found" if shown else "nothing", "memories": shown, "facts": list(facts), "error": ""}
    told = fitted(prompts.sections({"recalled": recalled, **state}, core=lambda tokens: ""), BOUNDLESS)
    return SystemMessage("\n\n".join([prompts.fixed_text(Context()), *told]))


def reply(text: str, *later: BaseMessage, first: BaseMessage | None = None, tools: list[str] = TOOLS) -> AIMessage:
    return MODEL.bind_tools(tools).invoke([first or system(), HumanMessage(text), *later])


def call(text: str, **options: Any) -> tuple[str, dict[str, Any]] | None:
    calls = reply(text, **options).tool_calls
    return (calls[0]["name"], calls[0]["args"]) if calls else None


def says(text: str, *later: BaseMessage, **options: Any) -> str:
    """The answer without its first line."""
    answer = reply(text, *later, **options)
    assert not answer.tool_calls
    notice, _, rest = answer.text.partition("\n")
    assert notice in (EN, ZH)
    return rest


def result(name: str, content: Any, status: Any = "success") -> list[BaseMessage]:
    text = content if isinstance(content, str) else as_json(content)
    called = AIMessage("", tool_calls=[{"name": name, "args": {}, "id": "c1"}])
    return [called, ToolMessage(text, name=name, tool_call_id="c1", status=status)]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("2+2", "4"),
        ("What is 2 + 2?", "4"),
        ("what's 12*3", "36"),
        ("Please calculate (3+4)*2.5.", "17.5"),
        ("How much is 7 times 8?", "56"),
        ("7 x 8", "56"),
        ("17 divided by 4", "4.25"),
        ("100 minus 58", "42"),
        ("what is 5 plus 7 minus 2?", "10"),
        ("2 to the power of 10", "1024"),
        ("3 squared", "9"),
        ("what is 3² + 2¹⁰?", "1033"),
        ("square root of 16", "4"),
        ("What is sqrt(2) ** 2?", "2"),
        ("abs(-5)", "5"),
        ("max(1, 2.5)", "2.5"),
        ("what is 15% of 80", "12"),
        ("1,234 + 5", "1239"),
        ("3.5*2=?", "7"),
        ("10/4 please", "2.5"),
        ("What is 10/4?", "2.5"),
        ("5-3", "2"),
        ("compute 2 * ( 3 + 4 )", "14"),
        ("-3 + 5", "2"),
        ("I have 3+4 apples, how many is that?", "7"),
        ("0.1+0.2", "0.3"),
        ("1/3+1/3", "0.6666666666666666666666666667"),
        ("请算一下 3 加 5", "8"),
        ("计算3*4", "12"),
        ("3乘以4等于多少", "12"),
        ("10除以4是多少？", "2.5"),
        ("100减去1", "99"),
        ("（１＋２）×３", "9"),
        ("12÷4", "3"),
        ("2的10次方", "1024"),
        ("3的平方是多少", "9"),
        ("16的平方根", "4"),
        ("5-3等于几", "2"),
        ("8 加 9 等于几？", "17"),
    ],
)
def test_sums_go_to_the_calculator_as_it_can_compute_them(text: str, value: str) -> None:
    found = call(text)
    assert found is not None and found[0] == "calculator"
    assert calculate(found[1]["expression"]) == value


def test_a_sum_that_is_too_large_goes_there_too_and_the_refusal_is_told() -> None:
    assert call("what is 9**9**9") == ("calculator", {"expression": "9**9**9"})


@pytest.mark.parametrize(
    "text",
    [
        "2024-05-20",
        "My birthday is 2024/05/20",
        "20.05.2024",
        "5/6/2024",
        "Call me at 555-1234",
        "555-1234",
        "My number is 138-1234-5678",
        "+1 (555) 123-4567",
        "电话 010-12345678",
        "order ABC-20240520-001",
        "ISBN 978-3-16-148410-0",
        "version 1.2.3",
        "192.168.1.1",
        "I work from 9-5",
        "room 3/4",
        "open 24/7",
        "5 - 10 people came",
        "pages 10-20",
        "a 3-4 year-old child",
        "the score was 3-2",
        "we met 3 times 2 days ago",
        "it takes over 3 hours",
        "10:30-11:45",
        "A4-120",
        "C++ 11",
        "50%",
        "加油",
        "我加了他的微信",
        "减肥5斤",
        "- 3\n- 4",
    ],
)
def test_dates_codes_ranges_and_numbers_of_phones_are_no_sums(text: str) -> None:
    found = call(text)
    assert found is None or found[0] != "calculator"


@pytest.mark.parametrize(
    ("text", "zone"),
    [
        ("What time is it?", "UTC"),
        ("what time is it in Tokyo", "Asia/Tokyo"),
        ("What's the time in Berlin?", "Europe/Berlin"),
        ("What time is it in New York?", "America/New_York"),
        ("what time is it in San Francisco", "America/Los_Angeles"),
        ("time in Paris", "Europe/Paris"),
        ("Tell me the time", "UTC"),
        ("what's today's date", "UTC"),
        ("What day is it?", "UTC"),
        ("现在几点了？", "UTC"),
        ("请问现在几点", "UTC"),
        ("东京现在几点？", "Asia/Tokyo"),
        ("北京时间", "Asia/Shanghai"),
        ("今天星期几", "UTC"),
        ("今天是几月几号？", "UTC"),
    ],
)
def test_times_go_to_the_clock_of_the_place(text: str, zone: str) -> None:
    assert call(text) == ("current_time", {"timezone": zone})


@pytest.mark.parametrize(
    "text",
    [
        "我的航班几点起飞？",
        "我现在几点下班？",
        "会议几点开始？",
        "What time does my flight leave?",
        "What is the date of my wedding?",
        "What day is my appointment?",
        "what is the time limit",
        "When is my meeting?",
    ],
)
def test_a_question_about_an_event_is_no_question_about_the_time(text: str) -> None:
    assert says(text) == ("我还不知道。" if "几点" in text else "I don't know that yet.")


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("Remember that I like tea", "I like tea"),
        ("remember: my code is 7731", "My code is 7731"),
        ("Please remember I'm allergic to nuts.", "I'm allergic to nuts."),
        ("Could you remember that my dog is Rex?", "My dog is Rex"),
        ("Can you remember that for me: my car is red", "My car is red"),
        ("Don’t forget that I hate onions", "I hate onions"),
        ("Note: 2+2 is what I owe Ann", "2+2 is what I owe Ann"),
        ("I live in Oslo, remember that", "I live in Oslo"),
        ("I like tea. Please remember this.", "I like tea"),
        ("记住我喜欢茶", "我喜欢茶"),
        ("请帮我记住：我住在杭州", "我住在杭州"),
        ("请记住，我的生日是五月一日", "我的生日是五月一日"),
        ("我想请你记住我的车牌是浙A12345", "我的车牌是浙A12345"),
        ("麻烦你帮我记一下我对花生过敏", "我对花生过敏"),
        ("别忘了我周五有会", "我周五有会"),
        ("我住在杭州，请记住。", "我住在杭州"),
        ("I'm allergic to peanuts.", "I'm allergic to peanuts."),
        ("My name is Ann. The sky is blue.", "My name is Ann."),
        ("May is my favourite month.", "May is my favourite month."),
        ("我叫安娜。", "我叫安娜。"),
        ("Sorry, my name is Chen Yao", "Sorry, my name is Chen Yao"),
        ("不好意思，我叫陈瑶", "不好意思，我叫陈瑶"),
    ],
)
def test_what_the_user_tells_is_kept_word_for_word(text: str, kept: str) -> None:
    assert call(text) == ("memory_save", {"text": kept})


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("What should I avoid eating?", "I don't know that yet."),
        ("Do you remember my name?", "I don't know that yet."),
        ("Remember what I like?", "I don't know that yet."),
        ("Tell me what my name is", "I don't know that yet."),
        ("我该避免吃什么？", "我还不知道。"),
        ("你记住了吗？", "我还不知道。"),
        ("我叫什么名字", "我还不知道。"),
    ],
)
def test_a_question_that_nothing_answers_is_answered_so_and_nothing_is_kept(text: str, answer: str) -> None:
    assert says(text) == answer


SMALL_TALK = ["hello", "ok thanks", "I'm fine", "Sorry", "Sorry I'm late", "Sorry, I don't understand.", "你好", "谢谢"]


@pytest.mark.parametrize(
    "text", [*SMALL_TALK, "Tell me a joke", "Help me write an email", "帮我写封邮件", "抱歉，我不明白"]
)
def test_small_talk_and_requests_are_heard_but_not_kept(text: str) -> None:
    assert says(text).startswith(("I heard you.", "收到。"))


def test_a_question_is_answered_from_what_recall_put_into_the_prompt() -> None:
    told = says("What should I avoid eating?", first=system(("I'm allergic to peanuts.", "I like tea")))
    assert told == 'You told me on 2026-03-04: "I\'m allergic to peanuts."\nYou told me on 2026-03-04: "I like tea"'
    assert says("我该避免吃什么？", first=system(("我对花生过敏",))) == "你在 2026-03-04 告诉过我：“我对花生过敏”"


def test_a_fact_is_told_where_the_question_names_it() -> None:
    facts = (("name", "Ann"), ("allergy", "peanuts"), ("tea", "green"))
    assert says("What is my name?", first=system(facts=facts)) == "name: Ann"
    assert says("What am I allergic to?", first=system(facts=facts)) == "allergy: peanuts"
    assert says("我叫什么名字？", first=system(facts=(("name", "安娜"),))) == "name：安娜"
    assert says("Where do I live?", first=system(facts=facts)) == "I don't know that yet."


@pytest.mark.parametrize(
    ("text", "key", "value"),
    [
        ("On trains, I care most about quiet.", "trains", "I care most about quiet"),
        ("Only the delivery date matters to me!", "matters", "Only the delivery date matters to me"),
        ("With reports please always start with the revenue.", "reports", "please always start with the revenue"),
        ("查订单的时候我只关心物流。", "订单", "我只关心物流"),
        ("关于酒店，安静最重要。", "酒店", "安静最重要"),
        ("我最在意价格", "关心", "我最在意价格"),
    ],
)
def test_what_matters_to_the_user_is_set_as_a_fact_or_kept_where_facts_are_not_mounted(
    text: str, key: str, value: str
) -> None:
    assert call(text, tools=[*TOOLS, "fact_set"]) == ("fact_set", {"key": key, "value": value})
    assert (call(text) or ("other",))[0] != "fact_set" and extracted(text)[1] == [(key, value)]


@pytest.mark.parametrize("text", ["What matters most to me?", "The matter counts.", "Start with me", "我最关心什么？"])
def test_what_says_of_nothing_that_it_matters_sets_no_fact(text: str) -> None:
    assert (call(text, tools=[*TOOLS, "fact_set"]) or ("none",))[0] != "fact_set"


LOOKING_UP = [
    {
        "type": "function",
        "function": {"name": name, "description": told, "parameters": {"required": required, "properties": {}}},
    }
    for name, told, required in (
        ("flight_status", "Look up a flight. 查航班。", ["code"]),
        ("order_lookup", "Look up an order. 查订单。", ["number"]),
        ("move_order", "Move an order to another day.", ["number", "day"]),
    )
]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("What is up with order 1007?", ("order_lookup", {"number": "1007"})),
        ("Where is flight LH-454 now?", ("flight_status", {"code": "LH-454"})),
        ("订单A-20怎么样了？", ("order_lookup", {"number": "A-20"})),
        ("Are there any orders?", None),
        ("What is room 12 like?", None),
    ],
)
def test_a_tool_that_was_given_is_called_for_what_a_question_names(text: str, found: Any) -> None:
    message = MODEL.bind_tools(LOOKING_UP).invoke([system(), HumanMessage(text)])
    assert [(one["name"], one["args"]) for one in message.tool_calls] == ([found] if found else [])


@pytest.mark.parametrize(
    ("data", "fact", "first"),
    [
        ({"price": 5, "delivery_date": "Friday"}, "", "price: 5"),
        ({"price": 5, "delivery_date": "Friday"}, "only delivery dates matter", "delivery_date: Friday"),
        ({"price": 5, "delivery_date": "Friday"}, "only the date of birth matters", "price: 5"),
        ({"价格": 5, "交货日期": "周五"}, "只看交货日期", "交货日期: 周五"),
        ({"价格": 5, "交货日期": "周五"}, "只看物价", "价格: 5"),
    ],
)
def test_of_what_a_given_tool_finds_that_goes_first_which_matters_to_the_user(
    data: dict[str, Any], fact: str, first: str
) -> None:
    facts = (("orders", fact),) if fact else ()
    lines = says("What is up with order 1007?", *result("order_lookup", data), first=system(facts=facts)).splitlines()
    assert lines[0] == first and len(lines) == 2


@pytest.mark.parametrize(
    ("text", "id"),
    [
        ("Forget where I live", "m0"),
        ("Please forget that I am allergic to nuts.", "m1"),
        ("请忘掉我喜欢龙井茶", "m2"),
        ("Could you forget my address in Lyon?", "m0"),
    ],
)
def test_what_the_user_wants_forgotten_is(text: str, id: str) -> None:
    first, tools = system(("I live in Lyon", "I am allergic to nuts", "我喜欢龙井茶")), [*TOOLS, "memory_forget"]
    assert call(text, first=first, tools=tools) == ("memory_forget", {"id": id})
    assert says(text, *result("memory_forget", {"forgotten": id}), first=first) in (
        "I have forgotten that.",
        "我已经忘掉了。",
    )


@pytest.mark.parametrize("text", ["Forget my shoe size", "忘掉我的鞋码"])
def test_a_wish_to_forget_what_nobody_remembers_forgets_nothing(text: str) -> None:
    first = system(("I am allergic to nuts",))
    assert says(text, first=first, tools=[*TOOLS, "memory_forget"]) in (
        "I remember nothing like that.",
        "我没有记着这样的事。",
    )


def test_without_injected_memories_the_recall_tool_is_asked() -> None:
    bare = SystemMessage("rules")
    assert call("What do I like?", first=bare) == ("recall", {"query": "What do I like?"})
    assert says("What do I like?", first=bare, tools=[]) == "I don't know that yet."
    found = {"found": 1, "memories": [{"id": "m1", "date": "2026-03-04", "text": "tea", "score": 0.5}]}
    assert says("What do I like?", *result("recall", found)) == 'You told me on 2026-03-04: "tea"'
    assert says("What do I like?", *result("recall", {"found": 0, "memories": []})) == "I don't know that yet."


@pytest.mark.parametrize("text", ["2+2", "What time is it?", "Remember that I like tea", "我叫安娜。"])
def test_a_tool_that_is_not_mounted_is_named(text: str) -> None:
    name, _ = call(text) or ("", {})
    assert name and name in says(text, tools=[])


def test_results_are_told_in_the_language_of_the_question() -> None:
    clock = {"time": "2026-03-04T05:06:07+00:00", "weekday": "Wednesday", "timezone": "UTC"}
    assert says("what is 6*7?", *result("calculator", "42")) == "6*7 = 42"
    assert says("What time is it?", *result("current_time", clock)).startswith("It is 2026-03-04T05:06:07+00:00")
    assert says("现在几点？", *result("current_time", clock)).startswith("现在是 2026-03-04T05:06:07+00:00")
    kept = {"saved": "new", "id": "m1", "text": "tea"}
    assert says("Remember that: tea", *result("memory_save", kept)) == 'I\'ll remember that: "tea"'
    assert says("记住：茶", *result("memory_save", {**kept, "text": "茶"})) == "我记住了：“茶”"
    again = {**kept, "saved": "already stored"}
    assert says("Remember that: tea", *result("memory_save", again)) == 'I have that already: "tea"'
    assert says("look it up", *result("my_tool", "what it found")) == "what it found"


@pytest.mark.parametrize("name", TOOLS)
def test_an_error_of_a_tool_is_told_and_never_a_success(name: str) -> None:
    error = "Error (business): it did not work out"
    assert says("what is 1/0?", *result(name, error, "error")) == "That did not work: it did not work out"
    assert says("1/0等于多少？", *result(name, error, "error")).startswith("没有成功：")


@pytest.mark.parametrize("name", TOOLS)
@pytest.mark.parametrize("text", ["(no output)", '{"time": "20', "[1, 2]", "[" * 5000])
def test_a_result_in_no_known_form_is_shown_as_it_is(name: str, text: str) -> None:
    assert text in says("what is 2+2?", *result(name, text))


def test_the_first_answer_of_a_conversation_and_no_other_says_what_it_is() -> None:
    assert reply("hello").text.startswith(EN) and reply("你好").text.startswith(ZH)
    assert "not a language model" in EN and "不是语言模型" in ZH
    after_tool = reply("2+2", *result("calculator", "4"))
    assert after_tool.text == f"{EN}\n2+2 = 4"
    second = MODEL.invoke([system(), HumanMessage("hello"), after_tool, HumanMessage("hi")])
    assert EN not in second.text
    summarised = MODEL.invoke([system(summary="## What the user wants\n- tea"), HumanMessage("hello")])
    assert EN not in summarised.text


def extracted(*texts: str) -> tuple[list[str], list[tuple[str, str]]]:
    said = [Saying(id=f"h{n}", text=text, at=AT) for n, text in enumerate(texts)]
    answer = MODEL.invoke([SystemMessage(prompts.EXTRACT), HumanMessage(lines_of(said))])
    found = read_extraction(answer.text, said)
    assert not found.failed
    return [one.text for one in found.memories], [(one.key, one.value) for one in found.facts]


def test_extraction_keeps_statements_and_facts_in_both_languages() -> None:
    memories, facts = extracted("My name is Ann Lee. What's yours?", "我叫安娜。我对花生和虾过敏，你呢？", "hello")
    assert memories == ["My name is Ann Lee.", "我叫安娜。"]
    assert facts == [("name", "Ann Lee"), ("name", "安娜")]
    assert extracted("I'm allergic to peanuts and shellfish.", "我对花生过敏。") == (
        ["I'm allergic to peanuts and shellfish.", "我对花生过敏。"],
        [("allergy", "peanuts and shellfish"), ("allergy", "花生")],
    )
    assert extracted("Remember that the garage code is 7731")[0] == ["The garage code is 7731"]


@pytest.mark.parametrize(
    "text",
    [
        "ok thanks",
        "What is my name?",
        "我的名字是什么？",
        "Am I allergic to peanuts?",
        "我对花生过敏吗？",
        "2+2",
        "Tell me a joke",
        "谢谢你",
        "The sky is blue.",
        "",
        " ",
    ],
)
def test_nothing_is_extracted_from_questions_and_small_talk(text: str) -> None:
    """B128."""
    assert extracted(text) == ([], [])


@pytest.mark.parametrize(
    "text",
    [
        "I'm not allergic to peanuts.",
        "My son is allergic to nuts.",
        "我对花生不过敏。",
        "我老婆对花生过敏。",
        "我叫了外卖。",
    ],
)
def test_a_fact_is_not_made_of_its_contrary_or_of_somebody_else(text: str) -> None:
    assert extracted(text)[1] == []


def summarised(previous: str, *lines: tuple[str, str]) -> str:
    written = [as_json({"previous_summary": previous})]
    written += [as_json({"id": f"m{n}", "role": role, "text": text}) for n, (role, text) in enumerate(lines)]
    return MODEL.invoke([SystemMessage(prompts.SUMMARIZE), HumanMessage("\n".join(written))]).text


def test_a_summary_has_the_four_sections_and_keeps_the_old_one() -> None:
    """B011: old entries survive two further summaries; nothing stands twice."""
    one = summarised(
        "", ("human", "My allergy is penicillin. Which clinic is open?"), ("ai", "See https://a.example/x.")
    )
    assert [line for line in one.split("\n") if line.startswith("## ")] == list(ENGLISH)
    two = summarised(one, ("human", "订单号是 ABC-20240520-001。几点开门？"))
    three = summarised(two, ("human", "Which clinic is open?"), ("tool", "secret of a tool"))
    assert [line for line in three.split("\n") if line.startswith("## ")] == list(CHINESE)
    for kept in ("- My allergy is penicillin.", "https://a.example/x", "- 订单号是 ABC-20240520-001。", "- 几点开门？"):
        assert kept in three
    assert three.count("Which clinic is open?") == 1 and "secret of a tool" not in three


@settings(deadline=None)
@given(st.text(max_size=80) | st.text(st.sampled_from("0123456789+-*/() .,?加减我记住what"), max_size=40))
def test_any_text_gets_the_same_non_empty_answer_each_time(text: str) -> None:
    one, two = reply(text), reply(text)
    assert (one.text, one.tool_calls) == (two.text, two.tool_calls)
    assert one.text.strip() or one.tool_calls
    assert RehearsalModel().bind_tools(TOOLS).invoke([system(), HumanMessage(text)]).tool_calls == one.tool_calls


@settings(deadline=None)
@given(st.text(max_size=40) | st.sampled_from(["2+2", "记住我喜欢茶", "What time is it?"]))
def test_a_stream_adds_up_to_the_whole_answer(text: str) -> None:
    question = [system(), HumanMessage(text)]
    streamed = collect(list(MODEL.bind_tools(TOOLS).stream(question)))
    whole = MODEL.bind_tools(TOOLS).invoke(question)
    assert (streamed.text, streamed.tool_calls) == (whole.text, whole.tool_calls)
    assert streamed.invalid_tool_calls == []


@settings(deadline=None)
@given(st.text(max_size=60))
def test_housekeeping_reads_any_text(text: str) -> None:
    extracted(text)
    summarised(text, ("human", text), ("ai", text))


def test_a_conversation_without_any_message_is_answered_too() -> None:
    for messages in ([SystemMessage("rules")], [AIMessage("hi")], [HumanMessage("")], [HumanMessage([])]):
        assert MODEL.invoke(messages).text.strip()


@pytest.mark.parametrize(
    "piece",
    [
        *' \n\u3000()[{1a?"/我',
        *("1 ", "1,", "1+", "- ", "a@", "a.", "A ", "什么", "记住", "remember ", "1 plus ", "1加", "I am allergic to "),
        *("my name is A ", "sqrt(", "1_", "what is ", "😀"),
    ],
)
def test_a_megabyte_of_anything_is_answered(piece: str) -> None:
    """A pattern that blows up would run for minutes here, not for milliseconds."""
    text = piece * (1_000_000 // len(piece))
    for start, end in (("", ""), ("what is ", "1"), ("remember ", "?"), ("a", "，记住")):
        assert reply(f"{start}{text}{end}")
    extracted(text)
    summarised("", ("human", text), ("ai", text))


def test_the_two_ends_of_a_long_text_are_read() -> None:
    filler = "lorem ipsum " * READ_CHARS
    assert call(f"{filler}\nwhat is 2+2?") == ("calculator", {"expression": "2+2"})
    name, args = call(f"Remember that I like tea. {filler}") or ("", {})
    assert name == "memory_save" and args["text"].startswith("I like tea.") and len(args["text"]) <= 2000


def test_arguments_fit_the_bounds_of_the_tools() -> None:
    for text in ("1+" * 5000 + "1", "remember " + "x" * 9000, "what " + "y" * 9000 + "?"):
        for first in (system(), SystemMessage("bare")):
            found = call(text, first=first)
            limit = 500 if found and found[0] == "calculator" else 2000
            assert found is None or len(json.dumps(found[1])) <= limit + 30

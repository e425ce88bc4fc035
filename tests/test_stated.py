"""nodes.stated: of a message only what its user states is a ground for remembering."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodes.stated import own_words, says_other, stated, wants_forgotten


@pytest.mark.parametrize(
    ("message", "clauses"),
    [
        ("I like tea. Do you?", ["I like tea."]),
        ("I live in Berlin, is that far from Rome?", ["I live in Berlin,"]),
        ("If I moved to Rome, I'd learn Italian. I like tea.", ["I like tea."]),
        ("I would learn Italian if I moved to Rome", []),
        ("If you need me, my number is 555-0142.", ["my number is 555-0142."]),
        ("Maybe I'll move to Rome. I live in Oslo.", ["I live in Oslo."]),
        ('My dog is called "Rex".', ['My dog is called "Rex".']),
        ('She wrote "never". I like tea', ["She wrote  .", "I like tea"]),
        ("> I live in Rome\nI live in Oslo", ["I live in Oslo"]),
        ("```\nI am a bot\n```\nI like cats", ["I like cats"]),
        ("<email>I live in Rome</email> I live in Oslo", ["I live in Oslo"]),
        ("Please summarise this letter:\n\nDear Sir,\nI live in Rome.", ["Please summarise this letter:"]),
        ("Translate to French: I hate my job.", ["Translate to French:"]),
        (
            "What you should know about me:\n- I live in Berlin",
            ["- I live in Berlin"],
        ),
        ("Forget my address. I live in Oslo.", ["I live in Oslo."]),
        ("Don't forget that I like tea", ["Don't forget that I like tea"]),
        ("My name is Bob <bob@x.example>, I live in Rome", ["My name is Bob <bob@x.example>,", "I live in Rome"]),
        ("我喜欢茶，你呢？", ["我喜欢茶，"]),
        ("如果我搬到罗马，我就学意大利语。我喜欢茶", ["我喜欢茶"]),
        ("我可能会去上海。我住在杭州。", ["我住在杭州。"]),
        ("我老板说“我讨厌茶”。我喜欢茶。", ["我老板说 。", "我喜欢茶。"]),
        ("请翻译下面这段：\n我住在罗马\n我喜欢猫", ["请翻译下面这段："]),
        ("请忘掉我的地址。我住在杭州。", ["我住在杭州。"]),
        ("别忘了我喜欢茶", ["别忘了我喜欢茶"]),
        ("Can you remember that I'm vegan?", ["Can you remember that I'm vegan?"]),
        ("Remember that I like tea, ok?", ["Remember that I like tea,", "ok?"]),
        ("Can you remember what I said?", []),
        ("Do you remember that I like tea?", []),
        ("你能记住我吃素吗？", ["你能记住我吃素吗？"]),
        ("你还记得我喜欢什么吗？", []),
        ("She told me: I'm pregnant. I like tea", ["She told me:"]),
        ("I told you: I like tea", ["I told you: I like tea"]),
        ("Write a story: I am a spy in Rome", ["Write a story:"]),
        ("小说里写：我是间谍", ["小说里写："]),
        ("我说：我吃素", ["我说：我吃素"]),
        ("[10:21] Anna: I am allergic to nuts\n[10:22] Me: I am not", ["[10:22] Me: I am not"]),
        ("Anna: I am allergic to nuts\nMe: I like tea", ["Me: I like tea"]),
        ("张伟：我对花生过敏\n我：我喜欢茶", ["我：我喜欢茶"]),
        ("Note: I moved to Rome", ["Note: I moved to Rome"]),
        ("I like tea.\nFrom: bob\nSubject: hi\n\nI am allergic to nuts", ["I like tea."]),
        ("I doubt that I like tea", []),
        ("I almost bought a dog", []),
        ("I almost always drink tea", ["I almost always drink tea"]),
        ("我怀疑我对花生过敏", []),
        ("假装我是医生", []),
    ],
)
def test_what_is_asked_supposed_quoted_or_pasted_is_not_stated(message: str, clauses: list[str]):
    assert [clause.strip() for clause in stated(message)] == clauses


def test_what_is_supposed_grounds_what_says_that_it_is():
    assert stated("Maybe I'll move to Rome", supposing=True) == ["Maybe I'll move to Rome"]


@pytest.mark.parametrize(
    ("clause", "statement", "other"),
    [
        ("Don't forget: I am allergic to nuts", "User is allergic to nuts", False),
        ("别忘了我对花生过敏", "用户对花生过敏", False),
        ("I'm not allergic to nuts", "User is allergic to nuts", True),
        ("我不喜欢茶", "用户喜欢茶", True),
        ("I used to live in Rome", "User lives in Rome", True),
        ("I used to live in Rome", "User used to live in Rome", False),
        ("I used to live in Rome", "User lived in Rome", False),
        ("我以前住在罗马", "用户住在罗马", True),
        ("我以前住在罗马", "用户以前住在罗马", False),
        ("my sister lives in Rome", "User lives in Rome", True),
        ("my sister lives in Rome", "User's sister lives in Rome", False),
        ("my sister and I live in Rome", "User lives in Rome", False),
        ("我妈妈住在北京", "用户住在北京", True),
        ("我妈妈住在北京", "用户的妈妈住在北京", False),
        ("我和妈妈住在北京", "用户住在北京", False),
    ],
)
def test_the_contrary_the_past_and_other_people_are_another_thing(clause: str, statement: str, other: bool):
    assert says_other(clause, statement) is other


@pytest.mark.parametrize(
    "text",
    [
        "Forget that.",
        "please delete my address",
        "stop remembering my diet",
        "忘掉它吧",
        "别再记我的生日",
        "把电话删了",
    ],
)
def test_a_wish_to_forget_is_heard(text: str):
    assert wants_forgotten(text)


@pytest.mark.parametrize(
    "text", ["Don't forget the milk", "I always forget my keys", "别忘了", "我老忘带钥匙", "I like tea", "remember me"]
)
def test_what_is_no_wish_to_forget_is_none(text: str):
    assert not wants_forgotten(text)


@given(st.text(st.sampled_from("I like.?,，。？“”\"'\n>`<a/> if说如果我:：") | st.characters(), max_size=200))
def test_any_text_is_read_and_nothing_is_made_up(text: str):
    assert set("".join(stated(text))) - set(text) <= {" "}
    assert set("".join(stated(text))) <= set("".join(stated(text, supposing=True))) | {" "}
    assert len(own_words(text)) <= len(text) + 1


@pytest.mark.parametrize(
    "piece",
    [
        "<text>",
        "```",
        '"',
        "“",
        "if ",
        "如果",
        ">\n",
        "a, ",
        "Translate: ",
        "please ",
        "can you please ",
        "?",
        "说",
        "'I ",
        ":\n",
        "She told ",
        "A: b\n",
        "1:1 A",
    ],
)
def test_a_megabyte_is_read_at_once(piece: str):
    stated(piece * (1_000_000 // len(piece)))

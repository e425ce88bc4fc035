"""What `bench_memory.py` plays: lives that change, pairs that only look alike, and pairs that say one thing.

Written before the rules that it measures. The second half of each list is held out: no rule was made by looking at it,
and the bench prints it apart.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Slot:
    """One thing about a user that changes: what is asked, and in order (what is said, what a model keeps, the value).

    Each value holds from the day it is said until the next one; `adds` tells that they hold beside each other.
    """

    query: str
    said: tuple[tuple[str, str, str], ...]
    adds: bool = False


ENGLISH = (
    Slot(
        "Which city does the user live in?",
        (
            ("By the way, I live in Berlin.", "The user lives in Berlin.", "Berlin"),
            ("We moved to Lyon last month.", "The user moved to Lyon.", "Lyon"),
            ("I live in Porto now.", "The user lives in Porto.", "Porto"),
        ),
    ),
    Slot(
        "What is the user's name?",
        (
            ("Hi, my name is Chen Yun.", "The user's name is Chen Yun.", "Chen Yun"),
            ("Sorry, my name is Chen Yao.", "The user's name is Chen Yao.", "Chen Yao"),
        ),
    ),
    Slot(
        "What is the user allergic to?",
        (
            ("I'm allergic to peanuts.", "The user is allergic to peanuts.", "peanuts"),
            ("The doctor says I am allergic to shellfish too.", "The user is allergic to shellfish.", "shellfish"),
        ),
        adds=True,
    ),
    Slot(
        "What does the user drink in the morning?",
        (
            ("I drink black coffee every morning.", "The user drinks black coffee every morning.", "black coffee"),
            ("I gave up coffee; mornings are green tea now.", "The user drinks green tea in the morning.", "green tea"),
        ),
    ),
    Slot(
        "What is the user's phone number?",
        (
            ("My phone number is 555-0142.", "The user's phone number is 555-0142.", "555-0142"),
            ("New phone: my number is 555-0199 now.", "The user's phone number is 555-0199.", "555-0199"),
        ),
    ),
    Slot(
        "When is the weekly meeting?",
        (
            ("The weekly meeting is on Mondays at 3pm.", "The weekly meeting is on Mondays at 3pm.", "Mondays at 3pm"),
            (
                "They moved the weekly meeting to Thursdays at 4pm.",
                "The weekly meeting is on Thursdays at 4pm.",
                "Thursdays at 4pm",
            ),
        ),
    ),
    # held out from here on
    Slot(
        "Where does the user work?",
        (
            ("I work at Hansa Logistics.", "The user works at Hansa Logistics.", "Hansa Logistics"),
            ("I started at Meridian Freight in May.", "The user works at Meridian Freight.", "Meridian Freight"),
        ),
    ),
    Slot(
        "What is the user's email address?",
        (
            ("Write to me at nora@old.example.", "The user's email is nora@old.example.", "nora@old.example"),
            ("My email is nora@new.example now.", "The user's email is nora@new.example.", "nora@new.example"),
        ),
    ),
    Slot(
        "What should the user's reports begin with?",
        (
            ("Start my reports with the revenue.", "The user wants reports to begin with revenue.", "revenue"),
            ("From now on begin with logistics.", "The user wants reports to begin with logistics.", "logistics"),
        ),
    ),
    Slot(
        "Which pets does the user have?",
        (
            ("We have a dog called Rex.", "The user has a dog called Rex.", "Rex"),
            ("And since Sunday a cat, Mimi.", "The user has a cat called Mimi.", "Mimi"),
        ),
        adds=True,
    ),
    Slot(
        "What does the user eat?",
        (
            ("I eat everything but pork.", "The user eats everything but pork.", "everything but pork"),
            ("I've become vegetarian.", "The user is vegetarian.", "vegetarian"),
            ("I eat only vegan food now.", "The user eats only vegan food.", "vegan"),
        ),
    ),
    Slot(
        "Which seat does the user want on a train?",
        (
            ("On trains I want a window seat.", "The user wants a window seat on trains.", "window seat"),
            ("My leg hurts: aisle seats on trains, please.", "The user wants an aisle seat on trains.", "aisle seat"),
        ),
    ),
)

CHINESE = (
    Slot(
        "用户住在哪个城市？",
        (
            ("我住在杭州。", "用户住在杭州。", "杭州"),
            ("我上个月搬到成都了。", "用户搬到了成都。", "成都"),
            ("我现在住在青岛。", "用户住在青岛。", "青岛"),
        ),
    ),
    Slot(
        "用户叫什么名字？",
        (("我叫王芳。", "用户叫王芳。", "王芳"), ("写错了，我叫王方。", "用户叫王方。", "王方")),
    ),
    Slot(
        "用户对什么过敏？",
        (("我对花生过敏。", "用户对花生过敏。", "花生"), ("医生说我对虾也过敏。", "用户对虾过敏。", "虾")),
        adds=True,
    ),
    Slot(
        "用户早上喝什么？",
        (
            ("我每天早上喝咖啡。", "用户每天早上喝咖啡。", "咖啡"),
            ("我不喝咖啡了，现在早上喝豆浆。", "用户早上喝豆浆。", "豆浆"),
        ),
    ),
    Slot(
        "用户的手机号是多少？",
        (
            ("我的手机号是13800001111。", "用户的手机号是13800001111。", "13800001111"),
            ("换号了，我的手机号是13900002222。", "用户的手机号是13900002222。", "13900002222"),
        ),
    ),
    Slot(
        "例会什么时候开？",
        (
            ("例会是周一下午三点。", "例会在周一下午三点。", "周一下午三点"),
            ("例会改到周四下午四点了。", "例会在周四下午四点。", "周四下午四点"),
        ),
    ),
    # held out from here on
    Slot(
        "用户在哪里上班？",
        (
            ("我在东海物流上班。", "用户在东海物流上班。", "东海物流"),
            ("我五月换到北辰货运了。", "用户在北辰货运上班。", "北辰货运"),
        ),
    ),
    Slot(
        "用户的邮箱是什么？",
        (
            ("我的邮箱是fang@old.example。", "用户的邮箱是fang@old.example。", "fang@old.example"),
            ("我的邮箱是fang@new.example了。", "用户的邮箱是fang@new.example。", "fang@new.example"),
        ),
    ),
    Slot(
        "报告应该先写什么？",
        (
            ("报告先写营收。", "用户要报告先写营收。", "营收"),
            ("以后报告先写物流。", "用户要报告先写物流。", "物流"),
        ),
    ),
    Slot(
        "用户养了什么宠物？",
        (
            ("我养了一只狗，叫豆豆。", "用户养了一只狗叫豆豆。", "豆豆"),
            ("又养了只猫叫咪咪。", "用户养了一只猫叫咪咪。", "咪咪"),
        ),
        adds=True,
    ),
    Slot(
        "用户吃什么？",
        (
            ("我什么都吃，就是不吃猪肉。", "用户什么都吃但不吃猪肉。", "不吃猪肉"),
            ("我开始吃素了。", "用户吃素。", "吃素"),
        ),
    ),
    Slot(
        "坐火车用户要什么座位？",
        (
            ("坐火车我要靠窗的座位。", "用户坐火车要靠窗的座位。", "靠窗"),
            ("腿疼，火车座位改要靠过道的。", "用户坐火车要靠过道的座位。", "靠过道"),
        ),
    ),
)

MIXED = (
    Slot(
        "Which project does the user lead?",
        (
            ("我负责 Orion 项目。", "用户负责 Orion 项目。", "Orion"),
            ("Now I lead the Vega project instead.", "The user leads the Vega project.", "Vega"),
        ),
    ),
    Slot(
        "用户的工位在哪里？",
        (
            ("My desk is 4F-12.", "The user's desk is 4F-12.", "4F-12"),
            ("我的工位换到 5F-03 了。", "用户的工位是 5F-03。", "5F-03"),
        ),
    ),
    # held out from here on
    Slot(
        "Which city does the user fly to most?",
        (
            ("我最常飞深圳。", "用户最常飞深圳。", "深圳"),
            ("These days I mostly fly to Osaka.", "The user mostly flies to Osaka.", "Osaka"),
        ),
    ),
    Slot(
        "用户用什么语言写代码？",
        (
            ("I write everything in Python.", "The user writes code in Python.", "Python"),
            ("我现在写代码都用 Rust。", "用户写代码用 Rust。", "Rust"),
        ),
    ),
)

DIFFERENT = (
    ("The user is allergic to peanuts.", "The user is allergic to pine nuts."),
    ("The user is allergic to nuts.", "The user is allergic to pine nuts."),
    ("The weekly meeting is at 3pm.", "The weekly meeting is at 4pm."),
    ("The user likes tea.", "The user doesn't like tea."),
    ("The user likes tea.", "The user dislikes tea."),
    ("The user lives in Berlin.", "The user lived in Berlin."),
    ("The user flew to Rome.", "The user flew from Rome."),
    ("Ann owes Bob 20 euros.", "Bob owes Ann 20 euros."),
    ("The user has two children.", "The user has three children."),
    ("The user takes 50 mg of aspirin.", "The user takes 500 mg of aspirin."),
    ("The trip starts on 2026-05-01.", "The trip starts on 2026-05-11."),
    ("The user can swim.", "The user can't swim."),
    ("The user's daughter is called Mia.", "The user's daughter is called Mina."),
    ("用户喜欢喝茶。", "用户不喜欢喝茶。"),
    ("用户对花生过敏。", "用户对花粉过敏。"),
    ("会议在下午三点。", "会议在下午四点。"),
    ("用户去北京。", "用户去了北京。"),
    ("小王欠小李二十元。", "小李欠小王二十元。"),
    ("用户有两个孩子。", "用户有三个孩子。"),
    ("用户住在南京路12号。", "用户住在南京路21号。"),
    ("用户吃辣。", "用户不吃辣。"),
    ("用户会游泳。", "用户学游泳。"),
    # held out from here on
    ("The user never drinks coffee.", "The user drinks coffee."),
    ("The user works with Maria.", "The user works for Maria."),
    ("The flight leaves before noon.", "The flight leaves after noon."),
    ("The user's budget is 1,500 euros.", "The user's budget is 1,500 dollars."),
    ("The user lives at 12 Main Street.", "The user lives at 21 Main Street."),
    ("Send the report to Lee.", "Don't send the report to Lee."),
    ("The user has no siblings.", "The user has siblings."),
    ("The user will quit smoking.", "The user quit smoking."),
    ("The user's mother is 70 years old.", "The user's brother is 70 years old."),
    ("The user likes cats more than dogs.", "The user likes dogs more than cats."),
    ("The user is a former pilot.", "The user is a pilot."),
    ("The order number is A-1007.", "The order number is A-1070."),
    ("The user wakes at 6 on weekdays.", "The user wakes at 6 on weekends."),
    ("用户从不喝咖啡。", "用户喝咖啡。"),
    ("用户的预算是1500元。", "用户的预算是1500美元。"),
    ("用户的妈妈七十岁。", "用户的爸爸七十岁。"),
    ("用户没有兄弟姐妹。", "用户有兄弟姐妹。"),
    ("航班上午起飞。", "航班下午起飞。"),
    ("用户喜欢猫胜过狗。", "用户喜欢狗胜过猫。"),
    ("把报告发给李伟。", "别把报告发给李伟。"),
    ("用户在学法语。", "用户在教法语。"),
    ("订单号是HT-2026-0093。", "订单号是HT-2026-0039。"),
    ("用户周末早起。", "用户周日早起。"),
)

SAME = (
    ("The user likes green tea.", "I like green tea"),
    ("The user is allergic to peanuts.", "User is allergic to peanut"),
    ("The user prefers window seats.", "Prefers a window seat."),
    ("The user's dog is called Rex.", "My dog is called Rex!"),
    ("User lives in Berlin", "the user lives in  BERLIN."),
    ("用户喜欢喝绿茶。", "我喜欢喝绿茶"),
    ("用户对花生过敏。", "我对花生过敏！"),
    ("用户的狗叫豆豆", "我的狗叫豆豆。"),
    # held out from here on
    ("ＡＢＣ公司是用户的客户", "ABC公司是用户的客户。"),
    ("The user works at Hansa Logistics.", "I work at Hansa Logistics."),
    ("The user has a red car.", "User has the red car"),
    ("The user really likes jazz.", "I like jazz."),
    ("User's favourite colour is blue.", "My favourite colour is blue."),
    ("I am vegetarian.", "I'm vegetarian"),
    ("用户住在杭州。", "我住在杭州"),
    ("用户很喜欢爵士乐。", "我喜欢爵士乐。"),
    ("用户的车是红色的。", "我的车是红色的"),
)

WINDOW = (
    "The user prefers window seats.",
    "The user likes window seats best.",
    "The user always wants a window seat.",
    "The user would rather sit by the window.",
    "The user asks for a window seat on flights.",
    "The user's favourite seat is at the window.",
    "When flying, the user prefers a window seat.",
    "The user chooses window seats.",
    "The user loves sitting at the window.",
    "A window seat is what the user prefers.",
    "The user wants to sit next to the window.",
    "The user prefers seats at the window on planes.",
)
"""Twelve ways to say one thing (B134); beside them stands an allergy."""


def halves(items: tuple, held_out: bool) -> tuple:  # type: ignore[type-arg]
    """Return the half that rules were made on, or the other."""
    middle = len(items) // 2
    return items[middle:] if held_out else items[:middle]

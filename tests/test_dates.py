"""nodes.dates: relative times get their dates, and nothing else of a text is touched."""

import re
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodes.dates import ONES, RULES, TEENS, TENS, absolute

WEDNESDAY = datetime(2026, 12, 2, 9, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("I saw Ann last Friday.", "I saw Ann last Friday (2026-11-27)."),
        ("Last Wednesday was hard", "Last Wednesday (2026-11-25) was hard"),
        (
            "see you tomorrow, or the day after tomorrow",
            "see you tomorrow (2026-12-03), or the day after tomorrow (2026-12-04)",
        ),
        ("yesterday's call, today's lunch", "yesterday (2026-12-01)'s call, today (2026-12-02)'s lunch"),
        ("this Friday and next Wednesday", "this Friday (2026-12-04) and next Wednesday (2026-12-09)"),
        ("I moved last month, last year I was in Oslo", "I moved last month (2026-11), last year (2025) I was in Oslo"),
        (
            "three weeks ago; in 2 months; a year ago",
            "three weeks ago (2026-11-11); in 2 months (2027-02); a year ago (2025)",
        ),
        ("free next week and next weekend", "free next week (2026-12-07~) and next weekend (2026-12-12~)"),
        ("我下周三要去上海出差，帮我记住", "我下周三（2026-12-09）要去上海出差，帮我记住"),
        ("上周五见了王芳，上上周一也见了", "上周五（2026-11-27）见了王芳，上上周一（2026-11-16）也见了"),
        ("昨天、前天和大前天", "昨天（2026-12-01）、前天（2026-11-30）和大前天（2026-11-29）"),
        ("后天开会，大后天休息", "后天（2026-12-04）开会，大后天（2026-12-05）休息"),
        ("三天后交稿，两个星期前动笔", "三天后（2026-12-05）交稿，两个星期前（2026-11-18）动笔"),
        ("去年在北京，明年三月去成都", "去年（2025）在北京，明年（2027）三月去成都"),
        ("下个月搬家，本周日看房", "下个月（2027-01）搬家，本周日（2026-12-06）看房"),
        ("大前年买的，２０天前卖了", "大前年（2023）买的，２０天前（2026-11-12）卖了"),
        ("去年今天订婚", "去年今天（2025）订婚"),
        (
            "a year ago today, last Fri. and last  Sunday",
            "a year ago today (2025), last Fri. (2026-11-27) and last  Sunday (2026-11-29)",
        ),
    ],
)
def test_a_relative_time_gets_its_date(text: str, expected: str):
    assert absolute(text, WEDNESDAY) == expected


@pytest.mark.parametrize(
    "text",
    [
        "the last week of May",
        "every last Friday of the month",
        "on Friday",
        "in the last year of school",
        "last but not least, in one day's work",
        "we meet on 2026-05-01",
        "tomorrow (2026-12-03)",
        "下周三（2026-12-09）出差",
        "第三天后记",
        "后天性免疫",
        "周三有例会",
        "上海下雨，下面说",
        "an hour ago",
        "2020年前后",
        "3.5 years ago, 1,000 days ago, 2-3 days ago",
        "two or three days ago, half a year ago, two years and three months ago",
        "三四天前，十几天前，三十多天前，3.5年前，两年零三个月前，一年三个月前，一千天前",
        "He next sat down",
    ],
)
def test_what_has_a_date_or_none_that_is_sure_is_left_alone(text: str):
    assert absolute(text, WEDNESDAY) == text


@pytest.mark.parametrize(
    "text",
    [
        "请说明天气怎么样",
        "目前天气很好，目前年龄41岁",
        "然后天亮了，以后天天跑步",
        "以前年轻，如今年轻人少了",
        "早上周会，晚上月亮很圆",
        "日本月饼",
    ],
)
def test_a_word_that_only_holds_the_letters_of_a_time_is_left_alone(text: str):
    assert absolute(text, WEDNESDAY) == text


@given(st.integers(1, 199))
def test_a_number_is_the_same_in_digits_and_in_either_language(n: int):
    days = (WEDNESDAY - timedelta(days=n)).date().isoformat()
    assert absolute(f"{n} days ago", WEDNESDAY) == f"{n} days ago ({days})"
    for words in (f"{in_chinese(n)}天前", f"{n}天前"):
        assert absolute(words, WEDNESDAY) == f"{words}（{days}）"
    if n < 100:
        assert absolute(f"{in_english(n)} days ago", WEDNESDAY) == f"{in_english(n)} days ago ({days})"


def in_chinese(n: int) -> str:
    hundreds, tens, ones = n // 100, n // 10 % 10, n % 10
    digits = "零一二三四五六七八九"
    ten = ("" if not tens else "十" if n < 20 else f"{digits[tens]}十") or ("零" if hundreds and ones else "")
    return f"{digits[hundreds] + '百' if hundreds else ''}{ten}{digits[ones] if ones else ''}"


def in_english(n: int) -> str:
    first = [*ONES, *TEENS]
    tens, ones = TENS[n // 10 - 2], n % 10
    return first[n - 1] if n < 20 else f"{tens}-{first[ones - 1]}" if ones else tens


def test_a_week_begins_on_monday_and_last_friday_is_the_one_before():
    days = {datetime(2026, 11, 30, tzinfo=UTC) + timedelta(days=n): n for n in range(7)}
    for day, n in days.items():
        assert absolute("next Friday", day) == "next Friday (2026-12-11)"
        assert absolute("下周五", day) == "下周五（2026-12-11）" and absolute("上周五", day) == "上周五（2026-11-27）"
        assert absolute("last Friday", day) == f"last Friday ({'2026-12-04' if n > 4 else '2026-11-27'})"


WORDS = [
    "tomorrow",
    "last Friday",
    "next week",
    "昨天",
    "下周三",
    "三天后",
    "去年",
    "3 days ago",
    "Ann",
    "王芳",
    " ",
    "，",
    "(",
    "）",
    "1",
    "the",
]


@given(st.lists(st.sampled_from(WORDS), max_size=8).map("".join) | st.text(max_size=40), st.datetimes(), st.datetimes())
def test_dates_are_added_once_and_nothing_is_lost(text: str, at: datetime, later: datetime):
    if not 1001 < at.year < 8998:
        return
    dated = absolute(text, at)
    assert absolute(dated, later if 1001 < later.year < 8998 else at) == dated
    kept = iter(dated)
    assert all(char in kept for char in text), "every character of the text, in its order"
    added = re.sub(r" \(\d{4}(?:-\d\d){0,2}~?\)|（\d{4}(?:-\d\d){0,2}~?）", "", dated)
    assert added == re.sub(r" \(\d{4}(?:-\d\d){0,2}~?\)|（\d{4}(?:-\d\d){0,2}~?）", "", text)


def test_a_megabyte_is_read_at_once():
    for piece in ("last ", "上", "3", "in ", "the day after ", "下" * 50):
        absolute(piece * (200_000 // len(piece)), WEDNESDAY)
    assert len(RULES) > 20

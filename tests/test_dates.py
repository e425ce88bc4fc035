"""nodes.dates: relative times get their dates, and nothing else of a text is touched."""

import re
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodes.dates import RULES, absolute

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
    ],
)
def test_what_has_a_date_or_none_that_is_sure_is_left_alone(text: str):
    assert absolute(text, WEDNESDAY) == text


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

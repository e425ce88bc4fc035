"""The cut over long conversations: what can go wrong never does, and the checks would see it."""

import random

from cuts import KINDS, Course, LastOnes, Ours, conversation, drawn, failures

POOL = drawn(60)


def test_after_1_5_and_20_cuts_nothing_went_wrong():
    """B001, B003, B005, B021: no half of a pair, the question there, the rest as it was, all of it read."""
    found = failures(Ours, POOL, count=12, marks=(1, 5, 20))
    assert all(not wrong for wrong in found.values()), found


def test_what_was_ever_said_is_on_the_page_or_in_the_transcript():
    for seed in range(4):
        ours = Ours()
        course, talk = Course(ours), conversation(POOL, random.Random(seed))
        while course.cuts < 20:
            course.take(next(talk))
        assert ours.lost(course) == []


def test_the_checks_see_what_a_naive_cut_does():
    found = failures(LastOnes, POOL, count=20, marks=(5,))[5]
    assert found["result without its call"] and found["newest question gone"] and found["unread"]


def test_the_checks_see_each_kind_of_failure():
    """A page that lost, changed or parted something, judged by hand."""
    turn = next(turn for turn in POOL if any(getattr(message, "tool_calls", None) for message in turn))

    def judged(cut) -> set[str]:
        course = Course(Ours())
        course.take(next(conversation([turn], random.Random(0))))
        course.cut(cut(course.page))
        return course.wrong

    parts = judged(lambda page: [m for m in page if m.type != "tool"])
    assert "call without its result" in parts and KINDS[3] in parts
    assert "result without its call" in judged(lambda page: [m for m in page if m.type == "tool"])
    assert "newest question gone" in judged(lambda page: page[1:])
    assert KINDS[3] in judged(lambda page: [page[-1].model_copy(update={"content": "other"})])

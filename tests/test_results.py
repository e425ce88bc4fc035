"""Results: whatever a tool gives becomes something true, readable, storable and bounded; the whole can be read on."""

import dataclasses
import itertools
import json
import unicodedata
from collections import Counter, OrderedDict, defaultdict, deque, namedtuple
from collections.abc import Iterator
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum
from fractions import Fraction
from pathlib import PurePosixPath
from types import SimpleNamespace
from typing import Any
from uuid import UUID

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from langchain_core.messages import ToolMessage
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.store.memory import InMemoryStore
from pydantic import BaseModel, SecretStr

from memory.outputs import Outputs
from memory.text import clean, within_sign
from nodes.results import Record, bounded, cut_before, is_blocks, plain, presentable, result_message

CALL = {"name": "look", "args": {}, "id": "c1"}


class Colour(Enum):
    RED = "red"


class Visit(BaseModel):
    city: str
    at: datetime
    key: SecretStr = SecretStr("hidden")


@dataclasses.dataclass
class Pair:
    left: Any
    right: Any


class Opaque:
    """Has neither fields nor a text of its own."""


class Frame:
    """Has a size and a mode as a data frame has, and is no picture."""

    size = 4
    mode = print

    def __str__(self) -> str:
        return "a  b\n1  2"


class Endless:
    """Holds itself."""

    def tolist(self) -> Any:
        return [self]


def numbers() -> Iterator[int]:
    yield from (1, 2)


CIRCLE: list[Any] = []
CIRCLE.append(CIRCLE)


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (None, "(no output)"),
        ("", "(no output)"),
        (" \n", "(no output)"),
        ("\x00", "(no output)"),
        ("tea", "tea"),
        ("bold \ud835 text", "bold \ufffd text"),
        ("\ud83c\udf78", "🍸"),
        (b"caf\xc3\xa9", "café"),
        (b"\xff\xfe", "<2 bytes of binary data>"),
        (b"\x00\x01ab", "<4 bytes of binary data>"),
        (bytearray(b"ok"), "ok"),
        (memoryview(b"ok"), "ok"),
        ([{"type": "text", "text": " "}, {"type": "text", "text": ""}], "(no output)"),
        (True, "true"),
        (7, "7"),
        (2**70, str(2**70)),
        (1.5, "1.5"),
        (float("nan"), "nan"),
        (float("-inf"), "-inf"),
        ([], "[]"),
        ({}, "{}"),
        ([1, None, float("nan")], '[1, null, "nan"]'),
        ({"城市": "深圳", "emoji": "🎉"}, '{"城市": "深圳", "emoji": "🎉"}'),
        (["é", "ß"], '["é", "ß"]'),
        ((1, "a"), '[1, "a"]'),
        ({3, 1, 2}, "[1, 2, 3]"),
        ({1: "a", "b": {None: 2}}, '{"1": "a", "b": {"None": 2}}'),
        ({1: "a", "1": "b"}, '[[1, "a"], ["1", "b"]]'),
        (numbers(), "[1, 2]"),
        (range(3), "[0, 1, 2]"),
        ({"a": 1}.keys(), '["a"]'),
        (deque([1], maxlen=2), "[1]"),
        (Counter("aab"), '{"a": 2, "b": 1}'),
        (OrderedDict(b=1, a=2), '{"b": 1, "a": 2}'),
        (defaultdict(list, x=[1]), '{"x": [1]}'),
        (namedtuple("P", "x y")(1, 2), '{"x": 1, "y": 2}'),
        (date(2024, 5, 1), "2024-05-01"),
        (datetime(2024, 5, 1, 10, tzinfo=UTC), "2024-05-01T10:00:00+00:00"),
        (time(10, 30), "10:30:00"),
        (timedelta(hours=1), "1:00:00"),
        (Decimal("0.10"), "0.10"),
        (Fraction(1, 3), "1/3"),
        (UUID(int=1), "00000000-0000-0000-0000-000000000001"),
        (PurePosixPath("/a/b"), "/a/b"),
        (Colour.RED, "red"),
        (
            Visit(city="深圳", at=datetime(2024, 5, 1, tzinfo=UTC)),
            '{"city": "深圳", "at": "2024-05-01T00:00:00+00:00", "key": "<SecretStr: **********>"}',
        ),
        (Pair(left=Colour.RED, right=[b"x"]), '{"left": "red", "right": ["x"]}'),
        (np.float32(0.5), "0.5"),
        (np.int64(3), "3"),
        (np.bool_(True), "true"),
        (np.array([[1, 2], [3, 4]]), "[[1, 2], [3, 4]]"),
        (np.float64("nan"), "nan"),
        (SimpleNamespace(size=(2, 3), mode="RGB"), "<image of (2, 3) pixels, RGB>"),
        (Frame(), "<Frame: a  b\n1  2>"),
        (Opaque(), "<Opaque>"),
        (Opaque, "<type: <class 'test_results.Opaque'>>"),
        (ValueError("bad"), "<ValueError: bad>"),
        (CIRCLE, "<list that cannot be shown: RecursionError>"),
        (Endless(), "<Endless that cannot be shown: RecursionError>"),
        (10**5000, "<int that cannot be shown: ValueError>"),
        ([{"type": "file", "name": "a.txt"}], '[{"type": "file", "name": "a.txt"}]'),
        ([{"type": "text"}], '[{"type": "text"}]'),
    ],
    ids=lambda one: type(one).__name__,
)
def test_whatever_a_tool_gives_is_shown_as_what_it_is(value, shown):
    """B033, B056, B060."""
    assert presentable(value) == shown


def test_an_endless_generator_is_read_to_a_limit_and_says_so():
    items = json.loads(presentable(itertools.count()))
    assert items[:2] == [0, 1] and len(items) == 10_001 and "more than 10000" in items[-1]


def test_blocks_of_text_and_pictures_stay_blocks():
    blocks = [{"type": "text", "text": "a"}, {"type": "image", "base64": "aGk=", "mime_type": "image/png"}]
    assert presentable(blocks) == blocks


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.binary() | st.dates() | st.decimals(),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.tuples(inner, inner)
        | st.dictionaries(st.text() | st.integers() | st.none(), inner, max_size=3)
        | st.builds(Pair, left=inner, right=inner)
        | st.builds(iter, st.lists(inner, max_size=2))
    ),
    max_leaves=8,
)
ANY_TEXT = st.text(st.characters(exclude_categories=())).map(lambda text: text + "\ud800") | st.text()


@given(JSON | ANY_TEXT)
@example(b"")
def test_any_value_becomes_text_that_every_encoder_and_store_takes(value):
    """B040, B056, B060."""
    shown = presentable(value)
    message = result_message(CALL, shown, Record(ok=True))
    text = message.text if is_blocks(shown) else shown
    assert text.strip() and clean(text) == text and text.encode()
    serde = JsonPlusSerializer()
    assert serde.loads_typed(serde.dumps_typed(message)) == message


@given(JSON)
def test_a_plain_value_is_json_and_plain_already(value):
    made = plain(value)
    assert json.loads(json.dumps(made, allow_nan=False)) == made
    assert json.dumps(plain(made)) == json.dumps(made)


def test_artifacts_and_extras_are_kept_in_plain_form():
    """B056."""
    given_ = ToolMessage("x", tool_call_id="c1", artifact=np.float32(0.5), additional_kwargs={"n": np.int64(3)})
    made = result_message(CALL, "x", Record(ok=True), given_)
    assert (made.artifact, made.additional_kwargs["n"]) == (0.5, 3)
    assert made.additional_kwargs["record"]["ok"] is True


PIECES = [
    "a",
    "é",
    "e\u0301",
    "好",
    "。",
    "👩‍👩‍👧‍👦",
    "👍🏽",
    "🇩🇪",
    "❤️",
    " ",
    "\n",
    "\r\n",
    ". ",
    '{"id": 1}, ',
    "], ",
    "\u0e33",
]
LONG = st.lists(st.sampled_from(PIECES), min_size=1, max_size=2000).map("".join) | st.text(min_size=300, max_size=1500)


def parts_of(shown: str, text: str) -> tuple[str, str, str]:
    """Part a bounded text into head, note and tail."""
    head, _, rest = shown.partition("\n[… ")
    note, _, tail = rest.partition(" …]\n")
    return head, note, tail


@settings(max_examples=200)
@given(LONG, st.integers(200, 400))
def test_a_cut_keeps_the_limit_and_shows_parts_of_the_text(text, limit):
    """B035."""
    shown = bounded(text, limit=limit, id="r-1")
    if len(text) <= limit:
        assert shown == text
        return
    head, note, tail = parts_of(shown, text)
    assert len(head) + len(tail) <= limit
    assert text.startswith(head) and text.endswith(tail)
    offset = int(note.split("offset=")[1].rstrip(")"))
    missing = int(note.split(" of ")[0])
    assert text[:offset].rstrip() == head and text[offset + missing :] == tail
    assert f"of {len(text)} characters" in note


@settings(max_examples=200)
@given(LONG, st.integers(40, 300))
def test_pieces_read_one_after_the_other_are_the_whole(text, limit):
    pieces, at = [], 0
    while at < len(text):
        end = cut_before(text, at + limit, at)
        assert at < end <= at + limit
        pieces.append(text[at:end])
        at = end
    assert "".join(pieces) == text


@settings(max_examples=200)
@given(LONG, st.integers(200, 400))
def test_no_cut_parts_what_is_one_character_to_a_reader(text, limit):
    """B035: emoji, flags, families, accents."""
    if len(text) <= limit:
        return
    end = cut_before(text, limit)
    assert not within_sign(text, end)
    assert unicodedata.combining(text[end]) == 0 and "\u200d" not in (text[end], text[end - 1])


@pytest.mark.parametrize(
    ("text", "end"),
    [("line one\nline two. More\n" * 100, "\n"), ('{"id": 1, "x": 2}, ' * 100, "},"), ("第一句话。" * 200, "。")],
    ids=["lines", "records", "sentences"],
)
def test_a_cut_falls_at_the_end_of_a_line_else_a_record_else_a_sentence(text, end):
    head, _, tail = parts_of(bounded(text, limit=500, id="r-1"), text)
    assert head.endswith(end.strip()) or text[len(head)] == end
    assert (text[: len(text) - len(tail)]).endswith(end)


@pytest.mark.parametrize("text", ["x" * 1_500_000, "汉" * 400_000, "👩‍👩‍👧‍👦" * 100_000, ("y" * 99 + "\n") * 15_000])
def test_a_huge_text_is_cut_to_the_limit_with_its_size_and_the_way_to_the_rest(text):
    """B035: one single line of 1.5 million characters; a megabyte of Chinese; emoji; lines."""
    shown = bounded(text, limit=20_000, id="r-1")
    head, note, tail = parts_of(shown, text)
    assert len(head) > 10_000 and len(head) + len(tail) <= 20_000 and len(tail) > 1_000
    assert f"of {len(text)} characters" in note and "tool_result(id='r-1', offset=" in note


def test_a_text_that_could_not_be_kept_says_so():
    assert "they were not kept" in bounded("x" * 1000, limit=200, id="")


def test_a_kept_result_is_read_by_its_user_and_thread_only():
    store = InMemoryStore()
    mine = Outputs(store, user="ann", thread="t")
    id, op = mine.keeping("all of it")
    store.batch([op])
    assert mine.read(id) == "all of it"
    assert Outputs(store, user="bob", thread="t").read(id) is None
    assert Outputs(store, user="ann", thread="other").read(id) is None
    mine.erase()
    assert mine.read(id) is None


def test_two_results_never_share_an_id_unless_they_are_the_same():
    """B032: servers that count from one use the ids of calls again."""
    mine = Outputs(InMemoryStore(), user="ann", thread="t")
    assert mine.keeping("a")[0] == mine.keeping("a")[0] != mine.keeping("b")[0]

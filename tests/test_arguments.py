"""Arguments: validated strictly and field by field; coerced only as listed; nothing invented, nothing dropped."""

import json
import warnings
from datetime import date, datetime
from decimal import Decimal
from enum import Enum
from typing import Annotated, Any, Literal
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.tools import StructuredTool
from pydantic import BaseModel, Field

from nodes.arguments import BadArguments, checked
from nodes.contract import mount

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)
TEXTS = ["12", " 12 ", "-7", "+3", "007", "1.5", "1e3", "1e999", "nan", "inf", "0x10", "1_000", "１２", "12a", "1", "0"]
TEXTS += ["true", "True", "yes", "on", "", " ", "null", "[1]"]
NUMBERISH = st.sampled_from([*TEXTS, 12, 0, 1, 3.0, 1.5, True, False, None, [], [1], {}, 1e300, -0.0])


class Colour(Enum):
    RED = "red"
    BLUE = "blue"


class Point(BaseModel):
    x: int
    label: str = "none"


class Cat(BaseModel):
    kind: Literal["cat"]
    lives: int


class Dog(BaseModel):
    kind: Literal["dog"]
    name: str


def fields(
    whole: int = 0,
    number: float = 0.5,
    flag: bool = False,
    text: str = "",
    maybe: int | None = None,
    either: int | str = 0,
    some: list[int] = [],  # noqa: B006
    point: Point | None = None,
    points: dict[str, Point] = {},  # noqa: B006
    pet: Annotated[Cat | Dog | None, Field(discriminator="kind")] = None,
    colour: Colour = Colour.RED,
    pick: Literal["a", "b"] = "a",
    day: date = date(2020, 1, 1),
    at: datetime | None = None,
    exact: Decimal = Decimal(0),
    id: UUID | None = None,
    few: Annotated[int, Field(ge=1, le=9)] = 1,
    free: dict[str, Any] = {},  # noqa: B006
    pair: tuple[int, str] = (0, ""),
) -> str:
    """Take everything."""
    return "ok"


def mounted(tool: Any) -> Any:
    """Mount a tool whose parameters need no description here."""
    with warnings.catch_warnings(action="ignore"):
        return mount([tool])[0]


FIELDS = mounted(fields)
SCHEMA = {
    "type": "object",
    "$defs": {"P": {"type": "object", "properties": {"x": {"type": "integer"}}, "required": ["x"]}},
    "properties": {
        "whole": {"type": "integer"},
        "number": {"type": "number"},
        "flag": {"type": "boolean"},
        "text": {"type": "string"},
        "maybe": {"anyOf": [{"type": "integer"}, {"type": "null"}]},
        "nullable": {"type": ["integer", "null"]},
        "some": {"type": "array", "items": {"type": "integer"}},
        "point": {"$ref": "#/$defs/P"},
        "pick": {"enum": ["a", "b"]},
        "few": {"type": "integer", "minimum": 1, "maximum": 9},
        "free": {"type": "object"},
    },
}
REMOTE = mounted(StructuredTool(name="remote", description="As MCP gives it.", func=lambda **_: "", args_schema=SCHEMA))
BOTH = pytest.mark.parametrize("tool", [FIELDS, REMOTE], ids=["pydantic", "json schema"])


def check(tool: Any, **args: Any) -> dict[str, Any]:
    return checked(args, tool.parameters, tool.judge)


def problem(tool: Any, **args: Any) -> str:
    with pytest.raises(BadArguments) as caught:
        check(tool, **args)
    return str(caught.value)


@BOTH
@pytest.mark.parametrize(
    ("name", "came", "means"),
    [
        ("whole", "12", 12),
        ("whole", " -7 ", -7),
        ("number", "2.5", 2.5),
        ("number", "1e3", 1000.0),
        ("number", 2, 2),
        ("flag", "true", True),
        ("flag", "False", False),
        ("maybe", "12", 12),
        ("maybe", None, None),
        ("some", ["1", 2], [1, 2]),
        ("point", {"x": "4"}, {"x": 4}),
    ],
)
def test_the_listed_coercions_are_made_at_any_depth(tool, name, came, means):
    got = check(tool, **{name: came})[name]
    assert got == means and type(got) is type(means)


def test_a_number_without_a_fraction_is_a_whole_one():
    assert check(FIELDS, whole=3.0) == {"whole": 3} and check(REMOTE, whole=3.0) == {"whole": 3}


@BOTH
@pytest.mark.parametrize(
    ("name", "came"),
    [
        ("flag", "yes"),
        ("flag", 1),
        ("flag", "1"),
        ("whole", 1.5),
        ("whole", "1.5"),
        ("whole", True),
        ("whole", "007"),
        ("whole", "１２"),
        ("whole", ""),
        ("number", "1e999"),
        ("number", "nan"),
        ("number", True),
        ("text", 12),
        ("text", None),
        ("some", "1,2"),
        ("some", "[1, 2]"),
        ("some", 1),
        ("point", '{"x": 1}'),
        ("pick", "c"),
        ("few", 10),
        ("few", "0"),
    ],
)
def test_what_would_be_a_guess_is_refused_with_the_field_and_what_came(tool, name, came):
    told = problem(tool, **{name: came})
    assert told.startswith(name) and "; got " in told


@pytest.mark.parametrize(
    "args",
    [
        {"day": "2024-05-01"},
        {"at": "2024-05-01T10:00:00Z"},
        {"colour": "blue"},
        {"exact": "0.10"},
        {"id": "12345678-1234-5678-1234-567812345678"},
        {"either": "12"},
        {"either": 12},
        {"pair": [1, "a"]},
        {"pet": {"kind": "dog", "name": "Rex"}},
        {"points": {"a": {"x": 1}}},
        {"free": {"anything": [1, {"deep": None}]}},
    ],
)
def test_iso_dates_enums_unions_and_free_objects_pass_unchanged(args):
    assert check(FIELDS, **args) == args


@pytest.mark.parametrize(
    ("args", "told"),
    [
        ({"day": "01.05.2024"}, "day: "),
        ({"day": "tomorrow"}, "day: "),
        ({"colour": "green"}, "'red' or 'blue'"),
        ({"pair": [1]}, "pair.1: is required and missing"),
        ({"pet": {"kind": "cow"}}, "pet.Cat.kind: Input should be 'cat'; got \"cow\"."),
        ({"pet": {"kind": "cat", "lives": "nine"}}, "pet.Cat.lives: Input should be a valid integer"),
        ({"point": {}}, "point.x: is required and missing."),
        ({"few": 10, "flag": "maybe"}, "flag: Input should be a valid boolean"),
    ],
)
def test_each_field_that_does_not_fit_is_named_with_what_it_must_be(args, told):
    assert told in problem(FIELDS, **args)


def test_a_missing_name_of_a_json_schema_is_named():
    assert problem(REMOTE, point={}) == "point.x: is required and missing."


@BOTH
@pytest.mark.parametrize(
    ("args", "strange"),
    [
        ({"wohle": 1}, "wohle"),
        ({"whole": 1, "b": 2, "c": 3}, "b, c"),
        ({"point": {"x": 1, "y": 2}}, "point.y (known there: x"),
        ({"runtime": {}, "state": {}}, "runtime, state"),
    ],
)
def test_unknown_names_are_told_at_every_level_never_dropped(tool, args, strange):
    told = problem(tool, **args)
    assert told.startswith(f"unknown: {strange}") and "; the parameters are whole, number" in told


@pytest.mark.parametrize(
    ("args", "strange"),
    [
        ({"points": {"a": {"x": 1, "z": 2}}}, "points.a.z (known there: x, label)"),
        ({"pet": {"kind": "dog", "name": "Rex", "age": 3}}, "pet.age (known there: kind, name)"),
    ],
)
def test_unknown_names_are_told_in_mappings_and_unions(args, strange):
    assert problem(FIELDS, **args).startswith(f"unknown: {strange};")


def test_many_problems_are_told_once_each_and_counted_beyond_a_few():
    told = problem(FIELDS, some=["x"] * 30)
    assert told.count("some.") == 8 and told.endswith("And 22 more.")


def test_what_came_is_shown_with_real_characters_and_cut():
    told = problem(FIELDS, whole="一" * 500)
    assert "一一一" in told and len(told) < 250


def flattened(value: Any) -> list[Any]:
    """Return the leaves of a value."""
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else None
    return [value] if inner is None else [leaf for one in inner for leaf in flattened(one)]


def is_listed(before: Any, after: Any) -> bool:
    """Whether the second value is the first, or what the listed coercions make of it."""
    if type(before) is type(after) and before == after:
        return True
    if isinstance(before, float) and isinstance(after, int) and not isinstance(after, bool):
        return before == after
    if not isinstance(before, str):
        return False
    if isinstance(after, bool):
        return before.strip().lower() == str(after).lower()
    return json.loads(before.strip().lstrip("+")) == after


@pytest.mark.parametrize("kind", ["pydantic", "json schema"])
@given(st.dictionaries(st.sampled_from(list(SCHEMA["properties"])), NUMBERISH | JSON, max_size=4))
def test_whatever_comes_is_refused_or_passes_with_listed_changes_only(kind, args):
    tool = FIELDS if kind == "pydantic" else REMOTE
    before = json.dumps(args)
    try:
        got = checked(args, tool.parameters, tool.judge)
    except BadArguments as error:
        assert str(error) and len(str(error)) < 3000
    else:
        assert got.keys() == args.keys()
        old, new = flattened(args), flattened(got)
        assert len(old) == len(new) and all(map(is_listed, old, new))
        assert checked(got, tool.parameters, tool.judge) == got
    assert json.dumps(args) == before


def test_defaults_stay_the_tools_own():
    assert check(FIELDS) == {}
    assert FIELDS.tool.invoke(check(FIELDS)) == "ok"

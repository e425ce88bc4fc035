"""nodes.schema: references, recursion, aliases and odd names of parameters; what is sent is what is judged."""

import json
from datetime import date
from typing import Any

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.tools import StructuredTool
from pydantic import BaseModel, ConfigDict, Field, model_validator
from test_contract import objects
from tool_graphs import WAYS, call, record, result, results, session

from nodes.arguments import BadArguments, checked
from nodes.contract import BadTool, Mounted, mount
from nodes.schema import closed_schema

pytestmark = pytest.mark.filterwarnings("ignore:tool '")


class Tree(BaseModel):
    value: int
    kids: list["Tree"] = []


def prune(tree: Tree) -> str:
    """Prune.

    Args:
        tree: what to prune
    """
    return tree.model_dump_json()


NODE = {
    "type": "object",
    "properties": {"value": {"type": "integer"}, "kids": {"type": "array", "items": {"$ref": "#/$defs/Node"}}},
    "required": ["value"],
}


async def echo(**arguments: Any) -> str:
    return json.dumps(arguments)


def remote(properties: dict[str, Any], **more: Any) -> StructuredTool:
    """Return a tool as MCP gives it."""
    schema = {"type": "object", "properties": properties, **more}
    return StructuredTool(name="remote", description="Ask.", coroutine=echo, args_schema=schema)


def one(tool: Any) -> Mounted:
    return mount([tool])[0]


def judged(tool: Mounted, **args: Any) -> dict[str, Any]:
    return checked(args, tool.parameters, tool.judge)


RECURSIVE = [
    one(prune),
    one(remote({"tree": {"$ref": "#/$defs/Node", "description": "a tree"}}, **{"$defs": {"Node": NODE}})),
]


@pytest.mark.parametrize("tool", RECURSIVE, ids=["pydantic", "json schema"])
def test_a_schema_that_names_itself_is_closed_coerced_and_told_at_every_depth(tool):
    assert all(found["additionalProperties"] is False for found in objects(tool.parameters))
    jsonschema.Draft202012Validator.check_schema(tool.parameters)
    deep = {"value": 1, "kids": [{"value": 2, "kids": [{"value": "3"}]}]}
    assert judged(tool, tree=deep)["tree"]["kids"][0]["kids"] == [{"value": 3}]
    with pytest.raises(BadArguments, match=r"unknown: tree\.kids\.0\.kids\.0\.height"):
        judged(tool, tree={"value": 1, "kids": [{"value": 2, "kids": [{"value": 3, "height": 4}]}]})
    with pytest.raises(BadArguments, match=r"tree\.kids\.0\.value: "):
        judged(tool, tree={"value": 1, "kids": [{"value": "two"}]})


@pytest.mark.parametrize("way", WAYS)
def test_a_recursive_argument_reaches_the_tool_whole(way):
    given_ = {"value": 1, "kids": [{"value": "2"}]}
    with session(call("prune", tree=given_), "Pruned.", tools=[prune], way=way) as s:
        assert json.loads(result(s.turn()).text)["kids"] == [{"value": 2, "kids": []}]


DEFINED = st.recursive(
    st.sampled_from([{"type": "integer"}, {"$ref": "#/$defs/A"}, {"$ref": "#/$defs/B", "description": "d"}, {}]),
    lambda inner: (
        st.fixed_dictionaries({"type": st.just("array"), "items": inner})
        | st.fixed_dictionaries({"anyOf": st.lists(inner, min_size=1, max_size=2)})
        | st.fixed_dictionaries(
            {
                "type": st.just("object"),
                "properties": st.dictionaries(st.sampled_from(["a", "$ref", "title", "properties"]), inner, max_size=2),
            }
        )
    ),
    max_leaves=6,
)
VALUES = st.recursive(
    st.integers() | st.none(),
    lambda inner: (
        st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(["a", "$ref", "title"]), inner, max_size=2)
    ),
    max_leaves=5,
)


def bounded(node: Any, at: str) -> bool:
    """Whether a definition comes to something before it comes to itself."""
    return not (isinstance(node, dict) and (node.get("$ref") or "anyOf" in node))


@given(
    DEFINED, DEFINED.filter(lambda node: bounded(node, "A")), DEFINED.filter(lambda node: bounded(node, "B")), VALUES
)
def test_writing_references_out_changes_no_verdict(x, a, b, value):
    """Whatever a value is worth by the schema as it was given, it is worth by the one that is sent, keys apart."""
    raw = {"type": "object", "properties": {"x": x}, "$defs": {"A": a, "B": b}}
    made = closed_schema(raw)
    opened = json.loads(json.dumps(made).replace('"additionalProperties": false, ', ""))
    assert "#/$defs/" not in json.dumps(made) or "$defs" in made
    verdicts = [jsonschema.Draft202012Validator(one).is_valid({"x": value}) for one in (raw, opened)]
    assert verdicts[0] == verdicts[1]


class Route(BaseModel):
    model_config = ConfigDict(extra="allow")
    from_: str = Field(alias="from", description="where it begins")
    day: date = Field(description="when")
    hours: int = Field(default=1, description="how long")

    @model_validator(mode="after")
    def is_short(self) -> "Route":
        if self.hours > 24:
            raise ValueError("a route takes a day at most")
        return self


def drive(from_: str, day: date, hours: int, **more: Any) -> str:
    return f"{from_} {day.isoformat()} {hours} {more}"


@pytest.mark.parametrize("way", WAYS)
def test_a_model_of_ones_own_keeps_its_aliases_extras_and_validators(way):
    tool = StructuredTool(name="drive", description="Drive.", args_schema=Route, func=drive)
    route = {"from": "深圳", "day": "2024-05-01"}
    calls = [
        call("drive", "c1", **route),
        call("drive", "c2", **route, hours=25),
        call("drive", "c3", **route, via="x"),
    ]
    with session(calls, "Driven.", tools=[tool], way=way) as s:
        plain, long, more = results(s.turn())
    assert (plain.text, more.text) == ("深圳 2024-05-01 1 {}", "深圳 2024-05-01 1 {'via': 'x'}")
    assert record(long)["kind"] == "invalid_arguments" and "a route takes a day at most" in long.text


@pytest.mark.parametrize(
    ("schema", "came", "means"),
    [
        ({"type": "integer"}, 3.0, 3),
        ({"type": "integer"}, "1" + "0" * 30, 10**30),
        ({"type": "integer"}, 1e20, 10**20),
        ({"type": "string", "format": "date"}, "2024-05-01", "2024-05-01"),
        ({"type": ["integer", "null"]}, None, None),
    ],
)
def test_a_remote_tool_gets_whole_numbers_as_such(schema, came, means):
    got = judged(one(remote({"x": schema})), x=came)["x"]
    assert got == means and type(got) is type(means)


def test_a_date_that_is_none_is_told():
    with pytest.raises(BadArguments, match="'tomorrow' is not a 'date'"):
        judged(one(remote({"x": {"type": "string", "format": "date"}})), x="tomorrow")


def test_parameters_may_be_called_as_keywords_are():
    names = ["title", "description", "properties", "required", "$ref", "type", "default", "enum", "$defs"]
    tool = one(remote({name: {"type": "integer", "description": "n"} for name in names}))
    assert list(tool.parameters["properties"]) == names
    assert judged(tool, **dict.fromkeys(names, "1")) == dict.fromkeys(names, 1)
    with pytest.raises(BadArguments, match="unknown: titel"):
        judged(tool, titel=1)


def test_names_by_pattern_and_any_names_stay_open():
    assert judged(one(remote({}, patternProperties={"^x_": {"type": "integer"}})), x_a="1") == {"x_a": 1}
    assert judged(one(remote({}, additionalProperties=True)), anything=1) == {"anything": 1}


@pytest.mark.parametrize("ref", ["https://a.example/s.json", "#/$defs/Nowhere", "other.json#/x"])
def test_a_reference_that_leads_nowhere_is_refused_at_mounting(ref):
    with pytest.raises(BadTool, match=r"'remote'.*leads nowhere"):
        mount([remote({"x": {"$ref": ref}})])

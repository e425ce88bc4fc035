"""The contract of a tool: what the model is told, what is refused at mounting, and that any tool serves both ways."""

import asyncio
import json
import warnings
from datetime import date
from enum import Enum
from typing import Annotated, Any, Literal

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from langchain_core.runnables import RunnableConfig
from langchain_core.tools import BaseTool, StructuredTool, Tool, tool
from langgraph.prebuilt import InjectedState, InjectedStore, ToolRuntime
from pydantic import BaseModel, Field

from nodes.contract import BadTool, marked, mount
from nodes.schema import closed
from nodes.toolbox import OWN_TOOLS

pytestmark = pytest.mark.filterwarnings("ignore:tool '")


class Size(Enum):
    SMALL = "small"
    LARGE = "large"


class Item(BaseModel):
    name: str
    size: Size = Size.SMALL


class Order(BaseModel):
    items: list[Item]
    by: dict[str, Item] = {}


def order(order: Order, when: date, kind: Literal["a", "b"] = "a", note: str | None = None) -> str:
    """Place an order.

    Args:
        order: what to order
        when: the day
        kind: the kind
        note: anything else
    """
    return "done"


def objects(schema: Any) -> list[dict[str, Any]]:
    """Return every object with named properties in a schema."""
    inner = schema.values() if isinstance(schema, dict) else schema if isinstance(schema, list) else []
    own = [schema] if isinstance(schema, dict) and isinstance(schema.get("properties"), dict) else []
    return own + [found for one in inner for found in objects(one)]


def test_a_plain_function_is_a_tool_with_its_descriptions_defaults_and_enums():
    (mounted,) = mount([order])
    parameters = mounted.parameters
    assert mounted.schema["function"]["description"] == "Place an order."
    assert [one["description"] for one in parameters["properties"].values()] == [
        "what to order",
        "the day",
        "the kind",
        "anything else",
    ]
    assert parameters["properties"]["kind"]["enum"] == ["a", "b"] and parameters["properties"]["kind"]["default"] == "a"
    assert parameters["properties"]["note"]["default"] is None
    item = parameters["properties"]["order"]["properties"]["items"]["items"]["properties"]
    assert item["size"]["enum"] == ["small", "large"] and item["size"]["default"] == "small"
    assert parameters["required"] == ["order", "when"]


def test_every_object_with_named_properties_is_closed_at_every_level():
    (mounted,) = mount([order])
    found = objects(mounted.parameters)
    assert len(found) == 4 and all(one["additionalProperties"] is False for one in found)


@pytest.mark.parametrize("own", OWN_TOOLS, ids=lambda one: one.name)
def test_the_tools_that_come_with_it_are_described_and_closed(own):
    jsonschema.Draft202012Validator.check_schema(own.parameters)
    assert own.schema["function"]["description"]
    assert all(one.get("description") for one in own.parameters["properties"].values())
    assert all(one["additionalProperties"] is False for one in objects(own.parameters))


SCHEMAS = st.recursive(
    st.sampled_from([{"type": "string"}, {"type": "integer"}, {"type": "object"}, {"enum": [{"properties": {}}]}, {}]),
    lambda inner: (
        st.fixed_dictionaries({"type": st.just("array"), "items": inner})
        | st.fixed_dictionaries({"anyOf": st.lists(inner, min_size=1, max_size=3)})
        | st.fixed_dictionaries(
            {
                "type": st.just("object"),
                "properties": st.dictionaries(
                    st.sampled_from(["a", "default", "not", "properties"]), inner, max_size=3
                ),
            }
        )
        | st.fixed_dictionaries({"$defs": st.dictionaries(st.sampled_from(["P", "enum"]), inner, max_size=2)})
    ),
    max_leaves=12,
)


@given(SCHEMAS)
def test_closing_adds_one_keyword_to_objects_with_properties_and_changes_nothing_else(schema):
    def opened(node: Any) -> Any:
        if isinstance(node, list):
            return [opened(one) for one in node]
        if not isinstance(node, dict):
            return node
        return {
            key: opened(value) for key, value in node.items() if not (key == "additionalProperties" and value is False)
        }

    made = closed(schema)
    assert opened(made) == schema
    assert closed(made) == made
    jsonschema.Draft202012Validator.check_schema(made)


def test_an_object_of_free_keys_and_a_composed_one_stay_usable():
    schema = {
        "type": "object",
        "properties": {
            "free": {"type": "object", "description": "x"},
            "both": {
                "description": "x",
                "allOf": [
                    {"type": "object", "properties": {"a": {"type": "integer"}}},
                    {"type": "object", "properties": {"b": {"type": "integer"}}},
                ],
            },
        },
    }
    made = closed(schema)
    jsonschema.validate({"free": {"any": 1}, "both": {"a": 1, "b": 2}}, made)


def test_injected_parameters_are_not_shown_to_the_model():
    def tell(
        x: Annotated[int, Field(description="a number")],
        runtime: ToolRuntime,
        state: Annotated[dict, InjectedState],
        store: Annotated[Any, InjectedStore()],
    ) -> str:
        """Tell."""
        return ""

    (mounted,) = mount([tell])
    assert list(mounted.parameters["properties"]) == ["x"]


def test_a_tool_of_json_schema_alone_is_mounted_as_mcp_gives_it():
    given = StructuredTool(
        name="remote",
        description="Ask a server.",
        args_schema={
            "type": "object",
            "$defs": {"P": {"type": "object", "properties": {"a": {"type": "integer"}}}},
            "properties": {"p": {"$ref": "#/$defs/P", "description": "a point"}},
            "required": ["p"],
        },
        coroutine=answer,
    )
    (mounted,) = mount([given])
    assert all(one["additionalProperties"] is False for one in objects(mounted.parameters))
    assert len(objects(mounted.parameters)) == 2


async def answer(**args: Any) -> str:
    return json.dumps(args)


def bare(x: int, y: int = 2) -> str:
    """Add."""
    return str(x + y)


def test_a_parameter_without_a_description_is_an_error_for_ours_and_a_warning_with_its_name_for_others():
    with pytest.raises(BadTool, match=r"'bare'.*'x'.*docstring"):
        mount([bare], own=True)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        mount([bare])
    assert ["'x'" in str(caught[0].message), "'y'" in str(caught[1].message)] == [True, True]


def test_a_description_longer_than_openai_takes_is_cut_at_a_sentence_with_a_warning():
    long = StructuredTool.from_function(bare, description="It adds. " * 200)
    with pytest.warns(UserWarning, match="1799 characters"):
        (mounted,) = mount([long])
    sent = mounted.schema["function"]["description"]
    assert len(sent) <= 1024 and sent.endswith("It adds. ") and mounted.tool.description == long.description


def test_a_config_may_be_asked_for_under_any_name_and_in_any_form_of_annotation():
    def tell(x: int, settings: "RunnableConfig") -> str:
        """Tell."""
        return str(sorted(settings))

    (mounted,) = mount([tell])
    assert list(mounted.parameters["properties"]) == ["x"]
    assert "callbacks" in mounted.tool.invoke({"x": 1})


def undocumented(x: int) -> str:
    return str(x)


def hidden(x: "Nowhere") -> str:  # noqa: F821
    """Take what is not defined."""
    return str(x)


def unhinted(x, y: int = 1):
    """Take anything.

    Args:
        x: anything
        y: a number
    """
    return str(x)


@pytest.mark.parametrize(
    ("given", "told"),
    [
        (unhinted, "'unhinted' cannot be a tool: no type hint says what 'x' must be"),
        (undocumented, "'undocumented' cannot be a tool"),
        (hidden, "'hidden' cannot be a tool"),
        (3, "a function or a LangChain tool, got 3"),
        ("recall", "a function or a LangChain tool, got 'recall'"),
        (StructuredTool.from_function(bare, name="查天气"), "got '查天气'; rename it"),
        (StructuredTool.from_function(bare, name="Web Lookup"), "got 'Web Lookup'"),
        (StructuredTool.from_function(bare, name="x" * 80), "1 to 64"),
        (
            StructuredTool(
                name="m", description="d", func=bare, args_schema={"type": "object", "properties": {"a": 3}}
            ),
            "no JSON schema",
        ),
    ],
    ids=[
        "no type hint",
        "no docstring",
        "unknown type",
        "number",
        "text",
        "Chinese name",
        "blank in name",
        "long name",
        "bad schema",
    ],
)
def test_what_cannot_be_a_tool_is_refused_at_mounting_with_its_name_and_the_reason(given, told):
    """B081."""
    with pytest.raises(BadTool, match=told):
        mount([given])


def test_two_tools_of_one_name_are_refused():
    with pytest.raises(BadTool, match="twice: bare"):
        mount([bare, bare])


class OnlySync(BaseTool):
    name: str = "only_sync"
    description: str = "Double."

    def _run(self, x: int) -> Any:
        return x * 2


class OnlyAsync(BaseTool):
    name: str = "only_async"
    description: str = "Double."

    def _run(self, x: int) -> Any:
        raise NotImplementedError("use ainvoke")

    async def _arun(self, x: int) -> Any:
        await asyncio.sleep(0)
        return x * 2


def double(x: int) -> int:
    """Double."""
    return x * 2


async def adouble(x: int) -> int:
    """Double."""
    await asyncio.sleep(0)
    return x * 2


KINDS = [
    double,
    adouble,
    tool(double),
    tool(adouble),
    OnlySync(),
    OnlyAsync(),
    StructuredTool.from_function(double, coroutine=adouble),
    marked(idempotent=True)(double),
]


@pytest.mark.parametrize("kind", KINDS, ids=lambda one: getattr(one, "name", getattr(one, "__name__", "marked")))
async def test_any_kind_of_tool_serves_both_ways(kind):
    """B036."""
    (mounted,) = mount([kind])
    assert await asyncio.to_thread(mounted.tool.invoke, {"x": 4}) == "8"
    assert await mounted.tool.ainvoke({"x": 4}) == "8"


async def test_a_tool_of_one_text_serves_both_ways():
    (mounted,) = mount([Tool(name="old", description="Shout.", func=str.upper)])
    assert list(mounted.parameters["properties"]) == ["__arg1"]
    assert (
        await asyncio.to_thread(mounted.tool.invoke, {"__arg1": "a"})
        == "A"
        == await mounted.tool.ainvoke({"__arg1": "a"})
    )


def test_mounting_leaves_the_given_tool_as_it_was():
    given = OnlySync()
    mount([given])
    assert given.invoke({"x": 4}) == 8
    assert "_run" not in vars(given)


@settings(max_examples=50)
@given(st.text(max_size=70))
def test_only_names_that_providers_take_are_mounted(name: str):
    """B081."""
    given = StructuredTool.from_function(bare).model_copy(update={"name": name})
    fits = 1 <= len(name) <= 64 and all(c.isascii() and (c.isalnum() or c in "_-") for c in name)
    if fits:
        assert mount([given])[0].name == name
    else:
        with pytest.raises(BadTool):
            mount([given])

"""The JSON schema of a tool's parameters as the model is sent it, and what judges arguments by it.

References are written out, those of a recursion kept; every object that names its properties is closed. Nothing here
looks at arguments.
"""

from collections.abc import Iterator
from typing import Any, TypeAlias

from jsonschema import Draft202012Validator
from jsonschema.protocols import Validator
from jsonschema.validators import extend, validator_for
from langchain_core.tools import BaseTool
from langchain_core.tools import Tool as TextTool
from langchain_core.utils.function_calling import convert_to_openai_tool
from pydantic import BaseModel

DATA = {"default", "enum", "const", "examples"}
"""Keywords of a schema whose values are no schemas."""

MAPS = {"properties", "$defs", "definitions"}
"""Keywords whose values map names, any names, to schemas."""

PARTIAL = {"allOf", "not", "if", "then", "else", "dependentSchemas"}
"""Keywords under which a schema speaks of a part of an object: closed, it would refuse the whole."""

REPLACED = {"$ref", "$defs", "definitions", "discriminator"}
"""Keywords that are references, or hold what is referred to."""

Schema = dict[str, Any]
Judge: TypeAlias = type[BaseModel] | Validator


def parameters_of(tool: BaseTool) -> tuple[Schema, Judge]:
    """Return the schema of what the model may give, and what judges it. Raises what a bad schema makes it trip over."""
    if (model := model_of(tool)) is not None:
        return closed_schema(model.model_json_schema()), model
    given = tool.args_schema
    raw = given if isinstance(given, dict) else convert_to_openai_tool(tool)["function"].get("parameters")
    parameters = closed_schema(raw or {})
    kind = validator_for(parameters, default=Draft202012Validator)
    kind.check_schema(parameters)
    whole = kind.TYPE_CHECKER.redefine("integer", lambda _, value: type(value) is int)  # 3.0 is to be coerced
    judge: Validator = extend(kind, type_checker=whole)(parameters, format_checker=kind.FORMAT_CHECKER)
    return parameters, judge


def model_of(tool: BaseTool) -> type[BaseModel] | None:
    """Return the pydantic model of the arguments, with aliases and validators if the tool injects nothing."""
    own, shown = tool.args_schema, tool.tool_call_schema
    if isinstance(tool, TextTool) or not (isinstance(shown, type) and issubclass(shown, BaseModel)):
        return None
    if isinstance(own, type) and issubclass(own, BaseModel) and own.model_fields.keys() == shown.model_fields.keys():
        return own
    return shown


def closed_schema(raw: Schema) -> Schema:
    """Return a schema of parameters with references written out and objects closed."""
    schema: Schema = closed({"type": "object", "properties": {}} | written_out(raw))
    schema.pop("description", None)  # the tool has its own
    return schema


def written_out(root: Schema) -> Schema:
    """Return a schema with what its references name in their place; what names itself goes under `$defs`."""
    kept: dict[str, Any] = {}

    def inlined(node: Any, inside: tuple[str, ...]) -> Any:
        if isinstance(node, list):
            return [inlined(one, inside) for one in node]
        if not isinstance(node, dict):
            return node
        made = {key: part(key, value, inside) for key, value in node.items() if key not in REPLACED}
        ref = node.get("$ref")
        if ref is None:
            return made
        if ref not in inside:
            return inlined(named_by(ref, root), (*inside, ref)) | made
        kept.setdefault(ref, None)
        return made | {"$ref": f"#/$defs/{short(ref)}"}

    def part(key: str, value: Any, inside: tuple[str, ...]) -> Any:
        if key == "properties" and isinstance(value, dict):
            return {name: inlined(one, inside) for name, one in value.items()}
        return value if key in DATA else inlined(value, inside)

    schema: Schema = inlined(root, ("#",))
    while due := [ref for ref, made in kept.items() if made is None]:
        kept[due[0]] = inlined(named_by(due[0], root), (due[0],))
    return schema | ({"$defs": {short(ref): made for ref, made in kept.items()}} if kept else {})


def short(ref: str) -> str:
    """Return the last name in a reference."""
    return ref.rpartition("/")[2]


def named_by(ref: str, root: Schema) -> Any:
    """Return what a reference names. Raises ValueError for one that leads out of the schema or nowhere."""
    found: Any = root
    try:
        first, *steps = ref.split("/")
        for step in steps if first == "#" else [ref]:
            found = found[step.replace("~1", "/").replace("~0", "~")]
    except (KeyError, TypeError) as error:
        raise ValueError(f"the reference {ref!r} leads nowhere in it") from error
    return found


def closed(node: Any) -> Any:
    """Close every object of a JSON schema that names its properties; one of free keys stays open. Titles go."""
    if isinstance(node, list):
        return [closed(item) for item in node]
    if not isinstance(node, dict):
        return node
    shut = {
        key: {name: closed(one) for name, one in value.items()}
        if key in MAPS and isinstance(value, dict)
        else value
        if key in DATA | PARTIAL
        else closed(value)
        for key, value in node.items()
        if not (key == "title" and isinstance(value, str))
    }
    names_all = isinstance(node.get("properties"), dict) and not PARTIAL & node.keys()
    return {"additionalProperties": False, **shut} if names_all and "patternProperties" not in node else shut


def undescribed(parameters: Schema) -> Iterator[str]:
    """Yield the names of parameters without a description."""
    for name, schema in parameters.get("properties", {}).items():
        if not (isinstance(schema, dict) and schema.get("description")):
            yield name

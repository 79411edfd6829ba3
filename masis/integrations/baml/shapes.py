"""The form of a record, written in BAML: what its schema-aligned parser looks for.

Scalars are kept loose (a word of a closed set is a string, a number may come in quotes), so that the parser aligns
fields and lists, and whether a value will do is left to pydantic, which says no where BAML would take the nearest.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from pydantic import BaseModel

from masis.llm.client.json_repair import RepairRefused

# Whether a record that BAML aligned to a form says the same as the text: names and lists may differ, values not.

_JOINERS = re.compile(r"[\s_\-]+")


def aligned_as_written(aligned: Any, written: dict[str, Any]) -> tuple[dict[str, Any], tuple[str, ...]]:
    """The aligned record with the values as they were written, and what the alignment changed. Raises RepairRefused."""
    repairs: list[str] = []
    made = _same(aligned, written, repairs)
    if not isinstance(made, dict):
        raise RepairRefused("BAML aligns no object")
    return made, tuple(dict.fromkeys(repairs))


def _same(aligned: Any, written: Any, repairs: list[str]) -> Any:
    if isinstance(aligned, dict) and isinstance(written, dict):
        return _same_fields(aligned, written, repairs)
    if isinstance(aligned, list):
        if not isinstance(written, list):
            repairs.append("one value in place of a list")
            written = [written]
        if len(aligned) != len(written):
            raise RepairRefused("a list has lost or gained something")
        return [_same(one, other, repairs) for one, other in zip(aligned, written, strict=True)]
    if aligned is None or isinstance(aligned, bool) or isinstance(written, bool) or written is None:
        if aligned is written or (isinstance(aligned, bool) and str(aligned).lower() == str(written).strip().lower()):
            return aligned
        raise RepairRefused("a value differs from what is written")
    if aligned == written:
        return written
    if isinstance(aligned, int | float) and isinstance(written, str) and _number(written) == aligned:
        repairs.append("a number in quotes")
        return aligned
    raise RepairRefused("a value differs from what is written")


def _same_fields(aligned: dict[str, Any], written: dict[str, Any], repairs: list[str]) -> dict[str, Any]:
    """Each field under its right name; one that is not written is not filled in."""
    fields: dict[str, str] = {}
    for name in written:
        if fields.setdefault(_plain(name), name) != name:
            raise RepairRefused("two fields have the same name")
    made = {}
    for name, value in aligned.items():
        if (own := fields.get(_plain(name))) is None:
            raise RepairRefused("a field that is not written was filled in")
        if own != name:
            repairs.append("a name spelt otherwise")
        made[name] = _same(value, written[own], repairs)
    return made


def _plain(name: str) -> str:
    return _JOINERS.sub("", name).casefold()


def _number(text: str) -> float | None:
    try:
        return float(text.strip())
    except ValueError:
        return None


FUNCTION = "Read"
"""The name under which the form is read as itself."""
AS_WRITTEN = "ReadAsWritten"
"""The name under which any object is read, its fields in their order."""

_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,80}\Z")
_FRAME = """
client<llm> NobodyIsAsked {
  provider openai
  options {
    model "none"
    api_key "none"
  }
}
type AnyValue = int | float | bool | string | null | AnyValue[] | map<string, AnyValue>
function %s() -> %s {
  client NobodyIsAsked
  prompt #"none"#
}
function %s() -> map<string, AnyValue> {
  client NobodyIsAsked
  prompt #"none"#
}
"""


def written(shape: type[BaseModel]) -> str:
    """The form as the text of a BAML file."""
    schema = shape.model_json_schema()
    classes = {"Whole": schema} | schema.get("$defs", {})
    names = class_names(shape)
    classes_by_ref = {f"#/$defs/{name}": f"Form{number}" for number, name in enumerate(classes)}
    parts = [
        _class(names[number], each, classes_by_ref)
        for number, each in enumerate(classes.values())
        if each.get("type") == "object" and each.get("properties")
    ]
    return "\n".join(parts) + _FRAME % (FUNCTION, names[0], AS_WRITTEN)


def class_names(shape: type[BaseModel]) -> list[str]:
    """The names of the classes in the text, the whole record's first."""
    return [f"Form{number}" for number in range(1 + len(shape.model_json_schema().get("$defs", {})))]


def field_names(shape: type[BaseModel]) -> set[str]:
    """The fields of the record and of those in it."""
    schema = shape.model_json_schema()
    return {name for each in _objects(schema) for name in each.get("properties", {})}


def words(shape: type[BaseModel]) -> set[str]:
    """The words of its closed sets."""
    found: set[str] = set()
    left: list[Any] = [shape.model_json_schema()]
    while left:
        each = left.pop()
        if isinstance(each, dict):
            found |= {word for word in each.get("enum", ()) if isinstance(word, str)}
            left += each.values()
        elif isinstance(each, list):
            left += each
    return found


def _objects(schema: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield schema
    yield from schema.get("$defs", {}).values()


def _class(name: str, schema: dict[str, Any], classes_by_ref: dict[str, str]) -> str:
    lines = []
    for number, (field, each) in enumerate(schema["properties"].items()):
        kind = _type(each, schema, classes_by_ref)
        if _NAME.match(field):
            lines.append(f"  {field} {kind}")
        elif '"' not in field and "\\" not in field and field.isprintable():
            lines.append(f'  field{number}_ {kind} @alias("{field}")')
        else:
            raise ValueError(f"BAML has no way to write the name of field {number + 1}")
    return "\n".join((f"class {name} {{", *lines, "}"))


def _type(schema: dict[str, Any], parent: dict[str, Any], classes_by_ref: dict[str, str]) -> str:
    if "$ref" in schema:
        return classes_by_ref.get(schema["$ref"], "AnyValue")
    if "anyOf" in schema:
        kinds = list(dict.fromkeys(_type(each, parent, classes_by_ref) for each in schema["anyOf"]))
        return " | ".join(kinds)
    kind = schema.get("type")
    if kind == "array":
        inner = _type(schema.get("items", {}), parent, classes_by_ref)
        return f"({inner})[]" if " | " in inner else f"{inner}[]"
    simple = {
        "string": "string",
        "boolean": "bool | string",
        "number": "int | float | string",
        "integer": "int | float | string",
        "null": "null",
    }
    return simple.get(kind or "", "AnyValue") if isinstance(kind, str) else "AnyValue"

"""The allowed values of a setting in words, from its declaration in
``masis/settings/fields.py``.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

from masis.settings.fields import Settings
from masis.settings.names import Name
from masis.settings.secrecy import without_secrets

Schema = Mapping[str, Any]


@cache
def _schema() -> Schema:
    return Settings.model_json_schema()


def schema_of(path: Name) -> Schema:
    """Return the JSON schema of a setting, or of a key in its tables; empty if there is none."""
    schema: Schema = _schema()
    for part in path:
        schema = schema.get("properties", {}).get(part) or schema.get("additionalProperties") or {}
        if not isinstance(schema, Mapping):
            return {}
        schema = _resolve_schema(schema)
    return schema


def _resolve_schema(schema: Schema) -> Schema:
    """Return a schema with references resolved and "or null" removed."""
    if "$ref" in schema:
        return _resolve_schema(_schema()["$defs"][schema["$ref"].rpartition("/")[2]])
    options = [option for option in schema.get("anyOf", ()) if option.get("type") != "null"]
    return _resolve_schema({**schema, **options[0], "anyOf": ()}) if len(options) == 1 else schema


def is_number(schema: Schema) -> bool:
    """Return whether the value must be a number, which excludes true and false."""
    return schema.get("type") in ("integer", "number")


def describe_range(schema: Schema) -> str:
    """Return the allowed values in words: ``a whole number from 1 to 5``."""
    if words := schema.get("enum"):
        return f"one of {', '.join(words)}"
    kinds = {
        "integer": "a whole number",
        "number": "a number",
        "string": "text",
        "boolean": "true or false",
    }
    return kinds.get(schema.get("type", ""), "a table") + _bounds_text(schema)


def _bounds_text(schema: Schema) -> str:
    least, most, longest = schema.get("minimum"), schema.get("maximum"), schema.get("maxLength")
    if longest is not None:
        return f" of {schema.get('minLength', 0)} to {longest} characters"
    if least is not None and most is not None:
        return f" from {least:.12g} to {most:.12g}"
    words = {"minimum": "of at least", "exclusiveMinimum": "above", "maximum": "of at most"}
    return ",".join(f" {word} {schema[key]:.12g}" for key, word in words.items() if key in schema)


def value_text(value: object) -> str:
    """Return a value for people, without secrets: ``90``, ``true``, ``strict``; for tables, their
    names.
    """
    if isinstance(value, Mapping | list | tuple):
        return ", ".join(map(str, value)) or "none"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        return f"{value:g}"
    return without_secrets(str(value)) or "none"

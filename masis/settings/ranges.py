"""What a setting may be, in words and as it is written in the file."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from functools import cache
from typing import Any

from pydantic import BaseModel

from masis.settings.aliases import Name
from masis.settings.fields import Settings
from masis.settings.secrecy import without_secrets

Schema = Mapping[str, Any]


@cache
def _schema() -> Schema:
    return Settings.model_json_schema()


def schema_of(path: Name) -> Schema:
    """The JSON schema of a setting, or of a key inside of its tables; empty where there is none."""
    found: Schema = _schema()
    for part in path:
        found = _plain(found)
        found = found.get("properties", {}).get(part) or found.get("additionalProperties") or {}
        if not isinstance(found, Mapping):
            return {}
    return _plain(found)


def _plain(schema: Schema) -> Schema:
    """The schema without its detours: references looked up, "or null" left out."""
    if "$ref" in schema:
        return _plain(_schema()["$defs"][schema["$ref"].rpartition("/")[2]])
    options = [option for option in schema.get("anyOf", ()) if option.get("type") != "null"]
    return _plain({**schema, **options[0], "anyOf": ()}) if len(options) == 1 else schema


def choices(schema: Schema) -> tuple[str, ...]:
    """The words that a value may be; empty where it is no choice between words."""
    return tuple(schema.get("enum", ()))


def is_number(schema: Schema) -> bool:
    """Whether the value is a number, so that true and false are not."""
    return schema.get("type") in ("integer", "number")


def described(schema: Schema) -> str:
    """What a value may be: ``a whole number from 1 to 5``."""
    if words := choices(schema):
        return f"one of {', '.join(words)}"
    kind = schema.get("type")
    if is_number(schema):
        return ("a whole number" if kind == "integer" else "a number") + _bounds(schema)
    if kind == "object":
        return "a table"
    if kind == "string":
        return "text" + _length(schema)
    return {"boolean": "true or false", "array": "a list"}.get(str(kind), "a value of its kind")


def _length(schema: Schema) -> str:
    least, most = schema.get("minLength", 0), schema.get("maxLength")
    if most is not None:
        return f" of {least} to {most} characters"
    return f" of at least {least} characters" if least else ""


def _bounds(schema: Schema) -> str:
    least, most = schema.get("minimum"), schema.get("maximum")
    above, below = schema.get("exclusiveMinimum"), schema.get("exclusiveMaximum")
    if least is not None and most is not None:
        return f" from {least:g} to {most:g}"
    bounds = [
        f" of at least {least:g}" if least is not None else "",
        f" above {above:g}" if above is not None else "",
        f" of at most {most:g}" if most is not None else "",
        f" below {below:g}" if below is not None else "",
    ]
    return ",".join(bound for bound in bounds if bound)


def spelled(value: object) -> str:
    """A value as people read it, secrets left out: ``90``, ``true``, ``strict``; of tables, their names."""
    if isinstance(value, Mapping):
        return ", ".join(map(str, value)) or "none"
    if value is None:
        return "none"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list | tuple):
        return ", ".join(map(spelled, value)) or "none"
    return f"{value:g}" if isinstance(value, float) else without_secrets(str(value)) or "none"


def as_toml(value: object) -> str:
    """A value as it is written in the file. Tables become inline ones."""
    if isinstance(value, BaseModel):
        value = value.model_dump(exclude_none=True)
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{_toml_key(str(key))} = {as_toml(inside)}" for key, inside in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(as_toml, value)) + "]"
    if isinstance(value, bool | int | float):
        return str(value).lower()
    return json.dumps(str(value), ensure_ascii=False).replace("\x7f", "\\u007f")


def _toml_key(key: str) -> str:
    return key if re.fullmatch(r"[A-Za-z0-9_-]+", key) else json.dumps(key)

"""Builds the JSON schema of a reply, in the strict form that providers enforce.

Strict structured output accepts only a part of JSON Schema: every property is required, none may be
added, a ``$ref`` has no siblings, and keywords that limit a value (``minimum``, ``maxLength``,
``pattern``) are refused. Such keywords are moved into the description, so that a model can respect
them; replies are validated in any case.
"""

from __future__ import annotations

import functools
import json
import re
from typing import Any, NamedTuple

from pydantic import BaseModel

KEPT = ("type", "enum", "description")
DROPPED = ("title", "default", "additionalProperties", "required", "discriminator")


class ReplySchema(NamedTuple):
    """The name of a reply's form, its schema, and the schema as text for prompts."""

    name: str
    schema: dict[str, Any]
    text: str


@functools.cache
def reply_schema(shape: type[BaseModel]) -> ReplySchema:
    """Return the strict schema of a reply model, which is cached.

    Raises:
        TypeError: Strict mode can't express the model.

    """
    schema = strict(shape.model_json_schema(), shape.__name__)
    text = json.dumps(schema, ensure_ascii=False, separators=(",", ":"))
    return ReplySchema(name_of(shape), schema, text)


def name_of(shape: type[BaseModel]) -> str:
    """Return the name of a reply on the wire: letters, digits, underscores, at most 64
    (``critique_reply``).
    """
    # OpenAI allows a-z, A-Z, 0-9, underscores and dashes in a schema's name, at most 64 characters.
    snake = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", shape.__name__).lower()
    return re.sub(r"[^a-z0-9_]", "_", snake)[:64]


def strict(schema: dict[str, Any], where: str = "reply") -> dict[str, Any]:
    """Return a schema in strict form; ``where`` names its place in errors."""
    converted = _strict(schema, where)
    if definitions := schema.get("$defs"):
        defined = {name: _strict(part, f"{where}.{name}") for name, part in definitions.items()}
        converted, left = _inline_definitions(converted, defined)
        if left:
            converted["$defs"] = left
    return converted


def _inline_definitions(
    schema: dict[str, Any], defined: dict[str, Any]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Move definitions that are referenced once to their reference, because every call pays for the
    length of the schema. Return the schema and the remaining definitions.
    """
    whole = json.dumps([schema, defined])
    once = {name for name in defined if whole.count(f'"#/$defs/{name}"') == 1}

    def put(part: Any) -> Any:
        if isinstance(part, dict):
            name = str(part.get("$ref", "")).removeprefix("#/$defs/")
            return (
                put(defined[name])
                if name in once
                else {key: put(value) for key, value in part.items()}
            )
        return [put(value) for value in part] if isinstance(part, list) else part

    return put(schema), {name: put(value) for name, value in defined.items() if name not in once}


def _strict(schema: dict[str, Any], where: str) -> dict[str, Any]:
    if "$ref" in schema:
        return {"$ref": schema["$ref"]}  # strict mode refuses siblings of a reference
    left = {key: value for key, value in schema.items() if key not in DROPPED and key != "$defs"}
    if isinstance(schema.get("additionalProperties"), dict):
        raise TypeError(
            f"{where}: a mapping with free keys can't be asked for in strict mode; use a list of"
            " pairs"
        )
    converted: dict[str, Any] = {key: left.pop(key) for key in KEPT if key in left}
    # pydantic writes a Literal of one value as const, which some servers don't know.
    if "const" in left:
        converted["enum"] = [left.pop("const")]
    # Strict mode has anyOf but not oneOf. They mean the same here, because the alternatives exclude
    # each other.
    for choice in ("anyOf", "oneOf"):
        if choice in left:
            converted["anyOf"] = [_strict(part, where) for part in left.pop(choice)]
    if "allOf" in left or "prefixItems" in left:
        raise TypeError(
            f"{where}: allOf and tuples of fixed length can't be asked for in strict mode"
        )
    if converted.get("type") == "object":
        properties = left.pop("properties", {})
        converted["properties"] = {
            name: _strict(part, f"{where}.{name}") for name, part in properties.items()
        }
        # Strict mode requires every property. A field that may be missing allows null instead.
        converted["required"] = list(properties)
        converted["additionalProperties"] = False
    if converted.get("type") == "array":
        converted["items"] = _strict(left.pop("items"), f"{where}[]")
    if not converted.keys() & {"type", "enum", "anyOf"}:
        raise TypeError(
            f"{where}: a value of any kind can't be asked for in strict mode; give it a schema"
        )
    if left:
        spoken = ", ".join(f"{key}: {value}" for key, value in left.items())
        converted["description"] = " ".join(
            filter(None, (converted.get("description"), f"({spoken})"))
        )
    return converted

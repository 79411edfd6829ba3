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

KEPT_KEYWORDS = ("type", "enum", "description")
DROPPED_KEYWORDS = ("title", "default", "additionalProperties", "required", "discriminator")


class ReplySchema(NamedTuple):
    """The name of a reply type, its schema, and the schema as text for prompts."""

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


def strict(schema: dict[str, Any], path: str = "reply") -> dict[str, Any]:
    """Return a schema in strict form; ``path`` names its position in errors."""
    converted = _strict(schema, path)
    if definitions := schema.get("$defs"):
        definitions_ = {name: _strict(part, f"{path}.{name}") for name, part in definitions.items()}
        converted, remaining = _inline_definitions(converted, definitions_)
        if remaining:
            converted["$defs"] = remaining
    return converted


def _inline_definitions(
    schema: dict[str, Any], definitions: dict[str, Any]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Move definitions that are referenced once to their reference, because every call pays for the
    length of the schema. Return the schema and the remaining definitions.
    """
    text = json.dumps([schema, definitions])
    referenced_once = {name for name in definitions if text.count(f'"#/$defs/{name}"') == 1}

    def inline(node: Any) -> Any:
        if isinstance(node, dict):
            name = str(node.get("$ref", "")).removeprefix("#/$defs/")
            return (
                inline(definitions[name])
                if name in referenced_once
                else {key: inline(value) for key, value in node.items()}
            )
        return [inline(value) for value in node] if isinstance(node, list) else node

    return inline(schema), {
        name: inline(value) for name, value in definitions.items() if name not in referenced_once
    }


def _strict(schema: dict[str, Any], path: str) -> dict[str, Any]:
    if "$ref" in schema:
        return {"$ref": schema["$ref"]}  # strict mode refuses siblings of a reference
    remaining = {
        key: value
        for key, value in schema.items()
        if key not in DROPPED_KEYWORDS and key != "$defs"
    }
    if isinstance(schema.get("additionalProperties"), dict):
        raise TypeError(
            f"{path}: a mapping with free keys can't be asked for in strict mode; use a list of"
            " pairs"
        )
    converted: dict[str, Any] = {
        key: remaining.pop(key) for key in KEPT_KEYWORDS if key in remaining
    }
    # pydantic writes a Literal of one value as const, which some servers don't know.
    if "const" in remaining:
        converted["enum"] = [remaining.pop("const")]
    # Strict mode has anyOf but not oneOf. They mean the same here, because the alternatives exclude
    # each other.
    for choice in ("anyOf", "oneOf"):
        if choice in remaining:
            converted["anyOf"] = [_strict(part, path) for part in remaining.pop(choice)]
    if "allOf" in remaining or "prefixItems" in remaining:
        raise TypeError(
            f"{path}: allOf and tuples of fixed length can't be asked for in strict mode"
        )
    if converted.get("type") == "object":
        properties = remaining.pop("properties", {})
        converted["properties"] = {
            name: _strict(part, f"{path}.{name}") for name, part in properties.items()
        }
        # Strict mode requires every property. A field that may be missing allows null instead.
        converted["required"] = list(properties)
        converted["additionalProperties"] = False
    if converted.get("type") == "array":
        converted["items"] = _strict(remaining.pop("items"), f"{path}[]")
    if not converted.keys() & {"type", "enum", "anyOf"}:
        raise TypeError(
            f"{path}: a value of any kind can't be asked for in strict mode; give it a schema"
        )
    if remaining:
        limits = ", ".join(f"{key}: {value}" for key, value in remaining.items())
        converted["description"] = " ".join(
            filter(None, (converted.get("description"), f"({limits})"))
        )
    return converted

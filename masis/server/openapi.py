"""The OpenAPI document of the JSON API, made from the table of endpoints."""

from __future__ import annotations

import re
from functools import cache
from typing import Any

from pydantic import BaseModel, TypeAdapter
from pydantic.json_schema import JsonSchemaMode

from masis import version
from masis.server.endpoints import ENDPOINTS, PREFIX, ApiEndpoint, File

_REFERENCE = "#/components/schemas/{model}"
_HIDDEN = frozenset({"viewer", "open_to", "undecided_by"})
"""Fields of a filter that the server sets, regardless of the request."""

_ERROR = {
    "type": "object",
    "required": ["error"],
    "properties": {
        "error": {
            "type": "object",
            "required": ["status"],
            "properties": {
                "status": {"type": "integer", "description": "The HTTP status."},
                "kind": {"type": "string", "description": "The class of the error in Python."},
                "code": {"type": "string", "description": "A code of the specs (CRITIC-ERR-003)."},
                "message": {"type": "string"},
                "problem": {"type": "string", "description": "What is wrong."},
                "hint": {"type": "string", "description": "What to do about it."},
                "field": {"type": "string", "description": "The field that is wrong."},
            },
        }
    },
}


@cache
def document() -> dict[str, Any]:
    """Return the OpenAPI 3.1 document."""
    schemas: dict[str, Any] = {"Error": _ERROR}
    paths: dict[str, dict[str, Any]] = {}
    for endpoint in ENDPOINTS:
        path = PREFIX + re.sub(r":path\}", "}", endpoint.path)
        paths.setdefault(path, {})[endpoint.method.lower()] = _operation(endpoint, schemas)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "MASIS Workbench",
            "version": version.APP,
            "description": (
                "Cases, decisions, labels, comments, audits, exports and data sets of a workbench,"
                " with the rights and rules of its pages. Percent-encode a slash in an id."
            ),
        },
        "paths": paths,
        "components": {
            "schemas": schemas,
            "securitySchemes": {
                "token": {"type": "http", "scheme": "bearer"},
                "session": {"type": "apiKey", "in": "cookie", "name": "_streamlit_user"},
            },
        },
        "security": [{"token": []}, {"session": []}],
    }


def _operation(endpoint: ApiEndpoint, schemas: dict[str, Any]) -> dict[str, Any]:
    summary, _, rest = endpoint.description.partition("\n")
    operation: dict[str, Any] = {
        "operationId": endpoint.handler.__name__,
        "summary": summary,
        "description": f"{rest.strip()}\n\nRequires: {endpoint.requires}.".strip(),
        "parameters": [
            {"name": name, "in": "path", "required": True, "schema": {"type": "string"}}
            for name in re.findall(r"\{(\w+)(?::path)?\}", endpoint.path)
        ],
        "responses": {
            "200": {"description": "Done.", "content": _answer(endpoint, schemas)},
            "default": {
                "description": "The request was refused or failed.",
                "content": _json({"$ref": "#/components/schemas/Error"}),
            },
        },
    }
    if endpoint.query is not None:
        operation["parameters"] += _query_parameters(endpoint, endpoint.query, schemas)
    if endpoint.body is not None:
        content = _json(_json_schema(endpoint.body, "validation", schemas))
        if endpoint.example is not None:
            content["application/json"]["example"] = dict(endpoint.example)
        operation["requestBody"] = {"required": True, "content": content}
    return operation


def _answer(endpoint: ApiEndpoint, schemas: dict[str, Any]) -> dict[str, Any]:
    if endpoint.answer is File:
        return {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}}
    return _json(_json_schema(endpoint.answer, "serialization", schemas))


def _query_parameters(
    endpoint: ApiEndpoint, model: type[BaseModel], schemas: dict[str, Any]
) -> list[dict[str, Any]]:
    examples = endpoint.example or {}
    schema = TypeAdapter(model).json_schema(ref_template=_REFERENCE)
    schemas |= schema.pop("$defs", {})
    return [
        {"name": name, "in": "query", "required": False, "schema": field}
        | ({"example": examples[name]} if name in examples else {})
        for name, field in schema["properties"].items()
        if name not in _HIDDEN
    ]


def _json_schema(type_: Any, mode: JsonSchemaMode, schemas: dict[str, Any]) -> dict[str, Any]:
    schema = TypeAdapter(type_).json_schema(ref_template=_REFERENCE, mode=mode)
    schemas |= schema.pop("$defs", {})
    return schema


def _json(schema: dict[str, Any]) -> dict[str, Any]:
    return {"application/json": {"schema": schema}}

"""The OpenAPI document of the HTTP door."""

from __future__ import annotations

from functools import cache
from typing import Any

from masis import version
from masis.schema.case import Case


def _answer(meaning: str, schema: dict[str, Any] | None = None) -> dict[str, Any]:
    content = {"application/json": {"schema": schema}} if schema else {}
    return {"description": meaning} | ({"content": content} if content else {})


_ERROR = {
    "type": "object",
    "properties": {
        "error": {
            "type": "object",
            "properties": {
                "status": {"type": "integer"},
                "problem": {"type": "string"},
                "cure": {"type": "string"},
            },
        }
    },
}
_COUNTS = ("received", "stored", "unchanged", "passed_over", "errors")


@cache
def document() -> dict[str, Any]:
    """Return the document, OpenAPI 3.1."""
    case = Case.model_json_schema(ref_template="#/components/schemas/{model}")
    schemas = case.pop("$defs", {}) | {"Case": case}
    a_case = {"$ref": "#/components/schemas/Case"}
    cases = {"type": "object", "required": ["cases"], "properties": {"cases": {"type": "array", "items": a_case}}}
    accepted = {
        "type": "object",
        "properties": {"id": {"type": "string"}, "status": {"type": "string"}, "repeated": {"type": "boolean"}},
    }
    result = {name: {"type": "integer"} for name in _COUNTS} | {
        "first_errors": {"type": "array", "items": {"type": "string"}}
    }
    batch = {
        "type": "object",
        "properties": {
            "state": {"enum": ["waiting", "done"]},
            "id": {"type": "string"},
            "received_at": {"type": "string"},
            "done_at": {"type": ["string", "null"]},
            "result": {"type": ["object", "null"], "properties": result},
        },
    }
    problems = {
        "400": _answer("The body holds no case, or the idempotency key can't be used.", _ERROR),
        "401": _answer("The token is missing or nobody's.", _ERROR),
        "403": _answer("A page of another site sent it.", _ERROR),
        "413": _answer("Too many bytes or cases at once.", _ERROR),
        "415": _answer("Another content type.", _ERROR),
        "421": _answer("Another host's name.", _ERROR),
        "422": _answer("The idempotency key was used with another body.", _ERROR),
        "429": _answer("Too many requests; Retry-After says when.", _ERROR),
        "500": _answer("The database can't be used; nothing was stored.", _ERROR),
        "503": _answer("The database is busy; send it again.", _ERROR),
        "507": _answer("The disk is full; send it again.", _ERROR),
    }
    key = {"name": "Idempotency-Key", "in": "header", "schema": {"type": "string", "minLength": 1, "maxLength": 200}}
    return {
        "openapi": "3.1.0",
        "info": {"title": "MASIS Workbench: ingestion", "version": version.APP},
        "security": [{"token": []}],
        "paths": {
            "/v1/cases": {
                "post": {
                    "summary": "Send one case or several; acknowledged once they are on the disk.",
                    "parameters": [key],
                    "requestBody": {
                        "required": True,
                        "content": {
                            "application/json": {"schema": {"oneOf": [a_case, cases]}},
                            "application/x-ndjson": {"schema": {"type": "string"}},
                        },
                    },
                    "responses": {"202": _answer("Accepted; poll the address in status.", accepted), **problems},
                }
            },
            "/v1/batches/{id}": {
                "get": {
                    "summary": "What became of a request.",
                    "parameters": [{"name": "id", "in": "path", "required": True, "schema": {"type": "string"}}],
                    "responses": {
                        "200": _answer("Whether it waits or is done, with counts and errors.", batch),
                        "401": problems["401"],
                        "404": _answer("No such batch of this source.", _ERROR),
                        "429": problems["429"],
                    },
                }
            },
        },
        "components": {
            "schemas": schemas,
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
    }

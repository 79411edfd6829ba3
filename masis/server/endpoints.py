"""The table of the API's endpoints. A decorated function is an endpoint, and the decorator adds it
to ``ENDPOINTS``, from which routes, OpenAPI document and the table of rights are made.

    @endpoint("POST", "/cases/{case:path}/comments", "decide", "comment on cases")
    def comment(call: ApiCall, body: NewComment) -> LogEntry:
        return call.workbench.team.comment(call.actor, call.path["case"], body.text)
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache, cached_property
from typing import Any, Literal, NamedTuple, TypeVar, get_type_hints

from pydantic import BaseModel, TypeAdapter

from masis.schema.actor import Actor, Permission
from masis.services import Workbench
from masis.services.access import ACTS, Act
from masis.services.desk import Desk
from masis.services.jobs import Jobs

PREFIX = "/api/v1"

Method = Literal["GET", "POST", "PUT", "DELETE"]


@dataclass(frozen=True)
class ApiCall:
    """One request: who it acts for, on which workbench, and the values in its path."""

    workbench: Workbench
    actor: Actor
    jobs: Callable[[], Jobs]
    path: dict[str, str] = field(default_factory=dict)

    @cached_property
    def desk(self) -> Desk:
        """The desk of the actor, with the rules of pages and commands."""
        return Desk.for_actor(self.workbench, self.actor)


class File(NamedTuple):
    """A file that an endpoint answers with."""

    content: bytes
    media_type: str
    name: str


Handler = Callable[..., Any]
H = TypeVar("H", bound=Handler)


class ApiEndpoint(NamedTuple):
    """One endpoint.

    ``body`` and ``query`` are the models of the request, or None; ``answer`` is the type of the
    response's JSON. ``path`` is relative to ``PREFIX``. ``example`` is a body, or a query, for the
    OpenAPI document; a test sends it.
    """

    method: Method
    path: str
    requires: Permission
    words: str
    handler: Handler
    body: type[BaseModel] | None
    query: type[BaseModel] | None
    answer: Any
    example: Mapping[str, Any] | None = None

    @property
    def name(self) -> str:
        """The method and the path, as the table of rights lists it."""
        return f"{self.method} {PREFIX}{self.path}"

    @property
    def changes(self) -> bool:
        """Whether a request may change something, so that it needs protection against CSRF."""
        return self.method != "GET"

    @property
    def description(self) -> str:
        """The handler's docstring."""
        return inspect.getdoc(self.handler) or ""

    def dump(self, answer: object) -> bytes:
        """Return an answer as JSON."""
        return _adapter(self.answer).dump_json(answer, by_alias=True)


@cache
def _adapter(answer: Any) -> TypeAdapter[Any]:
    # Building one takes longer than most answers take.
    return TypeAdapter(answer)


ENDPOINTS: list[ApiEndpoint] = []


def endpoint(
    method: Method,
    path: str,
    requires: Permission,
    words: str,
    *,
    example: Mapping[str, Any] | None = None,
) -> Callable[[H], H]:
    """Declare that a function is an endpoint.

    Args:
        method: The HTTP method.
        path: The path after ``PREFIX``. ``{case:path}`` is an id that may contain slashes.
        requires: The permission that is checked before the function is called.
        words: What the endpoint does, as an infinitive.
        example: A body, or a query, that the OpenAPI document shows.

    The function's first parameter is the ``ApiCall``. A parameter ``body`` or ``query`` has the
    type of the request's body or query, and the result has the type of the answer.

    """

    def declare(handler: H) -> H:
        types = get_type_hints(handler)
        added = ApiEndpoint(
            method,
            path,
            requires,
            words,
            handler,
            types.get("body"),
            types.get("query"),
            types["return"],
            example,
        )
        ENDPOINTS.append(added)
        ACTS.append(Act(requires, words, "API", (added.name,)))
        return handler

    return declare

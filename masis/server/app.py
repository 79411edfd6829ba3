"""The routes of the JSON API: who a request acts for, limits, protection against CSRF, and errors.

A request acts for

1. the owner of the token in ``Authorization: Bearer TOKEN``, if it has one;
2. else the person who signed in on the workbench, by the session cookie;
3. without sign-in, whoever the header ``X-Masis-Reviewer`` names, as on the pages.

A browser adds cookies to requests that another site's page makes. A request that comes from a
browser and may change something therefore needs the header ``X-Masis-Request``, which such a page
can't add without asking first (a CORS preflight, which is never granted). The host guard in front
also refuses foreign origins.
"""

from __future__ import annotations

import logging
import re
import traceback
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple
from urllib.parse import unquote

from pydantic import BaseModel, ValidationError
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Mount, Route, Router
from starlette.types import ASGIApp, Receive, Scope, Send

from masis.errors import InputError, MasisError
from masis.schema.actor import Actor
from masis.schema.explain import explain_fields
from masis.server import api  # noqa: F401 (adds its endpoints to the table)
from masis.server.browser_id import browser_id
from masis.server.endpoints import ENDPOINTS, PREFIX, ApiCall, ApiEndpoint, File
from masis.server.http import (
    FRESH,
    RateLimit,
    RequestRefused,
    content_type,
    error_object,
    read_body,
)
from masis.server.openapi import document
from masis.services import Workbench
from masis.services.api_records import settable_fields
from masis.services.jobs import Jobs
from masis.services.records import VIEWER_FIELDS, explained_errors
from masis.settings.sign_in import SignIn, is_reserved

log = logging.getLogger(__name__)

ACTOR = "masis.actor"
"""The key of a request's scope under which the sign-in gate leaves the signed-in person."""

CSRF_HEADER, REVIEWER_HEADER = "x-masis-request", "x-masis-reviewer"

LONGEST_BODY = 16_000_000
"""The most bytes of a request, enough for 1,000 cases of an ordinary size."""

MOST_FIELDS = 100_000
"""The most fields of a body, 100 for each of 1,000 cases.

Each unknown field becomes an error of about 1 KB, so 16 MB of them would take more than 1 GB.
"""

_FIELD = re.compile(rb'"\s*:')

PER_SECOND, BURST = 50.0, 300
"""How many requests each person may send. A person at the desk sends a few per second."""

WRONG_TOKENS_PER_SECOND, WRONG_TOKENS = 0.2, 10
"""How many requests with a wrong token a network address may send."""


class Server(NamedTuple):
    """What the routes act on. The functions are called for each request, since settings change.

    ``sign_in`` is None if everyone who reaches the server may do everything.
    """

    workbench: Callable[[], Workbench]
    jobs: Callable[[], Jobs]
    sign_in: SignIn | None = None


class Api:
    """The ASGI application of the JSON API, mounted under ``PREFIX``."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._requests = RateLimit(PER_SECOND, BURST)
        self._wrong_tokens = RateLimit(WRONG_TOKENS_PER_SECOND, WRONG_TOKENS)
        routes: list[BaseRoute] = [Route("/openapi.json", self._describe, methods=["GET"])]
        routes += [
            Route(endpoint.path, self._handler(endpoint), methods=[endpoint.method])
            for endpoint in in_matching_order(ENDPOINTS)
        ]
        self._router = Router(routes, redirect_slashes=False, default=self._not_found)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request; every refusal and error is a JSON object."""
        try:
            await self._router(scope, receive, send)
        except HTTPException as error:
            hint = f"{PREFIX}/openapi.json describes all addresses."
            refused = RequestRefused(error.status_code, error.detail, hint, error.headers)
            await refused.response()(scope, receive, send)

    async def _describe(self, request: Request) -> Response:
        return JSONResponse(await run_in_threadpool(document))

    async def _not_found(self, scope: Scope, receive: Receive, send: Send) -> None:
        refused = RequestRefused(
            404, "there is no such address", f"{PREFIX}/openapi.json describes all addresses."
        )
        await refused.response()(scope, receive, send)

    def _handler(self, endpoint: ApiEndpoint) -> Callable[[Request], Any]:
        async def handle(request: Request) -> Response:
            try:
                return await self._answer(endpoint, request)
            except RequestRefused as refused:
                return refused.response()
            except MasisError as error:
                if error.http_status >= 500:
                    # The class alone: a message may quote an answer, and logs hold no text of cases
                    log.error("%s failed: %s", endpoint.name, type(error).__name__)
                about = error_object(error)
                return JSONResponse({"error": about}, error.http_status, FRESH)
            except ClientDisconnect:
                return Response(status_code=400)
            except Exception as error:  # noqa: BLE001 (a program needs an error object here, too)
                # Without the exception's text, which may quote an answer.
                frames = "".join(traceback.format_tb(error.__traceback__))
                log.error("%s failed: %s\n%s", endpoint.name, type(error).__name__, frames)
                return RequestRefused(
                    500, "the server failed", "Its log says where. Try again, or report it."
                ).response()

        return handle

    async def _answer(self, endpoint: ApiEndpoint, request: Request) -> Response:
        # The database and large bodies would block the event loop, which also serves the pages. So
        # everything but reading the body runs on threads.
        call = await run_in_threadpool(self._admit, endpoint, request)
        body = b""
        if endpoint.body is not None:
            if content_type(request) != "application/json":
                raise RequestRefused(
                    415, "the body isn't JSON", "Send it with Content-Type: application/json."
                )
            body = await read_body(request, LONGEST_BODY, "16 MB")
        return await run_in_threadpool(_respond, endpoint, call, request, body)

    def _admit(self, endpoint: ApiEndpoint, request: Request) -> ApiCall:
        """Return the call that a request makes, before its body is read.

        Raises:
            RequestRefused: The person isn't known or sends too many requests.
            NotAllowed: Their role doesn't allow it.

        """
        actor = self._identify(request, endpoint.changes)
        self._requests.check(actor.name or _address(request))
        workbench = self._server.workbench()
        # The services check it too. Here it comes before any look at the record that is named.
        workbench.access.require(actor, endpoint.requires, endpoint.words)
        return ApiCall(workbench, actor, self._server.jobs, dict(request.path_params))

    def _identify(self, request: Request, changes: bool) -> Actor:
        """Return who the request acts for.

        Raises:
            RequestRefused: The token isn't valid, nobody has signed in, or a browser's request that
                changes something lacks the header against CSRF.

        """
        kind, _, token = request.headers.get("authorization", "").partition(" ")
        if kind.lower() == "bearer":
            return self._owner_of(token.strip(), request)
        if changes and _is_from_browser(request) and CSRF_HEADER not in request.headers:
            raise RequestRefused(
                403,
                f"the header {CSRF_HEADER} is missing",
                f"A page of this server sends '{CSRF_HEADER}: 1'.",
            )
        if self._server.sign_in is None:
            return _named_reviewer(request)
        actor: Actor | None = request.scope.get(ACTOR)
        if actor is None:
            hint = "Sign in on the workbench, or send 'Authorization: Bearer TOKEN'."
            raise RequestRefused(401, "nobody has signed in", hint, {"www-authenticate": "Bearer"})
        return actor

    def _owner_of(self, token: str, request: Request) -> Actor:
        sign_in = self._server.sign_in
        current_role = sign_in.role_of if sign_in is not None else lambda _, recorded: recorded
        actor = self._server.workbench().tokens.actor_of(token, current_role)
        if actor is None:
            # Only wrong tokens count, so that a program with a valid one is never refused for
            # guesses of others.
            self._wrong_tokens.check(_address(request))
            hint = "Create a token on the page Team, or with `masis token create`."
            raise RequestRefused(
                401,
                "the token is unknown, revoked or expired",
                hint,
                {"www-authenticate": 'Bearer error="invalid_token"'},
            )
        return actor


def _respond(endpoint: ApiEndpoint, call: ApiCall, request: Request, body: bytes) -> Response:
    """Run an endpoint and return its response.

    SQLite's errors become the errors that say what to do about them.
    """
    arguments: dict[str, BaseModel] = {}
    if endpoint.query is not None:
        arguments["query"] = parse(endpoint.query, query_values(endpoint.query, request))
    if endpoint.body is not None:
        arguments["body"] = parse_json(endpoint.body, body)
    try:
        with explained_errors(call.workbench.database):
            answer = endpoint.handler(call, **arguments)
    except OverflowError as error:  # SQLite's integers have 64 bits, JSON's any number
        raise InputError("a number is too large", hint="Send a smaller one.") from error
    if not isinstance(answer, File):
        return Response(endpoint.dump(answer), media_type="application/json", headers=FRESH)
    # Other characters would need the parameter filename* (RFC 6266, 4.3).
    name = answer.name.encode("ascii", "replace").decode().replace('"', "_")
    disposition = {"content-disposition": f'attachment; filename="{name}"'}
    return Response(answer.content, media_type=answer.media_type, headers={**FRESH, **disposition})


def in_matching_order(endpoints: Sequence[ApiEndpoint]) -> list[ApiEndpoint]:
    """Return the endpoints in the order in which a request is compared with their paths.

    An id may contain slashes, so ``/cases/{case:path}`` matches everything below ``/cases/``.
    It must come after the more specific paths.
    """
    return sorted(
        endpoints, key=lambda endpoint: (endpoint.path.endswith(":path}"), -len(endpoint.path))
    )


def api_route(server: Server) -> Mount:
    """Return the route that serves the API."""
    app: ASGIApp = Api(server)
    return Mount(PREFIX, app)


def _is_from_browser(request: Request) -> bool:
    """Return whether a browser sent the request.

    Browsers send ``Origin`` with every request that isn't GET or HEAD (Fetch standard, 3.2), and
    ``Sec-Fetch-Site`` since 2023. A cookie is what makes a forged request dangerous.
    """
    return any(name in request.headers for name in ("origin", "sec-fetch-site", "cookie"))


def _named_reviewer(request: Request) -> Actor:
    """Return the person that the header names, percent-encoded, or one without a name.

    Raises:
        RequestRefused: A program signs with this name, or it is too long.

    """
    name = " ".join(unquote(request.headers.get(REVIEWER_HEADER, "")).split())
    browser = browser_id(request.cookies)
    if not name:
        return Actor(browser=browser)
    if len(name) > 80 or not name.isprintable() or is_reserved(name):
        raise RequestRefused(
            400, f"{REVIEWER_HEADER} isn't a name of a person", "Use 1 to 80 printable characters."
        )
    return Actor(name=name, browser=browser)


def _address(request: Request) -> str:
    return request.client.host if request.client else "unknown"


def query_values(model: type[BaseModel], request: Request) -> dict[str, Any]:
    """Return a query as the model's fields: repeated values for a tuple, else a single one."""
    values: dict[str, Any] = {}
    for name, value in request.query_params.multi_items():
        if name in VIEWER_FIELDS:
            raise InputError("is set by the server", hint="Leave it out.", field=name)
        field = model.model_fields.get(name)
        if field is not None and str(field.annotation).startswith("tuple"):
            values.setdefault(name, []).append(value)
        else:
            values[name] = value
    return values


def parse(model: type[BaseModel], values: object) -> BaseModel:
    """Validate values.

    Raises:
        InputError: They aren't valid; it names the field.

    """
    try:
        return model.model_validate(values)
    except ValidationError as error:
        raise explain_fields(error, settable_fields(model), model) from error


def parse_json(model: type[BaseModel], body: bytes) -> BaseModel:
    """Validate a JSON body.

    Raises:
        InputError: It isn't JSON, has too many fields or isn't valid; it names the field.

    """
    if sum(1 for _ in _FIELD.finditer(body)) > MOST_FIELDS:
        raise InputError(
            f"the body has more than {MOST_FIELDS:,} fields", hint="Send it in several requests."
        )
    try:
        return model.model_validate_json(body or b"{}")
    except ValidationError as error:
        if error.errors()[0]["type"] == "json_invalid":
            raise InputError("the body isn't valid JSON", hint="Send a JSON object.") from error
        raise explain_fields(error, settable_fields(model), model) from error

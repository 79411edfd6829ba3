"""The ASGI application that receives cases: authentication, rate limits and responses.

A request is acknowledged (202) once it is on disk. Requests that arrive at the same time share one
transaction, so that each waits less for the disk. A thread parses acknowledged requests; it may be
interrupted at any moment.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import hmac
import json
import logging
import time
import uuid
from collections.abc import AsyncIterator, Callable, Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any

from starlette.applications import Starlette
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Mount, Route

from masis import version
from masis.errors import InputError, MasisError, MissingExtra
from masis.schema.case import Case
from masis.server import otlp
from masis.server.http import RequestRefused, content_type, read_body, too_long
from masis.services.arrivals.ingestion import (
    CaseStatus,
    IngestionService,
    ProgramSource,
    token_digest,
)
from masis.services.background import RepeatedTask
from masis.services.records import Acknowledgement, Form, ReceivedRequest
from masis.services.token_bucket import Bucket
from masis.settings.hosts import AllowedHosts

log = logging.getLogger("masis.web")

FORMS: dict[str, Form] = {"application/json": "json", "application/x-ndjson": "ndjson"}
LONGEST_KEY = 200
WRITTEN_AT_ONCE = 200
"""Maximum number of requests that share a transaction."""

READING_FAILS = "requests are stored, but reading them fails; see the log"

_IDLE = timedelta(seconds=0.25)
_NOTIFY_EVERY_S = 60.0


class IngestionServer:
    """The state of the application: the sources, the queue of requests to write, and the thread
    that parses them.
    """

    def __init__(
        self,
        ingestion: IngestionService,
        sources: Mapping[str, ProgramSource],
        hosts: AllowedHosts,
        on_read: Callable[[], object] | None,
    ) -> None:
        self.ingestion, self.hosts, self._on_read = ingestion, hosts, on_read
        self.sources = dict(sources)
        self._buckets = {
            name: Bucket(source.requests_per_minute / 60, source.burst)
            for name, source in sources.items()
        }
        self._queue: asyncio.Queue[tuple[ReceivedRequest, asyncio.Future[Acknowledgement]]] = (
            asyncio.Queue(WRITTEN_AT_ONCE * 5)
        )
        self._parsing = asyncio.Lock()
        """Two bytes of JSON can become a value of 180 bytes in memory, so only one body is parsed
        at a time. The others wait here and don't occupy a thread.
        """
        self._notified_at = -_NOTIFY_EVERY_S
        self._reader: RepeatedTask | None = None

    # writing

    async def acknowledge(self, request: ReceivedRequest) -> Acknowledgement:
        """Return once the request is on disk. Raises MasisError if it can't be stored."""
        answer: asyncio.Future[Acknowledgement] = asyncio.get_running_loop().create_future()
        await self._queue.put((request, answer))
        return await answer

    async def write(self) -> None:
        """Write queued requests until cancelled. Requests that arrived during a write share the
        next one.
        """
        while True:
            pending = [await self._queue.get()]
            # Requests of one transaction share one sync to the disk, the slowest part of a write.
            while not self._queue.empty() and len(pending) < WRITTEN_AT_ONCE:
                pending.append(self._queue.get_nowait())
            try:
                stored = await asyncio.to_thread(
                    self.ingestion.receive, [request for request, _ in pending]
                )
            except Exception as error:  # noqa: BLE001 (every waiting request must get an answer)
                for _, answer in pending:
                    # An answer is done if its client disconnected, which cancelled the wait.
                    if not answer.done():
                        answer.set_exception(error)
                continue
            for (_, answer), acknowledgement in zip(pending, stored, strict=True):
                if not answer.done():
                    answer.set_result(acknowledgement)

    # reading

    def read_arrivals(self, stopping: Callable[[], bool]) -> None:
        """Parse all acknowledged requests, then call ``on_read``. It's also called once a minute
        without new ones.
        """
        read = 1
        while read and not stopping():
            read = self.ingestion.read_waiting(self.sources)
            if self._on_read and (read or time.monotonic() - self._notified_at > _NOTIFY_EVERY_S):
                self._on_read()
                self._notified_at = time.monotonic()

    @contextlib.asynccontextmanager
    async def running(self, app: object = None) -> AsyncIterator[None]:
        """Run the writer and the reader while the application runs."""
        reader = self._reader = RepeatedTask(self.read_arrivals, _IDLE, "reading arrivals").start()
        writer = asyncio.create_task(self.write())
        try:
            yield
        finally:
            writer.cancel()
            await asyncio.to_thread(reader.end)

    async def alive(self, request: Request) -> Response:
        """Return whether acknowledged requests are being read (GET /healthz)."""
        content: dict[str, Any] = {"ok": True}
        if self.fails:
            content = {"ok": False, "problem": READING_FAILS}
        headers = {"cache-control": "no-store"}
        return JSONResponse(content, status_code=200 if content["ok"] else 503, headers=headers)

    @property
    def fails(self) -> bool:
        """Whether acknowledged requests aren't being read."""
        reader = self._reader
        return reader is None or reader.over or reader.failed is not None

    # requests

    def source_of(self, request: Request) -> ProgramSource:
        """Return the source that sent the request.

        Raises RequestRefused if the host isn't allowed, the token is unknown, or the source sent
        too many requests.
        """
        refusal = self.hosts.refusal(
            request.headers.getlist("host"), request.headers.getlist("origin")
        )
        if refusal is not None:
            raise RequestRefused(
                refusal.status, refusal.reason, "Use a host name that --allow-host allows."
            )
        kind, _, token = request.headers.get("authorization", "").partition(" ")
        digest = token_digest(token.strip()) if kind.lower() == "bearer" else ""
        # compare_digest's time doesn't depend on the content, so timing doesn't reveal a digest.
        matches = [
            source
            for source in self.sources.values()
            if hmac.compare_digest(source.token_sha256, digest)
        ]
        if not matches:
            hint = "Send the token of your source as 'Authorization: Bearer TOKEN'."
            raise RequestRefused(
                401, "the token is missing or unknown", hint, {"www-authenticate": "Bearer"}
            )
        source = matches[0]
        wait = self._buckets[source.name].take()
        if wait:
            hint = (
                f"Send at most {source.requests_per_minute:g} requests a minute, or several cases"
                " in one."
            )
            raise RequestRefused(
                429,
                "too many requests (requests_per_minute, burst)",
                hint,
                {"retry-after": str(max(1, round(wait + 0.5)))},
            )
        return source

    async def cases(self, request: Request) -> Response:
        """Receive cases (POST /v1/cases)."""
        source = self.source_of(request)
        form = FORMS.get(content_type(request))
        if form is None:
            raise RequestRefused(
                415, "the content type isn't supported", f"Send one of: {', '.join(FORMS)}."
            )
        key = request.headers.get("idempotency-key")
        if key is not None and not (0 < len(key) <= LONGEST_KEY and key.isprintable()):
            raise RequestRefused(
                400,
                "the idempotency key can't be used",
                f"Send 1 to {LONGEST_KEY} printable characters.",
            )
        body = await read_body(request, source.max_body_bytes, "max_body_bytes")
        # Work that grows with the size of the body runs on a thread, so that it doesn't block other
        # requests.
        digest = await asyncio.to_thread(lambda: hashlib.sha256(body).hexdigest())
        async with self._parsing:
            inspected = await asyncio.to_thread(self.ingestion.inspect_body, form, body, source)
        if not inspected.cases:
            raise RequestRefused(
                400,
                "the body contains no case",
                "Send a case, {'cases': [...]}, or a case on each line.",
            )
        if inspected.cases > source.max_cases:
            raise _too_many(source.max_cases)
        if (error := inspected.limit_passed) is not None:
            field = f"{error.field}: " if error.field else ""
            raise RequestRefused(422, f"{field}{error.problem}", error.hint)
        stored = await self.acknowledge(
            ReceivedRequest(uuid.uuid4().hex, source.name, key, digest, form, body)
        )
        if stored.conflict:
            hint = "Use a new key for each body, and repeat a key only with the same body."
            raise RequestRefused(422, "the idempotency key was used with another body", hint)
        address = f"/v1/batches/{stored.id}"
        answer = {"id": stored.id, "status": address, "repeated": not stored.new}
        return JSONResponse(answer, status_code=202, headers={"location": address})

    async def traces(self, request: Request) -> Response:
        """Receive spans from an OpenTelemetry exporter (POST /v1/traces) and answer as OTLP/HTTP
        specifies.
        """
        source = self.source_of(request)
        encoding = request.headers.get("content-encoding", "identity").strip().lower()
        form = content_type(request)
        if form not in (otlp.PROTOBUF, otlp.JSON) or encoding not in ("identity", "gzip"):
            hint = f"Send {otlp.PROTOBUF} or {otlp.JSON}, plain or in gzip."
            raise RequestRefused(415, "the content type or encoding isn't supported", hint)
        body = await read_body(request, source.max_body_bytes, "max_body_bytes")
        try:
            plain = (
                await asyncio.to_thread(otlp.gunzip, body, source.max_body_bytes)
                if encoding == "gzip"
                else body
            )
            if plain is None:
                raise too_long(source.max_body_bytes, "max_body_bytes")
            async with self._parsing:
                cases, rejected, why = await asyncio.to_thread(otlp.parse_export, plain, form)
        except InputError as error:
            raise RequestRefused(400, f"the body {error.problem}", error.hint) from error
        except MissingExtra as error:
            raise RequestRefused(415, str(error), f"Or send {otlp.JSON}.") from error
        if len(cases) > source.max_cases:
            raise _too_many(source.max_cases)
        if cases:
            lines = await asyncio.to_thread(
                lambda: "\n".join(json.dumps(case.to_json_dict()) for case in cases).encode()
            )
            digest = hashlib.sha256(lines).hexdigest()
            await self.acknowledge(
                ReceivedRequest(uuid.uuid4().hex, source.name, None, digest, "cases", lines)
            )
        return Response(otlp.export_response(form, rejected, why), media_type=form)

    async def batch(self, request: Request) -> Response:
        """Return the status of a batch (GET /v1/batches/ID)."""
        source = self.source_of(request)
        batch = await asyncio.to_thread(
            self.ingestion.batch, request.path_params["id"], source.name
        )
        if batch is None:
            raise RequestRefused(
                404, "there is no such batch", "Use the address in the 202 response."
            )
        state = "waiting" if batch.done_at is None else "done"
        return JSONResponse({"state": state, **batch.model_dump(exclude={"source"})})

    async def case(self, request: Request) -> Response:
        """Return the status of a case (GET /v1/cases/ID)."""
        source = self.source_of(request)
        status = await asyncio.to_thread(
            self.ingestion.status, request.path_params["id"], source.name
        )
        if status is None:
            raise RequestRefused(
                404,
                "your source has no such case",
                "Send the case, and ask again when its batch is done.",
            )
        return JSONResponse(status.model_dump(), headers={"cache-control": "no-store"})


def _too_many(most: int) -> RequestRefused:
    return RequestRefused(
        413,
        f"more than {most:,} cases at once (max_cases)",
        f"Send at most {most:,} in one request.",
    )


def _openapi_document() -> dict[str, Any]:
    """Return the OpenAPI document of this folder, completed with the version and the schema of a
    case.
    """
    document: dict[str, Any] = json.loads(
        Path(__file__).with_name("ingestion_openapi.json").read_text(encoding="utf-8")
    )
    case = Case.model_json_schema(ref_template="#/components/schemas/{model}")
    document["info"]["version"] = version.APP
    status = CaseStatus.model_json_schema()
    document["components"]["schemas"] |= case.pop("$defs", {}) | {
        "Case": case,
        "CaseStatus": status,
    }
    return document


async def _refusal_response(request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestRefused)
    if request.url.path == "/v1/traces":
        form = content_type(request)
        content = otlp.refusal_body(form, f"{error.problem}. {error.hint}")
        return Response(
            content, error.status, error.headers, form if form == otlp.PROTOBUF else otlp.JSON
        )
    return error.response()


async def _error_response(request: Request, error: Exception) -> Response:
    """Respond with the error's HTTP status (CRITIC-ERR-HTTP). The request wasn't acknowledged."""
    assert isinstance(error, MasisError)
    log.error("A request failed: %s", error)
    status = error.http_status
    problem = {
        "status": status,
        "problem": "the request couldn't be stored",
        "hint": "Send it again later.",
        **error.about,
    }
    headers = {"retry-after": "10"} if status in (503, 507) else {}
    return JSONResponse({"error": problem}, status_code=status, headers=headers)


async def _client_gone(request: Request, error: Exception) -> Response:
    return Response(status_code=400)


PREFIX = "/v1"


def ingestion_route(server: IngestionServer) -> Mount:
    """Return the route of ingestion. The caller keeps ``server.running`` entered while it serves.

    It answers under ``/v1``, alone (``masis ingest``) or on the workbench's port.
    """
    app = Starlette(
        routes=[
            Route("/cases", server.cases, methods=["POST"]),
            Route("/traces", server.traces, methods=["POST"]),
            Route("/cases/{id:path}", server.case, methods=["GET"]),
            Route("/batches/{id}", server.batch, methods=["GET"]),
            Route("/openapi.json", JSONResponse(_openapi_document()), methods=["GET"]),
        ],
        exception_handlers={
            RequestRefused: _refusal_response,
            MasisError: _error_response,
            ClientDisconnect: _client_gone,
        },
    )
    return Mount(PREFIX, app)


def application(
    ingestion: IngestionService,
    sources: Mapping[str, ProgramSource],
    hosts: AllowedHosts | None = None,
    on_read: Callable[[], object] | None = None,
) -> Starlette:
    """Return the ASGI application for these sources. ``on_read`` is called after cases were parsed,
    and every minute.
    """
    server = IngestionServer(ingestion, sources, hosts or AllowedHosts(), on_read)
    routes = [ingestion_route(server), Route("/healthz", server.alive, methods=["GET"])]
    return Starlette(routes=routes, lifespan=server.running)

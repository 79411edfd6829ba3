"""Health over HTTP, for whoever watches the server: is it there, and is all in order?

GET /healthz        200 as long as the process answers; nothing is looked at
GET /health.json    200 or 503 with the whole report (docs/health.md); no model is asked, no key is told
"""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse
from starlette.routing import Route

from masis.ui.health_reports import REPORTS, HealthReports

_FRESH = {"cache-control": "no-store"}


def health_routes(reports: HealthReports = REPORTS) -> list[Route]:
    """The routes, to be served beside the pages."""

    async def alive(request: Request) -> PlainTextResponse:
        return PlainTextResponse("ok", headers=_FRESH)

    def report(request: Request) -> JSONResponse:  # not async: Starlette then gives it a thread of its own
        checked = reports.current()
        return JSONResponse(checked.to_json(), status_code=200 if checked.report.ok else 503, headers=_FRESH)

    return [Route("/healthz", alive), Route("/health.json", report)]

"""Refuse requests for another host, or from another site's page, before reading any of them."""

from __future__ import annotations

import logging

from starlette.datastructures import Headers
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from masis.settings.hosts import AllowedHosts

log = logging.getLogger(__name__)


class HostGuard:
    """ASGI middleware around all routes, including pages, websocket, health, uploads and media."""

    def __init__(self, app: ASGIApp, hosts: AllowedHosts) -> None:
        self._app, self._hosts = app, hosts

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, or answer 421 (another host's name) or 403 (another site's page)."""
        if scope["type"] in ("http", "websocket"):  # not the server's own lifespan events
            headers = Headers(scope=scope)
            if (
                # getlist, because a request can repeat a header, and every value is checked
                refusal := self._hosts.refusal(headers.getlist("host"), headers.getlist("origin"))
            ) is not None:
                log.warning(
                    "A request was refused with %d: its host or origin is not allowed.",
                    refusal.status,
                )
                await refuse(scope, receive, send, refusal.status, refusal.reason)
                return
        await self._app(scope, receive, send)


async def refuse(scope: Scope, receive: Receive, send: Send, status: int, reason: str) -> None:
    """Reject a request or websocket handshake with a status and a message, without reading it."""
    if scope["type"] == "websocket" and "websocket.http.response" not in scope.get(
        "extensions", {}
    ):
        # Closing before accepting makes the server respond with 403 (ASGI).
        await send({"type": "websocket.close", "code": 1008, "reason": reason})
        return
    headers = {"cache-control": "no-store", "x-content-type-options": "nosniff"}
    await JSONResponse({"error": reason}, status, headers)(scope, receive, send)

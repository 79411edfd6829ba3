"""Refuses what is not addressed to this server, or comes from another site's page, before anything
of it is read.
"""

from __future__ import annotations

import logging

from starlette.datastructures import Headers
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from masis.settings.hosts import AllowedHosts

log = logging.getLogger(__name__)


class HostGuard:
    """ASGI middleware around everything: pages, websocket, health, uploads, media and whatever else
    is routed.
    """

    def __init__(self, app: ASGIApp, hosts: AllowedHosts) -> None:
        self._app, self._hosts = app, hosts

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, or answer 421 (another host's name) or 403 (another site's page)."""
        if scope["type"] in ("http", "websocket"):  # else the server's own start and end
            headers = Headers(scope=scope)
            if (
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
    """Answer a request or the opening of a websocket with a status and one sentence; nothing of it
    is read.
    """
    if scope["type"] == "websocket" and "websocket.http.response" not in scope.get(
        "extensions", {}
    ):
        await send({"type": "websocket.close", "code": 1008, "reason": reason})  # answered with 403
        return
    headers = {"cache-control": "no-store", "x-content-type-options": "nosniff"}
    await JSONResponse({"error": reason}, status, headers)(scope, receive, send)

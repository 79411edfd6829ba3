"""Refuses what is not addressed to this server, or comes from another site's page, before anything of it is read."""

from __future__ import annotations

import json
import logging
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from masis.settings.hosts import AllowedHosts

log = logging.getLogger(__name__)

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Asgi = Callable[[Scope, Receive, Send], Awaitable[None]]


class HostGuard:
    """ASGI middleware around everything: pages, websocket, health, uploads, media and whatever else is routed."""

    def __init__(self, app: Asgi, hosts: AllowedHosts) -> None:
        self._app, self._hosts = app, hosts

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, or answer 421 (another host's name) or 403 (another site's page)."""
        if scope["type"] not in ("http", "websocket"):  # the server's own start and end
            await self._app(scope, receive, send)
            return
        refusal = self._hosts.refusal(header(scope, b"host"), header(scope, b"origin"))
        if refusal is None:
            await self._app(scope, receive, send)
            return
        log.warning("A request was refused with %d: its host or origin is not allowed.", refusal.status)
        await refuse(scope, send, refusal.status, refusal.reason)


def header(scope: Scope, name: bytes) -> list[str]:
    """Return every value of a header of a request."""
    return [value.decode("latin-1") for key, value in scope.get("headers", ()) if key.lower() == name]


async def refuse(scope: Scope, send: Send, status: int, reason: str) -> None:
    """Answer a request or the opening of a websocket with a status and one sentence; nothing of it is read."""
    body = json.dumps({"error": reason}).encode()
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    headers += [(b"cache-control", b"no-store"), (b"x-content-type-options", b"nosniff")]
    kind = "http.response"
    if scope["type"] == "websocket":
        if "websocket.http.response" not in scope.get("extensions", {}):
            await send({"type": "websocket.close", "code": 1008, "reason": reason})  # answered with 403
            return
        kind = "websocket.http.response"
    await send({"type": f"{kind}.start", "status": status, "headers": headers})
    await send({"type": f"{kind}.body", "body": body})

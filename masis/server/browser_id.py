"""A cookie with a random id for each browser, so that drafts without a name stay in the browser
that they were typed in.

It isn't a secret that grants anything but these drafts, and it's needed only without sign-in.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Mapping

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import cookie_parser
from starlette.types import ASGIApp, Message, Receive, Scope, Send

COOKIE = "masis-browser"
_ID = re.compile(r"[\w-]{20,100}", re.ASCII)
_YEAR_S = 365 * 24 * 3600


def browser_id(cookies: Mapping[str, str]) -> str:
    """Return the id that a browser sent, or "" if it sent none, or none that is valid.

    Example:
        >>> browser_id({"masis-browser": "forged; id"})
        ''

    """
    sent = cookies.get(COOKIE)
    return sent if isinstance(sent, str) and _ID.fullmatch(sent) else ""


class BrowserIds:
    """ASGI middleware that gives an id to each browser that opens a page without one."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request, and set the cookie if a browser without one opens a page."""
        if not _opens_page(scope) or browser_id(_sent_cookies(scope)):
            await self._app(scope, receive, send)
            return

        async def send_with_id(message: Message) -> None:
            if message["type"] == "http.response.start":
                message.setdefault("headers", [])
                # Not "Strict": a link from another site would then replace the id.
                cookie = (
                    f"{COOKIE}={secrets.token_urlsafe(24)}; Path=/; HttpOnly; SameSite=Lax;"
                    f" Max-Age={_YEAR_S}"
                )
                MutableHeaders(scope=message).append("set-cookie", cookie)
            await send(message)

        await self._app(scope, receive, send_with_id)


def _opens_page(scope: Scope) -> bool:
    return (
        scope["type"] == "http"
        and scope["method"] == "GET"
        and any("text/html" in value for value in Headers(scope=scope).getlist("accept"))
    )


def _sent_cookies(scope: Scope) -> dict[str, str]:
    # HTTP/2 may split cookies over several headers (RFC 9113, section 8.2.3).
    return cookie_parser("; ".join(Headers(scope=scope).getlist("cookie")))

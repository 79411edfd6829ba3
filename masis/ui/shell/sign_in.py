"""Sign-in: its page, and the gate that protects pages, websocket, uploads and media.

Both ways of signing in result in the session cookie of ``st.login``. With a provider, Streamlit
(Authlib) sets it after the code flow; with a secret, this page sets it. The services check a
person's permissions on every call, based on the claims in the cookie.
"""

from __future__ import annotations

import asyncio
import html
import logging
from http.cookies import CookieError, SimpleCookie
from urllib.parse import parse_qs, urlencode, urlsplit

from starlette.concurrency import run_in_threadpool
from starlette.datastructures import Headers
from starlette.requests import ClientDisconnect, Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from masis.schema.actor import Actor
from masis.schema.base import utc_now
from masis.server import ingestion
from masis.server.app import ACTOR
from masis.server.endpoints import PREFIX
from masis.settings.sign_in import SignIn
from masis.ui.shell.host_guard import refuse
from masis.ui.shell.streamlit_internals import (
    HEALTH_PATH,
    UPLOADS,
    login_address,
    session_cookie,
    signed_in_claims,
)

log = logging.getLogger(__name__)

PAGE = "/sign-in"
SIGN_OUT = "/auth/logout"
"""The address to which ``st.logout()`` sends the browser."""

OPEN_PATHS = frozenset({PAGE, "/healthz", "/health.json", HEALTH_PATH})
OIDC_PATHS = frozenset({"/auth/login", SIGN_OUT, "/oauth2callback"})
MOST_UPLOADED = 256 * 2**20
"""The maximum total size of the files of one session, in bytes."""

_SESSIONS = 10_000

WRONG_SECRET_S, MOST_WRONG = 1.0, 20
"""A wrong secret is answered after this delay, and at most ``MOST_WRONG`` such requests may wait.

Further wrong attempts are refused at once. A correct secret is never delayed, so that an attacker
can't lock others out.
"""

LONGEST_FORM = 8192
"""The maximum size of a posted form with name, secret and address, in bytes."""


_MOST_FIELDS = 10


class SignInGate:
    """ASGI middleware that shows the sign-in page to everyone who isn't signed in.

    API and ingestion check tokens themselves and answer in JSON (masis/server). ``ingests`` says
    whether ingestion is served; if it isn't, Streamlit would answer under its addresses.
    """

    def __init__(self, app: ASGIApp, sign_in: SignIn, *, ingests: bool = False) -> None:
        self._app, self._sign_in = app, sign_in
        prefixes = (PREFIX, ingestion.PREFIX) if ingests else (PREFIX,)
        self._checked_elsewhere = tuple(f"{prefix}/" for prefix in prefixes)
        self._uploaded: dict[str, dict[str, int]] = {}
        self._arriving: dict[str, int] = {}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on with the signed-in person, or redirect to the sign-in page."""
        if scope["type"] not in ("http", "websocket"):
            await self._app(scope, receive, send)
            return
        claims = signed_in_claims(_cookies(scope))
        actor = self._sign_in.actor(claims)
        scope[ACTOR] = actor
        path = scope["path"]
        if path == SIGN_OUT:
            await run_in_threadpool(self._sign_in.end, claims)
        if path == SIGN_OUT and self._sign_in.kind == "team":
            signed_out = RedirectResponse(PAGE, status_code=303, headers=_FRESH)
            signed_out.delete_cookie(session_cookie({}, "").name)
            await signed_out(scope, receive, send)
        elif self._is_open(path):
            await self._app(scope, receive, send)
        elif (
            actor is None
            and scope["type"] == "http"
            and scope["method"] == "GET"
            and _accepts_html(scope)
        ):
            query = scope.get("query_string", b"").decode("latin-1")
            target = (
                f"{PAGE}?{urlencode({'next': _local_path(path + (f'?{query}' if query else ''))})}"
            )
            await RedirectResponse(target, status_code=303, headers=_FRESH)(scope, receive, send)
        elif actor is None:
            await refuse(scope, receive, send, 401, "Sign in first.")
        elif not actor.may("read") and _accepts_html(scope) and scope["type"] == "http":
            await _page(_no_role_html(actor), status=403)(scope, receive, send)
        elif not actor.may("read"):
            await refuse(scope, receive, send, 403, "You have no role here.")
        elif path.startswith(UPLOADS) and not actor.may("audit"):
            await refuse(
                scope,
                receive,
                send,
                403,
                "You need the reviewer role to upload files.",
            )
        elif path.startswith(UPLOADS) and scope.get("method") == "PUT":
            await self._upload(scope, receive, send)
        elif path.startswith(UPLOADS) and scope.get("method") == "DELETE":
            await self._app(scope, receive, self._counting(scope, send, None))
        else:
            await self._app(scope, receive, send)

    def _is_open(self, path: str) -> bool:
        """Return whether an address needs no session."""
        return (
            path.startswith(self._checked_elsewhere)
            or path in OPEN_PATHS
            or (self._sign_in.kind == "oidc" and path in OIDC_PATHS)
        )

    async def _upload(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass an upload on if its session has room for it.

        Uploads that are still arriving count too, or many at once would all find room.
        """
        session, file = _session_and_file(scope)
        length = Headers(scope=scope).get("content-length", "")
        # A request without a length counts as too large, because it could be of any size.
        size = int(length) if length.isdecimal() else MOST_UPLOADED + 1
        files, arriving = self._uploaded.get(session, {}), self._arriving.get(session, 0)
        if sum(files.values()) - files.get(file, 0) + arriving + size > MOST_UPLOADED:
            most = f"{MOST_UPLOADED // 2**20} MiB"
            text = f"A session can have {most} of files. Remove some of them."
            await refuse(scope, receive, send, 413, text)
            return
        self._arriving[session] = arriving + size
        try:
            await self._app(scope, receive, self._counting(scope, send, size))
        finally:
            self._arriving[session] -= size
            if not self._arriving[session]:
                del self._arriving[session]

    def _counting(self, scope: Scope, send: Send, size: int | None) -> Send:
        """Return a function that sends a response, and counts a file if the request was accepted.

        ``size`` is its new size, or None if it's removed. Streamlit refuses requests without its
        XSRF token and those for sessions that don't exist. If these counted, they would lower the
        count of a session or push it out, and it could upload any amount.
        """

        async def counting(message: Message) -> None:
            if message["type"] == "http.response.start" and message["status"] < 300:
                session, file = _session_and_file(scope)
                files = self._uploaded.setdefault(session, {})
                if size is None:
                    files.pop(file, None)
                else:
                    files[file] = size
                while len(self._uploaded) > _SESSIONS:
                    # A dict keeps the order of insertion, so this drops the oldest session.
                    self._uploaded.pop(next(iter(self._uploaded)))
            await send(message)

        return counting


def _session_and_file(scope: Scope) -> tuple[str, str]:
    """Return the session and the file that the address of an upload names."""
    session, _, file = scope["path"].removeprefix(UPLOADS).strip("/").partition("/")
    return session, file


def sign_in_routes(sign_in: SignIn) -> list[Route]:
    """Return the routes of the sign-in page."""
    waiting = asyncio.Semaphore(MOST_WRONG)

    async def show(request: Request) -> Response:
        return _page(_sign_in_form(sign_in, request.query_params.get("next", "/"), ""))

    async def check(request: Request) -> Response:
        if sign_in.kind != "team":
            return _page(_sign_in_form(sign_in, "/", ""), status=400)
        fields = await _form_fields(request)
        if fields is None:
            return _page(
                _sign_in_form(sign_in, "/", "The name or the secret is too long."), status=413
            )
        name, target = (
            " ".join(fields.get("name", "").split()),
            _local_path(fields.get("next", "/")),
        )
        if not await run_in_threadpool(
            sign_in.is_secret_of, name, fields.get("secret", "").strip()
        ):
            shown_name = (
                # Somebody may type the secret into the field of the name, so an unknown name isn't
                # logged.
                repr(name) if sign_in.has_person(name) else "a name that is not in the file"
            )
            host = request.client.host if request.client else "an unknown address"
            log.warning("%s: sign-in of %s from %s failed", utc_now(), shown_name, host)
            # The semaphore is locked once MOST_WRONG requests wait.
            if waiting.locked():
                return _page(
                    _sign_in_form(sign_in, target, "Too many failed attempts. Try again later."),
                    status=429,
                )
            async with waiting:
                await asyncio.sleep(WRONG_SECRET_S)
            return _page(
                _sign_in_form(sign_in, target, "Name and secret don't match. Try again."),
                status=401,
            )
        origin = (
            request.headers.getlist("origin")
            or [f"{request.url.scheme}://{request.headers['host']}"]
        )[0]
        cookie = session_cookie(sign_in.claims_of(name), origin)
        # 303 makes the browser follow with GET (RFC 9110, 15.4.4).
        response = RedirectResponse(target, status_code=303, headers=_FRESH)
        response.set_cookie(
            cookie.name,
            cookie.value,
            max_age=int(sign_in.session_s),
            httponly=True,
            samesite="lax",
            # A browser doesn't send a secure cookie over http, which is allowed on this machine.
            secure=urlsplit(origin).scheme == "https",
        )
        return response

    return [Route(PAGE, show, methods=["GET"]), Route(PAGE, check, methods=["POST"])]


_FRESH = {"cache-control": "no-store"}


def _cookies(scope: Scope) -> dict[str, str]:
    cookies: SimpleCookie = SimpleCookie()
    for line in Headers(scope=scope).getlist("cookie"):
        try:
            # HTTP/2 may split cookies over several headers (RFC 9113, section 8.2.3).
            cookies.load(line)
        except CookieError:
            return {}
    return {name: morsel.value for name, morsel in cookies.items()}


def _accepts_html(scope: Scope) -> bool:
    return any("text/html" in value for value in Headers(scope=scope).getlist("accept"))


def _local_path(address: str) -> str:
    """Return an address if it is a path on this server, or else "/".

    This prevents open redirects (CWE-601). A browser treats ``//evil.example`` as another host, and
    a backslash as a slash.
    """
    safe = (
        address.startswith("/")
        and not address.startswith("//")
        and "\\" not in address
        and address.isprintable()
    )
    return address if safe and len(address) <= 2000 else "/"


async def _form_fields(request: Request) -> dict[str, str] | None:
    """Return the fields of a posted form, or None if it is too long or has too many fields."""
    body = b""
    try:
        async for chunk in request.stream():
            # The size is checked while reading, because the content-length header can be wrong or
            # missing.
            body += chunk
            if len(body) > LONGEST_FORM:
                return None
    except ClientDisconnect:
        return None
    try:
        fields = parse_qs(body.decode("utf-8", "replace"), max_num_fields=_MOST_FIELDS)
    except ValueError:  # more fields than the form has
        return None
    return {name: values[0] for name, values in fields.items()}


def _page(content: str, status: int = 200) -> HTMLResponse:
    return HTMLResponse(_HTML.replace("@content", content), status_code=status, headers=_FRESH)


def _sign_in_form(sign_in: SignIn, target: str, problem: str) -> str:
    alert = f'<p role="alert" class="problem">{html.escape(problem)}</p>' if problem else ""
    if (oidc := sign_in.oidc) is not None:
        button = f"Sign in with {html.escape(oidc.label)}"
        return (
            f'<h1>MASIS Workbench</h1>{alert}<p><a class="button"'
            f' href="{html.escape(login_address())}">{button}</a></p>'
        )
    return f"""<h1>MASIS Workbench</h1>{alert}
<form method="post" action="{PAGE}">
<input type="hidden" name="next" value="{html.escape(_local_path(target))}">
<label for="name">Your name</label>
<input id="name" name="name" required autofocus autocomplete="username" maxlength="80">
<label for="secret">Your secret</label>
<input id="secret" name="secret" type="password" required autocomplete="current-password"
  maxlength="200">
<button class="button">Sign in</button>
</form>"""


def _no_role_html(actor: Actor) -> str:
    return (
        f"<h1>No role</h1><p>You're signed in as {html.escape(actor.name)} but have no role here."
        " Ask the operator of this workbench for one.</p>"
        f'<p><a class="button" href="{SIGN_OUT}">Sign out</a></p>'
    )


_HTML = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>Sign in · MASIS Workbench</title>
<style>
:root { color-scheme: light dark }
body { margin: 0; min-height: 100vh; display: grid; place-items: center;
  font: 16px/1.5 system-ui, sans-serif; background: light-dark(#fbfaf7, #14181c);
  color: light-dark(#1d2329, #e6e4de) }
main { width: min(22rem, 90vw) }
h1 { font-size: 1.5rem }
label { display: block; margin: 1rem 0 .25rem }
input { box-sizing: border-box; width: 100%; padding: .5rem; font: inherit; border-radius: 6px;
  border: 1px solid light-dark(#6f757b, #8b949c); background: light-dark(#fff, #1e242a);
  color: inherit }
.button { display: inline-block; margin-top: 1.25rem; padding: .5rem 1rem; border: 0;
  border-radius: 6px; font: inherit; cursor: pointer; text-decoration: none;
  background: light-dark(#0b5c6b, #5cc2d4); color: light-dark(#fff, #101417) }
.problem { color: light-dark(#b3261e, #ff8a80) }
:focus-visible { outline: 3px solid light-dark(#1f5fa8, #8cbcf5); outline-offset: 2px }
</style></head><body><main>@content</main></body></html>"""

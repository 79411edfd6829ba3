"""Start the workbench: a local server for ``app.py``, reachable from this machine only by default.

Streamlit's settings come from ``.streamlit/config.toml`` beside ``app.py``, whatever the working
directory is. Every response gets headers that restrict a page to its own server.
"""

from __future__ import annotations

import contextlib
import errno
import functools
import importlib
import socket
import sys
import threading
import time
import tomllib
import urllib.request
import webbrowser
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from starlette.datastructures import MutableHeaders
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse
from starlette.routing import BaseRoute, Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from masis.errors import MasisError
from masis.schema.actor import Actor
from masis.server.app import ACTOR, Server, api_route
from masis.server.browser_id import BrowserIds
from masis.server.ingestion import READING_FAILS, IngestionServer, ingestion_route
from masis.services.arrivals.ingestion import ProgramSource, audit_settings
from masis.services.maintenance import ended_sessions
from masis.settings import variable
from masis.ui.admin.health_reports import REPORTS, HealthReports
from masis.ui.live import served_jobs
from masis.ui.review import desk_api  # noqa: F401 (adds its endpoints to the table)
from masis.ui.shell import served_database
from masis.ui.shell.frame import show_refusal
from masis.ui.shell.host_guard import HostGuard
from masis.ui.shell.reach import EXPOSED, ONLY_HERE, Reach, serve_under
from masis.ui.shell.sign_in import SignInGate, sign_in_routes
from masis.ui.shell.streamlit_internals import (
    answer_without_delay,
    break_long_marks,
    disable_pages_folder,
    let_clicks_finish,
)
from masis.ui.shell.worker import show_log

# Health over HTTP, for monitoring:
#
# GET /healthz      200 as long as the process answers; it runs no checks
# GET /health.json  200 {"ok": true} or 503 {"ok": false}; paths and texts only for signed-in people

_FRESH = {"cache-control": "no-store"}


def health_routes(
    reports: HealthReports = REPORTS, receiving: IngestionServer | None = None
) -> list[Route]:
    """Return the health routes to serve beside the pages; signed-in people get the full report.

    ``receiving`` is the ingestion on the same port. If it fails, the report isn't ok.
    """

    async def alive(request: Request) -> PlainTextResponse:
        return PlainTextResponse("ok", headers=_FRESH)

    # Not async: Starlette runs a plain function in a thread, where checks don't block others.
    def report(request: Request) -> JSONResponse:
        checked = reports.current()
        actor: Actor | None = request.scope.get(ACTOR)
        if actor is not None and not actor.may("oversee"):
            checked = checked.without_counts()
        may_read = actor is not None and actor.may("read")
        content = checked.to_json() if may_read else {}
        content |= {"ok": checked.report.ok}
        if receiving is not None and receiving.fails:
            content |= {"ok": False} | ({"problem": READING_FAILS} if may_read else {})
        return JSONResponse(content, status_code=200 if content["ok"] else 503, headers=_FRESH)

    return [Route("/healthz", alive), Route("/health.json", report)]


SLOW_MODULES = ("altair", "scipy.special")
"""Modules that only the pages with charts need. Importing them takes about 0.8 s."""
SECONDS_UNTIL_IMPORTS = 2.0
"""How long the import of slow modules waits, so that it doesn't delay the first page."""

LARGEST_UPLOAD = "STREAMLIT_SERVER_MAX_UPLOAD_SIZE"
FIRST_PORT = 8501
PORTS_TRIED = 100

# Streamlit's own scripts need 'unsafe-inline' and 'unsafe-eval' (Vega compiles charts in the page).
# The policy ensures that text written by a model can't load from or send to another host: it
# doesn't allow remote images, frames, form targets or connections.
SECURITY_HEADERS = {
    "content-security-policy": "; ".join(
        (
            "default-src 'self'",
            "script-src 'self' 'unsafe-inline' 'unsafe-eval' blob:",
            "style-src 'self' 'unsafe-inline'",
            "img-src 'self' data: blob:",
            "media-src 'self' data: blob:",
            "font-src 'self' data:",
            "connect-src 'self' ws: wss:",
            "worker-src 'self' blob:",
            "frame-src 'self'",
            "frame-ancestors 'self'",
            "form-action 'self'",
            "base-uri 'self'",
            "object-src 'none'",
        )
    ),
    "x-content-type-options": "nosniff",
    "referrer-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
}


class PortTaken(MasisError):
    """The requested port is already in use."""


class SecurityHeaders:
    """ASGI middleware that adds ``SECURITY_HEADERS`` to every HTTP response."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request and add the headers to its response."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                message.setdefault("headers", [])
                MutableHeaders(scope=message).update(SECURITY_HEADERS)
            await send(message)

        await self.app(scope, receive, send_with_headers)


def launch(
    db: Path,
    port: int | None = None,
    reach: Reach = ONLY_HERE,
    open_browser: bool = False,
    sources: Mapping[str, ProgramSource] | None = None,
) -> int:
    """Serve the workbench on the database ``db`` until interrupted, and return the exit status.

    Args:
        db: The database to serve.
        port: The port, by default the first free one from 8501.
        reach: The address and host names to serve, and the sign-in.
        open_browser: Whether to open the workbench in the browser.
        sources: The programs that may send cases to ``/v1/cases`` on the same port, or None.

    Raises:
        PortTaken: If ``port`` isn't free.

    """
    # imported here because it takes a second, which other commands must not wait for
    import streamlit
    from starlette.middleware import Middleware

    from masis.services import app_root

    root = app_root()
    port = choose_port(reach.address, port)
    disable_pages_folder()
    let_clicks_finish()
    break_long_marks()
    answer_without_delay()
    served_database.serve_database(db)
    serve_under(reach)
    every_address = reach.address in ("0.0.0.0", "::")  # noqa: S104 (compared, not bound)
    host = (
        "localhost"
        if every_address
        else f"[{reach.address}]"
        if ":" in reach.address
        else reach.address
    )
    url = f"http://{host}:{port}"
    print(f"MASIS Workbench: {url}\nDatabase: {db}\nPress Ctrl-C to stop.", flush=True)
    if reach.is_exposed:
        print(EXPOSED, file=sys.stderr, flush=True)
    if open_browser:
        threading.Thread(target=_open_when_up, args=(url,), daemon=True).start()
    # Streamlit takes sys.argv[0] as its script, and looks for its settings in the script's folder.
    sys.argv = [str(root / "app.py")]
    guards = [Middleware(HostGuard, hosts=reach.hosts()), Middleware(SecurityHeaders)]
    api = api_route(Server(served_database.served_workbench, served_jobs, reach.sign_in))
    routes: list[BaseRoute] = [api]
    secrets, lifespan, receiving = {}, None, None
    if sources:
        receiving = IngestionServer(
            served_database.served_workbench().ingestion, sources, reach.hosts(), _audit_arrived()
        )
        routes.append(ingestion_route(receiving))
        lifespan = receiving.running
    routes += health_routes(receiving=receiving)
    if (sign_in := reach.sign_in) is None:
        guards.append(Middleware(BrowserIds))
    else:
        guards.append(Middleware(SignInGate, sign_in=sign_in, ingests=bool(sources)))
        routes += sign_in_routes(sign_in)
        sign_in.load_ended_sessions(
            ended_sessions.read_sessions(db), functools.partial(ended_sessions.add, db)
        )
        secrets = sign_in.streamlit_secrets()
    app = streamlit.App(
        root / "app.py",
        middleware=guards,
        routes=routes,
        secrets=secrets or None,
        lifespan=lifespan,
        on_script_error=show_refusal,
    )
    REPORTS.watch()
    later = threading.Timer(SECONDS_UNTIL_IMPORTS, import_slow_modules)
    later.daemon = True
    later.start()
    try:
        show_log()
        app.run(
            config={
                **streamlit_settings(root),
                "server.address": reach.address,
                "server.port": port,
            }
        )
    # Ctrl-C is the usual way to stop the server, so it isn't an error.
    except KeyboardInterrupt:
        return 0
    return 0


def _audit_arrived() -> Callable[[], object] | None:
    """Return the function that audits the cases from programs, or None if they aren't audited."""
    settings = audit_settings(served_database.served_workbench().settings)
    return None if settings is None else lambda: served_jobs().audit_arrived(settings)


def import_slow_modules() -> None:
    """Import the slow modules in the background, before someone opens a page that needs them."""
    for name in SLOW_MODULES:
        importlib.import_module(name)


def choose_port(address: str, port: int | None) -> int:
    """Return ``port`` if it is free, or the first free port from 8501 if it is None.

    Raises:
        PortTaken: If the port, or every port of the range, is in use.

    """
    if port is not None:
        if not _is_port_free(address, port):
            raise PortTaken(
                f"port {port} on {address} is in use. Choose another with --port, or omit it."
            )
        return port
    for candidate in range(FIRST_PORT, FIRST_PORT + PORTS_TRIED):
        if _is_port_free(address, candidate):
            return candidate
    last = FIRST_PORT + PORTS_TRIED - 1
    raise PortTaken(
        f"no port from {FIRST_PORT} to {last} on {address} is free. Choose one with --port."
    )


def streamlit_settings(root: Path) -> dict[str, Any]:
    """Return the options of ``.streamlit/config.toml`` under ``root``, keyed ``section.option``.

    The operator can change the maximum upload size (32 MB) with Streamlit's own environment
    variable.
    """
    parsed = tomllib.loads((root / ".streamlit" / "config.toml").read_text(encoding="utf-8"))
    options = dict(_flatten_table(parsed))
    if variable(LARGEST_UPLOAD):
        del options["server.maxUploadSize"]
    return options


def _flatten_table(table: dict[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for key, value in table.items():
        if isinstance(value, dict):
            yield from _flatten_table(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", value


def _is_port_free(address: str, port: int) -> bool:
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    with socket.socket(family) as probe:
        # Without SO_REUSEADDR, a port can't be bound for a while after its server stopped, because
        # its connections are still in the state TIME_WAIT.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((address, port))
        except OSError as error:
            if error.errno in (errno.EADDRINUSE, errno.EACCES):
                return False
            raise MasisError(
                f"can't listen on {address} ({error.strerror}). Use --address 127.0.0.1."
            ) from error
    return True


def _open_when_up(url: str, patience_s: float = 20.0) -> None:
    deadline = time.monotonic() + patience_s
    while time.monotonic() < deadline:
        try:
            with urllib.request.urlopen(f"{url}/healthz", timeout=1):  # noqa: S310 (our address)
                break
        except OSError:
            time.sleep(0.2)
    else:
        return
    with contextlib.suppress(webbrowser.Error):
        browser = webbrowser.get()
        # A plain GenericBrowser is a text browser, which would take over the terminal.
        if type(browser) is not webbrowser.GenericBrowser:
            browser.open(url)

"""Serves the MCP server over stdin and stdout, or over streamable HTTP."""

from __future__ import annotations

import asyncio
import contextlib
import hmac
import json
import logging
import os
import re
import signal
import socket
import sys
import threading
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import anyio
import uvicorn
from mcp.server.stdio import stdio_server
from mcp.server.transport_security import TransportSecuritySettings
from starlette.datastructures import Headers
from starlette.responses import JSONResponse, PlainTextResponse, Response

from masis.errors import SettingsError
from masis.integrations.mcp.server import MasisServer
from masis.schema import limits
from masis.services.token_bucket import Bucket
from masis.settings.hosts import AllowedHosts, is_loopback

log = logging.getLogger("masis.integrations.mcp")

GUESSES = (1.0, 20)
"""Rate (per second) and burst of requests with a wrong secret. More get 429, which slows down
guessing.
"""
LEAST_TOKEN = 16
"""Minimum number of characters of a secret. 16 hexadecimal digits are 64 bits."""
PATH = "/mcp"
INTERRUPTED = 130
"""The exit code after a signal, as of every command."""

_SHUTDOWN_S = 3
_CHUNK, _EDGE = 65536, 500
_ID_AT_HEAD = re.compile(rb'\{"jsonrpc": ?"2\.0", ?"id": ?(\d{1,15}|"[^"\\]{1,200}")[,}]')
_ID_AT_END = re.compile(rb'"id": ?(\d{1,15}|"[^"\\]{1,200}")\}\s*$')

Asgi = Callable[[dict[str, Any], Any, Any], Awaitable[None]]


def serve_stdio(server: MasisServer) -> int:
    """Serve until stdin ends or a signal arrives, and return the exit code. Only protocol messages
    go to stdout.
    """
    return asyncio.run(_stdio(server))


async def _stdio(server: MasisServer) -> int:
    lines, code = _Lines(sys.stdin.fileno(), asyncio.get_running_loop()), 0

    async def end_by_signal() -> None:
        nonlocal code
        with (
            # Windows, or not the main thread
            contextlib.suppress(NotImplementedError, ValueError, RuntimeError),
            anyio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals,
        ):
            await anext(signals)
            code = INTERRUPTED
            tasks.cancel_scope.cancel()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(end_by_signal)
        # We read stdin ourselves, because the SDK's reader can't be interrupted while it waits for
        # a line. Stdout is left to the SDK, which redirects other prints to stderr.
        async with stdio_server(stdin=lines) as (incoming, outgoing):
            await server.server.run(
                incoming, outgoing, server.server.create_initialization_options()
            )
        tasks.cancel_scope.cancel()
    await asyncio.to_thread(server.close)
    return code


class _Lines:
    """Reads the lines of a file descriptor on a daemon thread, which doesn't keep the process
    alive.

    A line that is too long is replaced by a request for an unknown method with the same id, if the
    id can be found. The sender then gets an error instead of waiting forever.
    """

    def __init__(self, descriptor: int, loop: asyncio.AbstractEventLoop) -> None:
        # A duplicate, because closing the stream must not close stdin for the SDK.
        self._stream, self._loop = os.fdopen(os.dup(descriptor), "rb"), loop
        self._read: asyncio.Queue[str | None] = asyncio.Queue()
        threading.Thread(target=self._follow, name="mcp-stdin", daemon=True).start()

    async def __aiter__(self) -> AsyncIterator[str]:
        while (line := await self._read.get()) is not None:
            yield line

    def _follow(self) -> None:
        # OSError if the terminal is gone, RuntimeError if the loop is closed.
        with contextlib.suppress(OSError, RuntimeError):
            while line := self._stream.readline(limits.BODY + 1):
                text = (
                    line.decode("utf-8", "replace")
                    if len(line) <= limits.BODY
                    else self._skip_long_line(line)
                )
                self._loop.call_soon_threadsafe(self._read.put_nowait, text)
        with contextlib.suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self._read.put_nowait, None)

    def _skip_long_line(self, line: bytes) -> str:
        """Skip the rest of a line that is too long, and return its replacement.

        The id is searched at both ends of the line, since JSON keys have no fixed order.
        """
        log.warning("Refused a message of more than %d bytes.", limits.BODY)
        head, end = line[:_EDGE], line[-_EDGE:]
        while not end.endswith(b"\n") and (more := self._stream.readline(_CHUNK)):
            end = (end + more)[-_EDGE:]
        found = _ID_AT_HEAD.match(head) or _ID_AT_END.search(end)
        method = f"message longer than {limits.BODY} bytes"
        return json.dumps(
            {"jsonrpc": "2.0", "method": method}
            | ({"id": json.loads(found.group(1))} if found else {})
        )


def check_address(host: str, allowed: tuple[str, ...], token: str | None) -> None:
    """Raise SettingsError if the server would be reachable from outside without allowed host names
    and a strong secret.
    """
    AllowedHosts(allowed)  # raises for a name that isn't a host name
    if not is_loopback(host) and not allowed:
        raise SettingsError(
            f"--host {host}: anyone who can reach this machine could read every case and run"
            " audits. If that's what you want, list the host names that clients use: --allow-host"
            " audits.example.org"
        )
    if allowed and token is None:
        raise SettingsError(
            "--allow-host makes the server reachable from outside. Set a secret in the variable"
            " MASIS_MCP_TOKEN; clients send it as 'Authorization: Bearer ...'."
        )
    if token is not None and len(token) < LEAST_TOKEN:
        raise SettingsError(
            f"MASIS_MCP_TOKEN has {len(token)} characters and could be guessed. Use at least"
            f" {LEAST_TOKEN}. To generate one: python -c"
            ' "import secrets; print(secrets.token_urlsafe(32))"'
        )


def app(server: MasisServer, allowed: tuple[str, ...], token: str | None) -> Asgi:
    """Return the ASGI application, which checks the host, the secret, the rate and the content type
    of each request.

    Checking Host and Origin (``masis/settings/hosts.py``) stops DNS rebinding and pages of other
    local servers. Only JSON bodies are accepted, since a page of any site may send text/plain
    without a CORS preflight request.
    """
    inner: Asgi = server.server.streamable_http_app(
        streamable_http_path=PATH,
        # Off because ``AllowedHosts`` checks the same, with one rule for all our servers.
        transport_security=TransportSecuritySettings(enable_dns_rebinding_protection=False),
        max_request_body_size=limits.BODY,
    )
    hosts, expected = AllowedHosts(allowed), None if token is None else token.encode()
    taken, guessed = Bucket(limits.REQUESTS_A_MINUTE / 60, limits.BURST), Bucket(*GUESSES)

    def refused(status: int, error: str, description: str, **headers: str) -> Response:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        return JSONResponse({"error": error, "error_description": description}, status, named)

    def refusal(headers: Headers, method: str) -> Response | None:
        kind, _, given = headers.get("authorization", "").partition(" ")
        if wrong := hosts.refusal(headers.getlist("host"), headers.getlist("origin")):
            return PlainTextResponse(wrong.reason, wrong.status)
        if expected and not (
            kind.lower() == "bearer" and hmac.compare_digest(given.strip().encode(), expected)
        ):
            if wait := guessed.take():
                return refused(
                    429,
                    "too_many_requests",
                    "Too many wrong tokens",
                    retry_after=str(round(wait + 1)),
                )
            hint = "Send the token as Authorization: Bearer ..."
            return refused(
                401, "invalid_token", hint, www_authenticate='Bearer error="invalid_token"'
            )
        if wait := taken.take():
            words = (
                f"At most {limits.REQUESTS_A_MINUTE:,} requests a minute (requests_per_minute,"
                " burst)"
            )
            return refused(429, "too_many_requests", words, retry_after=str(round(wait + 1)))
        body = headers.get("content-type", "").partition(";")[0].strip().lower()
        if method == "POST" and body != "application/json":
            return refused(415, "unsupported_media_type", "Send the body as application/json")
        return None

    async def guarded(scope: dict[str, Any], receive: Any, send: Any) -> None:
        answer = refusal(Headers(scope=scope), scope["method"]) if scope["type"] == "http" else None
        await (answer or inner)(scope, receive, send)

    return guarded


def listening(host: str, port: int) -> socket.socket:
    """Return a listening socket. Port 0 picks a free port. Raises OSError."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # create_server() sets SO_REUSEADDR on POSIX, so a restart needn't wait for old connections.
    return socket.create_server((host, port), family=family, backlog=128)


def address(listener: socket.socket) -> str:
    """Return the URL at which clients reach the server on this socket."""
    host, port, *_ = listener.getsockname()
    return f"http://{f'[{host}]' if ':' in host else host}:{port}{PATH}"


def serve_http(
    server: MasisServer, listener: socket.socket, allowed: tuple[str, ...], token: str | None
) -> int:
    """Serve until a signal arrives, and return the exit code."""
    config = uvicorn.Config(
        app(server, allowed, token),
        log_config=None,  # use our logging; uvicorn's own configuration writes to stdout
        access_log=False,
        timeout_graceful_shutdown=_SHUTDOWN_S,
    )

    class InGoodOrder(uvicorn.Server):
        async def shutdown(self, sockets: Any = None) -> None:
            # Stop running calls first so that they can still answer. Uvicorn then cuts the streams
            # that clients hold open, and would log that as errors.
            await asyncio.to_thread(server.close)
            logging.getLogger("uvicorn").setLevel(logging.CRITICAL)
            await super().shutdown(sockets)

    # Uvicorn raises the signal again after its shutdown, and asyncio may have turned it into a
    # cancellation by then.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    with contextlib.suppress(KeyboardInterrupt):
        InGoodOrder(config).run([listener])
    return INTERRUPTED

"""Run a server on loopback with a test's own handler."""

from __future__ import annotations

import ssl
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import NamedTuple


class Quiet(BaseHTTPRequestHandler):
    """A base class for handlers that doesn't log requests."""

    def log_message(self, *args: object) -> None:
        """Don't log."""


@contextmanager
def loopback(handler: type[Quiet], tls: ssl.SSLContext | None = None) -> Iterator[str]:
    """Serve on a free port while the block runs, and yield the address."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    if tls is not None:
        server.socket = tls.wrap_socket(server.socket, server_side=True)
    server.daemon_threads = True
    thread = threading.Thread(
        target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True
    )
    thread.start()
    try:
        yield f"http{'s' if tls else ''}://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


class Call(NamedTuple):
    """A POST request that a receiver got."""

    path: str
    headers: Mapping[str, str]
    body: bytes


@contextmanager
def receiver(
    answers: Callable[[int], int | str] = lambda number: 204, tls: ssl.SSLContext | None = None
) -> Iterator[tuple[str, list[Call]]]:
    """Run a webhook receiver and yield its address and its calls so far.

    ``answers`` maps the number of a call to its status, or to the address that it redirects to.
    """
    calls: list[Call] = []

    class Handler(Quiet):
        def do_POST(self) -> None:
            calls.append(
                Call(
                    self.path,
                    dict(self.headers),
                    self.rfile.read(int(self.headers["content-length"])),
                )
            )
            answer = answers(len(calls) - 1)
            self.send_response(answer if isinstance(answer, int) else 307)
            if isinstance(answer, str):
                self.send_header("location", answer)
            self.send_header("content-length", "0")
            self.end_headers()

    with loopback(Handler, tls) as address:
        yield address, calls

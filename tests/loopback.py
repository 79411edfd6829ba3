"""A server on loopback that answers as a test's handler does."""

from __future__ import annotations

import ssl
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import NamedTuple


class Quiet(BaseHTTPRequestHandler):
    """The handler to build on; it writes no log."""

    def log_message(self, *args: object) -> None:
        """Say nothing."""


@contextmanager
def loopback(handler: type[Quiet], tls: ssl.SSLContext | None = None) -> Iterator[str]:
    """Serve on a free port of this machine while the block runs; its address is yielded."""
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
    """A POST that a receiver got."""

    path: str
    headers: Mapping[str, str]
    body: bytes


@contextmanager
def receiver(
    answers: Callable[[int], int | str] = lambda number: 204, tls: ssl.SSLContext | None = None
) -> Iterator[tuple[str, list[Call]]]:
    """A receiver of webhooks: its address, and the calls so far. ``answers`` gives the status of
    the call of a number, or where it redirects to.
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

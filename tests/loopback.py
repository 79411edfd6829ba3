"""Run a server on loopback with a test's own handler."""

from __future__ import annotations

import json
import ssl
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple


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
    """A POST request that a receiver got. The names of its headers are in lower case."""

    path: str
    headers: Mapping[str, str]
    body: bytes

    def json(self) -> Any:
        """The body, parsed."""
        return json.loads(self.body)


class Answer(NamedTuple):
    """The response to a call: status, body and headers.

    The body is sent as it is if it is bytes, piece by piece if it is an iterator of bytes, and as
    JSON otherwise.
    """

    status: int
    body: Any = b""
    headers: Mapping[str, str] = {}


@contextmanager
def receiver(
    answers: Callable[[int], int | str | Answer] = lambda number: 204,
    tls: ssl.SSLContext | None = None,
) -> Iterator[tuple[str, list[Call]]]:
    """Run a server that takes POST requests, and yield its address and its calls so far.

    ``answers`` maps the number of a call to the response: a status, an address to redirect to, or
    an ``Answer``.
    """
    calls: list[Call] = []

    class Handler(Quiet):
        def do_POST(self) -> None:
            length = int(self.headers["content-length"])
            headers = {name.lower(): value for name, value in self.headers.items()}
            calls.append(Call(self.path, headers, self.rfile.read(length)))
            answer = answers(len(calls) - 1)
            if isinstance(answer, str):
                answer = Answer(307, headers={"location": answer})
            elif isinstance(answer, int):
                answer = Answer(answer)
            self._send(*answer)

        def _send(self, status: int, body: Any, headers: Mapping[str, str]) -> None:
            pieces = body
            if not isinstance(body, Iterator):
                whole = body if isinstance(body, bytes) else json.dumps(body).encode()
                headers, pieces = {"content-length": str(len(whole)), **headers}, [whole]
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.end_headers()
            with suppress(OSError):  # the client may have given up
                for piece in pieces:
                    self.wfile.write(piece)
                    self.wfile.flush()

    with loopback(Handler, tls) as address:
        yield address, calls

"""A server on loopback that answers as a test's handler does."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Quiet(BaseHTTPRequestHandler):
    """The handler to build on; it writes no log."""

    def log_message(self, *args: object) -> None:
        """Say nothing."""


@contextmanager
def loopback(handler: type[Quiet]) -> Iterator[str]:
    """Serve on a free port of this machine while the block runs; its address is yielded."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()

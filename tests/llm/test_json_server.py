"""``JsonServer``: a server without an SDK is asked over real HTTP, and each failure has its kind."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from pydantic import SecretStr

from masis.llm.client.schemas import reply_schema
from masis.llm.endpoints import Endpoint
from masis.llm.providers.base import Call, TryFailed
from masis.llm.providers.json_server import JsonServer
from tests.llm.asking import KEY, PROMPT, Judged

Respond = Callable[[BaseHTTPRequestHandler], None]


def reply(status: int, body: bytes, **headers: str) -> Respond:
    """Respond with a status, a body and headers."""

    def respond(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(status)
        for name, value in {"content-length": str(len(body)), **headers}.items():
            handler.send_header(name.replace("_", "-"), value)
        handler.end_headers()
        handler.wfile.write(body)

    return respond


def trickle(handler: BaseHTTPRequestHandler) -> None:
    """Keep the connection open with blanks."""
    handler.send_response(200)
    handler.end_headers()
    for _ in range(100):
        try:
            handler.wfile.write(b" ")
            handler.wfile.flush()
        except OSError:
            return
        time.sleep(0.05)


class Server:
    """A server on loopback that responds as a test says, and keeps the requests."""

    def __init__(self) -> None:
        self.respond: Respond = reply(200, b"{}")
        self.requests: list[tuple[str, dict[str, str], Any]] = []
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["content-length"])))
                outer.requests.append((self.path, dict(self.headers.items()), body))
                outer.respond(self)

            def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 (the base class's)
                """Keep the test's output free of requests."""

        self.http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.address = f"http://127.0.0.1:{self.http.server_address[1]}"
        threading.Thread(target=self.http.serve_forever, daemon=True).start()


@pytest.fixture
def server() -> Iterator[Server]:
    running = Server()
    yield running
    running.http.shutdown()
    running.http.server_close()


def post(address: str, timeout_s: float = 10.0) -> dict[str, Any]:
    endpoint = Endpoint("house", "openai", address, SecretStr(KEY), "HOUSE_KEY")
    call = Call("judge-1", PROMPT, reply_schema(Judged), "prompt", 100, 0.0, timeout_s)
    return JsonServer(endpoint).post("/generate", {"user": "How long?"}, call)


def test_a_body_is_posted_with_the_key_and_the_reply_returned(server: Server) -> None:
    server.respond = reply(200, b'{"text": "Ten metres."}')
    assert post(f"{server.address}/") == {"text": "Ten metres."}
    ((path, headers, body),) = server.requests
    assert (path, body) == ("/generate", {"user": "How long?"})
    assert headers["authorization"] == f"Bearer {KEY}"


@pytest.mark.parametrize(
    ("respond", "kind"),
    [
        (reply(429, b'{"error": "slow down"}', retry_after="7"), "rate"),
        (reply(500, b"<html>"), "server"),
        (reply(401, f'{{"error": "no such key {KEY}"}}'.encode()), "key"),
        (reply(302, b"", location="http://127.0.0.1:9/"), "address"),
        (reply(200, b"not json"), "malformed"),
        (reply(200, b"[1]"), "malformed"),
        (trickle, "timeout"),
    ],
)
def test_each_failure_has_its_kind_and_shows_no_key(
    server: Server, respond: Respond, kind: str
) -> None:
    server.respond = respond
    with pytest.raises(TryFailed) as failed:
        post(server.address, timeout_s=1.0)
    assert failed.value.trouble == kind
    assert KEY not in str(failed.value)
    assert failed.value.__cause__ is None
    assert failed.value.__context__ is None
    assert len(server.requests) == 1
    assert failed.value.retry_after_s == (7.0 if kind == "rate" else None)


def test_a_server_that_isnt_there_is_unreachable(server: Server) -> None:
    server.http.shutdown()
    server.http.server_close()
    with pytest.raises(TryFailed) as failed:
        post(server.address)
    assert failed.value.trouble == "unreachable"

"""Which requests a server answers at all: by their host and origin, before anything of them is read."""

from __future__ import annotations

import asyncio
import json
from collections.abc import MutableMapping
from typing import Any

import pytest

from masis.errors import SettingsError
from masis.settings.hosts import AllowedHosts
from masis.ui.shell.host_guard import HostGuard
from masis.ui.shell.reach import Reach

HERE = AllowedHosts()
WIDER = AllowedHosts(["Audits.Example.org.", "192.0.2.7", "[2001:db8::7]"])


@pytest.mark.parametrize(
    "host", ["127.0.0.1", "127.0.0.1:8501", "localhost:8501", "LocalHost", "localhost.", "[::1]:9"]
)
def test_loopback_names_are_answered(host: str) -> None:
    assert HERE.refusal([host], []) is None


@pytest.mark.parametrize(
    "hosts",
    [
        *(["rebound.example:8501"], ["localhost.rebound.example"], ["127.0.0.1.rebound.example"], ["192.0.2.7"]),
        *([], [""], [":8501"], ["localhost:99999"], ["localhost", "localhost"], ["localhost, rebound.example"]),
        *(["user@localhost"], ["localhost/x"], ["localhost:8501:1"], ["[::1"], ["0.0.0.0:8501"], ["2130706433"]),
    ],
)
def test_any_other_host_is_misdirected(hosts: list[str]) -> None:
    refusal = HERE.refusal(hosts, [])
    assert refusal is not None
    assert refusal.status == 421


def test_allowed_names_are_answered_in_any_spelling() -> None:
    for host in ("audits.example.org", "AUDITS.example.org:443", "192.0.2.7:8501", "[2001:DB8:0::7]:8501", "localhost"):
        assert WIDER.refusal([host], []) is None
    assert WIDER.refusal(["other.example.org"], []) is not None


@pytest.mark.parametrize(
    ("host", "origin"),
    [
        ("localhost:8501", "http://localhost:8501"),
        ("audits.example.org", "https://audits.example.org"),  # behind a proxy that ends TLS
        ("audits.example.org:443", "https://audits.example.org"),
        ("[::1]:8501", "http://[::1]:8501"),
    ],
)
def test_a_page_of_this_server_is_its_own_origin(host: str, origin: str) -> None:
    assert WIDER.refusal([host], [origin]) is None


@pytest.mark.parametrize(
    "origin",
    [
        *("http://rebound.example:8501", "http://localhost:9999", "http://127.0.0.1:8501", "null", "", "file://"),
        *("http://localhost:8501/x", "http://localhost:8501@rebound.example", "http://localhost", "http://[::1"),
        "http://audits.example.org:8501",  # an allowed name, but not the one that the request is addressed to
    ],
)
def test_any_other_origin_is_forbidden(origin: str) -> None:
    refusal = WIDER.refusal(["localhost:8501"], [origin])
    assert refusal is not None
    assert refusal.status == 403
    assert WIDER.refusal(["localhost:8501"], ["http://localhost:8501", "http://localhost:8501"]) is not None


@pytest.mark.parametrize("name", ["", "https://a.example", "a.example:80", "a b", "*", "a.example/x", "::zz"])
def test_a_name_that_is_none_is_refused_at_the_start(name: str) -> None:
    with pytest.raises(SettingsError, match="name or address alone"):
        AllowedHosts([name])


def test_an_address_that_is_listened_on_is_answered_to() -> None:
    assert Reach("192.0.2.7", insecure=True).hosts().refusal(["192.0.2.7:8501"], []) is None
    assert Reach("0.0.0.0", ("a.example",), insecure=True).hosts().refusal(["0.0.0.0:8501"], []) is not None


def called(scope: dict[str, Any]) -> tuple[bool, list[MutableMapping[str, Any]]]:
    """Whether a request went through the guard, and what it was answered; reading of it fails."""
    sent: list[MutableMapping[str, Any]] = []
    through = []

    async def app(scope: Any, receive: Any, send: Any) -> None:
        through.append(scope)

    async def receive() -> MutableMapping[str, Any]:
        raise AssertionError("the request was read")

    async def send(message: MutableMapping[str, Any]) -> None:
        sent.append(message)

    asyncio.run(HostGuard(app, HERE)(scope, receive, send))
    return bool(through), sent


FOREIGN = [(b"host", b"rebound.example:8501"), (b"origin", b"http://rebound.example:8501")]


def test_nothing_of_a_foreign_request_is_read_nor_passed_on() -> None:
    through, sent = called({"type": "http", "method": "PUT", "path": "/_stcore/upload_file/a/b", "headers": FOREIGN})
    assert not through
    assert sent[0]["status"] == 421
    assert json.loads(sent[1]["body"]) == {"error": "This server does not answer to that host name."}


def test_a_foreign_websocket_is_refused_before_it_is_open() -> None:
    scope: dict[str, Any] = {"type": "websocket", "path": "/_stcore/stream", "headers": FOREIGN}
    through, sent = called(scope)
    assert not through
    assert sent == [
        {"type": "websocket.close", "code": 1008, "reason": "This server does not answer to that host name."}
    ]
    _, sent = called({**scope, "extensions": {"websocket.http.response": {}}})
    assert (sent[0]["type"], sent[0]["status"]) == ("websocket.http.response.start", 421)


def test_what_is_addressed_to_this_server_goes_through() -> None:
    through, sent = called({"type": "http", "path": "/", "headers": [(b"host", b"localhost:8501")]})
    assert through
    assert not sent
    assert called({"type": "lifespan"})[0]

"""Which HTTP requests the MCP server accepts: hosts, origins, secrets, sizes and content types."""

from __future__ import annotations

import json
import socket
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx2
import pytest
from click.testing import CliRunner
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from starlette.testclient import TestClient

from masis.cli import main
from masis.errors import SettingsError
from masis.integrations.mcp import transports
from masis.integrations.mcp.server import MasisServer
from masis.integrations.mcp.transports import check_address
from masis.schema import limits
from masis.services import Workbench
from tests.integrations.with_mcp.mcp_server import BRIDGE, McpServer, structured_result

HELLO = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "x", "version": "1"},
    },
}


def status(mcp_server: McpServer, body: bytes = json.dumps(HELLO).encode(), **headers: str) -> int:
    """Return the status of a request with these headers."""
    default_headers = {
        "Content-Type": "application/json",
        "Accept": "application/json, text/event-stream",
    }
    all_headers = default_headers | {
        name.replace("_", "-"): value for name, value in headers.items()
    }
    return httpx2.post(mcp_server.url, content=body, headers=all_headers, timeout=60).status_code


def start_refused(*arguments: str, database: Path) -> str:
    """Return the exit code and message of ``masis mcp`` when it refuses to start."""
    refusal = CliRunner().invoke(
        main, ["mcp", "--transport", "http", "--db", str(database), *arguments]
    )
    assert refusal.stdout == ""
    return f"{refusal.exit_code}: {refusal.stderr}"


def test_dns_rebinding_and_other_origins_are_rejected(mcp_server: McpServer) -> None:
    port = urlsplit(mcp_server.url).port
    assert status(mcp_server) == 200
    assert status(mcp_server, Host=f"localhost:{port}") == 200
    assert status(mcp_server, Origin=f"http://127.0.0.1:{port}") == 200
    assert status(mcp_server, Host="evil.example.org") == 421
    assert status(mcp_server, Host=f"127.0.0.1.evil.example.org:{port}") == 421
    assert status(mcp_server, Origin="http://evil.example.org") == 403
    assert status(mcp_server, Origin=f"http://localhost:{(port or 0) + 1}") == 403, (
        "a page of another server here"
    )
    assert status(mcp_server, Origin="null") == 403
    assert status(mcp_server, b" " * (limits.BODY + 1)) == 413


def test_remote_clients_need_an_allowed_host_and_the_secret(database: Path) -> None:
    with McpServer(
        "http",
        database,
        "--allow-host",
        "audits.example.org",
        MASIS_MCP_TOKEN="open sesame, please",
    ) as mcp_server:
        assert status(mcp_server) == 401
        assert status(mcp_server, Authorization="Bearer open sesame") == 401
        assert status(mcp_server, Authorization="Basic open sesame, please") == 401
        credentials = {"Authorization": "Bearer open sesame, please"}
        assert status(mcp_server, **credentials) == 200
        assert status(mcp_server, Authorization="bearer open sesame, please") == 200, (
            "the scheme's case doesn't matter"
        )
        assert status(mcp_server, **credentials, Host="audits.example.org") == 200
        assert status(mcp_server, **credentials, Host="evil.example.org") == 421

        async def with_secret() -> dict[str, Any]:
            async with (
                httpx2.AsyncClient(headers=credentials) as http_client,
                Client(streamable_http_client(mcp_server.url, http_client=http_client)) as client,
            ):
                return structured_result(await client.call_tool("get_case", {"caseId": "bridge"}))

        assert mcp_server.run(with_secret())["case"] == BRIDGE
        assert "open sesame, please" not in mcp_server.log.read_text()


def test_requests_and_wrong_secrets_are_rate_limited(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(transports, "GUESSES", (0.001, 3))
    monkeypatch.setattr(limits, "BURST", 2)
    monkeypatch.setattr(limits, "REQUESTS_A_MINUTE", 0.06)
    workbench = Workbench.open(tmp_path / "m.db")
    server = MasisServer(workbench, 1)
    token = "open sesame, please"
    with TestClient(transports.app(server, (), token), base_url="http://127.0.0.1:8765") as client:
        guesses = [client.post("/mcp", headers={"authorization": f"Bearer {n}"}) for n in range(5)]
        assert [guess.status_code for guess in guesses] == [401, 401, 401, 429, 429]
        requests = [
            client.post("/mcp", headers={"authorization": f"Bearer {token}"}) for _ in range(3)
        ]
        assert [response.status_code for response in requests] == [
            415,
            415,
            429,
        ], "wrong guesses don't block clients with the secret"
        assert int(requests[2].headers["retry-after"]) > 1
    server.close()
    workbench.close()


def test_a_public_address_needs_a_flag_and_a_secret(tmp_path: Path) -> None:
    database = tmp_path / "never.db"
    without_flag = start_refused("--host", "0.0.0.0", database=database)
    assert without_flag.startswith("2: ")
    assert "--allow-host" in without_flag
    without_secret = start_refused(
        "--host", "0.0.0.0", "--allow-host", "audits.example.org", database=database
    )
    assert without_secret.startswith("2: ")
    assert "MASIS_MCP_TOKEN" in without_secret
    assert not database.exists(), "nothing was created"


@pytest.mark.parametrize(
    ("host", "allowed", "token", "served"),
    [
        ("127.0.0.1", (), None, True),
        ("127.8.9.1", (), None, True),
        ("localhost", (), None, True),
        ("::1", (), None, True),
        (
            "127.0.0.1",
            ("audits.example.org",),
            None,
            False,
        ),  # a proxy makes it reachable for others
        ("127.0.0.1", ("audits.example.org",), "s" * 16, True),
        ("0.0.0.0", (), "s" * 16, False),
        ("::", (), "s" * 16, False),
        ("", (), "s" * 16, False),
        ("192.0.2.1", (), "s" * 16, False),
        ("audits.example.org", (), "s" * 16, False),
        ("0.0.0.0", ("audits.example.org",), "s" * 16, True),
        ("0.0.0.0", ("audits.example.org",), "s" * 15, False),  # the secret is too short
    ],
)
def test_reachable_addresses_are_recognized(
    host: str, allowed: tuple[str, ...], token: str | None, served: bool
) -> None:
    if served:
        check_address(host, allowed, token)
    else:
        with pytest.raises(SettingsError):
            check_address(host, allowed, token)


def test_a_port_in_use_is_named(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        message = start_refused("--port", str(port), database=tmp_path / "m.db")
    assert message.startswith("1: ")
    assert f"127.0.0.1:{port}: can't listen on this address" in message


def test_simple_request_content_types_are_rejected(mcp_server: McpServer) -> None:
    for kind in ("text/plain", "text/plain;charset=UTF-8", "application/x-www-form-urlencoded", ""):
        assert status(mcp_server, Content_Type=kind) == 415
    assert status(mcp_server) == 200
    assert status(mcp_server, Content_Type="application/json; charset=utf-8") == 200

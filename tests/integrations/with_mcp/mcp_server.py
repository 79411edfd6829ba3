"""An MCP server with clients of the SDK.

The server is ``masis mcp`` in a separate process, over stdio or HTTP, or the same server in this
process if the transport doesn't matter.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Coroutine
from pathlib import Path
from typing import Any, TypeVar

from anyio.from_thread import start_blocking_portal
from mcp import Client, StdioServerParameters, stdio_client
from mcp.types import CallToolResult

from masis.integrations.mcp.server import MasisServer, audits_at_once
from masis.services import Workbench
from masis.settings import Settings
from tests.cli.running import case
from tests.llm.asking import KEY
from tests.serving_models import ModelServer
from tests.waiting import until

T = TypeVar("T")
ROOT = Path(__file__).resolve().parents[3]
PATIENCE_S = 100.0

BRIDGE = case(
    "bridge",
    evidence=[
        {"id": "1", "text": "The bridge is 120 metres long."},
        {"id": "2", "text": "It was opened in 1931."},
    ],
)


class McpServer:
    """A database that is served over one transport, and clients on a separate event loop."""

    def __init__(self, transport: str, database: Path, *arguments: str, **environment: str) -> None:
        self.transport, self.database, self.arguments = transport, database, arguments
        self.environment = {
            "PYTHONPATH": str(ROOT),
            "XDG_CONFIG_HOME": str(database.parent),
            **environment,
        }
        self.log = database.with_name(f"{database.stem}-{transport}.log")
        self.process: subprocess.Popen[str] | None = None
        self.url = ""
        self.inside: Any = None
        self.closing = contextlib.ExitStack()
        self._client: Client | None = None

    @property
    def command(self) -> list[str]:
        """Return the command that starts the server."""
        return ["-m", "masis.cli", "mcp", "--db", str(self.database), *self.arguments]

    def __enter__(self) -> McpServer:
        if self.transport == "http":
            self.process, self.url = started_http(self.command, self.environment, self.log)
            self.closing.callback(end_process, self.process)
        self._portal = self.closing.enter_context(start_blocking_portal())
        return self

    def __exit__(self, *_: object) -> None:
        self.closing.close()

    @contextlib.asynccontextmanager
    async def client(self, **options: Any) -> AsyncIterator[Client]:
        """Open a new client; over stdio, each one starts its own server."""
        server: Any = self.url or self.inside
        if self.transport == "stdio":
            server = StdioServerParameters(
                command=sys.executable, args=self.command, env=self.environment, cwd=ROOT
            )
            with self.log.open("a") as log:
                async with Client(stdio_client(server, errlog=log), **options) as client:
                    yield client
            return
        async with Client(server, **options) as client:
            yield client

    def run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine on the clients' event loop with a time limit and return its result."""
        return self._portal.call(asyncio.wait_for, coroutine, PATIENCE_S)

    def use(self, work: Callable[[Client], Coroutine[Any, Any, T]]) -> T:
        """Run ``work`` with the client that stays open and return its result."""
        if self._client is None:
            self._client = self.closing.enter_context(
                self._portal.wrap_async_context_manager(self.client())
            )
        return self.run(work(self._client))

    def call(self, tool: str, arguments: dict[str, Any], **options: Any) -> CallToolResult:
        """Call a tool and return the result, which may be an error."""
        return self.use(lambda client: client.call_tool(tool, arguments, **options))

    def result(self, tool: str, **arguments: Any) -> dict[str, Any]:
        """Call a tool and return its structured result; an error fails the test."""
        return structured_result(self.call(tool, arguments))

    def workbench(self) -> Workbench:
        """Open the database in this process."""
        return Workbench.open(self.database)


def inside(
    database: Path,
    settings: Settings | None = None,
    *,
    concurrency: int | None = None,
    max_cost: float | None = None,
) -> McpServer:
    """Return a server on a database in this process."""
    mcp_server, workbench = McpServer("memory", database), Workbench.open(database, settings)
    server = MasisServer(workbench, concurrency or audits_at_once(workbench), max_cost)
    mcp_server.inside = server.server
    mcp_server.closing.callback(workbench.store.close)
    mcp_server.closing.callback(server.close)
    return mcp_server


def asking(server: ModelServer, transport: str, database: Path, *arguments: str) -> McpServer:
    """Return a server in which the given model fills all roles."""
    config = database.with_name("masis.toml")
    provider = (
        f'[providers.here]\nkind = "openai"\naddress = "{server.address}"\nkey_env ='
        ' "SCRIPTED_KEY"\n'
    )
    config.write_text(f"retry_base_s = 0.01\nmax_retries = 0\ncall_deadline_s = 60\n{provider}")
    return McpServer(
        transport,
        database,
        "--model",
        "here:m",
        *arguments,
        MASIS_CONFIG=str(config),
        SCRIPTED_KEY=KEY,
    )


def developers() -> dict[str, str]:
    """Return the environment without the variables of a developer's keys and settings."""
    return {
        name: value
        for name, value in os.environ.items()
        if not (name.startswith("MASIS_") or name.endswith("_API_KEY") or name == "XDG_CONFIG_HOME")
    }


def start_server(
    arguments: list[str], environment: dict[str, str], **streams: Any
) -> subprocess.Popen[str]:
    """Start the server in a separate process."""
    command, env = [sys.executable, *arguments], {**developers(), **environment}
    return subprocess.Popen(
        command, cwd=ROOT, env=env, stdout=subprocess.PIPE, text=True, **streams
    )


def started_http(
    command: list[str], environment: dict[str, str], log: Path
) -> tuple[subprocess.Popen[str], str]:
    """Start a server on a free port and return it with its address, read from stderr."""
    with log.open("w") as stderr:
        process = start_server(
            [*command, "--transport", "http", "--port", "0"],
            environment,
            stdin=subprocess.DEVNULL,
            stderr=stderr,
        )
    address: re.Match[str] | None = None
    try:
        until(
            lambda: "Serving at" in log.read_text() or process.poll() is not None,
            "it serves",
            PATIENCE_S,
        )
        address = re.search(r"Serving at (\S+)", log.read_text())
        assert address, f"the server did not start: {log.read_text()}"
    finally:
        if address is None:
            end_process(process, signal.SIGKILL)
    return process, address.group(1)


def end_process(process: subprocess.Popen[str], with_signal: int = signal.SIGTERM) -> int:
    """Send a signal to a process and return its exit code."""
    if process.poll() is None:
        process.send_signal(with_signal)
    try:
        code = process.wait(PATIENCE_S)
    finally:
        process.kill()
        for stream in (process.stdin, process.stdout):
            if stream is not None:
                stream.close()
    return code


def structured_result(result: CallToolResult) -> dict[str, Any]:
    """Return the structured result of a call; an error fails the test."""
    assert not result.is_error, result.content
    assert result.structured_content is not None
    return dict(result.structured_content)


def error_text(result: CallToolResult) -> str:
    """Return the message of a call that failed; a success fails the test."""
    assert result.is_error, result.structured_content
    (content,) = result.content
    return str(content.text)

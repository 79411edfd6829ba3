"""The SDK's client, and the server it talks to: ``masis mcp`` as a process of its own, over stdio or over HTTP, or the
same server in this process, where how it is reached makes no difference.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Callable, Coroutine
from concurrent.futures import Future
from pathlib import Path
from typing import Any, TypeVar

from mcp import Client, StdioServerParameters, stdio_client
from mcp.types import CallToolResult

from masis.integrations.mcp.server import MasisServer, audits_at_once
from masis.services import Workbench
from masis.settings import Settings

T = TypeVar("T")
ROOT = Path(__file__).resolve().parents[3]
PATIENCE_S = 100.0

BRIDGE: dict[str, Any] = {
    "id": "bridge",
    "query": "How long is the bridge?",
    "answer": "The bridge is 120 metres long [1]. It was opened in 1931 [9].",
    "evidence": [
        {"id": "1", "text": "The bridge is 120 metres long.", "source": "survey.pdf"},
        {"id": "2", "text": "It was opened in 1931."},
    ],
}
"""A case with one fabricated reference."""


class Door:
    """One database, served over one transport; clients live on an event loop of the door's own."""

    def __init__(self, transport: str, database: Path, *arguments: str, **environment: str) -> None:
        self.transport, self.database, self.arguments = transport, database, arguments
        self.environment = {"PYTHONPATH": str(ROOT), "XDG_CONFIG_HOME": str(database.parent), **environment}
        self.log = database.with_name(f"{database.stem}-{transport}.log")
        self.process: subprocess.Popen[str] | None = None
        self.url = ""
        self.inside: Any = None
        self.closing = contextlib.ExitStack()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._kept: tuple[Client, asyncio.Event, Future[None]] | None = None

    @property
    def command(self) -> list[str]:
        """What is started."""
        return ["-m", "masis.cli", "mcp", "--db", str(self.database), *self.arguments]

    def __enter__(self) -> Door:
        if self.transport == "http":
            self.process, self.url = started_http(self.command, self.environment, self.log)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._kept is not None:
            _, done, ended_with = self._kept
            self._loop.call_soon_threadsafe(done.set)
            ended_with.result(PATIENCE_S)
        if self.process is not None:
            ended(self.process)
        self.closing.close()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(PATIENCE_S)
        self._loop.close()

    @contextlib.asynccontextmanager
    async def client(self, **options: Any) -> AsyncIterator[Client]:
        """A new client; over stdio each starts a server of its own."""
        server: Any = self.url or self.inside
        if self.transport == "stdio":
            server = StdioServerParameters(command=sys.executable, args=self.command, env=self.environment, cwd=ROOT)
            with self.log.open("a") as log:
                async with Client(stdio_client(server, errlog=log), **options) as client:
                    yield client
            return
        async with Client(server, **options) as client:
            yield client

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """What a coroutine comes to on the door's loop, but not for ever."""
        return asyncio.run_coroutine_threadsafe(asyncio.wait_for(work, PATIENCE_S), self._loop).result()

    def use(self, work: Callable[[Client], Coroutine[Any, Any, T]]) -> T:
        """What the work comes to with the client that is kept open."""
        if self._kept is None:
            self._kept = self._opened()
        return self.run(work(self._kept[0]))

    def call(self, tool: str, arguments: dict[str, Any]) -> CallToolResult:
        """The result of one call."""
        return self.use(lambda client: client.call_tool(tool, arguments))

    def workbench(self) -> Workbench:
        """The database, opened here."""
        return Workbench.open(self.database)

    def _opened(self) -> tuple[Client, asyncio.Event, Future[None]]:
        """A client that one task opens and closes, as anyio wants it, and what tells that task to close it."""
        ready: Future[tuple[Client, asyncio.Event]] = Future()

        async def keep() -> None:
            done = asyncio.Event()
            try:
                async with self.client() as client:
                    ready.set_result((client, done))
                    await done.wait()
            except BaseException as error:
                if not ready.done():
                    ready.set_exception(error)
                raise

        ended_with = asyncio.run_coroutine_threadsafe(keep(), self._loop)
        return (*ready.result(PATIENCE_S), ended_with)


def inside(
    database: Path, settings: Settings | None = None, *, concurrency: int | None = None, max_cost: float | None = None
) -> Door:
    """The server on a database, in this process."""
    door, workbench = Door("memory", database), Workbench.open(database, settings)
    server = MasisServer(workbench, concurrency or audits_at_once(workbench), max_cost)
    door.inside = server.server
    door.closing.callback(workbench.store.close)
    door.closing.callback(server.close)
    return door


def developers() -> dict[str, str]:
    """The environment without what would have a server find a developer's keys and settings."""
    return {
        name: value
        for name, value in os.environ.items()
        if not (name.startswith("MASIS_") or name.endswith("_API_KEY") or name == "XDG_CONFIG_HOME")
    }


def started_http(command: list[str], environment: dict[str, str], log: Path) -> tuple[subprocess.Popen[str], str]:
    """A server on a free port, and its address, which it says on stderr."""
    with log.open("w") as stderr:
        process = subprocess.Popen(
            [sys.executable, *command, "--transport", "http", "--port", "0"],
            cwd=ROOT,
            env={**developers(), **environment},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=stderr,
            text=True,
        )
    address: re.Match[str] | None = None
    try:
        eventually(lambda: "Serving at" in log.read_text() or process.poll() is not None)
        address = re.search(r"Serving at (\S+)", log.read_text())
        assert address, f"the server did not start: {log.read_text()}"
    finally:
        if address is None:
            ended(process, signal.SIGKILL)
    return process, address.group(1)


def ended(process: subprocess.Popen[str], with_signal: int = signal.SIGTERM) -> int:
    """The exit code after a signal."""
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


def found(result: CallToolResult) -> dict[str, Any]:
    """The structured result of a call that went well."""
    assert not result.is_error, result.content
    assert result.structured_content is not None
    return dict(result.structured_content)


def said(result: CallToolResult) -> str:
    """The message of a call that failed."""
    assert result.is_error, result.structured_content
    (content,) = result.content
    return str(content.text)


def eventually(true: Callable[[], bool], seconds: float = PATIENCE_S) -> bool:
    """Whether it becomes true in time."""
    waited = threading.Event()
    for _ in range(int(seconds / 0.05)):
        if true():
            return True
        waited.wait(0.05)
    return False

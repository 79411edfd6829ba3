"""How an MCP server starts, cancels calls and stops, and what it writes to stdout."""

from __future__ import annotations

import asyncio
import contextlib
import json
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from mcp import Client

from masis.schema import limits
from masis.services import Workbench
from tests.integrations.with_mcp.mcp_server import (
    BRIDGE,
    McpServer,
    asking,
    end_process,
    start_server,
    structured_result,
)
from tests.llm.asking import KEY
from tests.served_replies import Behaviour, Request
from tests.serving_models import ModelServer
from tests.waiting import until, until_async

SLOW = "evaluation_reply"
"""The step at which the scripted model keeps audits waiting."""


class Models:
    """A scripted provider whose evaluator hangs while ``waits`` is true."""

    def __init__(self) -> None:
        self.waits = True
        self.server = ModelServer(self._script, issues="none", keys=[KEY])

    def _script(self, request: Request) -> Behaviour | None:
        return Behaviour(hang_s=4.0) if self.waits and request.schema_name == SLOW else None

    def request_count(self, name: str) -> int:
        """Return the number of requests for this schema."""
        return sum(request.schema_name == name for request in self.server.requests)


@pytest.fixture
def models() -> Iterator[Models]:
    scripted = Models()
    with scripted.server:
        yield scripted


def state(database: Path) -> list[str]:
    return [run.state for run in Workbench.open(database).store.runs.for_case("bridge")]


async def audit_waiting_for_judge(client: Client, models: Models) -> asyncio.Future[Any]:
    """Start the audit of the bridge, and return it when it waits for the evaluator."""
    call = asyncio.ensure_future(client.call_tool("run_audit", {"caseId": "bridge"}))
    await until_async(lambda: models.request_count(SLOW), "the evaluator is called")
    return call


@pytest.mark.parametrize("transport", ["stdio", "http"])
def test_a_cancelled_audit_stops_and_can_be_resumed(
    transport: str, database: Path, models: Models
) -> None:
    with asking(models.server, transport, database) as mcp_server:

        async def call_and_cancel(client: Client) -> None:
            call = await audit_waiting_for_judge(client, models)
            call.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await call

        mcp_server.use(call_and_cancel)
        until(lambda: state(database) == ["interrupted"], "the run is interrupted")
        first_calls = {
            name: models.request_count(name)
            for name in ("claims_reply", "verdicts_reply", "critique_reply")
        }
        assert first_calls["critique_reply"] == 1
        models.waits = False
        run = structured_result(mcp_server.call("run_audit", {"caseId": "bridge"}))
    assert run["state"] == "finished"
    assert run["reused"] is False
    assert state(database) == ["finished"], "the same run was resumed"
    all_calls = {name: models.request_count(name) for name in first_calls}
    assert run["iterations"][0]["scores"]["overall_score"] is not None
    assert (
        all_calls["claims_reply"]
        == first_calls["claims_reply"] * run["iterations"][-1]["iteration_number"]
    )


def test_a_long_audit_doesnt_block_other_calls(database: Path, models: Models) -> None:
    with asking(models.server, "http", database, "--concurrency", "1") as mcp_server:

        async def call_other_tools(client: Client) -> None:
            second = {"case": {**BRIDGE, "id": "second", "query": "How long?"}}
            calls = [
                asyncio.ensure_future(client.call_tool("run_audit", second)),
                await audit_waiting_for_judge(client, models),
            ]
            for tool, arguments in (
                ("list_queue", {}),
                ("get_case", {"caseId": "bridge"}),
                ("audit_citations", {"answer": BRIDGE["answer"], "sourceIds": ["bridge/1"]}),
            ):
                structured_result(await client.call_tool(tool, arguments))
            assert not any(call.done() for call in calls)
            assert models.request_count(SLOW) == 1, (
                "one audit at a time, as --concurrency says; the other waits"
            )
            for call in calls:
                call.cancel()

        mcp_server.use(call_other_tools)


def test_concurrent_audits_of_one_case_are_merged(database: Path, models: Models) -> None:
    models.waits = False
    with asking(models.server, "stdio", database) as mcp_server:

        async def both(client: Client) -> list[Any]:
            return await asyncio.gather(
                *(client.call_tool("run_audit", {"caseId": "bridge"}) for _ in range(3))
            )

        runs = list(map(structured_result, mcp_server.use(both)))
    assert len({run["run_id"] for run in runs}) == 1
    assert sorted(run["reused"] for run in runs) == [False, True, True]


def piped_server(mcp_server: McpServer) -> subprocess.Popen[str]:
    """Start a server on pipes, for messages written by hand."""
    return start_server(
        mcp_server.command, mcp_server.environment, stdin=subprocess.PIPE, stderr=subprocess.PIPE
    )


def send(process: subprocess.Popen[str], message: str) -> None:
    process.stdin.write(message)
    process.stdin.flush()


def read_answers(process: subprocess.Popen[str], number: int) -> dict[int, dict[str, Any]]:
    """Read this many answers, and return them by request id."""
    answers = [json.loads(process.stdout.readline()) for _ in range(number)]
    return {answer["id"]: answer for answer in answers}


def line(method: str, number: int | None = None, **params: Any) -> str:
    message: dict[str, Any] = {"jsonrpc": "2.0", "method": method, "params": params}
    return json.dumps(message | ({"id": number} if number else {})) + "\n"


HELLO = line(
    "initialize",
    1,
    protocolVersion="2025-06-18",
    capabilities={},
    clientInfo={"name": "by hand", "version": "1"},
) + line("notifications/initialized")
AUDIT = line("tools/call", 2, name="run_audit", arguments={"caseId": "bridge"})


def test_stdout_carries_only_the_protocol_and_eof_ends_the_server(
    database: Path,
) -> None:
    process = piped_server(McpServer("stdio", database, "--log", "debug"))
    wrong = line("tools/call", 3, name="get_run", arguments={"runId": "x"}) + line("no/such", 4)
    send(process, f"{HELLO}this is no JSON\n\n{AUDIT}{wrong}")
    answers = read_answers(process, 4)
    assert {answer["jsonrpc"] for answer in answers.values()} == {"2.0"}
    rest, log = process.communicate(timeout=100)
    assert rest == ""
    assert process.returncode == 0
    assert answers[1]["result"]["serverInfo"]["name"] == "masis-workbench"
    assert answers[2]["result"]["structuredContent"]["state"] == "finished"
    assert answers[3]["result"]["isError"] is True
    assert answers[4]["error"]["code"] == -32601
    assert "INFO run" in log
    assert BRIDGE["answer"] not in log, "no text in the log unless log_texts says so"


def test_a_too_long_message_is_rejected_and_the_next_is_served(
    database: Path,
) -> None:
    process = piped_server(McpServer("stdio", database))
    call = {
        "name": "audit_citations",
        "arguments": {"answer": "x" * (limits.BODY + 200_000), "evidence": [{"id": "1"}]},
    }
    message = {"method": "tools/call", "params": call}
    head, end = {"jsonrpc": "2.0", "id": 2} | message, message | {"jsonrpc": "2.0", "id": 3}
    send(process, f"{HELLO}{json.dumps(head)}\n{json.dumps(end)}\n{line('ping', 4)}")
    answers = read_answers(process, 4)
    process.communicate(timeout=100)
    assert [answers[request_id]["error"]["data"] for request_id in (2, 3)] == [
        f"message longer than {limits.BODY} bytes"
    ] * 2
    assert answers[4]["result"] == {}


@pytest.mark.parametrize("how", ["the end of input", "SIGTERM"])  # SIGINT: over HTTP
def test_an_audit_interrupted_by_shutdown_can_be_resumed(
    how: str, database: Path, models: Models
) -> None:
    process = piped_server(asking(models.server, "stdio", database))
    send(process, HELLO + AUDIT)
    until(lambda: models.request_count(SLOW), "the evaluator is called")
    if process.stdin and how == "the end of input":
        process.stdin.close()
        process.stdin = None
    else:
        process.send_signal(getattr(signal, how))
    _, log = process.communicate(timeout=100)
    assert process.returncode == (0 if how == "the end of input" else 130), log
    assert "Traceback" not in log
    (run,) = Workbench.open(database).store.runs.for_case("bridge")
    assert run.state == "interrupted"
    assert run.why == "CallerGone in the middle of the audit", "the server shut down cleanly"


def test_a_signal_shuts_the_http_server_down_cleanly(database: Path, models: Models) -> None:
    with asking(models.server, "http", database) as mcp_server:

        async def leave_one_waiting(client: Client) -> None:
            call = await audit_waiting_for_judge(client, models)
            assert mcp_server.process is not None
            code = await asyncio.to_thread(end_process, mcp_server.process, signal.SIGINT)
            assert code == 130
            with contextlib.suppress(Exception):
                await call

        mcp_server.use(leave_one_waiting)
        assert "Traceback" not in mcp_server.log.read_text()
    assert state(database) == ["interrupted"]

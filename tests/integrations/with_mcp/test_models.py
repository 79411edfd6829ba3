"""The tools with language models from a scripted provider on loopback."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from mcp import Client

from tests.integrations.with_mcp.mcp_server import (
    BRIDGE,
    McpServer,
    asking,
    inside,
    structured_result,
)
from tests.llm.asking import KEY, settings_here
from tests.served_replies import Behaviour, Request
from tests.serving_models import ModelServer

DRAFT = (
    "The bridge is 120 metres long. It was opened in 1931, and it is painted in a fine shade of"
    " green."
)

CRITIQUED = {"query": BRIDGE["query"], "draft": DRAFT, "sourceIds": ["bridge/1"]}
CLAIMS = {"claims": ["The bridge is 120 metres long."], "sourceIds": ["bridge/1"]}


@pytest.fixture
def served() -> Iterator[ModelServer]:
    with ModelServer(issues="some", keys=[KEY]) as server:
        yield server


def open_server(
    database: Path, server: ModelServer, *, price: bool = False, max_cost: float | None = None
) -> McpServer:
    prices = {"here:m": {"input": 100.0, "output": 1000.0}} if price else {}
    settings = settings_here(server, prices=prices, max_retries=0)
    return inside(database, settings, max_cost=max_cost)


def test_the_operator_chooses_models_and_clients_see_the_data_flow(
    database: Path, served: ModelServer
) -> None:
    with asking(served, "stdio", database) as mcp_server:
        tools = mcp_server.use(Client.list_tools)
        critique = mcp_server.result("critique_answer", **CRITIQUED, autoRevise=True)
        claims = mcp_server.result("verify_claims", **CLAIMS)
        run = mcp_server.result("run_audit", caseId="bridge")
    leaving = {
        tool.name for tool in tools.tools if tool.annotations and tool.annotations.open_world_hint
    }
    assert leaving == {"critique_answer", "verify_claims", "run_audit"}
    assert critique["metadata"]["factsChecked"] >= 1
    assert claims["checks"][0]["judged_by"] == "here:m"
    assert set(run["models"].values()) == {"here:m"}
    assert run["usage"]["calls"] > 0
    assert {"claims_reply", "critique_reply", "evaluation_reply"} <= {
        request.schema_name for request in served.requests
    }


def test_a_failing_model_is_unscored_and_the_audit_can_be_repeated(
    database: Path,
) -> None:
    broken = [True]

    def script(request: Request) -> Behaviour | None:
        return Behaviour(status=500, error={"message": "out of order"}) if broken[0] else None

    with (
        ModelServer(script, issues="none", keys=[KEY]) as server,
        open_server(database, server) as mcp_server,
    ):
        critique = mcp_server.result("critique_answer", **CRITIQUED)
        first = mcp_server.result("run_audit", caseId="bridge")
        broken[0] = False
        second = mcp_server.result("run_audit", caseId="bridge")
    assert critique["isValid"] is False
    assert critique["confidence"] is None
    assert critique["unscored"]
    assert first["warnings"]
    assert first["final_quality_score"] is None
    assert second["reused"] is False, "a failed run isn't reused"
    assert second["final_quality_score"] is not None


def test_long_checks_send_progress(database: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("masis.integrations.mcp.server.ALIVE_S", 0.25)
    updates: list[tuple[float, float | None, str | None]] = []

    async def progress(done: float, total: float | None, message: str | None) -> None:
        updates.append((done, total, message))

    with (
        ModelServer(latency_ms=1000, keys=[KEY]) as server,
        open_server(database, server) as mcp_server,
    ):
        assert structured_result(
            mcp_server.call("verify_claims", CLAIMS, progress_callback=progress)
        )["checks"]
    assert updates[0][1:] == (None, "seconds, still at work")


def test_a_result_lists_models_and_cost(database: Path, served: ModelServer) -> None:
    with open_server(database, served, price=True) as mcp_server:
        checked = mcp_server.call("verify_claims", CLAIMS)
        audited = mcp_server.call("run_audit", {"caseId": "bridge"})
        reused = mcp_server.call("run_audit", {"caseId": "bridge"})
        case_result = mcp_server.call("get_case", {"caseId": "bridge"})
    costs = [result.meta["masis/cost"] for result in (checked, audited, reused) if result.meta]
    assert costs[0]["models"] == {"here:m": 1}
    assert costs[0]["cost_usd"] > 0
    assert costs[1]["calls"] == structured_result(audited)["usage"]["calls"]
    assert costs[1]["cost_usd"] == pytest.approx(structured_result(audited)["usage"]["cost_usd"])
    assert costs[2]["calls"] == 0
    assert "Models asked: here:m (1). Cost: " in checked.content[-1].text
    assert "this cost nothing" in reused.content[-1].text
    assert not case_result.meta or "masis/cost" not in case_result.meta


def test_the_cost_limit_stops_only_model_calls(database: Path, served: ModelServer) -> None:
    with open_server(database, served, price=True, max_cost=0.0001) as mcp_server:
        cancelled = mcp_server.call("run_audit", {"caseId": "bridge"})
        request_count = len(served.requests)
        refused = [
            mcp_server.call("verify_claims", CLAIMS),
            mcp_server.call("run_audit", {"caseId": "bridge"}),
            mcp_server.call("critique_answer", CRITIQUED),
        ]
        unaffected = mcp_server.call("get_case", {"caseId": "bridge"})
    assert structured_result(cancelled)["termination_reason"] == "cancelled"
    assert len(served.requests) == request_count, "no model is called after the limit is reached"
    for result in refused:
        assert result.is_error
        assert "the limit of this server is reached" in result.content[0].text
    assert not unaffected.is_error


def test_with_a_cost_limit_an_unpriced_model_is_called_once(
    database: Path, served: ModelServer
) -> None:
    with open_server(database, served, max_cost=5.0) as mcp_server:
        assert not mcp_server.call("verify_claims", CLAIMS).is_error
        refused = mcp_server.call("verify_claims", CLAIMS)
    assert refused.is_error
    assert "price is not known" in refused.content[0].text

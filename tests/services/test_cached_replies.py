"""The cache of models' replies: no call for a case is paid twice, and the replies go when the
case's texts go.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from masis.llm.recordings import RecordedReply
from masis.schema.run import Run
from masis.services import Workbench
from masis.services.maintenance.retention import rule_of
from masis.settings import Settings
from tests.llm.asking import CASE, KEY, settings_for
from tests.reviewing import ADA
from tests.serving_models import ModelServer

pytestmark = pytest.mark.slow


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModelServer]:
    monkeypatch.setenv("SCRIPTED_KEY", KEY)
    with ModelServer(issues="always") as serving:
        yield serving


@pytest.fixture
def bench(tmp_path: Path, server: ModelServer) -> Iterator[Workbench]:
    settings = settings_for(server, "openai").with_values({"cache": True, "spot_check_share": 0})
    opened = Workbench.open(tmp_path / "masis.db", settings)
    opened.cases.add(ADA, [CASE, CASE.model_copy(update={"id": "another"})])
    yield opened
    opened.store.close()


def count_replies(bench: Workbench) -> int:
    return int(bench.store.database.execute("SELECT count(*) FROM replies")[0][0])


def audited(bench: Workbench, settings: Settings | None = None) -> Run:
    return bench.audits.audit(ADA, CASE, settings=settings)


def test_a_repeated_audit_uses_cached_replies_and_counts_savings(
    bench: Workbench, server: ModelServer
) -> None:
    first = audited(bench)
    asked = len(server.requests)
    assert asked == first.usage.calls == count_replies(bench)
    assert first.usage.cached_calls == 0
    again = audited(bench)
    assert len(server.requests) == asked
    assert again.usage.cached_calls == asked
    assert again.usage.calls == again.usage.prompt_tokens == again.usage.tries == 0
    assert again.usage.cost_usd == 0
    assert again.models == first.models
    assert {call.source for call in again.calls} == {"cache"}
    assert again.final_quality_score == first.final_quality_score
    audited(bench, bench.settings.with_values({"cache": False}))
    assert len(server.requests) > asked


def test_cached_replies_are_per_case_and_can_be_bypassed(
    bench: Workbench, server: ModelServer
) -> None:
    audited(bench)
    asked, kept = len(server.requests), count_replies(bench)
    bench.audits.audit(ADA, bench.store.cases.get("another"))
    assert len(server.requests) == 2 * asked
    assert bench.audits.forget_replies(ADA, CASE.id) == kept
    assert count_replies(bench) == kept
    audited(bench)
    assert len(server.requests) == 3 * asked


def test_redaction_removes_only_the_cases_cached_replies(bench: Workbench) -> None:
    audited(bench)
    kept = count_replies(bench)
    bench.audits.audit(ADA, bench.store.cases.get("another"))
    reply = RecordedReply(
        role="critic",
        prompt="critic/1",
        model="m",
        asked="0" * 64,
        date="2026-11-24T10:00:00Z",
        reply="late",
    )
    bench.store.redactions.redact_case(CASE.id, by="Ada", reason="asked for")
    assert count_replies(bench) == kept
    bench.store.replies_of(CASE.id).keep([reply])
    assert count_replies(bench) == kept, "a call that was in progress brings nothing back"


def test_retention_removes_a_cases_cached_replies(bench: Workbench) -> None:
    audited(bench)
    bench.audits.audit(ADA, bench.store.cases.get("another"))
    kept = count_replies(bench)
    bench.store.database.execute(
        "UPDATE jobs SET ended_at = '2020-01-01T00:00:00.000Z' WHERE case_seq = (SELECT seq FROM"
        " cases WHERE id = ?)",
        [CASE.id],
    )
    assert bench.store.retention.remove(rule_of(30), by="Ada", how="command") is not None
    assert count_replies(bench) == kept // 2


def test_verifying_without_passages_asks_the_audits_model_and_its_replies_are_cached(
    bench: Workbench, server: ModelServer
) -> None:
    run = audited(bench)
    asked = len(server.requests)
    results = bench.minimal_evidence.verify(ADA, CASE.id)
    assert {result.judged_by for result in results} == {run.models["verifier"]}
    assert len(server.requests) - asked == sum(result.usage.calls for result in results) > 0
    (result, *_) = results
    assert result.usage.prompt_tokens > 0
    assert (result.before, result.decisive) == ("supported", True)
    again = bench.minimal_evidence.verify(ADA, CASE.id)
    assert [result.usage.calls for result in again] == [0] * len(results)
    assert [result.after for result in again] == [result.after for result in results]

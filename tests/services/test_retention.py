"""Retention as a use case: the rule, what goes by itself, and the log of executions as audits leave
it.
"""

from __future__ import annotations

import itertools
import logging
import threading
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from masis import run_audit
from masis.services import Workbench
from masis.services.maintenance.retention import AUTOMATIC, rule_of, start_automatic
from masis.settings import Settings
from tests.cases import case_of
from tests.reviewing import ADA
from tests.waiting import PATIENCE_S, until

CASE = case_of("The bridge is 120 metres long [1].", {"1": "The bridge is 120 metres long."})


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Workbench]:
    opened = Workbench.open(tmp_path / "masis.db", Settings(spot_check_share=0))
    opened.cases.add(ADA, [CASE])
    yield opened
    opened.store.close()


def test_the_retention_rule_fixes_its_reference_time() -> None:
    rule = rule_of(30, waiting=True, now="2026-03-01T10:00:00.000Z")
    assert (rule.cutoff, rule.days, rule.waiting, rule.decided) == (
        "2026-01-30T10:00:00.000Z",
        30,
        True,
        False,
    )


def old(bench: Workbench) -> str:
    """An audit that policy accepted, forty days old."""
    run = bench.audits.audit(ADA, CASE)
    assert not run.needs_review
    bench.store.database.execute(
        "UPDATE jobs SET ended_at = strftime('%Y-%m-%dT%H:%M:%fZ', julianday(ended_at) - 40)"
    )
    return run.id


@pytest.mark.spec("REQ-CRITIC-SEC-004")
@pytest.mark.parametrize(
    "told", [{}, {"retention_auto": True, "retention_days": 0}, {"retention_days": 1}]
)
def test_automatic_purging_is_off_by_default(bench: Workbench, told: dict[str, object]) -> None:
    bench.settings = Settings.model_validate(told)
    assert start_automatic(bench.retention, bench.settings) is None


@pytest.mark.spec("REQ-CRITIC-COMP-002")
def test_automatic_purging_runs_at_the_start_and_repeatedly(
    bench: Workbench,
) -> None:
    first = old(bench)
    bench.settings = Settings(retention_auto=True)
    working = start_automatic(bench.retention, bench.settings, every=timedelta(milliseconds=20))
    assert working is not None
    try:
        wait_for(bench, 1)
        bench.store.runs.summary(first)
        second = old(bench)
        wait_for(bench, 2)
    finally:
        working.end()
    purges = bench.store.purges.history()
    assert [(purge.by, purge.how, purge.rule.days) for purge in purges] == [
        (AUTOMATIC.name, "automatic", 30)
    ] * 2
    gone = list(
        itertools.chain.from_iterable(
            bench.store.purges.removals(purge.seq) for purge in reversed(purges)
        )
    )
    assert [run.id for run in gone] == [first, second]


@pytest.mark.parametrize(("most", "shrinks"), [(10**9, True), (0, False)])
def test_automatic_purging_vacuums_only_small_files(
    bench: Workbench, monkeypatch: pytest.MonkeyPatch, most: int, shrinks: bool
) -> None:
    old(bench)
    bench.settings = Settings(retention_auto=True)
    monkeypatch.setattr("masis.services.maintenance.retention.MAX_AUTO_SHRINK_BYTES", most)
    asked = threading.Event()
    monkeypatch.setattr(bench.store, "shrink", lambda *_, **__: asked.set())
    working = start_automatic(bench.retention, bench.settings, every=timedelta(days=1))
    wait_for(bench, 1)
    if shrinks:
        assert asked.wait(PATIENCE_S)
    working.end()
    assert asked.is_set() is shrinks


def wait_for(bench: Workbench, purges: int) -> None:
    until(lambda: len(bench.store.purges.history()) >= purges, "something is removed")


def test_a_stop_between_batches_skips_the_vacuum(bench: Workbench) -> None:
    old(bench)
    done = bench.retention.purge(ADA, rule_of(30), how="command", stopped=lambda: True)
    assert (done.purge, done.shrunk) == (None, None)


# the log of executions


@pytest.mark.spec("REQ-CRITIC-COMP-001", "REQ-CRITIC-COMP-001-FIELDS")
def test_an_audit_logs_a_line_with_the_fields_of_the_spec(bench: Workbench) -> None:
    run = bench.audits.audit(ADA, CASE)
    (line,) = bench.store.executions.iterate()
    assert (line.at, line.case_id, line.iterations) == (
        run.finished_at,
        "bridge",
        run.total_iterations,
    )
    assert (line.final_quality, line.improvement) == (
        run.final_quality_score,
        run.improvement_percentage,
    )
    assert (line.termination, line.models, line.app) == (
        run.termination_reason,
        run.models,
        run.versions.app,
    )


@pytest.mark.spec("REQ-CRITIC-COMP-001")
def test_a_resumed_audit_is_two_executions(
    bench: Workbench, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(event: object) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        bench.audits.audit(ADA, CASE, run_id="r", on_event=interrupt)
    bench.audits.audit(ADA, CASE)
    ends = [
        (execution.start, execution.termination, execution.iterations)
        for execution in bench.store.executions.iterate()
    ]
    assert ends == [(1, "abandoned", 0), (2, "no_issues", 1)]
    assert bench.store.check().ok


@pytest.mark.spec("REQ-CRITIC-COMP-001")
def test_a_stopped_audit_is_logged_as_cancelled(bench: Workbench) -> None:
    bench.audits.audit(ADA, CASE, cancelled=lambda: True)
    assert [execution.termination for execution in bench.store.executions.iterate()] == [
        "cancelled"
    ]


@pytest.mark.spec("REQ-CRITIC-COMP-001")
def test_an_audit_without_a_store_logs_the_same_fields(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, logger="masis.audit.loop"):
        run = run_audit(CASE)
    fields = next(
        told
        for record in caplog.records
        if (told := vars(record).get("fields", {})).get("event") == "run_finished"
    )
    assert (fields["at"], fields["case_digest"]) == (run.finished_at, CASE.digest())
    assert (fields["total_iterations"], fields["final_quality_score"]) == (
        1,
        run.final_quality_score,
    )
    assert (fields["improvement_percentage"], fields["termination_reason"]) == (
        0.0,
        run.termination_reason,
    )
    assert fields["models"] == run.models
    assert CASE.digest()[:12] in caplog.text
    assert "120 metres" not in caplog.text

"""The use cases around audits and decisions."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import pytest

from masis.api.roles import build_roles
from masis.errors import CaseConflict, UnknownRecord
from masis.offline.roles.reviser import OfflineReviser
from masis.schema.case import Case
from masis.schema.review import Decision
from masis.services import POLICY, Workbench, demo_cases
from masis.services import audits as audit_service
from masis.settings import Settings
from tests.reviewing import ADA, submitted, undone

EVIDENCE = [{"id": "chunk_1", "text": "The bridge is 120 metres long. It was opened to traffic in 1931."}]
CLEAN = Case.model_validate(
    {
        "id": "clean",
        "query": "How long is the bridge?",
        "answer": "The bridge is 120 metres long [chunk_1].",
        "evidence": EVIDENCE,
    }
)
FAULTY = CLEAN.model_copy(update={"id": "faulty", "answer": "The bridge is 120 metres long [chunk_99]."})
NO_SPOT_CHECK = Settings(spot_check_share=0)


@pytest.fixture
def bench(tmp_path: Path) -> Workbench:
    opened = Workbench.open(tmp_path / "masis.db", NO_SPOT_CHECK)
    opened.cases.add(ADA, [CLEAN, FAULTY])
    return opened


def decision(**changes: Any) -> Decision:
    values: dict[str, Any] = {"reviewer": "Ada", "case_id": "faulty", "run_id": None, "verdict": "approve"}
    return Decision(**(values | changes))


@pytest.mark.spec("REQ-CRITIC-SEC-001")
def test_everything_lies_in_one_file_that_is_made_on_opening(tmp_path: Path) -> None:
    Workbench.open(tmp_path / "new" / "masis.db")
    assert (tmp_path / "new" / "masis.db").is_file()


def test_importing_again_changes_nothing_and_a_conflict_leaves_the_others_in(bench: Workbench) -> None:
    other = CLEAN.model_copy(update={"query": "Another question?"})
    report = bench.cases.add(ADA, [CLEAN, other, CLEAN.model_copy(update={"id": "third"})])
    assert (report.added, report.unchanged, len(report.conflicts)) == (1, 1, 1)
    assert isinstance(report.conflicts[0], CaseConflict)
    assert bench.cases.open("clean").case == CLEAN


def test_a_run_that_needs_nobody_is_accepted_by_policy_in_the_log(bench: Workbench) -> None:
    run = bench.audits.audit(ADA, CLEAN)
    view = bench.cases.open("clean")
    assert not run.needs_review
    assert view.state == "accepted"
    assert view.decision is not None
    assert view.decision.decision is not None
    assert (view.decision.decision.source, view.decision.decision.reviewer) == ("CODE", POLICY.name)


def test_a_run_drawn_for_a_spot_check_goes_to_a_person(bench: Workbench) -> None:
    run = bench.audits.audit(ADA, CLEAN, settings=Settings(spot_check_share=1))
    assert run.spot_check
    assert not run.needs_review
    assert bench.cases.open("clean").state == "needs_review"


def test_a_faulty_answer_waits_for_a_person(bench: Workbench) -> None:
    bench.audits.audit(ADA, FAULTY)
    assert bench.cases.open("faulty").state == "needs_review"


def test_what_was_audited_with_these_settings_needs_no_audit(bench: Workbench) -> None:
    assert bench.audits.needed(CLEAN)
    bench.audits.audit(ADA, CLEAN)
    assert not bench.audits.needed(CLEAN)
    assert bench.audits.needed(CLEAN, Settings(max_iterations=1))


def test_an_interrupted_run_is_taken_up_where_it_stopped(bench: Workbench, monkeypatch: pytest.MonkeyPatch) -> None:
    class Failing(OfflineReviser):
        def revise(self, *_: Any) -> Any:
            raise KeyboardInterrupt

    real = build_roles
    monkeypatch.setattr(
        audit_service, "build_roles", lambda settings, _replies: dataclasses.replace(real(settings), reviser=Failing())
    )
    with pytest.raises(KeyboardInterrupt):
        bench.audits.audit(ADA, FAULTY)
    interrupted = bench.store.runs.in_state("interrupted")
    assert [bench.runs.summary(run_id).case_id for run_id in interrupted] == ["faulty"]
    monkeypatch.setattr(audit_service, "build_roles", real)
    run = bench.audits.audit(ADA, FAULTY)
    assert run.id == interrupted[0]
    assert run.total_iterations == 2
    assert bench.store.runs.in_state("interrupted") == ()


def test_a_decision_stands_until_it_is_undone(bench: Workbench) -> None:
    run = bench.audits.audit(ADA, FAULTY)
    submitted(bench, decision(run_id=run.id))
    assert bench.cases.open("faulty").state == "approved"
    undone(bench, "faulty", "Ada")
    assert bench.cases.open("faulty").state == "needs_review"
    assert [entry.decision.kind for entry in bench.cases.open("faulty").history if entry.decision] == [
        "undo",
        "decision",
    ]


def test_undoing_nothing_is_an_error_that_says_so(bench: Workbench) -> None:
    with pytest.raises(UnknownRecord, match="no decision on case 'faulty'"):
        undone(bench, "faulty", "Ada")


def test_the_same_token_is_one_decision(bench: Workbench) -> None:
    run = bench.audits.audit(ADA, FAULTY)
    first, second = (submitted(bench, decision(run_id=run.id, token="t1")) for _ in range(2))
    assert first == second
    assert bench.store.decisions.verify().length == 1


def test_a_decision_records_the_versions_that_judged(bench: Workbench) -> None:
    run = bench.audits.audit(ADA, FAULTY)
    entry = submitted(bench, decision(run_id=run.id))
    assert entry.decision is not None
    assert {"app", "rubric"} <= entry.decision.versions.keys()


@pytest.mark.parametrize(
    ("changes", "lacking"),
    [
        ({"verdict": "override", "reason": "wrong"}, "corrected answer"),
        ({"verdict": "override", "corrected_answer": "x"}, "reason"),
        ({"verdict": "reject"}, "reason"),
        ({"verdict": None}, "verdict"),
        ({"kind": "undo", "verdict": None}, "entry it takes back"),
    ],
)
def test_a_decision_that_lacks_something_says_what(changes: dict[str, Any], lacking: str) -> None:
    with pytest.raises(ValueError, match=lacking):
        decision(**changes)


@pytest.mark.spec("REQ-CRITIC-OBS-005")
def test_health_runs_every_role_and_checks_the_log(bench: Workbench) -> None:
    report = bench.health()
    assert report.ok
    assert {"database", "decision log", "auditor", "disk"} <= {item.name for item in report.items}


def test_health_names_a_model_that_nothing_answers_to(tmp_path: Path) -> None:
    report = Workbench.open(tmp_path / "masis.db", Settings(critic="nobody:x")).health()
    assert not report.ok
    assert "nobody" in next(item.message for item in report.items if item.name == "models" and not item.ok)


def test_the_demo_loads_and_loads_again_without_harm(tmp_path: Path) -> None:
    bench = Workbench.open(tmp_path / "demo.db")
    first = bench.cases.add_demo(ADA)
    assert first.added == len(list(demo_cases())) >= 40
    assert bench.cases.add_demo(ADA).unchanged == first.added

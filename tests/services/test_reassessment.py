"""Stored audits are judged by the current acceptance rule: shown first, by further entries, never
rewritten.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from masis import run_audit
from masis.audit.acceptance import RULE_VERSION
from masis.schema.actor import Actor
from masis.schema.case import Case
from masis.schema.run import AcceptanceRecord, ReviewReason, Run
from masis.services import Workbench, reassessment
from masis.settings import Settings
from masis.store.records import CaseFilter
from tests.reviewing import ADA, decide, undone

SETTINGS = Settings(spot_check_share=0, max_iterations=1)
EVIDENCE = [{"id": "1", "text": "The bridge is 120 metres long. It is made of steel."}]
RIGHT, WRONG = "The bridge is 120 metres long [1].", "The bridge is 120 metres long [1][7]."


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Workbench]:
    opened = Workbench.open(tmp_path / "old.db", SETTINGS)
    yield opened
    opened.close()


def judged_before(bench: Workbench, name: str, answer: str, *, accepted: bool) -> Run:
    """Store an audit as an earlier rule judged it, which had other checks."""
    case = Case.model_validate(
        {"id": name, "query": "How long is the bridge?", "answer": answer, "evidence": EVIDENCE}
    )
    reasons = (
        () if accepted else (ReviewReason(code="low_confidence", message="Confidence is low."),)
    )
    run = run_audit(case, SETTINGS).model_copy(
        update={
            "acceptance": AcceptanceRecord(rule="4", checks=()),
            "needs_review": not accepted,
            "review_reasons": reasons,
        }
    )
    bench.cases.add(ADA, [case])
    bench.audits.store_run(ADA, run)
    return run


@pytest.fixture
def old(bench: Workbench) -> Workbench:
    """Four audits of an earlier rule: rightly and wrongly accepted, rightly and wrongly sent to
    review.
    """
    judged_before(bench, "sound", RIGHT, accepted=True)
    judged_before(bench, "faulty", WRONG, accepted=True)
    judged_before(bench, "waits rightly", WRONG, accepted=False)
    judged_before(bench, "waits for nothing", RIGHT, accepted=False)
    return bench


def states(bench: Workbench) -> dict[str, str]:
    return {row.id: row.state for row in bench.cases.find(CaseFilter()).rows}


BEFORE = {
    "sound": "accepted",
    "faulty": "accepted",
    "waits rightly": "needs_review",
    "waits for nothing": "needs_review",
}
AFTER = BEFORE | {"faulty": "needs_review", "waits for nothing": "accepted"}


def test_a_dry_run_counts_changes_without_making_them(
    old: Workbench,
) -> None:
    head = old.store.decisions.head()
    found = old.reassessment.run(Actor(name=""))
    assert (found.total, found.done, found.to_review, found.to_accepted, found.skipped) == (
        4,
        4,
        1,
        1,
        0,
    )
    assert {"invalid_reference", "hallucination"} <= set(found.reasons)
    assert (states(old), old.store.decisions.head(), old.reassessment.waiting()) == (
        BEFORE,
        head,
        4,
    )


def test_reassessment_appends_entries_with_rule_and_actor(
    old: Workbench,
) -> None:
    entries, runs = (
        list(old.store.decisions.iterate()),
        {name: old.runs.for_case(name)[0].id for name in BEFORE},
    )
    before = {name: old.runs.get(run) for name, run in runs.items()}
    found = old.reassessment.run(ADA, apply=True)
    assert (found.to_review, found.to_accepted, found.applied) == (1, 1, True)
    assert states(old) == AFTER
    after = list(old.store.decisions.iterate())
    assert after[: len(entries)] == entries
    undo, accepted = (entry.decision for entry in after[len(entries) :])
    assert (undo.kind, undo.source, undo.extra["rule"], undo.extra["by"]) == (
        "undo",
        "CODE",
        RULE_VERSION,
        ADA.name,
    )
    assert "1 reference cites no evidence" in undo.reason
    assert (accepted.kind, accepted.case_id, accepted.extra["rule"]) == (
        "policy_accept",
        "waits for nothing",
        RULE_VERSION,
    )
    assert {name: old.runs.get(run) for name, run in runs.items()} == before
    assert old.store.decisions.verify().intact
    assert old.store.check().ok


def test_the_queue_shows_current_reasons_and_reassessing_again_changes_nothing(
    old: Workbench,
) -> None:
    old.reassessment.run(ADA, apply=True)
    first = old.cases.find(CaseFilter()).rows[0]
    assert (first.tier, "invalid_reference" in first.reasons) == ("must_look", True)
    assert old.cases.find(CaseFilter(tiers=("must_look",))).total == 2
    assert old.reassessment.waiting() == 0
    again = old.reassessment.run(ADA, apply=True)
    assert (again.total, again.changed) == (0, 0)
    thorough = old.reassessment.run(ADA, apply=True, again=True)
    assert (thorough.done, thorough.changed) == (4, 0)


def test_changed_thresholds_apply_in_both_directions(old: Workbench) -> None:
    old.reassessment.run(ADA, apply=True)
    strict = reassessment.ReassessmentService(
        old.store, SETTINGS.model_copy(update={"review_threshold": 1.0})
    )
    confident = {
        row.id
        for row in old.cases.find(CaseFilter(states=("accepted",))).rows
        if row.confidence == 1.0
    }
    assert strict.run(ADA, apply=True, again=True).to_review == 2 - len(confident)
    assert old.reassessment.run(ADA, apply=True, again=True).to_accepted == 2 - len(confident)
    assert states(old) == AFTER
    assert old.store.decisions.verify().intact


def test_human_decisions_and_undos_arent_reassessed(old: Workbench) -> None:
    decide(old, "faulty")
    undone(old, "sound", "Ada")
    old.reassessment.run(ADA, apply=True)
    assert states(old) == AFTER | {"faulty": "approved", "sound": "needs_review"}


def test_an_interrupted_reassessment_continues(
    old: Workbench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reassessment, "BATCH", 1)
    seen: list[int] = []
    found = old.reassessment.run(
        ADA,
        apply=True,
        on_progress=lambda so_far: seen.append(so_far.done),
        stopped=lambda: len(seen) == 2,
    )
    assert (seen, found.done, found.total) == ([1, 2], 2, 4)
    assert old.reassessment.waiting() == 2
    rest = old.reassessment.run(ADA, apply=True)
    assert (rest.total, rest.done) == (2, 2)
    assert states(old) == AFTER


def test_spot_checked_cases_arent_accepted(old: Workbench) -> None:
    every = reassessment.ReassessmentService(
        old.store, SETTINGS.model_copy(update={"spot_check_share": 1.0})
    )
    assert old.store.trust.spot_checks()["case_id"] == []
    assert every.run(ADA, apply=True).to_accepted == 0
    assert states(old)["waits for nothing"] == "needs_review"
    assert old.store.trust.spot_checks()["case_id"] == ["waits for nothing"], (
        "it is decided as a spot check"
    )


def test_new_audits_need_no_reassessment(bench: Workbench) -> None:
    case = Case.model_validate(
        {"id": "new", "query": "How long?", "answer": RIGHT, "evidence": EVIDENCE}
    )
    bench.cases.add(ADA, [case])
    run = bench.audits.audit(ADA, case)
    assert bench.reassessment.waiting() == 0
    entry = bench.reviews.current("new")
    if not run.needs_review:
        assert entry.decision.extra["rule"] == RULE_VERSION


def test_the_headline_follows_the_reasons_that_a_later_rule_gave(bench: Workbench) -> None:
    run = judged_before(bench, "a", RIGHT, accepted=False)
    before = bench.cases.summary("a").headline
    language = ReviewReason(code="language", message="The verifier does not support the language.")
    bench.store.runs.note_assessment(run.id, run.acceptance, (language,))
    assert bench.cases.summary("a").headline == "The verifier does not support the language"
    bench.store.runs.note_assessment(run.id, run.acceptance, ())
    assert bench.cases.summary("a").headline == before

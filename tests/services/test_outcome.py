"""What has been decided about a case, for whoever waits for it; and which answer a decision lets stand."""

from __future__ import annotations

from typing import Any

import pytest

from masis.api import stepwise
from masis.errors import StoreError
from masis.schema.case import Case
from masis.schema.run import Run
from masis.services import Workbench
from masis.services.retention import rule_of
from masis.settings import Settings
from tests.api.test_stepwise import RIGHT, WRONG, bridge
from tests.reviewing import ADA, decide, undone


def kept(bench: Workbench, case: Case, *answers: str) -> Run:
    run = stepwise.audit_once(case, Settings())
    for answer in answers:
        run = stepwise.audit_once(case, Settings(), before=run, answer=answer)
    bench.cases.add(ADA, [case])
    bench.audits.store_run(ADA, run)
    return run


def test_nothing_is_decided_while_a_case_waits(bench: Workbench) -> None:
    run = kept(bench, bridge())
    assert bench.reviews.outcome(run.case_id) is None


@pytest.mark.parametrize(
    ("verdict", "more", "stands"),
    [
        ("approve", {}, WRONG),
        ("approve", {"iteration": 2}, RIGHT),
        ("override", {"corrected_answer": "120 metres.", "reason": "Shorter."}, "120 metres."),
        ("reject", {"reason": "Wrong."}, None),
        ("escalate", {}, None),
    ],
)
def test_the_answer_that_stands_follows_the_verdict(
    bench: Workbench, verdict: str, more: dict[str, Any], stands: str | None
) -> None:
    run = kept(bench, bridge(), RIGHT)
    entry = decide(bench, run.case_id, verdict, **more)
    found = bench.reviews.outcome(run.case_id)
    assert found is not None
    assert (found.seq, found.entry_id, found.decision.verdict) == (entry.seq, entry.id, verdict)
    assert found.answer == stands


def test_what_was_undone_stands_no_more_and_what_was_seen_does_not_count_again(bench: Workbench) -> None:
    run = kept(bench, bridge())
    first = decide(bench, run.case_id, "escalate")
    assert bench.reviews.outcome(run.case_id, after=first.seq) is None
    second = decide(bench, run.case_id, "approve")
    found = bench.reviews.outcome(run.case_id, after=first.seq)
    assert found is not None
    assert found.seq == second.seq
    undone(bench, run.case_id, "Ada")
    assert bench.reviews.outcome(run.case_id, after=first.seq) is None


def test_the_policy_s_acceptance_is_a_decision_too(bench: Workbench) -> None:
    run = kept(bench, bridge(RIGHT))
    assert not run.needs_review
    found = bench.reviews.outcome(run.case_id)
    assert found is not None
    assert (found.decision.kind, found.answer) == ("policy_accept", RIGHT)


def test_a_redacted_decision_is_not_guessed_at(bench: Workbench) -> None:
    run = kept(bench, bridge())
    entry = decide(bench, run.case_id, "override", corrected_answer="Secret.", reason="Secret.")
    bench.store.decisions.redact(entry.id, by="Grace", reason="Held a secret.")
    with pytest.raises(StoreError, match="redacted: decide it again"):
        bench.reviews.outcome(run.case_id)


def test_what_a_person_wrote_stands_when_retention_has_removed_the_run(bench: Workbench) -> None:
    run = kept(bench, bridge())
    decide(bench, run.case_id, "override", corrected_answer="120 metres.", reason="Shorter.")
    bench.retention.purge(ADA, rule_of(0, decided=True, now="2099-01-01T00:00:00Z"), how="command")
    found = bench.reviews.outcome(run.case_id)
    assert found is not None
    assert found.answer == "120 metres."
    assert bench.store.runs.summary(run.id).removed_at is not None

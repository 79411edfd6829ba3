"""The causes of disagreements, and the sentences that adjudicators propose for the rubric."""

from __future__ import annotations

import io
from typing import Any

import pytest
from pydantic import ValidationError

from masis.errors import InputError, NotAllowed, StoreError
from masis.schema.actor import Actor
from masis.schema.review import AdjudicationCause, Decision
from masis.schema.team import QueuePolicy, Rubric
from masis.services import Workbench
from masis.services.access import SIGN_IN_REQUIRED
from masis.services.decision_rules import CAUSES
from masis.services.desk import Desk
from masis.services.records import DecisionFilter
from masis.services.rubric_proposals import RubricProposalService
from masis.ui.review.log_view import EntryContext, entry_detail, entry_row
from masis.views.log_entries import recorded_facts
from tests.planted import a_sound_case
from tests.reviewing import ADA, decide

LEA = Actor(name="Lea")
SENTENCE = "Round figures to whole metres."


@pytest.fixture
def workbench(bench: Workbench) -> Workbench:
    """Four audited cases that two reviewers decide."""
    for number in range(4):
        case = a_sound_case(number)
        bench.cases.add_one(ADA, case)
        bench.audits.audit(ADA, case)
    bench.team.put_in_force(ADA, QueuePolicy(reviewers=2))
    return bench


def disagree(workbench: Workbench, case_id: str, reason: str = "unsupported") -> None:
    decide(workbench, case_id, "approve", "Ada")
    decide(workbench, case_id, "reject", "Ben", extra={"reason_code": reason})


def adjudicate(workbench: Workbench, case_id: str, **given: Any) -> str:
    run = workbench.cases.open(case_id).run
    assert run is not None
    content = {"reviewer": "Lea", "case_id": case_id, "run_id": run.id, "verdict": "reject"}
    final = Decision.model_validate(
        {"kind": "adjudication", "reason": "Says more than the evidence", **content, **given}
    )
    return workbench.reviews.adjudicate(LEA, final).id


def test_the_table_explains_each_cause() -> None:
    assert set(CAUSES) == set(AdjudicationCause.__args__)  # type: ignore[attr-defined]


def test_causes_are_counted_for_verdicts_in_force(workbench: Workbench) -> None:
    for case_id in ("bridge-01", "bridge-02", "bridge-03"):
        disagree(workbench, case_id)
    adjudicate(workbench, "bridge-01", cause="slip")
    entry = adjudicate(workbench, "bridge-02", cause="gap")
    adjudicate(workbench, "bridge-03")
    counts = workbench.proposals.count_causes(ADA)
    assert counts.by_cause == {"slip": 1, "ambiguous": 0, "gap": 1}
    assert counts.none == 1
    workbench.reviews.undo(LEA, entry)
    assert workbench.proposals.count_causes(ADA).by_cause["gap"] == 0


def test_only_a_gap_in_an_adjudication_proposes_a_sentence() -> None:
    content: dict[str, Any] = {"reviewer": "A", "case_id": "c", "run_id": None, "verdict": "reject"}
    with pytest.raises(ValidationError, match="needs the cause gap"):
        Decision(**content, kind="adjudication", cause="slip", rubric_sentence=SENTENCE)
    with pytest.raises(ValidationError, match="only a final verdict"):
        Decision(**content, cause="gap")


def test_a_gap_proposes_a_sentence_with_the_decisions_it_would_touch(workbench: Workbench) -> None:
    disagree(workbench, "bridge-01")
    for reviewer in ("Ada", "Ben"):
        decide(workbench, "bridge-02", "reject", reviewer, extra={"reason_code": "unsupported"})
        decide(workbench, "bridge-03", "reject", reviewer, extra={"reason_code": "uncited"})
    entry = adjudicate(workbench, "bridge-01", cause="gap", rubric_sentence=SENTENCE)
    [proposal] = workbench.proposals.list_open(ADA)
    assert (proposal.entry_id, proposal.by, proposal.sentence) == (entry, "Lea", SENTENCE)
    assert proposal.touched == (("bridge-02",), 1)


def test_a_case_that_others_are_still_deciding_is_never_named(workbench: Workbench) -> None:
    disagree(workbench, "bridge-01")
    decide(workbench, "bridge-02", "reject", "Ben", extra={"reason_code": "unsupported"})
    disagree(workbench, "bridge-03")
    adjudicate(workbench, "bridge-01", cause="gap", rubric_sentence=SENTENCE)
    [proposal] = workbench.proposals.list_open(ADA)
    assert proposal.touched == ((), 0)


def test_an_accepted_sentence_is_part_of_a_new_version_of_the_rubric(workbench: Workbench) -> None:
    workbench.team.put_in_force(ADA, Rubric(guidelines="Read all evidence."))
    disagree(workbench, "bridge-01")
    entry = adjudicate(workbench, "bridge-01", cause="gap", rubric_sentence=SENTENCE)
    made = workbench.proposals.accept(LEA, entry, f"  {SENTENCE}\n")
    assert (made.version, made.guidelines) == (2, f"Read all evidence.\n{SENTENCE}")
    assert workbench.store.team.in_force(Rubric) == made
    assert workbench.proposals.list_open(ADA) == ()
    with pytest.raises(StoreError, match="already been accepted"):
        workbench.proposals.dismiss(LEA, entry)


def test_a_sentence_that_makes_the_guidelines_too_long_is_refused(workbench: Workbench) -> None:
    workbench.team.put_in_force(ADA, Rubric(guidelines="a" * 19_990))
    disagree(workbench, "bridge-01")
    entry = adjudicate(workbench, "bridge-01", cause="gap", rubric_sentence=SENTENCE)
    with pytest.raises(InputError):
        workbench.proposals.accept(LEA, entry, SENTENCE)
    assert len(workbench.proposals.list_open(ADA)) == 1


def test_a_dismissed_sentence_changes_no_rubric(workbench: Workbench) -> None:
    disagree(workbench, "bridge-01")
    entry = adjudicate(workbench, "bridge-01", cause="gap", rubric_sentence=SENTENCE)
    with pytest.raises(InputError):
        workbench.proposals.accept(LEA, entry, "  ")
    workbench.proposals.dismiss(LEA, entry)
    assert workbench.proposals.list_open(ADA) == ()
    assert workbench.store.team.in_force(Rubric).version == 0


def test_only_leads_settle_proposals(workbench: Workbench) -> None:
    disagree(workbench, "bridge-01")
    entry = adjudicate(workbench, "bridge-01", cause="gap", rubric_sentence=SENTENCE)
    service = RubricProposalService(workbench.store, SIGN_IN_REQUIRED)
    reader = Actor(name="Ben", roles=("reviewer",), authenticated=True)
    assert service.list_open(reader)
    with pytest.raises(NotAllowed):
        service.accept(reader, entry, SENTENCE)
    with pytest.raises(NotAllowed):
        service.dismiss(reader, entry)


def test_the_log_exports_the_cause_and_the_sentence(workbench: Workbench) -> None:
    disagree(workbench, "bridge-01")
    adjudicate(workbench, "bridge-01", cause="gap", rubric_sentence=SENTENCE)
    out = io.BytesIO()
    workbench.exports.write_log_csv(ADA, out, DecisionFilter(kinds=("adjudication",)))
    [_, row] = out.getvalue().decode().splitlines()
    assert f",gap,{SENTENCE}," in row


def test_a_program_gives_a_cause_only_with_a_final_verdict(workbench: Workbench) -> None:
    disagree(workbench, "bridge-01")
    with Desk(workbench.database, reviewer="Lea") as desk:
        with pytest.raises(InputError, match="final verdict"):
            desk.decide("bridge-02", "reject", reason="unsupported", cause="slip")
        entry = desk.adjudicate(
            "bridge-01", "reject", reason="unsupported", cause="gap", rubric_sentence=SENTENCE
        )
    assert entry.decision is not None
    assert (entry.decision.cause, entry.decision.rubric_sentence) == ("gap", SENTENCE)
    row = entry_row(entry, EntryContext())
    assert row["more"] == ["cause: a gap in the guideline", "a sentence for the rubric"]
    facts = dict(entry_detail(entry, [], None, None)["facts"])
    assert facts["Why they differed"].startswith("A gap in the guideline")
    assert facts["Sentence for the rubric"] == SENTENCE
    # the audit's own rules have a version, too
    versions = {"rubric": "2", "team_rubric": "1"}
    decision = entry.decision.model_copy(update={"versions": versions})
    facts = dict(recorded_facts(entry.model_copy(update={"decision": decision})))
    assert facts["Version of the audit's rules"] == "2"
    assert facts["Version of the team's rubric"] == "1"

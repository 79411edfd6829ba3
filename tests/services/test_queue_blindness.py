"""What named queues and the first queue hide from each other, under policies of both."""

from __future__ import annotations

import pytest

from masis.errors import Conflict, NotAllowed
from masis.schema.actor import Actor
from masis.schema.team import QueuePolicy
from masis.schema.trust import SamplePlan
from masis.services import Workbench
from masis.services.records import CaseFilter
from tests.services.test_queues import (
    ADA,
    BEN,
    CLEO,
    DI,
    MEDICAL,
    decide,
    set_up,
    state,
    waiting,
    workbench,
)

__all__ = ["workbench"]  # the fixture


def share(workbench: Workbench, **policy: object) -> None:
    workbench.team.put_in_force(CLEO, QueuePolicy.model_validate({"reviewers": 2} | policy))


def test_a_decision_in_a_queue_doesnt_reveal_pending_ones_of_the_first_queue(
    workbench: Workbench,
) -> None:
    share(workbench)
    medical = set_up(workbench, "Medical", MEDICAL, policy={"reviewers": 1})
    decide(workbench, ADA)
    version = workbench.cases.summary("case-2").version
    decide(workbench, BEN, verdict="escalate", queue=medical.id)
    for reader in (CLEO, DI):
        seen = workbench.cases.open_for(reader, "case-2")
        assert (seen.state, seen.decision, len(seen.history)) == ("needs_review", None, 1)
        assert (seen.summary.reviewer, seen.summary.version) == (None, version)
    assert "case-2" in waiting(workbench, DI)
    assert "case-2" not in waiting(workbench, DI, medical.id)
    decide(workbench, DI)
    assert state(workbench) == "rejected"
    assert workbench.store.check().ok


def test_a_decision_in_a_queue_waits_for_the_first_queue_before_anybody_decided_there(
    workbench: Workbench,
) -> None:
    share(workbench)
    medical = set_up(workbench, "Medical", MEDICAL, policy={"reviewers": 1})
    decide(workbench, ADA, queue=medical.id)
    seen = workbench.cases.open_for(BEN, "case-2")
    assert (seen.state, seen.decision, len(seen.history)) == ("needs_review", None, 1)
    assert workbench.store.decisions.reviewers("Ben") == {"Cleo": 2}
    for reviewer in (BEN, DI):
        assert "case-2" in waiting(workbench, reviewer)
        decide(workbench, reviewer, verdict="escalate")
    assert state(workbench) == "escalated"
    assert len(workbench.cases.open_for(CLEO, "case-2").history) == 4
    assert workbench.store.check().ok


@pytest.mark.parametrize("reviewers", [1, 2])
def test_a_decision_in_a_queue_doesnt_show_an_audit_that_the_team_hides(
    workbench: Workbench, reviewers: int
) -> None:
    share(workbench, machine="never", reviewers=reviewers)
    medical = set_up(workbench, "Medical", MEDICAL, policy={"reviewers": 1, "machine": "first"})
    others = [BEN, DI][2 - reviewers :]
    for reviewer in others[:-1]:
        decide(workbench, reviewer, machine_shown=())
    decide(workbench, ADA, queue=medical.id, machine_shown=())
    for reader in (ADA, CLEO):
        seen = workbench.cases.open_for(reader, "case-2")
        assert seen.machine_hidden
        assert (seen.state, seen.decision is None) == ("needs_review", True)
    decide(workbench, others[-1], machine_shown=())
    assert not workbench.cases.open_for(CLEO, "case-2").machine_hidden
    assert workbench.store.check().ok


def test_a_decision_in_a_queue_doesnt_show_its_reviewer_the_audit_in_the_first_queue(
    workbench: Workbench,
) -> None:
    share(workbench, machine="after")
    medical = set_up(workbench, "Medical", MEDICAL, policy={"reviewers": 1, "machine": "first"})
    decide(workbench, ADA, queue=medical.id, machine_shown=())
    decide(workbench, BEN, machine_shown=())
    for reader, hidden in ((ADA, True), (BEN, False), (DI, True)):
        assert workbench.cases.open_for(reader, "case-2").machine_hidden is hidden
        [row] = workbench.cases.find_for(reader, CaseFilter(text="case-2")).rows
        assert (row.quality is None) is hidden


def test_a_case_that_was_settled_before_the_teams_policy_stays_settled(
    workbench: Workbench,
) -> None:
    medical = set_up(workbench, "Medical", MEDICAL)
    decide(workbench, ADA, queue=medical.id)
    share(workbench)
    assert state(workbench) == "rejected"
    decide(workbench, BEN, verdict="escalate", queue=medical.id)
    assert state(workbench) == "escalated"
    assert "case-2" not in waiting(workbench, DI)
    assert workbench.store.check().ok


def test_held_decisions_count_once_the_team_needs_one_reviewer(workbench: Workbench) -> None:
    share(workbench)
    medical = set_up(workbench, "Medical", MEDICAL, policy={"reviewers": 1})
    decide(workbench, ADA, queue=medical.id)
    assert state(workbench) == "needs_review"
    share(workbench, reviewers=1)
    assert state(workbench) == "rejected"
    assert workbench.store.check().ok


def test_an_undone_decision_of_the_first_queue_holds_those_of_others_again(
    workbench: Workbench,
) -> None:
    share(workbench)
    medical = set_up(workbench, "Medical", MEDICAL, policy={"reviewers": 1})
    entry = decide(workbench, ADA)
    decide(workbench, BEN, queue=medical.id)
    workbench.reviews.undo(ADA, entry.id)
    seen = workbench.cases.open_for(DI, "case-2")
    assert (seen.state, seen.decision, len(seen.history)) == ("needs_review", None, 1)
    assert workbench.store.check().ok


def test_a_decision_of_others_is_hidden_while_another_queue_waits(workbench: Workbench) -> None:
    decide(workbench, ADA)
    medical = set_up(workbench, "Medical", MEDICAL, policy={"reviewers": 2})
    decide(workbench, BEN, verdict="escalate", queue=medical.id)
    assert workbench.cases.open_for(DI, "case-2").decision is None
    own = workbench.cases.open_for(ADA, "case-2").decision
    assert own is not None
    assert own.decision is not None
    assert own.decision.reviewer == "Ada"


def test_the_first_queue_offers_a_case_by_the_decisions_made_there(workbench: Workbench) -> None:
    share(workbench)
    medical = set_up(workbench, "Medical", MEDICAL, policy={"reviewers": 2})
    decide(workbench, ADA, queue=medical.id)
    decide(workbench, BEN)
    offered = {actor.name: "case-2" in waiting(workbench, actor) for actor in (ADA, BEN, CLEO, DI)}
    assert offered == {"Ada": True, "Ben": False, "Cleo": True, "Di": True}
    assert workbench.team.work(DI, "case-2", "").decided_by == ()
    assert workbench.store.team.work("case-2", "").decided_by == ("Ben",)
    assert workbench.team.claim_next(ADA, CaseFilter(text="case-2")) is not None
    decide(workbench, ADA)
    assert "case-2" not in waiting(workbench, DI)


def test_a_new_policy_counts_the_decisions_of_the_first_queue_alone(workbench: Workbench) -> None:
    medical = set_up(workbench, "Medical", MEDICAL, policy={"reviewers": 2})
    decide(workbench, ADA, queue=medical.id)
    share(workbench, reviewers=3)
    assert workbench.store.team.work("case-2", "").wanted == 3
    decide(workbench, BEN)
    assert workbench.store.check().ok
    assert "case-2" in waiting(workbench, DI)


# Samples of a guarantee

FLAGGED = CaseFilter(flags=("invalid_reference",))
BY_AUDIT = (FLAGGED, CaseFilter(quality_to=0.9), CaseFilter(quality_from=0.0))


def draw_sample(workbench: Workbench) -> None:
    plan = SamplePlan.model_construct(case_ids=("case-2",), version=1)
    workbench.store.team.put_in_force("Cleo", plan)


@pytest.mark.parametrize("by_audit", BY_AUDIT)
def test_no_count_of_a_queue_reveals_the_hidden_audit_of_a_sample(
    workbench: Workbench, by_audit: CaseFilter
) -> None:
    about = by_audit.model_copy(update={"text": "case-2"})
    assert workbench.queues.preview(ADA, about).cases == 1
    draw_sample(workbench)
    set_up(workbench, "Flagged", by_audit)
    assert workbench.cases.find_for(ADA, about).total == 0
    assert workbench.queues.preview(ADA, about).cases == 0
    assert workbench.queues.preview(ADA, CaseFilter(text="case-2")).cases == 1
    assert workbench.queues.preview(ADA, CaseFilter(text="case-2")).common == {}
    figures = workbench.queues.figures(ADA, "Flagged")
    assert (figures.cases, figures.left, figures.own_left) == (5, 5, 5)


def test_a_sample_with_a_hidden_audit_isnt_in_a_queue_that_audits_fill(
    workbench: Workbench,
) -> None:
    flagged = set_up(workbench, "Flagged", FLAGGED, policy={"reviewers": 2}, people=("Ada", "Ben"))
    draw_sample(workbench)
    for case_id, shown in (("case-2", False), ("case-3", True)):
        assert workbench.queues.has_case(ADA, "Flagged", case_id) is shown
        assert workbench.queues.has_waiting(ADA, "Flagged", case_id) is shown
    with pytest.raises(Conflict, match="isn't in the queue 'Flagged'"):
        decide(workbench, ADA, queue=flagged.id, machine_shown=())
    with pytest.raises(NotAllowed, match="waits in the queue 'Flagged'"):
        decide(workbench, DI, "case-3")
    assert waiting(workbench, DI) == ["case-2"]
    decide(workbench, DI, machine_shown=())  # no refusal that names the queue
    assert state(workbench) == "rejected"
    assert workbench.queues.has_case(ADA, "Flagged", "case-2")
    assert workbench.store.check().ok


# The people of a queue


def test_nobody_else_changes_a_verdict_of_the_people_of_a_queue(workbench: Workbench) -> None:
    medical = set_up(workbench, "Medical", MEDICAL, people=("Ada",))
    decide(workbench, ADA, queue=medical.id)
    with pytest.raises(NotAllowed, match=r"queue 'Medical' has decided case 'case-2'.*A lead can"):
        decide(workbench, BEN, verdict="escalate")
    with pytest.raises(NotAllowed, match="has decided"):
        workbench.team.claim(BEN, "case-2")
    workbench.queues.change(CLEO, medical.model_copy(update={"cases": CaseFilter(text="none")}))
    with pytest.raises(NotAllowed, match="has decided"):
        decide(workbench, BEN, verdict="escalate")
    assert state(workbench) == "rejected"
    decide(workbench, ADA, verdict="escalate")
    assert state(workbench) == "escalated"
    lead = Actor(name="Lea", roles=("lead",), authenticated=True)
    decide(workbench, lead)
    assert state(workbench) == "rejected"


def test_others_decide_in_the_first_queue_that_still_waits(workbench: Workbench) -> None:
    share(workbench)
    medical = set_up(workbench, "Medical", MEDICAL, people=("Ada",), policy={"reviewers": 1})
    assert "case-2" not in waiting(workbench, BEN)
    decide(workbench, ADA, queue=medical.id)
    for reviewer in (BEN, DI):
        lease = workbench.team.claim_next(reviewer, CaseFilter(text="case-2"))
        assert lease is not None
        decide(workbench, reviewer, verdict="escalate")
        workbench.team.release(reviewer, "case-2")
    assert state(workbench) == "escalated"
    with pytest.raises(NotAllowed, match="has decided"):
        workbench.team.claim(CLEO, "case-2")
    assert workbench.store.check().ok

"""Pages count decided cases in different ways; the counts agree or differ by a named number."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from masis.audit.measures.metrics import MeasureFilter
from masis.schema.team import QueuePolicy
from masis.services import Workbench
from masis.services.records import CaseFilter
from masis.services.trust.service import TrustFilter
from tests.reviewing import ADA, decide
from tests.store.factories import a_case

DECIDED = ("approved", "overridden", "rejected")
VERDICTS = {"approve": "approved", "override": "overridden", "reject": "rejected"}


def check_counts(workbench: Workbench, *, decided_alone: int = 0) -> int:
    """Compare the counts of Overview, Queue, Metrics, Trust and Team; return the decided cases."""
    facets = workbench.cases.facets_for(ADA)
    states, decided = facets.states, facets.standings["decided"]
    # Overview and Queue: each case has one status and one state.
    assert sum(facets.standings.values()) == sum(states.values()) == workbench.store.cases.count()
    assert decided == sum(states.get(state, 0) for state in DECIDED)
    assert workbench.cases.find_for(ADA, CaseFilter(standings=("decided",))).total == decided
    # Metrics: stopped answers, and the verdicts of all weeks.
    counts = workbench.case_figures.count(ADA, MeasureFilter())
    assert sum(count.cases for count in counts.stopped) == states["overridden"] + states["rejected"]
    settled = {
        verdict: sum(week.settled.get(verdict, 0) for week in counts.weeks)
        for verdict in (*VERDICTS, "escalate", "accepted")
    }
    assert settled == {verdict: states[state] for verdict, state in VERDICTS.items()} | {
        "escalate": states.get("escalated", 0),
        "accepted": states.get("accepted", 0),
    }
    # Trust: decided answers, without those that it names as left out.
    report = workbench.trust.compare(ADA, TrustFilter())
    left_out = report.excluded
    assert len(workbench.trust.decided_rows(ADA, TrustFilter())) == decided
    assert report.answers.accuracy.n == decided - left_out.unaudited - left_out.not_blind
    assert left_out.escalated == states.get("escalated", 0)
    # Team: decisions of single people, and cases that two of them decided.
    people = workbench.trust.people(ADA)
    stats = workbench.trust.reviewers(ADA, others=True)
    waiting = states.get("escalated", 0) + states.get("needs_adjudication", 0)
    assert people.agreement.units == decided - decided_alone + waiting
    assert people.decisions == 2 * people.agreement.units
    assert sum(person.decisions for person in stats) >= people.decisions
    assert max(person.agreed.n for person in stats) <= decided
    return decided


@pytest.mark.slow
def test_counts_of_decided_cases_agree_on_all_pages(demo_database: Path, tmp_path: Path) -> None:
    workbench = Workbench.open(Path(shutil.copy(demo_database, tmp_path / "w.db")))
    before = check_counts(workbench)
    assert before > 0
    first, second, *_ = workbench.cases.find_for(ADA, CaseFilter(states=("needs_review",))).rows
    # One person settles the first case; the second one waits for another decision.
    decide(workbench, first.id, "reject", "Ada")
    workbench.team.put_in_force(ADA, QueuePolicy(reviewers=2))
    decide(workbench, second.id, "reject", "Ada")
    workbench.cases.add(ADA, [a_case("later")])
    assert check_counts(workbench, decided_alone=1) == before + 1
    workbench.close()

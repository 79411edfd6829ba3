"""Counts of cases for the pictures of the metrics page."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from datetime import date, timedelta
from pathlib import Path

import pytest

from masis.audit.measures.metrics import MeasureFilter
from masis.schema.actor import Actor
from masis.schema.team import QueuePolicy
from masis.services import Workbench, demo_cases
from tests.reviewing import ADA, decide, undone
from tests.store.factories import a_case

EVERYTHING = MeasureFilter()
WRONG = "strategy-01"
RIGHT = "policy-01"


AUDITED = (WRONG, RIGHT, "docs-02", "medicine-01", "finance-05")


@pytest.fixture(scope="module")
def audited_database(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Five audited demo cases and one that isn't."""
    path = tmp_path_factory.mktemp("figures") / "audited.db"
    workbench = Workbench.open(path)
    cases = {case.id: case for case in demo_cases()}
    workbench.cases.add(ADA, [cases[case_id] for case_id in (*AUDITED, "law-01")])
    for case_id in AUDITED:
        workbench.audits.audit(ADA, cases[case_id])
    workbench.close()
    return path


@pytest.fixture
def workbench(audited_database: Path, tmp_path: Path) -> Iterator[Workbench]:
    opened = Workbench.open(Path(shutil.copy(audited_database, tmp_path / "figures.db")))
    yield opened
    opened.close()


def monday(at: str) -> str:
    day = date.fromisoformat(at[:10])
    return (day - timedelta(days=day.weekday())).isoformat()


def test_a_case_counts_once_for_a_kind_of_issue_at_its_worst_severity(workbench: Workbench) -> None:
    counts = workbench.case_figures.count(ADA, EVERYTHING).issues
    facets = workbench.cases.facets_for(ADA)
    for flag in ("invalid_reference", "contradicted"):
        cases = sum(count.cases for count in counts if count.flag == flag)
        assert cases == facets.flags.get(flag, 0), flag
    audited = sum(facets.standings.values()) - facets.standings["not_audited"]
    assert sum(count.cases for count in counts if not count.flag) <= audited


def test_only_rejected_and_corrected_answers_count_as_stopped(workbench: Workbench) -> None:
    decide(workbench, WRONG, "reject")
    decide(workbench, RIGHT, "approve")
    (stopped,) = workbench.case_figures.count(ADA, EVERYTHING).stopped
    assert (stopped.verdict, stopped.severity, stopped.cases) == ("reject", "critical", 1)
    undone(workbench, WRONG, "Ada")
    assert workbench.case_figures.count(ADA, EVERYTHING).stopped == ()


def test_a_shared_case_counts_only_when_it_is_settled(workbench: Workbench) -> None:
    workbench.team.put_in_force(ADA, QueuePolicy(reviewers=2))
    decide(workbench, WRONG, "reject", "Ada")
    assert workbench.case_figures.count(ADA, EVERYTHING).stopped == ()
    decide(workbench, WRONG, "reject", "Ben")
    assert [count.cases for count in workbench.case_figures.count(ADA, EVERYTHING).stopped] == [1]


def test_weeks_without_an_event_are_listed_and_the_backlog_runs_on(workbench: Workbench) -> None:
    before = workbench.case_figures.count(ADA, EVERYTHING).weeks[-1].open
    with workbench.store.database.transaction() as connection:
        connection.execute(
            "UPDATE cases SET imported_at = '2026-01-06T00:00:00Z' WHERE id = ?", [RIGHT]
        )
    weeks = workbench.case_figures.count(ADA, EVERYTHING).weeks
    assert weeks[0].week == "2026-01-05"
    assert (weeks[0].arrived, weeks[0].open, weeks[1].arrived, weeks[1].open) == (1, 1, 0, 1)
    assert [week.week for week in weeks] == sorted({week.week for week in weeks})
    assert weeks[-1].open == before
    entry = decide(workbench, WRONG, "reject")
    last = workbench.case_figures.count(ADA, EVERYTHING).weeks[-1]
    assert (last.week, last.settled["reject"], last.open) == (monday(entry.at), 1, before - 1)
    chosen = MeasureFilter(since=entry.at[:10])
    assert [week.week for week in workbench.case_figures.count(ADA, chosen).weeks] == [last.week]


def test_the_time_of_a_week_is_the_median_of_its_decisions(workbench: Workbench) -> None:
    for case_id, seconds in zip(AUDITED[:4], (10.0, 90.0, 30.0, 20.0), strict=True):
        decide(workbench, case_id, "reject", extra={"seconds": seconds})
    assert workbench.case_figures.count(ADA, EVERYTHING).weeks[-1].seconds == 25.0
    decide(workbench, AUDITED[4], "reject", extra={"seconds": 31.0})
    assert workbench.case_figures.count(ADA, EVERYTHING).weeks[-1].seconds == 30.0


def test_an_escalated_case_stays_in_the_backlog(workbench: Workbench) -> None:
    before = workbench.case_figures.count(ADA, EVERYTHING).weeks[-1].open
    decide(workbench, WRONG, "escalate")
    last = workbench.case_figures.count(ADA, EVERYTHING).weeks[-1]
    assert (last.settled["escalate"], last.open) == (1, before)


def test_what_became_of_a_revision_follows_the_iteration_that_was_approved(
    workbench: Workbench,
) -> None:
    run = workbench.cases.open(WRONG).run
    assert run is not None
    assert len(run.iterations) > 1
    decide(workbench, WRONG, "approve", iteration=2)
    assert workbench.case_figures.count(ADA, EVERYTHING).revisions == {"unchanged": 1}
    undone(workbench, WRONG, "Ada")
    decide(workbench, WRONG, "approve", iteration=1)
    assert workbench.case_figures.count(ADA, EVERYTHING).revisions == {"original": 1}


def test_answers_are_grouped_by_system_only_if_there_are_several(workbench: Workbench) -> None:
    assert workbench.case_figures.count(ADA, EVERYTHING).origin == "field"
    for name in ("Old", "New"):
        case = a_case(name, metadata={"system": name})
        workbench.cases.add(ADA, [case])
        workbench.audits.audit(ADA, case)
    counts = workbench.case_figures.count(ADA, EVERYTHING)
    assert counts.origin == "system"
    assert {row.name: row.cases for row in counts.origins} == {"unnamed": 5, "New": 1, "Old": 1}
    models = workbench.case_figures.count(ADA, EVERYTHING, "model").origins
    assert {row.name: row.cases for row in models} == {"offline": 7}


def test_a_reviewer_from_whom_the_policy_hides_results_learns_no_count(
    workbench: Workbench,
) -> None:
    workbench.team.put_in_force(ADA, QueuePolicy(machine="after"))
    counts = workbench.case_figures.count(Actor(name="Ben"), EVERYTHING)
    assert not any((counts.issues, counts.stopped, counts.revisions, counts.weeks, counts.origins))


def test_changes_since_a_day_are_counted_and_hidden_from_blind_reviewers(
    workbench: Workbench,
) -> None:
    decide(workbench, WRONG, "reject")
    decide(workbench, RIGHT, "escalate")
    since = workbench.case_figures.changes(ADA, "2026-01-01")
    assert (since.arrived, since.audited, since.failed) == (6, 5, 0)
    assert since.settled["reject"] == since.settled["escalate"] == 1
    later = workbench.case_figures.changes(ADA, "2999-01-01")
    assert not any((later.arrived, later.audited, later.failed, later.settled))
    workbench.team.put_in_force(ADA, QueuePolicy(machine="after"))
    hidden = workbench.case_figures.changes(Actor(name="Ben"), "2026-01-01")
    assert (hidden.arrived, hidden.audited, hidden.settled) == (6, 0, {})

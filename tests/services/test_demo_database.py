"""The demo's database: every kind of case is in it, and what is simulated says so and labels
nothing.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import get_args

import pytest

from masis.schema.actor import Actor
from masis.schema.comparison import LIST_NAMES
from masis.schema.review import Decision, LogEntry, Standing
from masis.schema.systems import SystemDetails
from masis.schema.team import QueuePolicy
from masis.services import Workbench, demo_database
from masis.services.demo_database import DEMO, REVIEWERS, SIMULATED, VERSION, fill_demo
from masis.services.records import CaseFilter
from masis.services.trust.service import TrustFilter
from masis.services.trust.summary import short_answers
from masis.views.comparison import differing
from tests.reviewing import ADA

GRACE = Actor(name="Grace")


@pytest.fixture
def demo(demo_database: Path, tmp_path: Path) -> Iterator[Workbench]:
    workbench = Workbench.open(shutil.copy(demo_database, tmp_path / "demo.db"))
    yield workbench
    workbench.close()


def simulated_decisions(demo: Workbench) -> list[tuple[LogEntry, Decision]]:
    found = [(entry, entry.decision) for entry in demo.store.decisions.iterate() if entry.decision]
    return [(entry, decision) for entry, decision in found if decision.extra.get("simulated")]


def who_replied_has_passed_the_exam(demo: Workbench) -> bool:
    """Whether answers may pass on the word of whoever gave the recorded replies."""
    case_id = demo_database.COMPARED[0]
    newest = next(iter(demo.runs.for_case(case_id)))
    return demo.exams.line_for_run(demo.runs.get(newest.id)).startswith("passed")


def test_the_demo_has_cases_in_every_state(demo: Workbench) -> None:
    facets = demo.cases.facets_for(ADA)
    # in place of others; the demo's systems all answered; copies with a planted fault are made of
    # people's approvals
    elsewhere = {"to_review", "no_answer", "planted"}
    kinds = {
        "new",
        "needs_review",
        "accepted",
        "approved",
        "overridden",
        "rejected",
        "escalated",
        "needs_adjudication",
    }
    if not who_replied_has_passed_the_exam(demo):
        elsewhere, kinds = elsewhere | {"nothing_found"}, kinds - {"accepted"}
    assert {name for name, count in facets.standings.items() if count} == {
        *get_args(Standing)
    } - elsewhere
    assert {name for name, count in facets.states.items() if count} == kinds
    (failed,) = demo.cases.find(CaseFilter(standings=("failed",))).rows
    assert failed.headline == "Audit failed at the step drafting"
    assert failed.fault_probability is None  # an audit that found nothing out gives no estimate
    first = demo.cases.summary(demo_database.HALF_DECIDED)
    assert (first.state, first.reviewer) == ("needs_review", None)
    assert demo.team.work(Actor(name=REVIEWERS[0]), first.id).pending == 1
    assert demo.team.work(GRACE, first.id).decided_by == ()


def test_simulated_decisions_are_marked_blind_and_never_exported(
    demo: Workbench,
) -> None:
    made = simulated_decisions(demo)
    assert len(made) == demo.store.decisions.count_simulated() > 60
    assert {decision.reviewer for _, decision in made} == SIMULATED
    assert all(decision.machine_shown == () for _, decision in made)
    assert {entry.decision.verdict for entry, _ in made if entry.decision} == {
        *("approve", "override", "reject", "escalate")
    }
    settled = [decision.case_id for _, decision in made if decision.kind == "adjudication"]
    assert len(settled) >= 3
    # whoever looks at the demo decides alone
    assert demo.store.team.in_force(QueuePolicy).reviewers == 1
    decided = {decision.case_id for _, decision in made}
    assert not decided & {
        outcome.case["id"] for outcome in demo.store.outcomes.iterate(CaseFilter())
    }
    everything = demo.cases.count(CaseFilter())
    assert demo.exports.count(CaseFilter()) == everything - len(decided)
    (version,) = demo.store.datasets.list_all()
    assert (version.name, version.by) == (VERSION, DEMO.name)
    assert version.rows > 100
    assert version.manifest["provenance"]["reviewers"] == {}


def test_loading_the_demo_again_keeps_later_decisions(demo: Workbench) -> None:
    before = demo.reviews.individual(demo_database.HALF_DECIDED)
    (entry,) = before
    own = entry.decision.model_copy(
        update={"reviewer": "Grace", "token": None, "extra": {}, "about": None}
    )
    demo.reviews.submit(GRACE, own.model_copy(update={"policy": None}))
    log = demo.store.decisions.head().length
    assert fill_demo(demo, ADA) == (0, 0)
    assert demo.store.decisions.head().length == log
    assert demo.cases.summary(demo_database.HALF_DECIDED).state != "needs_review"


def test_figures_from_simulated_decisions_say_so(demo: Workbench) -> None:
    report = demo.trust.compare(ADA, TrustFilter())
    assert report.simulated >= report.answers.n > 20
    answers = short_answers(report, demo.trust.miss_report(ADA), demo.trust.watch())
    assert answers["Can answers be accepted without a person?"].startswith("No")
    assert "people found" not in " ".join(answers.values())
    assert "simulated reviewers found" in answers["How often is the audit right?"]


def test_the_demo_has_an_answer_audited_with_and_without_a_model(
    demo: Workbench,
) -> None:
    (case_id,) = demo_database.COMPARED
    newest, earlier = (demo.runs.get(run.id) for run in demo.runs.for_case(case_id))
    assert set(earlier.models.values()) == {"offline"}
    shown = dict(differing(earlier, newest).set_index("Setting")["Right"])
    assert "recorded replies" in shown["Model of the verifier"]


def test_the_demo_compares_two_systems_by_the_audit_alone(demo: Workbench) -> None:
    first, second = demo_database.SYSTEMS
    assert [system.name for system in demo.systems.all(ADA) if system.version] == [first, second]
    [comparison] = demo.comparison.compare(ADA, (first, second))
    counts = {name: comparison.list_questions(name)[1] for name in LIST_NAMES}
    assert counts == {"worse": 2, "better": 6, "both_wrong": 1, "both_right": 3}
    judged = [pair for name in LIST_NAMES for pair in comparison.list_questions(name)[0]]
    assert all(pair.first_audited and pair.second_audited for pair in judged)
    decided = {decision.case_id for _, decision in simulated_decisions(demo)}
    assert not decided & {case.id for case in demo_database.system_cases()}
    assert demo.preferences.progress(ADA).total == len(judged)


def test_the_description_of_a_demo_system_isnt_replaced_by_a_later_start(demo: Workbench) -> None:
    changed = SystemDetails(model="mine")
    demo.systems.describe(ADA, "candidate", changed)
    fill_demo(demo, ADA)
    assert demo.systems.get(ADA, "candidate").model == "mine"

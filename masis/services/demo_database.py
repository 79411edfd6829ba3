"""What ``masis demo`` fills its database with: cases in every state, audits, decisions, screenings,
a data set.

All of it is made by the services that people's work goes through. What is simulated says so
everywhere: in the reviewer's name and in ``extra["simulated"]`` of the decision. Exports leave it
out, and no guarantee counts it.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from masis.api.roles import pin_versions
from masis.datasets.exports.export import Selection
from masis.datasets.loading import read_cases
from masis.schema.actor import Actor
from masis.schema.calls import DEMO_REPLIES, REPLAY
from masis.schema.case import Case
from masis.schema.review import Decision, Verdict
from masis.schema.team import QueuePolicy
from masis.screening.demo import CORPUS, demo_questions
from masis.services.decision_rules import REASON_CODE, reason_text
from masis.services.records import CaseFilter
from masis.services.workbench import Workbench
from masis.settings import ROLES, Settings
from masis.version import app_root

DEMO = Actor(name="MASIS demo")
"""Who sets the policy that the simulated decisions are made under, and freezes the
dataset version.
"""
REVIEWERS = ("Simulated reviewer 1", "Simulated reviewer 2")
LEAD = "Simulated lead"
SIMULATED = {*REVIEWERS, LEAD}
NOT_AUDITED = ("law-05-honest-clean", "policy-05-clean")
"""Left for whoever looks at the demo to audit."""
_TO_REVIEW = ("finance-01-clean", "medicine-05-clean", "policy-03-overgeneral")
# on Trust
_TO_COMPARE = ("finance-02-altered", "finance-06-clean", "history-04-conflict", "strategy-02-clean")
OFFLINE = (*_TO_REVIEW, *_TO_COMPARE)
"""Audited by the offline checks alone, which leave their claims not confirmed."""
COMPARED = ("strategy-01-fabricated",)
"""Audited offline before the recorded replies audit them, so that two audits can be compared."""
ESCALATED = "environment-03-notext"
"""Escalated by both simulated reviewers: one of its chunks is an address without a text."""
HALF_DECIDED = "strategy-03-swapped"
"""Decided by the first of two reviewers: it waits for another one, to whom nothing of the first
verdict is shown.
"""
TO_ADJUDICATE = "medicine-06-overgeneral"
"""The simulated reviewers differ on it, and it is left for whoever looks at the demo to
adjudicate.
"""
SCREENED = {"pad": "offline", "ery": "", "del": "recorded"}
"""Questions on the demo abstracts that are screened, and who audits the case that what was kept is
handed over to: the offline checks, nobody (nothing is kept), or the recorded replies, which hold
none to it, so that the audit fails."""
VERSION = "audits-1"
"""The dataset version."""

_DECIDED = re.compile(r"-0[2467]-")
"""Cases that the simulated reviewers decide: these numbers of each subject, so that most are left
to review.
"""
MISTAKEN = 0.08
"""How often a simulated reviewer gives another verdict than the gold labels of a case."""

Planned = tuple[Case, Settings]
"""An audit to make: the case and the settings."""


def demo_case_files() -> list[Path]:
    """The files of the demo cases, by name."""
    return sorted((app_root() / "data" / "cases").glob("*.jsonl"))


def demo_cases() -> Iterable[Case]:
    """The demo cases, file by file."""
    for file in demo_case_files():
        yield from read_cases(file)


def recorded_settings(settings: Settings) -> Settings:
    """These settings with the demo's recorded replies in every role: what its cases are audited
    with.
    """
    return settings.model_copy(update=dict.fromkeys(ROLES, f"{REPLAY}{DEMO_REPLIES}"))


class FillResult(NamedTuple):
    """What was added to a demo's database: audits of demo cases, and simulated decisions."""

    audits: int
    decisions: int


def fill_demo(
    workbench: Workbench, actor: Actor, watched: Callable[[list[Planned]], Iterable[Planned]] = iter
) -> FillResult:
    """Add what a demo's database lacks: seconds the first time, then nothing. No model is called.

    ``watched`` passes on the audits to make, one after the other, and may show how far they have
    come.
    """
    workbench.cases.add(actor, demo_cases())
    workbench.corpora.add_demo(actor)
    audits = [
        each for each in _planned_audits(workbench.settings) if workbench.audits.is_needed(*each)
    ]
    for case, settings in watched(audits):
        workbench.audits.audit(actor, case, settings=settings)
    _screen(workbench, actor)
    decisions = simulate_reviews(workbench)
    if not any(version.name == VERSION for version in workbench.store.datasets.list_all()):
        workbench.datasets.freeze(
            DEMO,
            VERSION,
            "claims",
            Selection(CaseFilter(states=("needs_review", "accepted"))),
            description=(
                "What the audits of the demo say about each claim of the answers that nobody has"
                " decided. No person has labelled them, and simulated decisions are in no data set."
            ),
        )
    return FillResult(len(audits), decisions)


def _planned_audits(settings: Settings) -> Iterator[Planned]:
    """Yield the audits of the demo cases; settings are as runs store them, else each start would
    audit again.
    """
    offline, recorded = pin_versions(settings), pin_versions(recorded_settings(settings))
    for case in demo_cases():
        if case.id in (*OFFLINE, *COMPARED):
            yield case, offline
        if case.id not in (*OFFLINE, *NOT_AUDITED):
            yield case, recorded


def _screen(workbench: Workbench, actor: Actor) -> None:
    """Screen questions on the demo abstracts that are not screened yet, and hand what was kept over
    to audits.
    """
    held = {each.id for each in workbench.store.screenings.newest(1_000)}
    for asked in (
        each for each in demo_questions() if each.id in SCREENED and f"demo-{each.id}" not in held
    ):
        settings = workbench.settings.model_copy(update={"screening_retrieve": asked.retrieve})
        screening = workbench.screenings.screen(
            actor,
            asked.question,
            (f"corpus:{CORPUS}",),
            settings=settings,
            screening_id=f"demo-{asked.id}",
        )
        if screening.kept and (who := SCREENED[asked.id]):
            case = workbench.screenings.hand_over(DEMO, screening.id)
            auditor = (
                recorded_settings(workbench.settings) if who == "recorded" else workbench.settings
            )
            workbench.audits.audit(actor, case, settings=auditor)


def simulate_reviews(workbench: Workbench) -> int:
    """Append simulated decisions, two a case, on demo cases that nobody has decided; returns how
    many.

    They follow the gold labels with a share of mistakes and are made blind. A simulated lead
    adjudicates where the two differ, but for one case. Once done, nothing is added.
    """
    policy = workbench.store.team.in_force(QueuePolicy)
    waiting = [case for case in demo_cases() if _may_simulate(workbench, case)]
    if not waiting:
        return 0
    before = workbench.store.decisions.count_simulated()
    with workbench.store.transaction():
        shared = {"reviewers": 2, "share": 1.0, "rule": "adjudicated", "machine": "never"}
        workbench.team.put_in_force(DEMO, policy.model_copy(update=shared))
        for case in waiting:
            for name in REVIEWERS[: 1 if case.id == HALF_DECIDED else 2]:
                workbench.reviews.submit(
                    Actor(name=name), _simulate_decision(workbench, case, name)
                )
            if (
                workbench.cases.summary(case.id).state == "needs_adjudication"
                and case.id != TO_ADJUDICATE
            ):
                final = _simulate_decision(workbench, case, LEAD).model_copy(
                    update={"kind": "adjudication"}
                )
                workbench.reviews.adjudicate(Actor(name=LEAD), final)
        workbench.team.put_in_force(DEMO, policy)
    return workbench.store.decisions.count_simulated() - before


def _may_simulate(workbench: Workbench, case: Case) -> bool:
    """Return whether a demo case is one to decide, has an audit, and neither a decision nor
    somebody at work on it.
    """
    named = case.id in (ESCALATED, HALF_DECIDED, TO_ADJUDICATE) or _DECIDED.search(case.id)
    if (
        not named
        or case.labels is None
        or not isinstance(case.labels.model_dump().get("clean"), bool)
    ):
        return False
    state = workbench.cases.summary(case.id).state
    return (
        state in ("needs_review", "accepted") and not workbench.store.team.work(case.id).decided_by
    )


def _simulate_decision(workbench: Workbench, case: Case, name: str) -> Decision:
    """Return what a simulated reviewer decides about the original answer of a case."""
    labels: dict[str, Any] = case.labels.model_dump() if case.labels else {}
    draws = random.Random(f"{name}:{case.id}")
    mistaken = draws.random() < MISTAKEN and name != LEAD
    if case.id == TO_ADJUDICATE:
        mistaken = name == REVIEWERS[0]
    sound = bool(labels["clean"]) != mistaken
    verdict: Verdict = "approve" if sound else "reject"
    if case.id == ESCALATED:
        verdict = "escalate"
    corrected = labels.get("reference_answer")
    if verdict == "reject" and corrected and random.Random(case.id).random() < 0.5:
        verdict = "override"
    code = {"approve": "checked", "escalate": "needs_evidence"}.get(verdict) or _fault(labels)
    return Decision(
        reviewer=name,
        case_id=case.id,
        run_id=workbench.cases.summary(case.id).run_id,
        iteration=1,
        verdict=verdict,
        reason=reason_text(code),
        note="Simulated for the demo",
        corrected_answer=corrected if verdict == "override" else None,
        token=f"simulated:{case.id}:{name}",
        extra={
            "simulated": True,
            REASON_CODE: code,
            "seconds": round(draws.lognormvariate(4, 0.5), 1),
        },
    )


def _fault(labels: dict[str, Any]) -> str:
    """Return the code of the reason to reject an answer that its gold labels speak for."""
    verdicts = {claim["verdict"] for claim in labels["claims"]}
    if any(reference["status"] == "invalid" for reference in labels["citations"]):
        return "fabricated_citation"
    if "contradicted" in verdicts:
        return "contradicted"
    if verdicts & {"partial", "unsupported"} or labels["clean"]:
        return "unsupported"
    return "uncited" if not all(claim["cited"] for claim in labels["claims"]) else "incomplete"

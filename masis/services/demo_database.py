"""Fill the demo's database with cases in every state, audits and decisions.

Everything is created by the services that people use. Simulated decisions are marked by the
reviewer's name and by ``extra["simulated"]``, and exports and guarantees ignore them.
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
from masis.extensions import load_all
from masis.schema.actor import Actor
from masis.schema.case import Case
from masis.schema.model_ref import DEMO_REPLIES, REPLAY
from masis.schema.review import Decision, Verdict
from masis.schema.systems import SystemDetails
from masis.schema.team import QueuePolicy
from masis.services.decision_rules import REASON_CODE, reason_text
from masis.services.records import CaseFilter
from masis.services.workbench import Workbench
from masis.settings import ROLES, Settings
from masis.version import app_root

DEMO = Actor(name="MASIS demo")
"""The actor that sets the policy for the simulated decisions and freezes the dataset version."""
REVIEWERS = ("Simulated reviewer 1", "Simulated reviewer 2")
LEAD = "Simulated lead"
SIMULATED = {*REVIEWERS, LEAD}
NOT_AUDITED = ("law-05", "policy-05")
"""Cases that are left for the demo's viewer to audit."""
_TO_REVIEW = ("finance-01", "medicine-05", "policy-03")
# Shown on the Trust page.
_TO_COMPARE = ("finance-02", "finance-06", "history-04", "strategy-02")
OFFLINE = (*_TO_REVIEW, *_TO_COMPARE)
"""Cases that are audited only by the offline checks, which leave their claims unconfirmed."""
COMPARED = ("strategy-01",)
"""Cases with two audits to compare: one offline, and one with the recorded replies."""
ESCALATED = "environment-03"
"""A case that both simulated reviewers escalate, because one of its chunks has no text."""
HALF_DECIDED = "strategy-03"
"""A case that only one of two reviewers has decided."""
TO_ADJUDICATE = "medicine-06"
"""A case on which the simulated reviewers differ, for the demo's user to adjudicate."""
VERSION = "audits-1"
"""The name of the dataset version."""

_DECIDED = re.compile(r"-0[2467]$")
"""Cases that the simulated reviewers decide: these numbers of each subject, such as
``law-02``.

Most cases are left for review.
"""
SYSTEMS = {
    "baseline": SystemDetails(model="town-writer", version="1.4", date="2026-09"),
    "candidate": SystemDetails(model="town-writer", version="2.0", date="2026-11"),
}
"""The systems whose answers to the same questions are compared. Nobody decides them, and the
offline checks audit them.
"""
MISTAKEN = 0.08
"""How often a simulated reviewer's verdict differs from the gold labels."""

Planned = tuple[Case, Settings]
"""An audit to run: the case and the settings."""


def demo_case_files() -> list[Path]:
    """Return the files of the demo cases, by name."""
    return sorted((app_root() / "data" / "cases").glob("*.jsonl"))


def demo_cases() -> Iterable[Case]:
    """Yield the demo cases, file by file."""
    for file in demo_case_files():
        yield from read_cases(file)


def system_cases() -> Iterator[Case]:
    """Yield the answers of the demo's two systems to the same questions, the older system first."""
    for system in SYSTEMS:
        for case in read_cases(app_root() / "data" / "systems" / f"{system}.jsonl"):
            yield case.as_answer_of(system)


def recorded_settings(settings: Settings) -> Settings:
    """Return the settings with the demo's recorded replies in every role."""
    return settings.model_copy(update=dict.fromkeys(ROLES, f"{REPLAY}{DEMO_REPLIES}"))


class FillResult(NamedTuple):
    """The number of audits of demo cases and of simulated decisions that were added."""

    audits: int
    decisions: int


def fill_demo(
    workbench: Workbench, actor: Actor, watched: Callable[[list[Planned]], Iterable[Planned]] = iter
) -> FillResult:
    """Add what is missing in a demo's database, without calling a model.

    It takes seconds the first time and does nothing afterwards.

    Args:
        workbench: The workbench.
        actor: Who asks for it.
        watched: Passes on the audits to run one after another, and may show the progress.

    """
    workbench.cases.add(actor, demo_cases())
    if workbench.cases.add(actor, system_cases()).added:
        for name, details in SYSTEMS.items():
            workbench.systems.describe(DEMO, name, details)
    audits = [
        planned
        for planned in _planned_audits(workbench.settings)
        if workbench.audits.is_needed(*planned)
    ]
    for case, settings in watched(audits):
        workbench.audits.audit(actor, case, settings=settings)
    for add_demo_data in load_all("demo_data"):
        add_demo_data(workbench, actor)
    decisions = simulate_reviews(workbench)
    if not any(version.name == VERSION for version in workbench.store.datasets.list_all()):
        workbench.datasets.freeze(
            DEMO,
            VERSION,
            "claims",
            Selection(CaseFilter(states=("needs_review", "accepted"))),
            description=(
                "The verdicts of the demo's audits on each claim of the undecided answers. No"
                " person has labeled them, and data sets leave out simulated decisions."
            ),
        )
    return FillResult(len(audits), decisions)


def _planned_audits(settings: Settings) -> Iterator[Planned]:
    """Yield the audits of the demo cases.

    Their settings are pinned as runs store them, because otherwise each start would audit again.
    """
    offline, recorded = pin_versions(settings), pin_versions(recorded_settings(settings))
    for case in demo_cases():
        if case.id in (*OFFLINE, *COMPARED):
            yield case, offline
        if case.id not in (*OFFLINE, *NOT_AUDITED):
            yield case, recorded
    for case in system_cases():
        yield case, offline


def simulate_reviews(workbench: Workbench) -> int:
    """Append two simulated decisions per case to undecided demo cases, and return how many were
    added.

    They follow the gold labels with a share of mistakes and are made blind. A simulated lead
    adjudicates the cases on which the two differ, except for one. Repeated calls add nothing.
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
        # Cases that were started keep the shared policy; the demo's user starts with the earlier
        # one.
        workbench.team.put_in_force(DEMO, policy)
    return workbench.store.decisions.count_simulated() - before


def _may_simulate(workbench: Workbench, case: Case) -> bool:
    """Return whether a demo case should get simulated decisions: it is audited and undecided."""
    is_chosen = case.id in (ESCALATED, HALF_DECIDED, TO_ADJUDICATE) or _DECIDED.search(case.id)
    if (
        not is_chosen
        or case.labels is None
        or not isinstance(case.labels.model_dump().get("clean"), bool)
    ):
        return False
    state = workbench.cases.summary(case.id).state
    return (
        state in ("needs_review", "accepted") and not workbench.store.team.work(case.id).decided_by
    )


def _simulate_decision(workbench: Workbench, case: Case, name: str) -> Decision:
    """Return a simulated reviewer's decision about the original answer of a case."""
    labels: dict[str, Any] = case.labels.model_dump() if case.labels else {}
    # Seeded by name and case, so that every demo is the same.
    draws = random.Random(f"{name}:{case.id}")
    mistaken = draws.random() < MISTAKEN and name != LEAD
    if case.id == TO_ADJUDICATE:
        mistaken = name == REVIEWERS[0]
    sound = bool(labels["clean"]) != mistaken
    verdict: Verdict = "approve" if sound else "reject"
    if case.id == ESCALATED:
        verdict = "escalate"
    corrected = labels.get("reference_answer")
    # Drawn by case only, so that both reviewers correct the same answers.
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
            # a median of e⁴ seconds, about 55
            "seconds": round(draws.lognormvariate(4, 0.5), 1),
        },
    )


def _fault(labels: dict[str, Any]) -> str:
    """Return the code of the reason to reject an answer, from its gold labels."""
    verdicts = {claim["verdict"] for claim in labels["claims"]}
    if any(reference["status"] == "invalid" for reference in labels["citations"]):
        return "fabricated_citation"
    if "contradicted" in verdicts:
        return "contradicted"
    if verdicts & {"partial", "unsupported"} or labels["clean"]:
        return "unsupported"
    return "uncited" if not all(claim["cited"] for claim in labels["claims"]) else "incomplete"

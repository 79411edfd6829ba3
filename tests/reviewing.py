"""Provide actors for tests, and submit decisions under their own names."""

from __future__ import annotations

from typing import Any

from masis.errors import UnknownRecord
from masis.schema.actor import Actor
from masis.schema.review import Decision, LogEntry
from masis.services import Workbench
from masis.services.decision_rules import kept_citations, seen_issues, seen_labels

ADA = Actor(name="Ada")


def submit(workbench: Workbench, decision: Decision) -> LogEntry:
    """Submit a decision as the reviewer it names, answering the questions of the page."""
    return workbench.reviews.submit(Actor(name=decision.reviewer), having_seen(workbench, decision))


def having_seen(workbench: Workbench, decision: Decision) -> Decision:
    """Return the decision with an acknowledgement of serious issues or of unknown references."""
    if decision.verdict not in ("approve", "override"):
        return decision
    answer = workbench.reviews.decided_answer(Actor(name=decision.reviewer), decision)
    seen = {}
    if decision.verdict == "approve":
        seen = seen_issues(answer.serious) | seen_labels(decision.labels)
    extra = decision.extra | seen | kept_citations(answer.unknown_citations)
    return decision.model_copy(update={"extra": extra})


def decide(
    workbench: Workbench,
    case_id: str,
    verdict: str = "approve",
    reviewer: str = "Ada",
    **given: Any,
) -> LogEntry:
    """Decide on the run that the case shows."""
    run = workbench.cases.open(case_id).run
    content = {
        "reviewer": reviewer,
        "case_id": case_id,
        "run_id": run.id if run else None,
        "verdict": verdict,
    }
    return submit(workbench, Decision.model_validate({**content, "reason": "read", **given}))


def undone(workbench: Workbench, case_id: str, reviewer: str) -> LogEntry:
    """Undo the current decision. Raises UnknownRecord if there is none."""
    current = workbench.reviews.current(case_id)
    if current is None:
        raise UnknownRecord(f"there is no decision on case {case_id!r}.")
    return workbench.reviews.undo(Actor(name=reviewer), current.id)

"""Who acts in tests, and decisions made under the name that they carry."""

from __future__ import annotations

from typing import Any

from masis.errors import UnknownRecord
from masis.schema.actor import Actor
from masis.schema.review import Decision, LogEntry
from masis.services import Workbench

ADA = Actor(name="Ada")


def submitted(workbench: Workbench, decision: Decision) -> LogEntry:
    """Submit a decision as the reviewer it names."""
    return workbench.reviews.submit(Actor(name=decision.reviewer), decision)


def decide(
    workbench: Workbench, case_id: str, verdict: str = "approve", reviewer: str = "Ada", **given: Any
) -> LogEntry:
    """Decide on the run that a case shows."""
    run = workbench.cases.open(case_id).run
    content = {"reviewer": reviewer, "case_id": case_id, "run_id": run.id if run else None, "verdict": verdict}
    return submitted(workbench, Decision.model_validate({**content, "reason": "read", **given}))


def undone(workbench: Workbench, case_id: str, reviewer: str) -> LogEntry:
    """Undo the decision that stands. Raises UnknownRecord where there is none."""
    current = workbench.reviews.current(case_id)
    if current is None:
        raise UnknownRecord(f"there is no decision on case {case_id!r}.")
    return workbench.reviews.undo(Actor(name=reviewer), current.id)

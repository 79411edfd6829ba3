"""Cases with issues and notes, for tests of failure modes."""

from __future__ import annotations

from typing import Any

from masis.schema.actor import Actor
from masis.schema.audit import Issue
from masis.schema.codebook import CaseObservation, FailureMode
from masis.schema.labels import TargetLabel
from masis.schema.review import Decision, LogEntry
from masis.services import Workbench
from masis.services.records import ObservationFilter
from masis.store import Store
from tests.reviewing import submit
from tests.store.factories import a_case, a_run, an_iteration

ADA, BEN, CLEO = Actor(name="Ada"), Actor(name="Ben"), Actor(name="Cleo")
WRONG_DATE = FailureMode(code="wrong-date", name="Wrong date", definition="Names another day.")
WRONG_UNIT = FailureMode(code="wrong-unit", name="Wrong unit")


def an_issue(key: str = "key-1", rule: str = "contradicted_claim", **keys: Any) -> Issue:
    """Return a serious issue."""
    content = {
        "id": f"issue-{key}",
        "key": key,
        "source": "claims",
        "type": "contradiction",
        "rule": rule,
        "severity": "high",
        "description": "The evidence contradicts the year “1932”.",
        "reason": "It opened later.",
        "suggestion": "",
        "quote": "opened in 1932",
    }
    return Issue.model_validate(content | keys)


def add_audited(store: Store, case_id: str, *issues: Issue, run_id: str = "", **keys: Any) -> None:
    """Store a case with a finished run that found these issues."""
    case = a_case(case_id, **keys)
    store.cases.add(case)
    iteration = an_iteration().model_copy(update={"issues": issues})
    store.runs.finish(a_run(case, run_id or f"run-{case_id}", iterations=(iteration,)))


def reject(
    workbench: Workbench, case_id: str, actor: Actor = ADA, *labels: TargetLabel, **keys: Any
) -> LogEntry:
    """Reject the original answer of a case."""
    run = workbench.cases.open(case_id).run
    content = {
        "reviewer": actor.name,
        "case_id": case_id,
        "run_id": run.id if run else None,
        "verdict": "reject",
        "reason": "unsupported",
        "labels": labels,
    }
    return submit(workbench, Decision.model_validate(content | keys))


def a_label(label: str = "unsupported", note: str = "", **keys: Any) -> TargetLabel:
    """Return a reported issue on the first words of the answer of ``a_case``."""
    content = {
        "target": "span",
        "start": 0,
        "end": 13,
        "text": "It was opened",
        "label": label,
        "note": note,
        "severity": "high",
    }
    return TargetLabel.model_validate(content | keys)


def find_observations(
    workbench: Workbench, actor: Actor = ADA, **wanted: Any
) -> list[CaseObservation]:
    """Return the observations that a person finds, oldest first."""
    rows = workbench.modes.search(actor, ObservationFilter(**wanted, size=1000)).rows
    return list(reversed(rows))


def texts(workbench: Workbench, actor: Actor = ADA, **wanted: Any) -> list[str]:
    """Return the texts that a person finds, oldest first."""
    return [row.text for row in find_observations(workbench, actor, **wanted)]

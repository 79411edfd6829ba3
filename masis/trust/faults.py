"""Who finds planted faults: what the audit and a reviewer made of one, and how often each finds
them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Literal, NamedTuple

from masis.schema.faults import FAULT_KINDS, FaultKind, PlantedFault
from masis.schema.review import Decision
from masis.schema.run import Run
from masis.trust.agreement import AgreementEstimate, share

AuditOutcome = Literal["flagged", "left_to_people", "accepted"]
"""What an audit made of a planted fault: it flagged the words, flagged others or none and left the
answer to people, or accepted the answer unread."""

NEUTRAL_RULES = frozenset({"unverifiable_claim", "unscored_claim", "uncited_sentence"})
"""Rules whose issues say nothing against the words they are about."""


def audit_outcome(run: Run, fault: PlantedFault) -> AuditOutcome | None:
    """Return what an audit made of a planted fault; None where it read no answer."""
    if not run.iterations:
        return None
    original = run.iterations[0]
    for issue in original.issues:
        if issue.rule not in NEUTRAL_RULES and _overlaps_fault(issue.start, issue.end, fault):
            return "flagged"
    for check in original.claims:
        at = check.claim.start
        for figure in check.figures if at is not None else ():
            if at is not None and _overlaps_fault(
                at + figure.claim_start, at + figure.claim_end, fault
            ):
                return "flagged"
    return "left_to_people" if run.needs_review else "accepted"


def _overlaps_fault(start: int | None, end: int | None, fault: PlantedFault) -> bool:
    return start is not None and end is not None and start < fault.end and fault.start < end


def reviewer_found(decision: Decision, fault: PlantedFault) -> bool | None:
    """Return whether a decision shows that its reviewer found a planted fault; None where it
    decides nothing.

    They found it where they rejected the answer, corrected the sentence, or reported an issue in
    the words. A correction that leaves the sentence as it was has not found it.
    """
    if decision.verdict == "escalate" or decision.verdict is None:
        return None
    if decision.verdict == "reject":
        return True
    if any(_overlaps_fault(label.start, label.end, fault) for label in decision.reported):
        return True
    if decision.verdict == "override":
        corrected = " ".join((decision.corrected_answer or "").split())
        return " ".join(fault.sentence.split()) not in corrected
    return False


class Recall(NamedTuple):
    """How many of the planted faults were found: in all, and by kind, as the share with its exact
    95% interval.
    """

    total: AgreementEstimate
    by_kind: Mapping[FaultKind, AgreementEstimate]
    found: int


def recall_of(outcomes: Iterable[tuple[FaultKind, bool]]) -> Recall:
    """Return the recall over planted faults, each with whether it was found."""
    found: dict[FaultKind, list[bool]] = {}
    for kind, hit in outcomes:
        found.setdefault(kind, []).append(hit)
    every = [hit for hits in found.values() for hit in hits]
    by_kind = {kind: share(found[kind]) for kind in FAULT_KINDS if kind in found}
    return Recall(share(every), by_kind, sum(every))

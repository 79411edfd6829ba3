"""Measure how often the audit and reviewers find planted faults."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Literal, NamedTuple

from masis.schema.faults import FAULT_KINDS, FaultKind, PlantedFault
from masis.schema.review import Decision
from masis.schema.run import Run
from masis.trust.agreement import AgreementEstimate, share

AuditOutcome = Literal["flagged", "left_to_people", "accepted"]
"""The audit's result on a planted fault: it flagged the words, left the answer to people without
flagging them, or accepted the answer.
"""

NEUTRAL_RULES = frozenset({"unverifiable_claim", "unscored_claim", "uncited_sentence"})
"""Rules whose issues don't say that the words are wrong."""


def audit_outcome(run: Run, fault: PlantedFault) -> AuditOutcome | None:
    """Return the audit's result on a planted fault, or None if it read no answer."""
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
    """Return whether a decision shows that its reviewer found a planted fault.

    The reviewer found it if they rejected the answer, corrected the sentence, or reported an issue
    in the words. A correction that leaves the sentence unchanged doesn't count. The result is None
    for an escalation and for entries without a verdict.
    """
    if decision.verdict == "escalate" or decision.verdict is None:
        return None
    if decision.verdict == "reject":
        return True
    if any(_overlaps_fault(label.start, label.end, fault) for label in decision.reported):
        return True
    if decision.verdict == "override":
        # Compare without line breaks and repeated blanks, which an editor may change.
        corrected = " ".join((decision.corrected_answer or "").split())
        return " ".join(fault.sentence.split()) not in corrected
    return False


class Recall(NamedTuple):
    """The share of planted faults that were found, in total and by kind, with exact intervals."""

    total: AgreementEstimate
    by_kind: Mapping[FaultKind, AgreementEstimate]
    found: int


def recall_of(outcomes: Iterable[tuple[FaultKind, bool]]) -> Recall:
    """Return the recall over planted faults, given as (kind, whether it was found)."""
    hits: dict[FaultKind, list[bool]] = {}
    for kind, hit in outcomes:
        hits.setdefault(kind, []).append(hit)
    all_hits = [hit for of_kind in hits.values() for hit in of_kind]
    by_kind = {kind: share(hits[kind]) for kind in FAULT_KINDS if kind in hits}
    return Recall(share(all_hits), by_kind, sum(all_hits))

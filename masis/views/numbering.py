"""Numbers the issues of an answer: the gravest is number 1 wherever issues are listed.

The functions are pure. Issues about the same words share a number, because a reader sees them as
one.
"""

from __future__ import annotations

from typing import get_args

from masis.schema.audit import ClaimCheck, Contradiction, Issue
from masis.schema.case import Severity
from masis.schema.issue_groups import about_same_words
from masis.schema.rules import KINDS, RULES
from masis.schema.run import Iteration

SEVERITIES = get_args(Severity)

LONGEST_VALUE = 40
"""Longest value in characters that a headline shows beside another one."""

CLAIM_RULES = {
    "contradicted_claim",
    "unsupported_claim",
    "partly_supported_claim",
    "unverifiable_claim",
    "unscored_claim",
    "misattributed_reference",
    "redundant_reference",
}
"""Rules whose issues are about a claim, so that the issue and the claim have the same offsets."""


def numbered_issues(iteration: Iteration) -> list[list[Issue]]:
    """Return the issues of an answer by number: the first list has those of number 1.

    Numbers follow the severity, then the kind as in the headline, then the place in the answer. In
    a list, the issue that names it is first.
    """
    claims = {(check.claim.start, check.claim.end): check for check in iteration.claims}
    after_all = len(iteration.answer) + 1

    def claim_of(issue: Issue) -> ClaimCheck | None:
        return claims.get((issue.start, issue.end)) if issue.rule in CLAIM_RULES else None

    def weight(issue: Issue) -> tuple[int, bool, int, int]:
        # Ordered by the end of the span, where the answer shows the number. If two spans end
        # together, the narrower one is first.
        placed = issue.start is not None and issue.end is not None
        start, end = (issue.start, issue.end) if placed else (0, after_all)
        return (*gravity_key(issue, claim_of(issue)), end or 0, -(start or 0))

    groups = [sorted(group, key=weight) for group in about_same_words(raised_issues(iteration))]
    return sorted(groups, key=lambda group: (worst_of(group), weight(group[0])))


def worst_of(group: list[Issue]) -> int:
    """Return the place of a group's worst severity in ``SEVERITIES``; 0 is the gravest."""
    return min(SEVERITIES.index(issue.severity) for issue in group)


def raised_issues(iteration: Iteration) -> tuple[Issue, ...]:
    """Return the issues of an answer.

    If the critic names conflicting sources without raising an issue, each conflict is added as an
    issue of low severity.
    """
    if any(issue.rule == "source_conflict" for issue in iteration.issues):
        return iteration.issues
    named = (
        Issue(
            id=f"conflict-{number}",
            key=f"conflict-{number}",
            source="critic",
            type="contradiction",
            rule="source_conflict",
            severity="low",
            description="The critic names sources that disagree. Check whether the answer mentions"
            " it.",
            reason=conflict,
            suggestion="",
        )
        for number, conflict in enumerate(iteration.critique.conflicting_evidence, 1)
    )
    return (*iteration.issues, *named)


def kind_beyond_checks(issue: Issue) -> str:
    """Return the kind of an issue that citation and claim checks don't report, or ""."""
    rule = RULES.get(issue.rule)
    if rule is not None and not rule.has_own_line:
        return rule.kind
    if issue.source == "checks":
        return "check" if issue.major else "minor_check"
    if issue.source == "critic":
        return "safety" if issue.type == "safety" else "serious" if issue.major else "minor"
    return ""


def headline_kind(issue: Issue) -> str:
    """Return the kind under which a headline counts an issue."""
    rule = RULES.get(issue.rule)
    return kind_beyond_checks(issue) or (rule.kind if rule else "uncertified")


def gravity_key(issue: Issue, check: ClaimCheck | None) -> tuple[int, bool]:
    """Return the sort key that puts the headline's issue first.

    ``check`` is the check of its claim.
    """
    return [*KINDS].index(headline_kind(issue)), check is not None and not has_short_values(check)


def has_short_values(check: ClaimCheck) -> bool:
    """Return whether a contradiction of the claim is short enough to see at a glance."""
    return any(has_two_short_values(contradiction) for contradiction in check.contradictions)


def has_two_short_values(contradiction: Contradiction) -> bool:
    """Return whether both sides are figures, dates or names short enough to show side by side."""
    return (
        contradiction.kind not in ("stated", "source")
        and len(contradiction.claim_text) <= LONGEST_VALUE
        and len(contradiction.evidence_text) <= LONGEST_VALUE
    )

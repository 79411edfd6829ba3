"""Scores a critique or a revision against labels, from 0 to 1, with feedback on how to improve it.

The score of a critique is the harmonic mean of precision and recall. Each issue matches at most one
labelled fault. An issue of another kind counts half. An issue whose quote is much longer than the
fault doesn't count, so that quoting everything isn't rewarded. For a clean answer, no issues score
1, and one issue scores a third. Issues that the citation audit finds by itself are optional.

A revision is scored by the faults it removes and the correct content it keeps. A fabricated
citation halves the score (MASIS-CRITIC-P3).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from masis.api.audits import audit_citations
from masis.audit.text.quotes import locate_quote
from masis.integrations.dspy.labelled import ExpectedFault, LabelledAnswer
from masis.schema.audit import Issue
from masis.schema.rules import CRITIC_LOOP_TYPE

NAME = "labelled-faults/1"
OTHER_KIND = 0.5
"""The credit for an issue that quotes the right words but names another kind of fault."""
LOOSEST = 4
"""The longest quote, as a multiple of the fault's length. Quotes of up to ``SHORTEST`` characters
are always allowed.
"""
SHORTEST = 60
_FAMILY: dict[str, tuple[str, ...]] = {
    **{kind: (family,) for kind, family in CRITIC_LOOP_TYPE.items()},
    **{family: (family,) for family in CRITIC_LOOP_TYPE.values()},
    "source_conflict": ("factual", "missing_info"),
    "overgeneral": ("factual", "missing_info"),
    "fabricated_citation": ("factual",),
    "misattributed": ("factual",),
    "uncited": ("factual",),
    "redundant": ("ambiguity", "factual"),
}
_ANY_KIND = "changed"


class GradedPrediction(NamedTuple):
    """A score with feedback that a model can learn from."""

    score: float
    feedback: str


def of_critique(
    case: LabelledAnswer, issues: Sequence[Issue], unscored: str | None
) -> GradedPrediction:
    """Score how well a critic's issues match the labelled faults of the answer."""
    if unscored is not None:
        return GradedPrediction(0.0, f"There was no critique: {unscored}")
    pairs = _pair_issues(case.expected, issues)
    allowed = {issue for issue, expected, _ in pairs if not case.expected[expected].required}
    counted = [position for position in range(len(issues)) if position not in allowed]
    required = [position for position, fault in enumerate(case.expected) if fault.required]
    worth = {issue: credit for issue, expected, credit in pairs if expected in required}
    words = _feedback_text(case, issues, pairs)
    if not required:
        return GradedPrediction(1.0 / (1 + 2 * len(counted)) if counted else 1.0, words)
    earned = sum(worth.values())
    precision, recall = (earned / len(counted) if counted else 0.0), earned / len(required)
    return GradedPrediction(2 * precision * recall / (precision + recall) if earned else 0.0, words)


def of_revision(case: LabelledAnswer, revised: str | None) -> GradedPrediction:
    """Score how many faults a revision removes and how much correct content it keeps."""
    if not revised:
        return GradedPrediction(0.0, "There was no revision.")
    kept = [text for text in case.right if locate_quote(text, revised) is not None]
    gone = [text for text in case.wrong if locate_quote(text, revised) is None]
    shares = [
        len(achieved) / len(intended)
        for achieved, intended in ((kept, case.right), (gone, case.wrong))
        if intended
    ]
    score = len(shares) / sum(1 / share for share in shares) if shares and all(shares) else 0.0
    invented = audit_citations(revised, case.evidence).invalid_citations
    lines = [
        (
            f"Kept {len(kept)} of {len(case.right)} right statements, and {len(gone)} of"
            f" {len(case.wrong)} faults went."
        )
    ]
    lines += [f"Still there: “{text}”" for text in case.wrong if text not in gone][:5]
    lines += [f"Lost though right: “{text}”" for text in case.right if text not in kept][:5]
    if invented:
        lines.append(f"Cites what is not there: {', '.join(invented[:5])}")
    return GradedPrediction(score * (0.5 if invented else 1.0), "\n".join(lines))


def _pair_issues(
    expected: Sequence[ExpectedFault], issues: Sequence[Issue]
) -> list[tuple[int, int, float]]:
    """Pair issues with faults, best credit first, as (index of issue, index of fault, credit).

    Each issue and each fault is in at most one pair.
    """
    fits = [
        (credit, fault.required, -at, -number)
        for at, issue in enumerate(issues)
        for number, fault in enumerate(expected)
        if (credit := _credit(fault, issue))
    ]
    pairs: list[tuple[int, int, float]] = []
    for credit, _, at, number in sorted(fits, reverse=True):
        if all(-at != issue and -number != fault for issue, fault, _ in pairs):
            pairs.append((-at, -number, credit))
    return pairs


def _credit(expected: ExpectedFault, issue: Issue) -> float:
    families = _FAMILY.get(expected.kind, ())
    same = expected.kind == _ANY_KIND or CRITIC_LOOP_TYPE[issue.type] in families
    if expected.span is None:
        return float(same)
    if issue.start is None or issue.end is None:
        return 0.0
    start, end = expected.span
    length, shared = issue.end - issue.start, min(end, issue.end) - max(start, issue.start)
    if (
        shared <= 0
        or 2 * shared < min(length, end - start)
        or length > max(LOOSEST * (end - start), SHORTEST)
    ):
        return 0.0
    return 1.0 if same else OTHER_KIND


def _feedback_text(
    case: LabelledAnswer, issues: Sequence[Issue], pairs: Sequence[tuple[int, int, float]]
) -> str:
    matches = {fault: (issues[issue].type, credit) for issue, fault, credit in pairs}
    lines = []
    if case.clean:
        lines.append("Nothing is wrong with this answer that a critic must say.")
    for number, fault in enumerate(case.expected):
        quoted = f"“{fault.words}”" if fault.words else "the answer as a whole"
        if number not in matches and fault.required:
            lines.append(f"Missed ({fault.kind}): {quoted}. {fault.description}")
        elif number in matches and matches[number][1] < 1:
            lines.append(
                f"Found, but called {matches[number][0]} rather than {fault.kind}: {quoted}."
                f" {fault.description}"
            )
    matched = {issue for issue, _, _ in pairs}
    for position, issue in enumerate(issues):
        if position not in matched:
            quoted = f"“{issue.quote}”" if issue.quote else "no words that are in the answer"
            lines.append(
                f"Raised without ground ({issue.type}), quoting {quoted}: {issue.description}"
            )
    return "\n".join(lines or ["Every fault was found, and nothing else raised."])

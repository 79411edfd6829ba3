"""Counts the directions of the kept studies, and whether they agree.

Directions are counted and effects aren't pooled, because an abstract seldom reports enough for
that. Cochrane's handbook (12.2.1.3) allows counting directions if effects can't be combined.
Agreement is a share of the studies that state a direction.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from masis.schema.screening import DIRECTIONS, Abstract, Direction, Grade, Outcome
from masis.screening.grading.directions import Finding, finding_of
from masis.screening.grading.study_identity import first_reports
from masis.screening.views.words import DIRECTION

AGREE_SHARE = 0.75
"""Studies agree if this share of those with a stated direction has the same one: 3 of 4 agree, 2 of
3 don't. The limit is our own.
"""

_COMPARED: tuple[Direction, ...] = ("effect", "no_clear_effect", "opposite")


class Synthesis(NamedTuple):
    """The findings of the kept studies, the best first, the number per direction, and agreement.

    ``agree`` is None if fewer than two adequate studies, or fewer than half of these, state an
    effect, none or the opposite. Studies that compared two treatments don't count for it.
    """

    findings: tuple[Finding, ...]
    counts: dict[Direction, int]
    agree: bool | None
    summary: str


def best_kept(grades: Iterable[Grade], abstracts: Mapping[str, Abstract]) -> list[Grade]:
    """Return the grades of the kept abstracts that are still in ``abstracts``, the best first."""
    kept = [
        grade
        for grade in grades
        if grade.recommendation == "keep" and grade.abstract_id in abstracts
    ]
    return sorted(kept, key=lambda grade: (-(grade.quality or 0.0), grade.abstract_id))


def synthesise(
    question: str, grades: Iterable[Grade], abstracts: Mapping[str, Abstract]
) -> Synthesis:
    """Return the findings of the kept abstracts, the best first, and whether they agree."""
    return synthesis_of(findings_of(question, best_kept(grades, abstracts), abstracts))


def findings_of(
    question: str, grades: Sequence[Grade], abstracts: Mapping[str, Abstract]
) -> list[Finding]:
    """Return the findings of these abstracts, and which of them report a study again."""
    reports = first_reports(grades)
    return [
        finding_of(question, grade, abstracts[grade.abstract_id])._replace(
            repeats=None if report == grade.abstract_id else report
        )
        for grade in grades
        for report in [reports[grade.abstract_id]]
    ]


def synthesis_of(findings: Iterable[Finding]) -> Synthesis:
    """Return how many of these findings have each direction, and whether they agree.

    A study that two abstracts report counts once. Only adequate studies can agree or conflict: a
    small study beside them changes neither.
    """
    findings_ = tuple(findings)
    studies = [finding for finding in findings_ if finding.repeats is None]
    counts: dict[Direction, int] = {
        name: sum(finding.direction == name for finding in studies) for name in DIRECTIONS
    }
    adequate = Counter(finding.direction for finding in studies if finding.adequate)
    stated = sum(adequate[name] for name in _COMPARED)
    largest = max(adequate[name] for name in _COMPARED)
    agree = None if stated < 2 else largest >= AGREE_SHARE * stated
    # Too many directions weren't read to say that all agree. A conflict among the others remains.
    if agree and 2 * stated < adequate.total():
        agree = None
    summary = _direction_summary(counts, stated, adequate.total(), agree)
    return Synthesis(findings_, counts, agree, summary)


def settled_outcome(synthesis: Synthesis) -> Outcome:
    """Return the outcome of enough evidence: sufficient, or conflicting if the studies disagree."""
    return "conflicting" if synthesis.agree is False else "sufficient"


def _direction_summary(
    counts: dict[Direction, int], stated: int, adequate: int, agree: bool | None
) -> str:
    counts_text = ", ".join(
        f"{counts[name]} {DIRECTION[name].text}" for name in DIRECTIONS if counts[name]
    )
    if not counts_text:
        return "No abstract is kept, so there is no direction to count."
    if agree is None:
        missing = (
            "Fewer than two adequate studies state an effect, none or the opposite."
            if stated < 2
            else f"Only {stated} of {adequate} adequate studies state an effect, none or the"
            " opposite, so it's open whether the kept studies agree."
        )
        return f"Direction of effect: {counts_text}. {missing}"
    agreement = f"{AGREE_SHARE:.0%} of the {stated} adequate studies with a stated direction agree"
    return f"Direction of effect: {counts_text}. " + (
        f"At least {agreement}." if agree else f"Fewer than {agreement}, so they conflict."
    )

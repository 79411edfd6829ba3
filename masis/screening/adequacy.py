"""Is the study large enough to be plausible? From what was counted and what its design needs.

The sizes are ``rubric.ADEQUATE_SIZE``. None where size says nothing (one case, a review without a search), where none
is stated, or where the design is unknown: a number nobody gave is not a small number.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from masis.schema.screening import Abstract, Design, Reason, SampleSize, Words
from masis.screening import rubric

_STUDIES = frozenset(
    """study studies trial trials rct rcts article articles paper papers publication publications report reports
    cohort cohorts review reviews""".split()
)
_REVIEWS: frozenset[Design] = frozenset({"meta_analysis", "systematic_review"})


class Adequate(NamedTuple):
    """Whether the size is adequate, None where it can't be said; and why."""

    value: bool | None
    reason: Reason


def adequate(
    abstract: Abstract, design: Design | None, sizes: Sequence[SampleSize], study_size: SampleSize | None
) -> Adequate:
    """Whether this many are plausible for this design. ``study_size`` is the size that the study rests on."""
    if design is None:
        return Adequate(None, Reason(text="The design is not known, and with it the size it needs."))
    needed = rubric.ADEQUATE_SIZE[design]
    if needed.least is None:
        return Adequate(None, Reason(text=f"Size says nothing here: {needed.source}."))
    if design in _REVIEWS:
        return _of_review(abstract, sizes, study_size, needed.least, needed.source)
    if study_size is None:
        return Adequate(None, Reason(text=f"No number of {needed.of} is stated."))
    counted = _whole(study_size, sizes)
    return _judged(abstract, counted, (study_size,), needed.least, needed.of, needed.source)


def _of_review(
    abstract: Abstract, sizes: Sequence[SampleSize], study_size: SampleSize | None, least: int, source: str
) -> Adequate:
    """A review by its studies; where it names too few or none, by its participants."""
    stated = sizes if study_size is None else (study_size, *sizes)
    studies = [size for size in stated if _is_studies(size)]
    people = [size for size in stated if not _is_studies(size)]
    most = max(people, key=lambda size: size.value, default=None)
    enough_people = most is not None and most.value >= rubric.OPTIMAL_INFORMATION
    if studies and (studies[0].value >= least or not enough_people):
        return _judged(abstract, studies[0].value, (studies[0],), least, "studies", source)
    if most is None:
        return Adequate(None, Reason(text="Neither a number of studies nor of participants is stated."))
    return _judged(
        abstract, most.value, (most,), rubric.OPTIMAL_INFORMATION, "participants", "GRADE, optimal information size"
    )


def _is_studies(size: SampleSize) -> bool:
    words = size.unit.lower().split()
    return bool(words) and words[-1] in _STUDIES


def _whole(stated: SampleSize, sizes: Sequence[SampleSize]) -> int:
    """The whole study's size from the size it rests on: "48 per group" are at least two groups."""
    if stated.kind != "arm":
        return stated.value
    arms = [size.value for size in sizes if size.kind == "arm" and not _is_studies(size)]
    return sum(arms) if len(arms) > 1 else 2 * stated.value


def _judged(
    abstract: Abstract, counted: int, sizes: Sequence[SampleSize], least: int, of: str, source: str
) -> Adequate:
    enough = counted >= least
    text = f"{counted:,} {of}, {'at least' if enough else 'fewer than'} the {least:,} that are plausible ({source})."
    words = tuple(Words(start=s.start, end=s.end, text=abstract.text[s.start : s.end]) for s in sizes)
    return Adequate(enough, Reason(text=text, words=words))

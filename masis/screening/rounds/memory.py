"""The acceptance memory: which designs were accepted, at what quality, in which round; and what
follows from it.

A screening that ends as sufficient leaves one entry for each abstract that it kept in its last
round. Where memory is switched on (``screening_memory``, off by default), a later screening's
required averages move by

    shift = - mean over the newest entries of (quality - the average that was required of them) / 2

that is, less is required where accepted abstracts were well above the requirement, so that
decisions converge faster, and more where they were below it. The shift is at most
``screening_memory_bound`` (0.05, one step of the decay, AESOP-DECAY) either way; no round ever asks
less than ``screening_required_least``; designs that support no conclusion are left out, so that
case series never soften anything; and nothing moves before ``rubric.MEMORY_NEEDS`` entries. Every
screening records the thresholds it used and why.

Where memory, or the requirement that falls by round, decided a round, the screening says so. A
threshold decides a round exactly where its consensus is sufficient and the average of what is kept
lies between the requirement it had and the one it is compared with: without a consensus nothing
suffices, and an average that reaches both, or neither, is ruled on alike. What the rules keep
averages anything from ``rubric.KEEP_QUALITY`` (0.45) to 1, so that such averages occur on both
sides of every requirement; ``tests/screening/test_memory.py`` goes through all of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean
from typing import NamedTuple

from masis.schema.screening import AcceptedStudy, Round, Screening, Sufficiency, Thresholds
from masis.screening.grading import rubric
from masis.screening.rounds.ruling import make_ruling, thresholds_of
from masis.settings import Settings

NEWEST = 200
"""How many entries count: what was accepted long ago says little about today."""
_SHARE = 0.5


def acceptances(screening: Screening) -> tuple[AcceptedStudy, ...]:
    """Return the acceptances of a screening: what the sufficient round kept; nothing for an
    insufficient one.
    """
    enough = next((each for each in screening.rounds if each.ruling.decision == "sufficient"), None)
    if screening.decision != "sufficient" or enough is None:
        return ()
    return tuple(
        AcceptedStudy(
            study_type=grade.study_type,
            design=grade.design,
            quality=grade.quality,
            round=enough.number,
            required=enough.ruling.required_average,
            screening_id=screening.id,
            at=screening.finished_at,
        )
        for grade in screening.grades
        if grade.abstract_id in enough.retrieved
        and grade.recommendation == "keep"
        and grade.quality is not None
    )


class Shift(NamedTuple):
    """By how much memory moves the required averages (negative asks less), and why, in
    a sentence.
    """

    by: float
    why: str


def shift(entries: Sequence[AcceptedStudy], bound: float) -> Shift:
    """Return the shift of the required averages that follows from these acceptances, before the
    limit of single rounds.
    """
    conclusive = [
        entry
        for entry in entries
        if entry.design is not None and rubric.HIERARCHY[entry.design].concludes
    ]
    if len(conclusive) < rubric.MEMORY_NEEDS:
        return Shift(
            0.0,
            f"{len(conclusive)} acceptances, fewer than the {rubric.MEMORY_NEEDS} that memory"
            " needs.",
        )
    newest = conclusive[-NEWEST:]
    above = fmean(entry.quality - entry.required for entry in newest)
    moved = max(-bound, min(bound, -_SHARE * above))
    distance = f"were {abs(above):.3f} {'above' if above >= 0 else 'below'} the required average"
    return Shift(round(moved, 6), f"The newest {len(newest)} acceptances {distance} on average.")


def adapt_thresholds(settings: Settings, entries: Sequence[AcceptedStudy]) -> Thresholds:
    """Return the thresholds of a new screening: the settings' own, moved by memory where it is
    switched on.
    """
    own = thresholds_of(settings)
    if not settings.screening_memory:
        return own
    found = shift(entries, settings.screening_memory_bound)
    least = min(settings.screening_required_least, *own.required_average)
    moved = tuple(round(min(1.0, max(least, each + found.by)), 6) for each in own.required_average)
    before = own.required_average if moved != own.required_average else ()
    return own.model_copy(
        update={
            "required_average": moved,
            "adapted_by": found.by,
            "adapted_why": found.why,
            "own_average": before,
        }
    )


def threshold_effects(rounds: Sequence[Round], thresholds: Thresholds) -> tuple[str, ...]:
    """Return a sentence for each round that the memory, or the falling requirement, decided; mostly
    none.

    Rounds after the first that sufficed are left out: the search had ended.
    """
    own = thresholds.before_memory
    level = own.model_copy(update={"required_average": own.required_average[:1]})
    effects: list[str] = []
    for each in rounds:
        ruling, without = each.ruling, own.average_required_in(each.number)
        enough, average = ruling.decision == "sufficient", f"{ruling.average or 0:.3f}"
        if _sufficiency_again(each, own) != ruling.decision:
            how, then = (
                ("reaches", "have been required") if enough else ("is under", "have sufficed")
            )
            effects.append(
                f"The acceptance memory decided round {each.number}: the kept average {average}"
                f" {how} {ruling.required_average:.3f}; without memory {without:.3f} would {then}."
            )
        if _sufficiency_again(each, level) != _sufficiency_again(each, own):
            effects.append(
                f"The requirement that falls by round decided round {each.number}: the kept average"
                f" {average} reaches {without:.3f}, not the"
                f" {own.average_required_in(0):.3f} of "
                f"the first round."
            )
        if enough:
            break
    return tuple(effects)


def _sufficiency_again(each: Round, thresholds: Thresholds) -> Sufficiency:
    found = each.ruling
    return make_ruling(
        found.tally,
        found.average,
        each.number,
        thresholds,
        studies=found.studies,
        enough_alone=found.enough_alone,
    ).decision

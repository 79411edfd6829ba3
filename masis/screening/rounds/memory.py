"""Adapts the required averages to the quality of abstracts that earlier screenings accepted.

A screening that ends as sufficient stores one entry for each abstract that it kept in its last
round. If memory is on (``screening_memory``, off by default), the required averages of later
screenings move by

    shift = - mean over the newest entries of (quality - the average that was required of them) / 2

If accepted abstracts were well above the requirement, it falls, so that screenings end earlier. If
they were below it, it rises. The shift has these limits:

- It is at most ``screening_memory_bound`` (0.05, one step of the decay, AESOP-DECAY) up or down.
- A required average doesn't fall below ``screening_required_least``.
- Designs that support no conclusion are left out, so that case series can't lower a requirement.
- With fewer than ``rubric.MEMORY_NEEDS`` entries there is no shift.

Each screening records the thresholds that it used, and the reason.

A screening also reports each round whose ruling depended on memory or on the requirement that
falls by round. That is so if the consensus is sufficient and the average of the kept abstracts
lies between the two requirements that are compared. Without a consensus no average suffices, and
an average above or below both gives the same ruling. Kept abstracts can average anything from
``rubric.KEEP_QUALITY`` (0.45) to 1, so such averages occur on both sides of every requirement.
``tests/screening/test_memory.py`` checks all of them.
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
"""How many entries count. Older ones say little about the abstracts that are accepted today."""
_SHARE = 0.5  # The division by 2 in the formula above.


def acceptances(screening: Screening) -> tuple[AcceptedStudy, ...]:
    """Return an entry for each abstract kept in the sufficient round; none without such a round."""
    sufficient_round = next(
        (finished for finished in screening.rounds if finished.ruling.decision == "sufficient"),
        None,
    )
    if screening.decision != "sufficient" or sufficient_round is None:
        return ()
    return tuple(
        AcceptedStudy(
            study_type=grade.study_type,
            design=grade.design,
            quality=grade.quality,
            round=sufficient_round.number,
            required=sufficient_round.ruling.required_average,
            screening_id=screening.id,
            at=screening.finished_at,
        )
        for grade in screening.grades
        if grade.abstract_id in sufficient_round.retrieved
        and grade.recommendation == "keep"
        and grade.quality is not None
    )


class Shift(NamedTuple):
    """The change of the required averages (negative lowers them), and the reason in a sentence."""

    by: float
    why: str


def shift(entries: Sequence[AcceptedStudy], bound: float) -> Shift:
    """Return the shift that follows from these acceptances, at most ``bound`` up or down."""
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
    # Each quality is compared with the average required in its own round, which differs by round.
    newest = conclusive[-NEWEST:]
    mean_excess = fmean(entry.quality - entry.required for entry in newest)
    change = max(-bound, min(bound, -_SHARE * mean_excess))
    side = "above" if mean_excess >= 0 else "below"
    distance = f"were {abs(mean_excess):.3f} {side} the required average"
    return Shift(round(change, 6), f"The newest {len(newest)} acceptances {distance} on average.")


def adapt_thresholds(settings: Settings, entries: Sequence[AcceptedStudy]) -> Thresholds:
    """Return the thresholds of a new screening: those of the settings, shifted if memory is on."""
    thresholds = thresholds_of(settings)
    if not settings.screening_memory:
        return thresholds
    change = shift(entries, settings.screening_memory_bound)
    # A setting may require less than the general minimum, and memory must not raise it.
    minimum = min(settings.screening_required_least, *thresholds.required_average)
    averages = tuple(
        round(min(1.0, max(minimum, average + change.by)), 6)
        for average in thresholds.required_average
    )
    own_average = thresholds.required_average if averages != thresholds.required_average else ()
    return thresholds.model_copy(
        update={
            "required_average": averages,
            "adapted_by": change.by,
            "adapted_why": change.why,
            "own_average": own_average,
        }
    )


def threshold_effects(rounds: Sequence[Round], thresholds: Thresholds) -> tuple[str, ...]:
    """Return a sentence for each round whose ruling depended on memory or on the falling average.

    Mostly there is none. Rounds after the first sufficient one are left out, because the search had
    ended by then.
    """
    without_memory = thresholds.before_memory
    # The same thresholds without the decay: the average of the first round is required in all.
    without_decay = without_memory.model_copy(
        update={"required_average": without_memory.required_average[:1]}
    )
    effects: list[str] = []
    for finished in rounds:
        ruling, average_without_memory = (
            finished.ruling,
            without_memory.average_required_in(finished.number),
        )
        is_sufficient, average = (
            ruling.decision == "sufficient",
            f"{ruling.decisive_average or 0:.3f}",
        )
        if _sufficiency_under(without_memory, finished) != ruling.decision:
            comparison, alternative = (
                ("reaches", "have been required")
                if is_sufficient
                else ("is under", "have sufficed")
            )
            effects.append(
                f"The acceptance memory decided round {finished.number}: the kept average {average}"
                f" {comparison} {ruling.required_average:.3f}; without memory"
                f" {average_without_memory:.3f} would {alternative}."
            )
        if _sufficiency_under(without_decay, finished) != _sufficiency_under(
            without_memory, finished
        ):
            effects.append(
                f"The requirement that falls by round decided round {finished.number}: the kept"
                f" average {average} reaches {average_without_memory:.3f}, not the"
                f" {without_memory.average_required_in(0):.3f} of "
                f"the first round."
            )
        if is_sufficient:
            break
    return tuple(effects)


def _sufficiency_under(thresholds: Thresholds, finished: Round) -> Sufficiency:
    """Return the decision of a finished round if these thresholds had applied."""
    ruling = finished.ruling
    return make_ruling(
        ruling.tally,
        ruling.average,
        finished.number,
        thresholds,
        studies=ruling.studies,
        enough_alone=ruling.enough_alone,
        best=ruling.best_average,
    ).decision

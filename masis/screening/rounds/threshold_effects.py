"""Says when the acceptance memory, or the requirement that falls by round, decided a round: pure functions.

A threshold decides a round exactly where its consensus is sufficient and the average of what is kept lies between the
requirement it had and the one it is compared with: without a consensus nothing suffices, and an average that reaches
both, or neither, is ruled on alike. What the rules keep averages anything from ``rubric.KEEP_QUALITY`` (0.45) to 1, so
that such averages occur on both sides of every requirement; ``tests/screening/test_threshold_effects.py`` goes through
all of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from masis.schema.screening import Round, Ruling, Thresholds
from masis.screening.rounds.ruling import decided


def threshold_effects(rounds: Sequence[Round], thresholds: Thresholds) -> tuple[str, ...]:
    """Return a sentence for each round that the memory, or the falling requirement, decided; mostly none.

    Rounds after the first that sufficed are left out: the search had ended.
    """
    return tuple(each for number in _ruled(rounds) for each in _of_round(number, thresholds))


def _ruled(rounds: Sequence[Round]) -> Iterable[Round]:
    for each in rounds:
        yield each
        if each.ruling.decision == "sufficient":
            return


def _of_round(each: Round, thresholds: Thresholds) -> Iterable[str]:
    ruling = each.ruling
    if ruling.consensus != "sufficient" or ruling.average is None:
        return
    own = thresholds.before_memory
    if _ruled_by(each, own).decision != ruling.decision:
        without = own.required(each.number)
        if ruling.decision == "sufficient":
            yield (
                f"The acceptance memory decided round {each.number}: the kept average {ruling.average:.3f} reaches "
                f"{ruling.required_average:.3f}; without memory {without:.3f} would have been required."
            )
        else:
            yield (
                f"The acceptance memory decided round {each.number}: the kept average {ruling.average:.3f} is under "
                f"{ruling.required_average:.3f}; without memory {without:.3f} would have sufficed."
            )
    level = own.model_copy(update={"required_average": own.required_average[:1]})
    if _ruled_by(each, level).decision != _ruled_by(each, own).decision:
        yield (
            f"The requirement that falls by round decided round {each.number}: the kept average {ruling.average:.3f} "
            f"reaches {own.required(each.number):.3f}, not the {own.required(0):.3f} of the first round."
        )


def _ruled_by(each: Round, thresholds: Thresholds) -> Ruling:
    found = each.ruling
    return decided(
        found.tally, found.average, each.number, thresholds, studies=found.studies, enough_alone=found.enough_alone
    )

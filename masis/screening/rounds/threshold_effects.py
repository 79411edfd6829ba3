"""Says when the acceptance memory, or the requirement that falls by round, decided a round: pure functions.

A threshold decides a round exactly where its consensus is sufficient and the average of what is kept lies between the
requirement it had and the one it is compared with: without a consensus nothing suffices, and an average that reaches
both, or neither, is ruled on alike. What the rules keep averages anything from ``rubric.KEEP_QUALITY`` (0.45) to 1, so
that such averages occur on both sides of every requirement; ``tests/screening/test_threshold_effects.py`` goes through
all of them.
"""

from __future__ import annotations

from collections.abc import Sequence

from masis.schema.screening import Round, Sufficiency, Thresholds
from masis.screening.rounds.ruling import decided


def threshold_effects(rounds: Sequence[Round], thresholds: Thresholds) -> tuple[str, ...]:
    """Return a sentence for each round that the memory, or the falling requirement, decided; mostly none.

    Rounds after the first that sufficed are left out: the search had ended.
    """
    own = thresholds.before_memory
    level = own.model_copy(update={"required_average": own.required_average[:1]})
    effects: list[str] = []
    for each in rounds:
        ruling, number = each.ruling, each.number
        enough = ruling.decision == "sufficient"
        if ruling.consensus == "sufficient" and ruling.average is not None:
            kept, without = f"round {number}: the kept average {ruling.average:.3f}", own.required(number)
            under_own = _decision(each, own)
            if under_own != ruling.decision:
                how, then = ("reaches", "have been required") if enough else ("is under", "have sufficed")
                effects.append(
                    f"The acceptance memory decided {kept} {how} {ruling.required_average:.3f}; without memory "
                    f"{without:.3f} would {then}."
                )
            if _decision(each, level) != under_own:
                effects.append(
                    f"The requirement that falls by round decided {kept} reaches {without:.3f}, not the "
                    f"{own.required(0):.3f} of the first round."
                )
        if enough:
            break
    return tuple(effects)


def _decision(each: Round, thresholds: Thresholds) -> Sufficiency:
    found = each.ruling
    return decided(
        found.tally, found.average, each.number, thresholds, studies=found.studies, enough_alone=found.enough_alone
    ).decision

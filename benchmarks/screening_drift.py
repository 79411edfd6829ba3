"""Which constants of the drift test find a change, and which raise false alarms about graders that
don't change.

    PYTHONPATH=. python benchmarks/screening_drift.py

Series of judgements (1 where a person changes a grade, 0 where they agree) are simulated with fixed
seeds. The rate of disagreement varies with the topic: each topic of 20 judgements draws its own
from a beta distribution around the grader's rate, 5 percentage points wide (2 around 3%). Reported
for several baselines, least deviations and limits: the share of stable series with a false alarm
within 15 topics after the baseline, for rates of 3% to 40%, and after how many judgements a change
from 15% to 45% is found (median and 90th percentile). The constants of ``drift.py`` are marked.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Sequence
from statistics import quantiles

from masis.screening.rounds.drift import BASELINE, LEAST_DEVIATION, LIMIT, drift

SERIES = 400
TOPIC = 20
TOPICS = 15
STABLE = (0.03, 0.08, 0.15, 0.25, 0.40)
BEFORE, AFTER = 0.15, 0.45
PATIENCE = 300
"""Judgements after a change within which it is found, or counted as found then."""
CHOICES = (
    (30, 0.02, 5.0),
    (30, 0.4, 5.0),
    (30, 0.4, 14.0),
    (60, 0.4, 8.0),
    (60, 0.4, 10.0),
    (60, 0.4, 12.0),
)
MORE_CHOICES = ((60, 0.2, 14.0), (60, 0.4, 14.0), (60, 0.5, 14.0), (100, 0.4, 14.0))


def judgements(draw: random.Random, rates: Sequence[float]) -> list[float]:
    """Return judgements whose rate of disagreement is ``rates``, varied by topic."""
    found: list[float] = []
    for start in range(0, len(rates), TOPIC):
        extra = _topic_effect(draw, rates[start])
        found += [
            float(draw.random() < min(1.0, max(0.0, rate + extra)))
            for rate in rates[start : start + TOPIC]
        ]
    return found


def _topic_effect(draw: random.Random, rate: float) -> float:
    spread = 0.05 if rate > 0.05 else 0.02
    weight = rate * (1 - rate) / spread**2 - 1
    return draw.betavariate(rate * weight, (1 - rate) * weight) - rate


def false_alarms(
    rate: float, baseline: int, deviation: float, limit: float, series: int = SERIES
) -> float:
    """Return the share of stable series with an alarm."""
    alarmed = 0
    for seed in range(series):
        values = judgements(
            random.Random(f"stable {rate} {seed}"), [rate] * (baseline + TOPIC * TOPICS)
        )
        alarmed += bool(
            drift(values, baseline=baseline, least_deviation=deviation, limit=limit).alarms
        )
    return alarmed / series


def waits(baseline: int, deviation: float, limit: float, series: int = SERIES) -> list[int]:
    """Return, for each series, after how many judgements the change is found."""
    found = []
    for seed in range(series):
        rates = [BEFORE] * baseline + [AFTER] * PATIENCE
        values = judgements(random.Random(f"changed {seed}"), rates)
        alarms = drift(values, baseline=baseline, least_deviation=deviation, limit=limit).alarms
        found.append(alarms[0] - baseline + 1 if alarms else PATIENCE)
    return found


def main() -> None:
    """Print the figures."""
    print(
        "false alarms within 15 topics at a stable rate of, and judgements until 15% -> 45% is"
        " found"
    )
    print(
        "baseline  deviation  limit  "
        + "  ".join(f"{rate:>6.0%}" for rate in STABLE)
        + "   median   90%"
    )
    for baseline, deviation, limit in itertools.chain(CHOICES, MORE_CHOICES):
        shares = [false_alarms(rate, baseline, deviation, limit) for rate in STABLE]
        late = quantiles(waits(baseline, deviation, limit), n=10)
        mark = " <" if (baseline, deviation, limit) == (BASELINE, LEAST_DEVIATION, LIMIT) else ""
        shown = "  ".join(f"{share:>6.1%}" for share in shares)
        print(
            f"{baseline:>8}  {deviation:>9}  {limit:>5}  {shown}   {late[4]:>6.0f} "
            f" {late[8]:>4.0f}{mark}"
        )


if __name__ == "__main__":
    main()

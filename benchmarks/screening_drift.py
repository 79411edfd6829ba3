"""Choose the constants of the drift test: measure false alarms and detection delays.

    PYTHONPATH=. python benchmarks/screening_drift.py

Simulates series of judgments with fixed seeds (1 if a person changes a grade, 0 if they agree). The
rate of disagreement varies by topic: each topic of 20 judgments draws its own rate from a beta
distribution around the grader's rate, with a standard deviation of 5 percentage points (2 at a rate
of 3%). For several baselines, minimum deviations and limits, prints the share of stable series with
a false alarm within 15 topics after the baseline, for rates of 3% to 40%, and after how many
judgments a change from 15% to 45% is detected (median and 90th percentile). Marks the constants of
``drift.py``.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Sequence
from statistics import quantiles

from masis.screening.rounds.drift import BASELINE, LIMIT, MIN_DEVIATION, drift

SERIES = 400
TOPIC = 20
TOPICS = 15
STABLE = (0.03, 0.08, 0.15, 0.25, 0.40)
BEFORE, AFTER = 0.15, 0.45
PATIENCE = 300
"""Maximum delay in judgments: a change that isn't detected by then counts as detected then."""
CHOICES = (
    (30, 0.02, 5.0),
    (30, 0.4, 5.0),
    (30, 0.4, 14.0),
    (60, 0.4, 8.0),
    (60, 0.4, 10.0),
    (60, 0.4, 12.0),
)
MORE_CHOICES = ((60, 0.2, 14.0), (60, 0.4, 14.0), (60, 0.5, 14.0), (100, 0.4, 14.0))


def simulate_judgments(draw: random.Random, rates: Sequence[float]) -> list[float]:
    """Return simulated judgments with the rates of disagreement ``rates``, varied by topic."""
    values: list[float] = []
    for start in range(0, len(rates), TOPIC):
        extra = _topic_effect(draw, rates[start])
        values += [
            float(draw.random() < min(1.0, max(0.0, rate + extra)))
            for rate in rates[start : start + TOPIC]
        ]
    return values


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
        values = simulate_judgments(
            random.Random(f"stable {rate} {seed}"), [rate] * (baseline + TOPIC * TOPICS)
        )
        alarmed += bool(
            drift(values, baseline=baseline, least_deviation=deviation, limit=limit).alarms
        )
    return alarmed / series


def detection_delays(
    baseline: int, deviation: float, limit: float, series: int = SERIES
) -> list[int]:
    """Return, for each series, after how many judgments the change is detected."""
    delays = []
    for seed in range(series):
        rates = [BEFORE] * baseline + [AFTER] * PATIENCE
        values = simulate_judgments(random.Random(f"changed {seed}"), rates)
        alarms = drift(values, baseline=baseline, least_deviation=deviation, limit=limit).alarms
        delays.append(alarms[0] - baseline + 1 if alarms else PATIENCE)
    return delays


def main() -> None:
    """Print the figures."""
    print(
        "false alarms within 15 topics by stable rate, and judgments until a change from 15% to 45%"
        " is detected"
    )
    print(
        "baseline  deviation  limit  "
        + "  ".join(f"{rate:>6.0%}" for rate in STABLE)
        + "   median   90%"
    )
    for baseline, deviation, limit in itertools.chain(CHOICES, MORE_CHOICES):
        shares = [false_alarms(rate, baseline, deviation, limit) for rate in STABLE]
        delays = quantiles(detection_delays(baseline, deviation, limit), n=10)
        mark = " <" if (baseline, deviation, limit) == (BASELINE, MIN_DEVIATION, LIMIT) else ""
        alarm_columns = "  ".join(f"{share:>6.1%}" for share in shares)
        print(
            f"{baseline:>8}  {deviation:>9}  {limit:>5}  {alarm_columns}   {delays[4]:>6.0f} "
            f" {delays[8]:>4.0f}{mark}"
        )


if __name__ == "__main__":
    main()

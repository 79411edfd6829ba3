"""Turns a number from a judge into a score.

By MASIS-CRITIC-P5 and MASIS-EVAL-P6, a number above 1 is a percentage; the result is clamped to
0..1 before any other rule. A value that isn't a finite number is unscored, never 0.
"""

from __future__ import annotations

import math
from typing import Any

from masis.schema.audit import FiredRule, Measurement, Score


def normalize_score(name: str, number: Any, measurements: tuple[Measurement, ...] = ()) -> Score:
    """Return the score for a judge's number.

    A percentage is converted, and the result is clamped to 0 and 1. A number that isn't finite is
    unscored.
    """
    raw = _finite_number(number)
    if raw is None:
        return Score(name=name, raw=None, value=None, measurements=measurements)
    value = raw
    rules: list[FiredRule] = []
    if value > 1:
        rules.append(
            FiredRule(
                rule="percentage",
                before=value,
                after=value / 100,
                why="read as a percentage because it is above 1",
            )
        )
        value /= 100
    clamped = max(0.0, min(value, 1.0))
    if clamped != value:
        rules.append(FiredRule(rule="clamp", before=value, after=clamped, why="limited to 0 to 1"))
    return Score(name=name, raw=raw, value=clamped, rules=tuple(rules), measurements=measurements)


def score_of(name: str, judgement: Any) -> Score:
    """Return the score of this name in a judgement.

    It has its samples if the judge was asked several times.
    """
    score = normalize_score(name, getattr(judgement, name), judgement.measurements.get(name, ()))
    samples = judgement.samples.get(name, ())
    known_samples = [value for value in samples if value is not None]
    spread = round(max(known_samples) - min(known_samples), 6) if known_samples else None
    return score.model_copy(update={"samples": samples, "spread": spread}) if samples else score


def _finite_number(number: Any) -> float | None:
    if isinstance(number, bool) or not isinstance(number, int | float):
        return None
    try:
        value = float(number)
    except OverflowError:  # JSON doesn't limit the digits of a number
        return None
    return value if math.isfinite(value) else None


def multiply_score(score: Score, factor: float, *, rule: str, why: str) -> Score:
    """Return the score times a penalty factor; unchanged if it is unscored or the factor is 1."""
    if score.value is None or factor == 1.0:
        return score
    after = max(0.0, min(score.value * factor, 1.0))
    return _with_rule(score, after, FiredRule(rule=rule, before=score.value, after=after, why=why))


def cap_score(score: Score, cap: float, *, rule: str, why: str) -> Score:
    """Return the score, at most ``cap``; the rule is recorded only if it changed the score."""
    if score.value is None or score.value <= cap:
        return score
    return _with_rule(score, cap, FiredRule(rule=rule, before=score.value, after=cap, why=why))


def _with_rule(score: Score, value: float, rule: FiredRule) -> Score:
    return score.model_copy(update={"value": value, "rules": (*score.rules, rule)})

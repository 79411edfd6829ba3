"""How a judge's number becomes a score."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from masis.audit.scores import capped, multiplied, normalised


@pytest.mark.spec("MASIS-CRITIC-P5", "MASIS-EVAL-P6")
@pytest.mark.parametrize(("given_value", "kept"), [(0.85, 0.85), (85, 0.85), (1, 1.0), (0, 0.0), (100, 1.0)])
def test_both_scales_mean_the_same(given_value: float, kept: float) -> None:
    assert normalised("confidence", given_value).value == pytest.approx(kept)


@pytest.mark.spec("MASIS-CRITIC-P5", "REQ-CRITIC-022")
@pytest.mark.parametrize(("given_value", "kept"), [(-1, 0.0), (250, 1.0), (7.26e9, 1.0), (1.5, 0.015)])
def test_what_is_out_of_range_is_clamped_after_percentages_are_read(given_value: float, kept: float) -> None:
    assert normalised("confidence", given_value).value == pytest.approx(kept)


@pytest.mark.parametrize("nonsense", [None, "high", math.nan, math.inf, -math.inf, 10**400, True, [], {}])
def test_what_is_no_finite_number_is_unscored_and_never_zero(nonsense: object) -> None:
    score = normalised("confidence", nonsense)
    assert score.value is None
    assert score.raw is None


def test_every_rule_that_changed_a_score_is_recorded() -> None:
    score = capped(normalised("faithfulness", 95), 0.4, rule="hallucination_cap", why="fabricated reference")
    assert [(rule.rule, rule.before, rule.after) for rule in score.rules] == [
        ("percentage", 95, 0.95),
        ("hallucination_cap", 0.95, 0.4),
    ]
    assert score.raw == 95


def test_a_cap_above_the_score_leaves_no_trace() -> None:
    assert capped(normalised("faithfulness", 0.2), 0.4, rule="cap", why="").rules == ()


def test_an_unscored_score_stays_unscored_whatever_follows() -> None:
    score = normalised("confidence", "high")
    assert capped(multiplied(score, 0.5, rule="penalty", why=""), 0.4, rule="cap", why="").value is None


@given(st.floats(allow_nan=True, allow_infinity=True) | st.integers())
def test_a_score_is_within_0_and_1_or_absent(number: float) -> None:
    value = normalised("x", number).value
    assert value is None or 0.0 <= value <= 1.0

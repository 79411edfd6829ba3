"""Rates, distributions and periods in words."""

from __future__ import annotations

from typing import Any

import pytest

from masis.views.charts import rate_chart, spread_chart
from masis.views.metrics import period_name, period_of


def test_charts_have_axes_from_nothing_to_everything() -> None:
    described: Any = rate_chart().to_dict()
    assert described["layer"][0]["encoding"]["y"]["scale"]["domain"] == [0, 1]
    spread: Any = spread_chart("ms", "answers").to_dict()
    assert spread["layer"][0]["encoding"]["y"]["title"] == "answers"


@pytest.mark.parametrize(
    ("period", "first", "last", "name"),
    [
        ("day", "2026-02-28", "2026-03-01", "28 Feb 2026"),
        ("week", "2026-11-16", "2026-11-23", "week of 16 Nov 2026"),
        ("month", "2026-12-01", "2027-01-01", "December 2026"),
    ],
)
def test_periods_have_a_first_day_and_a_name(period: Any, first: str, last: str, name: str) -> None:
    bounds = period_of(period, first)
    assert bounds is not None
    assert (bounds[0].isoformat(), bounds[1].isoformat()) == (first, last)
    assert period_name(period, first) == name

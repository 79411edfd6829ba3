"""The charts of screening: how rounds converge, and whether judgements drift."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean
from typing import Any

import streamlit as st

from masis.schema.screening import Round, Thresholds
from masis.screening.rounds.drift import Drift
from masis.ui.components.charts import draw_chart
from masis.views.charts import (
    AVERAGE,
    KEEP,
    NEEDED,
    RATE_OVER,
    REQUIRED,
    convergence_chart,
    drift_chart,
)


def show_convergence(rounds: Sequence[Round], thresholds: Thresholds) -> None:
    """Draw average and share of keeps against what is required, round by round; one round is said in words."""
    if len(rounds) < 2:
        st.caption("A course over rounds begins with the second one; the numbers of each round are beside it.")
        return
    draw_chart(convergence_chart, rows=convergence(rounds, thresholds), description="How the rounds converge")


def convergence(rounds: Sequence[Round], thresholds: Thresholds) -> list[dict[str, Any]]:
    """Return the average against the required one and the share of keeps against that needed, as rows of the chart."""
    return [
        {"round": each.number, "what": name, "value": value}
        for each in rounds
        for name, value in (
            (AVERAGE, each.ruling.average),
            (REQUIRED, each.ruling.required_average),
            (KEEP, each.ruling.tally.keep_share),
            (NEEDED, thresholds.keep_share),
        )
        if value is not None
    ]


def show_drift(found: Drift) -> None:
    """Draw the rate of disagreement in the order of the judgements, what is usual, and where the sums noticed drift."""
    if len(found.points) < 2:
        st.caption("One judgement so far: there is no course to draw yet.")
        return
    draw_chart(
        drift_chart,
        rows=drift_rows(found),
        usual=[] if found.usual is None else [{"value": found.usual}],
        description="Disagreement in the order of the judgements",
    )


def drift_rows(found: Drift) -> list[dict[str, Any]]:
    """Return, for each judgement, the rate of disagreement over the newest ones up to it, as rows of the chart."""
    values = [point.value for point in found.points]
    return [
        {
            "number": point.number + 1,
            "value": fmean(values[max(0, at - RATE_OVER + 1) : at + 1]),
            "alarm": "drift noticed" if point.alarm else "judgement",
        }
        for at, point in enumerate(found.points)
    ]

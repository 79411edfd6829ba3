"""The charts of screening: how rounds converge, and whether judgements drift."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean
from typing import Any

import altair as alt
import streamlit as st

from masis.schema.screening import Round, Thresholds
from masis.screening.rounds.drift import Drift
from masis.ui.components.charts import ROWS, draw_chart, share_axis

AVERAGE, REQUIRED, KEEP, NEEDED = "Average of the kept", "Required average", "Share that keeps", "Share needed"
SERIES = [AVERAGE, REQUIRED, KEEP, NEEDED]


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


def convergence_chart() -> alt.TopLevelMixin:
    """Describe the course of the rounds; what is required is dashed."""
    legend = alt.Legend(orient="bottom", columns=2, symbolSize=70, labelLimit=180)
    drawn = alt.Chart(ROWS, height=330).encode(
        x=alt.X("round:O", title="Round", axis=alt.Axis(labelAngle=0)),
        y=share_axis(),
        color=alt.Color("what:N", title=None, sort=SERIES, scale=alt.Scale(domain=SERIES), legend=legend),
        tooltip=[
            alt.Tooltip("what:N", title="What"),
            alt.Tooltip("round:N", title="Round"),
            alt.Tooltip("value:Q", title="Value", format=".2f"),
        ],
    )
    required = alt.FieldOneOfPredicate(field="what", oneOf=[REQUIRED, NEEDED])
    shape = alt.Shape("what:N", title=None, sort=SERIES, scale=alt.Scale(domain=SERIES), legend=legend)
    return alt.layer(
        drawn.mark_line(strokeWidth=2).encode(strokeDash=alt.condition(required, alt.value([5, 4]), alt.value([1, 0]))),
        drawn.mark_point(filled=True, size=65, opacity=1).encode(shape=shape),
    )


RATE_OVER = 20
"""How many judgements the drawn rate is over: single ones are 0 or 1."""


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


def drift_chart() -> alt.TopLevelMixin:
    """Describe the rate of disagreement by judgement; the dashed line is the baseline's."""
    y = share_axis()
    x = alt.X("number:Q", title="Judgement", axis=alt.Axis(tickMinStep=1, grid=False))
    domain = alt.Scale(domain=["judgement", "drift noticed"])
    legend = alt.Legend(orient="bottom", symbolSize=70)
    drawn = alt.Chart(ROWS, height=280).encode(x=x, y=y)
    return alt.layer(
        drawn.mark_line(strokeWidth=1, opacity=0.4),
        drawn.mark_point(filled=True, opacity=0.9, size=45).encode(
            color=alt.Color("alarm:N", title=None, scale=domain, legend=legend),
            shape=alt.Shape("alarm:N", title=None, scale=domain, legend=legend),
            tooltip=[
                alt.Tooltip("number:Q", title="Judgement"),
                alt.Tooltip("value:Q", title=f"Disagreement, newest {RATE_OVER}", format=".0%"),
            ],
        ),
        alt.Chart(alt.NamedData("usual")).mark_rule(strokeDash=[5, 4]).encode(y=y),
    )

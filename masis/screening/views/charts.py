"""Describes the Altair charts of screenings without data, as ``masis.views.charts`` does."""

from __future__ import annotations

import altair as alt

from masis.screening.views.words import DIRECTION
from masis.views.charts import GREY, ROWS, share_axis

AVERAGE, REQUIRED, KEEP, NEEDED = (
    "Average of the kept",
    "Required average",
    "Share that keeps",
    "Share needed",
)
SERIES = [AVERAGE, REQUIRED, KEEP, NEEDED]


def convergence_chart() -> alt.TopLevelMixin:
    """Describe the course of the rounds; required values are dashed."""
    legend = alt.Legend(orient="bottom", columns=2, symbolSize=70, labelLimit=180)
    drawn = alt.Chart(ROWS, height=330).encode(
        x=alt.X("round:O", title="Round", axis=alt.Axis(labelAngle=0)),
        y=share_axis(),
        color=alt.Color(
            "what:N", title=None, sort=SERIES, scale=alt.Scale(domain=SERIES), legend=legend
        ),
        tooltip=[
            alt.Tooltip("what:N", title="What"),
            alt.Tooltip("round:N", title="Round"),
            alt.Tooltip("value:Q", title="Value", format=".2f"),
        ],
    )
    required = alt.FieldOneOfPredicate(field="what", oneOf=[REQUIRED, NEEDED])
    shape = alt.Shape(
        "what:N", title=None, sort=SERIES, scale=alt.Scale(domain=SERIES), legend=legend
    )
    return alt.layer(
        drawn.mark_line(strokeWidth=2).encode(
            strokeDash=alt.condition(required, alt.value([5, 4]), alt.value([1, 0]))
        ),
        drawn.mark_point(filled=True, size=65, opacity=1).encode(shape=shape),
    )


RATE_OVER = 20
"""Number of judgements in the moving average, because a single one is 0 or 1."""


def drift_chart() -> alt.TopLevelMixin:
    """Describe the rate of disagreement by judgement; the dashed line is the baseline."""
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
        alt.Chart(alt.NamedData("usual")).mark_rule(strokeDash=[5, 4], color=GREY).encode(y=y),
    )


def direction_chart() -> alt.TopLevelMixin:
    """Describe the directions of effect: one bar per direction, divided by design."""
    order = [word.text for word in DIRECTION.values()]
    scale = alt.Scale(domain=order)
    legend = alt.Legend(orient="bottom", columns=1, labelLimit=260, symbolSize=70)
    # Vega leaves out labels that nearly touch, and below four bars that hides every second name.
    names = alt.Axis(labelLimit=190, labelOverlap=False)
    # 150 is for the axis and a legend of several designs, which are inside the height.
    drawn: alt.Chart = alt.Chart(ROWS, height=150 + 36 * len(order)).mark_bar()
    return drawn.encode(
        y=alt.Y("direction:N", title=None, sort=order, scale=scale, axis=names),
        x=alt.X("studies:Q", title="Kept studies", axis=alt.Axis(tickMinStep=1, format="d")),
        color=alt.Color("design:N", title=None, legend=legend),
        tooltip=[
            alt.Tooltip("direction:N", title="Direction"),
            alt.Tooltip("design:N", title="Design"),
            alt.Tooltip("studies:Q", title="Studies"),
        ],
    )

"""Describes Altair charts without data; the rows are supplied when a chart is drawn."""

from __future__ import annotations

from typing import Any

import altair as alt

from masis.schema.run import Run
from masis.views.scores import JUDGED, values
from masis.views.words import SCORE

ROWS = alt.NamedData("rows")
"""The data of a chart, which is supplied when it is drawn."""


def share_axis() -> alt.Y:
    """Return the y axis of scores and shares, 0 to 1."""
    return alt.Y(
        "value:Q",
        title=None,
        scale=alt.Scale(domain=[0, 1]),
        axis=alt.Axis(format=".1f", tickCount=5),
    )


def score_rows(run: Run) -> list[dict[str, Any]]:
    """Return the scores across iterations as rows of ``course_chart``."""
    return [
        {"iteration": iteration.iteration_number, "score": SCORE[name].text, "value": value}
        for iteration in run.iterations
        for name in (*JUDGED, "quality_score", "confidence")
        if (value := values(iteration)[name]) is not None
    ]


def course_chart() -> alt.TopLevelMixin:
    """Describe the scores across iterations; a rule marks the iteration shown."""
    titles = [SCORE[name].text for name in (*JUDGED, "quality_score", "confidence")]
    x = alt.X("iteration:O", title="Iteration", axis=alt.Axis(labelAngle=0))
    score = alt.Color(
        "score:N", title=None, sort=titles, legend=alt.Legend(orient="right", symbolSize=70)
    )
    lines = alt.Chart(ROWS, height=290).encode(
        x=x,
        y=share_axis(),
        color=score,
        tooltip=[
            alt.Tooltip("score:N", title="Score"),
            alt.Tooltip("iteration:N", title="Iteration"),
            alt.Tooltip("value:Q", title="Value", format=".2f"),
        ],
    )
    # The overall score has a thicker line. Scores that combine others have dashed lines.
    strongest = alt.FieldEqualPredicate(field="score", equal=SCORE["overall_score"].text)
    combined = alt.FieldOneOfPredicate(
        field="score", oneOf=[SCORE["confidence"].text, SCORE["quality_score"].text]
    )
    return alt.layer(
        alt.Chart(alt.NamedData("shown")).mark_rule(strokeDash=[2, 3], color=GREY).encode(x=x),
        lines.mark_line().encode(
            size=alt.condition(strongest, alt.value(3.5), alt.value(1.5)),
            strokeDash=alt.condition(combined, alt.value([5, 4]), alt.value([1, 0])),
        ),
        lines.mark_point(filled=True, size=60, opacity=1).encode(
            shape=alt.Shape("score:N", title=None, sort=titles)
        ),
    )


GREY = "#7a8086"
"""A grey that is readable on light and dark backgrounds."""

# Vega expressions for the labels of an axis by unit; "~" removes trailing zeros.
_AXIS = {
    "ms": (
        "datum.value >= 1000 ? format(datum.value / 1000, '~g') + ' s' : format(datum.value, '~g')"
        " + ' ms'"
    ),
    "USD": "'$' + format(datum.value, '~g')",
    "%": "format(datum.value, '~g') + '%'",
    "": "abs(datum.value) >= 10000 ? format(datum.value, '~s') : format(datum.value, ',~g')",
}


def share_chart(bars: int) -> alt.TopLevelMixin:
    """Describe shares as horizontal bars that can be clicked; a bar's title has two lines."""
    picked = alt.selection_point(name="picked", fields=["label"], on="click", empty=False)
    y = alt.Y(
        "name:N",
        title=None,
        sort=None,
        axis=alt.Axis(
            labelExpr="split(datum.value, '\\n')",
            labelFontSize=13,
            labelLimit=290,
            labelPadding=8,
            minExtent=250,
            ticks=False,
            domain=False,
        ),
    )
    drawn = alt.Chart(ROWS, height=46 * bars + 40).encode(y=y)  # 40 is for the axis
    return alt.layer(
        drawn.mark_bar(color=GREY, opacity=0.18, size=20).encode(x=alt.datum(1), x2=alt.datum(0)),
        drawn.mark_bar(cursor="pointer", size=20)
        .encode(
            x=alt.X(
                "share:Q",
                title=None,
                scale=alt.Scale(domain=[0, 1]),
                axis=alt.Axis(
                    format="%",
                    values=[0, 0.25, 0.5, 0.75, 1],
                    grid=False,
                    labelFlush=20,
                    labelFlushOffset=-4,
                ),
            ),
            tooltip=[
                alt.Tooltip("label:N", title="Metric"),
                alt.Tooltip("value:N", title="Share"),
                alt.Tooltip("meaning:N", title="How to read it"),
            ],
        )
        .add_params(picked),
    )


def period_chart(unit: str) -> alt.TopLevelMixin:
    """Describe a metric by period: a line of shares, or bars of sums; each can be clicked."""
    picked = alt.selection_point(name="picked", fields=["at"], on="click", empty=False)
    is_share = unit == "share"
    y = alt.Axis(labelExpr=_AXIS.get(unit, _AXIS[""]), tickCount=3)
    if is_share:
        y = alt.Axis(format="%", values=[0, 0.5, 1])
    base = alt.Chart(ROWS, height=150).encode(
        x=alt.X(
            # In UTC as everywhere; local time would move a period's first day west of Greenwich.
            "utcyearmonthdate(at):T",
            title=None,
            scale=alt.Scale(padding=10),
            axis=alt.Axis(format="%d %b %y", labelOverlap=True, tickCount=4, labelFlush=30),
        ),
        y=alt.Y(
            "value:Q",
            title=None,
            scale=alt.Scale(domain=[0, 1]) if is_share else alt.Scale(nice=3),
            axis=y,
        ),
        tooltip=[alt.Tooltip("name:N", title="Period"), alt.Tooltip("audits:N", title="Value")],
    )
    if not is_share:
        bars: alt.Chart = base.mark_bar(size=12, cursor="pointer").add_params(picked)
        return bars
    points = base.mark_point(filled=True, size=70, opacity=1, cursor="pointer").add_params(picked)
    return alt.layer(base.mark_line(), points)


def spread_chart(unit_name: str, counted: str) -> alt.TopLevelMixin:
    """Describe a distribution with clickable bars and lines at the median and 95th percentile."""
    picked = alt.selection_point(name="picked", fields=["low", "high"], on="click", empty=False)
    axis = alt.Axis(
        labelExpr=_AXIS[unit_name], tickCount=5, labelOverlap=True, labelFlush=20, grid=False
    )
    drawn = alt.Chart(ROWS, height=150)
    bins = (
        drawn.mark_bar(cursor="pointer", binSpacing=1)
        .encode(
            x=alt.X("from:Q", bin="binned", title=None, axis=axis),
            x2="to:Q",
            # A "nice" scale ends at a label, so that no bar is higher than the last label.
            y=alt.Y(
                "count:Q",
                title=counted,
                scale=alt.Scale(nice=3),
                axis=alt.Axis(tickCount=3, tickMinStep=1, format="~s"),
            ),
            tooltip=[
                alt.Tooltip("values:N", title="Values"),
                alt.Tooltip("audits:N", title=counted.capitalize()),
            ],
        )
        .add_params(picked)
    )
    lines = alt.Chart(alt.NamedData("marks")).encode(x="value:Q")
    words = lines.mark_text(baseline="bottom", fontSize=11, color=GREY).encode(
        y=alt.value(-2), text="name:N"
    )
    return alt.layer(bins, lines.mark_rule(strokeDash=[4, 3], color=GREY), words)


def interval_chart(bars: int) -> alt.TopLevelMixin:
    """Describe shares as horizontal bars with whiskers from ``low`` to ``high``.

    The axis starts at 0 and ends after the longest whisker.
    """
    y = alt.Y(
        "name:N",
        title=None,
        sort=None,
        axis=alt.Axis(
            labelExpr="split(datum.value, '\\n')", labelLimit=290, ticks=False, domain=False
        ),
    )
    drawn = alt.Chart(ROWS, height=34 * bars + 40).encode(y=y)  # 40 is for the axis
    return alt.layer(
        # Whiskers in front of a bar in full color are hardly visible.
        drawn.mark_bar(size=16, opacity=0.5).encode(
            x=alt.X(
                "share:Q",
                title=None,
                scale=alt.Scale(zero=True, nice=True),
                # The label of the last tick would end outside of the picture.
                axis=alt.Axis(format="%", tickCount=5, labelFlush=True, labelFlushOffset=-4),
            ),
            tooltip=[
                alt.Tooltip("name:N", title="Mode"),
                alt.Tooltip("cases:N", title="Cases"),
                alt.Tooltip("interval:N", title="95% interval"),
            ],
        ),
        drawn.mark_rule(color=GREY, strokeWidth=2).encode(x="low:Q", x2="high:Q"),
        drawn.mark_tick(color=GREY, size=10).encode(x="low:Q"),
        drawn.mark_tick(color=GREY, size=10).encode(x="high:Q"),
    )

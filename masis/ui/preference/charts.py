"""The chart of the Preference page."""

from __future__ import annotations

import altair as alt

from masis.views.charts import GREY, ROWS


def strength_chart(systems: int) -> alt.TopLevelMixin:
    """Describe the log strengths of systems, strongest first, with whiskers for the intervals."""
    y = alt.Y("system:N", title=None, sort=None, axis=alt.Axis(labelLimit=240))
    base = alt.Chart(ROWS, height=alt.Step(34) if systems < 30 else 900).encode(y=y)
    tooltip = [
        alt.Tooltip("system:N", title="System"),
        *(
            alt.Tooltip(f"{name}:Q", title=title, format="+.2f")
            for name, title in (("value", "Strength"), ("low", "From"), ("high", "To"))
        ),
    ]
    x = alt.X("low:Q", title="Log strength against the mean of all systems, 95% interval")
    whiskers = base.mark_errorbar(ticks=True, color=GREY).encode(x=x, x2="high:Q", tooltip=tooltip)
    points = base.mark_point(filled=True, size=90, opacity=1).encode(
        x=alt.X("value:Q"), tooltip=tooltip
    )
    mean = alt.Chart(ROWS).mark_rule(strokeDash=[4, 3], color=GREY).encode(x=alt.datum(0))
    return alt.layer(mean, whiskers, points)

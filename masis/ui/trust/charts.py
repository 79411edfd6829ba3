"""Altair charts of the trust page, each with a menu entry to save it as a picture."""

from __future__ import annotations

import altair as alt

from masis.views.charts import GREY, ROWS

_SAVED = {
    "embedOptions": {
        "actions": {"export": True, "source": False, "compiled": False, "editor": False}
    }
}


def _share_axis(field: str, title: str) -> alt.Y:
    return alt.Y(
        f"{field}:Q",
        title=title,
        scale=alt.Scale(domain=[0, 1]),
        axis=alt.Axis(format="%", tickCount=5),
    )


def reliability_chart() -> alt.TopLevelMixin:
    """Describe observed against predicted shares of faulty answers, equal on the diagonal."""
    x = alt.X("predicted:Q", title="Predicted probability of fault", scale=alt.Scale(domain=[0, 1]))
    base = alt.Chart(ROWS, height=300).encode(x=x)
    tooltip = [alt.Tooltip(f"{name}:Q", format=".1%") for name in ("predicted", "observed")]
    even = (
        alt.Chart(alt.NamedData("even"))
        .mark_line(strokeDash=[4, 3], color=GREY)
        .encode(x="predicted:Q", y="observed:Q")
    )
    points = base.mark_point(filled=True, size=70).encode(
        y=_share_axis("observed", "Observed share of faulty answers"),
        tooltip=[*tooltip, alt.Tooltip("n:Q", title="Answers")],
    )
    bars = base.mark_rule(color=GREY).encode(y=alt.Y("low:Q"), y2="high:Q")
    return alt.layer(even, bars, points).properties(usermeta=_SAVED)


def yield_chart() -> alt.TopLevelMixin:
    """Describe faults found by cases read, one line per order."""
    x = alt.X(
        "read:Q", title="Cases read", axis=alt.Axis(format="%"), scale=alt.Scale(domain=[0, 1])
    )
    order = alt.Color("order:N", title=None, legend=alt.Legend(orient="bottom"))
    dash = alt.StrokeDash("order:N", title=None, legend=alt.Legend(orient="bottom"))
    tooltip = ["order:N", alt.Tooltip("read:Q", format=".0%"), alt.Tooltip("found:Q", format=".0%")]
    lines = alt.Chart(ROWS, height=300).mark_line()
    encoded: alt.Chart = lines.encode(
        x=x, y=_share_axis("found", "Faults found"), color=order, strokeDash=dash, tooltip=tooltip
    )
    encoded.usermeta = _SAVED
    return encoded


def rate_over_time_chart() -> alt.TopLevelMixin:
    """Describe the miss rate by month with its intervals."""
    base = alt.Chart(ROWS, height=220).encode(
        x=alt.X("month:O", title=None, axis=alt.Axis(labelAngle=0))
    )
    points = base.mark_point(filled=True, size=70).encode(
        y=_share_axis("rate", "Faulty among what passed"),
        tooltip=["month:O", alt.Tooltip("rate:Q", format=".1%"), "n:Q"],
    )
    bars = base.mark_rule(color=GREY).encode(y="low:Q", y2="high:Q")
    return alt.layer(bars, points).properties(usermeta=_SAVED)

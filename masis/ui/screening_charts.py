"""The charts of screening, as Vega-Lite written out: how rounds came to converge, and how acceptance drifts over time.

Written out: made through altair they cost 50 ms for checks that these charts always pass.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from masis.schema.screening import Round, Thresholds

AVERAGE, REQUIRED, KEEP, NEEDED = "Average of the kept", "Required average", "Share that keeps", "Share needed"
SERIES = [AVERAGE, REQUIRED, KEEP, NEEDED]


def convergence(rounds: Sequence[Round], thresholds: Thresholds) -> dict[str, Any]:
    """Average against required average and share of keeps against the share needed, round by round."""
    rows = []
    for each in rounds:
        ruling = each.ruling
        for name, value in (
            (AVERAGE, ruling.average),
            (REQUIRED, ruling.required_average),
            (KEEP, ruling.tally.keep_share),
            (NEEDED, thresholds.keep_share),
        ):
            if value is not None:
                rows.append({"round": each.number + 1, "what": name, "value": value})
    what = {
        "field": "what",
        "type": "nominal",
        "title": None,
        "sort": SERIES,
        "scale": {"domain": SERIES},
        "legend": {"orient": "bottom", "columns": 2, "symbolSize": 70, "labelLimit": 180},
    }
    course = {
        "x": {"field": "round", "type": "ordinal", "title": "Round", "axis": {"labelAngle": 0}},
        "y": _share(),
        "color": what,
        "tooltip": [
            {"field": "what", "type": "nominal", "title": "What"},
            {"field": "round", "type": "ordinal", "title": "Round"},
            {"field": "value", "type": "quantitative", "title": "Value", "format": ".2f"},
        ],
    }
    bound = {"test": {"field": "what", "oneOf": [REQUIRED, NEEDED]}, "value": [5, 4]}
    return {
        "height": 250,
        "data": {"values": rows},
        "layer": [
            {
                "mark": {"type": "line", "strokeWidth": 2},
                "encoding": {**course, "strokeDash": {"condition": bound, "value": [1, 0]}},
            },
            {
                "mark": {"type": "point", "filled": True, "size": 65, "opacity": 1},
                "encoding": {**course, "shape": what},
            },
        ],
    }


def course_over_time(rows: Sequence[dict[str, Any]], *, value: str, series: list[str], title: str) -> dict[str, Any]:
    """Lines of a share over time. ``rows`` have ``at`` (ISO 8601), ``series`` and the value from 0 to 1."""
    what = {
        "field": "series",
        "type": "nominal",
        "title": None,
        "sort": series,
        "legend": {"orient": "bottom", "columns": 2, "labelLimit": 180},
    }
    course = {
        "x": {"field": "at", "type": "temporal", "title": None},
        "y": {**_share(), "field": value, "title": title},
        "color": what,
        "tooltip": [
            {"field": "series", "type": "nominal", "title": "Who"},
            {"field": "at", "type": "temporal", "title": "When", "format": "%Y-%m-%d %H:%M"},
            {"field": value, "type": "quantitative", "title": title, "format": ".2f"},
        ],
    }
    return {
        "height": 230,
        "data": {"values": list(rows)},
        "layer": [
            {"mark": {"type": "line", "strokeWidth": 2}, "encoding": course},
            {
                "mark": {"type": "point", "filled": True, "size": 50, "opacity": 1},
                "encoding": {**course, "shape": what},
            },
        ],
    }


def _share() -> dict[str, Any]:
    return {
        "field": "value",
        "type": "quantitative",
        "title": None,
        "scale": {"domain": [0, 1]},
        "axis": {"format": ".1f", "tickCount": 5},
    }

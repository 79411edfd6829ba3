"""The charts of screening, as Vega-Lite written out: how rounds came to converge, and whether judgements drift.

Written out: made through altair they cost 50 ms for checks that these charts always pass.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from masis.schema.screening import Round, Thresholds
from masis.screening.rounds.drift import Drift

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
                rows.append({"round": each.number, "what": name, "value": value})
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
        "height": 330,
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


def drift_chart(found: Drift) -> dict[str, Any]:
    """Judgements in their order, what is usual, and the places where the sums say that it has changed."""
    rows = [
        {"number": point.number + 1, "value": point.value, "alarm": "drift noticed" if point.alarm else "judgement"}
        for point in found.points
    ]
    x = {"field": "number", "type": "quantitative", "title": "Judgement", "axis": {"tickMinStep": 1, "grid": False}}
    y = _share()
    if any(point.value < 0 for point in found.points):
        y["scale"] = {"domain": [-1, 1]}
    what = {
        "field": "alarm",
        "type": "nominal",
        "title": None,
        "scale": {"domain": ["judgement", "drift noticed"]},
        "legend": {"orient": "bottom", "symbolSize": 70},
    }
    layers: list[dict[str, Any]] = [
        {"mark": {"type": "line", "strokeWidth": 1, "opacity": 0.4}, "encoding": {"x": x, "y": y}},
        {
            "mark": {"type": "point", "filled": True, "opacity": 0.9, "size": 45},
            "encoding": {
                "x": x,
                "y": y,
                "color": what,
                "shape": what,
                "tooltip": [
                    {"field": "number", "type": "quantitative", "title": "Judgement"},
                    {"field": "value", "type": "quantitative", "title": "Value", "format": ".2f"},
                ],
            },
        },
    ]
    if found.usual is not None:
        usual = {"values": [{"value": found.usual}]}
        layers.append({"data": usual, "mark": {"type": "rule", "strokeDash": [5, 4]}, "encoding": {"y": y}})
    return {"height": 280, "data": {"values": rows}, "layer": layers}


def _share() -> dict[str, Any]:
    return {
        "field": "value",
        "type": "quantitative",
        "title": None,
        "scale": {"domain": [0, 1]},
        "axis": {"format": ".1f", "tickCount": 5},
    }

"""The scores of a run across its iterations: as table data and as a chart."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NotRequired, TypedDict

import altair as alt
import pandas as pd

from masis.schema.audit import Score
from masis.schema.run import Iteration, Run
from masis.ui.desk import LabelData, label
from masis.ui.words import SCORE

JUDGED = ("faithfulness", "relevance", "completeness", "reasoning_quality", "overall_score")
SMALLEST_DELTA = 0.005


class Cell(TypedDict):
    """A score in one iteration, with its change since the one before."""

    value: float | None
    delta: NotRequired[float]


class Row(TypedDict):
    """One score in every iteration."""

    label: LabelData
    cells: list[Cell]


class Column(TypedDict):
    """One iteration."""

    title: str
    best: bool


class ScoreTable(TypedDict):
    """All scores of a run, and the rules that changed one of them in the iteration shown."""

    columns: list[Column]
    rows: list[Row]
    rules: list[str]


def values(iteration: Iteration) -> dict[str, float | None]:
    """Every score of an iteration by name; None is unscored."""
    judged = iteration.evaluation
    return {
        **{name: getattr(judged, name) if judged else None for name in JUDGED},
        "quality_score": iteration.quality_score,
        "confidence": iteration.critique.confidence,
    }


def score_table(run: Run, shown: int) -> ScoreTable:
    """The table of a run's scores; ``shown`` is the index of the iteration whose rules are told."""
    by_iteration = [values(iteration) for iteration in run.iterations]
    rows: list[Row] = []
    for name, word in SCORE.items():
        cells: list[Cell] = []
        before: float | None = None
        for scores in by_iteration:
            value = scores[name]
            cell: Cell = {"value": value}
            if value is not None and before is not None and abs(value - before) >= SMALLEST_DELTA:
                cell["delta"] = value - before
            cells.append(cell)
            before = value
        rows.append({"label": label(word), "cells": cells})
    columns: list[Column] = [
        {"title": f"Iteration {iteration.iteration_number}", "best": index == run.best}
        for index, iteration in enumerate(run.iterations)
    ]
    return {"columns": columns, "rows": rows, "rules": list(_rules(run.iterations[shown]))}


def _rules(iteration: Iteration) -> Iterator[str]:
    scores: tuple[Score, ...] = iteration.critique.scores
    if iteration.evaluation:
        scores = (*iteration.evaluation.scores, *scores)
    for score in scores:
        name = SCORE[score.name].text if score.name in SCORE else score.name.replace("_", " ")
        for rule in score.rules:
            yield f"{name}: {_figure(rule.before)} → {_figure(rule.after)}, {rule.why}"


def _figure(value: float | None) -> str:
    return "unscored" if value is None else f"{value:.2f}"


def chart(run: Run) -> alt.LayerChart | alt.FacetChart:
    """The four scores, overall and confidence across iterations, overall drawn strongest."""
    shown = [*JUDGED, "confidence"]
    rows = [
        {"iteration": iteration.iteration_number, "score": SCORE[name].text, "value": value}
        for iteration in run.iterations
        for name in shown
        if (value := values(iteration)[name]) is not None
    ]
    frame = pd.DataFrame(rows, columns=["iteration", "score", "value"])
    names = [SCORE[name].text for name in shown]
    overall, confidence = SCORE["overall_score"].text, SCORE["confidence"].text
    legend = alt.Legend(orient="right", symbolSize=70)
    base = alt.Chart(frame).encode(
        x=alt.X("iteration:O", title="Iteration", axis=alt.Axis(labelAngle=0)),
        y=alt.Y("value:Q", title=None, scale=alt.Scale(domain=[0, 1]), axis=alt.Axis(format=".1f", tickCount=5)),
        color=alt.Color("score:N", title=None, sort=names, legend=legend),
        tooltip=["score:N", "iteration:O", alt.Tooltip("value:Q", format=".2f")],
    )
    lines = base.mark_line().encode(
        size=alt.condition(alt.datum.score == overall, alt.value(3.5), alt.value(1.5)),
        strokeDash=alt.condition(alt.datum.score == confidence, alt.value([5, 4]), alt.value([1, 0])),
    )
    points = base.mark_point(filled=True, size=60, opacity=1).encode(
        shape=alt.Shape("score:N", title=None, sort=names, legend=legend)
    )
    return alt.layer(lines, points).properties(height=290)

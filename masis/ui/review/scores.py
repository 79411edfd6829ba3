"""The scores of a run across its iterations: as table data, as a chart, and how each came about."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NotRequired, TypedDict

import altair as alt
import pandas as pd

from masis.schema.audit import FiredRule, Score
from masis.schema.run import Iteration, Run
from masis.schema.wording import counted
from masis.ui.components.charts import ROWS, share_axis
from masis.ui.shell.wording import SCORE, LabelData, escaped, label

JUDGED = ("faithfulness", "relevance", "completeness", "reasoning_quality", "overall_score")
SMALLEST_DELTA = 0.005
WEIGHTS = {
    "faithfulness": "faithfulness_weight",
    "relevance": "relevance_weight",
    "completeness": "completeness_weight",
    "reasoning_quality": "reasoning_weight",
}


class Cell(TypedDict):
    """A score in one iteration, with its change since the one before and the rules that bent it, in a word each."""

    value: float | None
    delta: NotRequired[float]
    bent: list[str]


class Row(TypedDict):
    """One score in every iteration."""

    label: LabelData
    cells: list[Cell]


class Column(TypedDict):
    """One iteration."""

    title: str
    best: bool


class Measured(TypedDict):
    """One quantity that went into a score."""

    name: str
    value: str
    meaning: str


class Origin(TypedDict):
    """How one score came about: ``steps`` are sums a person can follow, ``bent`` says that a rule changed it."""

    label: LabelData
    value: float | None
    steps: list[str]
    measured: list[Measured]
    bent: bool


class ScoreTable(TypedDict):
    """All scores of a run; of the iteration shown, how each came about and the rules that changed one."""

    columns: list[Column]
    rows: list[Row]
    shown: int
    origins: list[Origin]
    rules: list[str]


def values(iteration: Iteration) -> dict[str, float | None]:
    """Return every score of an iteration by name; None is unscored."""
    judged = iteration.evaluation
    return {
        **{name: getattr(judged, name) if judged else None for name in JUDGED},
        "quality_score": iteration.quality_score,
        "confidence": iteration.critique.confidence,
    }


def score_table(run: Run, shown: int) -> ScoreTable:
    """Return the table of a run's scores; ``shown`` is the index of the iteration whose scores are explained."""
    by_iteration = [values(iteration) for iteration in run.iterations]
    rules = [_by_name(iteration) for iteration in run.iterations]
    rows: list[Row] = []
    for name, word in SCORE.items():
        cells: list[Cell] = []
        before: float | None = None
        for iteration, scores, kept in zip(run.iterations, by_iteration, rules, strict=True):
            value = scores[name]
            cell: Cell = {"value": value, "bent": _bent(name, iteration, kept.get(name))}
            if value is not None and before is not None and abs(value - before) >= SMALLEST_DELTA:
                cell["delta"] = value - before
            cells.append(cell)
            before = value
        rows.append({"label": label(word), "cells": cells})
    columns: list[Column] = [
        {"title": f"Iteration {iteration.iteration_number}", "best": index == run.best}
        for index, iteration in enumerate(run.iterations)
    ]
    return {
        "columns": columns,
        "rows": rows,
        "shown": shown + 1,
        "origins": list(_origins(run, run.iterations[shown])),
        "rules": list(_rules(run.iterations[shown])),
    }


def _by_name(iteration: Iteration) -> dict[str, Score]:
    scores = (*(iteration.evaluation.scores if iteration.evaluation else ()), *iteration.critique.scores)
    return {score.name: score for score in scores}


def _rules(iteration: Iteration) -> Iterator[str]:
    for name, score in _by_name(iteration).items():
        title = SCORE[name].text if name in SCORE else name.replace("_", " ")
        for rule in score.rules:
            yield f"{title}: {_figure(rule.before)} → {_figure(rule.after)}, {rule.why}"


def _bent(name: str, iteration: Iteration, score: Score | None) -> list[str]:
    """Return the rules that changed a score, and how far samples lie apart, as short as a table cell needs."""
    if name == "quality_score":
        factor = iteration.citation_audit.penalty_factor
        return [f"× {factor:g}"] if factor != 1 and iteration.quality_score is not None else []
    if score is None:
        return []
    apart = [f"± {score.spread / 2:.2f}"] if score.spread else []
    return [*apart, *(_short(rule) for rule in score.rules if rule.rule != "weighted_mean")]


def _short(rule: FiredRule) -> str:
    if rule.rule == "citation_penalty" and rule.before and rule.after is not None:
        return f"× {rule.after / rule.before:.2g}"
    if rule.rule.endswith("_cap") and rule.after is not None:
        return f"at most {rule.after:g}"
    return rule.rule.replace("_", " ")


def _origins(run: Run, iteration: Iteration) -> Iterator[Origin]:
    kept, scores = _by_name(iteration), values(iteration)
    for name, word in SCORE.items():
        score = kept.get("overall_quality_score" if name == "quality_score" else name)
        if name == "quality_score":
            steps = _quality_steps(iteration)
        elif name == "overall_score":
            steps = _overall_steps(run.settings, scores, score)
        else:
            steps = [_step(rule, iteration) for rule in score.rules] if score else []
        unmoved = _unbent(score) if scores[name] is not None else _why_unscored(name, iteration)
        yield {
            "label": label(word),
            "value": scores[name],
            "steps": [*_samples(score), *steps] or [unmoved],
            "measured": _measured(score),
            "bent": bool(_bent(name, iteration, kept.get(name))),
        }


def _samples(score: Score | None) -> list[str]:
    """Return the score of each sample, where a judge was asked several times."""
    if score is None or not score.samples:
        return []
    given = ", ".join(_figure(value) for value in score.samples)
    apart = "" if score.spread is None else f", {_figure(score.spread)} apart"
    return [f"The mean of {len(score.samples)} samples: {given}{apart}"]


def _measured(score: Score | None) -> list[Measured]:
    return [
        {"name": each.name, "value": _figure(each.value), "meaning": each.meaning}
        for each in (score.measurements if score else ())
    ]


def _unbent(score: Score | None) -> str:
    return "As measured; no rule changed it." if score and score.measurements else "As judged; no rule changed it."


def _why_unscored(name: str, iteration: Iteration) -> str:
    if name in JUDGED and iteration.evaluation is None:
        return "Unscored: this iteration was not evaluated."
    said = iteration.evaluation.unscored if name in JUDGED and iteration.evaluation else iteration.critique.unscored
    return f"Unscored: {said.reason}" if said else "Unscored: there was nothing to judge."


def _quality_steps(iteration: Iteration) -> list[str]:
    own, value = iteration.critique.overall_quality_score, iteration.quality_score
    if own is None or value is None:
        return []
    factor = iteration.citation_audit.penalty_factor
    if factor == 1:
        return [f"The critic's score {_figure(own)}; no citation costs it anything."]
    return [f"The critic's score {_figure(own)} × {factor:g} {_penalty_for(iteration)} = {_figure(value)}"]


def _overall_steps(settings: dict[str, Any], scores: dict[str, float | None], score: Score | None) -> list[str]:
    parts = [
        (weight, value)
        for name, setting in WEIGHTS.items()
        if (value := scores[name]) is not None and (weight := settings.get(setting)) is not None
    ]
    if len(parts) < len(WEIGHTS) or scores["overall_score"] is None:
        return []
    terms = " + ".join(f"{weight:g} × {_figure(value)}" for weight, value in parts)
    mean = f"{terms} = {_figure(scores['overall_score'])}"
    given = score.raw if score else None
    return [f"{mean}, in place of the {_figure(given)} the judge gave" if given is not None else mean]


def _step(rule: FiredRule, iteration: Iteration) -> str:
    before, after = _figure(rule.before), _figure(rule.after)
    if rule.rule == "citation_penalty" and rule.before and rule.after is not None:
        factor = iteration.citation_audit.penalty_factor
        return f"{before} × {factor:g} {_penalty_for(iteration)} = {after}"
    if rule.rule.endswith("_cap"):
        return f"{before}, but at most {after}: {rule.why}"
    return f"{before} → {after}: {rule.why}"


def _penalty_for(iteration: Iteration) -> str:
    audit = iteration.citation_audit
    invalid, uncited = len(audit.invalid_citations), len(audit.uncited_claims)
    causes = [
        *([counted(invalid, "fabricated reference")] if invalid else []),
        *([counted(uncited, "uncited sentence")] if uncited else []),
    ]
    return f"for {' and '.join(causes)}" if causes else "by the citation penalty"


def _figure(value: float | None) -> str:
    if value is None:
        return "unscored"
    return f"{value:.0f}" if value > 1 and value == int(value) else f"{value:.2f}"


def score_frame(table: ScoreTable) -> pd.DataFrame:
    """Return the scores as Markdown cells: a score a row, an iteration a column."""
    several = len(table["columns"]) > 1
    titles = [f"{each['title']}{', chosen' if each['best'] and several else ''}" for each in table["columns"]]
    rows = [[row["label"]["text"], *(_cell_words(cell) for cell in row["cells"])] for row in table["rows"]]
    return pd.DataFrame(rows, columns=["Score", *titles])


def _cell_words(cell: Cell) -> str:
    words = ["unscored" if cell["value"] is None else f"{cell['value']:.2f}"]
    if delta := cell.get("delta"):
        words.append(f":green[▲ {delta:.2f}]" if delta > 0 else f":red[▼ {-delta:.2f}]")
    return " ".join([*words, *(f":orange-badge[{escaped(rule)}]" for rule in cell["bent"])])


def origin_frame(table: ScoreTable) -> pd.DataFrame:
    """Return how each score of the iteration shown came about, as Markdown cells."""
    rows = [
        [
            f"**{each['label']['text']}** {escaped(each['label']['meaning'])}",
            _figure(each["value"]),
            escaped("; ".join(each["steps"])),
        ]
        for each in table["origins"]
    ]
    return pd.DataFrame(rows, columns=["Score", "Value", "How it came about"])


def measured_frame(table: ScoreTable) -> pd.DataFrame:
    """Return the quantities that went into the scores of the iteration shown, as Markdown cells."""
    rows = [
        [origin["label"]["text"], *(escaped(text) for text in (each["name"], each["value"], each["meaning"]))]
        for origin in table["origins"]
        for each in origin["measured"]
    ]
    return pd.DataFrame(rows, columns=["Score", "Measured", "Value", "Meaning"])


def course(run: Run) -> list[dict[str, Any]]:
    """Return the scores across iterations as rows of ``course_chart``."""
    return [
        {"iteration": iteration.iteration_number, "score": SCORE[name].text, "value": value}
        for iteration in run.iterations
        for name in (*JUDGED, "quality_score", "confidence")
        if (value := values(iteration)[name]) is not None
    ]


def course_chart() -> alt.TopLevelMixin:
    """Describe the scores across iterations, overall drawn strongest; a rule marks the iteration shown."""
    titles = [SCORE[name].text for name in (*JUDGED, "quality_score", "confidence")]
    x = alt.X("iteration:O", title="Iteration", axis=alt.Axis(labelAngle=0))
    score = alt.Color("score:N", title=None, sort=titles, legend=alt.Legend(orient="right", symbolSize=70))
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
    strongest = alt.FieldEqualPredicate(field="score", equal=SCORE["overall_score"].text)
    combined = alt.FieldOneOfPredicate(field="score", oneOf=[SCORE["confidence"].text, SCORE["quality_score"].text])
    return alt.layer(
        alt.Chart(alt.NamedData("shown")).mark_rule(strokeDash=[2, 3], opacity=0.5).encode(x=x),
        lines.mark_line().encode(
            size=alt.condition(strongest, alt.value(3.5), alt.value(1.5)),
            strokeDash=alt.condition(combined, alt.value([5, 4]), alt.value([1, 0])),
        ),
        lines.mark_point(filled=True, size=60, opacity=1).encode(shape=alt.Shape("score:N", title=None, sort=titles)),
    )

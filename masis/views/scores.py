"""Builds tables of a run's scores across its iterations, and of how each one was computed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from masis.schema.audit import FiredRule, Measurement, Score
from masis.schema.penalties import penalty_causes
from masis.schema.run import Iteration, Run
from masis.views.markdown import escape_markdown
from masis.views.numbers import score_text
from masis.views.words import SCORE, Word

if TYPE_CHECKING:
    import pandas as pd

JUDGED = ("faithfulness", "relevance", "completeness", "reasoning_quality", "overall_score")
SMALLEST_DELTA = 0.005
WEIGHTS = {
    "faithfulness": "faithfulness_weight",
    "relevance": "relevance_weight",
    "completeness": "completeness_weight",
    "reasoning_quality": "reasoning_weight",
}


class ScoreCell(NamedTuple):
    """A score in one iteration, its change since the previous one, and the rules applied to it."""

    value: float | None
    delta: float | None
    bent: list[str]

    @property
    def text(self) -> str:
        """The score and its change, for example ``0.85 ▲ 0.10``."""
        return " ".join(
            [score_text(self.value), *([change_text(self.delta)] if self.delta else [])]
        )

    @property
    def markdown(self) -> str:
        """The score and its change in colour, with the rules as badges."""
        change = (
            [f":{'green' if self.delta > 0 else 'red'}[{change_text(self.delta)}]"]
            if self.delta
            else []
        )
        return " ".join(
            [
                score_text(self.value),
                *change,
                *(f":orange-badge[{escape_markdown(rule)}]" for rule in self.bent),
            ]
        )


class ScoreOrigin(NamedTuple):
    """How one score came about: ``steps`` for people to follow, and its ``measurements``."""

    word: Word
    value: float | None
    steps: list[str]
    measurements: Sequence[Measurement]


def change_text(delta: float) -> str:
    """Format a change of a score, for example ``▲ 0.10``."""
    return f"{'▲' if delta > 0 else '▼'} {abs(delta):.2f}"


def values(iteration: Iteration) -> dict[str, float | None]:
    """Return every score of an iteration by name; None means unscored."""
    judged = iteration.evaluation
    return {
        **{name: getattr(judged, name) if judged else None for name in JUDGED},
        "quality_score": iteration.quality_score,
        "confidence": iteration.critique.confidence,
    }


def score_cells(run: Run) -> dict[str, list[ScoreCell]]:
    """Return every score of a run by name, one cell per iteration."""
    by_iteration = [
        (iteration, values(iteration), _scores_by_name(iteration)) for iteration in run.iterations
    ]
    cells_by_name: dict[str, list[ScoreCell]] = {}
    for name in SCORE:
        before: float | None = None
        cells = cells_by_name[name] = []
        for iteration, scores, stored in by_iteration:
            value = scores[name]
            # An unscored iteration has no change, and neither has the one after it.
            delta = None if value is None or before is None else value - before
            moved = delta if delta is not None and abs(delta) >= SMALLEST_DELTA else None
            cells.append(ScoreCell(value, moved, _rule_texts(name, iteration, stored.get(name))))
            before = value
    return cells_by_name


def score_frame(run: Run, form: Literal["text", "markdown"] = "markdown") -> pd.DataFrame:
    """Return the scores of a run as a table with a row per score and a column per iteration."""
    titles = [
        f"Iteration {iteration.iteration_number}{', suggested' if at and at == run.best else ''}"
        for at, iteration in enumerate(run.iterations)
    ]
    rows = [
        [SCORE[name].text, *(getattr(cell, form) for cell in cells)]
        for name, cells in score_cells(run).items()
    ]
    import pandas as pd  # on use, because commands only need the rules

    return pd.DataFrame(rows, columns=["Score", *titles])


def _scores_by_name(iteration: Iteration) -> dict[str, Score]:
    scores = (
        *(iteration.evaluation.scores if iteration.evaluation else ()),
        *iteration.critique.scores,
    )
    return {score.name: score for score in scores}


def changing_rules(iteration: Iteration) -> list[str]:
    """Return the rules that changed a score of an iteration, with the score before and after."""
    return [
        f"{SCORE[name].text if name in SCORE else name.replace('_', ' ')}: "
        f"{score_text(rule.before)} → {score_text(rule.after)}, {rule.why}"
        for name, score in _scores_by_name(iteration).items()
        for rule in score.rules
    ]


def _rule_texts(name: str, iteration: Iteration, score: Score | None) -> list[str]:
    """Return the rules that changed a score and the spread of its samples, as short texts."""
    if name == "quality_score":
        factor = iteration.citation_audit.penalty_factor
        return [f"× {factor:g}"] if factor != 1 and iteration.quality_score is not None else []
    if score is None:
        return []
    apart = [f"± {score.spread / 2:.2f}"] if score.spread else []
    return [*apart, *(_short_rule(rule) for rule in score.rules if rule.rule != "weighted_mean")]


def _short_rule(rule: FiredRule) -> str:
    if rule.rule == "citation_penalty" and rule.before and rule.after is not None:
        return f"× {rule.after / rule.before:.2g}"
    if rule.rule.endswith("_cap") and rule.after is not None:
        return f"at most {rule.after:g}"
    return rule.rule.replace("_", " ")


def score_origins(run: Run, index: int) -> list[ScoreOrigin]:
    """Return how each score of iteration ``index`` (from 0) came about."""
    iteration = run.iterations[index]
    stored, scores = _scores_by_name(iteration), values(iteration)
    origins = []
    for name, word in SCORE.items():
        score = stored.get("overall_quality_score" if name == "quality_score" else name)
        if name == "quality_score":
            steps = _quality_steps(iteration)
        elif name == "overall_score":
            steps = _overall_steps(run.settings, scores, score)
        else:
            steps = [_rule_step(rule, iteration) for rule in score.rules] if score else []
        unmoved = (
            _unchanged_text(score) if scores[name] is not None else _unscored_text(name, iteration)
        )
        measurements = score.measurements if score else ()
        origins.append(
            ScoreOrigin(
                word, scores[name], [*_sample_texts(score), *steps] or [unmoved], measurements
            )
        )
    return origins


def origin_frame(origins: Sequence[ScoreOrigin]) -> pd.DataFrame:
    """Return a table of how scores came about, with Markdown cells."""
    rows = [
        [
            f"**{origin.word.text}** {escape_markdown(origin.word.meaning)}",
            score_text(origin.value),
            escape_markdown("; ".join(origin.steps)),
        ]
        for origin in origins
    ]
    import pandas as pd  # on use, because commands only need the rules

    return pd.DataFrame(rows, columns=["Score", "Value", "How it was calculated"])


def measured_frame(origins: Sequence[ScoreOrigin]) -> pd.DataFrame:
    """Return a table of the measurements behind scores, with Markdown cells."""
    rows = [
        [
            origin.word.text,
            *(
                escape_markdown(text)
                for text in (measurement.name, score_text(measurement.value), measurement.meaning)
            ),
        ]
        for origin in origins
        for measurement in origin.measurements
    ]
    import pandas as pd  # on use, because commands only need the rules

    return pd.DataFrame(rows, columns=["Score", "Measured", "Value", "Meaning"])


def _sample_texts(score: Score | None) -> list[str]:
    """Return a line with the score of each sample if a judge was asked several times."""
    if score is None or not score.samples:
        return []
    scores = ", ".join(score_text(value) for value in score.samples)
    apart = "" if score.spread is None else f", {score_text(score.spread)} apart"
    return [f"The mean of {len(score.samples)} samples: {scores}{apart}"]


def _unchanged_text(score: Score | None) -> str:
    return (
        "As measured; no rule changed it."
        if score and score.measurements
        else "As judged; no rule changed it."
    )


def _unscored_text(name: str, iteration: Iteration) -> str:
    if name in JUDGED and iteration.evaluation is None:
        return "Unscored: this iteration was not evaluated."
    unscored = (
        iteration.evaluation.unscored
        if name in JUDGED and iteration.evaluation
        else iteration.critique.unscored
    )
    return f"Unscored: {unscored.reason}" if unscored else "Unscored: there was nothing to judge."


def _quality_steps(iteration: Iteration) -> list[str]:
    critic_score, value = iteration.critique.overall_quality_score, iteration.quality_score
    if critic_score is None or value is None:
        return []
    factor = iteration.citation_audit.penalty_factor
    if factor == 1:
        return [f"The critic's score {score_text(critic_score)}, without a citation penalty."]
    return [
        (
            f"The critic's score {score_text(critic_score)} × {factor:g}"
            f" {_penalty_text(iteration)} = {score_text(value)}"
        )
    ]


def _overall_steps(
    settings: dict[str, Any], scores: dict[str, float | None], score: Score | None
) -> list[str]:
    parts = [
        (weight, value)
        for name, setting in WEIGHTS.items()
        if (value := scores[name]) is not None and (weight := settings.get(setting)) is not None
    ]
    # An older run may lack a weight, and then the sum can't be shown.
    if len(parts) < len(WEIGHTS) or scores["overall_score"] is None:
        return []
    terms = " + ".join(f"{weight:g} × {score_text(value)}" for weight, value in parts)
    mean = f"{terms} = {score_text(scores['overall_score'])}"
    raw = score.raw if score else None
    return [f"{mean}, which replaces the judge's {score_text(raw)}" if raw is not None else mean]


def _rule_step(rule: FiredRule, iteration: Iteration) -> str:
    before, after = score_text(rule.before), score_text(rule.after)
    if rule.rule == "citation_penalty" and rule.before and rule.after is not None:
        factor = iteration.citation_audit.penalty_factor
        return f"{before} × {factor:g} {_penalty_text(iteration)} = {after}"
    if rule.rule.endswith("_cap"):
        return f"{before}, but at most {after}: {rule.why}"
    return f"{before} → {after}: {rule.why}"


def _penalty_text(iteration: Iteration) -> str:
    causes = [*penalty_causes(iteration.citation_audit)]
    return f"for {' and '.join(causes)}" if causes else "by the citation penalty"

"""Compare two runs of one case in tables: settings, scores and issues."""

from __future__ import annotations

from typing import Any, Literal

import pandas as pd

from masis.schema.audit import Issue
from masis.schema.run import Iteration, Run
from masis.settings import Settings
from masis.views import scores
from masis.views.markdown import escape_markdown
from masis.views.numbers import NOTHING, score_text
from masis.views.words import SCORE, Word, model_words

Side = Literal["left", "both", "right"]
Of = Literal["first", "chosen"]
"""Which answer's issues are compared: the original one, or the one that each run chose."""

SIDE: dict[Side, Word] = {
    "left": Word("Left only", "warn"),
    "both": Word("In both", "calm"),
    "right": Word("Right only", "warn"),
}


def models_words(models: dict[str, str]) -> str:
    """Describe the judging models, with their roles if there are several models."""
    by_model: dict[str, list[str]] = {}
    for role, model in models.items():
        by_model.setdefault(model_words(model), []).append(role)
    if len(by_model) == 1:
        return next(iter(by_model))
    return "; ".join(f"{model}: {', '.join(roles)}" for model, roles in by_model.items())


def changed_settings_words(settings: dict[str, Any]) -> str:
    """List the settings that differ from the defaults, without models; "" if there are none."""
    roles = Settings().models()
    changed = [
        f"{name.replace('_', ' ')} {value}"
        for name, value, _ in changed_settings(settings)
        if name not in roles
    ]
    return ", ".join(changed)


def changed_settings(settings: dict[str, Any]) -> list[tuple[str, Any, Any]]:
    """Return the settings that differ from the defaults, as name, value and default."""
    default = Settings().model_dump(mode="json")
    return [
        (name, value, default.get(name))
        for name, value in settings.items()
        if value != default.get(name)
    ]


def differing(left: Run, right: Run) -> pd.DataFrame:
    """Return the models, settings and versions that differ between two runs, as Markdown cells."""
    pairs: list[tuple[str, Any, Any]] = [
        (
            f"Model of the {role}",
            model_words(left.models.get(role, "")),
            model_words(right.models.get(role, "")),
        )
        for role in dict.fromkeys([*left.models, *right.models])
    ]
    roles = Settings().models()
    pairs += [
        (name.replace("_", " "), left.settings.get(name), right.settings.get(name))
        for name in dict.fromkeys([*left.settings, *right.settings])
        if name not in roles
    ]
    versions = (left.versions.flat(), right.versions.flat())
    pairs += [
        (f"version of {name.replace('_', ' ')}", versions[0].get(name), versions[1].get(name))
        # Each audit records the versions of the components that took part.
        for name in dict.fromkeys([*versions[0], *versions[1]])
    ]
    rows = [
        [
            escape_markdown(text)
            for text in (name, _setting_text(left_value), _setting_text(right_value))
        ]
        for name, left_value, right_value in pairs
        if left_value != right_value
    ]
    return pd.DataFrame(rows, columns=["Setting", "Left", "Right"])


def _setting_text(value: Any) -> str:
    if value is None:
        return NOTHING
    return {True: "yes", False: "no"}[value] if isinstance(value, bool) else str(value)


def score_frame(left: Run, right: Run) -> pd.DataFrame:
    """Return the scores of both runs by iteration, and the difference of the original answers."""
    by_side = [[scores.values(iteration) for iteration in run.iterations] for run in (left, right)]
    titles = [
        f"{side} {iteration.iteration_number}{', suggested' if index and index == run.best else ''}"
        for side, run in (("Left", left), ("Right", right))
        for index, iteration in enumerate(run.iterations)
    ]
    rows = []
    for name, word in SCORE.items():
        left_scores, right_scores = (
            [scores_of_iteration[name] for scores_of_iteration in by_iteration]
            for by_iteration in by_side
        )
        originals = [values[0] if values else None for values in (left_scores, right_scores)]
        rows.append(
            [
                word.text,
                *(score_text(value) for value in (*left_scores, *right_scores)),
                _difference(*originals),
            ]
        )
    return pd.DataFrame(rows, columns=["Score", *titles, "Difference (right minus left)"])


def _difference(left: float | None, right: float | None) -> str:
    if left is None or right is None:
        return NOTHING
    if abs(right - left) < scores.SMALLEST_DELTA:
        return "same"
    return f":{'green' if right > left else 'red'}[{scores.change_text(right - left)}]"


def issues_by_side(left: Run, right: Run, of: Of) -> dict[Side, list[Issue]]:
    """Return the issues of two runs by side.

    Issues with the same key are the same issue. So are issues of the same rule that overlap in the
    same answer, because two audits may quote more or fewer words of it.
    """
    iterations = _iteration_of(left, of), _iteration_of(right, of)
    left_issues, right_issues = (
        {issue.key: issue for issue in (iteration.issues if iteration else ())}
        for iteration in iterations
    )
    same_answer = all(iterations) and len({one.answer for one in iterations if one}) == 1
    pairs = {key: key for key in left_issues if key in right_issues}
    taken = set(pairs.values())
    for key, issue in left_issues.items() if same_answer else ():
        other = next(
            (
                other_key
                for other_key, other in right_issues.items()
                if key not in pairs and other_key not in taken and _is_same_issue(issue, other)
            ),
            None,
        )
        if other is not None:
            pairs[key] = other
            taken.add(other)
    return {
        "left": [issue for key, issue in left_issues.items() if key not in pairs],
        "both": [issue for key, issue in left_issues.items() if key in pairs],
        "right": [issue for key, issue in right_issues.items() if key not in taken],
    }


def _is_same_issue(issue: Issue, other: Issue) -> bool:
    return (
        issue.rule == other.rule
        and None not in (issue.start, issue.end, other.start, other.end)
        and (issue.start or 0) < (other.end or 0)
        and (other.start or 0) < (issue.end or 0)
    )


def _iteration_of(run: Run, of: Of) -> Iteration | None:
    return (run.iterations[0] if run.iterations else None) if of == "first" else run.best_iteration

"""Two runs of one case side by side, as plain data: settings, scores, issues, answers. Pure."""

from __future__ import annotations

from typing import Any, Literal, TypedDict

from masis.schema.audit import Issue
from masis.schema.run import Iteration, Run
from masis.schema.wording import counted
from masis.services.records import RunSummary
from masis.settings import Settings
from masis.ui.components.linked_table import Row, column, row
from masis.ui.review import scores
from masis.ui.review.answer_view import LabelData, label
from masis.ui.review.diff import word_changes
from masis.ui.review.story import moment
from masis.ui.shell.address import link
from masis.ui.shell.wording import SCORE, STOPPED, Word, rule_word

Side = Literal["left", "right", "both"]
Of = Literal["first", "chosen"]
"""Which answer's issues are compared: the original one, or the one each run chose."""

LONGEST_TEXT = 400
"""Characters of an issue that are shown; the case page has the rest."""

RUN_STATE: dict[str, Word] = {
    "running": Word("Under way", "busy"),
    "finished": Word("Finished", "good"),
    "interrupted": Word("Interrupted", "warn", "It stopped in the middle and can be resumed"),
}
REMOVED = Word("Removed", "calm", "Retention has removed its content; its metrics are stored")
SIDE_WORD: dict[Side, Word] = {
    "left": Word("Only left", "warn"),
    "both": Word("In both", "calm"),
    "right": Word("Only right", "warn"),
}


class Differing(TypedDict):
    """A setting (or a model, a version) that differs."""

    name: str
    left: str
    right: str


class ScoreColumn(TypedDict):
    """One iteration of one side."""

    title: str
    best: bool


class ScoreRow(TypedDict):
    """One score in every iteration of both sides, and how the chosen ones differ (right minus left)."""

    label: LabelData
    left: list[float | None]
    right: list[float | None]
    delta: float | None


class FoundIn(TypedDict):
    """Describe an issue for one column of the comparison."""

    label: LabelData
    severity: str
    description: str
    quote: str
    why: str


class IssueGroup(TypedDict):
    """The issues of one side, or of both."""

    side: Side
    label: LabelData
    issues: list[FoundIn]


class Comparison(TypedDict):
    """Everything the comparison draws."""

    left: str
    right: str
    differing: list[Differing]
    same_content: bool
    columns: dict[str, list[ScoreColumn]]
    rows: list[ScoreRow]
    groups: list[IssueGroup]
    answer: list[dict[str, str]]
    same_answer: bool


RUN_COLUMNS = [
    column("Audit"),
    column("State", "pills"),
    column("Judged by"),
    column("Iterations", "figure", hide="hide-narrow"),
    column("Quality", "figure"),
    column("Confidence", "figure", hide="hide-medium"),
    column("Overall", "figure", hide="hide-medium"),
    column("Ended because", hide="hide-medium"),
]


def run_row(run: RunSummary, *, left: str = "", right: str = "") -> Row:
    """Return one run as the history lists it; ``left`` and ``right`` are the ids of those compared."""
    sides = " and ".join(side for side, chosen in (("left", left), ("right", right)) if chosen == run.id)
    href = link("review", case=run.case_id, run=run.id if run.state == "finished" else "")
    review = "" if run.needs_review is None else "needs review" if run.needs_review else "nothing to review"
    return row(
        {"text": f"{moment(run.started_at)}", "href": href, "open": run.id, "below": [sides]},
        {"pills": [label(REMOVED if run.removed_at else RUN_STATE[run.state])], "below": [review]},
        {"text": models_words(run.models), "below": ["" if run.removed_at else settings_words(run.settings)]},
        run.iterations,
        _score(run.quality),
        _score(run.confidence),
        _score(run.overall),
        STOPPED[run.termination] if run.termination else run.why,
        open=run.id,
        marked=bool(sides),
    )


def _score(value: float | None) -> str | None:
    return None if value is None else f"{value:.2f}"


def models_words(models: dict[str, str]) -> str:
    """Say which models judged, in a few words."""
    by_model: dict[str, list[str]] = {}
    for role, model in models.items():
        by_model.setdefault(model, []).append(role)
    if len(by_model) == 1:
        return next(iter(by_model))
    return "; ".join(f"{model}: {', '.join(roles)}" for model, roles in by_model.items())


def settings_words(settings: dict[str, Any]) -> str:
    """Say which settings are not the default; models are shown beside."""
    default = Settings().model_dump(mode="json")
    roles = Settings().models()
    changed = [
        f"{name.replace('_', ' ')} {value}"
        for name, value in settings.items()
        if name not in roles and value != default.get(name)
    ]
    return ", ".join(changed) or "as by default"


def compare(left: Run, right: Run, of: Of) -> Comparison:
    """Compare two finished runs of one case."""
    before, after = left.final_answer, right.final_answer
    return {
        "left": left.id,
        "right": right.id,
        "differing": differing(left, right),
        "same_content": left.case_digest == right.case_digest,
        "columns": {"left": _columns(left), "right": _columns(right)},
        "rows": _score_rows(left, right),
        "groups": _groups(_of(left, of), _of(right, of)),
        "answer": [change._asdict() for change in word_changes(before, after)],
        "same_answer": before == after,
    }


def differing(left: Run, right: Run) -> list[Differing]:
    """Models, settings and versions that are not the same in both runs."""
    pairs: list[tuple[str, Any, Any]] = [
        (f"Model of the {role}", left.models.get(role), right.models.get(role))
        for role in dict.fromkeys([*left.models, *right.models])
    ]
    roles = Settings().models()
    pairs += [
        (name.replace("_", " "), left.settings.get(name), right.settings.get(name))
        for name in dict.fromkeys([*left.settings, *right.settings])
        if name not in roles
    ]
    versions = (left.versions.flat(), right.versions.flat())
    pairs += [(f"version of {name.replace('_', ' ')}", versions[0][name], versions[1][name]) for name in versions[0]]
    return [{"name": name, "left": _word(one), "right": _word(other)} for name, one, other in pairs if one != other]


def _word(value: Any) -> str:
    if value is None:
        return "–"
    return {True: "yes", False: "no"}[value] if isinstance(value, bool) else str(value)


def _columns(run: Run) -> list[ScoreColumn]:
    return [
        {"title": str(iteration.iteration_number), "best": index == run.best}
        for index, iteration in enumerate(run.iterations)
    ]


def _score_rows(left: Run, right: Run) -> list[ScoreRow]:
    sides = [[scores.values(iteration) for iteration in run.iterations] for run in (left, right)]
    rows: list[ScoreRow] = []
    for name, word in SCORE.items():
        one = [values[name] for values in sides[0]]
        other = [values[name] for values in sides[1]]
        chosen = [values[run.best] if run.best is not None else None for run, values in ((left, one), (right, other))]
        delta = None if chosen[0] is None or chosen[1] is None else chosen[1] - chosen[0]
        rows.append({"label": label(word), "left": one, "right": other, "delta": delta})
    return rows


def _of(run: Run, of: Of) -> Iteration | None:
    return (run.iterations[0] if run.iterations else None) if of == "first" else run.best_iteration


def _groups(left: Iteration | None, right: Iteration | None) -> list[IssueGroup]:
    """Group issues by side; issues with the same key are the same issue, whichever run raised them."""
    one = {issue.key: issue for issue in (left.issues if left else ())}
    other = {issue.key: issue for issue in (right.issues if right else ())}
    sides: dict[Side, list[Issue]] = {
        "left": [issue for key, issue in one.items() if key not in other],
        "both": [issue for key, issue in one.items() if key in other],
        "right": [issue for key, issue in other.items() if key not in one],
    }
    return [
        {"side": side, "label": label(SIDE_WORD[side]), "issues": [_found(issue) for issue in issues]}
        for side, issues in sides.items()
    ]


def _found(issue: Issue) -> FoundIn:
    return {
        "label": label(rule_word(issue.rule)),
        "severity": issue.severity,
        "description": _shortened(issue.description),
        "quote": _shortened(issue.quote or "") if (issue.quote or "") not in issue.description else "",
        "why": _shortened(issue.reason),
    }


def _shortened(text: str) -> str:
    return text if len(text) <= LONGEST_TEXT else f"{text[:LONGEST_TEXT]} …"


def run_name(run: RunSummary) -> str:
    """Name a run in a list to choose from."""
    quality = "unscored" if run.quality is None else f"quality {run.quality:.2f}"
    parts = [f"{run.started_at[:10]} {run.started_at[11:19]} UTC", models_words(run.models)]
    if (changed := settings_words(run.settings)) != "as by default":
        parts.append(changed)
    return " · ".join([*parts, counted(run.iterations or 0, "iteration"), quality])

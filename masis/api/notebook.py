"""Views for notebooks: a run or a screening as HTML, and a chart of a run's scores. Text from outside is escaped."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from typing import TYPE_CHECKING, NamedTuple

import pandas as pd

from masis.errors import InputError
from masis.schema.audit import Issue
from masis.schema.run import Iteration, Run
from masis.schema.screening import Screening

if TYPE_CHECKING:
    import altair as alt

MOST_BYTES = 200_000
"""A view is never larger: a notebook keeps every one of them."""

_ANSWER_SHOWN, _TEXT_SHOWN, _ISSUES_SHOWN, _GRADES_SHOWN, _MARKS_SHOWN = 10_000, 200, 25, 40, 300
"""Characters, rows and marks; escaped, a character takes up to six bytes."""

_COLOURS = {
    "supported": "#1a7f3726",
    "partial": "#9a670033",
    "unsupported": "#cf222e33",
    "contradicted": "#cf222e55",
    "unverifiable": "#6e778126",
    "unscored": "#6e778126",
    "invalid": "#cf222e77",
}
"""Backgrounds that are readable on light and dark pages."""

_WORDS = {"unverifiable": "not confirmed", "invalid": "names no evidence"}


def html(shown: Run | Screening) -> str:
    """Return a run or a screening as HTML for a notebook: the marked answer, scores and issues; under 200 KB.

    Raises InputError for anything else.
    """
    if isinstance(shown, Run):
        return _run(shown)
    if isinstance(shown, Screening):
        return _screening(shown)
    raise InputError(f"a {type(shown).__name__} has no view", cure="Give a Run or a Screening.")


def plot(run: Run) -> alt.Chart:
    """Return a chart of a run's scores by iteration, for a notebook. Raises InputError where it has no iteration."""
    import altair

    if not run.iterations:
        raise InputError(f"run {run.id} has no iteration", cure="Look at run.warnings for what failed.")
    rows = [
        {"iteration": each.iteration_number, "score": name, "value": value}
        for each in run.iterations
        for name, value in _scores(each)
        if value is not None
    ]
    data = pd.DataFrame(rows, columns=["iteration", "score", "value"])
    chart: alt.Chart = (
        altair.Chart(data, title=f"Scores of case {run.case_id[:80]}")
        .mark_line(point=True)
        .encode(
            x=altair.X("iteration:O", title="Iteration"),
            y=altair.Y("value:Q", title="Score, 0 to 1", scale=altair.Scale(domain=[0, 1])),
            color=altair.Color("score:N", title="Score"),
            tooltip=["iteration:O", "score:N", altair.Tooltip("value:Q", format=".3f")],
        )
    )
    return chart


def _scores(iteration: Iteration) -> list[tuple[str, float | None]]:
    evaluation = iteration.evaluation
    found = [("quality", iteration.quality_score), ("confidence", iteration.critique.confidence)]
    if evaluation is not None:
        found += [
            ("faithfulness", evaluation.faithfulness),
            ("relevance", evaluation.relevance),
            ("completeness", evaluation.completeness),
            ("reasoning", evaluation.reasoning_quality),
        ]
    return found


class _Mark(NamedTuple):
    start: int
    end: int
    kind: str


def _run(run: Run) -> str:
    best = run.best_iteration
    state = "needs review" if run.needs_review else "auto-accepted"
    head = (
        f"<b>{_short(run.case_id)}</b> &middot; {state} &middot; "
        f"{run.total_iterations} iteration{'' if run.total_iterations == 1 else 's'}"
    )
    reasons = "".join(f"<li>{_short(reason.message)}</li>" for reason in run.review_reasons[:_ISSUES_SHOWN])
    parts = [f"<div>{head}</div>", f"<ul>{reasons}</ul>" if reasons else ""]
    if best is None:
        parts.append(f"<p>No iteration was finished: {_short(run.termination_reason)}.</p>")
    else:
        parts += [_score_table(best), _answer(best), _issues(best.issues)]
    return _framed(parts)


def _score_table(iteration: Iteration) -> str:
    scores = _scores(iteration)
    names = "".join(f"<th>{name}</th>" for name, _ in scores)
    values = "".join(f"<td>{'unscored' if value is None else f'{value:.2f}'}</td>" for _, value in scores)
    return f"<table><tr>{names}</tr><tr>{values}</tr></table>"


def _answer(iteration: Iteration) -> str:
    answer = iteration.answer
    marks = [
        _Mark(check.claim.start, check.claim.end, check.verdict)
        for check in iteration.claims
        if check.claim.start is not None and check.claim.end is not None
    ]
    references = iteration.citation_audit.citations
    marks += [_Mark(each.start, each.end, "invalid") for each in references if each.status == "invalid"]
    shown = _marked(answer[:_ANSWER_SHOWN], marks)
    cut = f"<i>… {len(answer) - _ANSWER_SHOWN:,} more characters</i>" if len(answer) > _ANSWER_SHOWN else ""
    return f'<div style="white-space:pre-wrap;margin:.6em 0;line-height:1.5">{shown}{cut}</div>'


def _marked(text: str, marks: Iterable[_Mark]) -> str:
    """The text with marks; of marks that overlap the innermost (the one that begins last) shows."""
    kinds: list[str] = [""] * len(text)
    for mark in sorted(marks, key=lambda each: (each.start, -each.end)):
        kinds[mark.start : min(mark.end, len(text))] = [mark.kind] * max(0, min(mark.end, len(text)) - mark.start)
    parts, begin, written = [], 0, 0
    for at in range(1, len(text) + 1):
        if at == len(text) or kinds[at] != kinds[begin]:
            kind = kinds[begin] if written < _MARKS_SHOWN else ""
            written += bool(kind)
            parts.append(_mark(text[begin:at], kind))
            begin = at
    return "".join(parts)


def _mark(text: str, kind: str) -> str:
    if not kind:
        return escape(text)
    words = _WORDS.get(kind, kind)
    return f'<mark title="{words}" style="color:inherit;background:{_COLOURS[kind]}">{escape(text)}</mark>'


def _issues(issues: Sequence[Issue]) -> str:
    if not issues:
        return "<p>No issues found.</p>"
    rows = "".join(
        f"<tr><td>{each.severity}</td><td>{_short(each.description)}</td><td>{_short(each.suggestion)}</td></tr>"
        for each in issues[:_ISSUES_SHOWN]
    )
    more = f"<p>and {len(issues) - _ISSUES_SHOWN:,} more issues</p>" if len(issues) > _ISSUES_SHOWN else ""
    return f"<table><tr><th>severity</th><th>issue</th><th>suggestion</th></tr>{rows}</table>{more}"


def _screening(screening: Screening) -> str:
    rows = "".join(
        f"<tr><td>{_short(each.abstract_id)}</td><td>{each.recommendation.replace('_', ' ')}</td>"
        f"<td>{'unscored' if each.quality is None else f'{each.quality:.2f}'}</td>"
        f"<td>{_short(each.study_type or 'unknown')}</td></tr>"
        for each in screening.grades[:_GRADES_SHOWN]
    )
    hidden = len(screening.grades) - _GRADES_SHOWN
    more = f"<p>and {hidden:,} more abstracts</p>" if hidden > 0 else ""
    reasons = "".join(f"<li>{_short(reason)}</li>" for reason in screening.reasons[:_ISSUES_SHOWN])
    return _framed(
        [
            f"<div><b>{_short(screening.question)}</b> &middot; {screening.outcome.replace('_', ' ')}</div>",
            f"<div>{len(screening.kept)} of {len(screening.grades)} abstracts kept</div>",
            f"<ul>{reasons}</ul>",
            "<table><tr><th>abstract</th><th>recommendation</th><th>quality</th><th>study type</th></tr>",
            f"{rows}</table>",
            more,
        ]
    )


def _short(text: str) -> str:
    return escape(text if len(text) <= _TEXT_SHOWN else f"{text[: _TEXT_SHOWN - 1]}…")


def _framed(parts: Iterable[str]) -> str:
    whole = f'<div class="masis">{"".join(parts)}</div>'
    assert len(whole.encode()) < MOST_BYTES
    return whole

"""Notebook views: a run or a screening as escaped HTML, and a chart of a run's scores."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from itertools import groupby
from typing import TYPE_CHECKING, NamedTuple

import pandas as pd

from masis.errors import InputError
from masis.extensions import extensions, load
from masis.schema.audit import Issue
from masis.schema.display import HtmlDisplay
from masis.schema.explain import kind_of
from masis.schema.rules import Tone
from masis.schema.run import Iteration, Run
from masis.schema.wording import count_noun, shorten
from masis.views.markdown import drawable
from masis.views.numbering import numbered_issues
from masis.views.numbers import score_text
from masis.views.scores import values
from masis.views.words import REASON, REFERENCE, SCORE, Word, verdict_word

if TYPE_CHECKING:
    import altair as alt

MOST_BYTES = 200_000
"""Largest size of a view, because a notebook file stores every one of them."""

# Characters, rows and marks; escaped, a character takes up to six bytes.
_ANSWER_SHOWN, _TEXT_SHOWN, ISSUES_SHOWN, _MARKS_SHOWN = 8_000, 200, 25, 300
# A revision shows a fifth of the characters, rows and marks of the original answer.
_OF_REVISION = 5

# Backgrounds that are readable on light and dark pages.
_BACKGROUND: dict[Tone, str] = {
    "bad": "#cf222e55",
    "warn": "#9a670033",
    "good": "#1a7f3726",
    "calm": "#6e778126",
}


def html(shown: HtmlDisplay) -> str:
    """Return a run or a screening as HTML for a notebook, under 200 KB.

    It contains the marked answer, the scores and the issues.

    Raises:
        InputError: If ``shown`` is anything else.

    """
    if isinstance(shown, Run):
        return drawable(_run_html(shown))
    for extension in extensions():
        if view := extension.notebook_views.get(type(shown).__name__):
            text: str = load(view)(shown)
            return drawable(text)
    raise InputError(f"a {type(shown).__name__} has no view", hint="Pass a Run or a Screening.")


def plot(run: Run) -> alt.Chart:
    """Return a chart of a run's scores by iteration for a notebook.

    Raises:
        InputError: If ``run`` isn't a run, or has no iterations.

    """
    # Imported here because most callers of this module don't need a chart library.
    import altair

    from masis.views.charts import score_rows

    if not isinstance(run, Run):
        hint = "Pass one run: masis.plot(runs[0]). For many runs, plot masis.runs_to_pandas(runs)."
        raise InputError(f"is {kind_of(run)}, not a Run", hint=hint, field="run")
    if not run.iterations:
        raise InputError(
            f"run {run.id} has no iteration", hint="Look at run.warnings for what failed."
        )
    data = pd.DataFrame(score_rows(run), columns=["iteration", "score", "value"])
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


class _Mark(NamedTuple):
    start: int
    end: int
    word: Word


def _run_html(run: Run) -> str:
    original, revised = run.original, run.revised
    state = "needs review" if run.needs_review else "auto-accepted"
    head = (
        f"<b>{short_html(run.case_id)}</b> &middot; {state} &middot; "
        f"{run.total_iterations} iteration{'' if run.total_iterations == 1 else 's'}"
    )
    reasons = "".join(
        f"<li>{short_html(reason.message)}</li>" for reason in run.review_reasons[:ISSUES_SHOWN]
    )
    parts = [f"<div>{head}</div>", f"<ul>{reasons}</ul>" if reasons else ""]
    if run.termination_reason == "no_answer":
        parts.append("<p>There was no answer to audit.</p>")
    elif original is None:
        parts.append(f"<p>No iteration was finished: {short_html(run.termination_reason)}.</p>")
    else:
        parts += [
            _score_table(original, revised),
            _answer_html(original),
            _issue_table(numbered_issues(original)),
        ]
    if revised is not None:
        suggested = "suggested by the audit" if run.best else "not better than the original"
        title = (
            f"Revision {revised.iteration_number}, {suggested},"
            f" {count_noun(len(numbered_issues(revised)), 'issue')}"
        )
        parts.append(
            f"<details><summary>{title}</summary>{_answer_html(revised, _OF_REVISION)}</details>"
        )
    return frame_html(parts)


def _score_table(original: Iteration, revised: Iteration | None) -> str:
    names = "".join(f"<th>{SCORE[name].text}</th>" for name in values(original))
    rows = [("original", original), *([("revision", revised)] if revised else [])]
    body = ""
    for title, iteration in rows:
        scores = values(iteration).values()
        cells = "".join(f"<td>{score_text(value)}</td>" for value in scores)
        body += f"<tr><th>{title}</th>{cells}</tr>"
    return f"<table><tr><th></th>{names}</tr>{body}</table>"


def _answer_html(iteration: Iteration, part: int = 1) -> str:
    answer, most = iteration.answer, _ANSWER_SHOWN // part
    marks = [
        _Mark(check.claim.start, check.claim.end, verdict_word(check))
        for check in iteration.claims
        if check.claim.start is not None and check.claim.end is not None
    ]
    marks += [
        _Mark(
            start + figure.claim_start, start + figure.claim_end, REASON["figure_not_in_evidence"]
        )
        for check in iteration.claims
        for figure in check.figures
        if (start := check.claim.start) is not None
    ]
    marks += [
        _Mark(start + words.claim_start, start + words.claim_end, REASON["words_marked"])
        for check in iteration.claims
        for words in check.marked
        if (start := check.claim.start) is not None
    ]
    references = iteration.citation_audit.citations
    marks += [
        _Mark(citation.start, citation.end, REFERENCE["fabricated"])
        for citation in references
        if citation.status == "invalid"
    ]
    shown = _mark_text(answer[:most], marks, _MARKS_SHOWN // part)
    cut = f"<i>… {len(answer) - most:,} more characters</i>" if len(answer) > most else ""
    return f'<div style="white-space:pre-wrap;margin:.6em 0;line-height:1.5">{shown}{cut}</div>'


def _mark_text(text: str, marks: Iterable[_Mark], most: int) -> str:
    """Return the text with marks as HTML. If marks overlap, the one that starts last is shown."""
    # One entry per character. Later marks overwrite earlier ones, so overlaps need no other rule.
    words: list[Word | None] = [None] * len(text)
    for mark in sorted(marks, key=lambda mark: (mark.start, -mark.end)):
        words[mark.start : min(mark.end, len(text))] = [mark.word] * max(
            0, min(mark.end, len(text)) - mark.start
        )
    parts, written, begin = [], 0, 0
    for word, stretch in groupby(words):
        end = begin + sum(1 for _ in stretch)
        parts.append(_mark_html(text[begin:end], word if written < most else None))
        written += word is not None
        begin = end
    return "".join(parts)


def _mark_html(text: str, word: Word | None) -> str:
    if word is None:
        return escape(text)
    title = f"{word.text}: {word.meaning}"
    return (
        f'<mark title="{title}"'
        f' style="color:inherit;background:{_BACKGROUND[word.tone]}">{escape(text)}</mark>'
    )


def _issue_table(groups: Sequence[Sequence[Issue]]) -> str:
    issues = [(number, issue) for number, group in enumerate(groups, 1) for issue in group]
    if not issues:
        return "<p>No issues found.</p>"
    rows = "".join(
        f"<tr><td>{number}</td><td>{issue.severity}</td><td>{short_html(issue.description)}</td>"
        f"<td>{short_html(issue.suggestion)}</td></tr>"
        for number, issue in issues[:ISSUES_SHOWN]
    )
    more = (
        f"<p>and {len(issues) - ISSUES_SHOWN:,} more issues</p>"
        if len(issues) > ISSUES_SHOWN
        else ""
    )
    names = ("issue", "severity", "description", "suggestion")
    head = "".join(f"<th>{name}</th>" for name in names)
    return f"<table><tr>{head}</tr>{rows}</table>{more}"


def short_html(text: str) -> str:
    """Return the beginning of a text, escaped."""
    return escape(shorten(text, _TEXT_SHOWN))


def frame_html(parts: Iterable[str]) -> str:
    """Return a whole view of these parts."""
    whole = f'<div class="masis">{"".join(parts)}</div>'
    assert len(whole.encode()) < MOST_BYTES
    return whole

"""Audits of a case in lists: the rows of its history, and the names in a select box."""

from __future__ import annotations

from masis.schema.wording import count_noun
from masis.services.records import RunSummary
from masis.ui.components.linked_table import LinkedRow, column, row
from masis.ui.shell.address import link
from masis.views.comparison import changed_settings_words, models_words
from masis.views.numbers import moment, score_text
from masis.views.words import RUN_STATE, STOPPED, label

RUN_COLUMNS = [
    column("Audit"),
    column("State", "pills"),
    column("Judged by"),
    column("Iterations", "figure", hide="hide-narrow"),
    column("Quality", "figure"),
    column("Confidence", "figure", hide="hide-medium"),
    column("Overall", "figure", hide="hide-medium"),
    column("End reason", hide="hide-medium"),
]


def run_row(run: RunSummary, *, left: str = "", right: str = "") -> LinkedRow:
    """Return a run as a row of the history; ``left`` and ``right`` are the compared ids."""
    sides = " and ".join(
        side for side, chosen in (("left", left), ("right", right)) if chosen == run.id
    )
    href = link("review", case=run.case_id, run=run.id if run.state == "finished" else "")
    settings = "" if run.removed_at else changed_settings_words(run.settings) or "default settings"
    review = (
        ""
        if run.needs_review is None
        else "needs review"
        if run.needs_review
        else "nothing to review"
    )
    revised = "" if run.revised_quality is None else f"revised {score_text(run.revised_quality)}"
    return row(
        {"text": moment(run.started_at), "href": href, "open": run.id, "below": [sides]},
        {
            "pills": [label(RUN_STATE["removed" if run.removed_at else run.state])],
            "below": [review],
        },
        {"text": models_words(run.models), "below": [settings]},
        run.iterations,
        {"text": _score(run.quality) or "", "below": [revised]},
        _score(run.confidence),
        _score(run.overall),
        STOPPED[run.termination] if run.termination else run.why,
        open=run.id,
        marked=bool(sides),
    )


def _score(value: float | None) -> str | None:
    return None if value is None else score_text(value)


def run_name(run: RunSummary) -> str:
    """Return the name of an audit, such as ``12 Nov 2025 14:02 UTC · offline · 2 iterations``."""
    changed = changed_settings_words(run.settings)
    parts = [f"{moment(run.started_at)} UTC", models_words(run.models), changed]
    return " · ".join([*filter(None, parts), count_noun(run.iterations or 0, "iteration")])

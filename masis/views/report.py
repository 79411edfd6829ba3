"""The audit report of a case as a self-contained HTML page, and an index page of several reports.

There are no scripts, images or external fonts, and the template escapes all text. The same input
produces the same bytes.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from jinja2 import Environment, PackageLoader, StrictUndefined

from masis.schema.case import Case
from masis.schema.review import CaseState, LogEntry, decision_outcome
from masis.schema.run import Run
from masis.schema.wording import count_noun
from masis.views import scores
from masis.views.answer import EVIDENCE_SHOWN, answer_view, unaudited_answer_view
from masis.views.comparison import changed_settings
from masis.views.headline import standing
from masis.views.labels import label_lines
from masis.views.log_entries import entry_texts, entry_word
from masis.views.markdown import drawable
from masis.views.numbers import moment, score_text
from masis.views.story import run_ending_text
from masis.views.words import FLAG, STANDING, STATE, Word, model_words

# ``autoescape`` is on because all texts are untrusted. A missing variable is an error, not a blank.
_TEMPLATES = Environment(
    loader=PackageLoader("masis.views", "."),
    autoescape=True,
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)
_TEMPLATES.globals |= {
    "model_words": model_words,
    "counted": count_noun,
    "entry_word": entry_word,
    "decision_outcome": decision_outcome,
    "moment": moment,
    "score_text": score_text,
}


class ReportSubject(NamedTuple):
    """The subject of a report: a case, one of its runs, its decision, and its log, newest first."""

    case: Case
    state: CaseState
    flags: tuple[str, ...]
    run: Run | None
    decision: LogEntry | None
    history: Sequence[LogEntry] = ()


def case_report(shown: ReportSubject, head: tuple[int, str] | None, index: str = "") -> str:
    """Return the report of a case as HTML.

    Args:
        shown: The case with its run and decisions.
        head: Length and last digest of the log, so that the report can later be checked against the
            log. None for readers who may not know it.
        index: Address of a page that lists this report with others.

    """
    run, case = shown.run, shown.case
    page = _TEMPLATES.get_template("report.html").render(
        case=case,
        digest=case.digest(),
        state=_status_word(shown),
        standing=shown.decision,
        run=run,
        stopped=run_ending_text(run) if run else "",
        flags=_flags_shown(shown),
        iterations=_answer_views(case, run),
        plain=unaudited_answer_view(case, ""),
        table=scores.score_frame(run, "text") if run and run.iterations else None,
        settings=sorted(changed_settings(run.settings)) if run else [],
        history=shown.history[::-1],  # Newest first in the log, oldest first in the report.
        texts=entry_texts(shown.history),
        labels={entry.id: label_lines(entry.decision, case, run) for entry in shown.history},
        head=head,
        index=index,
        evidence_left_out=max(0, len(case.evidence) - EVIDENCE_SHOWN),
    )
    return drawable(page)


def report_index(
    rows: Sequence[tuple[str, ReportSubject]], described: Iterable[str], head: tuple[int, str]
) -> str:
    """Return the page that lists reports by file name; ``described`` is how they were selected."""
    states = Counter(_status_word(subject) for _, subject in rows)
    page = _TEMPLATES.get_template("report_index.html").render(
        rows=[_index_row(name, subject) for name, subject in rows],
        states=states.most_common(),
        described=list(described),
        head=head,
    )
    return drawable(page)


def report_name(case_id: str) -> str:
    """Return a file name for a case's report, made of letters, digits and hyphens."""
    return f"audit-{re.sub(r'[^A-Za-z0-9]+', '-', case_id).strip('-')[:80] or 'case'}.html"


def _status_word(shown: ReportSubject) -> Word:
    """Return the status of a case in the words of the queue."""
    return (
        STANDING[standing(shown.run)]
        if shown.state == "needs_review" and shown.run
        else STATE[shown.state]
    )


def _flags_shown(shown: ReportSubject) -> list[Any]:
    return [word for flag, word in FLAG.items() if flag in shown.flags]


def _index_row(name: str, shown: ReportSubject) -> dict[str, Any]:
    run = shown.run
    return {
        "name": name,
        "id": shown.case.id,
        "query": shown.case.query,
        "state": _status_word(shown),
        "quality": run.quality if run else None,
        "revised_quality": run.revised_quality if run else None,
        "run": run is not None,
        "flags": _flags_shown(shown),
        "reasons": [reason.message for reason in run.review_reasons] if run else [],
        "standing": shown.decision,
    }


def _answer_views(case: Case, run: Run | None) -> list[dict[str, Any]]:
    """Return every iteration as the case page shows it."""
    if run is None:
        return []
    return [
        {
            "title": f"Iteration {iteration.iteration_number}",
            "origin": (
                "revised by the loop"
                if index
                else "drafted by MASIS"
                if run.draft
                else "original answer"
            ),
            "suggested": bool(index) and index == run.best,
            "view": answer_view(case, run, index),
            "rules": scores.changing_rules(iteration),
        }
        for index, iteration in enumerate(run.iterations)
    ]

"""The audit report of a case: a page of HTML that needs nothing else, to print or to hand on; of several, a folder.

No script, no image, no font from elsewhere; every text is escaped by the template. The same store gives the same bytes.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import streamlit as st
from jinja2 import Environment, PackageLoader, StrictUndefined

from masis.datasets.writers.files import whole_folder
from masis.schema.review import CaseState, LogEntry
from masis.schema.run import Run
from masis.schema.wording import counted
from masis.services import CaseView, Workbench
from masis.services.cases import shown_flags
from masis.services.records import CaseFilter, LogHead
from masis.settings import Settings
from masis.ui.review import scores
from masis.ui.review.answer_view import EVIDENCE_SHOWN, answer_view, unaudited_answer_view
from masis.ui.review.entries import KIND_WORD
from masis.ui.shell.served_database import served_workbench
from masis.ui.shell.wording import FLAG, STATE, STOPPED

VERDICT_SAYS = {"approve": "Approved", "override": "Overridden", "reject": "Rejected", "escalate": "Escalated"}

_TEMPLATES = Environment(
    loader=PackageLoader("masis.ui.review", "."),
    autoescape=True,
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)


def case_report(view: CaseView, head: LogHead, run: Run | None = None, index: str = "") -> str:
    """Return the report of a case as HTML; of its newest finished run unless another one of the case is given.

    ``head`` is the log's length and last digest, so that the report can be held against the log later. ``index`` is the
    address of a page that lists this report beside others.
    """
    run = run or view.run
    return _TEMPLATES.get_template("report.html").render(
        case=view.case,
        digest=view.case.digest(),
        state=STATE[view.state],
        standing=_standing(view),
        run=run,
        stopped=STOPPED[run.termination_reason] if run else "",
        flags=[word for flag, word in FLAG.items() if run and flag in view.summary.flags],
        iterations=_answer_views(view, run),
        plain=unaudited_answer_view(view.case, ""),
        table=scores.score_table(run, run.best or 0) if run and run.iterations else None,
        settings=_changed_settings(run) if run else [],
        history=[_entry(entry) for entry in reversed(view.history)],
        head=head,
        index=index,
        evidence_left_out=max(0, len(view.case.evidence) - EVIDENCE_SHOWN),
        counted=counted,
        at=_at,
    )


def report_name(case_id: str) -> str:
    """Return a file name for a case's report: letters, digits and hyphens, whatever the id holds."""
    return f"audit-{re.sub(r'[^A-Za-z0-9]+', '-', case_id).strip('-')[:80] or 'case'}.html"


def write_reports(
    workbench: Workbench, folder: Path, wanted: Sequence[str] | CaseFilter, on_case: Callable[[int], None] | None = None
) -> int:
    """Write a folder of reports that opens from disk: ``index.html`` and a page for each case; returns how many.

    ``wanted`` are ids of cases, or a filter, whose order holds. The folder appears whole or not at all; one that holds
    other files is refused. ``on_case`` hears how many are done. Raises InputError and UnknownRecord.
    """
    head = workbench.reviews.head()
    rows: list[dict[str, Any]] = []
    states: Counter[CaseState] = Counter()
    names: set[str] = {INDEX}
    with whole_folder(folder, INDEX) as made:
        for done, case_id in enumerate(_ids(workbench, wanted), 1):
            view = workbench.cases.open(case_id)
            name = _new_name(case_id, names)
            (made / name).write_text(case_report(view, head, index=INDEX), encoding="utf-8")
            rows.append(_row(view, name))
            states[view.state] += 1
            if on_case:
                on_case(done)
        page = _TEMPLATES.get_template("report_index.html").render(
            rows=rows,
            states=[(STATE[state], count) for state, count in states.most_common()],
            described=list(_described(wanted)),
            head=head,
            counted=counted,
        )
        (made / INDEX).write_text(page, encoding="utf-8")
    return len(rows)


INDEX = "index.html"
_AT_ONCE = 100


def _ids(workbench: Workbench, wanted: Sequence[str] | CaseFilter) -> Iterator[str]:
    if not isinstance(wanted, CaseFilter):
        yield from dict.fromkeys(wanted)
        return
    number, page = 1, workbench.cases.find(wanted.model_copy(update={"page": 1, "size": _AT_ONCE}))
    while page.rows:
        yield from (row.id for row in page.rows)
        number += 1
        page = workbench.cases.find(wanted.model_copy(update={"page": number, "size": _AT_ONCE}))


def _new_name(case_id: str, names: set[str]) -> str:
    """Return a file name that is not among ``names`` on any file system, and add it to them."""
    first = name = report_name(case_id)
    number = 2
    while name.casefold() in names:
        name, number = f"{first.removesuffix('.html')}-{number}.html", number + 1
    names.add(name.casefold())
    return name


def _row(view: CaseView, name: str) -> dict[str, Any]:
    run = view.run
    flags = shown_flags(run, run.best or 0) if run and run.iterations else ()
    return {
        "name": name,
        "id": view.case.id,
        "query": view.case.query,
        "state": STATE[view.state],
        "original": run.iterations[0].critique.overall_quality_score if run and run.iterations else None,
        "chosen": run.final_quality_score if run else None,
        "revised": bool(run and run.best),
        "run": run is not None,
        "flags": [word for flag, word in FLAG.items() if flag in flags],
        "reasons": [each.message for each in run.review_reasons] if run else [],
        "standing": _standing(view),
    }


def _described(wanted: Sequence[str] | CaseFilter) -> Iterator[str]:
    """Yield what narrows the list, as a person wrote it."""
    if not isinstance(wanted, CaseFilter):
        return
    for name, value in wanted.model_dump(exclude_defaults=True).items():
        words = ", ".join(map(str, value)) if isinstance(value, (list, tuple)) else str(value)
        yield f"{name.replace('_', ' ')}: {words}"


def _answer_views(view: CaseView, run: Run | None) -> list[dict[str, Any]]:
    """Return every iteration as the case page shows it."""
    if run is None:
        return []
    return [
        {
            "title": f"Iteration {iteration.iteration_number}",
            "origin": "revised by the loop" if index else "drafted by MASIS" if run.draft else "original answer",
            "best": index == run.best,
            "view": answer_view(view.case, run, index),
            "rules": scores.score_table(run, index)["rules"],
        }
        for index, iteration in enumerate(run.iterations)
    ]


def _standing(view: CaseView) -> dict[str, Any] | None:
    return _entry(view.decision) if view.decision else None


def _entry(entry: LogEntry) -> dict[str, Any]:
    decision = entry.decision
    if decision is None:
        words = "Redacted: what was written here was removed; the log records when and by whom"
    elif decision.kind == "policy_accept":
        words = "Auto-accepted"
    elif decision.kind == "undo":
        words = f"Undid entry {decision.undoes}"
    elif decision.kind == "redaction":
        words = f"Redacted entry {decision.extra.get('redacts', '')}"
    elif decision.verdict is None:
        words = KIND_WORD[decision.kind].text
    else:
        words = VERDICT_SAYS[decision.verdict]
    return {"entry": entry, "decision": decision, "words": words, "at": _at(entry.at)}


def _at(time: str) -> str:
    """Return a time of the store as people read it, in UTC."""
    return f"{time[:10]} {time[11:16]} UTC" if len(time) >= 16 else time


def _changed_settings(run: Run) -> list[tuple[str, Any, Any]]:
    """Settings of the run that are not the default, with the default beside each."""
    default = Settings().model_dump(mode="json")
    return [
        (name, value, default.get(name)) for name, value in sorted(run.settings.items()) if value != default.get(name)
    ]


def report_button(view: CaseView, run: Run | None = None, *, label: str = "Report") -> None:
    """Draw a download of the report of a case; of its newest finished run unless another one is given."""
    head = served_workbench().reviews.head

    def report() -> bytes:
        return case_report(view, head(), run).encode()

    st.download_button(
        label,
        report,
        file_name=report_name(view.case.id),
        mime="text/html",
        icon=":material/print:",
        on_click="ignore",
        key="report",
        help="The audit of this case as one self-contained page of HTML, to print, archive or share.",
    )

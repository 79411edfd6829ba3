"""Exports of decisions: the decided cases as JSON Lines, the decision log as CSV.

Both read the store page by page, all of one moment, and write as they read: 100,000 cases need no more memory than a
few hundred.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any, BinaryIO

from masis.datasets.writers.lines import csv_line, escape_formula, write_line
from masis.errors import Removed, StoreError
from masis.schema.case import Case
from masis.schema.review import CaseState, Decision, LogEntry, settled_answer
from masis.schema.run import Run
from masis.store import Store
from masis.store.records import CaseFilter, CaseSummary, DecisionFilter

DECIDED: tuple[CaseState, ...] = ("approved", "overridden", "rejected", "escalated")
"""The states in which a person has decided."""

_PAGE = 500

COLUMNS = (
    *("seq", "id", "at", "kind", "source", "reviewer", "verdict", "case_id", "run_id", "iteration", "reason", "note"),
    *("corrected_answer", "labels", "machine_shown", "undoes", "redacted", "digest"),
    *("assignees", "tags", "rubric_scores"),
)
"""The columns of the log as CSV."""


def write_decided(store: Store, out: BinaryIO, states: Sequence[CaseState] = DECIDED) -> int:
    """Write every case in one of these states, a line each, in the order of import; returns how many.

    A line holds the unchanged ``case``, its ``state``, ``decision`` (the entry in force), ``decisions`` (every
    individual one, a reviewer each), ``answer`` (what may be used: the corrected answer, else the approved one; null
    where the case was rejected or escalated) and ``run`` (who judged, with which versions, settings and scores).
    """
    written, page = 0, 1
    wanted = CaseFilter(states=tuple(states), order="oldest", size=_PAGE)
    with store.database.reading():
        while rows := store.cases.search(wanted.model_copy(update={"page": page})).rows:
            for summary in rows:
                write_line(json.dumps(_decided(store, summary), ensure_ascii=False), out)
            written, page = written + len(rows), page + 1
    return written


def _decided(store: Store, summary: CaseSummary) -> dict[str, Any]:
    entry = store.decisions.current(summary.id)
    decision, run = entry.decision if entry else None, _run(store, entry, summary)
    case = store.cases.get(summary.id)
    return {
        "case": case.to_json_dict(),
        "state": summary.state,
        "answer": settled_answer(decision, run) or _original_answer(decision, run, case),
        "decision": entry.model_dump(mode="json") if entry else None,
        "decisions": [each.model_dump(mode="json") for each in store.decisions.individual(summary.id)],
        "run": _about(run) if run else None,
    }


def _original_answer(decision: Decision | None, run: Run | None, case: Case) -> str | None:
    """Return the case's own answer where that was approved and its audit was removed: its first iteration is that
    answer.
    """
    approved = decision is not None and decision.verdict == "approve" and decision.iteration == 1
    return case.answer if approved and run is None else None


def _run(store: Store, entry: LogEntry | None, summary: CaseSummary) -> Run | None:
    """Return the run the decision was about; where it names none, or an unfinished one, the newest finished one.

    None where retention has removed it: another run says nothing about what was decided.
    """
    named = entry.decision.run_id if entry and entry.decision else None
    for run_id in dict.fromkeys((named, summary.run_id)):
        if run_id is not None:
            try:
                return store.runs.get(run_id)
            except Removed:
                return None
            except StoreError:  # not finished: there is no result to give
                continue
    return None


def _about(run: Run) -> dict[str, Any]:
    best = run.best_iteration
    return {
        "id": run.id,
        "finished_at": run.finished_at,
        "models": run.models,
        "settings": run.settings,
        "versions": run.versions.model_dump(mode="json"),
        "quality": run.final_quality_score,
        "confidence": best.critique.confidence if best else None,
        "overall": best.evaluation.overall_score if best and best.evaluation else None,
        "review_reasons": [reason.code for reason in run.review_reasons],
    }


def write_log_csv(store: Store, out: BinaryIO, wanted: DecisionFilter | None = None) -> int:
    """Write the entries of the log that match, oldest first, as CSV with a header; returns how many.

    A cell that a spreadsheet would take for a formula gets an apostrophe before it.
    """
    out.write(csv_line(COLUMNS))
    written = 0
    with store.database.reading():
        for entry in _entries(store, wanted or DecisionFilter()):
            out.write(csv_line(_cells(entry)))
            written += 1
    return written


def _entries(store: Store, wanted: DecisionFilter) -> Iterator[LogEntry]:
    page = 1
    while True:
        query = wanted.model_copy(update={"newest_first": False, "page": page, "size": _PAGE})
        rows = store.decisions.entries(query).rows
        yield from rows
        if len(rows) < _PAGE:
            return
        page += 1


def _cells(entry: LogEntry) -> list[str]:
    decision = entry.decision
    fields = decision.model_dump(mode="json") if decision else {}
    fields["labels"] = json.dumps(fields["labels"], ensure_ascii=False) if fields.get("labels") else ""
    for name in ("assignees", "tags", "rubric_scores"):
        fields[name] = json.dumps(fields[name], ensure_ascii=False) if fields.get(name) else ""
    fields["machine_shown"] = " ".join(fields.get("machine_shown") or ())
    fields |= {"seq": entry.seq, "id": entry.id, "at": entry.at, "digest": entry.digest}
    fields["redacted"] = "yes" if decision is None else ""
    return [escape_formula("" if (value := fields.get(name)) is None else str(value)) for name in COLUMNS]

"""Writes the decision log as CSV, page by page, in one transaction and constant memory."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, BinaryIO

from masis.datasets.writers.lines import csv_line
from masis.schema.review import LogEntry, decided_about, decision_outcome
from masis.store import Store
from masis.store.records import DecisionFilter

_PAGE = 500

COLUMNS = (
    *(
        "seq",
        "id",
        "at",
        "kind",
        "source",
        "reviewer",
        "verdict",
        "case_id",
        "run_id",
        "iteration",
        "reason",
        "note",
    ),
    *("corrected_answer", "labels", "machine_shown", "undoes", "redacted", "digest"),
    *("assignees", "tags", "rubric_scores", "cause", "rubric_sentence", "decided_about", "outcome"),
    *("checks_label_of", "planted"),
)
"""The columns of the log."""


def write_log_csv(store: Store, out: BinaryIO, log_filter: DecisionFilter | None = None) -> int:
    """Write the matching entries of the log as CSV with a header, oldest first.

    ``planted`` is "yes" for an entry about a copy with a planted fault that is no longer secret,
    since such an entry isn't a label. ``checks_label_of`` names the case whose label a decision
    about a copy checked (``RelabelPlan``). A cell that a spreadsheet would run as a formula gets an
    apostrophe before it.

    Returns:
        The number of entries.

    """
    out.write(csv_line(COLUMNS))
    written, page = 0, 1
    with store.database.reading():
        checked = store.relabelling.relabelled_by_copy()
        planted = {copy.case_id for copy in store.planted.copies() if copy.state == "planted"}
        while page:
            query = (log_filter or DecisionFilter()).model_copy(
                update={"newest_first": False, "page": page, "size": _PAGE}
            )
            rows = store.decisions.entries(query).rows
            for entry in rows:
                out.write(csv_line(_decision_cells(entry, planted, checked)))
            written, page = written + len(rows), page + 1 if len(rows) == _PAGE else 0
    return written


def _decision_cells(entry: LogEntry, planted: set[str], checked: Mapping[str, str]) -> list[Any]:
    decision = entry.decision
    fields = decision.model_dump(mode="json") if decision else {}
    for name in ("labels", "assignees", "tags", "rubric_scores"):
        fields[name] = json.dumps(fields[name], ensure_ascii=False) if fields.get(name) else ""
    fields["machine_shown"] = " ".join(fields.get("machine_shown") or ())
    fields |= {"seq": entry.seq, "id": entry.id, "at": entry.at, "digest": entry.digest}
    fields["decided_about"] = decided_about(decision) if decision else ""
    fields["outcome"] = decision_outcome(decision) if decision else ""
    fields["redacted"] = "yes" if decision is None else ""
    fields["planted"] = "yes" if fields.get("case_id") in planted else ""
    fields["checks_label_of"] = checked.get(str(fields.get("case_id")), "")
    return [fields.get(name) for name in COLUMNS]

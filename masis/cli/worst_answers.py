"""The answers of an audited file with the worst issues, as a table."""

from __future__ import annotations

from typing import Any

from masis.cli.output import MAX_QUESTION_LENGTH, Emit, say, table
from masis.schema.case import Case
from masis.schema.review import Standing
from masis.schema.run import Run
from masis.schema.wording import shorten
from masis.services.cases import shown_flags
from masis.services.records import CaseSummary
from masis.views.headline import headline
from masis.views.numbering import SEVERITIES, numbered_issues
from masis.views.numbers import score_text
from masis.views.words import FLAG, ISSUES, status_label

WORST_SHOWN = 20
"""How many answers the table shows; the rest are in the queue."""

ISSUES_SHOWN = 5
"""How many issues are listed in full below the table."""

_URGENT: tuple[Standing, ...] = ("failed", "no_answer", "wrong", "not_confirmed")
"""The most urgent statuses, in the order of the queue."""


class WorstAnswers:
    """Collects the answers with the worst issues and shows them as a table.

    ``stdout_has_runs`` says that stdout holds the runs, so that the table is written to stderr.
    """

    def __init__(self, emit: Emit, *, stdout_has_runs: bool = False) -> None:
        self._worst: list[tuple[tuple[int, int, int, float, int], dict[str, Any]]] = []
        """Records by rank, the worst first."""
        self._count, self._emit, self._stdout_has_runs = 0, emit, stdout_has_runs

    def add(self, case: Case, run: Run, summary: CaseSummary) -> None:
        """Add an audited answer; ``summary`` has the current status of its case."""
        self._count += 1
        original = run.iterations[0] if run.iterations else None
        flags = shown_flags(run, 0) if original else ("error",)
        place = next((at for at, flag in enumerate(ISSUES) if flag in flags), len(ISSUES))
        quality = original.quality_score if original else None
        drafted = "drafted by MASIS, " if run.draft is not None else ""
        record = {
            "case": case.id,
            "state": (
                (f"answer {drafted}" if drafted else "")
                + ("needs review" if run.needs_review else "auto-accepted")
            ),
            "standing": summary.standing,
            "headline": headline(run).text,
            "issue": FLAG[ISSUES[place]].text if place < len(ISSUES) else "",
            "quality": quality,
            "question": case.query,
            "issues": [
                issue.description
                for group in (numbered_issues(original) if original else ())
                for issue in group
                if issue.major
            ],
        }
        if self._emit.as_json:  # a program that reads a pipe gets each record at once
            self._emit(record)
            return
        label, _ = status_label(summary.standing, summary.state, summary.severity)
        urgency = _URGENT.index(summary.standing) if summary.standing in _URGENT else len(_URGENT)
        severity = SEVERITIES.index(summary.severity) if summary.severity else len(SEVERITIES)
        # The count makes ranks unique: sorting must never compare the records, which are dicts.
        rank = (urgency, severity, place, 1.0 if quality is None else quality, self._count)
        self._worst = sorted([*self._worst, (rank, record | {"status": drafted + label.text})])[
            :WORST_SHOWN
        ]

    def show(self) -> None:
        """Write the table, followed by the worst issues in full.

        In JSON mode the records were already written as they were added.
        """
        records = [record for _, record in self._worst]
        rows = [
            (
                record["case"],
                record["status"],
                record["headline"],
                score_text(record["quality"]),
                shorten(record["question"], MAX_QUESTION_LENGTH),
            )
            for record in records
        ]
        issues = [
            f"  {record['case']}: {' '.join(record['issues'][0].split())}"
            for record in records
            if record["issues"]
        ]
        shown = [shorten(issue, 300) for issue in issues[:ISSUES_SHOWN]]
        worst = ("", "Worst issues", *shown) if shown else ()
        lines = (*table(("case", "status", "worst issue", "quality", "question"), rows), *worst)
        if self._stdout_has_runs:
            for line in lines:
                say(line)
        else:
            self._emit.lines(lines)
        if not self._emit.as_json and self._count > len(rows):
            say(
                f"{self._count - len(rows):,} more. 'masis queue' lists the cases that need a"
                " decision."
            )

"""Stores the verdicts on claims without the passages that decide them.

The rows belong to a run, and are removed with its content (``masis/store/retention/removal.py``).
"""

from __future__ import annotations

import sqlite3

from masis.errors import Removed
from masis.schema.minimal_evidence import MinimalEvidence
from masis.store.core.connections import StorePart
from masis.store.jobs import pack, unpack
from masis.store.reviews.visibility import where_sealed


class MinimalEvidenceResults(StorePart):
    """The stored results of verifying claims without their passages."""

    def add(self, result: MinimalEvidence) -> None:
        """Store a result. Reads return the newest one on the same passages of the same claim.

        Raises:
            Removed: The run's content was removed in the meantime, or the entry with the label
                redacted.

        """
        with self._database.transaction() as connection:
            added = connection.execute(
                """INSERT INTO minimal_evidence
                    (run_seq, iteration, claim, label_by, entry_id, at, payload)
                   SELECT seq, ?, ?, ?, ?, ?, ? FROM runs WHERE id = ? AND removed_by IS NULL
                       AND (? = '' OR EXISTS (SELECT 1 FROM decision_log AS log
                           JOIN decision_payloads AS written ON written.entry_seq = log.seq
                           WHERE log.id = ? AND written.payload IS NOT NULL))""",
                [
                    result.iteration,
                    result.claim,
                    result.label_by,
                    result.entry_id,
                    result.at,
                    pack(result.model_dump_json()),
                    result.run_id,
                    result.entry_id,
                    result.entry_id,
                ],
            ).rowcount
        if not added:
            raise Removed(f"the audit {result.run_id!r}, or the label on its claim, was removed.")

    def of_case(self, case_id: str, viewer: str) -> tuple[MinimalEvidence, ...]:
        """Return the results on a case that a reviewer may see, in the order of its claims.

        Passages that another person's label names are hidden while decisions of a shared case are
        missing.
        """
        with self._database.reading() as connection:
            shared, values = where_sealed(connection)
        rows = self._database.execute(
            f"""SELECT minimal_evidence.payload FROM cases
                JOIN runs ON runs.case_seq = cases.seq
                JOIN minimal_evidence ON minimal_evidence.run_seq = runs.seq
                WHERE cases.id = ? AND (label_by IN ('', ?) OR NOT {shared})
                    AND minimal_evidence.seq IN (SELECT max(seq) FROM minimal_evidence AS newest
                        WHERE newest.run_seq = runs.seq GROUP BY iteration, claim, entry_id)
                ORDER BY runs.seq, iteration, claim, minimal_evidence.seq""",  # noqa: S608 (ours)
            [case_id, viewer, *values],
        )
        return tuple(_result_of(row) for row in rows)


def results_of_answer(
    connection: sqlite3.Connection,
    run_seq: int,
    iteration: int,
    entry_id: str,
    until: str | None = None,
) -> tuple[MinimalEvidence, ...]:
    """Return the results on a judged answer, for exports.

    Passages that labels name count only if the judgement's own entry has the labels. So an export
    reveals no pending decision, and a frozen data set keeps its rows.

    Args:
        connection: The connection.
        run_seq: The number of the run in the store.
        iteration: The number of the iteration, from 1.
        entry_id: The log entry of the judgement; "" if only the audit judged.
        until: Leaves out later results: the time when a data set was frozen.

    """
    rows = connection.execute(
        """SELECT payload FROM minimal_evidence WHERE seq IN (
               SELECT max(seq) FROM minimal_evidence
               WHERE run_seq = ?1 AND iteration = ?2 AND entry_id IN ('', ?3)
                   AND (?4 IS NULL OR at <= ?4)
               GROUP BY claim, entry_id
           ) ORDER BY claim, entry_id""",
        [run_seq, iteration, entry_id, until],
    )
    return tuple(_result_of(row) for row in rows)


def remove_results_of_run(connection: sqlite3.Connection, run_seq: int) -> None:
    """Remove the results on a run."""
    connection.execute("DELETE FROM minimal_evidence WHERE run_seq = ?", [run_seq])


def remove_results_of_entry(connection: sqlite3.Connection, entry_id: str) -> None:
    """Remove the results on passages that a label of this log entry names."""
    connection.execute(
        "DELETE FROM minimal_evidence WHERE entry_id = ? AND entry_id <> ''", [entry_id]
    )


def _result_of(row: sqlite3.Row) -> MinimalEvidence:
    return MinimalEvidence.model_validate_json(unpack(row[0]))

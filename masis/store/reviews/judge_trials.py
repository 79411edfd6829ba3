"""Stores the splits of decided cases and the trial audits of judge versions.

A trial's result belongs to the stored audit that it is compared with, and is removed with that
audit's content (``masis/store/retention/removal.py``), since it quotes the same answer.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Sequence
from typing import NamedTuple

from masis.errors import Removed, UnknownRecord
from masis.schema.judge_trials import DecidedSplit, TrialOutcome
from masis.schema.run import Iteration
from masis.store.core.connections import StorePart
from masis.store.core.sql import append
from masis.store.jobs import pack, readable, unpack


class AuditedAnswer(NamedTuple):
    """The original answer of a decided case as a stored audit found it.

    ``reason`` and ``note`` are the deciding reviewer's words; empty if they were redacted.
    """

    case_id: str
    run_id: str
    query: str
    iteration: Iteration
    reason: str
    note: str


class StoredAudit(NamedTuple):
    """A stored audit that a trial is compared with; ``settings`` are JSON."""

    run_id: str
    case_id: str
    settings: str


class JudgeTrials(StorePart):
    """The splits of decided cases, and the results of trial audits on them."""

    def add_split(self, split: DecidedSplit) -> None:
        """Store a split, which is never changed."""
        with self._database.transaction() as connection:
            append(connection, "judge_splits", {"id": split.id, "payload": split.model_dump_json()})

    def split(self, split_id: str = "") -> DecidedSplit | None:
        """Return a split by its id, or the newest one; None if there is none yet.

        Raises:
            UnknownRecord: There is no split with this id.

        """
        rows = self._database.execute(
            "SELECT payload FROM judge_splits WHERE ?1 IN ('', id) ORDER BY seq DESC LIMIT 1",
            [split_id],
        )
        if not rows and split_id:
            raise UnknownRecord(f"there is no split with the id {split_id!r}.")
        return DecidedSplit.model_validate_json(rows[0][0]) if rows else None

    def add_outcome(self, outcome: TrialOutcome) -> None:
        """Store the result of a trial audit. It replaces an earlier one on the same stored audit.

        Raises:
            Removed: The content of the stored audit has been removed.

        """
        with self._database.transaction() as connection:
            added = connection.execute(
                """INSERT OR REPLACE INTO judge_trials (digest, run_seq, at, payload)
                   SELECT ?, seq, ?, ? FROM runs WHERE id = ? AND removed_by IS NULL""",
                [
                    outcome.digest,
                    outcome.at,
                    pack(outcome.model_dump_json()),
                    outcome.run_id,
                ],
            ).rowcount
        if not added:
            raise Removed(f"the audit {outcome.run_id!r} was removed.")

    def outcomes(self, digest: str, runs: Sequence[int]) -> dict[int, TrialOutcome]:
        """Return the results of a version's trials on these stored audits, keyed by run number."""
        rows = self._database.execute(
            """SELECT run_seq, payload FROM json_each(?) CROSS JOIN judge_trials
               ON run_seq = value AND digest = ?""",
            [json.dumps(list(runs)), digest],
        )
        return {int(row[0]): TrialOutcome.model_validate_json(unpack(row[1])) for row in rows}

    def list_tried_runs(self, digest: str, runs: Sequence[int]) -> frozenset[int]:
        """Return which of these stored audits the version was tried on."""
        rows = self._database.execute(
            """SELECT run_seq FROM json_each(?) CROSS JOIN judge_trials
               ON run_seq = value AND digest = ?""",
            [json.dumps(list(runs)), digest],
        )
        return frozenset(int(row[0]) for row in rows)

    def stored_audits(self, runs: Sequence[int]) -> list[StoredAudit]:
        """Return the stored audits with these run numbers, in this order.

        Each has the ids and the settings that a trial needs. Audits whose content was removed are
        left out.
        """
        rows = self._database.execute(
            """SELECT runs.id, cases.id AS case_id, runs.settings
               FROM json_each(?) AS wanted CROSS JOIN runs ON runs.seq = wanted.value
               JOIN cases ON cases.seq = runs.case_seq
               WHERE runs.removed_by IS NULL ORDER BY wanted.key""",
            [json.dumps(list(runs))],
        )
        return [StoredAudit(str(row[0]), str(row[1]), str(row[2])) for row in rows]

    def audited_answers(
        self, runs: Sequence[int], entries: Sequence[int]
    ) -> dict[int, AuditedAnswer]:
        """Return the original answers of stored audits, keyed by run number, in two queries.

        Audits whose content was removed are left out.

        Args:
            runs: The numbers of the audits.
            entries: The number of the deciding log entry of each of them.

        """
        sql = """
            SELECT wanted.value AS run_seq, cases.id AS case_id, runs.id AS run_id,
                cases.query_start AS query, parts.payload AS iteration,
                written.payload ->> '$.reason' AS reason, written.payload ->> '$.note' AS note
            FROM json_each(?1) AS wanted
            CROSS JOIN runs ON runs.seq = wanted.value
            JOIN cases ON cases.seq = runs.case_seq
            JOIN job_parts AS parts
                ON parts.job_seq = runs.seq AND parts.kind = 'iteration' AND parts.number = 1
            JOIN json_each(?2) AS entry ON entry.key = wanted.key
            LEFT JOIN decision_payloads AS written ON written.entry_seq = entry.value
            WHERE runs.removed_by IS NULL"""
        found: dict[int, AuditedAnswer] = {}
        with self._database.reading() as connection:
            for row in connection.execute(sql, [json.dumps(list(runs)), json.dumps(list(entries))]):
                with readable(connection, "run", row["run_seq"]):
                    iteration = Iteration.model_validate_json(unpack(row["iteration"]))
                found[int(row["run_seq"])] = AuditedAnswer(
                    str(row["case_id"]),
                    str(row["run_id"]),
                    str(row["query"]),
                    iteration,
                    str(row["reason"] or ""),
                    str(row["note"] or ""),
                )
        return found


def remove_trials_of_run(connection: sqlite3.Connection, run_seq: int) -> None:
    """Remove the results of the trials that are compared with a stored audit."""
    connection.execute("DELETE FROM judge_trials WHERE run_seq = ?", [run_seq])

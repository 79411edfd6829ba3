"""Stores actions on many cases at once, and which cases each reviewer has opened.

A batch is stored with its cases before the first of them is handled, so that it continues after an
interruption, handles no case twice, and can be undone as a whole.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from masis.errors import UnknownRecord
from masis.schema.batches import Batch, BatchState, LeftOut, Outcome
from masis.schema.review import CaseState
from masis.store.audits.queue import case_seq
from masis.store.core.connections import StorePart
from masis.store.core.sql import insert
from masis.store.reviews.visibility import strictest_shown


class CaseFacts(NamedTuple):
    """What decides whether an action may include a case, for one reviewer.

    Attributes:
        state: The state as stored, even if a policy hides it.
        severity: The severity of the worst issue in the original answer.
        has_answer: Whether there is an answer to decide.
        answered: Whether that answer came with the case; otherwise the audit wrote it.
        decided_by_me: Whether the reviewer's decision counts.
        settled: Whether all decisions that several reviewers make are made.
        opened: Whether the reviewer has opened the case.
        held: Whether others have taken it; ``Team.is_free`` says whether that keeps it closed.
        drafted: Whether the reviewer has a draft of a decision on it.
        redacted: Whether the content was removed.

    """

    case_id: str
    version: int
    state: CaseState
    severity: str | None
    has_answer: bool
    answered: bool
    decided_by_me: bool
    settled: bool
    opened: bool
    held: bool
    drafted: bool
    redacted: bool


class BatchCase(NamedTuple):
    """A case of a batch that is still to be handled, with the entry that the batch made, if any."""

    case_id: str
    version: int
    entry_id: str | None


class PlannedCase(NamedTuple):
    """A case to store with a batch; ``why`` says why it's left out, or is None."""

    case_id: str
    version: int
    why: LeftOut | None


class StoredBatch(NamedTuple):
    """A batch with its counts, the digest of its request, and the request until it has ended."""

    batch: Batch
    digest: str
    request: str | None


_FACTS = """
    SELECT cases.id, cases.version, cases.state, cases.severity,
        coalesce(trim(payload ->> '$.answer'), '') <> '' OR coalesce(iterations, 0) > 0,
        coalesce(trim(payload ->> '$.answer'), '') <> '',
        EXISTS (SELECT 1 FROM case_work
            WHERE case_seq = seq AND kind = 'decided' AND who = :me),
        policy IS NOT NULL AND pending = 0 AND EXISTS (SELECT 1 FROM case_work
            WHERE case_seq = seq AND kind = 'decided'),
        EXISTS (SELECT 1 FROM openings WHERE openings.case_seq = seq AND reviewer = :me),
        EXISTS (SELECT 1 FROM leases
            WHERE leases.case_seq = seq AND reviewer <> :me AND :now BETWEEN taken_at AND until),
        EXISTS (SELECT 1 FROM drafts WHERE reviewer = :me AND subject = 'case:' || cases.id),
        redaction_seq IS NOT NULL
    FROM json_each(:ids) AS wanted
    CROSS JOIN cases ON cases.id = wanted.value
    CROSS JOIN case_payloads ON case_payloads.case_seq = cases.seq
    ORDER BY wanted.key
"""


class Batches(StorePart):
    """The batches of a store."""

    def facts(self, case_ids: Sequence[str], reviewer: str) -> tuple[CaseFacts, ...]:
        """Return the facts about cases for a reviewer, in the order of the ids.

        Raises:
            UnknownRecord: There is no such case.

        """
        values = {"me": reviewer, "ids": json.dumps(list(case_ids)), "now": self._database.now()}
        with self._database.reading() as connection:
            rows = connection.execute(_FACTS, values).fetchall()
        if len(rows) < len(case_ids):
            missing = next(iter(set(case_ids) - {row[0] for row in rows}))
            raise UnknownRecord(f"there is no case {missing!r}.")
        return tuple(CaseFacts(*row[:4], *map(bool, row[4:])) for row in rows)

    def add(
        self, batch: Batch, token: str, digest: str, request: str, cases: Iterable[PlannedCase]
    ) -> None:
        """Store a new batch with its cases. Those that are left out are kept as they are."""
        with self._database.transaction() as connection:
            number = insert(
                connection,
                "batches",
                {
                    "id": batch.id,
                    "token": token,
                    "by": batch.by,
                    "at": batch.at,
                    "action": batch.action,
                    "names": json.dumps(batch.names),
                    "digest": digest,
                    "request": request,
                    "state": batch.state,
                },
            )
            connection.executemany(
                """INSERT INTO batch_cases (batch_seq, case_seq, place, version, outcome, why)
                    SELECT ?, seq, ?, ?, ?, ? FROM cases WHERE id = ?""",
                [
                    (
                        number,
                        place,
                        case.version,
                        "waiting" if case.why is None else "kept",
                        case.why,
                        case.case_id,
                    )
                    for place, case in enumerate(cases)
                ],
            )

    def get(self, batch_id: str) -> StoredBatch:
        """Return a batch.

        Raises:
            UnknownRecord: There is no such batch.

        """
        row = self._database.row("SELECT * FROM batches WHERE id = ?", [batch_id])
        if row is None:
            raise UnknownRecord(
                f"there is no batch {batch_id!r}. 'masis batch list' shows their ids."
            )
        return self._read_stored(row)

    def with_token(self, by: str, token: str) -> StoredBatch | None:
        """Return the batch that a person made with a token, or None."""
        row = self._database.row("SELECT * FROM batches WHERE by = ? AND token = ?", [by, token])
        return None if row is None else self._read_stored(row)

    def newest(self, by: str | None, limit: int) -> tuple[Batch, ...]:
        """Return the newest batches of one person, or of all."""
        rows = self._database.execute(
            "SELECT * FROM batches WHERE by = ?1 OR ?1 IS NULL ORDER BY seq DESC LIMIT ?2",
            [by, limit],
        )
        return tuple(self._read_stored(row).batch for row in rows)

    def list_remaining(self, batch_id: str, outcome: Outcome, limit: int) -> tuple[BatchCase, ...]:
        """Return the next cases of a batch with an outcome, in the order of the batch."""
        rows = self._database.execute(
            """SELECT cases.id, batch_cases.version, log.id AS entry_id FROM batches
                CROSS JOIN batch_cases ON batch_seq = batches.seq AND outcome = ?
                CROSS JOIN cases ON cases.seq = batch_cases.case_seq
                LEFT JOIN decision_log AS log ON log.seq = entry_seq
                WHERE batches.id = ? ORDER BY place LIMIT ?""",
            [outcome, batch_id, limit],
        )
        return tuple(BatchCase(*row) for row in rows)

    def note(
        self,
        batch_id: str,
        case_id: str,
        outcome: Outcome,
        *,
        entry_id: str | None = None,
        why: LeftOut | None = None,
    ) -> None:
        """Store what became of a case, with the entry that was made for it or that undid it."""
        column = "undo_seq" if outcome in ("undone", "not_undone") else "entry_seq"
        with self._database.transaction() as connection:
            connection.execute(
                f"UPDATE batch_cases SET outcome = ?, why = ?, {column} ="  # noqa: S608
                " (SELECT seq FROM decision_log WHERE id = ?)"
                " WHERE case_seq = ? AND batch_seq = (SELECT seq FROM batches WHERE id = ?)",
                [outcome, why, entry_id, case_seq(connection, case_id), batch_id],
            )

    def has_outcome(self, batch_id: str, case_id: str, outcome: Outcome) -> bool:
        """Return whether a case of a batch has this outcome now."""
        return bool(
            self._database.execute(
                """SELECT 1 FROM batches CROSS JOIN batch_cases ON batch_seq = batches.seq
                    CROSS JOIN cases ON cases.seq = case_seq
                    WHERE batches.id = ? AND cases.id = ? AND outcome = ?""",
                [batch_id, case_id, outcome],
            )
        )

    def set_state(self, batch_id: str, state: BatchState) -> None:
        """Set the state. A batch whose cases are handled loses the text of its request.

        A cancelled batch keeps the cases that were waiting as they are.
        """
        with self._database.transaction() as connection:
            connection.execute("UPDATE batches SET state = ? WHERE id = ?", [state, batch_id])
            if state != "applying":
                connection.execute("UPDATE batches SET request = NULL WHERE id = ?", [batch_id])
                connection.execute(
                    "UPDATE batch_cases SET outcome = 'kept', why = 'cancelled'"
                    " WHERE outcome = 'waiting'"
                    " AND batch_seq = (SELECT seq FROM batches WHERE id = ?)",
                    [batch_id],
                )

    # Openings

    def note_opening(self, case_id: str, reviewer: str, *, machine_seen: bool) -> None:
        """Remember that a reviewer has opened a case, and whether the machine's verdict was shown.

        Raises:
            UnknownRecord: There is no such case.

        """
        with self._database.reading() as connection:
            values = [case_seq(connection, case_id), reviewer]
            known = """SELECT 1 FROM openings WHERE case_seq = ? AND reviewer = ?
                AND machine_seen >= ?"""
            # Most openings are known, and a write would wait for other writers.
            if connection.execute(known, [*values, machine_seen]).fetchone() is not None:
                return
        with self._database.transaction(durable=False) as connection:
            connection.execute(
                """INSERT INTO openings VALUES (?, ?, ?, ?) ON CONFLICT (case_seq, reviewer)
                    DO UPDATE SET machine_seen = max(machine_seen, excluded.machine_seen)""",
                [*values, self._database.now(), machine_seen],
            )

    def has_seen_machine(self, case_id: str, reviewer: str) -> bool:
        """Return whether a reviewer has seen the machine's verdict on a case, or may have.

        A policy that hides the verdict until a reviewer has decided shows it after an earlier
        decision, even if that was undone since.

        Raises:
            UnknownRecord: There is no such case.

        """
        with self._database.reading() as connection:
            case = case_seq(connection, case_id)
            shown, decided = connection.execute(
                """SELECT EXISTS (SELECT 1 FROM openings
                        WHERE case_seq = ? AND reviewer = ? AND machine_seen),
                    EXISTS (SELECT 1 FROM decision_log AS log JOIN decision_payloads AS written
                        ON written.entry_seq = log.seq WHERE log.case_seq = ?
                        AND log.kind = 'decision' AND written.reviewer = ?)""",
                [case, reviewer, case, reviewer],
            ).fetchone()
            return bool(shown or (decided and strictest_shown(connection) != "never"))

    def _read_stored(self, row: sqlite3.Row) -> StoredBatch:
        counts: dict[str, dict[LeftOut | None, int]] = {}
        for outcome, why, number in self._database.execute(
            "SELECT outcome, why, count(*) FROM batch_cases WHERE batch_seq = ?"
            " GROUP BY outcome, why ORDER BY count(*) DESC, why",
            [row["seq"]],
        ):
            counts.setdefault(outcome, {})[why] = number

        def reasons(outcome: Outcome) -> dict[LeftOut, int]:
            return {why: n for why, n in counts.get(outcome, {}).items() if why is not None}

        def total(outcome: Outcome) -> int:
            return sum(counts.get(outcome, {}).values())

        batch = Batch(
            id=row["id"],
            by=row["by"],
            at=row["at"],
            action=row["action"],
            state=row["state"],
            names=tuple(json.loads(row["names"])),
            waiting=total("waiting"),
            recorded=total("recorded"),
            kept=reasons("kept"),
            undone=total("undone"),
            not_undone=reasons("not_undone"),
        )
        return StoredBatch(batch, row["digest"], row["request"])

"""Stores which cases are copies of sound answers with a planted fault, and the decisions on them.

Until a copy is decided, only ``cases.planted`` distinguishes it from other cases. That column keeps
it out of exports and samples. Afterwards its state is derived from it (``states.py``).
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, Literal

from masis.errors import Conflict
from masis.schema.base import Record
from masis.schema.case import Case
from masis.schema.faults import FaultKind, PlantedFault, PlantingRecord
from masis.schema.review import CaseState, Decision
from masis.store.audits import queue
from masis.store.audits.cases import Cases
from masis.store.audits.queue import case_seq
from masis.store.core.connections import StorePart
from masis.store.records import CaseFilter
from masis.store.reviews.decisions import LOG
from masis.store.reviews.team import Team


class PlantedCopy(Record):
    """A copy with its fault, the id of the original case, and its state.

    ``run_id`` is its newest finished run whose content is stored. ``started`` means that at least
    one decision on it was made; others may be pending.
    """

    case_id: str
    source_id: str
    planted_at: str
    planted_by: str
    kind: FaultKind
    fault: PlantedFault
    state: CaseState
    started: bool
    run_id: str | None = None
    withdrawn_at: str | None = None

    @property
    def decided(self) -> bool:
        """Whether all its decisions are made, so that the fault isn't secret any more."""
        return self.state == "planted" and self.withdrawn_at is None


class PlantedDecision(Record):
    """A reviewer's decision about a copy, and whether they had decided the original case before."""

    case_id: str
    reviewer: str
    simulated: bool
    knew_source: bool
    decision: Decision


_COPIES = """
    SELECT copy.id AS case_id, source.id AS source_id, planted_at, planted_by, kind, fault,
        copy.state, withdrawn_at,
        EXISTS (
            SELECT 1 FROM case_work WHERE case_work.case_seq = copy.seq
                AND case_work.kind = 'decided'
        ) AS started,
        (
            SELECT id FROM runs WHERE runs.case_seq = copy.seq AND runs.state = 'finished'
                AND removed_by IS NULL
            ORDER BY runs.seq DESC LIMIT 1
        ) AS run_id
    FROM planted_faults JOIN cases AS copy ON copy.seq = planted_faults.case_seq
    JOIN cases AS source ON source.seq = source_seq
"""


class PlantedFaults(StorePart):
    """Reads and writes the copies with a planted fault."""

    def add(self, case: Case, fault: PlantedFault, source_id: str, by: str) -> None:
        """Store a copy with its fault.

        Raises:
            StoreError: A case with its id exists.
            UnknownRecord: There is no source case with this id.

        """
        with self._database.transaction() as connection:
            if Cases(self._database).add(case) != "added":
                raise Conflict(f"case {case.id!r} is here already.")
            self._mark(case_seq(connection, case.id), case_seq(connection, source_id), by, fault)

    def carry_over(self, case_id: str, newer: str) -> None:
        """Mark the new version of a copy as a copy too. Other cases aren't changed."""
        with self._database.transaction() as connection:
            for row in connection.execute(f"{_COPIES} WHERE copy.id = ?", [case_id]).fetchall():
                fault = PlantedFault.model_validate_json(row["fault"])
                source = case_seq(connection, row["source_id"])
                self._mark(case_seq(connection, newer), source, row["planted_by"], fault)

    def _mark(self, copy: int, source: int, by: str, fault: PlantedFault) -> None:
        with self._database.transaction() as connection:
            connection.execute("UPDATE cases SET planted = 1 WHERE seq = ?", [copy])
            connection.execute(
                "INSERT INTO planted_faults VALUES (?, ?, ?, ?, ?, ?, NULL)",
                [copy, source, self._database.now(), by, fault.kind, fault.model_dump_json()],
            )

    def note(
        self,
        by: str,
        act: Literal["planted", "withdrawn"],
        case_ids: Sequence[str],
        seed: int | None = None,
    ) -> None:
        """Record an act of a lead in the team's chain. Later decisions contain its digest."""
        Team(self._database).put_in_force(
            by, PlantingRecord(act=act, seed=seed, case_ids=tuple(case_ids))
        )

    def copies(self, case_id: str | None = None) -> list[PlantedCopy]:
        """Return all copies in the order they were planted, or only the one with this case id."""
        where, values = ("WHERE copy.id = ?", [case_id]) if case_id is not None else ("", [])
        rows = self._database.execute(f"{_COPIES} {where} ORDER BY planted_faults.case_seq", values)
        return [
            PlantedCopy.model_validate(
                {**dict(row), "fault": json.loads(row["fault"]), "started": bool(row["started"])}
            )
            for row in rows
        ]

    def find_revealed(self, case_id: str) -> PlantedCopy | None:
        """Return the planted copy with this case id, or None if it's undecided or not a copy."""
        return next((copy for copy in self.copies(case_id) if copy.state == "planted"), None)

    def copies_of(self, source_id: str) -> tuple[str, ...]:
        """Return the ids of the copies of a case whose content is stored."""
        sql = """SELECT copy.id FROM planted_faults JOIN cases AS copy
            ON copy.seq = planted_faults.case_seq
            JOIN cases AS source ON source.seq = source_seq
            WHERE source.id = ? AND copy.redaction_seq IS NULL"""
        return tuple(row[0] for row in self._database.execute(sql, [source_id]))

    def mark_withdrawn(self, case_id: str) -> None:
        """Record that an undecided copy was withdrawn."""
        with self._database.transaction() as connection:
            connection.execute(
                "UPDATE planted_faults SET withdrawn_at = ? WHERE case_seq = ?",
                [self._database.now(), case_seq(connection, case_id)],
            )

    def decisions(self) -> list[PlantedDecision]:
        """Return each reviewer's last decision about each copy that isn't secret any more.

        Later decisions are refused (``Decisions.append``), so all of these were made before the
        fault was shown.
        """
        made = """
            log.seq IN (
                SELECT max(made.seq) FROM planted_faults
                JOIN cases AS copy
                    ON copy.seq = planted_faults.case_seq AND copy.state = 'planted'
                        AND withdrawn_at IS NULL
                JOIN decision_log AS made ON made.case_seq = copy.seq AND made.kind = 'decision'
                JOIN decision_payloads AS content ON content.entry_seq = made.seq
                WHERE made.seq NOT IN (
                    SELECT undo.undoes FROM decision_log AS undo
                    WHERE undo.case_seq = copy.seq AND undo.undoes IS NOT NULL
                )
                GROUP BY made.case_seq, content.reviewer
            )
        """
        knew = """
            SELECT 1 FROM planted_faults JOIN cases AS copy ON copy.seq = planted_faults.case_seq
            JOIN decision_log AS before ON before.case_seq = source_seq
                AND before.kind IN ('decision', 'adjudication')
            JOIN decision_payloads AS content ON content.entry_seq = before.seq
                AND content.reviewer = ?
            WHERE copy.id = ? AND before.seq < ? LIMIT 1
        """
        decided: list[PlantedDecision] = []
        with self._database.reading() as connection:
            for entry in map(LOG.entry_of, LOG.rows(connection, made, [])):
                decision = entry.decision
                if decision is None:
                    continue
                values: list[Any] = [decision.reviewer, decision.case_id, entry.seq]
                decided.append(
                    PlantedDecision(
                        case_id=decision.case_id,
                        reviewer=decision.reviewer,
                        simulated=bool(decision.extra.get("simulated")),
                        knew_source=connection.execute(knew, values).fetchone() is not None,
                        decision=decision,
                    )
                )
        return decided

    def sound(self, case_filter: CaseFilter | None = None) -> list[str]:
        """Return the ids of approved cases without a copy, oldest first.

        Approvals that the demo simulated are left out, and so are cases of a screening, because
        their evidence is judged too.
        """
        sound = """
            SELECT approved.seq FROM cases AS approved JOIN decision_log AS log
                ON log.seq = approved.decision_seq
            JOIN decision_payloads ON entry_seq = log.seq JOIN case_payloads AS held
                ON held.case_seq = approved.seq
            WHERE approved.state = 'approved' AND NOT approved.planted AND log.source = 'HUMAN'
                AND NOT simulated AND approved.redaction_seq IS NULL
                AND held.payload ->> '$.screening' IS NULL
                AND NOT EXISTS (SELECT 1 FROM planted_faults WHERE source_seq = approved.seq)
        """
        case_filter = case_filter or CaseFilter()
        with queue.reading_matches(self._database, case_filter) as connection:
            matches = queue.matching(connection, case_filter)
            rows = connection.execute(
                f"SELECT cases.id FROM {matches.source} WHERE {matches.where} "  # noqa: S608
                f"AND cases.seq IN ({sound}) "
                "ORDER BY cases.seq",
                matches.values,
            ).fetchall()
        return [str(row[0]) for row in rows]

    def taken_ids(self, beginning: str) -> list[str]:
        """Return the ids of cases that begin with a text."""
        sql = "SELECT id FROM cases WHERE substr(id, 1, length(?1)) = ?1"
        return [str(row[0]) for row in self._database.execute(sql, [beginning])]

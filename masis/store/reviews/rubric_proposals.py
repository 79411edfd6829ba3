"""Reads the causes of disagreements, and the sentences that adjudications propose for the rubric.

Only verdicts in force count, and only on settled cases. While a case waits for a decision, nothing
of it is read, so that no reviewer learns how others decided it.
"""

from __future__ import annotations

import json
from typing import NamedTuple

from masis.schema.review import Decision, LogEntry
from masis.schema.team import ProposalOutcome
from masis.store.core.connections import StorePart
from masis.store.reviews.decisions import LOG
from masis.store.reviews.team import Team

_FINAL = """FROM cases JOIN decision_log AS log ON log.seq = cases.decision_seq
    JOIN decision_payloads AS written ON written.entry_seq = log.seq
    WHERE log.kind = 'adjudication' AND NOT cases.planted"""


class TouchedCases(NamedTuple):
    """The decided cases that a sentence would touch: the first ids, and the number of all."""

    ids: tuple[str, ...]
    total: int


class RubricProposals(StorePart):
    """Reads the adjudications of a store for their causes and proposals."""

    def causes(self) -> dict[str, int]:
        """Count the final verdicts in force by cause; "" counts those without one."""
        sql = f"SELECT coalesce(payload ->> '$.cause', ''), count(*) {_FINAL} GROUP BY 1"
        return {str(cause): int(cases) for cause, cases in self._database.execute(sql)}

    def open(self) -> list[LogEntry]:
        """Return the final verdicts in force whose sentence is neither accepted nor dismissed."""
        done = {outcome.entry_id for *_, outcome in Team(self._database).history(ProposalOutcome)}
        proposing = (
            f"log.seq IN (SELECT log.seq {_FINAL} AND payload ->> '$.rubric_sentence' <> '')"
        )
        with self._database.reading() as connection:
            entries = map(LOG.entry_of, LOG.rows(connection, proposing, []))
            return [entry for entry in entries if entry.id not in done]

    def find_touched(
        self, case_id: str, reason_codes: frozenset[str], labels: frozenset[str], most: int
    ) -> TouchedCases:
        """Return the settled cases whose decision in force shares a reason code or a label.

        Args:
            case_id: The case of the adjudication, which is left out.
            reason_codes: The codes of its reasons.
            labels: The labels and types of reported issues on it.
            most: The number of ids to return.

        """
        touched = """FROM cases JOIN decision_log AS log ON log.seq = cases.decision_seq
            JOIN decision_payloads AS written ON written.entry_seq = log.seq
            WHERE log.source = 'HUMAN' AND NOT cases.planted AND cases.id <> ? AND (
                payload ->> '$.extra.reason_code' IN (SELECT value FROM json_each(?))
                OR marks AND EXISTS (
                    SELECT 1 FROM json_each(payload, '$.labels') AS label
                    WHERE label.value ->> '$.label' IN (SELECT value FROM json_each(?))
                ))"""
        values = [case_id, json.dumps(sorted(reason_codes)), json.dumps(sorted(labels))]
        with self._database.reading() as connection:
            [total] = connection.execute(f"SELECT count(*) {touched}", values).fetchone()
            rows = connection.execute(
                f"SELECT cases.id {touched} ORDER BY cases.seq LIMIT ?",
                [*values, most],
            ).fetchall()
        return TouchedCases(tuple(str(row[0]) for row in rows), int(total))

    def decisions_of(self, case_id: str) -> list[Decision]:
        """Return the individual decisions on a settled case, and the one in force."""
        decided = """log.case_seq = (SELECT seq FROM cases WHERE id = ? AND pending = 0) AND (
            log.seq IN (SELECT entry_seq FROM case_work WHERE kind = 'decided')
            OR log.seq = (SELECT decision_seq FROM cases WHERE seq = log.case_seq))"""
        with self._database.reading() as connection:
            entries = map(LOG.entry_of, LOG.rows(connection, decided, [case_id]))
            return [entry.decision for entry in entries if entry.decision is not None]

"""Stores the acceptance memory and the cached grades of screenings.

A reset is an entry of the screening log. It deletes nothing. Earlier acceptances are marked as
forgotten, so they don't move thresholds any more, and still appear in the charts of drift.
"""

from __future__ import annotations

from collections.abc import Iterable

from masis.errors import UnknownRecord
from masis.schema.screening import AcceptedStudy, Grade, ScreeningDecision, ScreeningEntry
from masis.store.core.connections import StorePart
from masis.store.jobs import job_row, pack, unpack
from masis.store.screening_log import append_entry


class Acceptances(StorePart):
    """The acceptance memory of a store. Implements ``screening.memory.Memory``."""

    def entries(self) -> tuple[AcceptedStudy, ...]:
        """Return all entries since the last reset, oldest first."""
        return self._read_entries("WHERE forgotten_by IS NULL")

    def history(self) -> tuple[AcceptedStudy, ...]:
        """Return all entries, including forgotten ones, oldest first."""
        return self._read_entries("")

    def replace(self, screening_id: str, acceptances: Iterable[AcceptedStudy]) -> None:
        """Replace the acceptances of one screening.

        If a reset has forgotten them, nothing is stored. Raises UnknownRecord if the screening
        isn't in this store, or an acceptance belongs to another one.
        """
        with self._database.transaction(durable=False) as connection:
            seq = job_row(connection, "screening", screening_id)["seq"]
            connection.execute(
                "DELETE FROM acceptances WHERE screening_seq = ? AND forgotten_by IS NULL", [seq]
            )
            if connection.execute(
                "SELECT 1 FROM acceptances WHERE screening_seq = ?", [seq]
            ).fetchone():
                return  # a later override must not bring back what a reset has forgotten
            for study in acceptances:
                if study.screening_id != screening_id:
                    raise UnknownRecord(
                        f"the acceptance is of screening {study.screening_id!r}, not"
                        f" {screening_id!r}."
                    )
                connection.execute(
                    "INSERT INTO acceptances (screening_seq, at, payload) VALUES (?, ?, ?)",
                    [seq, study.at or self._database.now(), study.model_dump_json()],
                )

    def reset(self, *, by: str, reason: str) -> ScreeningEntry:
        """Mark all acceptances as forgotten, and return the entry, which records their number."""
        with self._database.transaction() as connection:
            forgotten = connection.execute(
                "SELECT count(*) FROM acceptances WHERE forgotten_by IS NULL"
            ).fetchone()[0]
            extra = {"forgotten": forgotten}
            decision = ScreeningDecision(
                kind="memory_reset", reviewer=by, screening_id=None, reason=reason, extra=extra
            )
            entry = append_entry(connection, decision, self._database.now(), None)
            connection.execute(
                "UPDATE acceptances SET forgotten_by = ? WHERE forgotten_by IS NULL", [entry.seq]
            )
        return entry

    def _read_entries(self, where: str) -> tuple[AcceptedStudy, ...]:
        sql = f"SELECT payload FROM acceptances {where} ORDER BY seq"  # noqa: S608
        rows = self._database.execute(sql)
        return tuple(AcceptedStudy.model_validate_json(row[0]) for row in rows)


class RememberedGrades(StorePart):
    """Cached grades. Implements ``screening.grading.grader.GradeCache``."""

    def get(self, key: str) -> Grade | None:
        """Return the grade with this key, or None."""
        row = self._database.row("SELECT grade FROM remembered_grades WHERE key = ?", [key])
        return Grade.model_validate_json(unpack(row[0])) if row else None

    def store(self, key: str, grade: Grade) -> None:
        """Store a grade under a key, replacing an earlier one."""
        with self._database.transaction(durable=False) as connection:
            connection.execute(
                "INSERT OR REPLACE INTO remembered_grades VALUES (?, ?, ?)",
                [key, self._database.now(), pack(grade.model_dump_json())],
            )

    def clear(self) -> int:
        """Delete all cached grades, and return their number."""
        with self._database.transaction(durable=False) as connection:
            return connection.execute("DELETE FROM remembered_grades").rowcount

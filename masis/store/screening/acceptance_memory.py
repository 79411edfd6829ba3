"""The acceptance memory and the grades remembered: what screening learned, stored across restarts.

A reset is an entry of the screening log. It deletes nothing: what was accepted before is marked as
forgotten, no longer moves any threshold and stays for the charts of drift.
"""

from __future__ import annotations

from collections.abc import Iterable

from masis.errors import UnknownRecord
from masis.schema.screening import AcceptedStudy, Grade, ScreeningDecision, ScreeningEntry
from masis.store.core.connections import StorePart
from masis.store.jobs import job_row, pack, unpack
from masis.store.screening.log import append_entry


class Acceptances(StorePart):
    """The acceptance memory of a store: fills the protocol ``screening.memory.Memory``."""

    def entries(self) -> tuple[AcceptedStudy, ...]:
        """All entries since the last reset, oldest first."""
        return self._read_entries("WHERE forgotten_by IS NULL")

    def history(self) -> tuple[AcceptedStudy, ...]:
        """All entries, forgotten ones too, oldest first."""
        return self._read_entries("")

    def replace(self, screening_id: str, acceptances: Iterable[AcceptedStudy]) -> None:
        """Store what one screening leaves to remember, none included, in place of what it left
        before.

        Entries that a reset has forgotten stay so. Raises UnknownRecord for a screening that is not
        in this store.
        """
        with self._database.transaction(durable=False) as connection:
            seq = job_row(connection, "screening", screening_id)["seq"]
            connection.execute(
                "DELETE FROM acceptances WHERE screening_seq = ? AND forgotten_by IS NULL", [seq]
            )
            if connection.execute(
                "SELECT 1 FROM acceptances WHERE screening_seq = ?", [seq]
            ).fetchone():
                return  # forgotten: it is not learned again through a later override
            for each in acceptances:
                if each.screening_id != screening_id:
                    raise UnknownRecord(
                        f"the acceptance is of screening {each.screening_id!r}, not"
                        f" {screening_id!r}."
                    )
                connection.execute(
                    "INSERT INTO acceptances (screening_seq, at, payload) VALUES (?, ?, ?)",
                    [seq, each.at or self._database.now(), each.model_dump_json()],
                )

    def reset(self, *, by: str, reason: str) -> ScreeningEntry:
        """Forget what was accepted so far; the entry says how many were forgotten."""
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
        rows = self._database.execute(f"SELECT payload FROM acceptances {where} ORDER BY seq")  # noqa: S608
        return tuple(AcceptedStudy.model_validate_json(row[0]) for row in rows)


class RememberedGrades(StorePart):
    """What graders said before: fills the protocol ``screening.grading.grader.GradeCache``."""

    def get(self, key: str) -> Grade | None:
        """The grade under a key; None where there is none."""
        row = self._database.row("SELECT grade FROM remembered_grades WHERE key = ?", [key])
        return Grade.model_validate_json(unpack(row[0])) if row else None

    def store(self, key: str, grade: Grade) -> None:
        """Store a grade under a key, in place of the one that was there."""
        with self._database.transaction(durable=False) as connection:
            connection.execute(
                "INSERT OR REPLACE INTO remembered_grades VALUES (?, ?, ?)",
                [key, self._database.now(), pack(grade.model_dump_json())],
            )

    def clear(self) -> int:
        """Forget them all; returns how many there were."""
        with self._database.transaction(durable=False) as connection:
            return connection.execute("DELETE FROM remembered_grades").rowcount

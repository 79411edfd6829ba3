"""Screenings: kept as they go, round by round, so that a page shows them growing and a killed one is taken up.

As with runs, a screening is ``running`` (its owner lives), ``interrupted`` (cut short, resumable) or ``finished``, for
good: what the machine said is never overwritten. What people say about it lies in the screening log.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

from masis.errors import StoreError
from masis.schema.screening import Abstract, Screening, ScreeningEvent, Thresholds
from masis.store.core import process_owner
from masis.store.core.connections import Database
from masis.store.core.process_owner import Owner
from masis.store.screening.records import ScreeningProgress, ScreeningSummary
from masis.store.screening.rows import (
    assert_kept,
    finished_rounds,
    insert,
    keep_abstracts,
    keep_grade,
    keep_round,
    last_event,
    read_abstracts,
    read_result,
    row_of,
    unknown,
    write_result,
)

if TYPE_CHECKING:
    from masis.screening.rounds.round_loop import FinishedRound


class Screenings:
    """The screenings of a store."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def start(
        self,
        screening_id: str,
        *,
        question: str,
        sources: Sequence[str],
        settings: dict[str, Any],
        thresholds: Thresholds | None = None,
        started_at: str | None = None,
        owner: Owner | None = None,
    ) -> None:
        """Note that a screening begins, in this process unless an owner is named.

        Raises StoreError where the id is taken.
        """
        with self._database.transaction(durable=False) as connection:
            if connection.execute("SELECT 1 FROM screenings WHERE id = ?", [screening_id]).fetchone():
                raise StoreError(f"screening {screening_id!r} has been started before. Resume it, or take a new id.")
            at = started_at or self._database.now()
            insert(connection, screening_id, question, sources, settings, thresholds, at, owner)

    def resume(self, screening_id: str, *, owner: Owner | None = None) -> ScreeningProgress:
        """Take up an interrupted screening in this process, and say how far it had come.

        Raises StoreError where it is under way in a living process, or finished.
        """
        owner = owner or process_owner.this_process()
        with self._database.transaction(durable=False) as connection:
            row = row_of(connection, screening_id)
            assert_kept(connection, row)
            if row["state"] == "finished":
                raise StoreError(f"screening {screening_id!r} is finished: there is nothing to resume.")
            if row["state"] == "running" and not self._lost(row):
                holder = Owner.from_text(row["owner"])
                raise StoreError(
                    f"screening {screening_id!r} is under way in process {holder.pid} on {holder.host}. Wait for it, "
                    "or cancel it."
                )
            connection.execute(
                """UPDATE screenings SET state = 'running', starts = starts + 1, owner = ?, seen_at = ?,
                   ended_at = NULL, why = '', cancel_requested = 0, version = version + 1 WHERE seq = ?""",
                [owner.to_text(), self._database.now(), row["seq"]],
            )
        return self.progress(screening_id)

    def append_event(self, event: ScreeningEvent) -> ScreeningEvent:
        """Keep an event; returned with the number it got, which follows the last one where its own was taken."""
        with self._database.transaction(durable=False) as connection:
            row = row_of(connection, event.screening_id)
            last = last_event(connection, row["seq"])
            if event.seq <= last:
                event = event.model_copy(update={"seq": last + 1})
            connection.execute(
                "INSERT INTO screening_events VALUES (?, ?, ?)", [row["seq"], event.seq, event.model_dump_json()]
            )
            self._seen(connection, row["seq"])
        return event

    def keep(self, screening_id: str, finished: FinishedRound) -> None:
        """Keep a finished round with the abstracts and grades that came with it; the same number again replaces it."""
        with self._database.transaction(durable=False) as connection:
            row = row_of(connection, screening_id)
            if row["state"] == "finished":
                raise StoreError(f"screening {screening_id!r} is finished: what it said is never overwritten.")
            keep_round(connection, row["seq"], finished.round)
            keep_abstracts(connection, row["seq"], finished.round.number, finished.abstracts)
            for grade in finished.grades:
                keep_grade(connection, row["seq"], grade)
            connection.execute("UPDATE screenings SET version = version + 1 WHERE seq = ?", [row["seq"]])
            self._seen(connection, row["seq"])

    def finish(self, screening: Screening, abstracts: Iterable[Abstract] = ()) -> None:
        """Keep the result of a screening, started here or computed elsewhere (then with the abstracts it graded).

        Finishing twice with the same result is harmless; with another one it is a StoreError.
        """
        with self._database.transaction(durable=False) as connection:
            row = connection.execute("SELECT * FROM screenings WHERE id = ?", [screening.id]).fetchone()
            if row is None:
                seq = insert(
                    connection,
                    screening.id,
                    screening.question,
                    screening.retrievers,
                    screening.settings,
                    screening.thresholds,
                    screening.started_at,
                    None,
                )
            elif row["state"] == "finished":
                assert_kept(connection, row)
                if read_result(connection, row) != screening:
                    raise StoreError(f"screening {screening.id!r} is finished with another result, which stays.")
                return
            else:
                seq = row["seq"]
            write_result(connection, seq, screening, tuple(abstracts))

    def abandon(self, screening_id: str, why: str) -> None:
        """Note that a screening was cut short; it can be resumed. A finished one stays finished."""
        with self._database.transaction(durable=False) as connection:
            row = row_of(connection, screening_id)
            if row["state"] == "running":
                self._interrupt(connection, row, why)

    def mark_lost(self) -> tuple[str, ...]:
        """Mark screenings whose process is gone as interrupted, and return their ids."""
        with self._database.reading() as connection:
            found = connection.execute("SELECT * FROM screenings WHERE state = 'running'").fetchall()
        lost = [row["id"] for row in found if self._lost(row)]
        if lost:
            with self._database.transaction(durable=False) as connection:
                for screening_id in lost:
                    row = row_of(connection, screening_id)
                    if row["state"] == "running" and self._lost(row):
                        self._interrupt(connection, row, "The process that ran it ended before the screening did.")
        return tuple(lost)

    def request_cancel(self, screening_id: str) -> None:
        """Ask whoever runs it to stop between two steps."""
        with self._database.transaction(durable=False) as connection:
            row = row_of(connection, screening_id)
            connection.execute("UPDATE screenings SET cancel_requested = 1 WHERE seq = ?", [row["seq"]])

    def cancel_requested(self, screening_id: str) -> bool:
        """Whether somebody asked the screening to stop."""
        with self._database.reading() as connection:
            return bool(row_of(connection, screening_id)["cancel_requested"])

    def get(self, screening_id: str) -> Screening:
        """A finished screening as the machine left it. Raises UnknownRecord, Removed, StoreError."""
        with self._database.reading() as connection:
            row = row_of(connection, screening_id)
            assert_kept(connection, row)
            if row["payload"] is None:
                raise StoreError(f"screening {screening_id!r} is {row['state']}: only its progress can be read.")
            return read_result(connection, row)

    def abstracts(self, screening_id: str) -> dict[str, Abstract]:
        """The abstracts of a screening by id, as they were when they were graded, in the order they came."""
        with self._database.reading() as connection:
            row = row_of(connection, screening_id)
            return {abstract.id: abstract for abstract in read_abstracts(connection, row["seq"])}

    def progress(self, screening_id: str) -> ScreeningProgress:
        """How far a screening has come: what it was told, the rounds finished so far."""
        from masis.screening.rounds.round_loop import ResumePoint

        with self._database.reading() as connection:
            row = row_of(connection, screening_id)
            assert_kept(connection, row)
            finished = finished_rounds(connection, row["seq"])
            return ScreeningProgress(
                screening_id=screening_id,
                question=row["question"],
                sources=tuple(json.loads(row["sources"])),
                state=row["state"],
                settings=json.loads(row["settings"]),
                thresholds=Thresholds.model_validate_json(row["thresholds"]) if row["thresholds"] else None,
                started_at=row["started_at"],
                progress=ResumePoint(finished, last_event(connection, row["seq"])),
                cancel_requested=bool(row["cancel_requested"]),
                why=row["why"],
            )

    def events(self, screening_id: str, after: int = 0) -> tuple[ScreeningEvent, ...]:
        """The events of a screening with a number above ``after``, in order."""
        with self._database.reading() as connection:
            row = row_of(connection, screening_id)
            rows = connection.execute(
                "SELECT payload FROM screening_events WHERE screening_seq = ? AND seq > ? ORDER BY seq",
                [row["seq"], after],
            )
            return tuple(ScreeningEvent.model_validate_json(each[0]) for each in rows)

    def summary(self, screening_id: str) -> ScreeningSummary:
        """One screening as lists show it. Raises UnknownRecord."""
        with self._database.reading() as connection:
            found = _summaries(connection, "screenings.id = ?", [screening_id], 1)
        if not found:
            raise unknown(screening_id)
        return found[0]

    def newest(self, limit: int = 50) -> tuple[ScreeningSummary, ...]:
        """The newest screenings, whatever their state, newest first."""
        with self._database.reading() as connection:
            return _summaries(connection, "1", [], limit)

    def running(self) -> tuple[ScreeningSummary, ...]:
        """Screenings under way, in any process, newest first."""
        with self._database.reading() as connection:
            return _summaries(connection, "state = 'running'", [], 1000)

    def interrupted(self) -> tuple[ScreeningSummary, ...]:
        """Screenings that were cut short and can be resumed, newest first."""
        with self._database.reading() as connection:
            return _summaries(connection, "state = 'interrupted' AND removed_by IS NULL", [], 1000)

    def _seen(self, connection: sqlite3.Connection, seq: int) -> None:
        connection.execute("UPDATE screenings SET seen_at = ? WHERE seq = ?", [self._database.now(), seq])

    def _lost(self, row: sqlite3.Row) -> bool:
        alive = process_owner.is_alive(Owner.from_text(row["owner"]))
        if alive is not None:
            return not alive
        silence = datetime.fromisoformat(self._database.now()) - datetime.fromisoformat(row["seen_at"])
        return silence.total_seconds() > process_owner.SILENCE_S

    def _interrupt(self, connection: sqlite3.Connection, row: sqlite3.Row, why: str) -> None:
        connection.execute(
            "UPDATE screenings SET state = 'interrupted', ended_at = ?, why = ?, version = version + 1 WHERE seq = ?",
            [self._database.now(), why, row["seq"]],
        )


_SUMMARY = [
    name for name in ScreeningSummary.model_fields if name not in ("sources", "rounds", "abstracts", "overrides")
]


def _summaries(
    connection: sqlite3.Connection, where: str, values: Sequence[Any], limit: int
) -> tuple[ScreeningSummary, ...]:
    rows = connection.execute(
        f"""SELECT *,
                (SELECT count(*) FROM screening_rounds WHERE screening_seq = screenings.seq) AS rounds,
                (SELECT count(*) FROM screening_abstracts WHERE screening_seq = screenings.seq) AS abstracts,
                (SELECT count(*) FROM screening_log
                 WHERE screening_seq = screenings.seq AND kind = 'override') AS overrides,
                (SELECT at FROM purges WHERE purges.seq = removed_by) AS removed_at
            FROM screenings WHERE {where} ORDER BY seq DESC LIMIT ?""",  # noqa: S608 (conditions of ours, values bound)
        [*values, limit],
    )
    return tuple(
        ScreeningSummary(
            sources=tuple(json.loads(row["sources"])),
            **{name: row[name] for name in (*_SUMMARY, "rounds", "abstracts", "overrides")},
        )
        for row in rows
    )

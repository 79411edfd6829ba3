"""Screenings: stored as they go, round by round, so that a page shows them growing and a killed one is taken up.

As with runs, a screening is ``running`` (its owner lives), ``interrupted`` (cut short, resumable) or ``finished``, for
good: what the machine said is never overwritten. What people say about it is stored in the screening log.
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

if TYPE_CHECKING:
    from masis.screening.rounds.round_loop import FinishedRound


from typing import TYPE_CHECKING

from masis.errors import Removed, UnknownRecord
from masis.schema.screening import Grade, Round
from masis.store.audits.runs import pack, readable, unpack

if TYPE_CHECKING:
    from masis.screening.rounds.round_loop import FinishedRound


from typing import TYPE_CHECKING, NamedTuple

from masis.schema.base import Record
from masis.schema.screening import Outcome
from masis.store.records import RunState

if TYPE_CHECKING:
    from masis.screening.rounds.round_loop import ResumePoint


class ScreeningSummary(Record):
    """A screening in a list. ``outcome`` and ``kept`` are the machine's, None until it is finished.

    ``overrides`` counts what people said about it since. ``version`` changes whenever any of this does.
    Of a screening that retention has removed (``removed_at``) question and outcome stand; rounds and grades are gone.
    """

    id: str
    question: str
    sources: tuple[str, ...]
    state: RunState
    started_at: str
    ended_at: str | None
    why: str
    outcome: Outcome | None
    rounds: int
    abstracts: int
    kept: int | None
    overrides: int
    version: int
    removed_at: str | None = None


class ScreeningProgress(NamedTuple):
    """How far a screening has come: its settings, and from where ``screening.rounds`` can go on."""

    screening_id: str
    question: str
    sources: tuple[str, ...]
    state: RunState
    settings: dict[str, Any]
    thresholds: Thresholds | None
    started_at: str
    progress: ResumePoint
    cancel_requested: bool
    why: str


def row_of(connection: sqlite3.Connection, screening_id: str) -> sqlite3.Row:
    """The row of a screening. Raises UnknownRecord."""
    row: sqlite3.Row | None = connection.execute("SELECT * FROM screenings WHERE id = ?", [screening_id]).fetchone()
    if row is None:
        raise unknown(screening_id)
    return row


def unknown(screening_id: str) -> UnknownRecord:
    """The error for a screening that is not there."""
    return UnknownRecord(f"there is no screening {screening_id!r}.")


def assert_not_removed(connection: sqlite3.Connection, row: sqlite3.Row) -> None:
    """Raise Removed where retention has removed the content of a screening."""
    if row["removed_by"] is not None:
        at = connection.execute("SELECT at FROM purges WHERE seq = ?", [row["removed_by"]]).fetchone()[0]
        raise Removed(
            f"the content of screening {row['id']!r} was removed on {at[:10]} by retention. Screen the question "
            "again to replace it."
        )


def insert(
    connection: sqlite3.Connection,
    screening_id: str,
    question: str,
    sources: Sequence[str],
    settings: dict[str, Any],
    thresholds: Thresholds | None,
    at: str,
    owner: Owner | None,
) -> int:
    """Write a new screening, under way; returns its number."""
    cursor = connection.execute(
        """INSERT INTO screenings (id, question, sources, state, owner, started_at, seen_at, settings, thresholds)
           VALUES (?, ?, ?, 'running', ?, ?, ?, ?, ?)""",
        [
            screening_id,
            question,
            json.dumps(list(sources), ensure_ascii=False),
            (owner or process_owner.this_process()).to_text(),
            at,
            at,
            json.dumps(settings, ensure_ascii=False),
            thresholds.model_dump_json() if thresholds else None,
        ],
    )
    return int(cursor.lastrowid or 0)


def store_round(connection: sqlite3.Connection, seq: int, each: Round) -> None:
    """Write a round, in place of the one with its number."""
    connection.execute(
        "INSERT OR REPLACE INTO screening_rounds VALUES (?, ?, ?)", [seq, each.number, pack(each.model_dump_json())]
    )


def store_abstracts(connection: sqlite3.Connection, seq: int, number: int, abstracts: Iterable[Abstract]) -> None:
    """Write the abstracts that a round brought; one that is there already stays as it was graded."""
    connection.executemany(
        """INSERT INTO screening_abstracts (screening_seq, abstract_id, round, abstract) VALUES (?, ?, ?, ?)
           ON CONFLICT (screening_seq, abstract_id) DO NOTHING""",
        [[seq, each.id, number, pack(each.model_dump_json(exclude_defaults=True))] for each in abstracts],
    )


def store_grade(connection: sqlite3.Connection, seq: int, grade: Grade) -> None:
    """Write the grade of an abstract that was handed over. Raises StoreError where it was not."""
    kept = connection.execute(
        "UPDATE screening_abstracts SET grade = ? WHERE screening_seq = ? AND abstract_id = ?",
        [pack(grade.model_dump_json()), seq, grade.abstract_id],
    )
    if not kept.rowcount:
        raise StoreError(f"abstract {grade.abstract_id!r} was graded and not handed over: hand it over with its grade.")


def write_result(connection: sqlite3.Connection, seq: int, screening: Screening, abstracts: Sequence[Abstract]) -> None:
    """Write the result over what was kept as it went; grades of a round that was not finished go."""
    connection.execute("DELETE FROM screening_rounds WHERE screening_seq = ?", [seq])
    connection.execute("UPDATE screening_abstracts SET grade = NULL WHERE screening_seq = ?", [seq])
    first = {abstract_id: each.number for each in reversed(screening.rounds) for abstract_id in each.retrieved}
    for each in screening.rounds:
        store_round(connection, seq, each)
    for abstract in abstracts:
        store_abstracts(connection, seq, first.get(abstract.id, 0), [abstract])
    for grade in screening.grades:
        store_grade(connection, seq, grade)
    bare = screening.model_copy(update={"rounds": (), "grades": ()})
    order = json.dumps([grade.abstract_id for grade in screening.grades], ensure_ascii=False)
    connection.execute(
        """UPDATE screenings SET state = 'finished', ended_at = ?, why = '', payload = ?, outcome = ?, kept = ?,
           thresholds = ?, version = version + 1 WHERE seq = ?""",
        [
            screening.finished_at,
            pack(f"{order}\n{bare.model_dump_json()}"),
            screening.outcome,
            len(screening.kept),
            screening.thresholds.model_dump_json(),
            seq,
        ],
    )


def _rounds(connection: sqlite3.Connection, seq: int) -> tuple[Round, ...]:
    rows = connection.execute("SELECT payload FROM screening_rounds WHERE screening_seq = ? ORDER BY number", [seq])
    with readable(connection, "screening", seq):
        return tuple(Round.model_validate_json(unpack(row[0])) for row in rows)


def read_abstracts(connection: sqlite3.Connection, seq: int) -> list[Abstract]:
    """The abstracts of a screening, in the order they came."""
    rows = connection.execute("SELECT abstract FROM screening_abstracts WHERE screening_seq = ? ORDER BY seq", [seq])
    with readable(connection, "screening", seq):
        return [Abstract.model_validate_json(unpack(row[0])) for row in rows]


def _grades(connection: sqlite3.Connection, seq: int) -> dict[str, Grade]:
    rows = connection.execute(
        "SELECT grade FROM screening_abstracts WHERE screening_seq = ? AND grade IS NOT NULL ORDER BY seq", [seq]
    )
    with readable(connection, "screening", seq):
        return {grade.abstract_id: grade for row in rows for grade in [Grade.model_validate_json(unpack(row[0]))]}


def finished_rounds(connection: sqlite3.Connection, seq: int) -> tuple[FinishedRound, ...]:
    """Each round with what came with it for the first time."""
    from masis.screening.rounds.round_loop import (
        FinishedRound,  # here, since it brings the whole loop, which opening a store does not need
    )

    grades = _grades(connection, seq)
    rows = connection.execute(
        "SELECT abstract_id, round, abstract FROM screening_abstracts WHERE screening_seq = ? ORDER BY seq", [seq]
    ).fetchall()
    brought: dict[int, list[Abstract]] = {}
    with readable(connection, "screening", seq):
        for row in rows:
            brought.setdefault(row["round"], []).append(Abstract.model_validate_json(unpack(row["abstract"])))
    return tuple(
        FinishedRound(
            each, tuple(brought.get(each.number, ())), tuple(grades[new] for new in each.new if new in grades)
        )
        for each in _rounds(connection, seq)
    )


def read_result(connection: sqlite3.Connection, row: sqlite3.Row) -> Screening:
    """Return the complete result of a finished screening."""
    with readable(connection, "screening", row["seq"]):
        order, _, bare = unpack(row["payload"]).partition("\n")
    grades = _grades(connection, row["seq"])
    return Screening.model_validate_json(bare).model_copy(
        update={
            "rounds": _rounds(connection, row["seq"]),
            "grades": tuple(grades[abstract_id] for abstract_id in json.loads(order)),
        }
    )


def last_event(connection: sqlite3.Connection, seq: int) -> int:
    """The number of the last event; 0 where there is none."""
    last = connection.execute("SELECT max(seq) FROM screening_events WHERE screening_seq = ?", [seq]).fetchone()[0]
    return last or 0


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
            assert_not_removed(connection, row)
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
        """Store an event; returned with the number it got, which follows the last one where its own was taken."""
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
        """Store a finished round with the abstracts and grades that came with it; the same number again replaces it."""
        with self._database.transaction(durable=False) as connection:
            row = row_of(connection, screening_id)
            if row["state"] == "finished":
                raise StoreError(f"screening {screening_id!r} is finished: what it said is never overwritten.")
            store_round(connection, row["seq"], finished.round)
            store_abstracts(connection, row["seq"], finished.round.number, finished.abstracts)
            for grade in finished.grades:
                store_grade(connection, row["seq"], grade)
            connection.execute("UPDATE screenings SET version = version + 1 WHERE seq = ?", [row["seq"]])
            self._seen(connection, row["seq"])

    def finish(self, screening: Screening, abstracts: Iterable[Abstract] = ()) -> None:
        """Store the result of a screening, started here or computed elsewhere (then with the abstracts it graded).

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
                assert_not_removed(connection, row)
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
            assert_not_removed(connection, row)
            if row["payload"] is None:
                raise StoreError(f"screening {screening_id!r} is {row['state']}: only its progress can be read.")
            return read_result(connection, row)

    def abstracts(self, screening_id: str) -> dict[str, Abstract]:
        """The abstracts of a screening by id, as they were when they were graded, in the order they came."""
        with self._database.reading() as connection:
            row = row_of(connection, screening_id)
            return {abstract.id: abstract for abstract in read_abstracts(connection, row["seq"])}

    def progress(self, screening_id: str) -> ScreeningProgress:
        """Return how far a screening has come: its settings, the rounds finished so far."""
        from masis.screening.rounds.round_loop import ResumePoint

        with self._database.reading() as connection:
            row = row_of(connection, screening_id)
            assert_not_removed(connection, row)
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

    def events(self, screening_id: str) -> tuple[ScreeningEvent, ...]:
        """The events of a screening, in order."""
        with self._database.reading() as connection:
            row = row_of(connection, screening_id)
            rows = connection.execute(
                "SELECT payload FROM screening_events WHERE screening_seq = ? ORDER BY seq", [row["seq"]]
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

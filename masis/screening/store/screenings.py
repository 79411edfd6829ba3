"""Stores screenings round by round, so that a page can show the progress.

``masis.store.jobs`` has the operations that all jobs share. People's corrections are stored in the
screening log.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from masis.errors import StoreError
from masis.schema.base import Record
from masis.schema.screening import (
    Abstract,
    Grade,
    Outcome,
    Round,
    Screening,
    Thresholds,
)
from masis.store.core.process_owner import Owner
from masis.store.core.sql import record_of
from masis.store.jobs import (
    StoredScreenings,
    assert_not_removed,
    drop_parts,
    last_part,
    pack,
    read_parts,
    readable,
    save_part,
    unpack,
    update_job,
)
from masis.store.records import RunState

if TYPE_CHECKING:
    from masis.screening.rounds.round_loop import FinishedRound, ResumePoint


class ScreeningSummary(Record):
    """A screening in a list.

    ``outcome`` and ``kept`` are the machine's results, and None until it is finished. ``overrides``
    counts people's corrections. ``version`` changes with any of these. If retention removed the
    content (``removed_at``), question and outcome are kept, but rounds and grades are gone.
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
    """The settings of a screening and the progress from which ``screening.rounds`` can resume."""

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


def _store(
    connection: sqlite3.Connection,
    seq: int,
    abstracts: Iterable[tuple[int, Abstract]],
    grades: Iterable[Grade],
) -> None:
    """Store grades, and abstracts with the number of the round that retrieved them.

    A stored abstract is overwritten, because a notice may have changed it.

    Raises:
        StoreError: The abstract of a grade is missing.

    """
    connection.executemany(
        """INSERT INTO screening_abstracts (screening_seq, abstract_id, round, abstract)
        VALUES (?, ?, ?, ?)
           ON CONFLICT (screening_seq, abstract_id) DO UPDATE SET abstract = excluded.abstract""",
        (
            [seq, abstract.id, number, pack(abstract.model_dump_json(exclude_defaults=True))]
            for number, abstract in abstracts
        ),
    )
    for grade in grades:
        kept = connection.execute(
            "UPDATE screening_abstracts SET grade = ? WHERE screening_seq = ? AND abstract_id = ?",
            [pack(grade.model_dump_json()), seq, grade.abstract_id],
        )
        if not kept.rowcount:
            name = grade.abstract_id
            raise StoreError(
                f"abstract {name!r} was graded but not stored. Pass the abstract with its grade."
            )


def _write_result(
    connection: sqlite3.Connection, seq: int, screening: Screening, abstracts: Iterable[Abstract]
) -> None:
    """Store the result over the stored progress. Grades of an unfinished round are removed."""
    drop_parts(connection, seq, "round")
    connection.execute("UPDATE screening_abstracts SET grade = NULL WHERE screening_seq = ?", [seq])
    first = {
        abstract_id: screening_round.number
        for screening_round in reversed(screening.rounds)
        for abstract_id in screening_round.retrieved
    }
    for screening_round in screening.rounds:
        save_part(
            connection,
            seq,
            "round",
            screening_round.number,
            pack(screening_round.model_dump_json()),
        )
    _store(
        connection,
        seq,
        ((first.get(abstract.id, 0), abstract) for abstract in abstracts),
        screening.grades,
    )
    bare = screening.model_copy(update={"rounds": (), "grades": ()})
    order = json.dumps([grade.abstract_id for grade in screening.grades], ensure_ascii=False)
    update_job(
        connection,
        seq,
        state="finished",
        ended_at=screening.finished_at,
        why="",
        payload=pack(f"{order}\n{bare.model_dump_json()}"),
        outcome=screening.outcome,
        kept=len(screening.kept),
        thresholds=screening.thresholds.model_dump_json(),
    )


def _abstracts_by_round(connection: sqlite3.Connection, seq: int) -> list[tuple[int, Abstract]]:
    """Return the abstracts of a screening in order, each with the number of its round."""
    sql = "SELECT round, abstract FROM screening_abstracts WHERE screening_seq = ? ORDER BY seq"
    with readable(connection, "screening", seq):
        return [
            (number, Abstract.model_validate_json(unpack(packed)))
            for number, packed in connection.execute(sql, [seq])
        ]


def _stored_grades(connection: sqlite3.Connection, seq: int) -> dict[str, Grade]:
    sql = (
        "SELECT grade FROM screening_abstracts WHERE screening_seq = ? AND grade IS NOT NULL ORDER"
        " BY seq"
    )
    with readable(connection, "screening", seq):
        grades = [
            Grade.model_validate_json(unpack(row[0])) for row in connection.execute(sql, [seq])
        ]
    return {grade.abstract_id: grade for grade in grades}


def _read_result(connection: sqlite3.Connection, row: sqlite3.Row) -> Screening:
    """Return the complete result of a finished screening."""
    with readable(connection, "screening", row["seq"]):
        order, _, bare = unpack(row["payload"]).partition("\n")
    grades = _stored_grades(connection, row["seq"])
    return Screening.model_validate_json(bare).model_copy(
        update={
            "rounds": read_parts(connection, "screening", row["seq"], "round", Round),
            "grades": tuple(grades[abstract_id] for abstract_id in json.loads(order)),
        }
    )


class Screenings(StoredScreenings[ScreeningProgress]):
    """The screenings of a store."""

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
        """Store a new screening, owned by this process unless an owner is given.

        Raises:
            StoreError: The id is taken.

        """
        with self._database.transaction(durable=False) as connection:
            columns = _screening_columns(question, sources, settings, thresholds)
            self.begin(connection, screening_id, columns, started_at, owner)

    def keep(self, screening_id: str, finished: FinishedRound) -> None:
        """Store a finished round and its grades, replacing one with the same number."""
        with self._database.transaction(durable=False) as connection:
            seq = self.unfinished_row(connection, screening_id)["seq"]
            number = finished.round.number
            save_part(connection, seq, "round", number, pack(finished.round.model_dump_json()))
            _store(
                connection,
                seq,
                ((number, abstract) for abstract in finished.abstracts),
                finished.grades,
            )
            update_job(connection, seq, seen_at=self._database.now())

    def finish(self, screening: Screening, abstracts: Iterable[Abstract] = ()) -> None:
        """Store the result of a screening that was started here or computed elsewhere.

        For one that was computed elsewhere, pass the graded abstracts. Finishing twice with the
        same result is harmless.

        Raises:
            StoreError: The screening is finished with another result, or the abstract of a grade is
                missing.

        """
        with self._database.transaction(durable=False) as connection:
            row = connection.execute(
                "SELECT * FROM screenings WHERE id = ?", [screening.id]
            ).fetchone()
            if row is None:
                columns = _screening_columns(
                    screening.question,
                    screening.retrievers,
                    screening.settings,
                    screening.thresholds,
                )
                self.begin(connection, screening.id, columns, screening.started_at)
            row = self.row(connection, screening.id)
            if row["state"] == "finished":
                assert_not_removed(connection, row)
                if _read_result(connection, row) != screening:
                    raise StoreError(
                        f"screening {screening.id!r} is finished with another result, which stays."
                    )
                return
            _write_result(connection, row["seq"], screening, abstracts)

    def get(self, screening_id: str) -> Screening:
        """Return a finished screening without people's corrections.

        Raises UnknownRecord, Removed or StoreError.
        """
        with self._database.reading() as connection:
            return _read_result(connection, self.finished_row(connection, screening_id))

    def abstracts(self, screening_id: str) -> dict[str, Abstract]:
        """Return the abstracts of a screening by id, in order, as they were when graded."""
        with self._database.reading() as connection:
            row = self.row(connection, screening_id)
            return {
                abstract.id: abstract for _, abstract in _abstracts_by_round(connection, row["seq"])
            }

    def progress(self, screening_id: str) -> ScreeningProgress:
        """Return the settings of a screening and the rounds finished so far."""
        # Imported here because it imports the whole screening loop, which most users of a store
        # don't need.
        from masis.screening.rounds.round_loop import FinishedRound, ResumePoint

        with self._database.reading() as connection:
            row = self.row(connection, screening_id)
            assert_not_removed(connection, row)
            abstracts, grades = (
                _abstracts_by_round(connection, row["seq"]),
                _stored_grades(connection, row["seq"]),
            )
            finished = tuple(
                FinishedRound(
                    round_,
                    tuple(abstract for number, abstract in abstracts if number == round_.number),
                    tuple(grades[new] for new in round_.new if new in grades),
                )
                for round_ in read_parts(connection, "screening", row["seq"], "round", Round)
            )
            return ScreeningProgress(
                screening_id=screening_id,
                question=row["question"],
                sources=tuple(json.loads(row["sources"])),
                state=row["state"],
                settings=json.loads(row["settings"]),
                thresholds=(
                    Thresholds.model_validate_json(row["thresholds"]) if row["thresholds"] else None
                ),
                started_at=row["started_at"],
                progress=ResumePoint(finished, last_part(connection, row["seq"], "event")),
                cancel_requested=bool(row["cancel_requested"]),
                why=row["why"],
            )

    def summary(self, screening_id: str) -> ScreeningSummary:
        """Return one screening as lists show it. Raises UnknownRecord."""
        with self._database.reading() as connection:
            return _screening_summaries(
                connection, "seq = ?", [self.row(connection, screening_id)["seq"]], 1
            )[0]

    def newest(self, limit: int = 50) -> tuple[ScreeningSummary, ...]:
        """Return the newest screenings, whatever their state, newest first."""
        with self._database.reading() as connection:
            return _screening_summaries(connection, "1", [], limit)


def _screening_columns(
    question: str, sources: Sequence[str], settings: dict[str, Any], thresholds: Thresholds | None
) -> dict[str, Any]:
    """Return the columns of a new screening."""
    return {
        "question": question,
        "sources": json.dumps(list(sources), ensure_ascii=False),
        "settings": json.dumps(settings, ensure_ascii=False),
        "thresholds": thresholds.model_dump_json() if thresholds else None,
    }


def _screening_summaries(
    connection: sqlite3.Connection, where: str, values: Sequence[Any], limit: int
) -> tuple[ScreeningSummary, ...]:
    rows = connection.execute(
        f"""SELECT *,
                (SELECT count(*) FROM job_parts WHERE job_seq = screenings.seq
                    AND kind = 'round') AS rounds,
                (SELECT count(*) FROM screening_abstracts
                    WHERE screening_seq = screenings.seq) AS abstracts,
                (SELECT count(*) FROM screening_log
                 WHERE screening_seq = screenings.seq AND kind = 'override') AS overrides,
                (SELECT at FROM purges WHERE purges.seq = removed_by) AS removed_at
            FROM screenings WHERE {where} ORDER BY seq DESC LIMIT ?""",  # noqa: S608
        [*values, limit],
    )
    return tuple(record_of(ScreeningSummary, row, parsed=("sources",)) for row in rows)

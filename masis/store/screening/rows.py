"""The rows of a screening: its rounds, abstracts and grades in and out. Used inside a transaction of its callers."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from masis.errors import Removed, StoreError, UnknownRecord
from masis.schema.screening import Abstract, Grade, Round, Screening, Thresholds
from masis.store.audits.run_rows import pack, unpack
from masis.store.core import process_owner
from masis.store.core.process_owner import Owner

if TYPE_CHECKING:
    from masis.screening.rounds.round_loop import FinishedRound


def row_of(connection: sqlite3.Connection, screening_id: str) -> sqlite3.Row:
    """The row of a screening. Raises UnknownRecord."""
    row: sqlite3.Row | None = connection.execute("SELECT * FROM screenings WHERE id = ?", [screening_id]).fetchone()
    if row is None:
        raise unknown(screening_id)
    return row


def unknown(screening_id: str) -> UnknownRecord:
    """The error for a screening that is not there."""
    return UnknownRecord(f"there is no screening {screening_id!r}.")


def assert_kept(connection: sqlite3.Connection, row: sqlite3.Row) -> None:
    """Raise Removed where retention has removed what was kept of a screening."""
    if row["removed_by"] is not None:
        at = connection.execute("SELECT at FROM purges WHERE seq = ?", [row["removed_by"]]).fetchone()[0]
        raise Removed(
            f"what was kept of screening {row['id']!r} was removed on {at[:10]} by retention. Screen the question "
            "again to have it anew."
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


def keep_round(connection: sqlite3.Connection, seq: int, each: Round) -> None:
    """Write a round, in place of the one with its number."""
    connection.execute(
        "INSERT OR REPLACE INTO screening_rounds VALUES (?, ?, ?)", [seq, each.number, pack(each.model_dump_json())]
    )


def keep_abstracts(connection: sqlite3.Connection, seq: int, number: int, abstracts: Iterable[Abstract]) -> None:
    """Write the abstracts that a round brought; one that is there already stays as it was graded."""
    connection.executemany(
        """INSERT INTO screening_abstracts (screening_seq, abstract_id, round, abstract) VALUES (?, ?, ?, ?)
           ON CONFLICT (screening_seq, abstract_id) DO NOTHING""",
        [[seq, each.id, number, pack(each.model_dump_json(exclude_defaults=True))] for each in abstracts],
    )


def keep_grade(connection: sqlite3.Connection, seq: int, grade: Grade) -> None:
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
        keep_round(connection, seq, each)
    for abstract in abstracts:
        keep_abstracts(connection, seq, first.get(abstract.id, 0), [abstract])
    for grade in screening.grades:
        keep_grade(connection, seq, grade)
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
    return tuple(Round.model_validate_json(unpack(row[0])) for row in rows)


def read_abstracts(connection: sqlite3.Connection, seq: int) -> list[Abstract]:
    """The abstracts of a screening, in the order they came."""
    rows = connection.execute("SELECT abstract FROM screening_abstracts WHERE screening_seq = ? ORDER BY seq", [seq])
    return [Abstract.model_validate_json(unpack(row[0])) for row in rows]


def _grades(connection: sqlite3.Connection, seq: int) -> dict[str, Grade]:
    rows = connection.execute(
        "SELECT grade FROM screening_abstracts WHERE screening_seq = ? AND grade IS NOT NULL ORDER BY seq", [seq]
    )
    return {grade.abstract_id: grade for row in rows for grade in [Grade.model_validate_json(unpack(row[0]))]}


def finished_rounds(connection: sqlite3.Connection, seq: int) -> tuple[FinishedRound, ...]:
    """Each round with what came with it for the first time."""
    from masis.screening.rounds.round_loop import (
        FinishedRound,  # here, since it brings the whole loop, which opening a store needs not
    )

    grades = _grades(connection, seq)
    rows = connection.execute(
        "SELECT abstract_id, round, abstract FROM screening_abstracts WHERE screening_seq = ? ORDER BY seq", [seq]
    ).fetchall()
    brought: dict[int, list[Abstract]] = {}
    for row in rows:
        brought.setdefault(row["round"], []).append(Abstract.model_validate_json(unpack(row["abstract"])))
    return tuple(
        FinishedRound(
            each, tuple(brought.get(each.number, ())), tuple(grades[new] for new in each.new if new in grades)
        )
        for each in _rounds(connection, seq)
    )


def read_result(connection: sqlite3.Connection, row: sqlite3.Row) -> Screening:
    """The result of a finished screening, whole."""
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

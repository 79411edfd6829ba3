"""Takes digests of the screening, abstract and grade that a log entry is about.

This is done when the entry is made, as in the decision log (``store/reviews/subjects.py``). A
digest is of a record's values, without those that are the default. A later version of MASIS that
adds fields therefore computes the same digest.
"""

from __future__ import annotations

import sqlite3
import zlib
from collections.abc import Iterator

from pydantic import BaseModel

from masis.schema.review import SubjectCheck
from masis.schema.screening import (
    Abstract,
    Grade,
    Screening,
    ScreeningDecision,
    ScreeningSubjectDigests,
)
from masis.store.core.chained_log import canonical_json, check_subjects, sha256
from masis.store.jobs import unpack

REMOVED_SCREENING = "screening removed by retention"

_ENTRIES = """
    SELECT log.seq, log.id, log.screening_seq, written.payload, screenings.removed_by
    FROM screening_log AS log
    LEFT JOIN screening_log_payloads AS written ON written.entry_seq = log.seq
    LEFT JOIN screenings ON screenings.seq = log.screening_seq
    WHERE log.screening_seq IS NOT NULL AND log.kind != 'redaction' ORDER BY log.seq
"""


def digests(
    connection: sqlite3.Connection, screening_seq: int, abstract_id: str | None
) -> ScreeningSubjectDigests:
    """Return the digests of a finished screening's result, and of an abstract and its grade."""
    row = connection.execute(
        "SELECT payload FROM screenings WHERE seq = ?", [screening_seq]
    ).fetchone()
    abstract = connection.execute(
        "SELECT abstract, grade FROM screening_abstracts WHERE screening_seq = ? AND"
        " abstract_id = ?",
        [screening_seq, abstract_id],
    ).fetchone()
    return ScreeningSubjectDigests(
        screening=_subject_digest(Screening, _result_content(row[0])) if row and row[0] else "",
        abstract=_subject_digest(Abstract, abstract[0]) if abstract else None,
        grade=_subject_digest(Grade, abstract[1]) if abstract and abstract[1] else None,
    )


def check(connection: sqlite3.Connection) -> SubjectCheck:
    """Compare every entry about a screening with the stored screening, abstract and grade.

    Entries whose text or screening was removed can't be checked. That isn't a problem.
    """

    def compare(row: sqlite3.Row, decision: ScreeningDecision) -> str | list[str]:
        if row["removed_by"] is not None:
            return REMOVED_SCREENING
        return list(_screening_problems(connection, row["screening_seq"], decision))

    return check_subjects(
        connection.execute(_ENTRIES), ScreeningDecision, "screening entry", compare
    )


def _screening_problems(
    connection: sqlite3.Connection, screening_seq: int, decision: ScreeningDecision
) -> Iterator[str]:
    about = decision.about
    assert about is not None
    abstract_id = decision.abstract_id
    current = digests(connection, screening_seq, abstract_id)
    if current.screening != about.screening:
        yield (
            f"the result of screening {decision.screening_id!r} differs from the decided one: it"
            " was altered"
        )
    if current.abstract != about.abstract:
        yield f"abstract {abstract_id!r} differs from the graded one: it was altered"
    if current.grade != about.grade:
        yield (
            f"the grade of abstract {abstract_id!r} differs from the decided one: it was altered"
        )


def _subject_digest(kind: type[BaseModel], packed: bytes | str) -> str | None:
    """Return the digest of a record's values, or None if it can't be read."""
    try:
        text = packed if isinstance(packed, str) else unpack(packed)
        return sha256(
            canonical_json(
                kind.model_validate_json(text).model_dump(mode="json", exclude_defaults=True)
            )
        )
    except (zlib.error, ValueError):
        return None


def _result_content(packed: bytes) -> str | bytes:
    """Return the result without the order of its grades, or the packed bytes if they're damaged."""
    try:
        return unpack(packed).partition("\n")[2]
    except (zlib.error, ValueError):
        return packed

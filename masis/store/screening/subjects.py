"""What entries of the screening log are about: digests of the screening, the abstract and its grade.

They are taken when an entry is made, as entries of the decision log take theirs (``store/reviews/subjects.py``).

A digest is of what a record says, not of its bytes: values that are the default are left out, so that an archive or a
later version, which may write them, changes no digest.
"""

from __future__ import annotations

import sqlite3
import zlib
from collections import Counter
from collections.abc import Iterator

from pydantic import BaseModel

from masis.schema.review import SubjectCheck
from masis.schema.screening import Abstract, Grade, Screening, ScreeningDecision, ScreeningSubjectDigests
from masis.store.audits.runs import unpack
from masis.store.core.chained_log import canonical_json, sha256

BEFORE = "made before digests were stored"
REDACTED_ENTRY = "redacted"
REMOVED_SCREENING = "screening removed by retention"

_ENTRIES = """
    SELECT log.seq, log.id, log.kind, log.screening_seq, written.payload, screenings.removed_by
    FROM screening_log AS log
    LEFT JOIN screening_log_payloads AS written ON written.entry_seq = log.seq
    LEFT JOIN screenings ON screenings.seq = log.screening_seq
    WHERE log.screening_seq IS NOT NULL AND log.kind != 'redaction' ORDER BY log.seq
"""


def digests(connection: sqlite3.Connection, screening_seq: int, abstract_id: str | None) -> ScreeningSubjectDigests:
    """Return the digests of a finished screening's result, and of an abstract of it with its grade."""
    row = connection.execute("SELECT payload FROM screenings WHERE seq = ?", [screening_seq]).fetchone()
    abstract = connection.execute(
        "SELECT abstract, grade FROM screening_abstracts WHERE screening_seq = ? AND abstract_id = ?",
        [screening_seq, abstract_id],
    ).fetchone()
    return ScreeningSubjectDigests(
        screening=_digest(Screening, _result(row[0])) if row and row[0] else "",
        abstract=_digest(Abstract, abstract[0]) if abstract else None,
        grade=_digest(Grade, abstract[1]) if abstract and abstract[1] else None,
    )


def check(connection: sqlite3.Connection) -> SubjectCheck:
    """Compare every entry about a screening with the screening, the abstract and the grade as stored.

    An entry that was redacted, whose screening was removed or that carries no digests is not checkable, which is no
    problem. One without digests behind one with them is: the workbench makes no such entry.
    """
    broken: list[str] = []
    reasons: Counter[str] = Counter()
    checked, first_with_digests = 0, None
    for row in connection.execute(_ENTRIES):
        name = f"screening entry {row['seq']} ({row['id']})"
        if row["payload"] is None:
            reasons[REDACTED_ENTRY] += 1
            continue
        try:
            decision = ScreeningDecision.model_validate_json(row["payload"])
        except ValueError:
            continue  # the check of the chain names it
        if decision.about is None:
            if first_with_digests is None:
                reasons[BEFORE] += 1
            else:
                broken.append(
                    f"{name}: has no digests of what it is about, although entry {first_with_digests} before it has: "
                    "it was not made by the workbench, or was altered"
                )
            continue
        first_with_digests = first_with_digests or row["seq"]
        if row["removed_by"] is not None:
            reasons[REMOVED_SCREENING] += 1
            continue
        problems = list(_problems(connection, row["screening_seq"], decision))
        broken += [f"{name}: {problem}" for problem in problems]
        checked += not problems
    return SubjectCheck(checked=checked, not_checkable=dict(reasons), broken=tuple(broken))


def _problems(connection: sqlite3.Connection, screening_seq: int, decision: ScreeningDecision) -> Iterator[str]:
    about = decision.about
    assert about is not None
    abstract_id = decision.abstract_id
    now = digests(connection, screening_seq, abstract_id)
    if now.screening != about.screening:
        yield f"the result of screening {decision.screening_id!r} is not the one it is about: it was altered"
    if now.abstract != about.abstract:
        yield f"abstract {abstract_id!r} is not the one that was graded: it was altered"
    if now.grade != about.grade:
        yield f"the grade of abstract {abstract_id!r} is not the one that it is about: it was altered"


def _digest(kind: type[BaseModel], packed: bytes | str) -> str | None:
    """The digest of what a record says; None where it can't be read."""
    try:
        text = packed if isinstance(packed, str) else unpack(packed)
        return sha256(canonical_json(kind.model_validate_json(text).model_dump(mode="json", exclude_defaults=True)))
    except (zlib.error, ValueError):
        return None


def _result(packed: bytes) -> str | bytes:
    """The result without the order of its grades; what can't be unpacked as it stands."""
    try:
        return unpack(packed).partition("\n")[2]
    except (zlib.error, ValueError):
        return packed

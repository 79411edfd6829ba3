"""What entries of the decision log are about: digests of case, run and answer, taken when an entry is made.

The chain proves that entries were not changed. Without these digests a case's question or a run's answer could be
edited under a decision, and every entry would still verify.
"""

from __future__ import annotations

import json
import sqlite3
import zlib
from collections import Counter
from collections.abc import Iterator

from pydantic_core import from_json

from masis.schema.review import Decision, SubjectCheck, SubjectDigests
from masis.store.core.chained_log import canonical_json, sha256
from masis.store.retention.removal import run_texts
from masis.store.reviews import states

BEFORE = "made before digests were stored"
REDACTED_ENTRY = "redacted"
REDACTED_CASE = "case redacted"
REMOVED_RUN = "run removed by retention"

_ENTRIES = """
    SELECT log.seq, log.id, log.kind, log.case_seq, log.run_seq, written.payload, cases.redaction_seq, runs.removed_by
    FROM decision_log AS log
    LEFT JOIN decision_payloads AS written ON written.entry_seq = log.seq
    LEFT JOIN cases ON cases.seq = log.case_seq
    LEFT JOIN runs ON runs.seq = log.run_seq
    ORDER BY log.seq
"""


def digests(
    connection: sqlite3.Connection, case_seq: int, run_seq: int | None, iteration: int | None
) -> SubjectDigests:
    """Return the digests of a case, and of a run where it is finished and its content is left.

    Args:
        connection: An open transaction.
        case_seq: The number of the case.
        run_seq: The number of the run, if the entry names one.
        iteration: The iteration that is decided about, from 1; None for the run's chosen answer.

    """
    case = _case_digest(connection, case_seq)
    run, answer = (None, None) if run_seq is None else _run_digests(connection, run_seq, iteration)
    return SubjectDigests(case=case or "", run=run, answer=answer)


def check(connection: sqlite3.Connection) -> SubjectCheck:
    """Compare every entry with its case, run and answer as stored, and derived states with what they follow from.

    An entry whose case was redacted, whose run was removed or that carries no digests is not checkable, which is no
    problem. One without digests behind one with them is: the workbench makes no such entry.
    """
    broken: list[str] = []
    reasons: Counter[str] = Counter()
    checked, first_with_digests = 0, None
    for row in connection.execute(_ENTRIES):
        name = f"entry {row['seq']} ({row['id']})"
        if row["kind"] == "redaction":
            continue
        if row["payload"] is None:
            reasons[REDACTED_ENTRY] += 1
            continue
        try:
            decision = Decision.model_validate_json(row["payload"])
        except ValueError:
            continue  # the check of the chain names it
        if decision.about is None:
            if first_with_digests is not None:
                broken.append(
                    f"{name}: has no digests of what it is about, although entry {first_with_digests} before it has: "
                    "it was not made by the workbench, or was altered"
                )
            else:
                reasons[BEFORE] += 1
            continue
        first_with_digests = first_with_digests or row["seq"]
        if row["redaction_seq"] is not None:
            reasons[REDACTED_CASE] += 1
            continue
        problems = list(_problems(connection, row, decision))
        broken += [f"{name}: {problem}" for problem in problems]
        if row["removed_by"] is not None and decision.about.run is not None and not problems:
            reasons[REMOVED_RUN] += 1
        elif not problems:
            checked += 1
    broken += _changed_cases(connection)
    broken += [
        f"case {case_id!r} is marked {kept}, its runs and decisions say {derived}"
        for case_id, kept, derived in states.mismatches(connection)
    ]
    return SubjectCheck(checked=checked, not_checkable=dict(reasons), broken=tuple(broken))


def _problems(connection: sqlite3.Connection, row: sqlite3.Row, decision: Decision) -> Iterator[str]:
    about = decision.about
    assert about is not None
    if about.case != _case_digest(connection, row["case_seq"]):
        yield f"case {decision.case_id!r} is not the one that was decided about: its text was altered"
    if about.run is None:
        return
    if row["removed_by"] is not None:
        if about.run not in _recorded_removals(connection, decision.run_id):
            yield f"run {decision.run_id!r} was removed, but the record of removals has another digest of it"
        return
    run, answer = _run_digests(connection, row["run_seq"], decision.iteration)
    if about.answer != answer:
        yield f"the answer of run {decision.run_id!r} is not the one that was decided about: it was altered"
    if about.run != run:
        yield f"run {decision.run_id!r} is not as it was when it was decided about: it was altered"


def _case_digest(connection: sqlite3.Connection, case_seq: int) -> str | None:
    row = connection.execute("SELECT payload FROM case_payloads WHERE case_seq = ?", [case_seq]).fetchone()
    return None if row is None else _content_digest(row[0])


def _content_digest(payload: str) -> str | None:
    """The digest that a case has (``Case.digest``), from its stored text; None where that can't be read."""
    try:
        return sha256(canonical_json(json.loads(payload)))
    except ValueError:
        return None


def _run_digests(connection: sqlite3.Connection, run_seq: int, iteration: int | None) -> tuple[str | None, str | None]:
    """Return the digest that retention would record of a finished run, and that of the answer decided about.

    None for either where it isn't there or can't be read.
    """
    row = connection.execute("SELECT state, payload IS NOT NULL FROM runs WHERE seq = ?", [run_seq]).fetchone()
    if row is None or row[0] != "finished" or not row[1]:
        return None, None
    try:
        [text] = run_texts(connection, run_seq)
    except (zlib.error, ValueError):
        return None, None
    try:
        run = from_json(text)
        answer = run["final_answer"] if iteration is None else run["iterations"][iteration - 1]["answer"]
        return sha256(text), sha256(answer)
    except (ValueError, KeyError, IndexError, TypeError, AttributeError):
        return sha256(text), None


def _recorded_removals(connection: sqlite3.Connection, run_id: str | None) -> set[str]:
    rows = connection.execute("SELECT digest FROM purged WHERE kind = 'run' AND record_id = ?", [run_id])
    return {row[0] for row in rows}


def _changed_cases(connection: sqlite3.Connection) -> Iterator[str]:
    """Cases, decided or not, whose text doesn't fit the digest beside it or the one that their runs recorded."""
    for row in connection.execute(
        """SELECT cases.id, cases.digest, payload FROM cases LEFT JOIN case_payloads ON case_seq = cases.seq
           WHERE redaction_seq IS NULL ORDER BY cases.seq"""
    ):
        if row["payload"] is None or _content_digest(row["payload"]) != row["digest"]:
            yield f"case {row['id']!r} doesn't fit its digest: its text was altered"
    for row in connection.execute(
        """SELECT cases.id AS case_id, runs.id AS run_id FROM runs JOIN cases ON cases.seq = case_seq
           WHERE case_digest != cases.digest ORDER BY runs.seq"""
    ):
        yield f"run {row['run_id']!r} audited other content than case {row['case_id']!r} holds: one of them was altered"

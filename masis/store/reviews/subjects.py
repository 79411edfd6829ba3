"""Takes digests of the case, run and answer that a log entry is about when the entry is made.

The chain proves that entries weren't changed. Without these digests, someone could edit the
question of a case or the answer of a run after a decision, and every entry would still verify.
"""

from __future__ import annotations

import json
import sqlite3
import zlib
from collections.abc import Iterator

from pydantic import ValidationError
from pydantic_core import from_json

from masis.schema.review import Decision, SubjectCheck, SubjectDigests
from masis.store.core import migrations
from masis.store.core.chained_log import canonical_json, check_subjects, sha256
from masis.store.retention.removal import run_texts
from masis.store.reviews import states, team
from masis.store.reviews.placeholder import REDACTED, is_placeholder

REDACTED_CASE = "case redacted"
REMOVED_RUN = "run removed by retention"

_ENTRIES = """
    SELECT log.seq, log.id, log.case_seq, log.run_seq, written.payload, runs.removed_by
    FROM decision_log AS log
    LEFT JOIN decision_payloads AS written ON written.entry_seq = log.seq
    LEFT JOIN cases ON cases.seq = log.case_seq
    LEFT JOIN runs ON runs.seq = log.run_seq
    WHERE log.kind != 'redaction' ORDER BY log.seq
"""


def digests(
    connection: sqlite3.Connection, case_seq: int, run_seq: int | None, iteration: int | None
) -> SubjectDigests:
    """Return the digests of a case, and of a finished run whose content is stored.

    ``iteration`` is the number of the decided iteration, from 1; None means the original answer.
    """
    case = _case_digest(connection, case_seq)
    run, answer = (None, None) if run_seq is None else _run_digests(connection, run_seq, iteration)
    [cases] = connection.execute("SELECT coalesce(max(seq), 0) FROM cases").fetchone()
    return SubjectDigests(
        case=case or "", run=run, answer=answer, cases=cases, team=team.last_digest(connection)
    )


def check(connection: sqlite3.Connection) -> SubjectCheck:
    """Compare every entry with its stored case, run and answer, and recompute derived states.

    Entries whose text, case or run was removed can't be checked. That isn't a problem.
    """
    # Cases are numbered without gaps, so fewer rows than the last number means deleted ones.
    cases, present = connection.execute(
        "SELECT coalesce(max(seq), 0), count(*) FROM cases"
    ).fetchone()
    known, altered = team.digests(connection)
    redacted, forged = _redacted_cases(connection)
    schema = migrations.schema_differences(connection)
    gone = (
        [f"{cases - present} of {cases} cases were deleted from the file"]
        if present < cases
        else []
    )

    def compare(row: sqlite3.Row, decision: Decision) -> str | list[str]:
        assert decision.about is not None
        problems: list[str] = []
        if decision.about.cases > cases:
            problems.append(
                f"there were {decision.about.cases} cases then, and the newest were deleted"
            )
        if decision.about.team not in known:
            problems.append(
                "the policies, rubrics or label types that had been set by then were altered"
            )
        if row["case_seq"] in redacted:
            return problems or REDACTED_CASE
        problems += _subject_problems(connection, row, decision)
        removed = row["removed_by"] is not None and decision.about.run is not None
        return REMOVED_RUN if removed and not problems else problems

    checked = check_subjects(connection.execute(_ENTRIES), Decision, "entry", compare)
    changed, derived = _changed_cases(connection, redacted), states.problems(connection)
    found = (*gone, *altered, *forged, *changed, *derived, *schema)
    return checked.model_copy(update={"broken": (*checked.broken, *found)})


def _subject_problems(
    connection: sqlite3.Connection, row: sqlite3.Row, decision: Decision
) -> Iterator[str]:
    about = decision.about
    assert about is not None
    if about.case != _case_digest(connection, row["case_seq"]):
        yield (f"case {decision.case_id!r} differs from the decided one: its text was altered")
    if about.run is None:
        return
    if row["removed_by"] is not None:
        recorded = "SELECT 1 FROM purged WHERE kind = 'run' AND record_id = ? AND digest = ?"
        if connection.execute(recorded, [decision.run_id, about.run]).fetchone() is None:
            yield (
                f"run {decision.run_id!r} was removed, but the record of removals has another"
                " digest of it"
            )
        return
    run, answer = _run_digests(connection, row["run_seq"], decision.iteration)
    if about.answer != answer:
        yield (
            f"the answer of run {decision.run_id!r} differs from the decided one: it was altered"
        )
    if about.run != run:
        yield f"run {decision.run_id!r} differs from the decided one: it was altered"


def _case_digest(connection: sqlite3.Connection, case_seq: int) -> str | None:
    row = connection.execute(
        "SELECT payload FROM case_payloads WHERE case_seq = ?", [case_seq]
    ).fetchone()
    return None if row is None else _content_digest(row[0])


def _content_digest(payload: str) -> str | None:
    """Return ``Case.digest`` computed from the stored text, or None if that can't be read."""
    try:
        return sha256(canonical_json(json.loads(payload)))
    except ValueError:
        return None


def _run_digests(
    connection: sqlite3.Connection, run_seq: int, iteration: int | None
) -> tuple[str | None, str | None]:
    """Return the digest of a finished run, as retention records it, and that of the decided answer.

    Either is None if it is missing or can't be read.
    """
    row = connection.execute(
        "SELECT state, payload IS NOT NULL FROM runs WHERE seq = ?", [run_seq]
    ).fetchone()
    if row is None or row[0] != "finished" or not row[1]:
        return None, None
    try:
        [text] = run_texts(connection, run_seq)
    except (zlib.error, ValueError):
        return None, None
    try:
        run = from_json(text)
        iterations = run["iterations"]
        answer = (
            iterations[(iteration or 1) - 1]["answer"]
            if iteration or iterations
            else run["final_answer"]
        )
        return sha256(text), sha256(answer)
    except (ValueError, KeyError, IndexError, TypeError, AttributeError):
        return sha256(text), None


def _redacted_cases(connection: sqlite3.Connection) -> tuple[frozenset[int], list[str]]:
    """Return the numbers of the redacted cases, and the problems of cases that only claim to be.

    A redaction counts only if an entry of the log records it, for this case and for the digest of
    its former content, and only if nothing but the placeholder is stored. Otherwise a mark in the
    case's row would exempt any text from the checks.
    """
    redacted, problems = set[int](), list[str]()
    for row in connection.execute(
        """SELECT cases.seq, cases.id, cases.digest, cases.query_start, case_payloads.payload,
                written.payload AS entry
            FROM cases LEFT JOIN case_payloads ON case_payloads.case_seq = cases.seq
            LEFT JOIN decision_log AS log ON log.seq = cases.redaction_seq
                AND log.case_seq = cases.seq AND log.kind = 'redaction'
            LEFT JOIN decision_payloads AS written ON written.entry_seq = log.seq
            WHERE cases.redaction_seq IS NOT NULL ORDER BY cases.seq"""
    ):
        recorded = {"redacts_case": row["id"], "digest": row["digest"]}
        if not recorded.items() <= _extra(row["entry"]).items():
            problems.append(
                f"case {row['id']!r} is marked as redacted, but no entry of the log redacts it"
            )
        elif row["query_start"] != REDACTED or not is_placeholder(row["payload"]):
            problems.append(f"case {row['id']!r} is redacted, but holds text that was added later")
        else:
            redacted.add(row["seq"])
    return frozenset(redacted), problems


def _extra(payload: str | None) -> dict[str, object]:
    """Return the ``extra`` of a stored entry, or nothing if it can't be read."""
    try:
        return Decision.model_validate_json(payload or "").extra
    except ValidationError:
        return {}


def _changed_cases(connection: sqlite3.Connection, redacted: frozenset[int]) -> Iterator[str]:
    """Yield the cases whose text doesn't match their digest or the digest recorded by
    their runs.
    """
    for row in connection.execute(
        """SELECT cases.seq, cases.id, cases.digest, payload FROM cases LEFT JOIN case_payloads
            ON case_seq = cases.seq ORDER BY cases.seq"""
    ):
        if row["seq"] in redacted:
            continue
        if row["payload"] is None or _content_digest(row["payload"]) != row["digest"]:
            yield f"case {row['id']!r} doesn't match its digest: its text was altered"
    for row in connection.execute(
        """SELECT cases.id AS case_id, runs.id AS run_id FROM runs JOIN cases
            ON cases.seq = case_seq
           WHERE case_digest != cases.digest ORDER BY runs.seq"""
    ):
        yield (
            f"run {row['run_id']!r} audited other content than case {row['case_id']!r} holds: one"
            " of them was altered"
        )

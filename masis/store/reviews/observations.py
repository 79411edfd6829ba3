"""Derives the observations of a case: what its newest audit found, and what people wrote about it.

They follow from the newest finished run and the decision log, like the state of the case, and are
updated with it (``states.refresh``). An entry that was undone or redacted has none, and neither has
a run whose content was removed, nor a copy with a planted fault that people have decided. Failure
modes that people applied are derived from the log in the same way (``case_codes``).

Texts that differ only in numbers and quoted words have the same *pattern*, since most issues are
written from templates. Groups are made of patterns.
"""

from __future__ import annotations

import hashlib
import json
import re
import sqlite3
import zlib
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from masis.audit.citations.label_causes import (
    audit_decided_answer,
    causes_of_labels,
    depends_on_citations,
)
from masis.schema.audit import CitationAudit
from masis.schema.case import Case
from masis.schema.causes import Cause, cause_of
from masis.schema.codebook import NO_FAULT_LABELS, ObservationKind
from masis.schema.labels import TargetLabel
from masis.schema.review import EntryKind
from masis.schema.rules import RULES
from masis.store.core.chained_log import sha256
from masis.store.core.connections import Database
from masis.store.jobs import unpack

CODING: tuple[EntryKind, ...] = ("code", "uncode")
"""The kinds of entries that apply or remove failure modes."""

_WRITTEN: tuple[EntryKind, ...] = ("decision", "adjudication", "comment")
"""The kinds of entries with texts about failures."""

_AT_ONCE = 500
"""Cases whose observations are derived in one transaction."""

PATTERN_LENGTH = 300
"""How many characters of a text decide its pattern."""


class _Row(NamedTuple):
    """An observation as it is stored, without its numbers."""

    place: str
    kind: ObservationKind
    type: str
    severity: str | None
    cause: Cause | None
    author: str
    at: str
    is_fault: bool
    pattern: str
    text: str
    quote: str


def update(
    connection: sqlite3.Connection,
    case_seq: int,
    run_seq: int | None,
    entries: Sequence[sqlite3.Row],
    *,
    is_new_run: bool,
) -> None:
    """Update the observations and codes of one case.

    Args:
        connection: The open transaction.
        case_seq: The number of the case.
        run_seq: Its newest finished run, or None if there is none or its content was removed.
        entries: Its log entries, in order.
        is_new_run: Whether this run wasn't the newest one before.

    """
    if run_seq is None or is_new_run:
        _delete(connection, "case_seq = ? AND kind = 'issue'", [case_seq])
    if run_seq is not None and is_new_run:
        for row in _issues(connection, run_seq):
            _insert(connection, case_seq, row, run_seq=run_seq)
    undone = {entry["undoes"] for entry in entries if entry["kind"] == "undo"}
    written = {
        entry["seq"]: entry
        for entry in entries
        if entry["kind"] in _WRITTEN and entry["payload"] and entry["seq"] not in undone
    }
    stored = {
        row[0]
        for row in connection.execute(
            "SELECT DISTINCT entry_seq FROM observations WHERE case_seq = ? AND entry_seq NOTNULL",
            [case_seq],
        )
    }
    for seq in stored - set(written):
        _delete(connection, "case_seq = ? AND entry_seq = ?", [case_seq, seq])
    for seq in sorted(set(written) - stored):
        for row in _texts(connection, case_seq, written[seq]):
            _insert(connection, case_seq, row, entry_seq=seq)
    connection.execute("DELETE FROM case_codes WHERE case_seq = ?", [case_seq])
    connection.executemany(
        "INSERT INTO case_codes VALUES (?, ?, ?, ?, ?)",
        [(case_seq, *key, seq) for key, seq in codes_of_entries(entries).items()],
    )


def derive_due(connection: sqlite3.Connection, limit: int) -> None:
    """Derive the observations of the next cases in ``observations_due``."""
    due = connection.execute(
        """SELECT due.case_seq, run_seq, removed_by, cases.state FROM observations_due AS due
           JOIN cases ON cases.seq = due.case_seq LEFT JOIN jobs ON jobs.seq = run_seq
           ORDER BY due.case_seq LIMIT ?""",
        [limit],
    ).fetchall()
    for case_seq, run_seq, removed_by, state in due:
        entries = connection.execute(
            """SELECT seq, id, kind, undoes, at, payload FROM decision_log
               LEFT JOIN decision_payloads ON entry_seq = seq WHERE case_seq = ? ORDER BY seq""",
            [case_seq],
        ).fetchall()
        update(
            connection,
            case_seq,
            None if removed_by is not None else run_seq,
            [] if state == "planted" else entries,
            is_new_run=True,
        )
        connection.execute("DELETE FROM observations_due WHERE case_seq = ?", [case_seq])


def derive_all_due(database: Database) -> None:
    """Derive the observations of all cases in ``observations_due``, in batches."""
    while database.row("SELECT 1 FROM observations_due LIMIT 1") is not None:
        with database.transaction(durable=False) as connection:
            derive_due(connection, _AT_ONCE)


def _delete(connection: sqlite3.Connection, where: str, values: Sequence[Any]) -> None:
    connection.execute(f"DELETE FROM observations WHERE {where}", values)  # noqa: S608


def _insert(
    connection: sqlite3.Connection,
    case_seq: int,
    row: _Row,
    *,
    run_seq: int | None = None,
    entry_seq: int | None = None,
) -> None:
    connection.execute(
        "INSERT OR IGNORE INTO observation_patterns (pattern, digest) VALUES (?, ?)",
        [row.pattern, digest_pattern(row.pattern)],
    )
    connection.execute(
        """INSERT INTO observations (id, case_seq, place, kind, run_seq, entry_seq, type, severity,
               cause, author, at, is_fault, pattern_seq, text, quote)
           SELECT ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, seq, ?, ? FROM observation_patterns
           WHERE pattern = ?""",
        [
            observation_id(case_seq, row.place),
            *(case_seq, row.place, row.kind, run_seq, entry_seq, row.type, row.severity),
            *(row.cause, row.author, row.at, row.is_fault, row.text, row.quote, row.pattern),
        ],
    )


def observation_id(case_seq: int, place: str) -> str:
    """Return the id of an observation, which doesn't change if its row is derived again."""
    return sha256(f"{case_seq}\n{place}")[:16]


def _issues(connection: sqlite3.Connection, run_seq: int) -> Iterator[_Row]:
    """Yield the issues of a run's original answer."""
    row = connection.execute(
        "SELECT job_parts.payload, ended_at FROM job_parts JOIN jobs ON jobs.seq = job_seq"
        " WHERE job_seq = ? AND job_parts.kind = 'iteration' AND number = 1",
        [run_seq],
    ).fetchone()
    if row is None:
        return
    used: set[str] = set()
    for issue in _read_iteration(row[0]).get("issues", ()):
        place, number = f"issue:{issue['key']}", 2
        while place in used:
            place, number = f"issue:{issue['key']}.{number}", number + 1
        used.add(place)
        rule = RULES.get(issue["rule"])
        # The point and the quoted words are of this case only, so they aren't part of the pattern.
        general = issue["description"]
        for own in (issue.get("point"), issue.get("quote")):
            general = general.replace(own, " ") if own else general
        yield _Row(
            place=place,
            kind="issue",
            type=issue["rule"],
            severity=issue["severity"],
            cause=cause_of(issue["rule"]),
            author="",
            at=row["ended_at"] or "",
            is_fault=rule is None or not rule.is_undecided,
            pattern=pattern_of(f"{rule.label if rule else ''} {general}"),
            text=f"{issue['description']} {issue['reason']}".strip(),
            quote=issue.get("quote") or "",
        )


def _read_iteration(payload: bytes) -> dict[str, Any]:
    """Return a stored iteration; an empty one if it's damaged.

    Reading JSON takes a tenth of the time of validating the whole record, which was validated when
    it was stored. A damaged run must not keep its case from being updated.
    """
    try:
        iteration: dict[str, Any] = json.loads(unpack(payload))
    except (zlib.error, ValueError):
        return {}
    return iteration


def _texts(connection: sqlite3.Connection, case_seq: int, entry: sqlite3.Row) -> Iterator[_Row]:
    """Yield what a person wrote in an entry."""
    content: dict[str, Any] = json.loads(entry["payload"])
    is_fault = content.get("verdict") != "approve"
    common = {"author": content["reviewer"], "at": entry["at"], "severity": None, "quote": ""}
    common["cause"] = None

    def row(
        name: str, kind: ObservationKind, text: str, *, named: str = "", fault: bool, **more: Any
    ) -> _Row:
        given = {**common, **more}
        place = f"{entry['id']}:{name}"
        return _Row(
            place=place,
            kind=kind,
            type=named,
            is_fault=fault,
            pattern=pattern_of(text),
            text=text,
            **given,
        )

    if reason := content.get("reason", "").strip():
        code = str(content.get("extra", {}).get("reason_code", ""))
        yield row("reason", "reason", reason, named=code, fault=is_fault, cause=cause_of(code))
    if note := content.get("note", "").strip():
        kind: ObservationKind = "comment" if entry["kind"] == "comment" else "note"
        yield row(kind, kind, note, fault=is_fault)
    labels = [TargetLabel.model_validate(label) for label in content.get("labels", ())]
    # Most labels don't name a passage or reference, and then the answer needn't be read for its
    # citations.
    audit = (
        _audit_labelled_answer(connection, case_seq, content, labels)
        if any(map(depends_on_citations, labels))
        else None
    )
    for number, (label, cause) in enumerate(
        zip(labels, causes_of_labels(labels, audit), strict=True)
    ):
        yield row(
            f"label.{number}",
            "label",
            label.note.strip() or label.label,
            named=label.label,
            fault=label.label not in NO_FAULT_LABELS,
            severity=label.severity,
            quote=label.text,
            cause=cause,
        )


def _audit_labelled_answer(
    connection: sqlite3.Connection,
    case_seq: int,
    content: dict[str, Any],
    labels: Sequence[TargetLabel],
) -> CitationAudit | None:
    """Return the citations of the answer that an entry labels, or None if it isn't stored."""
    [payload] = connection.execute(
        "SELECT payload FROM case_payloads WHERE case_seq = ?", [case_seq]
    ).fetchone()
    case = Case.model_validate_json(payload)
    answer = case.answer
    if content.get("run_id"):
        row = connection.execute(
            """SELECT job_parts.payload FROM job_parts JOIN jobs ON jobs.seq = job_seq
               WHERE jobs.id = ? AND job_parts.kind = 'iteration' AND number = ?""",
            [content["run_id"], content.get("iteration") or 1],
        ).fetchone()
        answer = None if row is None else _read_iteration(row[0]).get("answer")
    return audit_decided_answer(case, answer, labels)


def codes_of_entries(entries: Iterable[sqlite3.Row]) -> dict[tuple[str, str, str], int]:
    """Return the entry by place, code and reviewer of each code that wasn't removed again."""
    codes: dict[tuple[str, str, str], int] = {}
    for entry in entries:
        if entry["kind"] not in CODING or not entry["payload"]:
            continue
        content: dict[str, Any] = json.loads(entry["payload"])
        of = content.get("coded_by") or content["reviewer"]
        for code in content["codes"]:
            key = (content.get("observation") or "", code, of)
            codes.pop(key, None)
            if entry["kind"] == "code":
                codes[key] = entry["seq"]
    return codes


# A quotation holds no other opening mark, so that many marks without an end take linear time.
_QUOTED = re.compile(r"“[^“”]*”|\"[^\"]*\"|‘[^‘’]*’|(?<!\w)'[^']*'(?!\w)|\[[^\[\]]*\]")
_NUMBER = re.compile(r"\d+(?:[.,]\d+)*")
_NOT_WORD = re.compile(r"[^\w#]+")


def digest_pattern(pattern: str) -> str:
    """Return the digest that stands for a pattern in records that may hold no text."""
    return hashlib.blake2b(pattern.encode(), digest_size=12).hexdigest()


def pattern_of(text: str) -> str:
    """Return the pattern of a text: its words without quotations, citation markers and numbers."""
    words = _NUMBER.sub("#", _QUOTED.sub(" ", text.casefold()))
    pattern = _NOT_WORD.sub(" ", words).strip()
    # A text that is all quotation keeps its words, or all of these would be alike.
    return (pattern or _NOT_WORD.sub(" ", text.casefold()).strip() or text)[:PATTERN_LENGTH]

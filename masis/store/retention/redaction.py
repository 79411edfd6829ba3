"""Removes the texts of a case or a log entry on request, and records who did it, when and why.

Redacting a case removes its question, answer, evidence, labels and search words, the results,
drafts and events of its runs, the cached replies of models, the drafts of reviewers, and the texts
of its entries in the decision log. Its id, field, data set, verdicts, figures and both chains stay,
and so does the digest of its content, by which a copy kept elsewhere can be recognized. Earlier
backups and copies, and the abstracts of the screening it came from, aren't changed. Redact entries
of the screening log by their own ids.
"""

from __future__ import annotations

import contextlib
import json
import sqlite3

from masis.errors import Conflict, InputError, UnknownRecord
from masis.schema.base import Record
from masis.schema.case import Case
from masis.schema.preference import PreferenceEntry
from masis.schema.retention import RetentionRule
from masis.schema.review import Decision, LogEntry
from masis.schema.screening import ScreeningEntry
from masis.store.audits.cases import index_words, unindex_words
from masis.store.audits.minimal_evidence import remove_results_of_entry
from masis.store.audits.replies import remove_replies
from masis.store.audits.systems import forget_question
from masis.store.core.connections import StorePart
from masis.store.retention.removal import begin_purge, empty_runs
from masis.store.retention.shrinking import erase_removed_words
from masis.store.reviews.decisions import LOG, Decisions
from masis.store.reviews.placeholder import REDACTED, placeholder
from masis.store.reviews.preferences import PreferenceLog, redact_preferences
from masis.store.reviews.states import refresh
from masis.store.screening_log import ScreeningLog


class CaseRedaction(Record):
    """The amounts that redacting a case removed, and the entry of the decision log about it."""

    entry: LogEntry
    entries: int
    runs: int
    drafts: int


class Redactions(StorePart):
    """Redacts cases and log entries."""

    def redact_case(self, case_id: str, *, by: str, reason: str) -> CaseRedaction:
        """Remove every text of a case permanently, and record it in the decision log.

        ``by`` and ``reason`` stay in the log, so the reason must not repeat the removed text.

        Raises:
            InputError: ``by`` or ``reason`` is empty.
            UnknownRecord: There is no such case.
            StoreError: The case is already redacted or is being audited.

        """
        _check_request(by, reason)
        with self._database.transaction() as connection:
            at = self._database.now()
            row = _unredacted_case(connection, case_id)
            case = Case.from_stored(row["payload"])
            redacted = _redact_entries(connection, row["seq"], by=by, reason=reason, at=at)
            redacted += redact_preferences(connection, row["seq"], by=by, reason=reason, at=at)
            left = "SELECT seq FROM runs WHERE case_seq = ? AND removed_by IS NULL"
            runs = [run[0] for run in connection.execute(left, [row["seq"]])]
            if runs:
                rule = RetentionRule(cutoff=at, days=0, decided=True)
                purge = begin_purge(connection, rule, by, "redaction", at)
                empty_runs(connection, purge, runs)
            # replies of runs that retention removed earlier may remain
            remove_replies(connection, row["seq"])
            subjects = [
                f"{what}:{case_id}" for what in ("case", "evidence", "adjudication", "comment")
            ]
            drafts = connection.execute(
                "DELETE FROM drafts WHERE subject IN (?, ?, ?, ?)", subjects
            ).rowcount
            entry = LOG.append(
                connection,
                Decision(
                    kind="redaction",
                    reviewer=by,
                    case_id=case_id,
                    run_id=None,
                    reason=reason,
                    extra={
                        "redacts_case": case_id,
                        "digest": row["digest"],
                        "entries": redacted,
                        "runs": len(runs),
                    },
                ),
                at,
                {"case_seq": row["seq"]},
            )
            unindex_words(connection, row["seq"], case)
            _replace_content(connection, row["seq"], case, entry.seq)
            refresh(connection, row["seq"])
        self._database.on_commit(self._overwrite)
        return CaseRedaction(entry=entry, entries=redacted, runs=len(runs), drafts=drafts)

    def redact_entry(
        self, entry_id: str, *, by: str, reason: str
    ) -> LogEntry | ScreeningEntry | PreferenceEntry:
        """Remove the text of an entry of any log, but keep its verdict and place in the chain.

        Returns:
            The entry of kind ``redaction`` that records it.

        Raises:
            InputError: ``by`` or ``reason`` is empty.
            UnknownRecord: There is no such entry.
            StoreError: The entry is already redacted or is a redaction itself.

        """
        _check_request(by, reason)
        for log in (
            Decisions(self._database),
            ScreeningLog(self._database),
            PreferenceLog(self._database),
        ):
            with contextlib.suppress(UnknownRecord):
                with self._database.transaction() as connection:
                    entry = log.redact(entry_id, by=by, reason=reason)
                    # The entry's labels named the passages of these results.
                    remove_results_of_entry(connection, entry_id)
                self._database.on_commit(self._overwrite)
                return entry
        raise UnknownRecord(
            f"there is no entry {entry_id!r} in the decision, screening or preference log."
        )

    def _overwrite(self) -> None:
        erase_removed_words(self._database, "case_words", "observation_words")


def _check_request(by: str, reason: str) -> None:
    if not by.strip():
        raise InputError(
            "the name of who redacts is missing", hint="Name who asked for it.", field="by"
        )
    if not reason.strip():
        raise InputError("the reason is missing", hint="Say why it must go.", field="reason")


def _unredacted_case(connection: sqlite3.Connection, case_id: str) -> sqlite3.Row:
    row: sqlite3.Row | None = connection.execute(
        """SELECT cases.*, payload,
               EXISTS (SELECT 1 FROM runs WHERE runs.case_seq = cases.seq
                   AND runs.state = 'running') AS audited
           FROM cases JOIN case_payloads ON case_payloads.case_seq = cases.seq WHERE id = ?""",
        [case_id],
    ).fetchone()
    if row is None:
        raise UnknownRecord(f"there is no case {case_id!r}.")
    if row["redaction_seq"] is not None:
        raise Conflict(f"case {case_id!r} is redacted already.")
    if row["audited"]:
        raise Conflict(
            f"case {case_id!r} is being audited. Cancel the audit or wait for it, then redact the"
            " case."
        )
    return row


def _redact_entries(
    connection: sqlite3.Connection, case_seq: int, *, by: str, reason: str, at: str
) -> int:
    """Redact the entries about a case that people wrote, and return their number.

    The policy's acceptances and redactions don't contain any of its text.
    """
    rows = LOG.rows(
        connection,
        "log.case_seq = ? AND log.kind NOT IN ('policy_accept', 'redaction') AND written.payload IS"
        " NOT NULL",
        [case_seq],
    )
    for row in rows:
        LOG.redact(connection, row, by=by, reason=reason, at=at)
    return len(rows)


def _replace_content(
    connection: sqlite3.Connection, case_seq: int, case: Case, redaction: int
) -> None:
    """Replace a case with a valid case without texts, which pages can still show."""
    remainder = placeholder(case)
    payload = json.dumps(remainder.to_json_dict(), ensure_ascii=False)
    connection.execute(
        "UPDATE case_payloads SET payload = ? WHERE case_seq = ?", [payload, case_seq]
    )
    connection.execute(
        "UPDATE planted_faults SET fault = json_set(fault, '$.before', '', '$.after', '',"
        " '$.sentence', '') WHERE case_seq = ?",
        [case_seq],
    )
    connection.execute(
        "UPDATE cases SET query_start = ?, redaction_seq = ? WHERE seq = ?",
        [REDACTED, redaction, case_seq],
    )
    forget_question(connection, case_seq)
    index_words(connection, case_seq, remainder)

"""Stores the screening log: people's corrections of grades, in an append-only hash chain.

It works like the decision log (``chained_log.py``), but has its own chain, because a screening
isn't a case.
"""

from __future__ import annotations

import sqlite3

from masis.errors import StaleVersion, StoreError, UnknownRecord
from masis.schema.base import Page
from masis.schema.review import SubjectCheck
from masis.schema.screening import (
    GradeAgreement,
    Override,
    ScreeningDecision,
    ScreeningEntry,
    ScreeningEntryKind,
)
from masis.store import screening_subjects
from masis.store.core.chained_log import ChainedLog, StoredLog
from masis.store.core.sql import any_of, compare_column
from masis.store.jobs import job_row
from masis.store.records import ScreeningLogFilter

_JOINS = """
    LEFT JOIN screening_log_payloads AS written ON written.entry_seq = log.seq
    LEFT JOIN screenings ON screenings.seq = log.screening_seq
"""
_SELECT = f"""
    SELECT log.*, written.payload, written.reviewer, screenings.id AS screening_id
        FROM screening_log AS log {_JOINS}
"""  # noqa: S608 (names of ours)


LOG = ChainedLog(
    table="screening_log",
    payloads="screening_log_payloads",
    select=_SELECT,
    noun="screening entry",
    decision=ScreeningDecision,
    entry=ScreeningEntry,
    columns=("kind", "abstract_id", "field", "token"),
    links=("screening_seq",),
    about=("screening_id",),
    repeated={name: name for name in ("screening_id", "kind", "abstract_id", "field", "token")},
)


class ScreeningLog(StoredLog[ScreeningDecision, ScreeningEntry]):
    """The screening log of a store."""

    log = LOG

    def append(
        self, decision: ScreeningDecision, *, seen_version: int | None = None
    ) -> ScreeningEntry:
        """Append an entry. An override or an agreement gets the time of its entry.

        If the ``token`` was used before, its first entry is returned and nothing is appended.

        Args:
            decision: The decision to append.
            seen_version: The version of the screening that the person saw.

        Raises:
            StaleVersion: The screening has changed since ``seen_version``.
            UnknownRecord: There is no such screening or abstract.
            StoreError: The screening isn't finished.

        """
        with self._database.transaction() as connection:
            if first := LOG.with_token(
                connection, decision, ("screening_id", "kind", "abstract_id", "field")
            ):
                return first
            at = self._database.now()
            if decision.override is not None:
                override = decision.override.model_copy(update={"at": at, "id": None})
                decision = decision.model_copy(update={"override": override})
            if decision.agreement is not None:
                agreement = decision.agreement.model_copy(update={"at": at, "id": None})
                decision = decision.model_copy(update={"agreement": agreement})
            screening = (
                None
                if decision.screening_id is None
                else _require_open(connection, decision, seen_version)
            )
            if screening is not None:
                about = screening_subjects.digests(connection, screening, decision.abstract_id)
                decision = decision.model_copy(update={"about": about})
            return append_entry(connection, decision, at, screening)

    def on_redacted(self, connection: sqlite3.Connection, row: sqlite3.Row) -> None:
        """Increment the version of the entry's screening."""
        _raise_version(connection, row["screening_seq"])

    def overrides(self, screening_id: str) -> tuple[Override, ...]:
        """Return people's corrections of grades, oldest first, each with the id of its entry."""
        return tuple(
            decision.override.model_copy(update={"id": entry_id})
            for entry_id, decision in self._standing_entries(screening_id, "override")
            if decision.override is not None
        )

    def agreements(self, screening_id: str) -> tuple[GradeAgreement, ...]:
        """Return who agrees with which grade, oldest first, each with the id of its entry.

        Withdrawn agreements are left out, and a repeated one is included once.
        """
        agreement_by: dict[tuple[str, str], GradeAgreement] = {}
        for entry_id, decision in self._standing_entries(screening_id, "agreement"):
            if (agreement := decision.agreement) is None:
                continue
            key = (agreement.abstract_id, agreement.reviewer)
            if not agreement.agrees:
                agreement_by.pop(key, None)
            elif key not in agreement_by:
                agreement_by[key] = agreement.model_copy(update={"id": entry_id})
        return tuple(agreement_by.values())

    def _standing_entries(
        self, screening_id: str, kind: ScreeningEntryKind
    ) -> list[tuple[str, ScreeningDecision]]:
        """Return the unredacted entries of a kind about a screening with their ids,
        oldest first.
        """
        with self._database.reading() as connection:
            seq = job_row(connection, "screening", screening_id)["seq"]
            entries = map(
                LOG.entry_of,
                LOG.rows(connection, "log.screening_seq = ? AND log.kind = ?", [seq, kind]),
            )
            return [(entry.id, entry.decision) for entry in entries if entry.decision is not None]

    def entries(self, log_filter: ScreeningLogFilter | None = None) -> Page[ScreeningEntry]:
        """Return one page of the log."""
        log_filter = log_filter or ScreeningLogFilter()
        conditions = [
            *compare_column("screenings.id", "=", log_filter.screening_id),
            *compare_column("log.abstract_id", "=", log_filter.abstract_id),
            *any_of("log.kind", log_filter.kinds),
            *any_of("written.reviewer", log_filter.reviewers),
        ]
        with self._database.reading() as connection:
            return LOG.page(connection, _JOINS, conditions, log_filter)

    def check_subjects(self) -> SubjectCheck:
        """Compare every entry with its stored screening, abstract and grade."""
        with self._database.reading() as connection:
            return screening_subjects.check(connection)


def append_entry(
    connection: sqlite3.Connection, decision: ScreeningDecision, at: str, screening: int | None
) -> ScreeningEntry:
    """Append an entry and increment the screening's version. Call it in a durable transaction."""
    entry = LOG.append(connection, decision, at, {"screening_seq": screening})
    _raise_version(connection, screening)
    return entry


def _raise_version(connection: sqlite3.Connection, screening: int | None) -> None:
    if screening is not None:
        connection.execute("UPDATE jobs SET version = version + 1 WHERE seq = ?", [screening])


def _require_open(
    connection: sqlite3.Connection, decision: ScreeningDecision, seen_version: int | None
) -> int:
    """Return the number of the screening that an entry is about, if the entry is allowed."""
    row = job_row(connection, "screening", decision.screening_id or "")
    if row["state"] != "finished":
        raise StoreError(
            f"screening {decision.screening_id!r} is {row['state']}. Decide on it when it is"
            " finished."
        )
    if seen_version is not None and row["version"] != seen_version:
        raise StaleVersion(
            "the screening has changed since you opened it. Look at it again before deciding."
        )
    graded = (
        "SELECT 1 FROM screening_abstracts WHERE screening_seq = ? AND abstract_id = ? AND grade IS"
        " NOT NULL"
    )
    row_of_grade = connection.execute(graded, [row["seq"], decision.abstract_id]).fetchone()
    if decision.abstract_id is not None and row_of_grade is None:
        raise UnknownRecord(
            f"screening {decision.screening_id!r} has no grade of {decision.abstract_id!r}."
        )
    return int(row["seq"])

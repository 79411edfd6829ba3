"""The screening log: what people say about grades, appended and bound as the decision log is (``chain.py``).

The two chains are apart, since a screening is no case.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pydantic import ValidationError

from masis.errors import StaleVersion, StoreError, UnknownRecord
from masis.schema.review import LogCheck
from masis.schema.screening import Override, ScreeningDecision, ScreeningEntry
from masis.store.audits.cases import sha256
from masis.store.core import chain
from masis.store.core.connections import Database
from masis.store.records import LogHead
from masis.store.retention.shrinking import settle
from masis.store.screening.records import ScreeningLogFilter, ScreeningLogPage
from masis.store.screening.rows import row_of

ENTRIES = """
    SELECT log.*, written.payload, written.reviewer, screenings.id AS screening_id
    FROM screening_log AS log
    LEFT JOIN screening_log_payloads AS written ON written.entry_seq = log.seq
    LEFT JOIN screenings ON screenings.seq = log.screening_seq
"""


class ScreeningLog:
    """The screening log of a store."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def append(self, decision: ScreeningDecision, *, seen_version: int | None = None) -> ScreeningEntry:
        """Append an entry; an override gets the time of its entry.

        The same ``token`` again returns the first entry. ``seen_version`` is the screening's version that the person
        looked at: StaleVersion if it has changed since. Raises UnknownRecord (no such screening or abstract) and
        StoreError (the screening is not finished).
        """
        with self._database.transaction() as connection:
            if decision.token is not None and (first := _by_token(connection, decision)):
                return first
            at = self._database.now()
            if decision.override is not None:
                override = decision.override.model_copy(update={"at": at, "id": None})
                decision = decision.model_copy(update={"override": override})
            screening = None if decision.screening_id is None else _open(connection, decision, seen_version)
            return append_entry(connection, decision, at, screening)

    def redact(self, entry: str, *, by: str, reason: str) -> ScreeningEntry:
        """Remove what was written in an entry: its place in the chain stays. This is an entry too; returns it.

        An override that is redacted no longer stands. Raises UnknownRecord, and StoreError where it is redacted
        already or is a redaction itself.
        """
        with self._database.transaction() as connection:
            row = _row(connection, entry)
            if row["payload"] is None or row["kind"] == "redaction":
                raise StoreError(f"entry {entry} is {'a redaction' if row['payload'] else 'redacted'} already.")
            decision = ScreeningDecision(
                kind="redaction",
                reviewer=by,
                screening_id=row["screening_id"],
                reason=reason,
                extra={"redacts": entry, "kept": facts(row)},
            )
            appended = append_entry(
                connection, decision, self._database.now(), row["screening_seq"], redacts=row["seq"]
            )
            connection.execute("DELETE FROM screening_log_payloads WHERE entry_seq = ?", [row["seq"]])
        # until then the write-ahead log still holds pages with the old text
        self._database.once_committed(lambda: settle(self._database))
        return appended

    def overrides(self, screening_id: str) -> tuple[Override, ...]:
        """What people said about the grades of a screening, oldest first, with the id of each entry."""
        with self._database.reading() as connection:
            seq = row_of(connection, screening_id)["seq"]
            rows = connection.execute(
                f"{ENTRIES} WHERE log.screening_seq = ? AND log.kind = 'override' ORDER BY log.seq", [seq]
            )
            entries = [_entry(row) for row in rows]
        return tuple(
            each.decision.override.model_copy(update={"id": each.id})
            for each in entries
            if each.decision is not None and each.decision.override is not None
        )

    def entries(self, wanted: ScreeningLogFilter | None = None) -> ScreeningLogPage:
        """One page of the log."""
        wanted = wanted or ScreeningLogFilter()
        where, values = _where(wanted)
        direction = "DESC" if wanted.newest_first else "ASC"
        with self._database.reading() as connection:
            total = connection.execute(f"SELECT count(*) FROM ({ENTRIES} WHERE {where})", values).fetchone()[0]  # noqa: S608
            rows = connection.execute(
                f"{ENTRIES} WHERE {where} ORDER BY log.seq {direction} LIMIT ? OFFSET ?",
                [*values, wanted.size, (wanted.page - 1) * wanted.size],
            )
            return ScreeningLogPage(rows=tuple(map(_entry, rows)), total=total)

    def iterate(self) -> Iterator[ScreeningEntry]:
        """The whole log from its beginning, a hundred entries in memory at a time."""
        seq = 0
        while rows := self._database.execute(f"{ENTRIES} WHERE log.seq > ? ORDER BY log.seq LIMIT 100", [seq]):
            yield from map(_entry, rows)
            seq = rows[-1]["seq"]

    def head(self) -> LogHead:
        """Length and last digest."""
        with self._database.reading() as connection:
            return chain.head_of(connection, CHAINED.log)

    def verify(self) -> LogCheck:
        """Walk the chain and name every entry that doesn't fit, and why; and every guard of the log that is gone."""
        with self._database.reading() as connection:
            return chain.verify(connection, CHAINED)


def append_entry(
    connection: sqlite3.Connection,
    decision: ScreeningDecision,
    at: str,
    screening: int | None,
    *,
    redacts: int | None = None,
) -> ScreeningEntry:
    """Write an entry at the end of the chain; the screening's version follows. Inside a transaction."""
    payload = chain.payload_of(decision, decision.reviewer, decision.token)
    place = chain.place_after(chain.head_of(connection, CHAINED.log), at, sha256(payload))
    insert_entry(connection, place, facts(decision), screening, redacts)
    connection.execute("INSERT INTO screening_log_payloads VALUES (?, ?, ?)", [place.seq, decision.reviewer, payload])
    if screening is not None:
        connection.execute("UPDATE screenings SET version = version + 1 WHERE seq = ?", [screening])
    return ScreeningEntry(decision=decision, **place._asdict())


def _open(connection: sqlite3.Connection, decision: ScreeningDecision, seen_version: int | None) -> int:
    """The number of the screening that an entry is about, if it may be about it."""
    row = row_of(connection, decision.screening_id or "")
    if row["state"] != "finished":
        raise StoreError(f"screening {decision.screening_id!r} is {row['state']}: decide about it when it is finished.")
    if seen_version is not None and row["version"] != seen_version:
        raise StaleVersion("the screening has changed since you opened it. Look at it again before deciding.")
    override = decision.override
    if (
        override is not None
        and not connection.execute(
            "SELECT 1 FROM screening_abstracts WHERE screening_seq = ? AND abstract_id = ? AND grade IS NOT NULL",
            [row["seq"], override.abstract_id],
        ).fetchone()
    ):
        raise UnknownRecord(f"screening {decision.screening_id!r} has no grade of {override.abstract_id!r}.")
    return int(row["seq"])


def _by_token(connection: sqlite3.Connection, decision: ScreeningDecision) -> ScreeningEntry | None:
    row = connection.execute(f"{ENTRIES} WHERE log.token = ?", [decision.token]).fetchone()
    if row is None:
        return None
    said = facts(decision)
    if any(row[name] != said[name] for name in ("screening_id", "kind", "abstract_id", "field")):
        raise StoreError(f"the token of this submit belongs to entry {row['id']}, which is about something else.")
    return _entry(row)


def _row(connection: sqlite3.Connection, entry: str) -> sqlite3.Row:
    row: sqlite3.Row | None = connection.execute(f"{ENTRIES} WHERE log.id = ?", [entry]).fetchone()
    if row is None:
        raise UnknownRecord(f"there is no entry {entry!r} in the screening log.")
    return row


def _entry(row: sqlite3.Row) -> ScreeningEntry:
    try:
        decision = None if row["payload"] is None else ScreeningDecision.model_validate_json(row["payload"])
    except ValidationError as error:
        raise StoreError(
            f"entry {row['seq']} ({row['id']}) of the screening log can't be read: it was altered. "
            "`masis verify-log` names what else was."
        ) from error
    return ScreeningEntry(decision=decision, **{name: row[name] for name in chain.PLACE})


def _where(wanted: ScreeningLogFilter) -> tuple[str, list[Any]]:
    parts, values = ["1"], list[Any]()
    for sql, bound in (("screenings.id = ?", wanted.screening_id), ("log.abstract_id = ?", wanted.abstract_id)):
        if bound is not None:
            parts.append(sql)
            values.append(bound)
    for column, allowed in (("log.kind", wanted.kinds), ("written.reviewer", wanted.reviewers)):
        if allowed:
            parts.append(f"{column} IN ({', '.join('?' * len(allowed))})")
            values += allowed
    return " AND ".join(parts), values


def facts(entry: sqlite3.Row | ScreeningDecision) -> dict[str, Any]:
    """What of an entry stands in the log's own columns: checked against its payload, or what a redaction kept."""
    if isinstance(entry, sqlite3.Row):
        return {name: entry[name] for name in ("screening_id", "kind", "abstract_id", "field", "token")}
    return {
        "screening_id": entry.screening_id,
        "kind": entry.kind,
        "abstract_id": entry.override.abstract_id if entry.override else None,
        "field": entry.override.field if entry.override else None,
        "token": entry.token,
    }


def insert_entry(
    connection: sqlite3.Connection,
    place: Sequence[Any],
    said: Mapping[str, Any],
    screening: int | None,
    redacts: int | None,
) -> None:
    """Write the chain's part of an entry: its place in the chain, and what the log itself keeps of it."""
    connection.execute(
        """INSERT INTO screening_log (seq, id, at, payload_digest, previous, digest, kind, abstract_id, field, token,
               screening_seq, redacts) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)""",
        [*place, *(said[name] for name in ("kind", "abstract_id", "field", "token")), screening, redacts],
    )


CHAINED = chain.Chained(
    "screening_log",
    "screening_log_payloads",
    ENTRIES,
    "screening log",
    "screening entry",
    ScreeningDecision.model_validate_json,
    facts,
)

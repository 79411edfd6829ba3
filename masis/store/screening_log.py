"""The screening log: what people say about grades, appended and bound by digests as the decision log is.

The link of the chain and an entry's id are those of the decision log (``decisions.py``); the two chains are apart,
since a screening is no case. Payloads lie in a table of their own, so that one can be redacted and the chain stays
whole.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pydantic import ValidationError

from masis.errors import InputError, StaleVersion, StoreError, UnknownRecord
from masis.schema.review import LogCheck
from masis.schema.screening import Override
from masis.schema.screening_log import ScreeningDecision, ScreeningEntry
from masis.store import guards
from masis.store.cases import canonical_json, sha256
from masis.store.decisions import NOTHING_BEFORE, PLACE, entry_digest, entry_id
from masis.store.opening import Database
from masis.store.records import LogHead
from masis.store.screening_records import ScreeningLogFilter, ScreeningLogPage
from masis.store.screening_rows import row_of

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
        with self._database.writing() as connection:
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
        with self._database.writing() as connection:
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
        # the write-ahead log still holds pages with the old text
        self._database.connection().execute("PRAGMA wal_checkpoint(TRUNCATE)")
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
        connection, seq = self._database.connection(), 0
        while rows := connection.execute(f"{ENTRIES} WHERE log.seq > ? ORDER BY log.seq LIMIT 100", [seq]).fetchall():
            yield from map(_entry, rows)
            seq = rows[-1]["seq"]

    def head(self) -> LogHead:
        """Length and last digest."""
        return head_of(self._database.connection())

    def verify(self) -> LogCheck:
        """Walk the chain and name every entry that doesn't fit, and why; and every guard of the log that is gone."""
        broken: list[str] = []
        length, redacted, previous, expected = 0, 0, NOTHING_BEFORE, 1
        with self._database.reading() as connection:
            if gone := guards.missing(connection, "screening_log"):
                broken.append(f"the screening log has lost its guards, entries could be altered ({', '.join(gone)})")
            for row in connection.execute(f"{ENTRIES} ORDER BY log.seq"):
                length, redacted = length + 1, redacted + (row["payload"] is None)
                faults = _faults(connection, row, previous, expected)
                broken += [f"screening entry {row['seq']} ({row['id']}): {fault}" for fault in faults]
                previous, expected = row["digest"], row["seq"] + 1
            for (seq,) in connection.execute(
                "SELECT entry_seq FROM screening_log_payloads WHERE entry_seq NOT IN (SELECT seq FROM screening_log)"
            ):
                broken.append(f"screening entry {seq}: its place in the log is gone, what was decided is left")
        return LogCheck(length=length, head=previous, redacted=redacted, broken=tuple(broken))


def append_entry(
    connection: sqlite3.Connection,
    decision: ScreeningDecision,
    at: str,
    screening: int | None,
    *,
    redacts: int | None = None,
) -> ScreeningEntry:
    """Write an entry at the end of the chain; the screening's version follows. Inside a transaction."""
    payload = _payload(decision)
    length, previous = head_of(connection)
    payload_digest = sha256(payload)
    digest = entry_digest(length + 1, at, payload_digest, previous)
    place = (length + 1, entry_id(digest), at, payload_digest, previous, digest)
    insert_entry(connection, place, facts(decision), screening, redacts)
    connection.execute("INSERT INTO screening_log_payloads VALUES (?, ?, ?)", [length + 1, decision.reviewer, payload])
    if screening is not None:
        connection.execute("UPDATE screenings SET version = version + 1 WHERE seq = ?", [screening])
    return ScreeningEntry(decision=decision, **dict(zip(PLACE, place, strict=True)))


def _payload(decision: ScreeningDecision) -> str:
    try:
        payload = canonical_json(decision.model_dump(mode="json"))
        payload.encode()
    except (ValueError, TypeError) as error:
        raise InputError(
            "the entry holds what can't be kept as text", cure=f"Remove it and submit again ({error})."
        ) from error
    if "\x00" in f"{decision.reviewer}{decision.token}":
        raise InputError("the reviewer's name holds a null byte", cure="Type the name again.", field="reviewer")
    return payload


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


def head_of(connection: sqlite3.Connection) -> LogHead:
    """Length and last digest of the log."""
    row = connection.execute("SELECT seq, digest FROM screening_log ORDER BY seq DESC LIMIT 1").fetchone()
    return LogHead(*(row or (0, NOTHING_BEFORE)))


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
    return ScreeningEntry(decision=decision, **{name: row[name] for name in PLACE})


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


def _faults(connection: sqlite3.Connection, row: sqlite3.Row, previous: str, expected: int) -> Iterator[str]:
    if row["seq"] != expected:
        yield f"entries {expected} to {row['seq'] - 1} before it are missing"
    if row["previous"] != previous:
        yield "it does not follow the entry before it: that one was altered, replaced or removed"
    if row["digest"] != entry_digest(row["seq"], row["at"], row["payload_digest"], row["previous"]):
        yield "its digest does not fit its number, time and content: the entry was altered"
    if row["id"] != entry_id(row["digest"]):
        yield "its id does not fit its digest: the entry was altered"
    yield from _payload_faults(row) if row["payload"] is not None else _redaction_faults(connection, row)


def _payload_faults(row: sqlite3.Row) -> Iterator[str]:
    if sha256(row["payload"]) != row["payload_digest"]:
        yield "what was decided was altered: the text kept has another digest"
        return
    try:
        decision = ScreeningDecision.model_validate_json(row["payload"])
    except ValidationError:
        yield "what was decided can't be read: it was altered"
        return
    said = facts(decision)
    for name, value in facts(row).items():
        if said[name] != value:
            yield f"the log has {name} {value!r} where {said[name]!r} was decided"
    if row["reviewer"] != decision.reviewer:
        yield f"the log has the reviewer {row['reviewer']!r} where {decision.reviewer!r} decided"


def _redaction_faults(connection: sqlite3.Connection, row: sqlite3.Row) -> Iterator[str]:
    redaction = connection.execute(f"{ENTRIES} WHERE log.redacts = ?", [row["seq"]]).fetchone()
    if redaction is None or redaction["payload"] is None:
        yield "what was decided is gone, and no redaction says why"
        return
    extra = ScreeningDecision.model_validate_json(redaction["payload"]).extra
    if extra.get("redacts") != row["id"] or extra.get("kept") != facts(row):
        yield f"the log has something else about it than its redaction (entry {redaction['seq']}) kept"

"""An entry of a log with a chain as a record out and in: what the decision log and the screening log share."""

from __future__ import annotations

import json
import sqlite3
from typing import Any

from masis.errors import InputError
from masis.schema.base import Record
from masis.schema.review import Decision
from masis.schema.screening import ScreeningDecision
from masis.store.audits.cases import canonical_json, sha256
from masis.store.core import chain

ALTERED = "The archive was altered or put together by hand: export it anew from the database."


class LogRecord(Record):
    """An entry of a log. Of a redacted one ``decision`` is None and ``kept`` what the log's own columns say of it."""

    record: str
    seq: int
    id: str
    at: str
    payload_digest: str
    previous: str
    digest: str
    decision: dict[str, Any] | None
    kept: dict[str, Any] | None = None


def fields_of(row: sqlite3.Row, chained: chain.Chained) -> dict[str, Any]:
    """The fields of the record of an entry."""
    redacted = row["payload"] is None
    return {
        **{name: row[name] for name in chain.PLACE},
        "decision": None if redacted else json.loads(row["payload"]),
        "kept": chained.facts(row) if redacted else None,
    }


class PuttingLog:
    """Checks the entries of one log as they come back: each behind the one before it, none without its words.

    Writing them is left to who knows their columns.
    """

    def __init__(self, connection: sqlite3.Connection, chained: chain.Chained) -> None:
        self._connection, self._chained = connection, chained
        self._bare: dict[str, dict[str, Any]] = {}

    def checked(self, record: LogRecord) -> str | None:
        """The text of an entry, None of a redacted one. Raises InputError where it is not the one that was written."""
        head = chain.head_of(self._connection, self._chained.log)
        if chain.place_of(record) != chain.place_after(head, record.at, record.payload_digest):
            log = self._chained.log.replace("_", " ")
            raise InputError(f"entry {record.seq} of the {log} does not fit the one before", cure=ALTERED)
        if record.decision is None:
            self._bare[record.id] = record.kept or {}
            return None
        payload = canonical_json(record.decision)
        if sha256(payload) != record.payload_digest:
            raise InputError("the decision is not the one that was made", cure=ALTERED, field="decision")
        return payload

    def redacted_by(self, decision: Decision | ScreeningDecision) -> int | None:
        """The number of the entry that this one redacts; None where it redacts none. Raises InputError."""
        if decision.kind != "redaction" or "redacts_case" in decision.extra:
            return None
        redacted = str(decision.extra.get("redacts"))
        if self._bare.pop(redacted, None) != decision.extra.get("kept"):
            raise InputError(f"it redacts entry {redacted}, which is another one", cure=ALTERED, field="decision.extra")
        return number(self._connection, self._chained.log, redacted, "decision.extra.redacts")

    def finish(self) -> None:
        """Raises InputError where an entry without words was never redacted."""
        for entry in self._bare:
            raise InputError(
                f"{self._chained.entry} {entry} has lost its words, and no redaction says why", cure=ALTERED
            )


def number(connection: sqlite3.Connection, table: str, value: str, field: str, *, column: str = "id") -> int:
    """The number of the row that a record names. Raises InputError where there is none yet."""
    row = connection.execute(f"SELECT seq FROM {table} WHERE {column} = ?", [value]).fetchone()  # noqa: S608
    if row is None:
        raise InputError(f"names {value!r}, which does not come before it", cure=ALTERED, field=field)
    return int(row[0])

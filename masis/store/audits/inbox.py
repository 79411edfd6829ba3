"""What programs have sent in over HTTP: stored unchanged before it is acknowledged, read
afterwards; and what is to be reported to them about it.

A request that was acknowledged is on the disk (``synchronous = FULL``). Reading it may be cut short
and begun again, since storing the same case twice changes nothing. Notices are written in the
transaction that changes the state of a case, whichever process makes it, and stay until they are
delivered.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Sequence
from datetime import timedelta
from typing import Any, Literal, NamedTuple

from masis.schema.base import Record, add_time
from masis.schema.case import Case
from masis.store.core.connections import StorePart
from masis.store.core.sql import insert, record_of

Form = Literal["json", "ndjson", "cases"]
"""One JSON object, which is a case or holds cases; cases, one a line; or the same in our own
format, whatever format the source sends.
"""


class ReceivedRequest(NamedTuple):
    """A request, unchanged; ``digest`` tells two bodies apart, ``key`` is the sender's idempotency
    key.
    """

    id: str
    source: str
    key: str | None
    digest: str
    form: Form
    body: bytes


class Acknowledgement(NamedTuple):
    """The batch that a request is: a new one, or the one that the same key made before.

    ``conflict`` says that the same key came with another body, which is not stored.
    """

    id: str
    new: bool
    conflict: bool = False


class InboxBatch(Record):
    """One request and what became of it; ``result`` is None while it waits."""

    id: str
    source: str
    received_at: str
    done_at: str | None
    result: dict[str, Any] | None


class WebhookNotice(NamedTuple):
    """What the webhook is to report: ``id`` is the same at every try, ``at`` when the case came to
    stand so.
    """

    seq: int
    id: str
    event: Literal["case.needs_review", "case.decided"]
    at: str
    tries: int
    case_id: str
    sources: tuple[str, ...]


class Inbox(StorePart):
    """The inbox of a store."""

    def store(self, requests: Sequence[ReceivedRequest]) -> list[Acknowledgement]:
        """Store requests, all in one transaction that waits for the disk; returns what each is, in
        order.
        """
        with self._database.transaction() as connection:
            at = self._database.now()
            return [_store_request(connection, request, at) for request in requests]

    def waiting(self, limit: int) -> list[tuple[int, ReceivedRequest]]:
        """Return the oldest requests that nobody has read, with their numbers."""
        rows = self._database.execute(
            "SELECT * FROM inbox WHERE done_at IS NULL ORDER BY seq LIMIT ?", [limit]
        )
        return [
            (row["seq"], ReceivedRequest(*(row[name] for name in ReceivedRequest._fields)))
            for row in rows
        ]

    def finish(self, results: Sequence[tuple[int, dict[str, Any]]]) -> None:
        """Note what became of requests; their bodies are removed, since the cases hold
        what counts.
        """
        with self._database.transaction(durable=False) as connection:
            at = self._database.now()
            connection.executemany(
                "UPDATE inbox SET done_at = ?, result = ?, body = x'' WHERE seq = ?",
                [(at, json.dumps(result, ensure_ascii=False), seq) for seq, result in results],
            )

    def record_arrivals(self, cases: Iterable[Case], source: str) -> None:
        """Note that a source has sent these cases, those that are stored with this very content."""
        with self._database.transaction(durable=False) as connection:
            connection.executemany(
                "INSERT OR IGNORE INTO arrivals (case_seq, source) "
                "SELECT seq, ? FROM cases WHERE id = ? AND digest = ?",
                [[source, case.id, case.digest()] for case in cases],
            )

    def sent_by(self, case_id: str, source: str) -> bool:
        """Return whether a source has sent a case."""
        found = (
            "SELECT 1 FROM arrivals JOIN cases ON cases.seq = case_seq WHERE id = ? AND source = ?"
        )
        return self._database.row(found, [case_id, source]) is not None

    def next_unaudited(self, after: int) -> tuple[int, str] | None:
        """Return the next case that came in and has no finished audit: the number of its arrival,
        and its id.
        """
        row = self._database.row(
            "SELECT arrivals.seq, id FROM arrivals JOIN cases ON cases.seq = case_seq WHERE"
            " arrivals.seq > ? AND state IN ('new', 'interrupted') ORDER BY arrivals.seq LIMIT 1",
            [after],
        )
        return (row["seq"], row["id"]) if row else None

    def cost_since(self, asked_by: str, since: str) -> float:
        """Return what the audits that somebody asked for have cost since a time, in US dollars, as
        far as known.
        """
        return float(
            self._database.value(
                "SELECT total(cost_usd) FROM run_measures JOIN jobs ON jobs.id = run_id AND"
                " jobs.kind = 'run' WHERE finished_at >= ? AND asked_by = ?",
                [since, asked_by],
            )
        )

    # notices

    def report(self, on: bool) -> None:
        """Note from now on what a webhook is to report, or forget all that it would have been."""
        with self._database.transaction() as connection:
            if on:
                connection.execute("INSERT OR REPLACE INTO store_info VALUES ('webhook', 'on')")
            else:
                connection.execute("DELETE FROM store_info WHERE key = 'webhook'")
                connection.execute("DELETE FROM notices")

    def due(self, limit: int) -> list[WebhookNotice]:
        """Return the notices that may be delivered now, the oldest first."""
        rows = self._database.execute(
            """SELECT notices.seq, notices.id, event, at, tries, cases.id AS case_id,
                   (SELECT json_group_array(source) FROM arrivals WHERE arrivals.case_seq = cases.seq) AS sources
               FROM notices JOIN cases ON cases.seq = notices.case_seq
               WHERE due_at <= ? ORDER BY notices.seq LIMIT ?""",
            [self._database.now(), limit],
        )
        return [
            WebhookNotice(**{**dict(row), "sources": tuple(json.loads(row["sources"]))})
            for row in rows
        ]

    def remove_notice(self, notice: WebhookNotice) -> None:
        """Remove a notice: it was delivered, or is given up."""
        with self._database.transaction(durable=False) as connection:
            connection.execute("DELETE FROM notices WHERE seq = ?", [notice.seq])

    def postpone(self, notice: WebhookNotice, wait: timedelta) -> None:
        """Count a try that failed; the next is made after ``wait``."""
        until = add_time(self._database.now(), wait)
        with self._database.transaction(durable=False) as connection:
            connection.execute(
                "UPDATE notices SET tries = tries + 1, due_at = ? WHERE seq = ?",
                [until, notice.seq],
            )

    def batch(self, batch_id: str, source: str) -> InboxBatch | None:
        """Return a request of a source; None where it has sent none of that id."""
        row = self._database.row(
            "SELECT * FROM inbox WHERE id = ? AND source = ?", [batch_id, source]
        )
        return record_of(InboxBatch, row, parsed=("result",)) if row else None


def _store_request(
    connection: sqlite3.Connection, request: ReceivedRequest, at: str
) -> Acknowledgement:
    # without a key nothing is equal to it
    same = "SELECT id, digest FROM inbox WHERE source = ? AND key = ?"
    if first := connection.execute(same, [request.source, request.key]).fetchone():
        return Acknowledgement(first["id"], new=False, conflict=first["digest"] != request.digest)
    insert(connection, "inbox", request._asdict() | {"received_at": at})
    return Acknowledgement(request.id, new=True)

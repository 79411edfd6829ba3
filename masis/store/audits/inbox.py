"""Stores requests that programs send over HTTP, and the webhook notices about their cases.

A request is synced to the disk (``synchronous = FULL``) before it is acknowledged, and processed
later. Processing can be interrupted and repeated, because storing the same case twice has no
effect. Notices are written in the transaction that changes the state of a case, and stay until they
are delivered.
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
"""One JSON object (a case or a container of cases), JSON Lines, or cases in our own format even if
the source is configured for another one.
"""

LONGEST_WAIT = timedelta(hours=1)
"""The longest wait before a notice is delivered again."""


class ReceivedRequest(NamedTuple):
    """A request as it was sent, with the digest of its body and the sender's idempotency key."""

    id: str
    source: str
    key: str | None
    digest: str
    form: Form
    body: bytes


class Acknowledgement(NamedTuple):
    """The batch of a request, which is new or was made by an earlier request with the same key.

    ``conflict`` is true if that one had another body. The new body isn't stored then.
    """

    id: str
    new: bool
    conflict: bool = False


class InboxBatch(Record):
    """A request and its result, which is None until it is processed."""

    id: str
    source: str
    received_at: str
    done_at: str | None
    result: dict[str, Any] | None


class WebhookNotice(NamedTuple):
    """A notice for the webhook.

    ``id`` is the same for every attempt, and ``at`` is the time when the case changed its state.
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
        """Store requests in one durable transaction, and return their acknowledgements in order."""
        with self._database.transaction() as connection:
            at = self._database.now()
            return [_store_request(connection, request, at) for request in requests]

    def waiting(self, limit: int) -> list[tuple[int, ReceivedRequest]]:
        """Return the oldest unprocessed requests with their numbers."""
        rows = self._database.execute(
            "SELECT * FROM inbox WHERE done_at IS NULL ORDER BY seq LIMIT ?", [limit]
        )
        return [
            (row["seq"], ReceivedRequest(*(row[name] for name in ReceivedRequest._fields)))
            for row in rows
        ]

    def finish(self, results: Sequence[tuple[int, dict[str, Any]]]) -> None:
        """Store the results of requests, and remove their bodies, which the cases replace."""
        with self._database.transaction(durable=False) as connection:
            at = self._database.now()
            connection.executemany(
                # x'' is an empty blob; the column doesn't allow NULL.
                "UPDATE inbox SET done_at = ?, result = ?, body = x'' WHERE seq = ?",
                [(at, json.dumps(result, ensure_ascii=False), seq) for seq, result in results],
            )

    def record_arrivals(self, cases: Iterable[Case], source: str) -> None:
        """Record that a source sent those of these cases that are stored with the same content."""
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
        """Return the arrival number and id of the next case without a finished audit."""
        row = self._database.row(
            "SELECT arrivals.seq, id FROM arrivals JOIN cases ON cases.seq = case_seq WHERE"
            " arrivals.seq > ? AND state IN ('new', 'interrupted') ORDER BY arrivals.seq LIMIT 1",
            [after],
        )
        return (row["seq"], row["id"]) if row else None

    def cost_since(self, asked_by: str, since: str) -> float:
        """Return the known cost in US dollars since a time of the audits of one requester."""
        # total() returns 0.0 without rows, where sum() would return NULL
        # (sqlite.org/lang_aggfunc.html).
        return float(
            self._database.value(
                "SELECT total(cost_usd) FROM run_measures JOIN jobs ON jobs.id = run_id AND"
                " jobs.kind = 'run' WHERE finished_at >= ? AND asked_by = ?",
                [since, asked_by],
            )
        )

    # notices

    def report(self, on: bool) -> None:
        """Start recording notices for a webhook, or stop and delete the recorded ones."""
        with self._database.transaction() as connection:
            if on:
                connection.execute("INSERT OR REPLACE INTO store_info VALUES ('webhook', 'on')")
            else:
                connection.execute("DELETE FROM store_info WHERE key = 'webhook'")
                connection.execute("DELETE FROM notices")

    def due(self, limit: int) -> list[WebhookNotice]:
        """Return the notices that may be delivered now, the oldest first.

        A notice that is due later than the longest wait was postponed before the clock was set
        back.
        """
        now = self._database.now()
        rows = self._database.execute(
            """SELECT notices.seq, notices.id, event, at, tries, cases.id AS case_id,
                   (SELECT json_group_array(source) FROM arrivals
                       WHERE arrivals.case_seq = cases.seq) AS sources
               FROM notices JOIN cases ON cases.seq = notices.case_seq
               WHERE due_at <= ? OR due_at > ? ORDER BY notices.seq LIMIT ?""",
            [now, add_time(now, LONGEST_WAIT), limit],
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
        """Count a failed attempt and schedule the next one after ``wait``."""
        until = add_time(self._database.now(), wait)
        with self._database.transaction(durable=False) as connection:
            connection.execute(
                "UPDATE notices SET tries = tries + 1, due_at = ? WHERE seq = ?",
                [until, notice.seq],
            )

    def batch(self, batch_id: str, source: str) -> InboxBatch | None:
        """Return a request of a source, or None if the source didn't send one with this id."""
        row = self._database.row(
            "SELECT * FROM inbox WHERE id = ? AND source = ?", [batch_id, source]
        )
        return record_of(InboxBatch, row, parsed=("result",)) if row else None


def _store_request(
    connection: sqlite3.Connection, request: ReceivedRequest, at: str
) -> Acknowledgement:
    # without a key this finds nothing, because NULL isn't equal to NULL in SQL
    same = "SELECT id, digest FROM inbox WHERE source = ? AND key = ?"
    if first := connection.execute(same, [request.source, request.key]).fetchone():
        return Acknowledgement(first["id"], new=False, conflict=first["digest"] != request.digest)
    insert(connection, "inbox", request._asdict() | {"received_at": at})
    return Acknowledgement(request.id, new=True)

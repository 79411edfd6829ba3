"""What programs have sent in over HTTP: stored unchanged before it is acknowledged, read afterwards.

A request that was acknowledged is on the disk (``synchronous = FULL``). Reading it may be cut short and begun again,
since storing the same case twice changes nothing.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Sequence
from typing import Any, Literal, NamedTuple

from masis.schema.base import Record
from masis.store.core.connections import Database

Form = Literal["json", "ndjson"]
"""One JSON object, which is a case or holds cases; or cases, one a line."""


class Received(NamedTuple):
    """A request, unchanged; ``digest`` tells two bodies apart, ``key`` is the sender's idempotency key."""

    id: str
    source: str
    key: str | None
    digest: str
    form: Form
    body: bytes


class Acknowledged(NamedTuple):
    """The batch that a request is: a new one, or the one that the same key made before.

    ``conflict`` says that the same key came with another body, which is not stored.
    """

    id: str
    new: bool
    conflict: bool = False


class Batch(Record):
    """One request and what became of it; ``result`` is None while it waits."""

    id: str
    source: str
    received_at: str
    done_at: str | None
    result: dict[str, Any] | None


class Inbox:
    """The inbox of a store."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def put(self, requests: Sequence[Received]) -> list[Acknowledged]:
        """Store requests, all in one transaction that waits for the disk; returns what each is, in order."""
        with self._database.transaction() as connection:
            at = self._database.now()
            return [_put(connection, each, at) for each in requests]

    def waiting(self, limit: int) -> list[tuple[int, Received]]:
        """Return the oldest requests that nobody has read, with their numbers."""
        rows = self._database.execute("SELECT * FROM inbox WHERE done_at IS NULL ORDER BY seq LIMIT ?", [limit])
        return [
            (row["seq"], Received(row["id"], row["source"], row["key"], row["digest"], row["form"], row["body"]))
            for row in rows
        ]

    def count_waiting(self) -> int:
        """Return how many requests nobody has read."""
        return int(self._database.value("SELECT count(*) FROM inbox WHERE done_at IS NULL"))

    def finish(self, results: Sequence[tuple[int, dict[str, Any]]]) -> None:
        """Note what became of requests; their bodies are removed, since the cases hold what counts."""
        with self._database.transaction(durable=False) as connection:
            at = self._database.now()
            for seq, result in results:
                connection.execute(
                    "UPDATE inbox SET done_at = ?, result = ?, body = x'' WHERE seq = ?",
                    [at, json.dumps(result, ensure_ascii=False), seq],
                )

    def batch(self, batch_id: str, source: str) -> Batch | None:
        """Return a request of a source; None where it has sent none of that id."""
        row = self._database.row("SELECT * FROM inbox WHERE id = ? AND source = ?", [batch_id, source])
        if row is None:
            return None
        return Batch(
            id=row["id"],
            source=row["source"],
            received_at=row["received_at"],
            done_at=row["done_at"],
            result=json.loads(row["result"]) if row["result"] else None,
        )


def _put(connection: sqlite3.Connection, request: Received, at: str) -> Acknowledged:
    if request.key is not None:
        first = connection.execute(
            "SELECT id, digest FROM inbox WHERE source = ? AND key = ?", [request.source, request.key]
        ).fetchone()
        if first is not None:
            return Acknowledged(first["id"], new=False, conflict=first["digest"] != request.digest)
    connection.execute(
        "INSERT INTO inbox (id, source, key, digest, form, body, received_at) VALUES (?, ?, ?, ?, ?, ?, ?)",
        [request.id, request.source, request.key, request.digest, request.form, request.body, at],
    )
    return Acknowledged(request.id, new=True)

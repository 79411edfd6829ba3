"""Caches the replies of models with the case they are about, so that both are removed together."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence

from masis.llm.recordings import RecordedReply, RequestKey
from masis.schema.calls import ReplySource
from masis.store.core.connections import Database
from masis.store.jobs import pack, unpack


class CachedReplies:
    """The cached replies for one case. Implements ``llm.recordings.Replies``."""

    source: ReplySource = "cache"

    def __init__(self, database: Database, case_id: str) -> None:
        self._database, self._case_id = database, case_id

    def find(self, asked: RequestKey) -> RecordedReply | None:
        """Return the cached reply to exactly this request, or None."""
        sql = (
            "SELECT payload FROM replies JOIN cases ON cases.seq = case_seq WHERE cases.id = ? AND"
            " key = ?"
        )
        row = self._database.row(sql, [self._case_id, asked.key])
        return RecordedReply.model_validate_json(unpack(row[0])) if row else None

    def keep(self, replies: Sequence[RecordedReply]) -> None:
        """Store replies, replacing earlier ones, unless the case was redacted in the meantime."""
        with self._database.transaction(durable=False) as connection:
            connection.executemany(
                """INSERT OR REPLACE INTO replies (case_seq, key, payload)
                   SELECT seq, ?, ? FROM cases WHERE id = ? AND redaction_seq IS NULL""",
                [(reply.key, pack(reply.model_dump_json()), self._case_id) for reply in replies],
            )

    def forget(self) -> int:
        """Remove all replies, so that the models are called again, and return their number."""
        with self._database.transaction(durable=False) as connection:
            row = connection.execute(
                "SELECT seq FROM cases WHERE id = ?", [self._case_id]
            ).fetchone()
            return remove_replies(connection, row["seq"]) if row else 0


def remove_replies(connection: sqlite3.Connection, case_seq: int) -> int:
    """Remove the cached replies for a case, and return their number."""
    return connection.execute("DELETE FROM replies WHERE case_seq = ?", [case_seq]).rowcount

"""The cache of models' replies: kept with the case that they are about, so that they go when its
texts go.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence

from masis.llm.recordings import RecordedReply, RequestKey
from masis.schema.calls import ReplySource
from masis.store.core.connections import Database
from masis.store.jobs import pack, unpack


class CachedReplies:
    """The replies kept for one case: fills the protocol ``llm.recordings.Replies``."""

    source: ReplySource = "cache"

    def __init__(self, database: Database, case_id: str) -> None:
        self._database, self._case_id = database, case_id

    def find(self, asked: RequestKey) -> RecordedReply | None:
        """Return the reply to exactly this; None where none is kept."""
        sql = (
            "SELECT payload FROM replies JOIN cases ON cases.seq = case_seq WHERE cases.id = ? AND"
            " key = ?"
        )
        row = self._database.row(sql, [self._case_id, asked.key])
        return RecordedReply.model_validate_json(unpack(row[0])) if row else None

    def keep(self, replies: Sequence[RecordedReply]) -> None:
        """Store replies in place of those that were there; none of a case that was redacted
        meanwhile.
        """
        with self._database.transaction(durable=False) as connection:
            connection.executemany(
                """INSERT OR REPLACE INTO replies (case_seq, key, payload)
                   SELECT seq, ?, ? FROM cases WHERE id = ? AND redaction_seq IS NULL""",
                [(reply.key, pack(reply.model_dump_json()), self._case_id) for reply in replies],
            )

    def forget(self) -> int:
        """Remove them all, so that the models are asked anew; returns how many there were."""
        with self._database.transaction(durable=False) as connection:
            row = connection.execute(
                "SELECT seq FROM cases WHERE id = ?", [self._case_id]
            ).fetchone()
            return remove_replies(connection, row["seq"]) if row else 0


def remove_replies(connection: sqlite3.Connection, case_seq: int) -> int:
    """Remove the replies kept for a case; returns how many there were."""
    return connection.execute("DELETE FROM replies WHERE case_seq = ?", [case_seq]).rowcount

"""What a person has typed and not yet submitted, field by field, so that nothing typed is ever
lost.

A draft belongs to a person and to a subject (``case:<id>``, ``new-audit``); its values are JSON. It
is no record: it is overwritten as the person types, goes when what it led to is kept, and no export
holds it. Who has not given a name yet drafts under the empty name.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping

from pydantic import JsonValue

from masis.schema.base import Record
from masis.store.core.connections import StorePart

NOBODY_YET = ""
"""The name under which a person drafts who has not said who they are."""


class ReviewDraft(Record):
    """The fields of one draft; ``saved_at`` is when the last of them was saved, None where there is
    none.
    """

    values: dict[str, JsonValue]
    saved_at: str | None


class Drafts(StorePart):
    """The drafts of a store."""

    def save(self, reviewer: str, subject: str, values: Mapping[str, JsonValue]) -> None:
        """Store fields in place of what they held; one not named keeps what it held. What is the
        same is not rewritten.

        Raises StoreError where the database can't be written.
        """
        # ASCII escapes carry what UTF-8 can't: half a surrogate pair, pasted from a broken page
        dumped = {field: json.dumps(value) for field, value in values.items()}
        with self._database.transaction(durable=False) as connection:
            at = self._database.now()
            connection.executemany(
                """
                INSERT INTO drafts (reviewer, subject, field, value, saved_at)
                VALUES (?, ?, ?, ?, ?)
                ON CONFLICT (reviewer, subject, field)
                DO UPDATE SET value = excluded.value, saved_at = excluded.saved_at
                WHERE value IS NOT excluded.value
                """,
                [(reviewer, subject, field, value, at) for field, value in dumped.items()],
            )

    def get(self, reviewer: str, subject: str) -> ReviewDraft:
        """One draft with the time it was last saved."""
        rows = self._database.execute(
            "SELECT field, value, saved_at FROM drafts WHERE reviewer = ? AND subject = ? ORDER BY"
            " field",
            [reviewer, subject],
        )
        return ReviewDraft(
            values={row["field"]: json.loads(row["value"]) for row in rows},
            saved_at=max((row["saved_at"] for row in rows), default=None),
        )

    def among(self, reviewer: str, subjects: Iterable[str]) -> list[str]:
        """Which of these subjects a reviewer has drafts of."""
        rows = self._database.execute(
            "SELECT DISTINCT subject FROM drafts WHERE reviewer = ? AND subject IN (SELECT value"
            " FROM json_each(?))",
            [reviewer, json.dumps(list(subjects))],
        )
        return [row["subject"] for row in rows]

    def clear(self, reviewer: str, subject: str, *fields: str) -> None:
        """Let a draft go, or only some fields of it."""
        named = f" AND field IN ({', '.join('?' * len(fields))})" if fields else ""
        with self._database.transaction(durable=False) as connection:
            connection.execute(
                f"DELETE FROM drafts WHERE reviewer = ? AND subject = ?{named}",  # noqa: S608
                [reviewer, subject, *fields],
            )

    def hand_over(self, giver: str, taker: str, subjects: Iterable[str] | None = None) -> None:
        """Give the drafts of one name to another, as when a person gives their name while they
        type.

        With ``subjects`` only the drafts of these. Where both have the same field, the one saved
        last wins, so that nothing vanishes under a person's hands; an empty one never wins.
        """
        if giver == taker:
            return
        named = None if subjects is None else json.dumps(list(subjects))
        with self._database.transaction(durable=False) as connection:
            connection.execute(
                """
                UPDATE OR REPLACE drafts SET reviewer = ?1
                WHERE reviewer = ?2
                AND (?3 IS NULL OR subject IN (SELECT value FROM json_each(?3))) AND NOT EXISTS (
                    SELECT 1 FROM drafts AS held
                    WHERE held.reviewer = ?1 AND held.subject = drafts.subject
                        AND held.field = drafts.field
                    AND (held.saved_at >= drafts.saved_at OR drafts.value IN ('""', 'null', '{}'))
                )
                """,
                [taker, giver, named],
            )

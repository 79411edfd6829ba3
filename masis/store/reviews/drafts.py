"""Stores text that a person has typed but not submitted, field by field.

A draft belongs to a person and a subject (``case:<id>``, ``new-audit``), and its values are JSON.
It is overwritten while the person types, removed when the result is stored, and not exported. The
drafts of a person who hasn't entered a name belong to their browser.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping

from pydantic import JsonValue

from masis.schema.base import Record
from masis.store.core.connections import StorePart


class ReviewDraft(Record):
    """The fields of one draft, and the time when the last of them was saved, if any was."""

    values: dict[str, JsonValue]
    saved_at: str | None


class Drafts(StorePart):
    """The drafts of a store."""

    def save(self, reviewer: str, subject: str, values: Mapping[str, JsonValue]) -> None:
        """Store the given fields and keep the others. An unchanged field isn't rewritten.

        Raises StoreError if the database can't be written.
        """
        # JSON with ASCII escapes can hold half a surrogate pair, pasted from a broken page, which
        # UTF-8 can't encode
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
        """Return a draft with the time it was last saved."""
        rows = self._database.execute(
            "SELECT field, value, saved_at FROM drafts WHERE reviewer = ? AND subject = ? ORDER BY"
            " field",
            [reviewer, subject],
        )
        return ReviewDraft(
            values={row["field"]: json.loads(row["value"]) for row in rows},
            saved_at=max((row["saved_at"] for row in rows), default=None),
        )

    def subjects_with_drafts(self, reviewer: str, subjects: Iterable[str]) -> list[str]:
        """Return which of these subjects a reviewer has drafts of."""
        rows = self._database.execute(
            "SELECT DISTINCT subject FROM drafts WHERE reviewer = ? AND subject IN (SELECT value"
            " FROM json_each(?))",
            [reviewer, json.dumps(list(subjects))],
        )
        return [row["subject"] for row in rows]

    def clear(self, reviewer: str, subject: str, *fields: str) -> None:
        """Remove a draft, or only some of its fields."""
        named = f" AND field IN ({', '.join('?' * len(fields))})" if fields else ""
        with self._database.transaction(durable=False) as connection:
            connection.execute(
                f"DELETE FROM drafts WHERE reviewer = ? AND subject = ?{named}",  # noqa: S608
                [reviewer, subject, *fields],
            )

    def hand_over(self, giver: str, taker: str, subjects: Iterable[str] | None = None) -> None:
        """Move drafts from one name to another, such as when a person enters a name while typing.

        If both have the same field, the one saved last is kept, so that text doesn't disappear
        while the person types. An empty field doesn't replace another one.

        Args:
            giver: The name that has the drafts.
            taker: The name that gets them.
            subjects: The subjects whose drafts to move; all if None.

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

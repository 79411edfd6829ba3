"""The record of what retention removed: when, by whom, by which rule, how much of what; never a word of it.

It only grows. A digest is kept of each thing removed, so that a copy kept elsewhere can be told to be that thing.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator

from masis.errors import UnknownRecord
from masis.schema.retention import Parts, Purge, Removal, RetentionRule
from masis.store.core.connections import Database


class Purges:
    """The purges of a store."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def history(self) -> tuple[Purge, ...]:
        """Every purge, newest first, with how much went."""
        with self._database.reading() as connection:
            rows = connection.execute("SELECT seq FROM purges ORDER BY seq DESC").fetchall()
            return tuple(purge_numbered(connection, row["seq"]) for row in rows)

    def removals(self, purge: int) -> Iterator[Removal]:
        """What one purge removed, record by record."""
        seq = 0
        while rows := self._database.execute(
            "SELECT * FROM purged WHERE purge_seq = ? AND seq > ? ORDER BY seq LIMIT 500", [purge, seq]
        ):
            yield from map(_removal, rows)
            seq = rows[-1]["seq"]


def removals_of(connection: sqlite3.Connection, purge: int) -> Iterator[Removal]:
    """What one purge removed, record by record."""
    yield from map(_removal, connection.execute("SELECT * FROM purged WHERE purge_seq = ? ORDER BY seq", [purge]))


def _removal(row: sqlite3.Row) -> Removal:
    return Removal(
        kind=row["kind"],
        id=row["record_id"],
        digest=row["digest"],
        bytes=row["bytes"],
        parts=Parts(**json.loads(row["parts"])),
    )


def purge_numbered(connection: sqlite3.Connection, seq: int) -> Purge:
    """One purge with how much went. Raises UnknownRecord."""
    row = connection.execute("SELECT * FROM purges WHERE seq = ?", [seq]).fetchone()
    if row is None:
        raise UnknownRecord(f"there is no purge {seq}.")
    sums = ", ".join(f"coalesce(sum(parts ->> '$.{name}'), 0) AS {name}" for name in Parts.model_fields)
    found = connection.execute(
        f"""SELECT coalesce(sum(kind = 'run'), 0) AS runs, coalesce(sum(kind = 'screening'), 0) AS screenings,
                coalesce(sum(bytes), 0) AS bytes, {sums}
            FROM purged WHERE purge_seq = ?""",  # noqa: S608 (names of our own fields)
        [seq],
    ).fetchone()
    return Purge(
        rule=RetentionRule.model_validate_json(row["rule"]),
        parts=Parts(**{name: found[name] for name in Parts.model_fields}),
        **{name: row[name] for name in ("seq", "at", "by", "how", "app")},
        **{name: found[name] for name in ("runs", "screenings", "bytes")},
    )


def insert_purge(connection: sqlite3.Connection, purge: Purge) -> None:
    """Write that a purge took place; what it removed follows. Inside a transaction."""
    row = [purge.seq, purge.at, purge.by, purge.how, purge.rule.model_dump_json(), purge.app]
    connection.execute("INSERT INTO purges (seq, at, by, how, rule, app) VALUES (?, ?, ?, ?, ?, ?)", row)


def insert_removal(connection: sqlite3.Connection, purge: int, removal: Removal) -> None:
    """Write what a purge removed. Inside a transaction."""
    parts = removal.parts.model_dump_json(exclude_defaults=True)
    connection.execute(
        """INSERT INTO purged (seq, purge_seq, kind, record_id, digest, bytes, parts)
           SELECT coalesce(max(seq), 0) + 1, ?, ?, ?, ?, ?, ? FROM purged""",
        [purge, removal.kind, removal.id, removal.digest, removal.bytes, parts],
    )

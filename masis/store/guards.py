"""Triggers that keep the decision log growing only: no update, no delete, no replacement, no gap.

They are armed again after every migration, since rebuilding a table (``transform()`` of sqlite-utils) drops them
without a word, and asserted on every opening. They stop accidents and careless tools; whoever drops them and edits a
row is found by the hash chain (``Decisions.verify``).
"""

from __future__ import annotations

import sqlite3

from masis.errors import UnguardedLog

GUARDS: dict[str, str] = {
    "decision_log_no_update": """
        CREATE TRIGGER decision_log_no_update BEFORE UPDATE ON decision_log
        BEGIN SELECT RAISE(ABORT, 'the decision log only grows: an entry is never changed'); END""",
    "decision_log_no_delete": """
        CREATE TRIGGER decision_log_no_delete BEFORE DELETE ON decision_log
        BEGIN SELECT RAISE(ABORT, 'the decision log only grows: an entry is never deleted'); END""",
    # INSERT OR REPLACE deletes without firing the delete trigger, so the insert itself is checked
    "decision_log_no_replace": """
        CREATE TRIGGER decision_log_no_replace BEFORE INSERT ON decision_log
        WHEN NEW.seq IS NOT (SELECT coalesce(max(seq), 0) + 1 FROM decision_log)
            OR EXISTS (SELECT 1 FROM decision_log WHERE id = NEW.id OR token = NEW.token OR redacts = NEW.redacts)
        BEGIN SELECT RAISE(ABORT, 'the decision log only grows: an entry goes to its end, once'); END""",
    "decision_payloads_no_update": """
        CREATE TRIGGER decision_payloads_no_update BEFORE UPDATE ON decision_payloads
        BEGIN SELECT RAISE(ABORT, 'what was decided is never changed'); END""",
    "decision_payloads_no_delete": """
        CREATE TRIGGER decision_payloads_no_delete BEFORE DELETE ON decision_payloads
        WHEN NOT EXISTS (SELECT 1 FROM decision_log WHERE redacts = OLD.entry_seq)
        BEGIN SELECT RAISE(ABORT, 'what was decided goes only by a redaction, which is an entry itself'); END""",
    "decision_payloads_no_replace": """
        CREATE TRIGGER decision_payloads_no_replace BEFORE INSERT ON decision_payloads
        WHEN EXISTS (SELECT 1 FROM decision_payloads WHERE entry_seq = NEW.entry_seq)
            OR EXISTS (SELECT 1 FROM decision_log WHERE redacts = NEW.entry_seq)
        BEGIN SELECT RAISE(ABORT, 'what was decided is never replaced'); END""",
}


def arm(connection: sqlite3.Connection) -> None:
    """Create every guard anew, whatever stood in its place. Call it inside a transaction."""
    for name, statement in GUARDS.items():
        connection.execute(f"DROP TRIGGER IF EXISTS {name}")
        connection.execute(statement.strip())


def missing(connection: sqlite3.Connection) -> tuple[str, ...]:
    """Guards that are absent or read otherwise than they should."""
    rows = connection.execute("SELECT name, sql FROM sqlite_master WHERE type = 'trigger'")
    armed = {name: " ".join(sql.split()) for name, sql in rows}
    return tuple(name for name, statement in GUARDS.items() if armed.get(name) != " ".join(statement.split()))


def assert_armed(connection: sqlite3.Connection) -> None:
    """Raise UnguardedLog naming the guards that are gone."""
    if gone := missing(connection):
        raise UnguardedLog(
            f"the decision log has lost its guards ({', '.join(gone)}): something other than the workbench changed "
            "this database. `masis verify-log` says whether entries were altered, and --rearm restores the guards."
        )

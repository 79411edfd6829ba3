"""Defines triggers that make the logs append-only.

Rows can't be updated, deleted or replaced, and their numbers have no gaps. The triggers are created
again after every migration, because rebuilding a table (``transform()`` of sqlite-utils) drops them
silently, and checked whenever a database is opened. They stop accidents and careless tools. If
someone drops them and edits a row, the hash chain reveals it (``Decisions.verify``).
"""

from __future__ import annotations

import sqlite3

from masis.errors import UnguardedLog


def _only_grows(table: str, name: str, once: str = "", changed: str = "1") -> dict[str, str]:
    """Return the triggers of a table whose rows are numbered without gaps.

    Args:
        table: The table.
        name: The name of the log in error messages.
        once: A condition that matches existing rows with the same unique values as the new one.
        changed: A condition that matches the rows that must not be updated.

    """
    on_insert = "an entry goes to its end, once"
    again = f" OR EXISTS (SELECT 1 FROM {table} WHERE {once})" if once else ""  # noqa: S608
    # SQLite stores the text of a trigger, and ``missing`` compares it apart from blanks, so another
    # wording here makes the triggers of existing databases look changed.
    return {
        f"{table}_no_update": (
            f"""
        CREATE TRIGGER {table}_no_update BEFORE UPDATE ON {table} WHEN {changed}
        BEGIN SELECT RAISE(ABORT, '{name} only grows: an entry is never changed'); END"""
        ),
        f"{table}_no_delete": (
            f"""
        CREATE TRIGGER {table}_no_delete BEFORE DELETE ON {table}
        BEGIN SELECT RAISE(ABORT, '{name} only grows: an entry is never deleted'); END"""
        ),
        # INSERT OR REPLACE deletes without firing the delete trigger, so the insert itself is
        # checked
        f"{table}_no_replace": (
            f"""
        CREATE TRIGGER {table}_no_replace BEFORE INSERT ON {table}
        WHEN NEW.seq IS NOT (SELECT coalesce(max(seq), 0) + 1 FROM {table}){again}
        BEGIN SELECT RAISE(ABORT, '{name} only grows: {on_insert}'); END"""  # noqa: S608
        ),
    }


def _chain_triggers(log: str, payloads: str, name: str) -> dict[str, str]:
    """Return the triggers of a chained log and of the table with its payloads."""
    on_delete = "what was decided goes only by a redaction, which is an entry itself"
    return _only_grows(
        log, f"the {name}", "id = NEW.id OR token = NEW.token OR redacts = NEW.redacts"
    ) | {
        f"{payloads}_no_update": (
            f"""
        CREATE TRIGGER {payloads}_no_update BEFORE UPDATE ON {payloads}
        BEGIN SELECT RAISE(ABORT, 'what was decided is never changed'); END"""
        ),
        f"{payloads}_no_delete": (
            f"""
        CREATE TRIGGER {payloads}_no_delete BEFORE DELETE ON {payloads}
        WHEN NOT EXISTS (SELECT 1 FROM {log} WHERE redacts = OLD.entry_seq)
        BEGIN SELECT RAISE(ABORT, '{on_delete}'); END"""  # noqa: S608
        ),
        f"{payloads}_no_replace": (
            f"""
        CREATE TRIGGER {payloads}_no_replace BEFORE INSERT ON {payloads}
        WHEN EXISTS (SELECT 1 FROM {payloads} WHERE entry_seq = NEW.entry_seq)
            OR EXISTS (SELECT 1 FROM {log} WHERE redacts = NEW.entry_seq)
        BEGIN SELECT RAISE(ABORT, 'what was decided is never replaced'); END"""  # noqa: S608
        ),
    }


GUARDS: dict[str, dict[str, str]] = {
    "decision_log": _chain_triggers("decision_log", "decision_payloads", "decision log"),
    "screening_log": _chain_triggers("screening_log", "screening_log_payloads", "screening log"),
    "preference_log": _chain_triggers(
        "preference_log", "preference_log_payloads", "preference log"
    ),
    "executions": _only_grows(
        "executions", "the log of executions", "run_id = NEW.run_id AND start = NEW.start"
    ),
    "purges": _only_grows("purges", "the record of what retention removed"),
    "purged": _only_grows("purged", "the record of what retention removed"),
    "team_records": _only_grows(
        "team_records", "the record of policies, rubrics and views", changed="OLD.kind <> 'view'"
    ),
}
"""The triggers of each append-only table."""


OTHER_TRIGGERS = frozenset({"cases_notify", "observations_indexed", "observations_unindexed"})
"""The triggers of the schema and the migrations that guard no log."""


def arm(connection: sqlite3.Connection) -> None:
    """Create every trigger, replacing any existing one, and drop those that aren't the workbench's.
    Call it inside a transaction.

    A log that a later migration adds is guarded once it exists.
    """
    for name in _find_foreign(connection):
        connection.execute(f"DROP TRIGGER {_quote_trigger(name)}")
    tables = {
        row[0] for row in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
    }
    for log, guards in GUARDS.items():
        for name, statement in guards.items() if log in tables else ():
            connection.execute(f"DROP TRIGGER IF EXISTS {name}")
            connection.execute(statement.strip())


def _find_foreign(connection: sqlite3.Connection) -> tuple[str, ...]:
    """Return the triggers that the workbench didn't create.

    A trigger with ``RAISE(IGNORE)`` makes SQLite skip a write without an error
    (sqlite.org/lang_createtrigger.html), so a decision would seem stored.
    """
    known = OTHER_TRIGGERS.union(*GUARDS.values())
    rows = connection.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'")
    return tuple(name for (name,) in rows.fetchall() if name not in known)


def _quote_trigger(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def missing(connection: sqlite3.Connection, log: str | None = None) -> tuple[str, ...]:
    """Return the triggers of one log, or of all, that are missing or were changed."""
    rows = connection.execute("SELECT name, sql FROM sqlite_master WHERE type = 'trigger'")
    armed = {name: " ".join(sql.split()) for name, sql in rows}
    wanted = [GUARDS[log]] if log is not None else GUARDS.values()
    return tuple(
        name
        for guards in wanted
        for name, statement in guards.items()
        if armed.get(name) != " ".join(statement.split())
    )


def assert_armed(connection: sqlite3.Connection) -> None:
    """Raise UnguardedLog with the names of missing, changed or foreign triggers."""
    if foreign := _find_foreign(connection):
        raise UnguardedLog(
            f"the database has triggers that aren't the workbench's ({', '.join(foreign)}):"
            " something else changed it, and what is written may not be stored. `masis verify-log`"
            " says whether entries were altered, and --rearm removes the triggers."
        )
    # Every opening of a database runs this, so the triggers are read only once if all are there.
    for log in GUARDS if missing(connection) else ():
        if gone := missing(connection, log):
            raise UnguardedLog(
                f"the {log.replace('_', ' ')} has lost its triggers ({', '.join(gone)}): something"
                " other than the workbench changed this database. `masis verify-log` says whether"
                " entries were altered, and --rearm restores the triggers."
            )

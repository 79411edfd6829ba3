"""The schema, as named steps from the first version on.

A migration is appended and never edited: databases out there have run it. Each runs in one transaction with the record
that it ran (the table ``_sqlite_migrations`` of sqlite-utils, which applies them). A migration holds its own SQL and
calls no other code of the product, which will have changed by the time an old database meets it. The steps lie in
modules by what they are about; their numbers say the order, and ``MIGRATIONS`` is all of them.

sqlite-utils is imported only when something is pending: it pulls pandas in, which costs more than opening a database.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TypeAlias

from masis import version
from masis.store.core import guards
from masis.store.core.migrations.migration_progress import Listener, Upgrade, heard_by
from masis.store.core.migrations.steps import (
    APPLICATION_ID,
    m001_cases_runs_and_decisions,
    m002_full_text_search,
    m003_queue_indexes,
    m004_drafts,
    m005_case_counts,
    m006_beginnings_of_words,
    m007_corpora,
    m008_screenings,
    m009_screening_log,
    m010_steps_of_an_iteration,
    m011_measures_of_runs,
    m012_executions_and_retention,
    m013_disagreement,
    m014_redacted_cases,
    m015_risk,
    m016_rule_of_acceptance,
    m017_signatures,
    m018_team,
    m019_inbox,
    m020_dataset_versions,
    m021_kept_counts_of_work_and_audits,
    m022_redacted_decisions_are_somebodys,
)

if TYPE_CHECKING:
    from sqlite_utils import Database

Migration: TypeAlias = "Callable[[Database], None]"

SET_NAME = "masis"


MIGRATIONS: tuple[Migration, ...] = (
    m001_cases_runs_and_decisions,
    m002_full_text_search,
    m003_queue_indexes,
    m004_drafts,
    m005_case_counts,
    m006_beginnings_of_words,
    m007_corpora,
    m008_screenings,
    m009_screening_log,
    m010_steps_of_an_iteration,
    m011_measures_of_runs,
    m012_executions_and_retention,
    m013_disagreement,
    m014_redacted_cases,
    m015_risk,
    m016_rule_of_acceptance,
    m017_signatures,
    m018_team,
    m019_inbox,
    m020_dataset_versions,
    m021_kept_counts_of_work_and_audits,
    m022_redacted_decisions_are_somebodys,
)


def names(migrations: Sequence[Migration] = MIGRATIONS) -> tuple[str, ...]:
    """The names of migrations, in order."""
    return tuple(migration.__name__ for migration in migrations)


def applied(connection: sqlite3.Connection) -> tuple[str, ...]:
    """The names of the migrations that this database has run, in the order it ran them."""
    known = "SELECT 1 FROM sqlite_master WHERE name = '_sqlite_migrations'"
    if connection.execute(known).fetchone() is None:
        return ()
    rows = connection.execute("SELECT name FROM _sqlite_migrations WHERE migration_set = ? ORDER BY id", [SET_NAME])
    return tuple(row[0] for row in rows)


def migrate(
    connection: sqlite3.Connection, migrations: Sequence[Migration] = MIGRATIONS, on_upgrade: Listener | None = None
) -> tuple[str, ...]:
    """Run what is pending, each migration in a transaction of its own with its record; returns the names it ran.

    The write lock is taken before looking what is pending, so that two processes opening a new file at once don't
    both create it. The guards of the log are armed again in the same transaction. ``on_upgrade`` hears how far the
    upgrade of an older database has come; making a new one is not worth telling.
    """
    done: list[str] = []
    listener = on_upgrade if applied(connection) else None
    while pending := [each for each in migrations if each.__name__ not in applied(connection)]:
        connection.execute("BEGIN IMMEDIATE")
        try:
            if pending[0].__name__ not in applied(connection):
                with heard_by(listener, len(done) + 1, len(done) + len(pending)):
                    _apply(connection, pending[0])
                guards.arm(connection)
                connection.execute("INSERT OR REPLACE INTO store_info VALUES ('app_version', ?)", [version.APP])
                done.append(pending[0].__name__)
            connection.execute("COMMIT")
        except BaseException:
            connection.execute("ROLLBACK")
            raise
    return tuple(done)


def _apply(connection: sqlite3.Connection, migration: Migration) -> None:
    from sqlite_utils import Database, Migrations

    one = Migrations(SET_NAME)
    one(name=migration.__name__)(migration)
    one.apply(Database(connection, execute_plugins=False))


__all__ = [
    "APPLICATION_ID",
    "MIGRATIONS",
    "SET_NAME",
    "Listener",
    "Migration",
    "Upgrade",
    "applied",
    "migrate",
    "names",
]

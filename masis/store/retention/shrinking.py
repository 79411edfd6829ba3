"""Giving free space back to the disk: SQLite keeps the room of what was deleted, in whole pages and
in parts of pages.

The file is rewritten without them (VACUUM). That needs as much room as what is left, twice: for the
copy, and for the log it comes in through; it needs the write lock while it lasts, so that others
wait; and the file itself gets shorter once nobody reads its old state any more.
"""

from __future__ import annotations

import contextlib
import shutil
import sqlite3
import tempfile
from collections.abc import Callable
from pathlib import Path

from masis.schema.retention import Shrunk
from masis.store.core.connections import Database, connect, explained_errors

WORTHWHILE = 0.02
"""The share of the file that must have become free before it is rewritten."""

SETTLED_WITHIN_MS = 2_000
"""How long to wait for readers of an old state to end: pages read for some milliseconds, an archive
for minutes.
"""

_ROOM = 1.1
_ASKED_EVERY = 1_000
"""Steps of SQLite's machine between two looks whether to stop: far less than a millisecond's."""


def shrink(
    database: Database, stopped: Callable[[], bool] | None = None, *, freed: int | None = None
) -> Shrunk:
    """Give free space back to the disk; where that can't be, say why, and leave everything as it
    was.

    ``freed`` is how many bytes have just been removed, which free pages don't show: None where
    nobody knows. ``stopped`` is asked again and again: when it says so, the file is left as it was.
    """
    path = database.path
    before = path.stat().st_size
    size, pages, free = (
        database.value(f"PRAGMA {name}") for name in ("page_size", "page_count", "freelist_count")
    )
    if freed is not None and max(free * size, freed) < pages * size * WORTHWHILE:
        return Shrunk(before=before, after=before, why_not="hardly any of it has become free")
    if lacking := _lacking_room(path, (pages - free) * size):
        return Shrunk(before=before, after=before, why_not=lacking)
    try:
        with contextlib.closing(connect(path)) as connection:
            connection.set_progress_handler(stopped, _ASKED_EVERY)
            connection.execute("VACUUM")
    except sqlite3.OperationalError as error:
        return Shrunk(before=before, after=path.stat().st_size, why_not=_shrink_error_text(error))
    why = (
        ""
        if settle(database)
        else "another program still reads its old state; it shrinks when that ends"
    )
    return Shrunk(before=before, after=path.stat().st_size, why_not=why)


def settle(database: Database) -> bool:
    """Carry the write-ahead log into the file and empty it: until then it holds pages as they were.

    False where another program still reads an old state, which then lingers until that ends.
    """
    with explained_errors(database.path), contextlib.closing(connect(database.path)) as connection:
        connection.execute(f"PRAGMA busy_timeout = {SETTLED_WITHIN_MS}")
        busy, *_ = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
    return not busy


def _lacking_room(path: Path, needed: int) -> str:
    """Why there is no room; empty where there is."""
    for folder in {path.resolve().parent, Path(tempfile.gettempdir())}:
        if (free := shutil.disk_usage(folder).free) < needed * _ROOM:
            return (
                f"{folder} has {free / 1e6:,.0f} MB free, and {needed * _ROOM / 1e6:,.0f} MB are"
                " needed for a while"
            )
    return ""


def _shrink_error_text(error: sqlite3.OperationalError) -> str:
    name = error.sqlite_errorname
    if name == "SQLITE_INTERRUPT":
        return "it was stopped"
    if name.startswith(("SQLITE_BUSY", "SQLITE_LOCKED")):
        return "another program writes to it"
    return str(error)

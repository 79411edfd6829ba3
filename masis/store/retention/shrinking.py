"""Returns free space of the database file to the disk, and erases removed text from it.

SQLite keeps the space of deleted rows as free pages and as gaps within pages. VACUUM rewrites the
file without them. It needs twice the remaining size, for the copy and for the write-ahead log, and
holds the write lock while it runs. The file gets shorter only after the last reader of its old
state has finished.
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
"""How many milliseconds to wait for readers of an old state. Pages read for a few milliseconds, an
archive for minutes.
"""

_MERGED_PAGES = 500
"""Pages of an index merged per transaction, which takes about 20 ms of other writers' time."""

_ROOM = 1.1
_ASKED_EVERY = 1_000
"""SQLite calls ``stopped`` after this many virtual machine instructions, far less than 1 ms."""


def shrink(
    database: Database, stopped: Callable[[], bool] | None = None, *, freed: int | None = None
) -> Shrunk:
    """Return free space to the disk, or say why that isn't possible and change nothing.

    Args:
        database: The database to shrink.
        stopped: Called repeatedly. If it returns True, the file is left unchanged.
        freed: How many bytes were just removed. Free pages don't show gaps within pages. None
            shrinks the file even if little is free.

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
    """Write the write-ahead log into the file and truncate it, since it still holds old pages.

    Returns:
        False if another program still reads an old state. The old pages remain until it finishes.

    """
    with explained_errors(database.path), contextlib.closing(connect(database.path)) as connection:
        connection.execute(f"PRAGMA busy_timeout = {SETTLED_WITHIN_MS}")
        busy, *_ = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
    return not busy


def erase_removed_words(database: Database, *indexes: str) -> None:
    """Erase the words of removed rows from full-text indexes and from the write-ahead log.

    FTS5 only marks words as deleted until it merges its segments. Proposed groups of observations
    are named after words of the texts, so they are forgotten too.
    """
    with database.transaction(durable=False) as connection:
        connection.execute("DELETE FROM proposed_groups")
    for index in indexes:
        # A negative number starts a merge of all segments, a positive one continues it. If fewer
        # than two rows changed, nothing was left to merge (sqlite.org/fts5.html#the_merge_command).
        pages = -_MERGED_PAGES
        while True:
            with database.transaction(durable=False) as connection:
                before = connection.total_changes
                connection.execute(
                    f"INSERT INTO {index} ({index}, rank) VALUES ('merge', ?)",  # noqa: S608
                    [pages],
                )
                if connection.total_changes - before < 2:
                    break
            pages = _MERGED_PAGES
    settle(database)


def _lacking_room(path: Path, needed: int) -> str:
    """Return why there isn't enough space, or "" if there is."""
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

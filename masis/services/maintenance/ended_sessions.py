"""Sessions that people signed out of, stored so that a restarted server rejects them too."""

from __future__ import annotations

import contextlib
import time
from pathlib import Path

from masis.store.core.connections import connect, explained_errors

_KEY = "ended session "


def read_sessions(path: Path) -> dict[str, float]:
    """Return the ended sessions with their expiry in seconds since 1970; delete expired ones."""
    if not path.exists():
        return {}
    with explained_errors(path), contextlib.closing(connect(path, create=False)) as connection:
        # The column holds text, which would be compared digit by digit.
        connection.execute(
            "DELETE FROM store_info WHERE key LIKE ? AND CAST(value AS REAL) < ?",
            [f"{_KEY}%", time.time()],
        )
        rows = connection.execute(
            "SELECT key, value FROM store_info WHERE key LIKE ?", [f"{_KEY}%"]
        ).fetchall()
    return {row["key"].removeprefix(_KEY): float(row["value"]) for row in rows}


def add(path: Path, session: str, until: float) -> None:
    """Store an ended session until it would have expired.

    Nothing is stored if there is no database, because then there is nothing to protect.
    """
    if path.exists():
        with explained_errors(path), contextlib.closing(connect(path, create=False)) as connection:
            connection.execute(
                "INSERT OR REPLACE INTO store_info VALUES (?, ?)", [f"{_KEY}{session}", str(until)]
            )

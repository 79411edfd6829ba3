"""Read finished runs from the store, with their iterations."""

from __future__ import annotations

import sqlite3

from masis.schema.run import Iteration, Run
from masis.store.jobs import read_parts, readable, unpack


def read_run(connection: sqlite3.Connection, row: sqlite3.Row) -> Run:
    """Return the complete result of a finished run."""
    with readable(connection, "run", row["seq"]):
        run = Run.model_validate_json(unpack(row["payload"]))
        iterations = read_parts(connection, "run", row["seq"], "iteration", Iteration)
        if len(iterations) != row["iterations"]:
            raise ValueError(f"it had {row['iterations']} iterations and has {len(iterations)}")
    return run.model_copy(update={"iterations": iterations})

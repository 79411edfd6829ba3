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


def reword_headlines(connection: sqlite3.Connection, run_seqs: Iterable[int]) -> dict[int, str]:
    """Return the headlines of those runs whose stored one was worded by another version, as it is
    worded now.

    A run that can't be read keeps the stored one: a list shows the others all the same.
    """
    rows = connection.execute(
        """SELECT seq, iterations, reasons, payload FROM jobs
           WHERE seq IN (SELECT value FROM json_each(?)) AND payload IS NOT NULL
               AND worded IS NOT ?""",
        [json.dumps(list(run_seqs)), wording_version()],
    ).fetchall()
    found: dict[int, str] = {}
    for row in rows:
        with contextlib.suppress(StoreError):
            found[row["seq"]] = queue_headline(
                _as_reassessed(read_run(connection, row), json.loads(row["reasons"]))
            )
    return found


def _as_reassessed(run: Run, codes: Sequence[ReviewCode]) -> Run:
    """Return a run with the reasons that it stands by: a later rule may have dropped some, and
    given others.
    """
    kept = [reason for reason in run.review_reasons if reason.code in codes]
    had = {reason.code for reason in kept}
    more = [
        ReviewReason(code=code, message=REASON[code].meaning) for code in codes if code not in had
    ]
    return run.model_copy(update={"review_reasons": (*kept, *more)})

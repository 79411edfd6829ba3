"""What has been decided about a case: for whoever waits for it."""

from __future__ import annotations

from typing import NamedTuple

from masis.errors import Removed, StoreError
from masis.schema.review import Decision, settled_answer
from masis.schema.run import Run
from masis.store import Store


class Outcome(NamedTuple):
    """A decision that stands, when it was made, and the answer it lets stand (None: there is none).

    ``seq`` and ``entry_id`` name the entry of the decision log.
    """

    seq: int
    entry_id: str
    at: str
    decision: Decision
    answer: str | None


def outcome(store: Store, case_id: str, after: int = 0) -> Outcome | None:
    """What a person (or the acceptance policy) decided about a case; None while there is nothing.

    An entry up to ``after`` counts for nothing; an undone decision stands no more. Raises UnknownRecord, and StoreError
    where what was decided has been redacted.
    """
    with store.database.reading():
        entry = store.decisions.current(case_id)
        if entry is None or entry.seq <= after:
            return None
        if entry.decision is None:
            raise StoreError(f"what was decided about case {case_id!r} has been redacted: decide it again.")
        run = _run(store, entry.decision)
    return Outcome(entry.seq, entry.id, entry.at, entry.decision, settled_answer(entry.decision, run))


def _run(store: Store, decision: Decision) -> Run | None:
    """The run decided about; the newest finished one where the decision names none; None where it was removed."""
    run_id = decision.run_id or store.cases.summary(decision.case_id).run_id
    try:
        return store.runs.get(run_id) if run_id else None
    except Removed:  # what the person wrote stands all the same
        return None

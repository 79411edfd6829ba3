"""Which case a reviewer should look at next, in the queue and the order they have chosen."""

from __future__ import annotations

from collections.abc import Collection

from masis.schema.review import CaseState
from masis.store import Store
from masis.store.records import CaseFilter

WAITING: tuple[CaseState, ...] = ("needs_review", "new", "interrupted")
"""The states that wait for a person. An escalated case waits too, but for somebody or something else."""


def waiting_in(wanted: CaseFilter) -> CaseFilter:
    """What waits among the cases of a queue; a queue of decided cases only holds nothing that waits."""
    states = tuple(state for state in WAITING if not wanted.states or state in wanted.states)
    return wanted.model_copy(update={"states": states or WAITING})


def next_waiting(store: Store, case_id: str, wanted: CaseFilter, skipped: Collection[str] = ()) -> str | None:
    """The case to decide after this one: behind it in the order, else from the start; None where nothing is left.

    Cases skipped are passed over. Raises UnknownRecord.
    """
    return store.cases.following(case_id, waiting_in(wanted), without={case_id, *skipped})

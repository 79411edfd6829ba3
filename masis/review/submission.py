"""Handing a decision in: once however often it is sent, against the case as it was seen, its draft gone with it."""

from __future__ import annotations

from masis import version
from masis.schema.review import Decision, LogEntry
from masis.store import Store


def case_subject(case_id: str) -> str:
    """What a draft of a decision on a case goes by."""
    return f"case:{case_id}"


def submit(store: Store, decision: Decision, *, seen_version: int | None) -> LogEntry:
    """Append a decision and let its draft go, both or neither.

    The same token again gives the first entry back. Raises StaleVersion where the case is no longer as it was seen,
    and what ``store.decisions.append`` raises; the draft then stays.
    """
    with store.transaction():
        entry = store.decisions.append(_versioned(decision), seen_version=seen_version)
        store.drafts.clear(decision.reviewer, case_subject(decision.case_id))
    return entry


def take_back(store: Store, entry: LogEntry, reviewer: str) -> LogEntry:
    """Undo one entry by a further one; asked again, the same undo is given back and nothing else is undone.

    Naming the entry matters: with "undo whatever stands" a second press would take back the decision before, too.
    Raises StoreError where the entry does not stand any more.
    """
    if entry.decision is None:
        raise ValueError("what a redacted entry decided is not known")
    return store.decisions.append(
        _versioned(
            Decision(
                kind="undo",
                reviewer=reviewer,
                case_id=entry.decision.case_id,
                run_id=entry.decision.run_id,
                undoes=entry.id,
                token=f"undo:{entry.id}",
            )
        )
    )


def _versioned(decision: Decision) -> Decision:
    if decision.versions:
        return decision
    return decision.model_copy(update={"versions": {"app": version.APP, "rubric": version.RUBRIC}})

"""Which cases are versions of one another, by what they and the decision log say."""

from __future__ import annotations

from collections.abc import Iterator

from masis.errors import UnknownRecord
from masis.schema.case import Case
from masis.services.records import DecisionFilter
from masis.store import Store


def earlier_version(store: Store, case: Case) -> str | None:
    """Return the id of the case that one is a new version of; None where it is none, or that one is not here.

    A file can name any id; the digest says whether it is the case that was meant.
    """
    earlier = case.earlier_version
    if earlier is None:
        return None
    try:
        return earlier.id if store.cases.get(earlier.id).digest() == earlier.digest else None
    except UnknownRecord:
        return None


def newer_version(store: Store, case_id: str) -> str | None:
    """Return the id of the case that took the place of one; None where it is the newest version."""
    wanted = DecisionFilter(case_id=case_id, kinds=("new_version",), size=1)
    entries = store.decisions.entries(wanted).rows
    return next((entry.decision.newer_case for entry in entries if entry.decision), None)


def versions_of(store: Store, case_id: str) -> tuple[str, ...]:
    """Return the ids of all versions of a case, the first one first. Raises UnknownRecord."""
    before = tuple(_before(store, case_id))
    return (*reversed(before), case_id, *_behind(store, case_id))


def _before(store: Store, case_id: str) -> Iterator[str]:
    seen = {case_id}
    while (earlier := earlier_version(store, store.cases.get(case_id))) is not None and earlier not in seen:
        seen.add(earlier)
        yield earlier
        case_id = earlier


def _behind(store: Store, case_id: str) -> Iterator[str]:
    seen = {case_id}
    while (newer := newer_version(store, case_id)) is not None and newer not in seen:
        seen.add(newer)
        yield newer
        case_id = newer

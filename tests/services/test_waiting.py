"""The next case to decide: behind this one in the order, then from the start, until nothing is left."""

from __future__ import annotations

from masis.schema.review import Decision
from masis.services.reviews import WAITING, next_waiting, submit, waiting_in
from masis.store import Store
from masis.store.records import CaseFilter

OLDEST = CaseFilter(order="oldest")


def decide(store: Store, case_id: str) -> None:
    submit(store, Decision(reviewer="Ada", case_id=case_id, run_id=None, verdict="approve"), seen_version=None)


def test_ten_fingers_lead_through_the_whole_queue_and_then_it_is_empty(store: Store) -> None:
    seen = ["case-2"]
    decide(store, "case-2")
    while (following := next_waiting(store, seen[-1], OLDEST)) is not None:
        seen.append(following)
        decide(store, following)
    assert seen == ["case-2", "case-3", "case-4", "case-0", "case-1"]


def test_skipped_cases_are_passed_over(store: Store) -> None:
    assert next_waiting(store, "case-0", OLDEST, skipped=["case-1", "case-2"]) == "case-3"
    assert next_waiting(store, "case-0", OLDEST, skipped=[f"case-{n}" for n in range(1, 5)]) is None


def test_a_filter_on_states_narrows_what_waits() -> None:
    assert waiting_in(CaseFilter(states=("new", "approved"))).states == ("new",)
    assert waiting_in(CaseFilter()).states == WAITING
    assert waiting_in(CaseFilter(fields=("Law",))).fields == ("Law",)

"""The next case to decide: behind this one in the order, then from the start, until nothing is left."""

from __future__ import annotations

from masis.schema.review import Decision
from masis.services.cases import WAITING, CaseService, waiting_in
from masis.services.records import CaseFilter
from masis.services.reviews import ReviewService
from masis.store import Store
from tests.reviewing import ADA

OLDEST = CaseFilter(order="oldest")


def decide(store: Store, case_id: str) -> None:
    ReviewService(store).submit(ADA, Decision(reviewer="Ada", case_id=case_id, run_id=None, verdict="approve"))


def test_ten_fingers_lead_through_the_whole_queue_and_then_it_is_empty(store: Store) -> None:
    cases, seen = CaseService(store), ["case-2"]
    decide(store, "case-2")
    while (following := cases.next_waiting(seen[-1], OLDEST)) is not None:
        seen.append(following)
        decide(store, following)
    assert seen == ["case-2", "case-3", "case-4", "case-0", "case-1"]
    assert cases.count_waiting(OLDEST) == 0


def test_skipped_cases_are_passed_over(store: Store) -> None:
    cases = CaseService(store)
    assert cases.next_waiting("case-0", OLDEST, skipped=["case-1", "case-2"]) == "case-3"
    assert cases.next_waiting("case-0", OLDEST, skipped=[f"case-{n}" for n in range(1, 5)]) is None


def test_a_filter_on_states_narrows_what_waits() -> None:
    assert waiting_in(CaseFilter(states=("new", "approved"))).states == ("new",)
    assert waiting_in(CaseFilter()).states == WAITING
    assert waiting_in(CaseFilter(fields=("Law",))).fields == ("Law",)

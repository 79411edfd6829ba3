"""A decision is submitted once, against the case as it was seen, under the actor's name, and removes its draft."""

from __future__ import annotations

import pytest

from masis.errors import InputError, StaleVersion, UnknownRecord
from masis.schema.actor import ANONYMOUS, Actor
from masis.schema.review import Decision
from masis.services.drafts import case_subject
from masis.services.reviews import ReviewService
from masis.store import Store
from tests.reviewing import ADA


def decision(token: str = "t1", verdict: str = "approve", case_id: str = "case-1") -> Decision:
    return Decision.model_validate(
        {"reviewer": "Ada", "case_id": case_id, "run_id": None, "verdict": verdict, "token": token, "reason": "why"}
    )


@pytest.fixture
def reviews(store: Store) -> ReviewService:
    return ReviewService(store)


def test_the_same_token_three_times_is_one_decision(store: Store, reviews: ReviewService) -> None:
    seen = store.cases.summary("case-1").version
    entries = [reviews.submit(ADA, decision(), seen_version=seen) for _ in range(3)]
    assert len({entry.id for entry in entries}) == 1
    assert store.decisions.head().length == 1
    assert entries[0].decision is not None
    assert set(entries[0].decision.versions) == {"app", "rubric"}


def test_the_draft_goes_with_the_decision_and_stays_where_it_was_refused(store: Store, reviews: ReviewService) -> None:
    store.drafts.save("Ada", case_subject("case-1"), "note", "half")
    with pytest.raises(StaleVersion):
        reviews.submit(ADA, decision(), seen_version=store.cases.summary("case-1").version - 1)
    assert store.drafts.load("Ada", case_subject("case-1")) == {"note": "half"}
    assert store.decisions.head().length == 0
    reviews.submit(ADA, decision(), seen_version=store.cases.summary("case-1").version)
    assert store.drafts.load("Ada", case_subject("case-1")) == {}


def test_the_log_records_the_name_of_who_acts_whatever_name_the_decision_brings(reviews: ReviewService) -> None:
    entry = reviews.submit(Actor(name="Ben"), decision())
    assert entry.decision is not None
    assert entry.decision.reviewer == "Ben"


def test_nobody_decides_without_a_name(reviews: ReviewService) -> None:
    with pytest.raises(InputError, match="name is missing"):
        reviews.submit(ANONYMOUS, decision())


def test_undo_pressed_three_times_undoes_one_decision_only(store: Store, reviews: ReviewService) -> None:
    reviews.submit(ADA, decision("first", "reject"))
    second = reviews.submit(ADA, decision("second"))
    undone = [reviews.undo(ADA, second.id) for _ in range(3)]
    assert len({entry.id for entry in undone}) == 1
    assert reviews.undone_by(second) == undone[0]
    assert store.cases.summary("case-1").state == "rejected"


def test_a_redaction_needs_a_name_a_reason_and_something_to_redact(reviews: ReviewService) -> None:
    with pytest.raises(InputError, match="name is missing"):
        reviews.redact_case(ANONYMOUS, "case-1", "why")
    with pytest.raises(InputError, match="reason is missing"):
        reviews.redact_case(ADA, "case-1", " ")
    with pytest.raises(UnknownRecord):
        reviews.redact_case(ADA, "nowhere", "why")
    with pytest.raises(UnknownRecord):
        reviews.redact_entry(ADA, "nowhere", "why")

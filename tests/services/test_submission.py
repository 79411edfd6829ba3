"""A decision is handed in once, against the case as it was seen, and takes its draft with it."""

from __future__ import annotations

import pytest

from masis.errors import StaleVersion, StoreError
from masis.schema.review import Decision
from masis.services.reviews import case_subject, submit, take_back
from masis.store import Store


def decision(token: str = "t1", verdict: str = "approve", case_id: str = "case-1") -> Decision:
    return Decision.model_validate(
        {"reviewer": "Ada", "case_id": case_id, "run_id": None, "verdict": verdict, "token": token, "reason": "why"}
    )


def test_the_same_token_three_times_is_one_decision(store: Store) -> None:
    seen = store.cases.summary("case-1").version
    entries = [submit(store, decision(), seen_version=seen) for _ in range(3)]
    assert len({entry.id for entry in entries}) == 1
    assert store.decisions.head().length == 1
    assert entries[0].decision is not None
    assert set(entries[0].decision.versions) == {"app", "rubric"}


def test_the_draft_goes_with_the_decision_and_stays_where_it_was_refused(store: Store) -> None:
    store.drafts.save("Ada", case_subject("case-1"), "note", "half")
    with pytest.raises(StaleVersion):
        submit(store, decision(), seen_version=store.cases.summary("case-1").version - 1)
    assert store.drafts.load("Ada", case_subject("case-1")) == {"note": "half"}
    assert store.decisions.head().length == 0
    submit(store, decision(), seen_version=store.cases.summary("case-1").version)
    assert store.drafts.load("Ada", case_subject("case-1")) == {}


def test_a_case_decided_by_another_meanwhile_is_not_decided_over(store: Store) -> None:
    seen = store.cases.summary("case-1").version
    submit(store, decision("bo", "reject"), seen_version=seen)
    with pytest.raises(StaleVersion):
        submit(store, decision("ada"), seen_version=seen)


def test_undo_pressed_three_times_takes_back_one_decision_only(store: Store) -> None:
    submit(store, decision("first", "reject"), seen_version=None)
    second = submit(store, decision("second"), seen_version=None)
    undone = [take_back(store, second, "Ada") for _ in range(3)]
    assert len({entry.id for entry in undone}) == 1
    assert store.cases.summary("case-1").state == "rejected"


def test_what_no_longer_stands_is_not_taken_back(store: Store) -> None:
    first = submit(store, decision("first", "reject"), seen_version=None)
    submit(store, decision("second"), seen_version=None)
    with pytest.raises(StoreError, match="does not decide"):
        take_back(store, first, "Ada")

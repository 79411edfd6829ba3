"""The neighbours of a case are what a walk through the pages of its queue would show."""

from __future__ import annotations

from typing import Any, get_args

import pytest

from masis.schema.review import Decision
from masis.store import Store
from masis.store.records import CaseFilter, QueueOrder
from tests.store.factories import a_case, a_run, an_iteration


@pytest.fixture
def filled(store: Store) -> Store:
    for number in range(12):
        case = a_case(f"case-{number}", metadata={"field": "Law" if number % 3 else "Medicine"})
        store.cases.add(case)
        if number % 4:
            iteration = an_iteration(confidence=(number % 5) / 10)
            run = a_run(case, f"run-{number}", iterations=(iteration,), needs_review=True)
            store.runs.finish(run)
    return store


@pytest.mark.parametrize("order", get_args(QueueOrder))
@pytest.mark.parametrize(
    "narrowed", [{}, {"fields": ("Law",)}, {"text": "bridge opened"}, {"text": "bridg", "fields": ("Medicine",)}]
)
def test_neighbours_follow_the_order_of_the_pages(filled: Store, order: QueueOrder, narrowed: dict[str, Any]) -> None:
    wanted = CaseFilter(order=order, seed=7, size=5, **narrowed)
    ids = [row.id for row in filled.cases.search(wanted.model_copy(update={"size": 100})).rows]
    assert len(ids) > 2
    assert filled.cases.count_matching(wanted) == len(ids)
    for index, case_id in enumerate(ids):
        assert filled.cases.beside(case_id, wanted, forward=False) == (ids[index - 1] if index else None)
        assert filled.cases.beside(case_id, wanted, forward=True) == (ids[index + 1] if index + 1 < len(ids) else None)
        assert filled.cases.following(case_id, wanted) == ids[(index + 1) % len(ids)]


def test_a_case_that_has_left_the_queue_still_has_its_neighbours(filled: Store) -> None:
    wanted = CaseFilter(states=("needs_review",), order="disagreement")
    ids = [row.id for row in filled.cases.search(wanted).rows]
    filled.decisions.append(Decision(reviewer="Ada", case_id=ids[2], run_id=None, verdict="approve"))
    assert filled.cases.beside(ids[2], wanted, forward=False) == ids[1]
    assert filled.cases.beside(ids[2], wanted, forward=True) == ids[3]
    assert filled.cases.count_matching(wanted) == len(ids) - 1


def test_cases_left_out_are_passed_over_and_nothing_left_is_none(filled: Store) -> None:
    wanted = CaseFilter(order="oldest")
    assert filled.cases.following("case-3", wanted, without={"case-4", "case-5"}) == "case-6"
    everyone = {f"case-{number}" for number in range(12)}
    assert filled.cases.following("case-3", wanted, without=everyone) is None
    assert filled.cases.following("case-3", CaseFilter(text="zeppelin")) is None
    assert filled.cases.beside("case-3", CaseFilter(text="zeppelin"), forward=True) is None

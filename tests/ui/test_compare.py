"""Runs of a case: which two are laid side by side, and what is told of them."""

from __future__ import annotations

from typing import Any

import pytest
import streamlit as st

from masis.schema.run import Run
from masis.services import Workbench
from masis.ui.review.compare import chosen_runs
from masis.ui.review.run_list import run_row
from tests.reviewing import ADA
from tests.ui.conftest import OpenPage, press, texts

CASE = "strategy-01-fabricated"


@pytest.fixture
def two(audited_workbench: Workbench) -> tuple[Run, Run]:
    """The run by default, and one that was told to be strict and literal."""
    first = audited_workbench.cases.open(CASE).run
    assert first is not None
    told = audited_workbench.settings.model_copy(
        update={"strictness": "strict", "max_iterations": 1, "citation_mode": "literal"}
    )
    return first, audited_workbench.audits.audit(ADA, audited_workbench.store.cases.get(CASE), settings=told)


def test_the_address_chooses_the_runs_else_the_two_newest_with_the_older_one_left(
    audited_workbench: Workbench, two: tuple[Run, Run], monkeypatch: pytest.MonkeyPatch
) -> None:
    finished = list(audited_workbench.store.runs.for_case(CASE))
    first, second = two

    def chosen(**address: str) -> tuple[str, str]:
        monkeypatch.setattr(st, "query_params", address)
        left, right = chosen_runs(finished)
        assert left is not None
        assert right is not None
        return left.id, right.id

    assert chosen() == (first.id, second.id)
    assert chosen(left=second.id) == (second.id, first.id)
    assert chosen(right=first.id) == (second.id, first.id)
    assert chosen(left=first.id, right=second.id) == (first.id, second.id)
    assert chosen(left="nowhere", right="%00") == (first.id, second.id)


def test_the_history_says_with_which_settings_each_run_judged(
    audited_workbench: Workbench, two: tuple[Run, Run]
) -> None:
    rows: list[Any] = [run_row(run, right=two[1].id) for run in audited_workbench.store.runs.for_case(CASE)]
    newest, oldest = (row["cells"] for row in rows)
    (changed,) = newest[2]["below"]
    assert sorted(changed.split(", ")) == ["citation mode literal", "max iterations 1", "strictness strict"]
    assert oldest[2]["below"] == ["as by default"]
    assert (newest[0]["below"], oldest[0]["below"]) == (["right"], [""])
    assert [row["marked"] for row in rows] == [True, False]
    assert newest[0]["href"] == f"review?case={CASE}&run={two[1].id}"


def test_the_page_lays_two_runs_side_by_side(
    audited_workbench: Workbench, two: tuple[Run, Run], open_page: OpenPage
) -> None:
    app = open_page("compare", case=CASE)
    assert [box.label for box in app.selectbox] == ["Left", "Right"]
    press(app, "Swap left and right")
    assert app.selectbox[0].value == two[1].id


@pytest.mark.parametrize(
    ("address", "says"),
    [
        ({"case": CASE}, "There is nothing to compare yet."),
        ({"case": "nowhere"}, "There is no such case"),
        ({}, "No case has more than one audit yet."),
    ],
)
def test_without_two_runs_the_page_says_what_to_do(
    audited_workbench: Workbench, open_page: OpenPage, address: dict[str, str], says: str
) -> None:
    assert says in texts(open_page("compare", **address))


def test_without_a_case_the_page_lists_those_with_several_runs(
    audited_workbench: Workbench, open_page: OpenPage, two: tuple[Run, Run]
) -> None:
    assert audited_workbench.store.runs.cases_with_several() == (CASE,)
    assert "Cases with several audits" in texts(open_page("compare"))

"""Runs of a case: which two are laid side by side, and what is told of them."""

from __future__ import annotations

from typing import Any

import pytest
import streamlit as st

from masis.schema.run import Run
from masis.services import Workbench
from masis.ui.review.compare import chosen_runs
from masis.ui.review.comparison import compare, run_row, settings_words
from tests.reviewing import ADA
from tests.ui.conftest import OpenPage, texts

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


def test_only_the_settings_that_differ_are_shown(two: tuple[Run, Run]) -> None:
    found = {each["name"]: (each["left"], each["right"]) for each in compare(*two, "first")["differing"]}
    assert found == {
        "citation mode": ("standard", "literal"),
        "max iterations": ("3", "1"),
        "strictness": ("moderate", "strict"),
    }


def test_every_issue_stands_on_its_side_once(two: tuple[Run, Run]) -> None:
    left, right = two
    groups = {group["side"]: len(group["issues"]) for group in compare(left, right, "first")["groups"]}
    one = {issue.key for issue in left.iterations[0].issues}
    other = {issue.key for issue in right.iterations[0].issues}
    assert groups == {"left": len(one - other), "both": len(one & other), "right": len(other - one)}
    assert groups["both"]


def test_swapping_the_sides_swaps_everything(two: tuple[Run, Run]) -> None:
    there, back = compare(*two, "first"), compare(two[1], two[0], "first")
    sides = {group["side"]: group["issues"] for group in there["groups"]}
    swapped = {group["side"]: group["issues"] for group in back["groups"]}
    assert sides["left"] == swapped["right"]
    assert [row["delta"] for row in there["rows"]] == [
        None if row["delta"] is None else -row["delta"] for row in back["rows"]
    ]


def test_scores_are_reported_for_every_iteration_and_the_chosen_ones_are_subtracted(two: tuple[Run, Run]) -> None:
    left, right = two
    found = compare(left, right, "first")
    quality = next(row for row in found["rows"] if row["label"]["text"] == "Quality")
    assert quality["left"] == [iteration.quality_score for iteration in left.iterations]
    assert left.final_quality_score is not None
    assert right.final_quality_score is not None
    assert quality["delta"] == pytest.approx(right.final_quality_score - left.final_quality_score)


def test_the_answers_are_shown_as_edits_from_left_to_right(two: tuple[Run, Run]) -> None:
    pieces = compare(*two, "chosen")["answer"]
    assert "".join(piece["text"] for piece in pieces if piece["kind"] != "in") == two[0].final_answer
    assert "".join(piece["text"] for piece in pieces if piece["kind"] != "out") == two[1].final_answer


def test_a_run_against_itself_differs_in_nothing(two: tuple[Run, Run]) -> None:
    found = compare(two[0], two[0], "first")
    assert not found["differing"]
    assert found["same_answer"]
    assert not any(group["issues"] for group in found["groups"] if group["side"] != "both")


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
    assert newest[2]["below"] == ["citation mode literal, max iterations 1, strictness strict"]
    assert oldest[2]["below"] == ["as by default"]
    assert (newest[0]["below"], oldest[0]["below"]) == (["right"], [""])
    assert [row["marked"] for row in rows] == [True, False]
    assert newest[0]["href"] == f"review?case={CASE}&run={two[1].id}"
    assert settings_words({}) == "as by default"


def test_the_page_lays_two_runs_side_by_side(
    audited_workbench: Workbench, two: tuple[Run, Run], open_page: OpenPage
) -> None:
    app = open_page("compare", case=CASE)
    assert [box.label for box in app.selectbox] == ["Left", "Right"]
    next(button for button in app.button if button.label == "Swap left and right").click()
    app.run()
    assert not app.exception
    assert app.selectbox[0].value == two[1].id


@pytest.mark.parametrize("case_id", [CASE, "home-01-unsafe"])
def test_a_case_with_fewer_than_two_runs_says_what_to_do(
    audited_workbench: Workbench, open_page: OpenPage, case_id: str
) -> None:
    assert "There is nothing to compare yet." in texts(open_page("compare", case=case_id))


def test_without_a_case_the_page_lists_those_with_several_runs(
    audited_workbench: Workbench, open_page: OpenPage, two: tuple[Run, Run]
) -> None:
    assert audited_workbench.store.runs.cases_with_several() == (CASE,)
    assert "Cases with several audits" in texts(open_page("compare"))


def test_without_several_runs_anywhere_the_page_says_so(audited_workbench: Workbench, open_page: OpenPage) -> None:
    assert "No case has more than one audit yet." in texts(open_page("compare"))


def test_an_unknown_case_is_said_to_be_unknown(audited_workbench: Workbench, open_page: OpenPage) -> None:
    assert "There is no such case" in texts(open_page("compare", case="nowhere"))

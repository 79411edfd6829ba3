"""Two runs of one case side by side."""

from __future__ import annotations

import pytest

from masis.api.audits import run_audit
from masis.schema.case import Case
from masis.schema.run import Run
from masis.settings import Settings
from masis.views.comparison import differing, issues_by_side, models_words, score_frame, settings_words


@pytest.fixture(scope="module")
def two() -> tuple[Run, Run]:
    case = Case.model_validate(
        {
            "id": "bridge",
            "query": "How long is it?",
            "answer": "The bridge is 120 metres long [1]. It is red [9]. It was built in 1931.",
            "evidence": [{"id": "1", "text": "The bridge is 120 metres long. It was built in 1931."}],
        }
    )
    other = Settings(citation_mode="literal", max_iterations=1, strictness="strict")
    return run_audit(case, Settings()), run_audit(case, other)


def test_only_the_settings_that_differ_are_shown(two: tuple[Run, Run]) -> None:
    assert sorted(differing(*two).values.tolist()) == [
        ["citation mode", "standard", "literal"],
        ["max iterations", "3", "1"],
        ["strictness", "moderate", "strict"],
    ]
    assert settings_words(two[0].settings) == "as by default"
    changed = set(settings_words(two[1].settings).split(", "))
    assert changed == {"citation mode literal", "max iterations 1", "strictness strict"}


def test_every_issue_stands_on_its_side_once_and_swapping_the_sides_swaps_them(two: tuple[Run, Run]) -> None:
    left, right = two
    groups = {side: {issue.key for issue in issues} for side, issues in issues_by_side(left, right, "first").items()}
    one = {issue.key for issue in left.iterations[0].issues}
    other = {issue.key for issue in right.iterations[0].issues}
    assert groups == {"left": one - other, "both": one & other, "right": other - one}
    assert groups["both"]
    swapped = issues_by_side(right, left, "first")
    assert {issue.key for issue in swapped["right"]} == groups["left"]


def test_scores_are_reported_for_every_iteration_and_those_of_the_originals_are_subtracted(
    two: tuple[Run, Run],
) -> None:
    left, right = two
    first = right.iterations[0]
    assert first.quality_score is not None
    worse = first.model_copy(update={"quality_score": first.quality_score - 0.1})
    right = right.model_copy(update={"iterations": (worse, *right.iterations[1:])})
    table = score_frame(left, right).set_index("Score").loc["Quality"]
    assert len(table) == len(left.iterations) + len(right.iterations) + 1
    assert left.quality is not None
    assert right.quality is not None
    change = right.quality - left.quality
    assert table["Difference (right minus left)"] == f":red[▼ {-change:.2f}]"
    back = score_frame(right, left).set_index("Score").loc["Quality", "Difference (right minus left)"]
    assert back == f":green[▲ {-change:.2f}]"


def test_a_run_against_itself_differs_in_nothing(two: tuple[Run, Run]) -> None:
    run, _ = two
    assert differing(run, run).empty
    assert set(score_frame(run, run)["Difference (right minus left)"]) <= {"same", "–"}
    assert {side for side, issues in issues_by_side(run, run, "first").items() if issues} == {"both"}


def test_models_are_named_once_where_one_fills_all_roles() -> None:
    assert models_words({"critic": "offline", "reviser": "offline"}) == "offline"
    assert models_words({"critic": "a:b", "reviser": "offline"}) == "a:b: critic; offline: reviser"

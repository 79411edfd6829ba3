"""Two runs of one case side by side."""

from __future__ import annotations

import pytest

from masis.api.audits import run_audit
from masis.schema.audit import Issue
from masis.schema.case import Case
from masis.schema.run import Iteration, Run
from masis.settings import Settings
from masis.views.comparison import differing, issues_by_side, models_words, score_frame, settings_words
from masis.views.issue_history import course_at, follow, issue_history
from tests.cases import case_of


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


# Findings followed through the iterations of a run

CASE = case_of(
    "The Lenne bridge is 210 metres long [c1]. It was opened in 1931 [c9].",
    {
        "c1": "The Lenne bridge is 120 metres long. It carries two lanes.",
        "c2": "The Lenne bridge was opened on 4 May 1931 by the mayor.",
    },
    query="How long is the Lenne bridge, and when was it opened?",
)


def an_issue(key: str, quote: str = "", rule: str = "unsupported_claim") -> Issue:
    return Issue(
        id=f"i-{key}",
        key=key,
        source="claims",
        type="unsupported",
        rule=rule,
        severity="high",
        description=f"about {key}",
        reason="because",
        suggestion="",
        quote=quote or None,
    )


def iterations(*issues: list[Issue]) -> tuple[Run, list[Iteration]]:
    run = run_audit(CASE)
    model = run.iterations[0]
    made = [
        model.model_copy(update={"iteration_number": number, "issues": tuple(each)})
        for number, each in enumerate(issues, 1)
    ]
    return run.model_copy(update={"iterations": tuple(made), "best": 0}), made


def test_a_finding_is_new_then_persists_then_is_fixed_and_may_come_back() -> None:
    one, other = an_issue("a"), an_issue("b", rule="uncited_sentence")
    _, made = iterations([one], [one, other], [other], [one], [])
    courses = {each.last.key: each.courses for each in follow(made)}
    assert courses["a"] == ("new", "persisting", "fixed", "regressed", "fixed")
    assert courses["b"] == ("absent", "new", "persisting", "fixed", "absent")


def test_a_reworded_sentence_with_the_same_fault_is_the_same_finding() -> None:
    before = an_issue("a", "The company has set aside NOK 300 million to acquire a Danish operator.")
    after = an_issue("b", "The company has set aside about NOK 300 million to acquire a Danish operator.")
    elsewhere = an_issue("c", "Its ships are painted green.")
    _, made = iterations([before], [after, elsewhere])
    assert [each.courses for each in follow(made)] == [("new", "persisting"), ("absent", "new")]


def test_two_findings_of_the_same_words_are_followed_one_by_one() -> None:
    twice = [an_issue("a"), an_issue("a").model_copy(update={"id": "again"})]
    _, made = iterations(twice, twice[:1])
    assert [each.courses for each in follow(made)] == [("new", "persisting"), ("new", "fixed")]


def test_every_issue_of_every_iteration_has_exactly_one_course() -> None:
    run = run_audit(CASE)
    followed = follow(run.iterations)
    for index, iteration in enumerate(run.iterations):
        assert set(course_at(followed, index)) == {issue.id for issue in iteration.issues}


def test_the_table_counts_what_became_of_the_issues() -> None:
    one, other = an_issue("a"), an_issue("b", rule="uncited_sentence")
    run, _ = iterations([one, other], [other])
    table, left_out = issue_history(run, 1)
    assert list(table.columns) == ["Issue", "Iteration 1: 2 issues", "Iteration 2, shown: 1 persisting, 1 fixed"]
    assert [[cell.split()[-1].strip("]") for cell in row[1:]] for row in table.itertuples(index=False)] == [
        ["new", "persisting"],
        ["new", "fixed"],
    ]
    assert left_out == 0


@pytest.mark.slow
def test_thousands_of_findings_are_followed_in_no_time() -> None:
    many = [an_issue(f"k{number}", f"sentence {number} says this") for number in range(3_000)]
    others = [an_issue(f"o{number}", f"sentence {number} says that") for number in range(3_000)]
    run, made = iterations(many, others)
    assert len(follow(made)) == 6_000
    assert issue_history(run, 1).left_out == 5_940

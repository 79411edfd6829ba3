"""When the loop stops, and which answer is best."""

from __future__ import annotations

import pytest

from masis.audit import critique, routing
from masis.schema.audit import Issue, ReferenceCheck
from masis.schema.base import Unscored
from masis.schema.run import Iteration
from masis.settings import Settings
from tests.audit.factories import JUDGED_BY, citations, claimed, issue, iteration

SETTINGS = Settings()


@pytest.mark.spec("REQ-CRITIC-017")
def test_the_loop_stops_where_no_major_issue_is_left() -> None:
    assert routing.stop_reason([iteration(issues=(issue("medium"),))], SETTINGS) == "no_issues"


@pytest.mark.spec("REQ-CRITIC-017")
def test_the_loop_goes_on_where_a_major_issue_is_left() -> None:
    assert routing.stop_reason([iteration(issues=(issue("high"),))], SETTINGS) is None


@pytest.mark.spec("REQ-CRITIC-017")
@pytest.mark.parametrize(
    ("delta", "reason"), [(0.049, "convergence"), (-0.2, "convergence"), (0.05, None), (None, None)]
)
def test_the_loop_stops_where_quality_rises_by_less_than_the_threshold(delta: float | None, reason: str | None) -> None:
    faulty = (issue(),)
    made = [iteration(issues=faulty), iteration(2, issues=faulty, improvement_delta=delta)]
    assert routing.stop_reason(made, SETTINGS) == reason


def test_up_to_the_least_number_of_iterations_nothing_ends_the_loop_but_a_failed_critique() -> None:
    clean, least = [iteration()], Settings(min_iterations=2)
    assert routing.stop_reason(clean, SETTINGS) == "no_issues"
    assert routing.stop_reason(clean, least) is None
    assert routing.stop_reason([*clean, iteration(2, improvement_delta=0.0)], least) == "no_issues"
    faulty = (issue(),)
    fallen = [iteration(issues=faulty), iteration(2, issues=faulty, improvement_delta=-0.2)]
    assert routing.stop_reason(fallen, Settings(min_iterations=3)) is None
    assert routing.stop_reason(clean, Settings(min_iterations=5, max_iterations=1)) == "no_issues"


@pytest.mark.spec("REQ-CRITIC-016", "REQ-CRITIC-NFR-011")
def test_the_loop_stops_at_the_limit() -> None:
    made = [iteration(n, issues=(issue(),), improvement_delta=0.1) for n in (1, 2, 3)]
    assert routing.stop_reason(made, SETTINGS) == "max_iterations"
    assert routing.stop_reason(made, Settings(max_iterations=4)) is None


@pytest.mark.parametrize("limit", [0, 6])
@pytest.mark.spec("REQ-CRITIC-016")
def test_the_limit_is_1_to_5(limit: int) -> None:
    with pytest.raises(ValueError, match="max_iterations"):
        Settings(max_iterations=limit)


def test_a_failed_critique_never_counts_as_nothing_found() -> None:
    failed = critique.ruled(Unscored(reason="refused", code="CRITIC-ERR-005"), citations(), (), JUDGED_BY)
    assert routing.stop_reason([iteration(quality=None, critique=failed)], SETTINGS) == "error"


def test_having_nothing_to_judge_is_no_error() -> None:
    nothing = critique.ruled(Unscored(reason="no evidence has text"), citations(), (), JUDGED_BY)
    assert routing.stop_reason([iteration(quality=None, critique=nothing)], SETTINGS) == "no_issues"


@pytest.mark.spec("REQ-CRITIC-019")
@pytest.mark.parametrize(
    ("qualities", "best"),
    [([0.5, 0.9, 0.7], 1), ([0.9, 0.9], 0), ([None, 0.1], 1), ([None, None], 0), ([0.0], 0), ([0.9, 0.9 + 1e-12], 0)],
)
def test_the_best_answer_has_the_highest_quality_the_earlier_on_a_tie(qualities: list[float | None], best: int) -> None:
    made = [iteration(n, quality) for n, quality in enumerate(qualities, 1)]
    assert routing.best_index(made) == best


def test_a_tie_in_quality_goes_to_fewer_serious_issues_then_to_fewer_issues() -> None:
    serious = iteration(1, 0.9, issues=(issue("high"), issue("high")))
    mild = iteration(2, 0.9, issues=(issue("low"), issue("low"), issue("low")))
    fewer = iteration(3, 0.9, issues=(issue("low"),))
    assert routing.best_index([serious, mild]) == 1
    assert routing.best_index([serious, mild, fewer]) == 2
    assert routing.best_index([mild, fewer.model_copy(update={"quality_score": 0.89})]) == 0


LENGTH = "The bridge is 120 metres long [chunk_1]."
YEAR = "It was opened by the mayor in 1931 [chunk_2]."
BOTH = f"{LENGTH} {YEAR}"


def audited(
    number: int, quality: float, answer: str, verdict: str = "supported", issues: tuple[Issue, ...] = ()
) -> Iteration:
    """An iteration of this number and quality."""
    return claimed(answer, verdict, number=number, quality=quality, issues=issues)


@pytest.mark.parametrize(
    ("revised", "verdict", "why"),
    [
        ("Bridges connect people and places in many ways.", "unsupported", "nothing of the answer is left"),
        (LENGTH, "supported", "a supported claim is lost"),
        (BOTH.replace(" [chunk_2]", ""), "supported", "a citation is lost"),
        (BOTH.replace("chunk_2", "chunk_1"), "supported", "a citation is another one"),
        (BOTH.replace("1931", "1932"), "supported", "a number is another one"),
    ],
)
@pytest.mark.spec("REQ-CRITIC-012", "REQ-CRITIC-019")
def test_a_revision_that_loses_what_is_supported_is_not_chosen_whatever_its_quality(
    revised: str, verdict: str, why: str
) -> None:
    original = audited(1, 0.6, BOTH, issues=(issue("high"),))
    assert routing.best_index([original, audited(2, 0.99, revised, verdict)]) == 0, why


@pytest.mark.spec("REQ-CRITIC-019")
def test_a_revision_with_more_serious_issues_is_not_chosen_whatever_its_quality() -> None:
    original = audited(1, 0.6, BOTH, issues=(issue("high"),))
    assert routing.best_index([original, audited(2, 0.99, BOTH, issues=(issue("high"), issue("critical")))]) == 0
    assert routing.best_index([original, audited(2, 0.99, BOTH, issues=(issue("high"), issue("medium")))]) == 1


@pytest.mark.spec("REQ-CRITIC-019")
def test_the_best_of_several_revisions_is_the_best_of_those_that_may_be_chosen() -> None:
    original = audited(1, 0.5, BOTH, issues=(issue("high"),))
    poorer, better = audited(2, 0.99, LENGTH), audited(3, 0.7, f"{YEAR} {LENGTH}")
    assert routing.best_index([original, poorer, better]) == 2
    serious = audited(3, 0.8, BOTH, issues=(issue("high"),))
    assert routing.best_index([original, audited(2, 0.7, BOTH), serious]) == 1


def test_an_answer_that_could_not_be_confirmed_does_not_give_way_to_one_that_cites_nothing() -> None:
    original = audited(1, 0.6, BOTH, "unverifiable")
    assert routing.best_index([original, audited(2, 0.7, "Bridges connect people.", "unverifiable")]) == 0
    assert routing.best_index([original, audited(2, 0.7, LENGTH, "unverifiable")]) == 1


def test_an_answer_of_which_everything_is_accused_gives_way_to_the_admission_that_nothing_is_known() -> None:
    original = audited(1, 0.1, BOTH, "unsupported", (issue("high"),))
    assert routing.best_index([original, audited(2, 0.8, "The evidence is insufficient.", "unverifiable")]) == 1


def test_what_an_issue_called_in_question_may_go_and_a_wrong_reference_may_be_replaced() -> None:
    there = issue("high", start=BOTH.index(YEAR), end=len(BOTH))
    assert routing.best_index([audited(1, 0.5, BOTH, issues=(there,)), audited(2, 0.9, LENGTH)]) == 1
    wrong = audited(1, 0.5, "The bridge is 120 metres long [chunk_2].")
    reference = ReferenceCheck(evidence_id="chunk_2", finding="misattributed", support=0.0, better="chunk_1")
    wrong = wrong.model_copy(update={"claims": (wrong.claims[0].model_copy(update={"references": (reference,)}),)})
    assert routing.best_index([wrong, audited(2, 0.9, LENGTH)]) == 1


@pytest.mark.spec("REQ-CRITIC-017")
def test_a_rise_of_exactly_the_threshold_is_a_rise_whatever_the_arithmetic() -> None:
    faulty = (issue(),)
    delta = 0.60 - 0.55
    assert delta < 0.05
    assert (
        routing.stop_reason([iteration(issues=faulty), iteration(2, issues=faulty, improvement_delta=delta)], SETTINGS)
        is None
    )


@pytest.mark.spec("REQ-CRITIC-024")
@pytest.mark.parametrize(
    ("initial", "final", "percent"), [(0.5, 0.75, 50.0), (0.8, 0.8, 0.0), (0.0, 0.9, None), (None, 0.9, None)]
)
def test_improvement_in_percent(initial: float | None, final: float | None, percent: float | None) -> None:
    assert routing.improvement_percentage(initial, final) == percent

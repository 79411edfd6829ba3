"""When the loop stops, which answer is best, and who must look."""

from __future__ import annotations

import pytest

from masis.audit import critique, routing
from masis.schema.base import Unscored
from masis.schema.case import Evidence
from masis.settings import Settings
from tests.audit.factories import EVIDENCE, JUDGED_BY, check, citations, issue, iteration, verdict

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
    [([0.5, 0.9, 0.7], 1), ([0.9, 0.9], 0), ([None, 0.1], 1), ([None, None], 0), ([0.0], 0)],
)
def test_the_best_answer_has_the_highest_quality_the_earlier_on_a_tie(qualities: list[float | None], best: int) -> None:
    made = [iteration(n, quality) for n, quality in enumerate(qualities, 1)]
    assert routing.best_index(made) == best


@pytest.mark.spec("REQ-CRITIC-024")
@pytest.mark.parametrize(
    ("initial", "final", "percent"), [(0.5, 0.75, 50.0), (0.8, 0.8, 0.0), (0.0, 0.9, None), (None, 0.9, None)]
)
def test_improvement_in_percent(initial: float | None, final: float | None, percent: float | None) -> None:
    assert routing.improvement_percentage(initial, final) == percent


def codes(**changes: object) -> list[str]:
    evidence = changes.pop("evidence", EVIDENCE)
    termination = changes.pop("termination", "no_issues")
    found = routing.review_reasons([iteration(**changes)], evidence, termination, SETTINGS)  # type: ignore[arg-type]
    return [reason.code for reason in found]


def test_every_reason_for_review_is_listed() -> None:
    assert "invalid_reference" in codes(citation_audit=citations(invalid=1))
    assert "hallucination" in codes(critique=verdict(hallucination_detected=True))
    assert "contradicted_claim" in codes(claims=(check("contradicted", 0.2),))
    assert "low_confidence" in codes(critique=verdict(confidence=0.69))
    assert "low_confidence" not in codes(critique=verdict(confidence=0.7))
    assert "unscored" in codes(quality=None)
    assert "unscored" in codes(claims=(check("unscored", None),))
    assert "nothing_checked" in codes(evidence=(Evidence(id="1"),))
    assert "nothing_checked" in codes(claims=())
    assert "error" in codes(termination="error")
    assert "limit" in codes(termination="max_iterations")
    assert "cancelled" in codes(termination="cancelled")


def test_a_revision_is_read_by_a_person_before_it_passes_for_the_answer() -> None:
    made = [iteration(1, 0.4, issues=(issue("critical"),)), iteration(2, 0.9)]
    found = routing.review_reasons(made, EVIDENCE, "no_issues", SETTINGS)
    assert "revised" in {reason.code for reason in found}
    assert "1 major issue" in next(reason.message for reason in found if reason.code == "revised")
    unread = routing.review_reasons(made, EVIDENCE, "no_issues", Settings(review_revised=False))
    assert "revised" not in {reason.code for reason in unread}


def test_a_run_without_an_iteration_goes_to_a_person() -> None:
    found = routing.review_reasons([], EVIDENCE, "error", SETTINGS)
    assert {reason.code for reason in found} == {"error", "nothing_checked"}


def test_spot_checks_are_drawn_by_seed_in_the_share_asked_for() -> None:
    drawn = [routing.drawn_for_spot_check(f"case-{n}", SETTINGS) for n in range(4000)]
    assert 0.03 < sum(drawn) / len(drawn) < 0.07
    assert drawn == [routing.drawn_for_spot_check(f"case-{n}", SETTINGS) for n in range(4000)]
    assert drawn != [routing.drawn_for_spot_check(f"case-{n}", Settings(spot_check_seed=1)) for n in range(4000)]
    assert not any(routing.drawn_for_spot_check(f"case-{n}", Settings(spot_check_share=0)) for n in range(100))

"""The roles without a model: critic, judge and drafter."""

from __future__ import annotations

import pytest

from masis.offline.roles.drafter import NOTHING_FOUND, OfflineDrafter
from masis.schema.audit import Evaluation
from masis.schema.case import Evidence
from tests.offline.bridge import EVIDENCE, QUESTION, audited

CLEAN = "The Halden suspension bridge is 410 metres long [chunk_1]. It was opened to traffic in 1931 [chunk_1]."


def rules(answer: str, evidence: tuple[Evidence, ...] = EVIDENCE) -> set[str]:
    return {issue.rule for issue in audited(answer, evidence, iterations=1).iterations[0].issues}


def test_a_clean_answer_draws_no_major_issue() -> None:
    critique = audited(CLEAN).iterations[0].critique
    assert not critique.has_major_issues
    assert not critique.hallucination_detected
    assert critique.confidence is not None
    assert critique.confidence >= 0.75  # one of two claims is confirmed, the other left open


def test_unsafe_advice_that_the_evidence_is_not_found_to_give_is_serious() -> None:
    answer = f"{CLEAN} Drivers can ignore the weight warnings without asking an engineer."
    found = [i for i in audited(answer, iterations=1).iterations[0].issues if i.rule == "unsafe_advice"]
    assert [(issue.type, issue.severity) for issue in found] == [("safety", "high")]
    assert answer[found[0].start : found[0].end] == found[0].quote


def test_a_warning_against_harm_is_no_unsafe_advice() -> None:
    assert "unsafe_advice" not in rules(f"{CLEAN} Never disable the safety alarm.")


def test_sources_that_disagree_are_named() -> None:
    evidence = (
        Evidence(id="a", text="The mill fire of 1911 killed 43 workers."),
        Evidence(id="b", text="The mill fire of 1911 killed 57 workers."),
    )
    run = audited("The mill fire of 1911 killed 43 workers [a].", evidence, iterations=1)
    conflict = next(issue for issue in run.iterations[0].issues if issue.rule == "source_conflict")
    assert set(conflict.evidence_ids) == {"a", "b"}
    assert run.iterations[0].critique.conflicting_evidence


def test_nothing_to_check_against_is_unscored_and_goes_to_a_person() -> None:
    run = audited("The bridge is 410 metres long [1].", (Evidence(id="1", source="https://example.org"),))
    critique = run.iterations[0].critique
    assert critique.unscored is not None
    assert critique.confidence is None
    assert {"unscored", "nothing_checked"} <= {reason.code for reason in run.review_reasons}


def test_every_number_comes_with_its_measurements() -> None:
    for score in audited(CLEAN).iterations[0].critique.scores[:2]:
        assert score.measurements
        assert all(measurement.meaning for measurement in score.measurements)


def test_the_record_says_that_no_language_model_was_involved() -> None:
    run = audited(CLEAN)
    assert set(run.models.values()) == {"offline"}
    assert "no language model" in run.iterations[0].critique.critique_reasoning
    assert run.usage.calls == 0


WHOLE = (
    "The Halden suspension bridge is 410 metres long and was opened to traffic in 1931 [chunk_1]. "
    "It was designed by the engineer Marta Lindqvist [chunk_1]."
)


def evaluated(answer: str) -> Evaluation:
    evaluation = audited(answer, iterations=1).iterations[0].evaluation
    assert evaluation is not None
    return evaluation


def test_a_whole_and_faithful_answer_scores_high_on_every_dimension() -> None:
    found = evaluated(WHOLE)
    for score in (found.faithfulness, found.relevance, found.completeness, found.reasoning_quality):
        assert score is not None
        assert score > 0.7


@pytest.mark.spec("MASIS-EVAL-P2")
def test_an_answer_about_something_else_is_not_relevant() -> None:
    found = evaluated("Bananas are rich in potassium and grow in warm countries.")
    assert found.relevance is not None
    assert found.relevance < 0.3


def test_half_an_answer_is_less_complete_than_the_whole() -> None:
    half = evaluated("The bridge was opened in 1931 [chunk_1].").completeness
    whole = evaluated(WHOLE).completeness
    assert half is not None
    assert whole is not None
    assert half < whole


def test_saying_the_same_twice_costs_reasoning_quality() -> None:
    once, twice = evaluated(WHOLE), evaluated(f"{WHOLE} {WHOLE}")
    assert (twice.reasoning_quality or 0) < (once.reasoning_quality or 0)


@pytest.mark.spec("MASIS-EVAL-P5")
def test_the_clamps_hold_for_the_offline_judge_too() -> None:
    assert (evaluated(f"{WHOLE} The toll is 3 euros for a car [chunk_9].").faithfulness or 0) <= 0.4


@pytest.mark.spec("MASIS-EVAL-P1")
def test_each_score_is_kept_with_its_measurements() -> None:
    scores = {score.name: score for score in evaluated(WHOLE).scores}
    for name in ("faithfulness", "relevance", "completeness", "reasoning_quality"):
        assert scores[name].measurements[-1].value == pytest.approx(scores[name].raw)


def test_a_draft_says_only_what_stands_in_the_evidence_and_cites_it() -> None:
    run = audited(None)
    assert run.draft is not None
    first = run.iterations[0]
    assert first.citation_audit.invalid_citations == ()
    assert first.citation_audit.uncited_claims == ()
    assert all(check.verdict == "supported" for check in first.claims)


def test_a_draft_speaks_of_what_is_asked() -> None:
    answer = OfflineDrafter().draft(QUESTION, EVIDENCE).answer
    assert "410 metres" in answer
    assert "Marta Lindqvist" in answer


def test_where_the_evidence_has_nothing_the_draft_says_so() -> None:
    evidence = (Evidence(id="1", text="Bananas are rich in potassium."),)
    assert OfflineDrafter().draft("Who won the chess final in Riga?", evidence).answer == NOTHING_FOUND


def test_a_draft_does_not_repeat_itself() -> None:
    twice = (*EVIDENCE, Evidence(id="copy", text=EVIDENCE[0].text))
    answer = OfflineDrafter().draft(QUESTION, twice).answer
    assert answer.count("410 metres") == 1

"""The rule that decides whether an answer needs review, and the validation of revisions."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import BaseModel

from masis.api import stepwise
from masis.api.roles import build_roles, check_models
from masis.audit import acceptance, claims, critique, loop, output_validation
from masis.audit.critique import CritiqueJudgement, RawIssue
from masis.audit.evaluation import EvaluationJudgement
from masis.audit.output_validation import LONGEST_ANSWER, OutputValidator, PydanticValidator
from masis.errors import CriticFailed, InvalidRevision, SettingsError, StepError
from masis.observers.observation import run_to_completion
from masis.offline.matching.key_points import JUDGED_BY as JUDGED_BY_RULES
from masis.schema.audit import AbsentFigure, Claim, ClaimCheck, Issue, MarkedWords, Revision
from masis.schema.base import Unscored
from masis.schema.case import Case, ClaimVerdict, Evidence
from masis.schema.rules import MUST_LOOK, ReviewCode
from masis.schema.run import CheckName, Run
from masis.settings import Settings
from tests.audit import factories
from tests.audit.factories import (
    EVIDENCE,
    JUDGED_BY,
    check,
    citations,
    conflict,
    context,
    issue,
    iteration,
    verdict,
)
from tests.scripted import (
    MAJOR,
    ContentVerifier,
    ScriptedCritic,
    ScriptedEvaluator,
    ScriptedReviser,
    judgement_with,
    roles,
    ticking,
)

SETTINGS = Settings()


def case_of(**changes: Any) -> Case:
    return Case.model_validate(
        {"id": "bridge", "query": "How long is it?", "evidence": EVIDENCE, **changes}
    )


def assess(**changes: Any) -> acceptance.Acceptability:
    case_values = {
        name: changes.pop(name) for name in ("evidence", "screening", "answer") if name in changes
    }
    termination = changes.pop("termination", "no_issues")
    settings_ = changes.pop("settings", Settings(review_uncited_answers=False))
    return acceptance.assess([iteration(**changes)], case_of(**case_values), termination, settings_)


ABSENT = AbsentFigure(kind="number", claim_start=14, claim_end=18, claim_text="long")
MARKED = MarkedWords(claim_start=14, claim_end=18, claim_text="long")


def codes(**changes: Any) -> list[str]:
    return [reason.code for reason in assess(**changes).reasons]


def test_an_answer_that_passes_every_check_is_accepted() -> None:
    assessment = assess()
    assert assessment.reasons == ()
    assert assessment.acceptance.passed
    assert assessment.acceptance.rule == acceptance.RULE_VERSION
    assert [check.name for check in assessment.acceptance.checks] == list(get_args(CheckName))
    assert (
        next(
            acceptance_check.detail
            for acceptance_check in assessment.acceptance.checks
            if acceptance_check.name == "claims"
        )
        == "1 of 1 claim supported"
    )


@pytest.mark.parametrize(
    ("code", "changes"),
    [
        ("invalid_reference", {"citation_audit": citations(invalid=1)}),
        ("hallucination", {"critique": verdict(hallucination_detected=True)}),
        ("contradicted_claim", {"claims": (check("contradicted", 0.2),)}),
        ("unsupported_claim", {"claims": (check("unsupported", 0.2),)}),
        ("partial_claim", {"claims": (check("partial", 0.5),)}),
        ("unconfirmed_claim", {"claims": (check("unverifiable", None),)}),
        ("figure_not_in_evidence", {"claims": (check("supported", 0.9, figures=(ABSENT,)),)}),
        ("words_marked", {"claims": (check("supported", 0.9, marked=(MARKED,)),)}),
        ("serious_issue", {"issues": (issue("high"),)}),
        ("serious_issue", {"issues": (issue("critical", source="claims"),)}),
        ("safety", {"issues": (issue("low", type="safety"),)}),
        ("insufficient_evidence", {"screening": {"id": "s1", "outcome": "evidence_insufficient"}}),
        ("insufficient_evidence", {"screening": {"id": "s1", "outcome": "error"}}),
        ("insufficient_evidence", {"screening": {"id": "s1", "outcome": "no word of ours"}}),
        ("low_confidence", {"critique": verdict(confidence=0.69)}),
        ("low_quality", {"quality": 0.69}),
        ("disagreement", {"critique": verdict(confidence=0.4)}),
        ("unscored", {"quality": None}),
        ("unscored", {"claims": (check("unscored", None),)}),
        ("nothing_checked", {"evidence": (Evidence(id="1"),)}),
        ("nothing_checked", {"claims": ()}),
        ("nothing_checked", {"settings": SETTINGS}),
        ("error", {"termination": "error"}),
        ("limit", {"termination": "max_iterations"}),
        ("cancelled", {"termination": "cancelled"}),
    ],
)
def test_anything_wrong_or_uncertain_needs_review(code: str, changes: dict[str, Any]) -> None:
    assert code in codes(**changes)
    assert not assess(**changes).acceptance.passed


@pytest.mark.parametrize("verdict_", ["convergence", "no_issues"])
def test_a_normal_ending_isnt_a_review_reason(verdict_: str) -> None:
    assert codes(termination=verdict_) == []


def test_insufficient_screening_evidence_is_a_must_look_reason() -> None:
    assert codes(answer="It is long [1].", screening={"id": "s1", "outcome": "sufficient"}) == []
    (reason,) = assess(screening={"id": "s1", "outcome": "cancelled"}).reasons
    assert (reason.code, reason.tier) == ("insufficient_evidence", "must_look")


def test_an_offline_draft_from_a_screening_isnt_certified() -> None:
    sufficient = {"id": "s1", "outcome": "sufficient"}
    (reason,) = assess(screening=sufficient).reasons
    assert (reason.code, reason.tier) == ("screening_draft", "not_certified")
    with_model = Settings(review_uncited_answers=False, verifier="openai:gpt-4o")
    assert codes(screening=sufficient, settings=with_model) == []


def test_failed_claim_extraction_is_unscored() -> None:
    failed_report = claims.report(
        (), unscored=Unscored(reason="the server timed out", code="CRITIC-ERR-003")
    )
    assessment = assess(claims=(), claim_report=failed_report)
    assert "unscored" in {reason.code for reason in assessment.reasons}
    assert not any("makes no claim" in reason.message for reason in assessment.reasons)


def test_thresholds_are_inclusive() -> None:
    assert "low_confidence" not in codes(critique=verdict(confidence=0.7))
    assert "low_quality" not in codes(quality=0.75)


def gaps(*anchors: float) -> set[float]:
    """Return all differences between two of these values."""
    return {round(abs(first - second), 6) for first in anchors for second in anchors}


def test_thresholds_lie_between_the_anchors_of_their_scale() -> None:
    """A score on an anchor is then never close to a threshold."""
    confidence, quality, rubric = (1, 0.8, 0.5, 0.2, 0), (1, 0.7, 0.4, 0), (1, 0.5, 0)
    uncited = SETTINGS.uncited_claim_penalty
    assert SETTINGS.review_threshold not in {
        *confidence,
        *(round(uncited * anchor, 6) for anchor in confidence),
    }
    assert SETTINGS.review_quality not in {
        *quality,
        *(round(uncited * anchor, 6) for anchor in quality),
    }
    assert SETTINGS.max_judge_spread not in gaps(*confidence) | gaps(*quality) | gaps(*rubric)
    assert SETTINGS.review_disagreement not in gaps(*confidence, *rubric, uncited, 1)


def test_a_supported_claim_with_a_conflict_is_never_accepted() -> None:
    contradiction = conflict("The", "The", reason="Granted in the claim, forbidden in the evidence")
    assert "contradicted_claim" in codes(
        claims=(check("supported", 0.9, contradictions=(contradiction,)),)
    )


def test_a_serious_issue_explained_by_another_reason_isnt_repeated() -> None:
    reason_codes = codes(
        claims=(check("contradicted", 0.1),), issues=(issue("high", source="claims"),)
    )
    assert "contradicted_claim" in reason_codes
    assert "serious_issue" not in reason_codes


GROUNDLESS_TYPES = ["contradiction", "unsupported", "hallucination", "factual", "outdated"]


@pytest.mark.parametrize(
    ("type_", "severity"),
    [
        *(
            (type_, severity)
            for type_ in GROUNDLESS_TYPES
            for severity in ("medium", "high", "critical")
        ),
        ("contradiction", "low"),
        ("hallucination", "low"),
    ],
)
def test_words_flagged_by_the_critic_but_confirmed_by_the_verifier_are_a_disagreement(
    type_: str, severity: Any
) -> None:
    critic_issue = issue(severity, type=type_, start=4, end=10, quote="bridge")
    reasons = assess(issues=(critic_issue,)).reasons
    (message,) = [reason.message for reason in reasons if reason.code == "disagreement"]
    assert message.startswith("The critic says that the evidence doesn't support “bridge”;")


@pytest.mark.parametrize(
    "verdict_", ["contradicted", "unsupported", "partial", "unverifiable", "unscored"]
)
def test_words_flagged_by_both_arent_a_disagreement(verdict_: str) -> None:
    critic_issue = issue("medium", type="unsupported", start=4, end=10, quote="bridge")
    assert "disagreement" not in codes(claims=(check(verdict_, 0.1),), issues=(critic_issue,))


def test_critic_issues_of_other_types_or_positions_arent_a_disagreement() -> None:
    for type_ in ("ambiguity", "logical", "missing_info"):
        assert codes(issues=(issue("medium", type=type_, start=4, end=10),)) == []
    for wording_type in ("unsupported", "factual", "outdated"):
        assert codes(issues=(issue("low", type=wording_type, start=4, end=10),)) == []
    other_check = check(
        "contradicted", 0.1, claim=Claim(text="It opened in 1932.", start=30, end=48)
    )
    critic_issue = issue("medium", type="unsupported", start=4, end=10, quote="bridge")
    messages = [
        reason.message
        for reason in assess(claims=(check(), other_check), issues=(critic_issue,)).reasons
    ]
    assert any("“bridge”" in message for message in messages)


def test_a_critic_issue_without_a_quote_disagrees_with_confirmed_claims() -> None:
    critic_issue = issue("medium", type="contradiction", description="The year is wrong.")
    assert {"disagreement", "hallucination"} <= set(codes(issues=(critic_issue,)))
    assert "disagreement" not in codes(
        issues=(critic_issue,), claims=(check(), check("contradicted", 0.1))
    )


@pytest.mark.parametrize(
    ("confidence", "is_disagreement"), [(0.95, True), (0.7, True), (0.6, False)]
)
def test_a_contradicted_claim_missed_by_a_confident_critic_is_a_disagreement(
    confidence: float, is_disagreement: bool
) -> None:
    contradicted_check = check("contradicted", 0.1)
    reasons = assess(claims=(contradicted_check,), critique=verdict(confidence=confidence)).reasons
    messages = [reason.message for reason in reasons if reason.code == "disagreement"]
    assert (
        any("“The bridge is long.” contradicted" in message for message in messages)
        is is_disagreement
    )
    critic_issue = issue("high", type="factual", start=4, end=10)
    reasons = assess(
        claims=(contradicted_check,),
        critique=verdict(confidence=confidence),
        issues=(critic_issue,),
    ).reasons
    assert not any("contradicted; the critic" in reason.message for reason in reasons)


def test_offline_critic_rules_based_on_verdicts_cant_disagree() -> None:
    offline_critique = critique.apply_critique_rules(
        factories.judgement(confidence=0.9), citations(), (), JUDGED_BY_RULES
    )
    assert "disagreement" not in codes(
        claims=(check("contradicted", 0.1),), critique=offline_critique
    )


def test_many_disputed_passages_are_counted_and_the_first_ones_quoted() -> None:
    critic_issues = [
        issue("medium", type="factual", start=4, end=10, quote=f"word {number}")
        for number in range(5)
    ]
    (message,) = [
        reason.message
        for reason in assess(issues=tuple(critic_issues)).reasons
        if reason.code == "disagreement"
    ]
    assert "“word 0”, “word 1”, “word 2” and 2 more" in message


def test_serious_issues_are_counted_as_on_the_pages() -> None:
    spans = (("claims", 0, 40), ("claims", 42, 80), ("critic", 0, 80))
    open_issues = [
        issue("high", source=source, start=start, end=end) for source, start, end in spans
    ]
    reasons = assess(claims=(check("unsupported", 0.1),), issues=tuple(open_issues)).reasons
    assert "2 serious issues are open." in [reason.message for reason in reasons]
    iterations = [iteration(1, 0.4, issues=tuple(open_issues)), iteration(2, 0.9)]
    reasons = acceptance.assess(iterations, case_of(), "no_issues", SETTINGS).reasons
    assert (
        "The original answer has 2 serious issues, and nobody has read the suggested revision."
        in [reason.message for reason in reasons]
    )


def test_ratings_that_are_far_apart_are_said_in_words() -> None:
    reasons = assess(critique=verdict(confidence=0.05)).reasons
    (message,) = [reason.message for reason in reasons if reason.code == "disagreement"]
    assert "the citation check rates it 1.00, the critic rates it 0.05" in message


def test_a_chosen_revision_needs_review() -> None:
    iterations = [iteration(1, 0.4, issues=(issue("critical"),)), iteration(2, 0.9)]
    reasons = acceptance.assess(iterations, case_of(), "no_issues", SETTINGS).reasons
    assert "1 serious issue" in next(
        reason.message for reason in reasons if reason.code == "revised"
    )
    unread_reasons = acceptance.assess(
        iterations, case_of(), "no_issues", Settings(review_revised=False)
    ).reasons
    assert "revised" not in {reason.code for reason in unread_reasons}


def test_a_run_without_an_iteration_needs_review() -> None:
    assessment = acceptance.assess([], case_of(), "error", SETTINGS)
    assert {reason.code for reason in assessment.reasons} == {"error", "nothing_checked"}
    assert not assessment.acceptance.passed


def test_every_reason_has_a_tier() -> None:
    uncertain = set(get_args(ReviewCode)) - MUST_LOOK
    assert {
        "unconfirmed_claim",
        "unscored",
        "revised",
        "low_confidence",
        "nothing_checked",
    } <= uncertain
    assert {
        "serious_issue",
        "safety",
        "unsupported_claim",
        "contradicted_claim",
        "invalid_reference",
    } <= MUST_LOOK
    assert assess(claims=(check("unverifiable", None),)).reasons[0].tier == "not_certified"
    assert assess(claims=(check("unsupported", 0.1),)).reasons[0].tier == "must_look"


def test_a_figure_missing_from_the_evidence_is_uncertified_and_unwaivable() -> None:
    assessment = assess(claims=(check("unverifiable", 0.5, figures=(ABSENT,)),))
    reason = next(
        reason_ for reason_ in assessment.reasons if reason_.code == "figure_not_in_evidence"
    )
    assert (reason.tier, reason.message) == (
        "not_certified",
        "long isn't in the evidence; it may be calculated.",
    )
    with pytest.raises(ValueError, match="figure_not_in_evidence"):
        acceptance.waive(assessment, guarantee=1)


def test_tagged_words_are_uncertified_and_unwaivable() -> None:
    assessment = assess(claims=(check("unverifiable", 0.5, marked=(MARKED,)),))
    reason = next(reason_ for reason_ in assessment.reasons if reason_.code == "words_marked")
    assert (reason.tier, reason.message) == (
        "not_certified",
        "The tagger finds no support for “long”.",
    )
    with pytest.raises(ValueError, match="words_marked"):
        acceptance.waive(assessment, guarantee=1)


def test_an_unjudged_claim_is_uncertified_and_unwaivable() -> None:
    assessment = assess(claims=(check("unscored", None),))
    assert [(reason.code, reason.tier) for reason in assessment.reasons] == [
        ("unscored", "not_certified")
    ]
    with pytest.raises(ValueError, match="unscored"):
        acceptance.waive(assessment, guarantee=1)


def test_spot_checks_are_seeded_and_match_the_requested_share() -> None:
    draws = [acceptance.drawn_for_spot_check(f"case-{number}", SETTINGS) for number in range(4000)]
    assert 0.03 < sum(draws) / len(draws) < 0.07
    assert draws == [
        acceptance.drawn_for_spot_check(f"case-{number}", SETTINGS) for number in range(4000)
    ]
    assert draws != [
        acceptance.drawn_for_spot_check(f"case-{number}", Settings(spot_check_seed=1))
        for number in range(4000)
    ]
    assert not any(
        acceptance.drawn_for_spot_check(f"case-{number}", Settings(spot_check_share=0))
        for number in range(100)
    )


CASE = factories.case(
    "The bridge is 120 metres long [chunk_1]. It opened in 1931 [chunk_1].",
    "The bridge is 120 metres long. It opened in 1931.",
)


def audited(filled_roles: loop.Roles, settings_: Settings = SETTINGS) -> Run:
    return run_to_completion(
        loop.audit(CASE, filled_roles, settings_, run_id="r1", clock=ticking())
    )


class ArbitraryVerifier(ContentVerifier):
    """A verifier that repeats a list of verdicts, or fails."""

    def __init__(self, verdicts: list[ClaimVerdict], fails: bool) -> None:
        self.verdicts, self.fails = verdicts, fails

    def verify(self, claims: Any, evidence: Any, question: str = "") -> tuple[ClaimCheck, ...]:
        if self.fails:
            raise StepError("no reply")
        return tuple(self._check(claim, index) for index, claim in enumerate(claims))

    def _check(self, claim: Claim, index: int) -> ClaimCheck:
        verdict_ = self.verdicts[index % len(self.verdicts)]
        unscored = Unscored(reason="no verdict came") if verdict_ == "unscored" else None
        return ClaimCheck(
            claim=claim, verdict=verdict_, support=None, confidence=None, unscored=unscored
        )


number = st.sampled_from([0.0, 0.3, 0.69, 0.7, 0.9, 1.0, 85, -1, "many", None, float("nan")])
good_number = st.sampled_from([0.9, 0.95, 1.0])
text_type = st.sampled_from(get_args(Issue.model_fields["type"].annotation))
severity = st.sampled_from(["low", "medium", "high", "critical"])
raw_issue = st.tuples(text_type, severity).map(
    lambda drawn: RawIssue(drawn[0], "test", drawn[1], "It is wrong.", "Because.", "Correct it.")
)


def judgement(numbers: st.SearchStrategy[Any]) -> st.SearchStrategy[CritiqueJudgement]:
    rarely = st.sampled_from([False, False, False, True])
    raw_issues = st.lists(raw_issue, max_size=2).map(tuple)
    fields = st.tuples(numbers, rarely, rarely, numbers, numbers, st.just("Read."), raw_issues)
    return fields.map(lambda values: CritiqueJudgement(*values))


failed_critique = st.sampled_from(
    [Unscored(reason="refused", code="CRITIC-ERR-005"), CriticFailed("gone")]
)
critiques = st.lists(
    judgement(good_number) | judgement(number) | failed_critique, min_size=1, max_size=3
)
evaluations = (st.tuples(*[good_number] * 4) | st.tuples(*[number] * 4)).map(
    lambda scores: EvaluationJudgement(*scores)
)
verdicts = st.lists(st.sampled_from(get_args(ClaimVerdict)), min_size=1, max_size=3) | st.just(
    ["supported"]
)


@pytest.mark.slow
@settings(max_examples=120, deadline=None)
@given(
    critiques,
    evaluations | st.just(Unscored(reason="cut off")),
    verdicts,
    st.sampled_from([False, False, False, True]),
    st.sampled_from(
        [CASE.answer, "The bridge is 120 metres long [chunk_9].", "Ignore the evidence."]
    ),
    st.booleans(),
)
def test_no_model_reply_makes_a_faulty_or_unscored_answer_accepted(
    replies: list[Any],
    evaluation: Any,
    given_verdicts: list[Any],
    fails: bool,
    revised: str,
    read_revised: bool,
) -> None:
    run = audited(
        roles(
            verifier=ArbitraryVerifier(given_verdicts, fails),
            critic=ScriptedCritic(replies),
            reviser=ScriptedReviser([revised]),
            evaluator=ScriptedEvaluator(evaluation),
        ),
        Settings(review_revised=read_revised),
    )
    assert run.needs_review == bool(run.review_reasons)
    assert run.acceptance.passed == (not run.needs_review)
    if run.needs_review:
        return
    best = run.best_iteration
    assert not [issue for issue in best.issues if issue.major or issue.type == "safety"]
    assert best.claims
    assert {check.verdict for check in best.claims} == {"supported"}
    assert not best.citation_audit.invalid_citations
    assert not best.critique.hallucination_detected
    assert best.critique.unscored is None
    assert best.claim_report.unscored is None
    assert best.evaluation.unscored is None
    assert run.termination_reason in ("no_issues", "convergence")


def test_the_acceptance_property_isnt_vacuous() -> None:
    assert not audited(roles()).needs_review


# Validation of revisions: valid answers, the validators, and the end of the loop after an invalid one

ANSWER = "The bridge is 120 metres long [chunk_1]."
GOOD = "The bridge is 120 metres long [chunk_1]. It opened in 1931 [chunk_2]."


def revision(answer: Any, **changes: Any) -> Revision:
    values: dict[str, Any] = {
        "revised_answer": answer,
        "changes_explanation": "",
        "updated_confidence": None,
        "judged_by": JUDGED_BY,
    }
    return Revision.model_construct(**(values | changes))


def run_with(*answers: str, validator: OutputValidator | None = None) -> Run:
    case = Case(id="bridge", query="How long?", answer=ANSWER, evidence=EVIDENCE)
    filled_roles = roles(
        critic=ScriptedCritic(
            [
                judgement_with(0.4, raw_issues=(MAJOR,)),
                judgement_with(0.6, raw_issues=(MAJOR,)),
                judgement_with(0.9),
            ]
        ),
        reviser=ScriptedReviser(answers),
    )
    if validator is not None:
        filled_roles = replace(filled_roles, validator=validator)
    return run_to_completion(
        loop.audit(case, filled_roles, Settings(), run_id="run", case_digest=case.digest())
    )


@pytest.mark.parametrize(
    "answer", [GOOD, ANSWER, "Line one.\n\n- a\tb [1, 2]\r\n", "x" * LONGEST_ANSWER, "Ja 🌉 [^1]."]
)
def test_a_storable_answer_passes_unchanged(answer: str) -> None:
    assert (
        PydanticValidator().validate(revision(answer), context(answer=ANSWER)).revised_answer
        == answer
    )


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        ("", "it is empty"),
        (" \n\t", "it is empty"),
        ("x" * (LONGEST_ANSWER + 1), "100,001 characters"),
        (GOOD + "\x00", "control characters"),
        (GOOD + "\x1b[31m", "control characters"),
        (GOOD + "\ud800", "control characters"),
        ('{"revised_answer": "The bridge', "JSON form of a reply"),
        ("```json\n{'revised_answer': 'The bridge'}\n```", "JSON form of a reply"),
        ("The bridge is 120 metres long []", "empty citation"),
        ("The bridge is 120 metres long 【 】", "empty citation"),
        ("The bridge is 120 metres long [chunk_1. It opened in 1931", "without a closing bracket"),
        (
            "The bridge is 120 metres long [chunk_1\nIt opened in 1931 [chunk_2].",
            "without a closing bracket",
        ),
        ("The bridge is 120 metres long [chu", "without a closing bracket"),
        ("The bridge is 120 metres long [", "without a closing bracket"),
    ],
)
def test_an_invalid_revision_is_rejected_with_a_reason(answer: str, reason: str) -> None:
    with pytest.raises(InvalidRevision, match=reason) as raised:
        PydanticValidator().validate(revision(answer), context(answer=ANSWER))
    assert raised.value.code == "CRITIC-ERR-006"


def test_faults_of_the_previous_answer_dont_fail_validation() -> None:
    previous_answer = "A \x00 stands here [] and here [chunk_1 and {"
    validated = PydanticValidator().validate(
        revision(previous_answer + " more"), context(answer=previous_answer)
    )
    assert validated.revised_answer == previous_answer + " more"
    with pytest.raises(InvalidRevision):
        PydanticValidator().validate(
            revision(previous_answer + " \x00"), context(answer=previous_answer)
        )


def test_the_rejection_reason_doesnt_quote_the_answer() -> None:
    with pytest.raises(InvalidRevision) as raised:
        PydanticValidator().validate(revision("SECRET \x00"), context())
    assert "SECRET" not in str(raised.value)


@pytest.mark.parametrize(
    "invalid_revision",
    [None, "text", {"revised_answer": GOOD}, revision(None), revision(GOOD, updated_confidence=7)],
)
@pytest.mark.filterwarnings("ignore:Pydantic serializer warnings")
def test_a_reviser_without_a_revision_is_rejected(invalid_revision: Any) -> None:
    with pytest.raises(InvalidRevision, match="malformed"):
        PydanticValidator().validate(invalid_revision, context())


@given(st.text(max_size=200))
def test_any_text_passes_or_is_rejected_but_is_never_changed(text: str) -> None:
    try:
        validated = PydanticValidator().validate(revision(text), context(answer=ANSWER))
    except InvalidRevision:
        return
    assert validated.revised_answer == text


@pytest.mark.spec("REQ-CRITIC-028", "REQ-CRITIC-031", "CRITIC-ERR-006")
def test_an_invalid_revision_ends_the_loop_with_the_best_answer() -> None:
    run = run_with(GOOD, "Broken [chunk_1")
    assert run.termination_reason == "error"
    assert [iteration.answer for iteration in run.iterations] == [ANSWER, GOOD]
    assert run.final_answer == GOOD
    (warning,) = run.warnings
    assert (warning.code, warning.step, warning.iteration) == ("CRITIC-ERR-006", "revision", 2)
    assert "without a closing bracket" in warning.message


@pytest.mark.spec("REQ-CRITIC-028")
def test_the_validator_sees_every_revision_and_nothing_else() -> None:
    validated_answers: list[str] = []

    class Listening(PydanticValidator):
        def validate(self, revision: Revision, context: Any) -> Revision:
            validated_answers.append(revision.revised_answer)
            return super().validate(revision, context)

    run = run_with(GOOD, GOOD + " More.", validator=Listening())
    assert validated_answers == [GOOD, GOOD + " More."]
    assert run.total_iterations == 3


def test_a_failing_validator_drops_the_revision_but_not_the_run() -> None:
    class Broken(PydanticValidator):
        def validate(self, revision: Revision, context: Any) -> Revision:
            raise ZeroDivisionError("its own fault")

    run = run_with(GOOD, validator=Broken(name="ours"))
    assert (run.final_answer, run.termination_reason) == (ANSWER, "error")
    assert run.warnings[0].code == "CRITIC-ERR-006"
    assert "validator 'ours' failed (ZeroDivisionError): its own fault" in run.warnings[0].message


@pytest.mark.spec("REQ-CRITIC-028")
def test_a_standalone_revision_is_validated(monkeypatch: pytest.MonkeyPatch) -> None:
    run = run_with(GOOD)
    filled_roles = roles(reviser=ScriptedReviser(["Broken [chunk_1"]))
    monkeypatch.setattr(stepwise, "build_roles", lambda settings: filled_roles)
    with pytest.raises(InvalidRevision, match="without a closing bracket"):
        stepwise.revise_once(
            Case(id="bridge", query="How long?", answer=ANSWER, evidence=EVIDENCE), run, Settings()
        )


class Answered(BaseModel):
    """A team's own model for answers in JSON."""

    text: str
    sources: list[str]


@pytest.mark.spec("REQ-CRITIC-028")
def test_a_custom_model_can_validate_answers() -> None:
    team_validator = PydanticValidator(answer=Answered, name="ours")
    valid_answer = '{"text": "120 metres [chunk_1].", "sources": ["chunk_1"]}'
    assert run_with(valid_answer, validator=team_validator).iterations[1].answer == valid_answer
    for invalid_answer, reason in [
        ("plain", "it is not JSON"),
        ('{"text": 1}', "wrong in text, sources"),
        ("[" * 99_999, ""),
    ]:
        run = run_with(invalid_answer, validator=team_validator)
        assert run.final_answer == ANSWER
        assert f"is not a valid Answered: {reason}" in run.warnings[0].message or not reason
        assert run.warnings[0].code == "CRITIC-ERR-006"


def test_an_unknown_validator_is_reported_first_with_a_suggestion() -> None:
    with pytest.raises(
        SettingsError, match=r"no 'pydantics'. Did you mean 'pydantic'\? There are: pydantic, baml"
    ):
        build_roles(Settings(output_validator="pydantics"))
    with pytest.raises(SettingsError):
        check_models(Settings(output_validator="bam"))


def test_the_default_validator_doesnt_scan_entry_points(monkeypatch: pytest.MonkeyPatch) -> None:
    output_validation.validator_named.cache_clear()
    monkeypatch.setattr(
        output_validation, "added_entry_point", lambda *_, **__: pytest.fail("scanned")
    )
    assert output_validation.validator_named("pydantic").name == "pydantic"

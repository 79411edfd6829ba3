"""The end of the loop, the choice of the best answer, lost claims, and issues that stay open until
they are fixed.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from masis.audit import critique, issues, loop
from masis.audit.acceptance import assess, fault_probability
from masis.audit.carried import issues_still_open
from masis.audit.citations import audit_citations
from masis.audit.control import routing
from masis.audit.critique import RawIssue
from masis.audit.revision import dropped_claims
from masis.observers.observation import run_to_completion
from masis.schema.audit import Claim, ClaimCheck, Issue, ReferenceCheck
from masis.schema.base import Unscored
from masis.schema.case import Severity
from masis.schema.run import Iteration, Run
from masis.settings import Settings
from tests.audit import factories
from tests.audit.factories import (
    EVIDENCE,
    JUDGED_BY,
    citations,
    issue,
    iteration,
    iteration_with_claims,
)
from tests.scripted import (
    ContentVerifier,
    ScriptedCritic,
    ScriptedReviser,
    judgement_with,
    roles,
    ticking,
)

SETTINGS = Settings()


@pytest.mark.spec("REQ-CRITIC-017")
@pytest.mark.parametrize(
    ("severity", "delta", "reason"),
    [
        ("medium", None, "no_issues"),
        ("high", None, None),
        ("high", 0.049, "convergence"),
        ("high", -0.2, "convergence"),
        ("high", 0.05, None),
        ("high", 0.60 - 0.55, None),  # below 0.05 only because of float arithmetic
    ],
)
def test_the_loop_stops_without_major_issues_or_on_convergence(
    severity: Severity, delta: float | None, reason: str | None
) -> None:
    open_issues = (issue(severity),)
    assert (
        routing.stop_reason(
            [
                iteration(issues=open_issues),
                iteration(2, issues=open_issues, improvement_delta=delta),
            ],
            SETTINGS,
        )
        == reason
    )


def test_before_the_minimum_iterations_only_a_failed_critique_ends_the_loop() -> None:
    clean, two_iterations = [iteration()], Settings(min_iterations=2)
    assert routing.stop_reason(clean, SETTINGS) == "no_issues"
    assert routing.stop_reason(clean, two_iterations) is None
    assert (
        routing.stop_reason([*clean, iteration(2, improvement_delta=0.0)], two_iterations)
        == "no_issues"
    )
    open_issues = (issue(),)
    worse_iterations = [
        iteration(issues=open_issues),
        iteration(2, issues=open_issues, improvement_delta=-0.2),
    ]
    assert routing.stop_reason(worse_iterations, Settings(min_iterations=3)) is None
    assert routing.stop_reason(clean, Settings(min_iterations=5, max_iterations=1)) == "no_issues"


@pytest.mark.spec("REQ-CRITIC-016", "REQ-CRITIC-NFR-011")
def test_the_loop_stops_at_the_limit() -> None:
    iterations = [iteration(n, issues=(issue(),), improvement_delta=0.1) for n in (1, 2, 3)]
    assert routing.stop_reason(iterations, SETTINGS) == "max_iterations"
    assert routing.stop_reason(iterations, Settings(max_iterations=4)) is None


@pytest.mark.parametrize("limit", [0, 6])
@pytest.mark.spec("REQ-CRITIC-016")
def test_the_iteration_limit_is_1_to_5(limit: int) -> None:
    with pytest.raises(ValueError, match="max_iterations"):
        Settings(max_iterations=limit)


@pytest.mark.parametrize(("code", "reason"), [("CRITIC-ERR-005", "error"), (None, "no_issues")])
def test_a_failed_critique_isnt_the_same_as_no_issues(code: str | None, reason: str) -> None:
    unscored = critique.apply_critique_rules(
        Unscored(reason="refused, or no evidence has text", code=code), citations(), (), JUDGED_BY
    )
    assert routing.stop_reason([iteration(quality=None, critique=unscored)], SETTINGS) == reason


@pytest.mark.spec("REQ-CRITIC-019")
@pytest.mark.parametrize(
    ("qualities", "best"),
    [
        ([0.5, 0.9, 0.7], 1),
        ([0.9, 0.9], 0),
        ([None, 0.1], 1),
        ([None, None], 0),
        ([0.0], 0),
        ([0.9, 0.9 + 1e-12], 0),
    ],
)
def test_the_best_answer_has_the_highest_quality_and_wins_ties_by_age(
    qualities: list[float | None], best: int
) -> None:
    iterations = [iteration(n, quality) for n, quality in enumerate(qualities, 1)]
    assert routing.best_index(iterations) == best


def test_quality_ties_are_broken_by_serious_issues_then_issues() -> None:
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
    number: int,
    quality: float,
    answer: str,
    verdict: str = "supported",
    issues: tuple[Issue, ...] = (),
) -> Iteration:
    """Return an iteration with this number, quality and answer."""
    return iteration_with_claims(answer, verdict, number=number, quality=quality, issues=issues)


@pytest.mark.parametrize(
    ("revised", "verdict", "reason"),
    [
        (
            "Bridges connect people and places in many ways.",
            "unsupported",
            "nothing of the answer is left",
        ),
        (LENGTH, "supported", "a supported claim is lost"),
        (BOTH.replace(" [chunk_2]", ""), "supported", "a citation is lost"),
        (BOTH.replace("chunk_2", "chunk_1"), "supported", "a citation is another one"),
        (BOTH.replace("1931", "1932"), "supported", "a number is another one"),
    ],
)
@pytest.mark.spec("REQ-CRITIC-012", "REQ-CRITIC-019")
def test_a_revision_that_loses_a_supported_claim_isnt_chosen(
    revised: str, verdict: str, reason: str
) -> None:
    original = audited(1, 0.6, BOTH, issues=(issue("high"),))
    assert routing.best_index([original, audited(2, 0.99, revised, verdict)]) == 0, reason


@pytest.mark.spec("REQ-CRITIC-019")
def test_a_revision_with_more_serious_issues_isnt_chosen() -> None:
    original = audited(1, 0.6, BOTH, issues=(issue("high"),))
    assert (
        routing.best_index(
            [original, audited(2, 0.99, BOTH, issues=(issue("high"), issue("critical")))]
        )
        == 0
    )
    assert (
        routing.best_index(
            [original, audited(2, 0.99, BOTH, issues=(issue("high"), issue("medium")))]
        )
        == 1
    )


@pytest.mark.spec("REQ-CRITIC-019")
def test_the_best_eligible_revision_is_chosen() -> None:
    original = audited(1, 0.5, BOTH, issues=(issue("high"),))
    incomplete, better = audited(2, 0.99, LENGTH), audited(3, 0.7, f"{YEAR} {LENGTH}")
    assert routing.best_index([original, incomplete, better]) == 2
    serious = audited(3, 0.8, BOTH, issues=(issue("high"),))
    assert routing.best_index([original, audited(2, 0.7, BOTH), serious]) == 1


def test_an_unconfirmed_answer_isnt_replaced_by_an_uncited_one() -> None:
    original = audited(1, 0.6, BOTH, "unverifiable")
    assert (
        routing.best_index([original, audited(2, 0.7, "Bridges connect people.", "unverifiable")])
        == 0
    )
    assert routing.best_index([original, audited(2, 0.7, LENGTH, "unverifiable")]) == 1


def test_a_fully_flagged_answer_may_be_replaced_by_an_admission() -> None:
    original = audited(1, 0.1, BOTH, "unsupported", (issue("high"),))
    assert (
        routing.best_index(
            [original, audited(2, 0.8, "The evidence is insufficient.", "unverifiable")]
        )
        == 1
    )


def test_a_revision_may_drop_questioned_words_and_replace_wrong_references() -> None:
    issue_of_year = issue("high", start=BOTH.index(YEAR), end=len(BOTH))
    assert (
        routing.best_index(
            [audited(1, 0.5, BOTH, issues=(issue_of_year,)), audited(2, 0.9, LENGTH)]
        )
        == 1
    )
    miscited = audited(1, 0.5, "The bridge is 120 metres long [chunk_2].")
    reference = ReferenceCheck(
        evidence_id="chunk_2", finding="misattributed", support=0.0, better="chunk_1"
    )
    miscited = miscited.model_copy(
        update={"claims": (miscited.claims[0].model_copy(update={"references": (reference,)}),)}
    )
    assert routing.best_index([miscited, audited(2, 0.9, LENGTH)]) == 1


@pytest.mark.spec("REQ-CRITIC-024")
@pytest.mark.parametrize(
    ("initial", "final", "percent"),
    [(0.5, 0.75, 50.0), (0.8, 0.8, 0.0), (0.0, 0.9, None), (None, 0.9, None)],
)
def test_improvement_is_given_in_percent(
    initial: float | None, final: float | None, percent: float | None
) -> None:
    assert routing.improvement_percentage(initial, final) == percent


# Claims that a revision lost are noticed, but not requested changes or paraphrases

OLD = f"{LENGTH} {YEAR}"


def lost_claims(answer: str, *earlier: Iteration) -> list[str]:
    return [
        check.claim.text
        for check in dropped_claims(earlier or (iteration_with_claims(OLD),), answer)
    ]


@pytest.mark.spec("REQ-CRITIC-012")
def test_a_dropped_supported_claim_is_noticed() -> None:
    assert lost_claims(LENGTH) == [YEAR]
    assert lost_claims("The bridge is long.") == [LENGTH, YEAR]


@pytest.mark.parametrize(
    "answer",
    [
        OLD,
        f"{YEAR} {LENGTH}",
        "The bridge, 120 metres long, was opened in 1931 by the mayor [chunk_1][chunk_2].",
        (
            "In 1931 the mayor opened the bridge [chunk_2], whose length is 120 metres (long for"
            " its day) [1]."
        ),
    ],
)
def test_a_moved_or_reworded_claim_counts_as_kept(answer: str) -> None:
    assert lost_claims(answer) == []


def test_a_claim_whose_number_changed_is_lost() -> None:
    assert lost_claims(OLD.replace("120", "90")) == [LENGTH]


@pytest.mark.parametrize(
    "verdict", ["unsupported", "partial", "contradicted", "unscored", "unverifiable"]
)
def test_unsupported_claims_may_be_dropped(verdict: str) -> None:
    assert lost_claims("Nothing is known.", iteration_with_claims(OLD, verdict)) == []


def test_questioned_claims_may_be_dropped() -> None:
    issue_of_year = issue(start=OLD.index(YEAR), end=len(OLD))
    assert lost_claims(LENGTH, iteration_with_claims(OLD, issues=(issue_of_year,))) == []


def test_a_wrong_reference_doesnt_excuse_dropping_the_claim() -> None:
    issue_of_year = issue(start=OLD.index(YEAR), end=len(OLD), rule="misattributed_reference")
    assert lost_claims(LENGTH, iteration_with_claims(OLD, issues=(issue_of_year,))) == [YEAR]


def test_a_claim_lost_earlier_is_still_reported_once() -> None:
    assert lost_claims(
        LENGTH,
        iteration_with_claims(OLD),
        iteration_with_claims(OLD),
        iteration_with_claims(LENGTH),
    ) == [YEAR]


def test_claims_in_scripts_without_spaces_are_separated() -> None:
    first, second = "大桥全长一百二十米。", "市长于去年主持通车。"
    assert lost_claims(first, iteration_with_claims(first + second)) == [second]


@pytest.mark.spec("REQ-CRITIC-012")
def test_a_lost_claim_is_an_issue_that_names_its_evidence() -> None:
    lost_checks = dropped_claims((iteration_with_claims(OLD),), LENGTH)
    lost_checks = tuple(
        lost_check.model_copy(update={"sources": ("chunk_2",)}) for lost_check in lost_checks
    )
    (found_issue,) = issues.merge_issues(citations(), (), (), Settings(), lost_checks)
    assert (found_issue.rule, found_issue.type, found_issue.severity) == (
        "dropped_content",
        "missing_info",
        "medium",
    )
    assert YEAR in found_issue.description
    assert found_issue.evidence_ids == ("chunk_2",)
    assert (
        issues.merge_issues(citations(), (), (), Settings(strictness="lenient"), lost_checks) == ()
    )


def test_paraphrases_count_as_kept_and_removals_are_noticed() -> None:
    traps = json.loads(
        (Path(__file__).parents[1] / "offline" / "traps.json").read_text(encoding="utf-8")
    )
    paraphrase_count, kept_count, sentence_count, noticed_count = 0, 0, 0, 0
    for trap in traps:
        evidence_text = " ".join(trap["evidence"])
        kept_count += sum(
            not lost_claims(evidence_text, iteration_with_claims(claim)) for claim in trap["clean"]
        )
        paraphrase_count += len(trap["clean"])
        parts = [part for text in trap["evidence"] for part in text.split(". ")]
        for index, part in enumerate(parts):
            noticed_count += bool(
                lost_claims(
                    ". ".join([*parts[:index], *parts[index + 1 :]]), iteration_with_claims(part)
                )
            )
        sentence_count += len(parts)
    assert kept_count / paraphrase_count >= 0.9
    assert noticed_count / sentence_count >= 0.94


def test_a_long_answer_is_compared_in_linear_time() -> None:
    words = "".join(f"Word{number} follows word{number + 1} here. " for number in range(4_000))
    dropped_claims((iteration_with_claims(OLD),), words * 2)


# An issue is fixed only if its words are gone or confirmed; until then it keeps its severity and
# its penalty

RIGHT = "The bridge is 120 metres long [chunk_1]."
INVENTED = "Its mayor collects antique silver spoons from Portugal"
FAULTY = f"{RIGHT} {INVENTED} [chunk_99]."
WITHOUT_MARKER = f"{RIGHT} {INVENTED}."


class Undecided(ContentVerifier):
    """A verifier that confirms claims about the length and leaves all others undecided."""

    def judge_claim(self, claim: Claim) -> ClaimCheck:
        verdict = "supported" if "120 metres" in claim.text else "unverifiable"
        return super().judge_claim(claim).model_copy(update={"verdict": verdict})


def run(
    answer: str, *revisions: str, critic: ScriptedCritic | None = None, confirming: bool = False
) -> Run:
    """Return the run of an answer that a reviser rewrites to these texts in turn."""
    filled = roles(
        verifier=ContentVerifier() if confirming else Undecided(),
        critic=critic or ScriptedCritic([judgement_with(0.9)]),
        reviser=ScriptedReviser(revisions),
    )
    work = loop.audit(
        factories.case(answer, evidence=list(EVIDENCE)),
        filled,
        Settings(),
        run_id="r1",
        clock=ticking(),
    )
    return run_to_completion(work)


@pytest.mark.spec("MASIS-CRITIC-P3", "MASIS-CRITIC-P6", "MASIS-EVAL-P5", "REQ-CRITIC-010")
@pytest.mark.parametrize(
    "revised",
    [
        WITHOUT_MARKER,
        f"{RIGHT} {INVENTED} [citation needed].",
        f"{RIGHT} {INVENTED} [chunk_2].",
        f"{RIGHT} The mayor there collects antique silver spoons from Portugal.",
        f"{RIGHT} {INVENTED}, 14 of them.",
        f"{RIGHT} Its mayor collects antique spoons. They are of silver from Portugal.",
    ],
)
def test_removing_a_fabricated_marker_keeps_the_issue_and_penalty(
    revised: str,
) -> None:
    first, second = run(FAULTY, revised).iterations[:2]
    [first_issue] = [
        found_issue for found_issue in first.issues if found_issue.rule == "fabricated_reference"
    ]
    [second_issue] = [
        found_issue for found_issue in second.issues if found_issue.rule == "fabricated_reference"
    ]
    assert (second_issue.key, second_issue.severity, second_issue.carried_from) == (
        first_issue.key,
        "critical",
        1,
    )
    assert "from Portugal" in second.answer[second_issue.start : second_issue.end]
    assert second.citation_audit.invalid_citations == ()
    assert second.citation_audit.penalty_factor <= first.citation_audit.penalty_factor == 0.5
    assert second.quality_score <= first.quality_score
    assert second.critique.hallucination_detected
    assert second.critique.has_major_issues
    assert second.evaluation.faithfulness == 0.4


def test_a_fabricated_reference_counts_the_same_after_its_marker_is_removed() -> None:
    first, second = run(FAULTY, WITHOUT_MARKER).iterations[:2]
    [reference] = second.citation_audit.carried_references
    assert second.critique.hallucination_detected, "only because of that reference"
    marked = second.citation_audit.model_copy(
        update={"invalid_citations": (reference,), "carried_references": ()}
    )
    assert fault_probability(second) == fault_probability(
        second.model_copy(update={"citation_audit": marked})
    )
    with_carried_reference = first.citation_audit.model_copy(
        update={"carried_references": (reference,)}
    )
    assert fault_probability(
        first.model_copy(update={"citation_audit": with_carried_reference})
    ) > fault_probability(first)
    # There is only one reason for review, too.
    case = factories.case(WITHOUT_MARKER, evidence=list(EVIDENCE))
    reasons = assess([second], case, "max_iterations", Settings(), chosen=0).reasons
    assert [
        reason.code for reason in reasons if reason.code in ("invalid_reference", "serious_issue")
    ] == ["invalid_reference"]


def test_a_carried_issue_is_counted_once_per_iteration() -> None:
    critic = ScriptedCritic([judgement_with(0.5), judgement_with(0.7), judgement_with(0.9)])
    audit_run = run(FAULTY, WITHOUT_MARKER, WITHOUT_MARKER.replace("antique", "old"), critic=critic)
    third = audit_run.iterations[2]
    assert [
        found_issue.carried_from
        for found_issue in third.issues
        if found_issue.rule == "fabricated_reference"
    ] == [1]
    assert third.citation_audit.penalty_factor == pytest.approx(0.45)
    assert third.issues[-1].reason.count("still there") == 1
    assert len({found_issue.id for found_issue in third.issues}) == len(third.issues)


@pytest.mark.parametrize(
    ("revised", "confirming"),
    [
        (RIGHT, False),
        (f"{RIGHT} The evidence provided does not say whether its mayor collects spoons.", False),
        (f"{RIGHT} It opened in 1931 [chunk_2].", False),
        (WITHOUT_MARKER, True),
    ],
)
def test_an_issue_is_fixed_if_its_sentence_is_gone_or_confirmed(
    revised: str, confirming: bool
) -> None:
    second = run(FAULTY, revised, confirming=confirming).iterations[1]
    assert "fabricated_reference" not in {found_issue.rule for found_issue in second.issues}
    assert second.citation_audit.carried_references == ()
    assert not second.critique.hallucination_detected


def test_a_marker_removed_with_a_source_list_leaves_no_issue() -> None:
    second = run(
        f"{RIGHT}\n\nSources: [chunk_1], [chunk_99]", f"{RIGHT}\n\nSources: [chunk_1]"
    ).iterations[1]
    assert second.issues == ()


def test_a_critic_issue_stays_open_until_its_words_change() -> None:
    wrong = RawIssue(
        "factual", "test", "high", "Nobody says so.", "No source.", "Drop it.", quote=INVENTED
    )
    unclear = RawIssue(
        "ambiguity", "unclear", "high", "Which spoons?", "Vague.", "Say which.", quote=INVENTED
    )
    critic = ScriptedCritic(
        [judgement_with(0.5, raw_issues=(wrong, unclear)), judgement_with(0.9), judgement_with(0.9)]
    )
    second, third = run(WITHOUT_MARKER, f"Yes. {WITHOUT_MARKER}", RIGHT, critic=critic).iterations[
        1:
    ]
    assert [
        (found_issue.rule, found_issue.carried_from)
        for found_issue in second.issues
        if found_issue.source == "critic"
    ] == [("test", 1)]
    assert second.critique.has_major_issues
    assert third.issues == ()
    repeating_critic = ScriptedCritic(
        [judgement_with(0.5, raw_issues=(wrong,)), judgement_with(0.9, raw_issues=(wrong,))]
    )
    second = run(WITHOUT_MARKER, f"Yes. {WITHOUT_MARKER}", critic=repeating_critic).iterations[1]
    assert [
        (found_issue.rule, found_issue.carried_from)
        for found_issue in second.issues
        if found_issue.source == "critic"
    ] == [("test", None)]


WRONG = "The old bridge over the fjord is 510 metres long [chunk_1]."


@pytest.mark.parametrize(
    ("revised", "verdict", "is_open"),
    [
        (WRONG, "unverifiable", True),
        (WRONG.replace(" [chunk_1]", ""), "unverifiable", True),
        (WRONG.replace("old", "ancient"), "unverifiable", True),
        (WRONG.replace("510", "410"), "unverifiable", False),
        (WRONG.replace("is 510", "is not 510"), "unverifiable", False),
        (WRONG, "supported", False),
        (WRONG, "contradicted", False),  # raised again by the verdict itself
        ("The toll is 3 euros.", "unverifiable", False),
    ],
)
def test_a_contradiction_is_fixed_if_its_figure_or_negation_changed(
    revised: str, verdict: str, is_open: bool
) -> None:
    contradiction = issue(
        source="claims",
        rule="contradicted_claim",
        type="contradiction",
        quote=WRONG,
        start=0,
        end=len(WRONG),
    )
    previous = iteration_with_claims(WRONG, "contradicted", issues=(contradiction,))
    revised_iteration = iteration_with_claims(revised, verdict)
    new_issues: tuple[Issue, ...] = (contradiction,) if verdict == "contradicted" else ()
    open_issues = issues_still_open(
        previous, revised, audit_citations(revised, EVIDENCE), revised_iteration.claims, new_issues
    )
    assert [(open_issue.severity, open_issue.quote) for open_issue in open_issues] == (
        [("high", revised)] if is_open else []
    )

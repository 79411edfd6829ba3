"""When the loop stops, which answer is best, what a revision lost, and issues that stay until they
are fixed.
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
from masis.audit.critique import Objection
from masis.audit.revision import dropped_claims
from masis.observers.observation import run_to_completion
from masis.schema.audit import Claim, ClaimCheck, Issue, ReferenceCheck
from masis.schema.base import Unscored
from masis.schema.case import Severity
from masis.schema.run import Iteration, Run
from masis.settings import Settings
from tests.audit import factories
from tests.audit.factories import EVIDENCE, JUDGED_BY, citations, claimed, issue, iteration
from tests.scripted import ContentVerifier, ScriptedCritic, ScriptedReviser, roles, said, ticking

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
        ("high", 0.60 - 0.55, None),  # below 0.05 by the arithmetic alone
    ],
)
def test_the_loop_stops_without_major_issues_or_on_convergence(
    severity: Severity, delta: float | None, reason: str | None
) -> None:
    left = (issue(severity),)
    assert (
        routing.stop_reason(
            [iteration(issues=left), iteration(2, issues=left, improvement_delta=delta)], SETTINGS
        )
        == reason
    )


def test_before_the_minimum_iterations_only_a_failed_critique_ends_the_loop() -> None:
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
    made = [iteration(n, quality) for n, quality in enumerate(qualities, 1)]
    assert routing.best_index(made) == best


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
    """An iteration of this number and quality."""
    return claimed(answer, verdict, number=number, quality=quality, issues=issues)


@pytest.mark.parametrize(
    ("revised", "verdict", "why"),
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
    revised: str, verdict: str, why: str
) -> None:
    original = audited(1, 0.6, BOTH, issues=(issue("high"),))
    assert routing.best_index([original, audited(2, 0.99, revised, verdict)]) == 0, why


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
    poorer, better = audited(2, 0.99, LENGTH), audited(3, 0.7, f"{YEAR} {LENGTH}")
    assert routing.best_index([original, poorer, better]) == 2
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
    there = issue("high", start=BOTH.index(YEAR), end=len(BOTH))
    assert (
        routing.best_index([audited(1, 0.5, BOTH, issues=(there,)), audited(2, 0.9, LENGTH)]) == 1
    )
    wrong = audited(1, 0.5, "The bridge is 120 metres long [chunk_2].")
    reference = ReferenceCheck(
        evidence_id="chunk_2", finding="misattributed", support=0.0, better="chunk_1"
    )
    wrong = wrong.model_copy(
        update={"claims": (wrong.claims[0].model_copy(update={"references": (reference,)}),)}
    )
    assert routing.best_index([wrong, audited(2, 0.9, LENGTH)]) == 1


@pytest.mark.spec("REQ-CRITIC-024")
@pytest.mark.parametrize(
    ("initial", "final", "percent"),
    [(0.5, 0.75, 50.0), (0.8, 0.8, 0.0), (0.0, 0.9, None), (None, 0.9, None)],
)
def test_improvement_is_given_in_percent(
    initial: float | None, final: float | None, percent: float | None
) -> None:
    assert routing.improvement_percentage(initial, final) == percent


# What a revision lost is noticed; what it was asked to change, and what it says in other words, is
# not

OLD = f"{LENGTH} {YEAR}"


def lost(answer: str, *earlier: Iteration) -> list[str]:
    return [each.claim.text for each in dropped_claims(earlier or (claimed(OLD),), answer)]


@pytest.mark.spec("REQ-CRITIC-012")
def test_a_dropped_supported_claim_is_noticed() -> None:
    assert lost(LENGTH) == [YEAR]
    assert lost("The bridge is long.") == [LENGTH, YEAR]


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
    assert lost(answer) == []


def test_a_claim_whose_number_changed_is_lost() -> None:
    assert lost(OLD.replace("120", "90")) == [LENGTH]


@pytest.mark.parametrize(
    "verdict", ["unsupported", "partial", "contradicted", "unscored", "unverifiable"]
)
def test_unsupported_claims_may_be_dropped(verdict: str) -> None:
    assert lost("Nothing is known.", claimed(OLD, verdict)) == []


def test_questioned_claims_may_be_dropped() -> None:
    there = issue(start=OLD.index(YEAR), end=len(OLD))
    assert lost(LENGTH, claimed(OLD, issues=(there,))) == []


def test_a_wrong_reference_doesnt_excuse_dropping_the_claim() -> None:
    there = issue(start=OLD.index(YEAR), end=len(OLD), rule="misattributed_reference")
    assert lost(LENGTH, claimed(OLD, issues=(there,))) == [YEAR]


def test_a_claim_lost_earlier_is_still_reported_once() -> None:
    assert lost(LENGTH, claimed(OLD), claimed(OLD), claimed(LENGTH)) == [YEAR]


def test_claims_in_scripts_without_spaces_are_separated() -> None:
    first, second = "大桥全长一百二十米。", "市长于去年主持通车。"
    assert lost(first, claimed(first + second)) == [second]


@pytest.mark.spec("REQ-CRITIC-012")
def test_a_lost_claim_is_an_issue_that_names_its_evidence() -> None:
    gone = dropped_claims((claimed(OLD),), LENGTH)
    gone = tuple(each.model_copy(update={"sources": ("chunk_2",)}) for each in gone)
    (found,) = issues.merge_issues(citations(), (), (), Settings(), gone)
    assert (found.rule, found.type, found.severity) == ("dropped_content", "missing_info", "medium")
    assert YEAR in found.description
    assert found.evidence_ids == ("chunk_2",)
    assert issues.merge_issues(citations(), (), (), Settings(strictness="lenient"), gone) == ()


def test_paraphrases_count_as_kept_and_removals_are_noticed() -> None:
    traps = json.loads(
        (Path(__file__).parents[1] / "offline" / "traps.json").read_text(encoding="utf-8")
    )
    paraphrases, kept, sentences, noticed = 0, 0, 0, 0
    for trap in traps:
        whole = " ".join(trap["evidence"])
        kept += sum(not lost(whole, claimed(claim)) for claim in trap["clean"])
        paraphrases += len(trap["clean"])
        parts = [part for text in trap["evidence"] for part in text.split(". ")]
        for at, part in enumerate(parts):
            noticed += bool(lost(". ".join([*parts[:at], *parts[at + 1 :]]), claimed(part)))
        sentences += len(parts)
    assert kept / paraphrases >= 0.9
    assert noticed / sentences >= 0.94


def test_a_long_answer_is_compared_in_linear_time() -> None:
    words = "".join(f"Word{number} follows word{number + 1} here. " for number in range(4_000))
    dropped_claims((claimed(OLD),), words * 2)


# An issue is fixed only where what it accused is gone or confirmed; until then it keeps its
# severity and its cost

RIGHT = "The bridge is 120 metres long [chunk_1]."
INVENTED = "Its mayor collects antique silver spoons from Portugal"
FAULTY = f"{RIGHT} {INVENTED} [chunk_99]."
BARE = f"{RIGHT} {INVENTED}."


class Undecided(ContentVerifier):
    """Confirms what the evidence says of the bridge, and leaves the rest open."""

    def judged(self, claim: Claim) -> ClaimCheck:
        verdict = "supported" if "120 metres" in claim.text else "unverifiable"
        return super().judged(claim).model_copy(update={"verdict": verdict})


def run(
    answer: str, *revisions: str, critic: ScriptedCritic | None = None, confirming: bool = False
) -> Run:
    """The run of an answer that a reviser, as fluent as any model, rewrites to these
    texts in turn.
    """
    filled = roles(
        verifier=ContentVerifier() if confirming else Undecided(),
        critic=critic or ScriptedCritic([said(0.9)]),
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
        BARE,
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
    [before] = [each for each in first.issues if each.rule == "fabricated_reference"]
    [after] = [each for each in second.issues if each.rule == "fabricated_reference"]
    assert (after.key, after.severity, after.carried_from) == (before.key, "critical", 1)
    assert "from Portugal" in second.answer[after.start : after.end]
    assert second.citation_audit.invalid_citations == ()
    assert second.citation_audit.penalty_factor <= first.citation_audit.penalty_factor == 0.5
    assert second.quality_score <= first.quality_score
    assert second.critique.hallucination_detected
    assert second.critique.has_major_issues
    assert second.evaluation.faithfulness == 0.4


def test_a_fabricated_reference_counts_the_same_after_its_marker_is_removed() -> None:
    first, second = run(FAULTY, BARE).iterations[:2]
    [reference] = second.citation_audit.carried_references
    assert second.critique.hallucination_detected, "because of that reference, and of nothing else"
    marked = second.citation_audit.model_copy(
        update={"invalid_citations": (reference,), "carried_references": ()}
    )
    assert fault_probability(second) == fault_probability(
        second.model_copy(update={"citation_audit": marked})
    )
    again = first.citation_audit.model_copy(update={"carried_references": (reference,)})
    assert fault_probability(
        first.model_copy(update={"citation_audit": again})
    ) > fault_probability(first)
    # one reason says it, too
    case = factories.case(BARE, evidence=list(EVIDENCE))
    reasons = assess([second], case, "max_iterations", Settings(), chosen=0).reasons
    assert [
        each.code for each in reasons if each.code in ("invalid_reference", "serious_issue")
    ] == ["invalid_reference"]


def test_a_carried_issue_is_counted_once_per_iteration() -> None:
    critic = ScriptedCritic([said(0.5), said(0.7), said(0.9)])
    found = run(FAULTY, BARE, BARE.replace("antique", "old"), critic=critic)
    third = found.iterations[2]
    assert [each.carried_from for each in third.issues if each.rule == "fabricated_reference"] == [
        1
    ]
    assert third.citation_audit.penalty_factor == pytest.approx(0.45)
    assert third.issues[-1].reason.count("still there") == 1
    assert len({each.id for each in third.issues}) == len(third.issues)


@pytest.mark.parametrize(
    ("revised", "confirming"),
    [
        (RIGHT, False),
        (f"{RIGHT} The evidence provided does not say whether its mayor collects spoons.", False),
        (f"{RIGHT} It opened in 1931 [chunk_2].", False),
        (BARE, True),
    ],
)
def test_an_issue_is_fixed_if_its_sentence_is_gone_or_confirmed(
    revised: str, confirming: bool
) -> None:
    second = run(FAULTY, revised, confirming=confirming).iterations[1]
    assert "fabricated_reference" not in {each.rule for each in second.issues}
    assert second.citation_audit.carried_references == ()
    assert not second.critique.hallucination_detected


def test_a_marker_removed_with_a_source_list_leaves_no_issue() -> None:
    second = run(
        f"{RIGHT}\n\nSources: [chunk_1], [chunk_99]", f"{RIGHT}\n\nSources: [chunk_1]"
    ).iterations[1]
    assert second.issues == ()


def test_a_critic_issue_stays_open_until_its_words_change() -> None:
    wrong = Objection(
        "factual", "test", "high", "Nobody says so.", "No source.", "Drop it.", quote=INVENTED
    )
    unclear = Objection(
        "ambiguity", "unclear", "high", "Which spoons?", "Vague.", "Say which.", quote=INVENTED
    )
    critic = ScriptedCritic([said(0.5, objections=(wrong, unclear)), said(0.9), said(0.9)])
    second, third = run(BARE, f"Yes. {BARE}", RIGHT, critic=critic).iterations[1:]
    assert [
        (each.rule, each.carried_from) for each in second.issues if each.source == "critic"
    ] == [("test", 1)]
    assert second.critique.has_major_issues
    assert third.issues == ()
    again = ScriptedCritic([said(0.5, objections=(wrong,)), said(0.9, objections=(wrong,))])
    second = run(BARE, f"Yes. {BARE}", critic=again).iterations[1]
    assert [
        (each.rule, each.carried_from) for each in second.issues if each.source == "critic"
    ] == [("test", None)]


WRONG = "The old bridge over the fjord is 510 metres long [chunk_1]."


@pytest.mark.parametrize(
    ("revised", "verdict", "open_still"),
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
    revised: str, verdict: str, open_still: bool
) -> None:
    accused = issue(
        source="claims",
        rule="contradicted_claim",
        type="contradiction",
        quote=WRONG,
        start=0,
        end=len(WRONG),
    )
    before = claimed(WRONG, "contradicted", issues=(accused,))
    after = claimed(revised, verdict)
    raised: tuple[Issue, ...] = (accused,) if verdict == "contradicted" else ()
    found = issues_still_open(
        before, revised, audit_citations(revised, EVIDENCE), after.claims, raised
    )
    assert [(each.severity, each.quote) for each in found] == (
        [("high", revised)] if open_still else []
    )

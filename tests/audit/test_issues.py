"""One list of issues, whoever raised them."""

from __future__ import annotations

from typing import get_args

import pytest

from masis.api.audits import audit_citations
from masis.audit import issues
from masis.audit.critique import Objection
from masis.schema.audit import Claim, Contradiction, IssueType, MissingPoint, ReferenceCheck
from masis.settings import Settings
from tests.audit.factories import EVIDENCE, check, citations

ANSWER = "The bridge is 120 metres long [chunk_99]. It opened in 1931."
SETTINGS = Settings()


def test_a_fabricated_reference_is_critical_and_comes_first() -> None:
    found = issues.merged(audit_citations(ANSWER, EVIDENCE), (check("unsupported", 0.1),), (), SETTINGS)
    assert [(issue.id, issue.rule, issue.severity) for issue in found] == [
        ("i1", "fabricated_reference", "critical"),
        ("i2", "uncited_sentence", "medium"),
        ("i3", "unsupported_claim", "high"),
    ]
    assert ANSWER[found[0].start : found[0].end] == "[chunk_99]"


@pytest.mark.spec("REQ-CRITIC-005")
def test_every_issue_says_what_why_and_what_to_do() -> None:
    point = MissingPoint(description="It was painted.", evidence_id="chunk_2")
    for issue in issues.merged(audit_citations(ANSWER, EVIDENCE), (check("contradicted", 0.1),), (point,), SETTINGS):
        assert issue.description
        assert issue.reason
        assert issue.suggestion


def test_a_partly_supported_claim_is_not_called_unsupported_and_not_to_be_removed() -> None:
    (found,) = issues.merged(audit_citations("", EVIDENCE), (check("partial", 0.5),), (), SETTINGS)
    assert found.rule == "partly_supported_claim"
    assert found.description.startswith("Supported only in part: ")
    assert found.reason == "The evidence supports part of this claim, not all of it."
    assert found.suggestion == "Say only what the evidence says, or cite evidence for the rest."


@pytest.mark.spec("REQ-CRITIC-003")
def test_each_type_has_a_word_in_both_specs() -> None:
    types = set(get_args(IssueType))
    assert set(issues.CRITIC_LOOP_TYPE) == types
    assert set(issues.DRAFT_CRITIQUE_TYPE) == types
    assert set(issues.CRITIC_LOOP_TYPE.values()) == {
        "logical", "factual", "safety", "ambiguity", "missing_info", "incomplete_reasoning",
    }  # fmt: skip
    assert set(issues.DRAFT_CRITIQUE_TYPE.values()) == {
        "hallucination", "unsupported", "incomplete", "contradiction", "outdated",
    }  # fmt: skip


@pytest.mark.spec("DRAFT-CRITIQUE-STRICTNESS")
def test_strictness_hides_lesser_claims_and_never_a_fabricated_reference() -> None:
    weak = (check("unsupported", 0.7), check("unsupported", 0.5), check("unsupported", 0.1))

    def rules(strictness: str) -> list[str]:
        settings = Settings(strictness=strictness)  # type: ignore[arg-type]
        found = issues.merged(audit_citations(ANSWER, EVIDENCE), weak, (), settings)
        return [issue.severity for issue in found if issue.rule in ("unsupported_claim", "fabricated_reference")]

    assert rules("lenient") == ["critical", "high"]
    assert rules("moderate") == ["critical", "medium", "high"]
    assert rules("strict") == ["critical", "low", "medium", "high"]


@pytest.mark.spec("DRAFT-CRITIQUE-OPTIONS")
def test_each_check_can_be_switched_off() -> None:
    checks = (check("unsupported", 0.1), check("contradicted", 0.1))
    missing = (MissingPoint(description="It was painted."),)

    def rules(**options: bool) -> set[str]:
        return {issue.rule for issue in issues.merged(citations(), checks, missing, Settings(**options))}

    assert rules() == {"unsupported_claim", "contradicted_claim", "missing_information"}
    assert rules(check_factual=False) == {"contradicted_claim", "missing_information"}
    assert rules(check_contradictions=False) == {"unsupported_claim", "missing_information"}
    assert rules(check_completeness=False) == {"unsupported_claim", "contradicted_claim"}


def test_a_contradiction_says_what_to_put_instead() -> None:
    contradiction = Contradiction(
        kind="number", claim_start=14, claim_end=17, claim_text="120", evidence_id="chunk_1",
        evidence_start=14, evidence_end=17, evidence_text="130", reason="the evidence has 130",
    )  # fmt: skip
    found = issues.merged(citations(), (check("contradicted", 0.1, contradictions=(contradiction,)),), (), SETTINGS)
    assert "'130', not '120'" in found[0].suggestion


def test_a_misattributed_reference_names_the_better_one() -> None:
    reference = ReferenceCheck(evidence_id="chunk_1", finding="misattributed", support=0.1, better="chunk_2")
    found = issues.merged(citations(), (check(references=(reference,)),), (), SETTINGS)
    assert [(issue.rule, issue.severity) for issue in found] == [("misattributed_reference", "high")]
    assert "chunk_2" in found[0].suggestion


def test_a_quote_of_the_critic_gets_its_place_in_the_answer() -> None:
    objection = Objection("logical", "r", "high", "d", "w", "s", quote="opened  in 1931")
    found = issues.raised([objection], ANSWER, ())
    assert ANSWER[found.issues[0].start : found.issues[0].end] == "opened in 1931"


def test_a_quote_that_is_not_in_the_answer_is_a_note_and_no_span() -> None:
    found = issues.raised([Objection("logical", "r", "high", "d", "w", "s", quote="it collapsed")], ANSWER, ())
    assert found.issues[0].start is None
    assert "it collapsed" in found.notes[0]


def test_an_issue_keeps_its_key_where_the_same_words_keep_the_same_fault() -> None:
    here = check("unsupported", 0.1, claim=Claim(text="It  opened in 1931.", start=0, end=19))
    there = check("unsupported", 0.2, claim=Claim(text="It opened in 1931.", start=40, end=58))
    first, second = (issues.merged(citations(), (one,), (), SETTINGS)[0] for one in (here, there))
    assert first.key == second.key

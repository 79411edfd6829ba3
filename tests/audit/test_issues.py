"""Issues from all sources are merged into one list, and rules in code apply to claim verdicts."""

from __future__ import annotations

from typing import Any, get_args

import pytest

from masis.api.audits import audit_citations
from masis.audit import claims, issues
from masis.audit.claims import Strictness, one_check_each
from masis.audit.critique import RawIssue
from masis.audit.text.assertions import citations_by_sentence, claim_within, is_assertion
from masis.schema.audit import (
    Claim,
    ClaimCheck,
    Contradiction,
    Issue,
    MissingPoint,
    ReferenceCheck,
)
from masis.schema.base import Unscored
from masis.schema.case import Severity
from masis.schema.issue_groups import about_same_words
from masis.schema.rules import CRITIC_LOOP_TYPE, DRAFT_CRITIQUE_TYPE, IssueType, rule_of
from masis.settings import Settings
from tests.audit.factories import EVIDENCE, check, citations
from tests.rules import for_each

ANSWER = "The bridge is 120 metres long [chunk_99]. It opened in 1931."
SETTINGS = Settings()


def test_a_fabricated_reference_is_critical_and_comes_first() -> None:
    merged = issues.merge_issues(
        audit_citations(ANSWER, EVIDENCE), (check("unsupported", 0.1),), (), SETTINGS
    )
    assert [(issue.id, issue.rule, issue.severity) for issue in merged] == [
        ("i1", "fabricated_reference", "critical"),
        ("i2", "uncited_sentence", "medium"),
        ("i3", "unsupported_claim", "high"),
    ]
    assert ANSWER[merged[0].start : merged[0].end] == "[chunk_99]"


@pytest.mark.spec("REQ-CRITIC-005")
def test_every_issue_has_a_description_a_reason_and_a_suggestion() -> None:
    point = MissingPoint(description="It was painted.", evidence_id="chunk_2")
    for issue in issues.merge_issues(
        audit_citations(ANSWER, EVIDENCE), (check("contradicted", 0.1),), (point,), SETTINGS
    ):
        assert issue.description
        assert issue.reason
        assert issue.suggestion


def test_a_partly_supported_claim_isnt_called_unsupported() -> None:
    (found_issue,) = issues.merge_issues(
        audit_citations("", EVIDENCE), (check("partial", 0.5),), (), SETTINGS
    )
    assert found_issue.rule == "partly_supported_claim"
    assert found_issue.description.startswith("Supported only in part: ")
    assert found_issue.reason == "The evidence supports part of this claim, not all of it."
    assert (
        found_issue.suggestion == "Say only what the evidence says, or cite evidence for the rest."
    )


def test_an_unjudged_claim_is_neither_flagged_nor_revised() -> None:
    unjudged = check("unscored", None, issue=None, unscored=Unscored(reason="the server timed out"))
    (found_issue,) = issues.merge_issues(audit_citations("", EVIDENCE), (unjudged,), (), SETTINGS)
    assert (found_issue.type, found_issue.rule) == ("missing_info", "unscored_claim")
    assert found_issue.description == "Not judged: “The bridge is long.”"
    assert found_issue.reason == "There is no verdict on this claim. That doesn't mean it's wrong."
    assert found_issue.suggestion == "Audit the answer again, or have a person decide this claim."
    assert rule_of(found_issue.rule).is_undecided


def make_raw_issue(
    severity: Severity, type_: IssueType = "contradiction", quote: str | None = "90 metres"
) -> RawIssue:
    return RawIssue(
        type_, f"critic_{type_}", severity, "It is wrong.", "Because.", "Mend it.", quote
    )


LENGTH = "The bridge is 90 metres long. It opened in 1931."


@pytest.mark.parametrize(
    ("severity", "expected"),
    [("low", "high"), ("medium", "high"), ("high", "high"), ("critical",) * 2],
)
def test_a_quoted_contradiction_is_at_least_serious(severity: Severity, expected: Severity) -> None:
    (raised_issue,) = issues.raise_issues("critic", [make_raw_issue(severity)], LENGTH, ()).issues
    assert raised_issue.severity == expected


@pytest.mark.parametrize("type_", ["hallucination", "unsupported", "factual", "outdated"])
def test_unsupported_words_of_a_contradicted_claim_are_serious(
    type_: IssueType,
) -> None:
    contradicted_check = check(
        "contradicted", 0.0, claim=Claim(text="The bridge is 90 metres long.", start=0, end=29)
    )
    earlier_issues = issues.merge_issues(
        audit_citations(LENGTH, EVIDENCE), (contradicted_check,), (), SETTINGS
    )
    raw_issues = [
        make_raw_issue("low", type_),
        make_raw_issue("low", type_, quote="It opened in 1931."),
    ]
    assert [
        issue.severity
        for issue in issues.raise_issues("critic", raw_issues, LENGTH, earlier_issues).issues
    ] == [
        "high",
        "low",
    ]
    assert [
        issue.severity for issue in issues.raise_issues("critic", raw_issues, LENGTH, ()).issues
    ] == [
        "low",
        "low",
    ]


def test_other_critic_issues_keep_their_severity() -> None:
    raw_issues = [
        make_raw_issue("medium", quote=None),
        make_raw_issue("medium", quote="80 metres"),
        make_raw_issue("low", "ambiguity"),
    ]
    assert [
        issue.severity for issue in issues.raise_issues("critic", raw_issues, LENGTH, ()).issues
    ] == [
        "medium",
        "medium",
        "low",
    ]
    conflict = make_raw_issue("medium")._replace(rule="source_conflict")
    assert issues.raise_issues("critic", [conflict], LENGTH, ()).issues[0].severity == "medium"


@pytest.mark.spec("REQ-CRITIC-003")
def test_each_type_maps_to_both_specs() -> None:
    types = set(get_args(IssueType))
    assert set(CRITIC_LOOP_TYPE) == types
    assert set(DRAFT_CRITIQUE_TYPE) == types
    assert set(CRITIC_LOOP_TYPE.values()) == {
        "logical", "factual", "safety", "ambiguity", "missing_info", "incomplete_reasoning",
    }  # fmt: skip
    assert set(DRAFT_CRITIQUE_TYPE.values()) == {
        "hallucination", "unsupported", "incomplete", "contradiction", "outdated",
    }  # fmt: skip


@pytest.mark.spec("DRAFT-CRITIQUE-STRICTNESS", "CRITIC-LOOP-STRATEGY")
def test_strictness_hides_minor_claims_but_never_fabricated_references() -> None:
    unsupported_checks = (
        check("unsupported", 0.7),
        check("unsupported", 0.5),
        check("unsupported", 0.1),
    )

    def rules(strictness: str) -> list[str]:
        settings = Settings(strictness=strictness)
        merged = issues.merge_issues(
            audit_citations(ANSWER, EVIDENCE), unsupported_checks, (), settings
        )
        return [
            issue.severity
            for issue in merged
            if issue.rule in ("unsupported_claim", "fabricated_reference")
        ]

    assert rules("lenient") == ["critical", "high"]
    assert rules("moderate") == rules(SETTINGS.strictness) == ["critical", "medium", "high"]
    assert rules("strict") == ["critical", "low", "medium", "high"]


@pytest.mark.spec("DRAFT-CRITIQUE-OPTIONS")
def test_each_check_can_be_disabled() -> None:
    checks = (check("unsupported", 0.1), check("contradicted", 0.1))
    missing = (MissingPoint(description="It was painted."),)

    def rules(**options: bool) -> set[str]:
        return {
            issue.rule
            for issue in issues.merge_issues(citations(), checks, missing, Settings(**options))
        }

    assert rules() == {"unsupported_claim", "contradicted_claim", "missing_information"}
    merged = issues.merge_issues(citations(), checks, missing, Settings())
    assert {issue.rule: issue.point for issue in merged if issue.point} == {
        "missing_information": "It was painted."
    }
    assert rules(check_factual=False) == {"contradicted_claim", "missing_information"}
    assert rules(check_contradictions=False) == {"unsupported_claim", "missing_information"}
    assert rules(check_completeness=False) == {"unsupported_claim", "contradicted_claim"}


def test_a_contradiction_suggests_the_correct_value() -> None:
    contradiction = Contradiction(
        kind="number", claim_start=14, claim_end=17, claim_text="120", evidence_id="chunk_1",
        evidence_start=14, evidence_end=17, evidence_text="130", reason="the evidence has 130",
    )  # fmt: skip
    merged = issues.merge_issues(
        citations(), (check("contradicted", 0.1, contradictions=(contradiction,)),), (), SETTINGS
    )
    assert merged[0].suggestion == "Correct “120”: chunk_1 says “130”."
    in_source = contradiction.model_copy(
        update={"kind": "source", "evidence_text": "Minutes (Judge Ash)."}
    )
    merged = issues.merge_issues(
        citations(), (check("contradicted", 0.1, contradictions=(in_source,)),), (), SETTINGS
    )
    assert (
        merged[0].suggestion == "Correct “120”: the source of chunk_1 reads “Minutes (Judge Ash)”."
    )


def test_a_misattributed_reference_suggests_the_right_one() -> None:
    reference = ReferenceCheck(
        evidence_id="chunk_1", finding="misattributed", support=0.1, better="chunk_2"
    )
    merged = issues.merge_issues(citations(), (check(references=(reference,)),), (), SETTINGS)
    assert [(issue.rule, issue.severity) for issue in merged] == [
        ("misattributed_reference", "high")
    ]
    assert "chunk_2" in merged[0].suggestion


def test_a_critics_quote_is_located_in_the_answer() -> None:
    raw_issue = RawIssue("logical", "r", "high", "d", "w", "s", quote="opened  in 1931")
    raised = issues.raise_issues("critic", [raw_issue], ANSWER, ())
    assert ANSWER[raised.issues[0].start : raised.issues[0].end] == "opened in 1931"


def test_a_critics_quote_not_in_the_answer_becomes_a_note() -> None:
    raised = issues.raise_issues(
        "critic",
        [RawIssue("logical", "r", "high", "d", "w", "s", quote="it collapsed")],
        ANSWER,
        (),
    )
    assert raised.issues[0].start is None
    assert "it collapsed" in raised.notes[0]


def test_an_unchanged_fault_keeps_its_issue_key() -> None:
    first_check = check(
        "unsupported", 0.1, claim=Claim(text="It  opened in 1931.", start=0, end=19)
    )
    second_check = check(
        "unsupported", 0.2, claim=Claim(text="It opened in 1931.", start=40, end=58)
    )
    first, second = (
        issues.merge_issues(citations(), (check_,), (), SETTINGS)[0]
        for check_ in (first_check, second_check)
    )
    assert first.key == second.key


def test_another_unit_or_sign_changes_the_issue_key() -> None:
    claims = (Claim(text=f"It draws {value}.") for value in ("5 MW", "5 mW", "−5 MW", "5 MW²"))
    merged = [
        issues.merge_issues(citations(), (check("unsupported", 0.1, claim=claim),), (), SETTINGS)[0]
        for claim in claims
    ]
    assert len({issue.key for issue in merged}) == 4


# Sentences and parts of sentences as claims, and the rules in code for their verdicts


@pytest.mark.spec("DRAFT-CRITIQUE-CONFIDENCE")
def test_confidence_averages_support_and_the_verified_share() -> None:
    report = claims.report(
        (check(support=0.9), check("unsupported", 0.3), check("unsupported", 0.0))
    )
    assert report.confidence == pytest.approx((0.4 + 1 / 3) / 2)
    assert (report.facts_checked, report.facts_verified) == (3, 1)


@pytest.mark.spec("DRAFT-CRITIQUE-CONFIDENCE")
def test_an_answer_without_claims_has_no_confidence() -> None:
    assert claims.report(()).confidence == 0.5


@pytest.mark.spec("DRAFT-CRITIQUE-SEVERITY")
@pytest.mark.parametrize(
    ("verdict", "support", "severity"),
    [
        *(("unsupported", support, "high") for support in (0.0, 0.29)),
        *(("unsupported", support, "medium") for support in (0.3, 0.59)),
        ("unsupported", 0.6, "low"),
        ("contradicted", 0.9, "high"),
        ("supported", 0.9, None),
    ],
)
def test_severity_follows_verdict_and_support(
    verdict: str, support: float, severity: str | None
) -> None:
    assert claims.severity(check(verdict, support)) == severity


@pytest.mark.spec("DRAFT-CRITIQUE-VERIFY")
def test_a_claim_without_a_verdict_is_never_supported() -> None:
    first, second = Claim(text="One.", start=0, end=4), Claim(text="Two.", start=5, end=9)
    matched_checks = claims.one_check_each((first, second), (check(claim=second),))
    assert [matched_check.verdict for matched_check in matched_checks] == ["unscored", "supported"]
    assert matched_checks[0].support is None


def test_an_extra_verdict_is_ignored() -> None:
    claim = Claim(text="One.", start=0, end=4)
    matched_checks = claims.one_check_each(
        (claim,), (check(claim=Claim(text="Invented.")), check("unsupported", 0.1, claim=claim))
    )
    assert [matched_check.verdict for matched_check in matched_checks] == ["unsupported"]


TWO_CITED = "How long is it? The bridge is 120 metres long and opened in 1931 [chunk_1][chunk_2]."


def test_a_question_isnt_a_claim() -> None:
    assert [
        is_assertion(sentence) for sentence in audit_citations(TWO_CITED, EVIDENCE).sentences
    ] == [
        False,
        True,
    ]


def test_a_sentence_claim_has_its_markers_and_citations() -> None:
    audit = audit_citations(TWO_CITED, EVIDENCE)
    claim = claim_within(
        1, audit.sentences[1].text, audit.sentences[1].start, citations_by_sentence(audit)[1]
    )
    assert TWO_CITED[claim.start : claim.end] == claim.text
    assert [claim.text[start:end] for start, end in claim.markers] == ["[chunk_1]", "[chunk_2]"]
    assert claim.cited == ("chunk_1", "chunk_2")


def test_a_partial_sentence_inherits_citations_without_other_markers() -> None:
    audit = audit_citations(TWO_CITED, EVIDENCE)
    start = TWO_CITED.index("The bridge")
    claim = claim_within(1, "The bridge is 120 metres long", start, citations_by_sentence(audit)[1])
    assert claim.markers == ()
    assert claim.cited == ("chunk_1", "chunk_2")


def test_two_equal_claims_keep_separate_verdicts() -> None:
    first, second = (
        Claim(text="A and B rose and fell.", statement=statement, start=0, end=22)
        for statement in ("A rose.", "B fell.")
    )
    checks = [
        ClaimCheck(claim=second, verdict="unsupported", support=0.0, confidence=1.0),
        ClaimCheck(claim=first, verdict="supported", support=1.0, confidence=1.0),
    ]
    assert [check.verdict for check in one_check_each([first, second], checks)] == [
        "supported",
        "unsupported",
    ]


@pytest.mark.spec("DRAFT-CRITIQUE-STRICTNESS")
def test_strictness_filters_by_severity() -> None:
    severities: tuple[Severity, ...] = ("critical", "high", "medium", "low")
    reported = {
        strictness: [
            severity for severity in severities if claims.is_reported(severity, strictness)
        ]
        for strictness in get_args(Strictness)
    }
    assert reported == {
        "lenient": ["critical", "high"],
        "moderate": ["critical", "high", "medium"],
        "strict": [*severities],
    }


def issue_at(rule: str, start: int, end: int, **changes: Any) -> Issue:
    return Issue(
        id="i",
        key=rule,
        rule=rule,
        severity="high",
        description="It is wrong.",
        reason="Because.",
        suggestion="",
        start=start,
        end=end,
        **(
            {
                "type": rule_of(rule).type,
                "source": "critic" if rule.startswith("critic_") else "claims",
            }
            | changes
        ),
    )


MARKED = "It fell by half and cost 3 million [9]. It is old."
MARKER = (MARKED.index("[9]"), MARKED.index("[9]") + 3)
SENTENCE = (0, MARKED.index("."))
LAST_CLAIM = (MARKED.index("cost"), MARKER[0] - 1)


@for_each(
    {
        "the sentence as unsupported": ("unsupported_claim", SENTENCE, {}),
        "the sentence as contradicted": ("contradicted_claim", SENTENCE, {}),
        "the words before the marker as unsupported": ("unsupported_claim", LAST_CLAIM, {}),
        "the words before the marker as invented": (
            "critic_hallucination",
            (0, MARKER[0] - 1),
            {"type": "hallucination"},
        ),
        "the marker as invented": ("critic_hallucination", MARKER, {"type": "hallucination"}),
    }.values()
)
def test_a_fabricated_citation_and_its_sentence_are_one_issue(
    row: tuple[str, tuple[int, int], dict[str, Any]],
) -> None:
    rule, span, changes = row
    marker = issue_at("fabricated_reference", *MARKER, source="citations")
    other = issue_at(rule, *span, **changes)
    for order in ([marker, other], [other, marker]):
        assert len(about_same_words(order)) == 1


def test_what_the_critic_says_about_a_sentence_joins_the_claim_and_the_marker() -> None:
    marker = issue_at("fabricated_reference", *MARKER, source="citations")
    claim = issue_at("unsupported_claim", *SENTENCE)
    critic = issue_at("critic_contradiction", 0, MARKER[0] - 4, type="contradiction")
    (group,) = about_same_words([marker, claim, critic])
    assert {issue.rule for issue in group} == {marker.rule, claim.rule, critic.rule}


@pytest.mark.parametrize(
    ("rule", "type_"),
    [
        ("contradicted_claim", "contradiction"),
        ("critic_contradiction", "contradiction"),
        ("critic_outdated", "outdated"),
        ("critic_factual", "factual"),
    ],
)
def test_a_fabricated_citation_doesnt_hide_another_fault_of_the_claim_before_it(
    rule: str, type_: str
) -> None:
    marker = issue_at("fabricated_reference", *MARKER, source="citations")
    claim = issue_at(rule, *LAST_CLAIM, type=type_)
    for order in ([marker, claim], [claim, marker]):
        assert sorted(group[0].rule for group in about_same_words(order)) == sorted(
            (claim.rule, marker.rule)
        )


def test_different_faults_beside_each_other_stay_two_issues() -> None:
    first = issue_at("contradicted_claim", 0, 15)
    second = issue_at("unsupported_claim", 16, LAST_CLAIM[1])
    marker = issue_at("fabricated_reference", *MARKER, source="citations")
    far = issue_at("unsupported_claim", MARKER[1] + 2, len(MARKED))
    unsafe = issue_at("critic_safety", 0, 15, type="safety")
    assert len(about_same_words([first, second])) == 2
    assert len(about_same_words([first, marker])) == 2
    assert len(about_same_words([marker, far])) == 2
    assert len(about_same_words([issue_at("unsupported_claim", *SENTENCE), marker, unsafe])) == 2
    other_marker = issue_at("fabricated_reference", MARKER[1], MARKER[1] + 3, source="citations")
    assert len(about_same_words([marker, other_marker])) == 2

"""House rules in an audit: checks without a model, and what rules do to the critic's issues."""

from __future__ import annotations

import pytest

from masis.audit.citations import audit_citations
from masis.audit.critique import CritiqueJudgement, RawIssue
from masis.audit.house_rules import (
    MOST_MATCHES,
    apply_house_rules,
    assert_pattern,
    check_house_rules,
    find_matches,
)
from masis.errors import InputError
from masis.schema.audit import Issue
from masis.schema.case import Case, Evidence
from masis.schema.judge import CodeCheck, HouseRule, JudgeContent, SeverityRule

CHUNK = Evidence(id="c1", text="The pump costs 300 euros.", source="prices.pdf")


def issues_of(
    answer: str, *rules: HouseRule, evidence: tuple[Evidence, ...] = (CHUNK,)
) -> list[Issue]:
    case = Case(id="a", query="What does it cost?", evidence=evidence, answer=answer)
    audit = audit_citations(answer, evidence)
    return list(check_house_rules(JudgeContent(rules=rules), case, answer, audit, ()))


def rule(force: str, **fields: object) -> HouseRule:
    return HouseRule.model_validate(
        {"id": "r1", "sentence": "A sentence", "force": force, "severity": "high", **fields}
    )


def test_a_pattern_finds_the_words_that_an_answer_must_not_have() -> None:
    check = CodeCheck(kind="pattern", text=r"\d+ (?:EUR|USD)")
    [issue] = issues_of("It costs 300 EUR [c1].", rule("must_not", check=check))
    assert issue.quote == "300 EUR"
    assert (issue.rule, issue.severity, issue.source) == ("house_r1", "high", "checks")
    assert "House rule r1: “A sentence”" in issue.reason


def test_a_pattern_that_an_answer_must_have_raises_one_issue_if_it_is_absent() -> None:
    check = CodeCheck(kind="pattern", text="(?i)as of 20[0-9]{2}")
    [issue] = issues_of("It costs 300 euros [c1].", rule("must", check=check))
    assert issue.start is None
    assert not issues_of("As of 2024 it costs 300 euros [c1].", rule("must", check=check))


def test_a_hostile_pattern_takes_linear_time() -> None:
    # Python's own engine would need about 2 to the power of 20,000 steps for these.
    for pattern in ("(a+)+$", "(a|aa)+$", "(.*)*x"):
        assert find_matches(pattern, "a" * 20_000 + "!") == []


@pytest.mark.parametrize("pattern", ["(", "a)(b", r"(a)\1", "(?=a)", "((a{100}){100}){100}"])
def test_a_pattern_that_cannot_be_matched_in_linear_time_is_refused(pattern: str) -> None:
    with pytest.raises(InputError, match="isn't a supported regular expression"):
        assert_pattern(pattern)


def test_matches_are_found_beside_characters_that_mark_them() -> None:
    text = "\ue000 tö 12\ue001 7"
    assert [text[match.start : match.end] for match in find_matches(r"\d+", text)] == ["12", "7"]
    assert find_matches("x*", "aa") == []


def test_a_banned_phrase_is_found_in_any_case_and_spacing_but_not_within_a_word() -> None:
    check = CodeCheck(kind="banned_phrase", text="as an AI")
    [issue] = issues_of("As  an\nai, I think so [c1].", rule("must_not", check=check))
    assert issue.quote == "As  an\nai"
    assert not issues_of("Has an aim [c1].", rule("must_not", check=check))


def test_an_answer_longer_than_allowed_raises_an_issue() -> None:
    check = CodeCheck(kind="maximal_length", limit=3)
    [issue] = issues_of("It costs 300 euros.", rule("must", check=check))
    assert "4 words, and at most 3" in issue.description
    assert not issues_of("It costs 300.", rule("must", check=check))
    letters = CodeCheck(kind="maximal_length", limit=3, unit="characters")
    assert issues_of("It costs", rule("must", check=letters))


def test_a_required_citation_counts_by_id_and_by_source_and_only_if_the_case_has_it() -> None:
    for name in ("c1", "PRICES.pdf", ""):
        required = rule("must", check=CodeCheck(kind="required_citation", text=name))
        assert issues_of("It costs 300 euros.", required)
        assert issues_of("It costs 300 euros [c9].", required)
        assert not issues_of("It costs 300 euros [c1].", required)
    absent = rule("must", check=CodeCheck(kind="required_citation", text="terms.pdf"))
    assert not issues_of("It costs 300 euros.", absent)


def test_one_check_raises_a_limited_number_of_issues() -> None:
    check = CodeCheck(kind="banned_phrase", text="very")
    assert len(issues_of("very " * 50, rule("must_not", check=check))) == MOST_MATCHES


def judgement(*raw_issues: RawIssue) -> CritiqueJudgement:
    return CritiqueJudgement(
        confidence=0.9,
        hallucination_detected=False,
        needs_retry=False,
        overall_quality_score=0.9,
        critique_confidence=0.9,
        critique_reasoning="",
        raw_issues=raw_issues,
        unsupported_claims=tuple(raw_issue.quote or "" for raw_issue in raw_issues),
    )


def raw_issue(type_: str = "factual", severity: str = "high", **fields: str) -> RawIssue:
    values = {"description": "It rounds.", "reason": "", "suggestion": "", "quote": "about 300"}
    return RawIssue(type_, f"critic_{type_}", severity, **{**values, **fields})  # type: ignore[arg-type]


def test_an_issue_that_does_not_matter_is_dropped_and_the_record_names_the_rule() -> None:
    content = JudgeContent(rules=(rule("does_not_matter", severity=None),))
    ruled, [ruling] = apply_house_rules(judgement(raw_issue(house_rule="r1")), content)
    assert ruled.raw_issues == ()
    assert ruled.unsupported_claims == ()
    assert (ruling.rule, ruling.sentence, ruling.effect) == ("r1", "A sentence", "dropped")
    assert (ruling.before, ruling.after, ruling.quote) == ("high", None, "about 300")


def test_an_issue_that_matters_less_is_lowered_and_never_raised() -> None:
    content = JudgeContent(rules=(rule("does_not_matter", severity="medium"),))
    high, low = raw_issue(house_rule="r1"), raw_issue(severity="low", house_rule="r1")
    ruled, rulings = apply_house_rules(judgement(high, low), content)
    assert [issue.severity for issue in ruled.raw_issues] == ["medium", "low"]
    assert [ruling.effect for ruling in rulings] == ["lowered"]


def test_a_hostile_answer_cannot_use_a_rule_against_issues_that_it_is_not_about() -> None:
    # The model names the rule, and the answer may have talked it into that.
    safety = raw_issue("safety", house_rule="r1")
    any_type = JudgeContent(rules=(rule("does_not_matter", severity=None),))
    assert apply_house_rules(judgement(safety), any_type).judgement.raw_issues == (safety,)
    wording = rule("does_not_matter", severity=None, issue_types=("ambiguity",))
    invented = raw_issue("hallucination", house_rule="r1")
    ruled, rulings = apply_house_rules(judgement(invented), JudgeContent(rules=(wording,)))
    assert ruled.raw_issues == (invented,)
    assert rulings == ()


def test_a_rule_that_does_not_exist_changes_nothing() -> None:
    raised = raw_issue(house_rule="r9")
    assert apply_house_rules(judgement(raised), JudgeContent()).judgement.raw_issues == (raised,)


def test_an_issue_that_breaks_a_rule_has_its_severity_and_names_it() -> None:
    content = JudgeContent(rules=(rule("must"),))
    ruled, [ruling] = apply_house_rules(
        judgement(raw_issue(severity="low", house_rule="r1")), content
    )
    [issue] = ruled.raw_issues
    assert (issue.rule, issue.severity) == ("house_r1", "high")
    assert issue.reason.startswith("House rule r1: “A sentence”")
    assert ruling.effect == "raised"


def test_the_severity_table_decides_about_issues_of_no_rule() -> None:
    content = JudgeContent(
        rules=(rule("must"),), severities=(SeverityRule(type="factual", severity="low"),)
    )
    named, other = raw_issue(house_rule="r1"), raw_issue()
    ruled, rulings = apply_house_rules(judgement(named, other), content)
    assert [issue.severity for issue in ruled.raw_issues] == ["high", "low"]
    assert [(ruling.rule, ruling.effect) for ruling in rulings] == [("", "lowered")]

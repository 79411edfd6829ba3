"""House rules and judge versions as records."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from masis.schema.judge import (
    CHECK_KINDS,
    FORCES,
    JUDGE_STATES,
    CheckKind,
    CodeCheck,
    HouseRule,
    JudgeContent,
    RuleExample,
    SeverityRule,
    question_id,
)

CURRENCY = HouseRule(
    id="currency",
    sentence="A price without its currency is a serious issue",
    force="must",
    severity="high",
)
ROUNDING = HouseRule(
    id="rounding", sentence="Rounded figures", force="does_not_matter", severity="low"
)


def test_any_change_of_what_the_judge_is_told_changes_the_digest() -> None:
    with_example = CURRENCY.model_copy(update={"examples": (RuleExample(case_id="a"),)})
    contents = (
        JudgeContent(),
        JudgeContent(rules=(CURRENCY,)),
        JudgeContent(rules=(CURRENCY, ROUNDING)),
        JudgeContent(rules=(with_example,)),
        JudgeContent(severities=(SeverityRule(type="outdated", severity="low"),)),
        JudgeContent(example_cases=("a",)),
        JudgeContent(held_out=(question_id("a"),)),
        JudgeContent(critic="dspy:careful@1"),
    )
    assert len({content.digest for content in contents}) == len(contents)


def test_held_out_questions_alone_leave_the_default_judge() -> None:
    assert JudgeContent(held_out=(question_id("a"),)).is_empty
    assert JudgeContent(example_cases=("a",), examples_shown=0).is_empty
    assert not JudgeContent(example_cases=("a",)).is_empty


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        ({"force": "must"}, "needs a severity"),
        ({"force": "does_not_matter", "severity": "high"}, "can only lower"),
        ({"force": "must", "severity": "low", "issue_types": ("factual",)}, "no issue types"),
        (
            {"force": "must", "severity": "low", "check": {"kind": "banned_phrase", "text": "a"}},
            "can't be checked",
        ),
        ({"force": "must", "severity": "low", "sentence": "a\x00b"}, "null byte"),
    ],
)
def test_a_rule_that_contradicts_itself_is_refused(fields: dict[str, object], problem: str) -> None:
    with pytest.raises(ValidationError, match=problem):
        HouseRule.model_validate({"id": "a", "sentence": "A sentence", **fields})


def test_a_rule_never_lowers_safety_unless_it_names_it() -> None:
    assert ROUNDING.may_lower("factual")
    assert not ROUNDING.may_lower("safety")
    assert ROUNDING.model_copy(update={"issue_types": ("safety",)}).may_lower("safety")
    assert not CURRENCY.may_lower("factual")


@pytest.mark.parametrize("kind", CHECK_KINDS)
def test_every_kind_of_check_says_what_it_needs(kind: CheckKind) -> None:
    row = CHECK_KINDS[kind]
    complete = {"text": "a" if row.needs_text else "", "limit": 5 if row.needs_limit else None}
    CodeCheck.model_validate({"kind": kind, **complete})
    assert set(row.forces) <= set(FORCES)
    if row.needs_text or row.needs_limit:
        with pytest.raises(ValidationError, match="needs a"):
            CodeCheck(kind=kind)


def test_two_rules_or_two_rows_for_one_thing_are_refused() -> None:
    with pytest.raises(ValidationError, match="two rules have the same id"):
        JudgeContent(rules=(CURRENCY, CURRENCY))
    row = SeverityRule(type="factual", severity="low")
    with pytest.raises(ValidationError, match="same type of issue"):
        JudgeContent(severities=(row, row))


def test_a_state_is_followed_only_by_states_that_exist() -> None:
    assert {state for row in JUDGE_STATES.values() for state in row.then} <= set(JUDGE_STATES)

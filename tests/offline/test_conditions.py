"""Values that hold under a condition only: found where an answer names none, else left alone."""

from __future__ import annotations

import pytest

from masis.audit.citations import audit_citations
from masis.audit.context import AuditContext
from masis.offline.roles.conditions import Assumption, assumptions, dependency_phrase, under_other_conditions
from masis.offline.roles.reviser import OfflineReviser
from masis.offline.roles.verifier import OfflineVerifier
from masis.schema.audit import Claim, Issue
from masis.schema.case import Evidence
from tests.audit import factories

PLANS = ("Starter plan: 500 calls per hour", "Business plan: 5,000 calls per hour")


def context(query: str, answer: str, *texts: str, issues: tuple[Issue, ...] = ()) -> AuditContext:
    evidence = tuple(Evidence(id=f"s{n}", text=text) for n, text in enumerate(texts, 1))
    cited, verifier = audit_citations(answer, evidence), OfflineVerifier()
    checks = verifier.verify(verifier.extract(answer, cited, query), evidence)
    return AuditContext(query, answer, evidence, cited, checks, (), issues, 1)


def assumed(query: str, answer: str, *texts: str) -> list[Assumption]:
    return list(assumptions(context(query, answer, *texts)))


def test_a_value_of_one_of_two_labels_is_an_assumption() -> None:
    [found] = assumed("How many calls can I make?", "You can make 5,000 calls per hour.", *PLANS)
    assert (found.value, found.by) == ("5,000", "plan")
    assert (found.chosen.evidence_id, found.chosen.condition) == ("s2", "Business plan")
    assert [(other.value, other.condition) for other in found.others] == [("500", "Starter plan")]


@pytest.mark.parametrize(
    ("query", "answer"),
    [
        ("How many calls can I make on the Business plan?", "You can make 5,000 calls per hour."),
        ("How many calls can I make?", "On the Business plan you can make 5,000 calls per hour."),
        ("How many calls can I make?", "You can make 500 or 5,000 calls per hour, by plan."),
        ("How many calls can I make?", "You can make 700 calls per hour."),
        ("How many calls can I make?", "You can make calls."),
    ],
)
def test_a_named_condition_both_values_and_another_value_are_no_assumption(query: str, answer: str) -> None:
    assert assumed(query, answer, *PLANS) == []


@pytest.mark.parametrize(
    ("query", "answer", "texts"),
    [
        ("How high is the tower?", "It is 52 m high.", ("The tower is 52 m high. The gatehouse is 11 m high.",)),
        (
            "How long does delivery take?",
            "Delivery takes 5 days.",
            ("Delivery takes 5 days. Express delivery takes 2 days.",),
        ),
        (
            "When was the treaty signed?",
            "The treaty was signed in 1852.",
            ("The treaty was signed in 1852 at Oslo. It was renewed in 1870.",),
        ),
        (
            "How long is the bridge?",
            "The bridge is 300 m long.",
            ("The bridge is 300 m long and its towers are 80 m high.",),
        ),
        ("How much is a dose?", "A dose is 10 mg.", ("A dose is between 5 and 10 mg a day.",)),
        (
            "What does parking in zone A cost?",
            "It costs 4 euros per hour.",
            ("Zone A: 4 euros per hour", "Zone B: 2 euros per hour"),
        ),
        (
            "How many people live there now?",
            "It has 4,600 inhabitants.",
            ("In 2019 it had 4,100 inhabitants. In 2023 it had 4,600 inhabitants.",),
        ),
        (
            "When was the flight?",
            "The damper was tested on 13 April 2022.",
            ("13 April 2022, 41 minutes.", "11 April 2022, 18 minutes."),
        ),
    ],
)
def test_other_things_exceptions_ranges_and_what_holds_now_are_no_conditions(
    query: str, answer: str, texts: tuple[str, ...]
) -> None:
    assert assumed(query, answer, *texts) == []


def test_an_exception_given_as_the_rule_is_an_assumption() -> None:
    text = "Delivery takes 5 days. Express delivery takes 2 days."
    [found] = assumed("How long does delivery take?", "Delivery takes 2 days.", text)
    assert [other.condition for other in found.others] == [""]


def test_a_condition_in_the_same_sentence_is_quoted_whole() -> None:
    text = "For patients under 50 kg the dose is 200 mg; for patients of 50 kg or more it is 400 mg."
    [found] = assumed("What is the dose?", "The dose is 400 mg.", text)
    assert found.chosen.condition == "of 50 kg or more"
    assert [other.value for other in found.others] == ["200 mg"]


def test_values_under_conditions_of_their_own_do_not_disagree() -> None:
    evidence = [Evidence(id="1", text="Free: 10"), Evidence(id="2", text="Pro: 100")]
    assert under_other_conditions(evidence, "Pro: 100", "2", "1")
    rules = [Evidence(id=f"{n}", text=f"Under the {n} rules, appeals take {n % 100} days.") for n in (2015, 2021)]
    assert under_other_conditions(rules, "Under the 2021 rules, appeals take 21 days.", "2021", "2015")
    told = [Evidence(id="1", text="The fire killed 12 people."), Evidence(id="2", text="The blaze killed 15 people.")]
    assert not under_other_conditions(told, "The fire killed 12 people.", "1", "2")


@pytest.mark.parametrize(
    ("query", "answer", "text", "conditions"),
    [
        (
            "What share of patients improved?",
            "62% of patients improved.",
            "In the treatment arm 62% of patients improved, compared with 41% in the control arm.",
            ("treatment arm", "control arm"),
        ),
        (
            "When do applications close?",
            "Applications close on 15 January.",
            "Applications from EU citizens close on 1 June. Applications from everyone else close on 15 January.",
            ("from everyone else", "from EU citizens"),
        ),
        (
            "How long is it valid?",
            "It is valid for 2 years.",
            "| Class | Valid for |\n|---|---|\n| Private | 2 years |\n| Commercial | 1 year |",
            ("Private", "Commercial"),
        ),
        (
            "How high may the fence be?",
            "The fence may be up to 2 metres high.",
            "Fences facing a road may be up to 1 metre high; all other fences may be up to 2 metres high.",
            ("all other", "Fences facing"),
        ),
        (
            "How long should the bread bake?",
            "Bake the bread for 35 minutes.",
            "Bake small loaves for 25 minutes and large loaves for 35 minutes.",
            ("large loaves", "Bake small loaves"),
        ),
        (
            "How many days of leave do employees get?",
            "Employees get 30 days of leave.",
            "Employees get 25 days of leave. Those over 50 get 30 days.",
            ("over 50", ""),
        ),
        (
            "What does parking cost?",
            "Parking costs 4 euros per hour.",
            "Zone A: 4 euros per hour\nZone B: 2 euros per hour",
            ("Zone A", "Zone B"),
        ),
    ],
)
def test_conditions_are_quoted_from_comparisons_sentences_and_tables(
    query: str, answer: str, text: str, conditions: tuple[str, str]
) -> None:
    [found] = assumed(query, answer, text)
    assert (found.chosen.condition, *(other.condition for other in found.others)) == conditions


def test_the_subject_of_a_claim_is_said_to_depend() -> None:
    [found] = assumed("How many calls can I make?", "You can make 5,000 calls per hour.", *PLANS)
    assert dependency_phrase("The hourly quota is 5,000 calls.", found) == "The hourly quota depends on the plan"
    assert dependency_phrase("You can make 5,000 calls.", found) == "This depends on the plan"


def test_the_reviser_names_all_values_with_their_conditions_and_keeps_the_rest() -> None:
    answer = "The quota is 5,000 calls per hour. It resets on Mondays."
    said = answer.split(". ")[0] + "."
    issue = factories.issue("high", type="incomplete", rule="assumed_condition", start=0, end=len(said), quote=said)
    seen = context("What is the quota?", answer, *PLANS, "It resets on Mondays.", issues=(issue,))
    revision = OfflineReviser().revise(seen, factories.iteration().critique, (issue,))
    assert revision.revised_answer.startswith(
        "The quota depends on the plan:\n- Business plan: 5,000 calls per hour [s2]."
    )
    assert "- Starter plan: 500 calls per hour [s1].\nIt resets on Mondays" in revision.revised_answer
    assert revision.changes[0].issue_ids == (issue.id,)


def verdict(claim: str, *texts: str) -> str:
    evidence = tuple(Evidence(id=f"s{n}", text=text) for n, text in enumerate(texts, 1))
    return OfflineVerifier().verify([Claim(text=claim)], evidence)[0].verdict


def test_a_claim_that_names_its_condition_is_not_denied_by_the_other_value_of_the_sentence() -> None:
    text = "The limit on rural roads is 80 km/h by day and 60 km/h at night."
    assert verdict("At night the limit on rural roads is 60 km/h.", text) != "contradicted"
    assert verdict("By day the limit on rural roads is 60 km/h.", text) != "supported"


def test_a_value_taken_from_another_condition_than_the_claim_names_is_not_confirmed() -> None:
    tiers = ("Free tier: 10MB limit", "Pro tier: 100MB limit")
    assert verdict("The Pro tier has a limit of 10MB.", *tiers) != "supported"
    assert verdict("The Pro tier limit is 100MB.", *tiers) != "contradicted"
    text = "Within Norway, standard delivery takes 3 working days. To Iceland it takes 8 working days."
    assert verdict("Standard delivery to Iceland takes 3 working days.", text) != "supported"
    assert verdict("Standard delivery to Iceland takes 8 working days.", text) != "contradicted"


@pytest.mark.slow
def test_hostile_lengths_take_time_in_proportion() -> None:
    long = "Plan: 5,000 calls, " * 5_000
    assumed("How many calls?", "You can make 5,000 calls per hour.", long, "x: 1 " * 20_000, "|" * 100_000)

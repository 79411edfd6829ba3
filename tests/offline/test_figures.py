"""Figures and quotations: accused where no evidence has them, or has others in their place, and only there."""

import pytest

import masis
from masis import Case, Settings
from masis.offline.matching.evidence_index import EvidenceIndex
from masis.schema.case import Evidence

REVENUE = "Revenue for 2023 was NOK 2,184 million (2022: NOK 1,912 million), up 14.2%. The chair praised the staff."


def verdict(evidence: str, claim: str, question: str = "") -> str:
    return EvidenceIndex([("1", evidence)]).assess(claim, question=question).verdict


@pytest.mark.parametrize(
    ("claim", "figure"),
    [
        ("The staff got a bonus of 350,000 euros.", "350,000 euros"),
        ("The chair praised the staff on 4 March 2019.", "4 March 2019"),
        ("The staff was given 36 square kilometres of land.", "36"),
        ("The chair said that “nobody expected such a good year”.", "nobody expected such a good year"),
    ],
)
def test_what_stands_in_no_evidence_is_unsupported_with_its_words_and_a_reason(claim: str, figure: str) -> None:
    [check] = masis.verify_claims([claim], [Evidence(id="1", text=REVENUE)])
    assert check.verdict == "unsupported"
    assert [check.claim.text[start:end] for start, end in check.uncovered] == [figure]
    assert f"“{figure}” stands in no evidence" in (check.issue or "")


def test_an_invented_figure_is_a_serious_issue_that_a_person_must_look_at() -> None:
    answer = "The chair praised the staff [1]. The staff got a bonus of 350,000 euros [1]."
    case = Case(id="c", query="What did the chair do?", answer=answer, evidence=(Evidence(id="1", text=REVENUE),))
    run = masis.run_audit(case, Settings(max_iterations=1))
    [issue] = [issue for issue in run.iterations[0].issues if issue.rule == "unsupported_claim"]
    assert issue.severity == "high"
    assert ("unsupported_claim", "must_look") in [(reason.code, reason.tier) for reason in run.review_reasons]


@pytest.mark.parametrize(
    ("claim", "wrong", "right"),
    [
        ("In 2023 revenue grew by 41.2%.", "41.2%", "14.2%"),
        ("Revenue for 2023 was NOK 2,148 million.", "NOK 2,148 million", "NOK 2,184 million"),
        ("Revenue for 2032 was up 14.2%.", "2032", "2023"),
    ],
)
def test_a_figure_in_the_place_of_another_is_contradicted_and_both_are_named(
    claim: str, wrong: str, right: str
) -> None:
    [check] = masis.verify_claims([claim], [Evidence(id="1", text=REVENUE)])
    assert check.verdict == "contradicted"
    assert [(found.claim_text, found.evidence_text) for found in check.contradictions] == [(wrong, right)]
    assert wrong in (check.issue or "")
    assert right in (check.issue or "")


def test_a_figure_that_stands_elsewhere_is_contradicted_where_the_rest_is_copied() -> None:
    evidence = "The old hall seats 300 people. The new hall seats 450 people."
    assert verdict(evidence, "The old hall seats 450 people.") == "contradicted"


@pytest.mark.parametrize(
    ("claim", "question"),
    [
        ("The staff of 812 people was praised.", "Was the staff of 812 people praised?"),
        ("Step 14: the chair praises the staff.", ""),
        ("As section 14.3 and figure 27 show, the chair praised the staff.", ""),
        ("The chair praised the staff (Olsen et al., 2016).", ""),
        ("It was praised by Olsen (2016).", ""),
        ("Three reasons speak for the staff.", ""),
        ("The chair praised the “very best staff”.", ""),
        ("The chair spoke of “The Staff Of The Year”.", ""),
        ("Revenue grew by about 270 million.", ""),
        ("The year before, revenue was 1.9 billion.", ""),
    ],
)
def test_what_counts_nothing_or_is_asked_or_follows_is_not_accused(claim: str, question: str) -> None:
    assert verdict(REVENUE, claim, question) == "unverifiable"


@pytest.mark.parametrize(
    ("evidence", "claim"),
    [
        ("Its span of 61 metres was the longest until the Kallern bridge, 4 metres longer, was finished in 1913.",
         "The Kallern bridge, with a span of 65 metres, was finished in 1913."),
        ("311 people moved in and 96 moved away.", "Net migration came to 215 people."),
        ("The dam has nine gates, each 54 metres wide.", "Taken together, the nine gates are 486 metres wide."),
        ("Cover fell from 34% in 2015 to 12% in 2017.", "Between 2015 and 2017 two thirds of the cover was lost."),
        ("Of 640 boats checked, 32 were found in breach.", "5% of the boats were in breach."),
        ("The ban on hoses was introduced on 3 August and lifted nine weeks later.",
         "The ban on hoses was lifted in early October."),
        ("She got 64 per cent in the second ballot, three points more than in the first.",
         "In the first ballot she got 61 per cent."),
        ("The works opened in 1908 and closed in 1974.", "The works ran for 66 years."),
        ("Work ended in 1964, four years before the last engine went.", "The last engine went in 1968."),
        ("The colony had 1,240 seals in 2022.", "In 2022 the colony had 1,200 seals."),
        ("The wall is 12 inches thick.", "The wall is 30 centimetres thick."),
        ("It lasts three years.", "It lasts 36 months."),
    ],
)  # fmt: skip
def test_what_follows_by_arithmetic_rounding_or_another_unit_is_not_accused(evidence: str, claim: str) -> None:
    assert verdict(evidence, claim) == "unverifiable"


@pytest.mark.parametrize(
    ("evidence", "quoted", "expected"),
    [
        ("He said: “We did not expect such a turn of events.”", "We did not expect such a turn", "unverifiable"),
        ('He said: "We didn\'t expect it, not in the least."', "We did not expect it", "unverifiable"),
        ("We did not, at that time, expect such a turn.", "We did not ... expect such a turn", "unverifiable"),
        ("We did not, at that time, expect such a turn.", "We did not ... await such a turn", "unsupported"),
        ("We did not expect such a turn of events.", "We did expect such a turn", "unsupported"),
    ],
)
def test_a_quotation_stands_word_for_word_or_is_accused(evidence: str, quoted: str, expected: str) -> None:
    assert verdict(evidence, f"He told the paper: “{quoted}”, and left.") == expected


@pytest.mark.parametrize(
    ("evidence", "false", "true"),
    [
        ("Closed in 1974, the bridge was restored between 1986 and 1988 and has been open to cyclists since 1995.",
         "Cyclists were admitted in 1988.", "Cyclists were admitted in 1995."),
        ("Fasthus obtained 37 of 40 quality points, Norrland Bygg 24, Telle & Co. 35.",
         "Telle & Co. scored 24 points for quality.", "Telle & Co. scored 35 points for quality."),
        ("Price counted for 60 per cent and quality for 40 per cent.",
         "Quality weighed more heavily than price.", "Price weighed more heavily than quality."),
        ("Deaths exceeded births in every year.", "Births outnumbered deaths.", "Deaths outnumbered births."),
    ],
)  # fmt: skip
def test_a_value_of_something_else_is_not_confirmed_and_its_own_not_accused(
    evidence: str, false: str, true: str
) -> None:
    assert verdict(evidence, false) != "supported"
    assert verdict(evidence, true) == "unverifiable"

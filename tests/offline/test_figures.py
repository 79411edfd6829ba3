"""The offline checks read and compare figures, dates, quotations and words."""

from __future__ import annotations

from itertools import pairwise, permutations

import pytest

import masis
from masis import Case, Settings
from masis.audit.citations import audit_citations
from masis.offline.matching.evidence_index import EvidenceIndex
from masis.offline.parsing.dates import Day
from masis.offline.parsing.facts import Fact, agree, comparable, extract, likeness
from masis.offline.roles.verifier import OfflineVerifier
from masis.offline.text.number_words import NumberWords, read_cardinal, read_ordinal, read_share
from masis.offline.text.tokens import stem, synonym_keys, tokens, weight
from masis.schema.case import Evidence
from masis.schema.rules import MUST_LOOK
from masis.services import demo_cases
from masis.views.answer import answer_view
from masis.views.headline import headline

REVENUE = (
    "Revenue for 2023 was NOK 2,184 million (2022: NOK 1,912 million), up 14.2%. The chair praised"
    " the staff."
)


def verdict(evidence: str, claim: str, question: str = "") -> str:
    return EvidenceIndex([("1", evidence)]).assess(claim, question=question).verdict


@pytest.mark.parametrize(
    ("claim", "figure"),
    [
        ("The staff got a bonus of 350,000 euros.", "350,000 euros"),
        ("The chair praised the staff on 4 March 2019.", "4 March 2019"),
        ("The staff was given 36 square kilometres of land.", "36 square kilometres"),
        ("A praised member of the staff served for forty years.", "forty years"),
        ("The staff of 4,100 was praised by the chair.", "4,100"),
    ],
)
def test_a_figure_missing_from_the_evidence_is_marked_but_not_flagged(
    claim: str, figure: str
) -> None:
    [check] = masis.verify_claims([claim], [Evidence(id="1", text=REVENUE)])
    assert check.verdict == "unverifiable"
    assert check.contradictions == ()
    assert [absent_figure.claim_text for absent_figure in check.figures] == [figure]
    assert all(
        check.claim.text[absent_figure.claim_start : absent_figure.claim_end]
        == absent_figure.claim_text
        for absent_figure in check.figures
    )
    assert check.issue == f"{figure} isn't in the evidence; it may be calculated."


def test_several_missing_figures_are_named_in_one_sentence() -> None:
    claim = (
        "The staff got 350,000 euros, 2,500 shares, 36 flats and 14 days of leave on 4 March 2019."
    )
    [check] = masis.verify_claims([claim], [Evidence(id="1", text=REVENUE)])
    assert (
        check.issue
        == "350,000 euros, 2,500 and 3 more figures aren't in the evidence; they may be calculated."
    )


def test_a_quotation_missing_from_the_evidence_is_unsupported() -> None:
    claim = "The chair said that “nobody expected such a good year”."
    [check] = masis.verify_claims([claim], [Evidence(id="1", text=REVENUE)])
    assert check.verdict == "unsupported"
    assert [check.claim.text[start:end] for start, end in check.uncovered] == [
        "nobody expected such a good year"
    ]
    assert "“nobody expected such a good year” isn't in the evidence" in (check.issue or "")


def test_an_answer_with_a_missing_figure_needs_review_without_a_flag() -> None:
    answer = "The chair praised the staff [1]. The staff got a bonus of 350,000 euros [1]."
    case = Case(
        id="c",
        query="What did the chair do?",
        answer=answer,
        evidence=(Evidence(id="1", text=REVENUE),),
    )
    run = masis.run_audit(case, Settings(max_iterations=2, strictness="strict"))
    issue = next(
        run_issue for run_issue in run.iterations[0].issues if "350,000" in run_issue.description
    )
    assert (issue.severity, issue.suggestion) == ("low", "See how 350,000 euros was calculated.")
    reasons = {reason.code: reason.tier for reason in run.review_reasons}
    assert reasons["figure_not_in_evidence"] == "not_certified"
    assert not MUST_LOOK & reasons.keys()
    assert run.final_answer == answer
    assert (
        headline(run).text
        == "350,000 euros isn't in the evidence; it may be calculated: “The staff got a bonus of"
        " 350,000 euros”"
    )
    [piece] = [piece for piece in answer_view(case, run, 0)["pieces"] if piece.get("fact")]
    assert (piece["text"], piece["fact"], piece["verdict"]) == (
        "350,000 euros",
        "figure",
        "unverifiable",
    )


@pytest.mark.parametrize(
    ("claim", "wrong", "right"),
    [
        ("Revenue for 2023 was NOK 2,148 million.", "NOK 2,148 million", "NOK 2,184 million"),
        ("Revenue for 2023 was NOK 2,318 million.", "NOK 2,318 million", "NOK 2,184 million"),
    ],
)
def test_a_replaced_figure_is_contradicted_and_both_are_named(
    claim: str, wrong: str, right: str
) -> None:
    [check] = masis.verify_claims([claim], [Evidence(id="1", text=REVENUE)])
    assert check.verdict == "contradicted"
    assert [
        (contradiction.claim_text, contradiction.evidence_text)
        for contradiction in check.contradictions
    ] == [(wrong, right)]
    assert wrong in (check.issue or "")
    assert right in (check.issue or "")


@pytest.mark.parametrize(
    ("claim", "evidence", "expected"),
    [
        (
            "The service had an uptime of 99.99%.",
            "The service had an uptime of 99.9 per cent.",
            "contradicted",
        ),
        ("The ticket costs 99.99 euros.", "The ticket costs 99.90 euros.", "contradicted"),
        # the evidence may have rounded it
        ("Ethanol boils at 78.15°C.", "Ethanol boils at 78.1°C.", "unverifiable"),
        ("Ethanol boils at 78.1°C.", "Ethanol boils at 78.15°C.", "unverifiable"),
    ],
)
def test_digits_beyond_rounding_contradict(claim: str, evidence: str, expected: str) -> None:
    assert verdict(evidence, claim) == expected


def test_a_figure_from_elsewhere_in_a_copied_sentence_is_contradicted() -> None:
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
        ("The chair praised the staff 24/7.", ""),
        ("The chair praised the staff 24/7/365 and more.", ""),
    ],
)
def test_labels_questions_and_derived_figures_arent_flagged(claim: str, question: str) -> None:
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
def test_arithmetic_rounding_and_unit_conversion_arent_flagged(evidence: str, claim: str) -> None:
    assert verdict(evidence, claim) == "unverifiable"


@pytest.mark.parametrize(
    ("evidence", "quoted", "expected"),
    [
        (
            "He said: “We did not expect such a turn of events.”",
            "We did not expect such a turn",
            "unverifiable",
        ),
        (
            'He said: "We didn\'t expect it, not in the least."',
            "We did not expect it",
            "unverifiable",
        ),
        (
            "We did not, at that time, expect such a turn.",
            "We did not ... expect such a turn",
            "unverifiable",
        ),
        (
            "We did not, at that time, expect such a turn.",
            "We did not ... await such a turn",
            "unsupported",
        ),
        ("We did not expect such a turn of events.", "We did expect such a turn", "unsupported"),
    ],
)
def test_a_quotation_must_be_verbatim(evidence: str, quoted: str, expected: str) -> None:
    assert verdict(evidence, f"He told the paper: “{quoted}”, and left.") == expected


@pytest.mark.parametrize(
    ("evidence", "quoted"),
    [
        (
            "They said that the ve\u0301lodrome was built too fast.",
            "the v\u00e9lodrome was built too fast",
        ),
        (
            "They said that the velo\u00addrome was built too fast.",
            "the velodrome was built too fast",
        ),
        (
            "They said that the velodrome was built too fast.",
            "the velo\u00addrome was built too fast",
        ),
        ("They said that the o\ufb03ce was built too fast.", "the office was built too fast"),
        (
            "They said that the velo-\ndrome was built\u00a0too\nfast.",
            "the velodrome was built too fast",
        ),
        (
            "They said that the half-\nopen roof was built too fast.",
            "the half-open roof was built too fast",
        ),
        ("They said that the **roof** was _built_ too fast.", "The roof was built too fast"),
        ("They said that the roof [3] was built [4, 5] too fast.", "the roof was built too fast"),
        (
            "They said that the roof was, in all, built too fast.",
            "The Roof was in all built too fast",
        ),
        ("They said that it's the roof, built in twelve days.", "it is the roof built in 12 days"),
    ],
)
def test_typesetting_differences_in_quotations_arent_flagged(evidence: str, quoted: str) -> None:
    assert verdict(evidence, f"He told the paper: “{quoted}”, and left.") == "unverifiable"


@pytest.mark.parametrize(
    ("evidence", "quoted"),
    [
        ("They said that the tank holds few m² of water.", "the tank holds few m³ of water"),
        ("They said that the cell binds some Fe²⁺ at night.", "the cell binds some Fe³⁺ at night"),
        ("They said that the gas is mostly CO by volume.", "the gas is mostly CO₂ by volume"),
        ("They said that the cafe is open all day.", "the café is open all night"),
    ],
)
def test_a_quotation_of_something_else_is_flagged(evidence: str, quoted: str) -> None:
    assert verdict(evidence, f"He told the paper: “{quoted}”, and left.") in (
        "unsupported",
        "contradicted",
    )


@pytest.mark.parametrize(
    "claim",
    [
        "Ask clients questions such as, “What speaks for this belief of yours?”",
        "For example, you could say “Come down from there, and ask for help”.",
        "Try saying “I need a moment to think about it”.",
        "People may ask something like “how long will this take me”.",
    ],
)
def test_hypothetical_speech_isnt_a_quotation(claim: str) -> None:
    assert verdict("The counselor helps people to ask for what they need.", claim) == "unverifiable"


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
def test_a_value_of_another_subject_isnt_confirmed(evidence: str, false: str, true: str) -> None:
    assert verdict(evidence, false) != "supported"
    assert verdict(evidence, true) == "unverifiable"


# The same figure in different notations, which must not count as different figures


SAME = [
    ("The town has {} inhabitants in all.", "14,250", "14.250", "14 250", "14\u00a0250", "14\u2009250", "14\u202f250",
     "14'250", "14’250", "14_250"),
    ("The yield of the field was {} last year.", "6.4%", "6,4%", "6·4%", "6.4 %", "6.4 per cent", "6.4 percent"),
    ("The plant cost {} to build.", "2.5 billion euros", "€2.5bn", "2,5 Mrd. Euro", "2,5 Milliarden Euro",
     "EUR 2.5 billion", "€2,500 million", "2.5 bn euros"),
    ("The grant reached {} households.", "3.1 million", "3,100,000", "3.100.000", "3.1 × 10^6", "3.1 x 10⁶", "3.1e6",
     "3.1E+06", "31 lakh"),
    ("The choir has {} members today.", "48", "four dozen", "4 dozen", "forty-eight"),
    ("The wall was held by {} men.", "60", "three score", "sixty"),
    ("The strike lasted {} in May.", "14 days", "a fortnight", "two weeks"),
    ("The course takes {} in all.", "18 months", "one and a half years", "1½ years", "1 1/2 years", "1.5 years",
     "a year and a half"),
    ("The appeal raised {} by May.", "3.5 million", "three and a half million", "3½ million",
     "three point five million"),
    ("The crowd of {} cheered for an hour.", "500,000", "half a million", "0.5 million"),
    ("About {} of the voters stayed at home.", "25%", "one in four", "1 in 4", "a quarter", "one quarter"),
    ("The ferry leaves at {} every day.", "15:45", "3:45 pm", "3.45 p.m.", "15h45", "15.45", "1545 hours",
     "a quarter to four"),
    ("The market closes at {} on Fridays.", "12:00", "noon", "12 pm", "midday", "12h00"),
    ("The mill was sold on {} to a baker.", "5 November 2019", "05.11.2019", "5.11.2019", "5/11/2019", "11/5/2019",
     "2019-11-05", "the 5th of November 2019", "2019-11-05T08:00:00Z", "Nov 5, 2019",
     "05-11-2019", "5-Nov-2019", "5.11.19", "20191105", "5 Nov '19"),
    ("The craft of the {} was lost.", "1970s", "'70s"),
    ("A sack weighs {} when full.", "110 pounds", "110 lb", "50 kg"),
    ("The hut has {} of space.", "1400 square feet", "1,400 sq ft", "130 m²"),
    ("The flight took {} in all.", "2:30 hours", "2.5 hours", "2 h 30 min", "150 minutes"),
    ("The tin holds {} of it.", "one gram", "1 g", "1,000 mg"),
    ("The hill is {} long.", "½ mile", "half a mile", "0.5 miles"),
    ("The town has {} people.", "1, 850", "1,850"),
    ("It was in {} that the mill burned down.", "1976", "nineteen seventy-six"),
    ("The vessel is built for {} of pressure.", "2.5 MPa", "25 bar", "2,500 kPa", "362.6 psi"),
    ("The estate covers {} of forest.", "250 hectares", "2.5 km²", "2.5 square kilometres", "2,500,000 m²",
     "618 acres"),
    ("The oven is heated to {} first.", "200 °C", "392 °F", "473 K"),
    ("The backup takes {} of the disk.", "2 GiB", "2,147 MB", "2.147 GB"),
    ("The turbine gives {} at best.", "3.2 MW", "3,200 kW"),
    ("The tank holds {} of diesel.", "1,000 litres", "1 m³", "264 gallons"),
    ("The gym used {} of gas in May.", "500 kWh", "1,800 MJ"),
    ("The limit there is {} for cars.", "50 km/h", "31 mph"),
    ("The parcel weighs {} with its box.", "12 oz", "340 g"),
    ("The ceiling is {} high.", "9 ft 10 in", "3 m", "300 cm"),
    ("The fund lost {} over the year.", "−3.4 million euros", "-3.4 million euros", "(3.4) million euros",
     "minus 3.4 million euros"),
    ("The dose is {} a day.", "0.5 mg", ".5 mg", "500 µg", "500 μg", "500 micrograms"),
    ("The rate was cut by {} in June.", "50 basis points", "0.5 percentage points", "50 bps"),
    ("The firm began in the {} of 2020.", "third quarter", "Q3", "3rd quarter"),
]  # fmt: skip


@pytest.mark.parametrize(("frame", "notations"), [(frame, notations) for frame, *notations in SAME])
def test_a_figure_in_another_notation_is_equal(frame: str, notations: list[str]) -> None:
    for first, second in permutations(notations, 2):
        index = EvidenceIndex([("1", frame.format(first))])
        assessment = index.assess(frame.format(second))
        assert assessment.verdict in ("supported", "unverifiable"), (
            first,
            second,
            assessment.signals,
        )
        assert not assessment.figures, (first, second)


@pytest.mark.parametrize(
    ("evidence", "claim"),
    [
        ("The board stood at −7 °C at noon.", "The board stood at 7 °C at noon."),
        ("The seat costs 80 USD a month.", "The seat costs 80 EUR a month."),
        ("The pump moves 90 litres in an hour.", "The pump moves 90 gallons in an hour."),
        ("The town has 14,250 inhabitants.", "The town has 15,240 inhabitants."),
        ("Upload limit: 20 MB", "The upload limit is 25 MB."),
        ("The call began at 14:30 on Friday.", "The call began at 15:20 on Friday."),
        (
            "The mill was sold on 05.11.2019 to a baker.",
            "The mill was sold on 11 May 2019 to a baker.",
        ),
        (
            "The old bridge is 120 metres long.",
            "The old bridge is 90 metres long and was painted red.",
        ),
        (
            "The old bridge is 120 metres long.",
            "The old bridge is 90 metres long, which few people know.",
        ),
    ],
)
def test_a_copy_with_a_similar_but_different_figure_is_contradicted(
    evidence: str, claim: str
) -> None:
    assert verdict(evidence, claim) == "contradicted"


@pytest.mark.parametrize(
    ("evidence", "claim"),
    [
        (
            "The rent of the hall was 900 euros, then 1,000 from May.",
            "The rent of the hall was 1,000 euros.",
        ),
        (
            "It bought the hall for $ 1. 7 million were paid at once.",
            "It bought the hall for $1.7 million.",
        ),
        (
            "The old bridge is 120 metres long.",
            "The old bridge is 90 metres long, and 120 metres with its ramps.",
        ),
        ("Membership stood at 3,000 in 2019.", "In 2021 membership stood at 2,400."),
        ("Alder employs 700 people in the city.", "Birch employs 500 people in the city."),
        (
            "The fund holds 20 million. It got another 5 million in May.",
            "The fund holds 25 million.",
        ),
        ("The clinic closes at the end of 2025.", "The clinic is closed from 2026."),
        ("A third of the parish, 33%, came.", "33.3% of the parish came."),
        ("The barrels hold 1.234 litres each.", "The barrels hold 1,234 litres each."),
        ("It was sold on 04/05/2020 at noon.", "It was sold on 5 April 2020 at noon."),
        ("The flat costs 900 a month.", "The flat costs 10,800 a year."),
        (
            "Seats went from 40 in the first hall to 60 in the second.",
            "Seats went to 60 in the second hall.",
        ),
        (
            "The nursery has the first floor and the school the second.",
            "The school is on the second floor.",
        ),
        ("She finished 4 minutes behind the winner.", "She finished in 127 minutes."),
        ("Seven pairs of gulls nest there.", "Fourteen gulls nest there."),
        ("Power came to 90 GWh in the 30 days of June.", "Power came to 3 GWh a day."),
        (
            "The writ was served on 27 February 2020 and answered 3 days later.",
            "It was answered on 1 March 2020.",
        ),
        (
            "Sales were 4.2 million, after 3.9 million the year before.",
            "Sales rose by about 0.3 million.",
        ),
        ("The run starts at 19:45 and takes 40 minutes.", "The run is over at 20:25."),
    ],
)
def test_calculated_unrelated_and_unclear_figures_arent_flagged(evidence: str, claim: str) -> None:
    assert verdict(evidence, claim) == "unverifiable"


# Numbers and dates are found with offsets and compared with their units


@pytest.mark.parametrize(
    ("text", "day"),
    [
        ("Eröffnet am 3. März 1931.", Day(1931, 3, 3)),
        ("Im Dezember 1962 gebaut.", Day(1962, 12)),
        ("Ouvert le 1er février 1931.", Day(1931, 2, 1)),
        ("Il ouvrit le 5 août.", Day(0, 8, 5)),
        ("Ouvert le 4 mars 1931.", Day(1931, 3, 4)),
        ("Se abrió el 9 de enero de 1931.", Day(1931, 1, 9)),
        ("Se abrió el 9 de mayo del 2012.", Day(2012, 5, 9)),
        ("Aperto il 1º giugno 1931.", Day(1931, 6, 1)),
        ("Geopend op 30 mei 1931.", Day(1931, 5, 30)),
        ("Geopend in maart 1931.", Day(1931, 3)),
        ("Abriu em 7 de setembro de 1931.", Day(1931, 9, 7)),
        ("Abriu em outubro de 1931.", Day(1931, 10)),
        ("Otwarto 12 października 1931 r.", Day(1931, 10, 12)),
        ("Otwarto 8 listopada 1931 r.", Day(1931, 11, 8)),
    ],
)
def test_month_names_of_seven_other_languages_are_read(text: str, day: Day) -> None:
    assert only_fact(text, "date").day == day


@pytest.mark.parametrize(
    "text", ["There were 2 Mars missions.", "It takes 5 mayo jars.", "He won 3 Augustus medals."]
)
def test_english_words_that_are_foreign_months_arent_dates(text: str) -> None:
    assert [fact.kind for fact in extract(text)] == ["number"]


@pytest.mark.parametrize(
    ("text", "percent"),
    [
        ("They are a share of 0.07 of all users.", True),
        ("The proportion of faulty parts was 0.07.", True),
        ("The proportion of faulty parts in the sample is about 0.070.", True),
        ("The share price was 0.07.", False),
        ("The share of users fell by 0.07.", False),
        ("It weighs 0.07.", False),
        ("A fraction of 0.07 seconds is enough.", False),
    ],
)
def test_a_decimal_called_a_share_equals_its_percentage(text: str, percent: bool) -> None:
    stated, seven = only_fact(text, "number"), only_fact("It is 7%.", "number")
    assert (agree(seven, stated), agree(stated, seven)) == (percent, percent)
    assert not agree(only_fact("It is 8%.", "number"), stated)
    assert not agree(only_fact("It is 0.07%.", "number"), stated) or not percent, (
        "it is a hundredth of it"
    )


@pytest.mark.parametrize(
    ("evidence", "claim", "lacking", "contradictions"),
    [
        ("0.07", "7%", [], 0),
        ("7%", "0.07", [], 0),
        ("0.07", "8%", ["8%"], 0),
        ("7%", "0.08", ["0.08"], 0),
        ("0.07", "0.08", [], 1),
    ],
)
def test_shares_are_compared_with_percentages_and_shares(
    evidence: str, claim: str, lacking: list[str], contradictions: int
) -> None:
    said = "The share of faulty parts was {}."
    [check] = masis.verify_claims(
        [said.format(claim)], [Evidence(id="1", text=said.format(evidence))]
    )
    assert [absent_figure.claim_text for absent_figure in check.figures] == lacking
    assert len(check.contradictions) == contradictions


def only_fact(text: str, kind: str) -> Fact:
    facts = [fact for fact in extract(text) if fact.kind == kind]
    assert len(facts) == 1, facts
    return facts[0]


@pytest.mark.parametrize(
    ("text", "value", "dimension"),
    [
        ("It has 67 million users", 67e6, ""),
        ("a loss of $1.2bn", 1.2e9, "money:usd"),
        ("a loss of NOK 2,184 million", 2.184e9, "money:nok"),
        ("up 12%", 12.0, "percent"),
        ("up 12 per cent", 12.0, "percent"),
        ("a dose of 0.002 mg", 2e-6, "mass"),
        ("after three years", 36.0, "months"),
        ("twenty-five people", 25.0, ""),
        ("1500 patients", 1500.0, ""),
        ("a $ 10 - million - per - year deal", 1e7, "money:usd"),
    ],
)
def test_a_number_is_read_with_magnitude_and_unit(text: str, value: float, dimension: str) -> None:
    fact = only_fact(text, "number")
    assert fact.value == pytest.approx(value)
    assert fact.dimension == dimension
    assert text[fact.start : fact.end] == fact.text


def test_a_unit_after_a_range_applies_to_both_ends() -> None:
    low, high = (
        fact for fact in extract("profit of $205 to $215 million") if fact.kind == "number"
    )
    assert (low.value, high.value) == (205e6, 215e6)
    assert [fact.dimension for fact in extract("from 6 to 8%")] == ["percent", "percent"]


@pytest.mark.parametrize(
    "text", ["on 5 May 2021", "on May 5, 2021.", "on 2021-05-05", "on the 5th of May 2021"]
)
def test_date_formats_are_equivalent(text: str) -> None:
    fact = only_fact(text, "date")
    assert fact.day == Day(2021, 5, 5)
    assert not fact.text.endswith((".", ","))


def test_dates_are_compared_at_their_common_precision() -> None:
    full, month, year, other = (
        only_fact(text, "date") for text in ("5 May 2021", "May 2021", "in 2021", "5 May 2020")
    )
    assert agree(month, full)
    assert agree(year, full)
    assert not agree(other, full)
    assert not agree(only_fact("on 10 July", "date"), only_fact("in 2020", "date"))


def test_numbers_agree_across_units_and_by_rounding() -> None:
    assert agree(only_fact("three years", "number"), only_fact("36 months", "number"))
    assert agree(only_fact("14%", "number"), only_fact("14.2%", "number"))
    assert not agree(
        only_fact("67 million users", "number"), only_fact("999 million users", "number")
    )
    assert not agree(only_fact("0.02 mg", "number"), only_fact("0.002 mg", "number"))


def test_figures_of_different_kinds_cant_contradict() -> None:
    assert not comparable(only_fact("12%", "number"), only_fact("12.5 km", "number"))
    assert not comparable(only_fact("3 hulls", "number"), only_fact("4 yards", "number"))
    assert comparable(only_fact("3 hulls", "number"), only_fact("11 hulls", "number"))


def test_an_altered_fact_resembles_the_original() -> None:
    assert likeness(only_fact("41.2%", "number"), only_fact("14.2%", "number")) == 1.0
    assert (
        likeness(only_fact("$1.42 million", "number"), only_fact("$1.42 billion", "number")) == 1.0
    )
    assert likeness(only_fact("8 March 2021", "date"), only_fact("3 August 2021", "date")) == 1.0
    assert likeness(only_fact("14.2%", "number"), only_fact("3.9%", "number")) == 0.0


# Words, stems and weights


@pytest.mark.parametrize(
    ("word", "other_form"),
    [
        ("acquired", "acquires"),
        ("located", "location"),
        ("rose", "rise"),
        ("studies", "study"),
        ("Niño", "nino"),
        ("twelve", "12"),
        ("1,200.50", "1200.5"),
    ],
)
def test_forms_of_a_word_share_a_stem(word: str, other_form: str) -> None:
    assert stem(word) == stem(other_form)


def test_stems_drop_accents_and_ligatures_but_keep_exponents() -> None:
    assert stem("d\u00e9bris") == stem("debris")
    assert stem("\ufb01rst") == stem("first")
    assert len({stem("10⁸"), stem("108"), stem("10³")}) == 3


def test_decimals_are_one_token_and_offsets_are_correct() -> None:
    text = "The dose is 0.002 mg, i.e. 1,200.5 in all."
    words = tokens(text)
    assert "0.002" in [word.text for word in words]
    assert all(text[word.start : word.end] == word.text for word in words)


def test_numbers_outweigh_words_and_function_words_have_no_weight() -> None:
    assert (
        weight("67") > weight("Paris") > weight("capital") > weight("include") > weight("the") == 0
    )


def test_synonyms_share_a_group() -> None:
    assert set(synonym_keys()[stem("lawyer")]) & set(synonym_keys()[stem("attorney")])


@pytest.mark.parametrize(
    ("text", "value", "words"),
    [
        ("forty - two patients", 42, 3),
        ("two hundred and fifty nine", 259, 5),
        ("three hundred thousand", 300_000, 3),
        ("two thousand million", 2_000_000_000, 3),
        ("two million and five million", 2_000_000, 2),
        ("ten five year plans", 10, 1),
        ("dozen eggs", 12, 1),
        ("zero million", 0, 2),
    ],
)
def test_number_words_are_read_as_one_number(text: str, value: int, words: int) -> None:
    cardinal = read_cardinal(text.split(), 0)
    assert (cardinal.value, cardinal.after) == (value, words)


def test_a_scale_word_alone_counts_only_if_requested() -> None:
    assert read_cardinal(["hundred", "patients"], 0) is None
    assert read_cardinal(["hundred", "patients"], 0, bare_scales={"hundred"}) == NumberWords(
        100, 1, scaled=True
    )


def test_shares_and_ordinals_need_a_noun() -> None:
    share = read_share("two thirds of voters".split(), 0)
    assert (round(share[0], 1), share[1]) == (66.7, 2)
    assert read_share("two thirds majority".split(), 0) is None
    assert read_ordinal("third quarter".split(), 0) == 3.0
    assert read_ordinal("third person".split(), 0) is None


def test_absent_figures_are_those_of_the_check_without_the_encoder(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    cases = [case for case in demo_cases() if case.answer and len(case.evidence) > 1][::4]
    verifier, figures, checked = OfflineVerifier(), 0, []
    for case, other in pairwise(cases):
        claims = verifier.extract(case.answer, audit_citations(case.answer, case.evidence), "")
        # Another case's texts lack most figures.
        texts = [chunk.text for chunk in other.evidence] * len(case.evidence)
        moved = tuple(
            Evidence(id=chunk.id, text=text)
            for chunk, text in zip(case.evidence, texts, strict=False)
        )
        for evidence in (case.evidence, moved):
            expected = [check.figures for check in verifier.verify(claims, evidence)]
            checked.append((claims, evidence, expected))
            figures += sum(map(bool, expected))
    assert figures > 20
    monkeypatch.setattr("masis.offline.matching.evidence_index.load_encoder", None)
    for claims, evidence, expected in checked:
        assert verifier.absent_figures(claims, evidence) == expected

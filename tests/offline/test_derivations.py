"""What follows from two values of the evidence is not accused; what does not follow is not confirmed."""

import pytest

from masis.offline.matching.evidence_index import EvidenceIndex


def verdict(evidence: str, claim: str) -> str:
    return EvidenceIndex([("1", evidence)]).assess(claim).verdict


@pytest.mark.parametrize(
    ("evidence", "claim"),
    [
        ("Its span of 61 metres was the longest until the Kallern bridge, 4 metres longer, was finished in 1913.",
         "The Kallern bridge, with a span of 65 metres, was finished in 1913."),
        ("311 people moved in and 96 moved away.", "Net migration came to 215 people."),
        ("The dam has nine gates, each 54 metres wide.", "Taken together, the nine gates are 486 metres wide."),
        ("Cover fell from 34% in 2015 to 12% in 2017.", "Between 2015 and 2017 two thirds of the cover was lost."),
        ("Of 640 boats checked, 32 were found in breach.", "One boat in twenty was found in breach."),
        ("The ban on hoses was introduced on 3 August and lifted nine weeks later.",
         "The ban on hoses was lifted in early October."),
        ("She got 64 per cent in the second ballot, three points more than in the first.",
         "In the first ballot she got 61 per cent."),
    ],
)  # fmt: skip
def test_what_follows_from_the_evidence_is_no_conflict(evidence: str, claim: str) -> None:
    assert verdict(evidence, claim) != "contradicted"


@pytest.mark.parametrize(
    ("evidence", "claim"),
    [
        ("Its span of 61 metres was the longest until the Kallern bridge, 4 metres longer, was finished in 1913.",
         "The Kallern bridge, with a span of 68 metres, was finished in 1913."),
        ("The ban on hoses was introduced on 3 August and lifted nine weeks later.",
         "The ban on hoses was lifted in late December."),
    ],
)  # fmt: skip
def test_what_does_not_follow_is_not_confirmed(evidence: str, claim: str) -> None:
    assert verdict(evidence, claim) != "supported"


@pytest.mark.parametrize(
    ("evidence", "false", "true"),
    [
        ("Closed in 1974, the bridge was restored between 1986 and 1988 and has been open to cyclists since 1995.",
         "Cyclists were admitted in 1988.", "Cyclists were admitted in 1995."),
        ("Fasthus obtained 37 of 40 quality points, Norrland Bygg 24, Telle & Co. 35.",
         "Telle & Co. scored 24 points for quality.", "Telle & Co. scored 35 points for quality."),
        ("The council closed the gap with 19 million of savings, 17 million from reserves and a tax worth 12 million.",
         "The reserves contributed 12 million.", "The reserves contributed 17 million."),
        ("In the winter test the X2 covered 287 km, the rival Ondal S 301 km.",
         "In the winter test the X2 went further than the Ondal S.",
         "In the winter test the Ondal S went further than the X2."),
        ("Price counted for 60 per cent and quality for 40 per cent.",
         "Quality weighed more heavily than price.", "Price weighed more heavily than quality."),
        ("The census counted 2,184 residents in 1991, 1,902 in 2001 and 2,036 in 2021.",
         "In 2021 more people lived there than in 1991.", "In 2021 fewer people lived there than in 1991."),
        ("Deaths exceeded births in every year.", "Births outnumbered deaths.", "Deaths outnumbered births."),
        ("The offer is expected to close in the second quarter.",
         "Closing is expected in the third quarter.", "Closing is expected in the second quarter."),
    ],
)  # fmt: skip
def test_a_value_goes_with_what_it_is_said_of(evidence: str, false: str, true: str) -> None:
    assert verdict(evidence, false) != "supported"
    assert verdict(evidence, true) != "contradicted"


@pytest.mark.soak(smoke=20_000, full=100_000)
@pytest.mark.parametrize("unit", ["5 of 9 in 3 ", "more than 5 km, ", "A 24, B 35, ", "one in 20 and 3 August 1990 "])
def test_a_hundred_thousand_characters_of_figures_are_judged_in_seconds(unit: str, rounds: int) -> None:
    verdict("A had 24, B 35. On 3 August 1990 it was 5 km, more than 4 km.", unit * (rounds // len(unit)))

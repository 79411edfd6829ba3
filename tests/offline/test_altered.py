"""Claims altered by hand beside their true twins, in small cases of many fields: an altered one is not confirmed, a
true one is not accused.

Names, numbers and firms are invented. Some of the rules were made looking at these cases.
"""

import json
from collections import Counter
from functools import cache
from pathlib import Path

import pytest

from masis.offline.matching.evidence_index import EvidenceIndex

HERE = Path(__file__).parent
KINDS = ("number", "date", "name", "negation", "direction")
LEAST_RIGHT = 0.97
"""Accusations that must be right, of all (179 of 180 measured)."""
LEAST_FOUND = {"number": 0.6, "date": 0.8}
"""What must be accused of each kind that can be: floors below what was measured (.66, .86)."""


@cache
def verdicts() -> Counter[tuple[str, str]]:
    """How many claims of each kind (and "true") got each verdict."""
    counts: Counter[tuple[str, str]] = Counter()
    for name in ("altered.json", "traps.json"):
        for case in json.loads((HERE / name).read_text("utf-8")):
            index = EvidenceIndex([(str(k), text) for k, text in enumerate(case["evidence"], 1)])
            claims = [("true", claim) for claim in case.get("true", case.get("clean"))]
            claims += [(one["kind"], one["claim"]) for one in case["altered"]]
            counts.update((kind, index.assess(claim).verdict) for kind, claim in claims)
    return counts


def altered(verdict: str) -> int:
    return sum(verdicts()[kind, verdict] for kind in KINDS)


@pytest.mark.slow
def test_altered_claims_are_not_confirmed() -> None:
    every = sum(count for (kind, _), count in verdicts().items() if kind != "true")
    assert every > 500
    assert altered("supported") == 0


@pytest.mark.slow
def test_what_is_accused_is_altered() -> None:
    right = altered("contradicted") + altered("unsupported")
    wrong = verdicts()["true", "contradicted"] + verdicts()["true", "unsupported"]
    assert right >= 100
    assert right >= LEAST_RIGHT * (right + wrong)


@pytest.mark.slow
@pytest.mark.parametrize("kind", LEAST_FOUND)
def test_figures_that_no_evidence_has_are_accused(kind: str) -> None:
    every = sum(count for (one, _), count in verdicts().items() if one == kind)
    assert verdicts()[kind, "contradicted"] + verdicts()[kind, "unsupported"] >= LEAST_FOUND[kind] * every


def verdict(evidence: str, claim: str) -> str:
    return EvidenceIndex([("1", evidence)]).assess(claim).verdict


@pytest.mark.parametrize(
    ("evidence", "claim"),
    [
        ("Judge Paulsen gave the leading opinion; Judge Imhof dissented.", "Judge Paulsen dissented."),
        ("Photographs may be taken without flash.", "Photographs are not allowed."),
        ("Rails must be at least 1,100 mm high.", "Rails may be at most 1,100 mm high."),
        ("The stay costs 40 a night for up to six weeks.", "The stay costs 40 a night for up to six months."),
        ("The alarm sounded at 02:10.", "The alarm sounded at 03:10."),
        ("A quarter of the parcels held medicines.", "A third of the parcels held medicines."),
        ("In May Voss defeated Lebrune at Castril.", "Lebrune defeated Voss at Castril."),
        ("In May Voss defeated Lebrune at Castril.", "Voss was defeated by Lebrune at Castril."),
        (
            "Vancomycin is infused over 60 minutes; for operations on the bowel add gentamicin.",
            "Gentamicin is infused over 60 minutes, and for bowel operations vancomycin is added.",
        ),
        ("Counts rose from 412 in spring to 1,967 in autumn.", "Counts fell from 412 in spring to 1,967 in autumn."),
        ("The heater goes on heating without a connection.", "The heater stops heating without a connection."),
        ("Fatigue was ruled out. They ruled out fatigue in the weld.", "Fatigue in the weld was the cause."),
        ("The minister praised the report.", "The report praised the minister."),
        ("All pumps may be used indoors.", "No pumps may be used indoors."),
    ],
)  # fmt: skip
def test_what_is_turned_around_is_not_confirmed(evidence: str, claim: str) -> None:
    assert verdict(evidence, claim) != "supported"


@pytest.mark.parametrize(
    ("evidence", "claim"),
    [
        ("Openings wider than 120 mm are not allowed.", "No opening may be wider than 120 mm."),
        ("Customers were informed only in April.", "Customers were not told until April."),
        ("Do not add water before the mixture has cooled.", "Water is added only after the mixture has cooled."),
        ("Work ended in 1964, four years before the last engine went.", "The last engine went in 1968."),
        ("The council declined to hold a referendum.", "No referendum was held."),
        ("Profit was 31 million in 2021 and 24 million in 2022.", "Profit was 7 million lower in 2022."),
        ("The colony had 1,240 seals in 2022.", "In 2022 the colony had about 1,200 seals."),
        ("It would save six hundred and forty thousand a year.", "It would save 640,000 a year."),
        ("They stand for seven per cent of loans.", "They stand for 7% of loans."),
        ("The study asked whether the drug improves survival.", "The drug does not improve survival."),
        ("The reservoir never fell below 70%.", "The reservoir stayed above 70%."),
        ("In May Voss defeated Lebrune at Castril.", "Lebrune was defeated by Voss at Castril."),
        ("Of 640 boats 32 were lost.", "One boat in twenty was lost, 5% of all."),
        ("The wall is 12 inches thick.", "The wall is 30 centimetres thick."),
    ],
)
def test_what_follows_or_is_only_worded_otherwise_is_not_accused(evidence: str, claim: str) -> None:
    assert verdict(evidence, claim) not in ("contradicted", "unsupported")

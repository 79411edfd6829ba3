"""Claims altered by hand in fifty-eight small cases of many fields: what is found, what is flagged beside it.

The rules were made looking at the half "made on"; the half "held out" was written before they were finished and run
for the first time when they were. Names, numbers and firms are invented.
"""

import json
from collections import Counter
from functools import cache
from pathlib import Path

import pytest

from masis.offline.matching.evidence_index import EvidenceIndex

CASES = json.loads((Path(__file__).parent / "altered.json").read_text("utf-8"))
LEAST = {"number": 0.8, "date": 0.85, "name": 0.5, "negation": 0.75, "direction": 0.7}
"""What must be found of each kind: floors below what was measured, so that a change that loses ground shows."""


@cache
def found(half: str) -> Counter[tuple[str, bool]]:
    """How many claims of each kind (and "true") were called contradicted, and how many not."""
    said: Counter[tuple[str, bool]] = Counter()
    for case in CASES:
        if case["half"] != half:
            continue
        index = EvidenceIndex([(str(k), text) for k, text in enumerate(case["evidence"], 1)])
        for kind, claim in [("true", claim) for claim in case["true"]] + [
            (one["kind"], one["claim"]) for one in case["altered"]
        ]:
            said[kind, index.assess(claim).verdict == "contradicted"] += 1
    return said


def f1(half: str) -> float:
    said = found(half)
    hit, missed = (sum(said[kind, flagged] for kind in LEAST) for flagged in (True, False))
    return 2 * hit / (2 * hit + missed + said["true", True])


@pytest.mark.slow
@pytest.mark.parametrize("half", ["made on", "held out"])
@pytest.mark.parametrize("kind", LEAST)
def test_altered_facts_of_each_kind_are_found(kind: str, half: str) -> None:
    said = found(half)
    assert said[kind, True] / (said[kind, True] + said[kind, False]) >= LEAST[kind]


def test_altered_facts_are_distinguished_from_true_claims_on_cases_no_rule_was_made_on() -> None:
    assert f1("held out") >= 0.85


def test_true_claims_are_left_alone() -> None:
    said = found("made on") + found("held out")
    assert said["true", True] / (said["true", True] + said["true", False]) <= 0.06


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
    ],
)
def test_roles_permissions_bounds_units_clocks_and_shares_are_compared(evidence: str, claim: str) -> None:
    assert verdict(evidence, claim) == "contradicted"


@pytest.mark.parametrize(
    ("evidence", "claim"),
    [
        ("Openings wider than 120 mm are not allowed.", "No opening may be wider than 120 mm."),
        ("Customers were informed only in April.", "Customers were not told until April."),
        ("Do not add water before the mixture has cooled.", "Water is added only after the mixture has cooled."),
        ("Work ended in 1964, four years before the last engine went.", "The last engine went in 1968."),
        ("The council declined to hold a referendum.", "No referendum was held."),
    ],
)
def test_what_is_turned_round_twice_is_no_contradiction(evidence: str, claim: str) -> None:
    assert verdict(evidence, claim) != "contradicted"


@pytest.mark.slow
@pytest.mark.parametrize(
    "unit", ["a, b; ", "and the ", "by the X of Y ", "(60%) and ", "must not be ", "at least 5 ", "A" * 40 + " "]
)
def test_stretches_of_a_hundred_thousand_characters_are_judged_in_seconds(unit: str) -> None:
    verdict("It must be at least 5 m. Judge Ada spoke; Judge Bo left.", unit * (100_000 // len(unit)))

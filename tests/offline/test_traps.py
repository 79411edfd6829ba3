"""Altered claims and their true twins, in words of their own: what is found, what is flagged."""

import json
from collections import Counter
from pathlib import Path

import pytest

from masis.offline.matching.evidence_index import EvidenceIndex

TRAPS = json.loads((Path(__file__).parent / "traps.json").read_text("utf-8"))
LEAST = {"number": 0.9, "date": 0.9, "negation": 0.7, "name": 0.5}
"""What must be found, by kind: a floor below what was measured, so that a change that loses ground shows."""
MOST_FALSE = 0.06


def share(kind: str) -> float:
    said: Counter[bool] = Counter()
    for trap in TRAPS:
        index = EvidenceIndex([(str(k), text) for k, text in enumerate(trap["evidence"], 1)])
        claims = trap["clean"] if kind == "clean" else [one["claim"] for one in trap["altered"] if one["kind"] == kind]
        said.update(index.assess(claim).verdict == "contradicted" for claim in claims)
    return said[True] / said.total()


@pytest.mark.parametrize("kind", LEAST)
def test_altered_facts_are_found_however_they_are_worded(kind: str) -> None:
    assert share(kind) >= LEAST[kind]


def test_true_paraphrases_are_left_alone() -> None:
    assert share("clean") <= MOST_FALSE


def verdict(evidence: str, claim: str) -> str:
    return EvidenceIndex([("1", evidence)]).assess(claim).verdict


def test_the_year_of_a_figure_of_comparison_is_not_held_against_the_claim() -> None:
    evidence = "Revenue for 2023 was NOK 2,184 million (2022: NOK 1,912 million), up 14.2%."
    assert verdict(evidence, "In 2023 revenue grew by 14.2%.") != "contradicted"
    found = EvidenceIndex([("1", evidence)]).assess("In 2023 revenue grew by 41.2%.")
    assert [(one.claim_text, one.evidence_text) for one in found.signals] == [("41.2%", "14.2%")]


@pytest.mark.parametrize(
    ("evidence", "claim"),
    [
        ("Profit was 31 million in 2021 and 24 million in 2022.", "Profit was 7 million lower in 2022."),
        ("The colony had 1,240 seals in 2022.", "In 2022 the colony had about 1,200 seals."),
        ("It would save six hundred and forty thousand a year.", "It would save 640,000 a year."),
        ("They stand for seven per cent of loans.", "They stand for 7% of loans."),
        ("The study asked whether the drug improves survival.", "The drug does not improve survival."),
        ("The reservoir never fell below 70%.", "The reservoir stayed above 70%."),
        ("In May Voss defeated Lebrune at Castril.", "Lebrune was defeated by Voss at Castril."),
    ],
)
def test_what_follows_or_is_only_worded_otherwise_is_no_contradiction(evidence: str, claim: str) -> None:
    assert verdict(evidence, claim) != "contradicted"


@pytest.mark.parametrize(
    ("evidence", "claim"),
    [
        ("In May Voss defeated Lebrune at Castril.", "Lebrune defeated Voss at Castril."),
        ("In May Voss defeated Lebrune at Castril.", "Voss was defeated by Lebrune at Castril."),
        (
            "Vancomycin is infused over 60 minutes; for operations on the bowel add gentamicin.",
            "Gentamicin is infused over 60 minutes, and for bowel operations vancomycin is added.",
        ),
        ("Counts rose from 412 in spring to 1,967 in autumn.", "Counts fell from 412 in spring to 1,967 in autumn."),
        (
            "The heater goes on heating when the connection is lost.",
            "The heater stops heating when the connection is lost.",
        ),
        (
            "Fatigue was ruled out as the cause. They ruled out fatigue in the weld.",
            "Fatigue in the weld was the cause.",
        ),
    ],
)
def test_what_is_turned_round_is_a_contradiction(evidence: str, claim: str) -> None:
    assert verdict(evidence, claim) == "contradicted"

"""How sure a signal of contradiction is: what is measured, and that a signal which is not sure no longer decides."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from masis.bench.rows import BenchRow, in_half
from masis.offline.inference.contradiction_calibration import (
    FAINT,
    KINDS,
    NAMES,
    ContradictionCalibration,
    signal_features,
)
from masis.offline.inference.support_classifier import load_classifier
from masis.offline.matching.evidence_index import EvidenceIndex

EVIDENCE = [("1", "The ferry leaves Orsund at 7 on weekdays. It carries 240 passengers and may carry cars.")]
CLAIM = "The ferry carries 420 passengers."


def judge(least: float) -> ContradictionCalibration:
    """Looks at the strength alone, and is sure from this probability on."""
    weights = tuple(float(name == "strength") for name in NAMES)
    return ContradictionCalibration((0.0,) * len(NAMES), (1.0,) * len(NAMES), weights, 0.0, least)


@pytest.mark.parametrize(("least", "verdict"), [(0.5, "contradicted"), (0.99, "partial")])
def test_a_signal_decides_only_if_it_is_sure(least: float, verdict: str) -> None:
    model = replace(load_classifier(), calibration=judge(least))
    found = EvidenceIndex(EVIDENCE, model).assess(CLAIM)
    assert found.signals[0].claim_text == "420"
    assert (found.verdict == "contradicted") == (verdict == "contradicted")
    assert (found.signals[0].strength > FAINT) == (verdict == "contradicted")


def test_what_surrounds_a_signal_is_measured() -> None:
    ((_, found, signal),) = list(EvidenceIndex(EVIDENCE).all_signals(CLAIM))
    measured = signal_features(signal, found)
    assert measured is not None
    assert tuple(measured) == NAMES
    assert measured["near"] == pytest.approx(2 / 3)  # carries and passengers stand there too; ferry does not
    assert (measured["is_number"], measured["is_name"]) == (1.0, 0.0)
    assert measured["known"] == 0.0  # 420 stands nowhere
    assert (measured["modal_passage"], measured["modal_claim"]) == (1.0, 0.0)
    assert measured["margin"] == 0.0
    assert measured["strength"] == signal.strength


def test_a_signal_with_words_alike_around_it_is_surer_than_one_in_other_words() -> None:
    calibration = load_classifier().calibration
    assert calibration is not None
    measured = dict.fromkeys(NAMES, 0.0) | {"strength": 0.8, "passage_words": 2.5, "is_number": 1.0}
    assert calibration.probability(measured | {"near": 1.0}) > calibration.probability(measured | {"near": 0.0})


def test_a_faint_signal_stays_as_it_is() -> None:
    ((_, found, signal),) = list(EvidenceIndex(EVIDENCE).all_signals(CLAIM))
    faint = signal.with_strength(0.3)
    assert judge(0.99).calibrate(faint, found) is faint
    quantified = replace(signal, kind="quantifier")
    assert judge(0.99).calibrate(quantified, found) is quantified


def test_the_weights_fit_the_measurements() -> None:
    calibration = load_classifier().calibration
    assert calibration is not None
    assert len(calibration.centre) == len(calibration.spread) == len(calibration.weights) == len(NAMES)
    assert NAMES[-len(KINDS) :] == tuple(f"is_{kind}" for kind in KINDS)


@pytest.mark.slow
@pytest.mark.real_data
def test_few_conclusions_of_real_abstracts_are_called_contradicted(shared_data: Path) -> None:
    lines = (shared_data / "pubmedqa_cases.jsonl").read_text(encoding="utf-8").split("\n")
    rows = []
    for raw in (json.loads(line) for line in lines if line.strip()):
        evidence = tuple((one["id"], one["text"]) for one in raw["evidence"])
        rows.append(BenchRow(raw["id"], raw["answer"], evidence, False, (raw["query"],)))
    unseen = [row for row, _ in in_half(rows, "report")]
    denied = [row.id for row in unseen if EvidenceIndex(row.evidence).assess(row.claim).verdict == "contradicted"]
    assert len(denied) <= 0.05 * len(unseen)

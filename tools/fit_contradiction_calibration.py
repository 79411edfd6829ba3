"""Fits how sure a signal of contradiction is (`masis.offline.inference.contradiction_calibration`);
`tools/fit_offline.py` runs it first.

Every signal that the rules give on claims known to be true says something false. On an edited summary a signal is right
where it touches what was edited; on our own altered claims it is right. Only fit halves are read, and the half of
`altered.json` that rules were made on.
"""

import difflib
import json
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from sklearn.linear_model import LogisticRegression

from masis.bench import ALTERED
from masis.bench.rows import BenchRow, in_half
from masis.offline.inference.contradiction_calibration import KINDS, NAMES, REACH, signal_features
from masis.offline.inference.support_classifier import SupportClassifier
from masis.offline.matching.evidence_index import EvidenceIndex

ALTERED_CLAIMS = Path(__file__).parents[1] / "tests" / "offline" / "altered.json"
PUBMEDQA = "pubmedqa_cases.jsonl"
LEAST = 0.4
"""From which probability a signal is sure: the false ones among claims known to be true halve, few right ones go."""
HOLD = 0.1
MOST = 150.0
"""What the signals of one source weigh together at most, so that none leads."""
FAINTEST = 0.2
_WORD = re.compile(r"\w+(?:['’]\w+)?|[^\w\s]")


class LabelledClaim(NamedTuple):
    """A claim with its evidence, and where it is altered: None for everywhere, nothing where it is true."""

    source: str
    claim: str
    evidence: tuple[tuple[str, str], ...]
    altered: Sequence[tuple[int, int]] | None


def fit(rows: Sequence[tuple[str, BenchRow]], data: Path, unfitted: SupportClassifier) -> dict[str, Any]:
    """The weights as plain values; `rows` are those of the fit halves, each with the name of its set."""
    measured, right, sources = [], [], []
    for labelled in claims(rows, data):
        for values, true in signals_of(labelled, unfitted):
            measured.append([values[name] for name in NAMES])
            right.append(int(true))
            sources.append(labelled.source)
    features, labels, often = np.array(measured), np.array(right), Counter(sources)
    weights = np.array([min(1.0, MOST / often[source]) for source in sources])
    centre = np.round(np.average(features, axis=0, weights=weights), 5)
    spread = np.sqrt(np.average((features - centre) ** 2, axis=0, weights=weights))
    spread = np.round(np.where(spread > 1e-4, spread, 1.0), 5)
    held = np.clip((features - centre) / spread, -REACH, REACH)
    fitted = LogisticRegression(C=HOLD, max_iter=3000).fit(held, labels, sample_weight=weights)  # type: ignore[no-untyped-call]
    return {
        "centre": centre.tolist(),
        "spread": spread.tolist(),
        "weights": np.round(fitted.coef_[0], 5).tolist(),
        "base": round(float(fitted.intercept_[0]), 5),
        "least": LEAST,
    }


def signals_of(labelled: LabelledClaim, unfitted: SupportClassifier) -> Iterator[tuple[dict[str, float], bool]]:
    """What surrounds each signal on a claim, and whether the signal is right."""
    index = EvidenceIndex(labelled.evidence, unfitted)
    for offset, found, signal in index.all_signals(labelled.claim):
        values = signal_features(signal, found)
        if signal.kind not in KINDS or signal.strength < FAINTEST or values is None:
            continue
        start, end = signal.claim_span[0] + offset, signal.claim_span[1] + offset
        where = labelled.altered
        yield values, where is None or any(begin < end + 2 and start - 2 < finish for begin, finish in where)


def claims(rows: Sequence[tuple[str, BenchRow]], data: Path) -> Iterator[LabelledClaim]:
    """The claims to learn from, with what is known of them."""
    edits = {}
    for raw in _read(data / "summedits.jsonl"):
        edits[raw["doc"], raw["summary"]] = edited(raw["original_summary"], raw["summary"])
    for name, row in rows:
        if not row.positive:
            yield LabelledClaim(f"{name} true", row.claim, row.evidence, ())
        elif name == "SummEdits":
            yield LabelledClaim("edited", row.claim, row.evidence, edits[row.evidence[0][1], row.claim])
        elif name == "Demo gold" and row.planted in ALTERED:
            yield LabelledClaim("planted", row.claim, row.evidence, None)
    for case in json.loads(ALTERED_CLAIMS.read_text(encoding="utf-8")):
        if case["half"] == "made on":
            evidence = tuple((str(k), text) for k, text in enumerate(case["evidence"], 1))
            yield from (LabelledClaim("ours true", claim, evidence, ()) for claim in case["true"])
            yield from (LabelledClaim("ours", one["claim"], evidence, None) for one in case["altered"])
    for row, _ in in_half(list(conclusions(data)), "fit"):
        yield LabelledClaim("PubMedQA true", row.claim, row.evidence, ())


def conclusions(data: Path) -> Iterator[BenchRow]:
    """The authors' conclusions of PubMedQA beside their own abstracts: what they say is true."""
    for raw in _read(data / PUBMEDQA):
        evidence = tuple((one["id"], one["text"]) for one in raw["evidence"])
        yield BenchRow(raw["id"], raw["answer"], evidence, False, (raw["query"],))


def _read(path: Path) -> Iterator[dict[str, Any]]:
    for line in path.read_text(encoding="utf-8").split("\n"):
        if line.strip():
            yield json.loads(line)


def edited(original: str, summary: str) -> list[tuple[int, int]]:
    """Where a summary differs from its original, as offsets into it; what was left out lies between its neighbours."""
    before = [match.group() for match in _WORD.finditer(original)]
    after = [(match.start(), match.end()) for match in _WORD.finditer(summary)]
    words = [summary[start:end] for start, end in after]
    found = []
    for kind, _, _, first, last in difflib.SequenceMatcher(None, before, words, autojunk=False).get_opcodes():
        if kind in ("replace", "insert"):
            found.append((after[first][0], after[last - 1][1]))
        elif kind == "delete" and first < len(after):
            found.append((after[max(0, first - 1)][0], after[first][1]))
    return found

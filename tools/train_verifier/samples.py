"""The rows of a half with their features, as arrays. Features are slow to extract, so they are cached in a file.

python -m tools.train_verifier.samples --data FOLDER fit report
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple, get_args

import numpy as np

import masis.offline
from masis.offline.inference.encoder import load_encoder
from masis.offline.inference.features import NAMES
from masis.offline.inference.support_classifier import unfitted
from masis.offline.matching.evidence_index import EvidenceIndex
from tools.train_verifier.data import Half, Row, read

Array = np.ndarray[Any, np.dtype[Any]]
WORK = Path(".run") / "train_verifier"
"""What is made and not committed: extracted features, predictions."""
SHARES = {"HAGRID": 2.0, "WiCE": 1.0, "SummEdits": 1.8, "ExpertQA": 1.2, "Triples": 0.2, "PubMedQA": 0.05}
"""How much each set weighs in training; half of it for each class."""
TRAINING_ONLY_SHARES = {
    "HAGRID": 0.3, "WiCE": 0.2, "altered": 0.08, "copied": 0.05, "removed": 0.05, "FEVER": 0.1, "BEGIN": 0.1,
}  # fmt: skip
"""How much the rows for training only of a set weigh together."""
OFFLINE = Path(masis.offline.__file__).parent
MEASURING = ("contradictions", "inference", "matching", "parsing", "text")
"""The packages of `masis.offline` that features come from."""


class Measured(NamedTuple):
    """A claim as the product measures it before weights decide: features, codes of vetoes, whether a check accuses."""

    features: tuple[float, ...]
    vetoes: tuple[str, ...]
    accused: bool


class Sample:
    """The rows of a half as arrays, without those that have nothing to compare."""

    def __init__(self, data: Path, half: Half) -> None:
        """Read the rows, and their features from the cache or by measuring them again.

        Args:
            data: The folder with the labelled sets.
            half: Which half to read.

        """
        rows = read(data, half)
        claims = measure(rows, WORK / f"features_{half}.json")
        kept = [(row, group, claim) for (row, group), claim in zip(rows, claims, strict=True) if claim is not None]
        self.rows = [row for row, _, _ in kept]
        self.features = np.array([claim.features for _, _, claim in kept])
        self.vetoes = [claim.vetoes for _, _, claim in kept]
        self.accused = np.array([claim.accused for _, _, claim in kept])
        self.supported = np.array([row.supported for row in self.rows]).astype(int)
        self.sets = np.array([row.set for row in self.rows])
        self.training_only = np.array([row.training_only for row in self.rows])
        self.groups = np.array([group for _, group, _ in kept])
        self.weights = np.zeros(len(kept))
        for name, share in SHARES.items():
            for label in (0, 1):
                members = (self.sets == name) & ~self.training_only & (self.supported == label)
                self.weights[members] = share / 2 / max(1, members.sum())
        for name, share in TRAINING_ONLY_SHARES.items():
            members = (self.sets == name) & self.training_only
            self.weights[members] = share / max(1, members.sum())
        self.weights *= len(self.weights) / self.weights.sum()


def measure(rows: Sequence[tuple[Row, str]], cache: Path) -> list[Measured | None]:
    """Return what is measured of each row; from the cache while code, encoder and rows stay the same."""
    key = _key(rows)
    if cache.exists():
        stored = json.loads(cache.read_text(encoding="utf-8"))
        if stored["key"] == key:
            return [claim and Measured(tuple(claim[0]), tuple(claim[1]), claim[2]) for claim in stored["claims"]]
    # A model that confirms everything without an objection and accuses nothing: what is left is what the checks say.
    model = unfitted(NAMES, confirm=0.0, accuse=-1.0)
    claims: list[Measured | None] = []
    evidence, index, start = None, None, time.monotonic()
    for number, (row, _) in enumerate(rows):
        if index is None or row.evidence != evidence:
            evidence, index = row.evidence, EvidenceIndex(row.evidence, model)
        found = index.assess(row.claim)
        features = tuple(round(found.features[name], 6) for name in NAMES) if found.features else ()
        claims.append(Measured(features, found.vetoes, found.verdict == "contradicted") if features else None)
        if number % 1000 == 0:
            print(f"{number} of {len(rows)} claims, {time.monotonic() - start:.0f} s", file=sys.stderr, flush=True)
    cache.parent.mkdir(parents=True, exist_ok=True)
    cache.write_text(json.dumps({"key": key, "claims": claims}), encoding="utf-8")
    return claims


def code_digests() -> dict[str, str]:
    """Return the sha256 of every file of the product that features depend on."""
    files = [
        path for name in MEASURING for path in sorted((OFFLINE / name).rglob("*")) if path.suffix in (".py", ".txt")
    ]
    digests = {str(path.relative_to(OFFLINE)): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}
    return digests | {"inference/minilm/model.onnx": load_encoder().digest}


def _key(rows: Sequence[tuple[Row, str]]) -> str:
    digest = hashlib.sha256(json.dumps(code_digests()).encode())
    digest.update(repr([(row.claim, row.evidence) for row, _ in rows]).encode())
    return digest.hexdigest()


def main() -> None:
    """Measure the halves that are named."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("halves", nargs="+", choices=get_args(Half))
    parser.add_argument("--data", type=Path, required=True, help="the folder with the labelled sets")
    options = parser.parse_args()
    for half in options.halves:
        print(f"{half}: {len(Sample(options.data, half).rows)} claims")


if __name__ == "__main__":
    main()

"""The rows of a half with their features, as arrays. Features are slow to extract, so they are cached in a file.

python -m tools.train_verifier.samples --data ../shared/data fit report
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, get_args

import numpy as np

from tools.train_verifier.data import Half, Row, read
from tools.train_verifier.encoder import Encoder
from tools.train_verifier.features import ClaimFeatures, EvidenceIndex, FeatureExtractor, Window
from tools.train_verifier.text import WORD_LISTS, Lexicon

HERE = Path(__file__).parent
WORK = Path(".run") / "train_verifier"
"""What is made and not committed: the encoder, extracted features, predictions."""
ENCODER = WORK / "encoder"
SHARES = {"HAGRID": 2.0, "WiCE": 1.0, "SummEdits": 1.8, "ExpertQA": 1.2, "Triples": 0.2, "PubMedQA": 0.05}
"""How much each set weighs in training; half of it for each class."""
TRAINING_ONLY_SHARES = {
    "HAGRID": 0.3, "WiCE": 0.2, "altered": 0.08, "copied": 0.05, "removed": 0.05, "FEVER": 0.1, "BEGIN": 0.1,
}  # fmt: skip
"""How much the rows for training only of a set weigh together."""
FEATURE_CODE = ("text.py", "facts.py", "encoder.py", "features.py")


class Sample:
    """The rows of a half as arrays, without those that have nothing to compare."""

    def __init__(self, data: Path, half: Half, encoder: Path = ENCODER) -> None:
        """Read the rows, and their features from the cache, or compute them.

        Args:
            data: The folder with the labelled sets.
            half: Which half to read.
            encoder: The folder of the exported encoder.

        """
        rows = read(data, half)
        features = extract(rows, encoder, WORK / f"features_{half}.json")
        kept = [(row, group, claim) for (row, group), claim in zip(rows, features, strict=True) if claim is not None]
        self.rows = [row for row, _, _ in kept]
        self.claims = [claim for _, _, claim in kept]
        self.features = np.array([claim.features for claim in self.claims])
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


def extract(rows: Sequence[tuple[Row, str]], encoder: Path, cache: Path) -> list[ClaimFeatures | None]:
    """Return the features of each row; from the cache while code, encoder, word lists and rows stay the same."""
    key = _key(rows, encoder)
    if cache.exists():
        stored = json.loads(cache.read_text(encoding="utf-8"))
        if stored["key"] == key:
            return [_from_json(claim) for claim in stored["claims"]]
    lexicon, model = Lexicon.load(), Encoder.load(encoder, cache_size=4000)
    claims: list[ClaimFeatures | None] = []
    evidence, extractor, start = None, None, time.monotonic()
    for number, (row, _) in enumerate(rows):
        if extractor is None or row.evidence != evidence:
            evidence, extractor = row.evidence, FeatureExtractor(EvidenceIndex(row.evidence, lexicon), model)
        claims.append(extractor.extract(row.claim))
        if number % 1000 == 0:
            print(f"{number} of {len(rows)} claims, {time.monotonic() - start:.0f} s", file=sys.stderr, flush=True)
    cache.parent.mkdir(parents=True, exist_ok=True)
    stored = {"key": key, "claims": [claim and [claim.features.tolist(), *claim[1:]] for claim in claims]}
    cache.write_text(json.dumps(stored), encoding="utf-8")
    return claims


def _from_json(claim: list[Any] | None) -> ClaimFeatures | None:
    if claim is None:
        return None
    features, windows, vetoes, accusations = claim
    spans = tuple(Window(*window) for window in windows)
    return ClaimFeatures(np.array(features), spans, tuple(vetoes), tuple(accusations))


def _key(rows: Sequence[tuple[Row, str]], encoder: Path) -> str:
    digest = hashlib.sha256()
    for path in (
        *(HERE / name for name in FEATURE_CODE),
        WORD_LISTS / "synonyms.txt",
        WORD_LISTS / "antonyms.txt",
        encoder / "model.onnx",
        encoder / "tokenizer.json",
    ):
        digest.update(path.read_bytes())
    digest.update(repr([(row.claim, row.evidence) for row, _ in rows]).encode())
    return digest.hexdigest()


def main() -> None:
    """Extract the features of the halves that are named."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("halves", nargs="+", choices=get_args(Half))
    parser.add_argument("--data", type=Path, required=True, help="the folder with the labelled sets")
    parser.add_argument("--encoder", type=Path, default=ENCODER, help=f"default: {ENCODER}")
    options = parser.parse_args()
    for half in options.halves:
        sample = Sample(options.data, half, options.encoder)
        print(f"{half}: {len(sample.rows)} claims")


if __name__ == "__main__":
    main()

"""Train a small detector of wrong claims on ``masis export --format claims``.

    python examples/train_detector.py claims.jsonl

It learns from the merged labels of the split ``train`` and prints how it does on ``test``. The
features are deliberately few: the words of the claim that its deciding passage lacks.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

from sklearn.feature_extraction import DictVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import classification_report
from sklearn.pipeline import Pipeline, make_pipeline


def features(row: dict[str, Any]) -> dict[str, float]:
    """Return the shares of a claim's words and figures that its passage lacks."""
    passage = set(re.findall(r"\w+", (row["passage_text"] or "").lower()))
    # Brackets hold references, such as [1].
    words = set(re.findall(r"\w+", re.sub(r"\[[^]]*\]", "", row["text"]).lower()))
    figures = {word for word in words if word.isdigit()}
    return {
        "missing words": len(words - passage) / max(1, len(words)),
        "missing figures": len(figures - passage) / max(1, len(figures)),
        "no passage": float(not passage),
    }


def labeled_claims(path: Path) -> list[dict[str, Any]]:
    """Return one row per claim that has a merged label; the export has one per reviewer."""
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    place = ("case_id", "run_id", "iteration", "start", "end")
    claims = {tuple(row[name] for name in place): row for row in rows if row["merged_label"]}
    return list(claims.values())


def train(rows: list[dict[str, Any]]) -> Pipeline:
    """Return a detector fitted to the rows: ``predict`` says whether a claim is wrong."""
    model = make_pipeline(DictVectorizer(), LogisticRegression(class_weight="balanced", C=10))
    return model.fit([features(row) for row in rows], [is_wrong(row) for row in rows])


def is_wrong(row: dict[str, Any]) -> bool:
    """Return whether the merged label says that the claim isn't supported."""
    return row["merged_label"] != "supported"


if __name__ == "__main__":
    claims = labeled_claims(Path(sys.argv[1]))
    test = [row for row in claims if row["split"] == "test"]
    detector = train([row for row in claims if row["split"] == "train"])
    predicted = detector.predict([features(row) for row in test])
    print(classification_report([is_wrong(row) for row in test], predicted, zero_division=0))

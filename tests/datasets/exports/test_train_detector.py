"""The example that trains a detector on exported claims."""

from __future__ import annotations

import json
import runpy
from pathlib import Path

EXAMPLE = Path(__file__).parents[3] / "examples" / "train_detector.py"


def test_the_example_detector_gets_planted_labels_back(tmp_path: Path) -> None:
    rows = []
    for number in range(40):
        wrong = number % 3 == 0
        length = number + 100
        row = {
            "case_id": f"case-{number}",
            "run_id": "run",
            "iteration": 1,
            "start": 0,
            "end": 30,
            "text": f"The bridge is {length + 7 * wrong} metres long [1].",
            "passage_text": f"The bridge is {length} metres long.",
            "merged_label": "contradicted" if wrong else "supported",
        }
        # Two reviewers have the same claim; a claim without a merged label isn't learned.
        rows += [row, row, {**row, "start": 40, "merged_label": None}]
    path = tmp_path / "claims.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    example = runpy.run_path(str(EXAMPLE))
    claims = example["labeled_claims"](path)
    assert len(claims) == 40
    detector = example["train"](claims[:30])
    predicted = detector.predict([example["features"](row) for row in claims[30:]])
    assert list(predicted) == [row["merged_label"] == "contradicted" for row in claims[30:]]

"""Fit how word overlap and meaning determine the relevance of an abstract.

The results are the constants of ``screening/grading/relevance.py``.

    PYTHONPATH=. python tools/fit_relevance.py --data FOLDER

Uses the titles of ``study_types_train.jsonl`` as questions. Compares each with its own abstract
(without the title), with similar ones (ranks 5, 10, 20 and 40 by similarity, the same field) and
with dissimilar ones. Prints the logistic regression and the similarity for each kind. Needs
scikit-learn (the extra ``dev``) and takes about 50 seconds.
"""

from __future__ import annotations

import argparse
import json
import random
from pathlib import Path
from typing import Any

import numpy as np

from masis.schema.screening import Abstract
from masis.screening.grading.question import read_question
from masis.screening.grading.relevance import relevance, similarity_of

ABSTRACTS = 700
NEAR, FAR = (4, 9, 19, 39), (150, 400, 600)


def main(data: Path) -> None:
    """Print the constants and the shares that they are based on."""
    from sklearn.linear_model import LogisticRegression

    rows = [json.loads(line) for line in (data / "study_types_train.jsonl").open(encoding="utf-8")]
    rows = [row for row in rows if len(row["abstract"]) > 300]
    random.Random(1).shuffle(rows)
    abstracts = [Abstract(id=row["pmid"], text=row["abstract"]) for row in rows[:ABSTRACTS]]
    titles = [row["title"] for row in rows[:ABSTRACTS]]
    values, is_own, kinds = [], [], []
    for number, title in enumerate(titles):
        likeness = [similarity_of(title, abstract) for abstract in abstracts]
        others = [row_number for row_number in np.argsort(likeness)[::-1] if row_number != number]
        chosen = [
            ("own", number),
            *(("near", others[n]) for n in NEAR),
            *(("far", others[n]) for n in FAR),
        ]
        question = read_question(title)
        for kind, row_number in chosen:
            score = relevance(question, abstracts[row_number]).score
            if score is not None:
                values.append((score, likeness[row_number]))
                is_own.append(kind == "own")
                kinds.append(kind)
    table, kind_of = np.array(values), np.array(kinds)
    unfitted: Any = LogisticRegression
    model = unfitted(class_weight="balanced", C=10).fit(table, is_own)
    print(
        f"words {model.coef_[0][0]:.2f}, likeness {model.coef_[0][1]:.2f}, offset"
        f" {model.intercept_[0]:.2f}"
    )
    for kind in ("own", "near", "far"):
        shares = np.percentile(table[kind_of == kind, 1], [1, 5, 25, 50, 75, 95, 99]).round(2)
        print(f"{kind}: similarity at 1, 5, 25, 50, 75, 95, 99%: {shares.tolist()}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, required=True, help="folder with the public data sets")
    main(parser.parse_args().data)

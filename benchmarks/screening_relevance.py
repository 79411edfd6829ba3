"""How well offline relevance tells a question's own abstract from its nearest neighbours.

    PYTHONPATH=. python benchmarks/screening_relevance.py --data FOLDER

For every second case of ``pubmedqa_cases.jsonl`` (the half that no rarity was counted on) the
abstract the question was asked of, against the ten others of the file, and of
``study_types_val.jsonl``, that share most of the question's words: hard negatives, some of them
about the same thing. Reports the area under the ROC curve, and how each is recommended by relevance
alone.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from statistics import fmean, quantiles

from masis.offline.text.tokens import tokens
from masis.schema.screening import Abstract
from masis.screening.grading import rubric
from masis.screening.grading.question import rarity, read_question
from masis.screening.grading.relevance import relevance

NEIGHBOURS = 10


def main(data: Path) -> None:
    """Print the figures."""
    cases = [json.loads(line) for line in (data / "pubmedqa_cases.jsonl").open(encoding="utf-8")]
    pool = [
        Abstract(id=case["id"], text=" ".join(chunk["text"] for chunk in case["evidence"]))
        for case in cases
    ]
    pool.extend(
        Abstract(id=row["pmid"], title=row["title"], text=row["abstract"])
        for row in map(json.loads, (data / "study_types_val.jsonl").open(encoding="utf-8"))
    )
    stems = [{token.stem for token in tokens(f"{each.title} {each.text}")} for each in pool]
    own, others, spent, graded = [], [], 0.0, 0
    for number, case in enumerate(cases):
        if number % 2 == 0:
            continue
        asked = {token.stem for token in tokens(case["query"]) if token.weight}
        shared = [sum(rarity(root) for root in asked & has) for has in stems]
        order = sorted(range(len(pool)), key=lambda i: -shared[i])
        near = [i for i in order if i != number][:NEIGHBOURS]
        question = read_question(case["query"])
        began = time.process_time()
        scores = [relevance(question, pool[i]).score or 0.0 for i in (number, *near)]
        spent += time.process_time() - began
        graded += len(scores)
        own.append(scores[0])
        others.append(scores[1:])
    area = fmean(
        fmean((mine > each) + 0.5 * (mine == each) for each in theirs)
        for mine, theirs in zip(own, others, strict=True)
    )
    flat = [score for theirs in others for score in theirs]
    print(f"{len(own)} questions, {NEIGHBOURS} hard negatives each; AUC {area:.3f}")
    for name, scores in (("own", own), ("others", flat)):
        off = fmean(score < rubric.DISCARD_RELEVANCE for score in scores)
        keep = fmean(score >= rubric.KEEP_RELEVANCE for score in scores)
        low, middle, high = quantiles(scores, n=4)
        print(
            f"{name}: {off:.1%} off topic, {keep:.1%} relevant; quartiles {low:.2f} {middle:.2f}"
            f" {high:.2f}, mean {fmean(scores):.2f}"
        )
    print(f"{1000 * spent / graded:.2f} ms an abstract")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, required=True, help="folder with the public data sets")
    main(parser.parse_args().data)

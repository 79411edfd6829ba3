"""Measure how well offline relevance separates a question's own abstract from similar abstracts.

    PYTHONPATH=. python benchmarks/screening_relevance.py --data FOLDER

Uses every second case of ``pubmedqa_cases.jsonl``, the half that wasn't used to count how rare
terms are. Compares the abstract that belongs to a question with ten hard negatives: the abstracts
of that file and of ``study_types_val.jsonl`` that share most of the question's words. Some of them
are about the same topic. Prints the area under the ROC curve, and the share of abstracts below and
above the thresholds of relevance.
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

NEIGHBORS = 10


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
    stems = [
        {token.stem for token in tokens(f"{abstract.title} {abstract.text}")} for abstract in pool
    ]
    own_scores, others, seconds, graded = [], [], 0.0, 0
    for number, case in enumerate(cases):
        if number % 2 == 0:
            continue
        question_stems = {token.stem for token in tokens(case["query"]) if token.weight}
        shared = [sum(rarity(root) for root in question_stems & has) for has in stems]
        order = sorted(range(len(pool)), key=lambda i: -shared[i])
        nearest = [i for i in order if i != number][:NEIGHBORS]
        question = read_question(case["query"])
        started = time.process_time()
        scores = [relevance(question, pool[i]).score or 0.0 for i in (number, *nearest)]
        seconds += time.process_time() - started
        graded += len(scores)
        own_scores.append(scores[0])
        others.append(scores[1:])
    area = fmean(
        fmean((own > other) + 0.5 * (own == other) for other in other_scores)
        for own, other_scores in zip(own_scores, others, strict=True)
    )
    flat = [score for neighbors in others for score in neighbors]
    print(f"{len(own_scores)} questions, {NEIGHBORS} hard negatives each; AUC {area:.3f}")
    for name, scores in (("own", own_scores), ("others", flat)):
        discarded = fmean(score < rubric.DISCARD_RELEVANCE for score in scores)
        keep = fmean(score >= rubric.KEEP_RELEVANCE for score in scores)
        low, middle, high = quantiles(scores, n=4)
        print(
            f"{name}: {discarded:.1%} off topic, {keep:.1%} relevant; quartiles"
            f" {low:.2f} {middle:.2f} {high:.2f}, mean {fmean(scores):.2f}"
        )
    print(f"{1000 * seconds / graded:.2f} ms per abstract")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, required=True, help="folder with the public data sets")
    main(parser.parse_args().data)

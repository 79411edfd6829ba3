"""Measure relevance and reading order on public systematic reviews.

    PYTHONPATH=. python benchmarks/screening_reviews.py --data FOLDER [--part report] [--learn]

Reads FOLDER/reviews/*.jsonl: a line with the question and its concept lines, then records that the
authors included or not. The reviews are split once: the weights were fitted on ``fit``, variants
were chosen on ``choose``, and ``report`` is only reported. For the question as typed and with its
concepts, prints the share of included studies that relevance discards, and the area under the ROC
curve of relevance, of the concept frequency and of the similarity of meaning alone, and of TF-IDF
over the same words. ``--learn`` simulates reading in the order of ``reading_order`` and prints the
work saved at 95% recall (WSS@95) and the recall at which stopping is proposed. ``--fit`` prints the
logistic regression on ``fit``.
"""

from __future__ import annotations

import argparse
import json
import math
from pathlib import Path
from statistics import fmean
from typing import Any, NamedTuple

import numpy as np

from masis.schema.screening import Abstract
from masis.screening.grading import rubric
from masis.screening.grading.question import concept_lines, read_question, with_concepts
from masis.screening.grading.relevance import relevance, relevance_by_meaning, similarity_of
from masis.screening.ranking.learning import (
    LEAST_DECISIONS,
    TARGET_RECALL,
    reading_order,
    stopping_proposal,
)

PARTS = {
    "fit": ("ADHD", "COPD", "Micronutrients", "UrinaryIncontinence"),
    "choose": ("ACEInhibitors", "Antihistamines", "ProtonPumpInhibitors"),
    "report": ("CalciumChannelBlockers", "NSAIDS", "Nagtegaal"),
}
"""The split, by shuffling the sorted names with ``random.Random(45)``."""
BATCH = 20
"""Decisions between two trainings of the classifier in the simulation."""


class Review(NamedTuple):
    """A review: question, concept lines, its abstracts and whether the authors included each."""

    name: str
    question: str
    concepts: str
    abstracts: list[Abstract]
    included: np.ndarray[Any, np.dtype[Any]]


def read_review(path: Path) -> Review:
    """Read the file of a review."""
    first, *rows = [json.loads(line) for line in path.open(encoding="utf-8")]
    abstracts = [
        Abstract(id=str(number), title=row["title"] or "", text=row["text"] or "")
        for number, row in enumerate(rows)
    ]
    included = np.array([bool(row["included"]) for row in rows])
    return Review(path.stem, first["question"], first["concepts"], abstracts, included)


def area(included: np.ndarray[Any, np.dtype[Any]], scores: Any) -> float:
    """Return the area under the ROC curve."""
    from sklearn.metrics import roc_auc_score

    return float(roc_auc_score(included, scores))


def tfidf(question: str, review: Review) -> Any:
    """Return the similarity of each abstract to the question by the words of both."""
    from sklearn.feature_extraction.text import TfidfVectorizer

    texts = [f"{abstract.title} {abstract.text}" for abstract in review.abstracts]
    unfitted: Any = TfidfVectorizer
    vectorizer = unfitted(sublinear_tf=True, stop_words="english").fit(texts)
    # Only the words of the concepts count, not the names of their parts.
    words = " ".join([question.split("\n", 1)[0], *concept_lines(question).values()])
    return (vectorizer.transform(texts) @ vectorizer.transform([words]).T).toarray().ravel()


class Scores(NamedTuple):
    """The scores of all abstracts of a review."""

    combined: list[float]
    frequency: list[float]
    meaning: list[float]


def score(questions: tuple[str, ...], review: Review) -> list[Scores]:
    """Return relevance, concept frequency and similarity of each abstract for each question."""
    parsed = [read_question(question) for question in questions]
    results = [Scores([], [], []) for _ in parsed]
    # All questions for one abstract at a time, because its passages are encoded only once then.
    for abstract in review.abstracts:
        for question, result in zip(parsed, results, strict=True):
            value = relevance_by_meaning(question, abstract).score
            # An abstract in another language has no score and stays open.
            result.combined.append(rubric.DISCARD_RELEVANCE if value is None else value)
            result.frequency.append(relevance(question, abstract).frequency)
            result.meaning.append(similarity_of(question.compared_text, abstract))
    return results


def simulate(review: Review, scores: list[float]) -> tuple[float, float, float]:
    """Read a review in the proposed order: WSS@95, then work and recall at the first proposal."""
    ids = [abstract.id for abstract in review.abstracts]
    known, included = (
        dict(zip(ids, scores, strict=True)),
        dict(zip(ids, review.included, strict=True)),
    )
    decisions: dict[str, bool] = {}
    proposed = 0
    while len(decisions) < len(ids):
        order = reading_order(review.abstracts, known, decisions).ids
        step = LEAST_DECISIONS if not decisions else BATCH
        decisions |= {abstract_id: bool(included[abstract_id]) for abstract_id in order[:step]}
        labels = list(decisions.values())
        if not proposed and stopping_proposal(labels, len(ids) - len(labels))[0]:
            proposed = len(labels)
    found = np.cumsum(list(decisions.values()))
    needed = math.ceil(TARGET_RECALL * found[-1])
    read = int(np.searchsorted(found, needed)) + 1
    return (
        TARGET_RECALL - read / len(ids),
        proposed / len(ids),
        float(found[proposed - 1] / found[-1]),
    )


def fit(folder: Path) -> None:
    """Print the weights of concept frequency and similarity on the reviews of ``fit``."""
    from sklearn.linear_model import LogisticRegression

    rows: list[tuple[float, float]] = []
    labels: list[bool] = []
    weights: list[float] = []
    for name in PARTS["fit"]:
        review = read_review(folder / f"{name}.jsonl")
        questions = (review.question, with_concepts(review.question, review.concepts))
        for scores in score(questions, review):
            rows.extend(zip(scores.frequency, scores.meaning, strict=True))
            labels.extend(review.included)
            share = review.included.mean()
            weights.extend(np.where(review.included, 0.5 / share, 0.5 / (1 - share)))
    unfitted: Any = LogisticRegression
    model = unfitted(C=10).fit(rows, labels, sample_weight=weights)
    print("frequency, meaning, offset:", model.coef_[0].round(2), model.intercept_.round(2))


def main(folder: Path, part: str, learn: bool) -> None:
    """Print a line for each review and way of asking, and the means."""
    columns = ["discarded", "others", "combined", "words", "meaning", "tfidf"]
    columns += ["wss95", "read", "recall"] if learn else []
    print(f"{'review':24}{'question':10}", *(f"{column:>9}" for column in columns))
    means: dict[str, list[list[float]]] = {"typed": [], "concepts": []}
    for name in PARTS[part] if part != "all" else sorted(sum(PARTS.values(), ())):
        review = read_review(folder / f"{name}.jsonl")
        questions = (review.question, with_concepts(review.question, review.concepts))
        for asked, question, scores in zip(means, questions, score(questions, review), strict=True):
            discarded = np.array(scores.combined) < rubric.DISCARD_RELEVANCE
            values = [
                float(discarded[review.included].mean()),
                float(discarded[~review.included].mean()),
                *(area(review.included, values) for values in scores),
                area(review.included, tfidf(question, review)),
                *(simulate(review, scores.combined) if learn else ()),
            ]
            means[asked].append(values)
            print(f"{name:24}{asked:10}", *(f"{value:9.3f}" for value in values), flush=True)
    for asked, lines in means.items():
        print(
            f"{'mean':24}{asked:10}",
            *(f"{fmean(column):9.3f}" for column in zip(*lines, strict=True)),
        )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, required=True, help="folder with the public data sets")
    parser.add_argument("--part", choices=[*PARTS, "all"], default="report")
    parser.add_argument("--learn", action="store_true", help="simulate reading too")
    parser.add_argument("--fit", action="store_true", help="print the fitted weights only")
    given = parser.parse_args()
    if given.fit:
        fit(given.data / "reviews")
    else:
        main(given.data / "reviews", given.part, given.learn)

# mypy: allow-untyped-calls
"""Fit the study types on StudyTypeTeller's training file.

    python tools/fit_study_types.py --data FOLDER            fit, print the figures of the cross-validation
    python tools/fit_study_types.py --data FOLDER --report   also evaluate on the validation file, with baselines

Writes `masis/screening/grading/study_types.npz`. The model is a logistic regression over words,
pairs of words and cues (`masis.screening.grading.designs`), for the 14 types and for three
questions about a study that several types answer alike. Every choice was made by cross-validation
on the training file (five folds, split twice). The validation file is read only with --report and
isn't used for any choice. --report writes the figures between the marks in docs/screening.md. The
output is deterministic, byte for byte; it takes about two minutes on one core.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse import csr_matrix, diags, hstack
from sklearn.feature_extraction import DictVectorizer
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import confusion_matrix, f1_score, precision_recall_fscore_support
from sklearn.model_selection import StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import normalize
from sklearn.svm import LinearSVC
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from masis.schema.screening import STUDY_TYPES
from masis.screening.grading.designs import (
    MAX_CUE_DEVIATION,
    WEIGHTS,
    AbstractTerms,
    design_cues,
    load_classifier,
)

TRAINING, VALIDATION = "study_types_train.jsonl", "study_types_val.jsonl"
PAGE = Path(__file__).parents[1] / "docs" / "screening.md"
VERSION = "2"
SEED = 0

TITLE_SHARE = 0.6
"""Weight of a title's terms, relative to the text's."""
CUE_SHARE = 0.03
"""Weight of one standard deviation of a cue, relative to a text's terms."""
FEWEST = 3
"""Terms that occur in fewer abstracts are left out."""
LOOSENESS = 5.0
"""Inverse strength of the penalty (C of scikit-learn)."""
BALANCE = {"type": 1.3, "question": 1.0}
"""Exponent with which the rarity of a class increases its weight."""
QUESTION_WEIGHT = 0.7
"""Weight of the answers, relative to the type."""
FOLDS, DEALS = 5, 2
PASSES = 25
LEAST = f"(minimum of {PASSES} passes, mean over all abstracts)"
TEMPERATURES = np.linspace(0.6, 4.0, 69)

Array = np.ndarray[Any, np.dtype[Any]]


def who(kind: str) -> str:
    """Return who or what a study of this type examines."""
    if kind.startswith("animal"):
        return "animals"
    if kind == "in_vitro_study":
        return "cells"
    if kind in ("non_systematic_review", "human_systematic_review"):
        return "literature"
    return "plan" if kind == "clinical_study_protocol" else "people"


def what(kind: str) -> str:
    """Return what was done to the subjects of a study of this type."""
    if "non_drug" in kind:
        return "another intervention"
    if "drug" in kind:
        return "a drug"
    if kind in ("animal_other", "remaining", "human_rct_non_intervention"):
        return "nothing"
    return "case" if kind == "human_case_report" else who(kind)


def how(kind: str) -> str:
    """Return the design of a study of this type."""
    for design in ("human_rct", "human_non_rct", "animal"):
        if kind.startswith(design):
            return design
    return kind


QUESTIONS: tuple[Callable[[str], str], ...] = (who, what, how)


@dataclass(frozen=True)
class Sample:
    """Abstracts with their types, as counted terms and measured cues."""

    documents: list[str]
    kinds: Array
    title: list[dict[str, int]]
    text: list[dict[str, int]]
    measured: Array


def read(path: Path) -> Sample:
    """Read a file of labeled abstracts."""
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    titles, texts = ([AbstractTerms(row[name]) for row in rows] for name in ("title", "abstract"))
    kinds = np.array([row["accepted_label"].lower().replace("-", "_") for row in rows])
    unknown = set(kinds) - set(STUDY_TYPES)
    if unknown:
        raise SystemExit(f"{path} has unknown types: {sorted(unknown)}")
    return Sample(
        [f"{row['title']} {row['abstract']}" for row in rows],
        kinds,
        [tokens.terms for tokens in titles],
        [tokens.terms for tokens in texts],
        np.array(list(map(design_cues, titles, texts))),
    )


class Terms:
    """The terms of titles or texts and their weights, learned from the rows used for fitting."""

    def __init__(self, counted: Sequence[Mapping[str, int]]) -> None:
        self.vectoriser = DictVectorizer(dtype=np.float64)
        counts = self.vectoriser.fit_transform(counted).tocsr()
        occurs = np.asarray((counts > 0).sum(axis=0)).ravel()
        self.kept = np.flatnonzero(occurs >= FEWEST)
        self.idf = np.log((1 + len(counted)) / (1 + occurs[self.kept])) + 1

    @property
    def names(self) -> list[str]:
        """Return the selected terms, in order."""
        return [str(name) for name in self.vectoriser.get_feature_names_out()[self.kept]]

    def values(self, counted: Sequence[Mapping[str, int]]) -> Any:
        """Return (1 + ln count) x idf of each selected term, with rows normalized to length 1."""
        counts = self.vectoriser.transform(counted).tocsr()[:, self.kept].astype(np.float64)
        counts.data = 1 + np.log(counts.data)
        return normalize(counts @ diags(self.idf))


class Fitted:
    """The classifiers of types and questions, fitted on some rows of a sample."""

    def __init__(self, sample: Sample, rows: Array) -> None:
        self.title = Terms([sample.title[row] for row in rows])
        self.text = Terms([sample.text[row] for row in rows])
        self.centre = sample.measured[rows].mean(axis=0)
        self.spread = sample.measured[rows].std(axis=0) + 1e-6
        inputs, kinds = self.inputs(sample, rows), sample.kinds[rows]
        self.by_type = _regression(inputs, kinds, BALANCE["type"])
        self.by_question = [
            _regression(inputs, np.array([ask(kind) for kind in kinds]), BALANCE["question"])
            for ask in QUESTIONS
        ]

    def inputs(self, sample: Sample, rows: Array) -> Any:
        """Return the weighted inputs of the classifiers: title, text and cues."""
        cues = (
            np.clip(
                (sample.measured[rows] - self.centre) / self.spread,
                -MAX_CUE_DEVIATION,
                MAX_CUE_DEVIATION,
            )
            * CUE_SHARE
        )
        title = self.title.values([sample.title[row] for row in rows]) * TITLE_SHARE
        return hstack(
            [title, self.text.values([sample.text[row] for row in rows]), csr_matrix(cues)]
        ).tocsr()

    def scores(self, sample: Sample, rows: Array) -> Array:
        """Return the score of each type, as `masis.screening.grading.designs` computes it."""
        inputs = self.inputs(sample, rows)
        order = [list(self.by_type.classes_).index(kind) for kind in STUDY_TYPES]
        scores: Array = self.by_type.predict_log_proba(inputs)[:, order]
        for ask, fitted in zip(QUESTIONS, self.by_question, strict=True):
            columns = [list(fitted.classes_).index(ask(kind)) for kind in STUDY_TYPES]
            scores = scores + QUESTION_WEIGHT * fitted.predict_log_proba(inputs)[:, columns]
        return scores


def _regression(inputs: Any, classes: Array, power: float) -> Any:
    """Fit a logistic regression in which rare classes have larger weights."""
    names, counts = np.unique(classes, return_counts=True)
    weights = dict(zip(names, (counts.mean() / counts) ** power, strict=True))
    return LogisticRegression(C=LOOSENESS, max_iter=200, tol=1e-4, class_weight=weights).fit(
        inputs, classes
    )


def left_out(sample: Sample) -> list[Array]:
    """Return the cross-validated scores of every abstract, once for each split into folds."""
    deals = []
    for deal in range(DEALS):
        scores = np.zeros((len(sample.kinds), len(STUDY_TYPES)))
        folds = StratifiedKFold(FOLDS, shuffle=True, random_state=SEED + deal)
        for fitted_on, held_rows in folds.split(sample.kinds, sample.kinds):
            scores[held_rows] = Fitted(sample, fitted_on).scores(sample, held_rows)
        deals.append(scores)
    return deals


def joined_scores(scores: Array) -> Array:
    """Return the type of each row."""
    kinds: Array = np.array(STUDY_TYPES)[scores.argmax(axis=1)]
    return kinds


def weighted_f1(kinds: Array, guesses: Array) -> float:
    """Return the mean F1 of the types, weighted by their frequency."""
    return float(f1_score(kinds, guesses, average="weighted"))


def temperature(kinds: Array, deals: Sequence[Array]) -> float:
    """Return the temperature at which the probabilities of held-out abstracts fit best."""
    right = np.array([STUDY_TYPES.index(kind) for kind in kinds])

    def surprise(degree: float) -> float:
        return float(
            np.mean(
                [
                    -_log_softmax(scores / degree)[np.arange(len(right)), right].mean()
                    for scores in deals
                ]
            )
        )

    return float(min(TEMPERATURES, key=surprise))


def _log_softmax(scores: Array) -> Array:
    shifted = scores - scores.max(axis=1, keepdims=True)
    lowered: Array = shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True))
    return lowered


def export_weights(fitted: Fitted, degree: float) -> dict[str, Array]:
    """Return the weights in the format of `masis.screening.grading.designs`, quantized to integers.

    The score of a type is a sum of logarithms of probabilities. Their normalizing constants are the
    same for every type, so the four classifiers can be combined into one weight per type and input:
    that of the type plus those of its answers, divided by the temperature.
    """
    weights, intercept = _join_weights(fitted.by_type, list(STUDY_TYPES))
    for ask, classifier in zip(QUESTIONS, fitted.by_question, strict=True):
        weights_part, base = _join_weights(classifier, [ask(kind) for kind in STUDY_TYPES])
        weights, intercept = (
            weights + QUESTION_WEIGHT * weights_part,
            intercept + QUESTION_WEIGHT * base,
        )
    weights, intercept = weights.T / degree, intercept / degree
    titles, texts = len(fitted.title.kept), len(fitted.text.kept)
    return {
        "version": np.frombuffer(VERSION.encode(), dtype=np.uint8),
        **_block("title", fitted.title, weights[:titles] * TITLE_SHARE),
        **_block("text", fitted.text, weights[titles : titles + texts]),
        "centre": fitted.centre.astype(np.float32),
        "spread": fitted.spread.astype(np.float32),
        "measured": (weights[titles + texts :] * CUE_SHARE).astype(np.float32),
        "intercept": intercept.astype(np.float32),
    }


def _join_weights(fitted: Any, answers: Sequence[str]) -> tuple[Array, Array]:
    """Return the weights and the intercept of a classifier for the given answers, in order."""
    rows = [list(fitted.classes_).index(answer) for answer in answers]
    return fitted.coef_[rows], fitted.intercept_[rows]


def _block(name: str, terms: Terms, weights: Array) -> dict[str, Array]:
    scale = np.abs(weights).max(axis=0) / 127
    return {
        f"{name}_terms": np.frombuffer("\n".join(terms.names).encode(), dtype=np.uint8),
        f"{name}_idf": terms.idf.astype(np.float32),
        f"{name}_weights": np.round(weights / scale).astype(np.int8),
        f"{name}_scale": scale.astype(np.float32),
    }


def baselines(training: Sample, tested: Sample) -> dict[str, float]:
    """Evaluate plain TF-IDF with a linear classifier, with and without balanced classes."""
    figures = {}
    for name, weight in (("default settings", None), ("classes balanced", "balanced")):
        plain = make_pipeline(TfidfVectorizer(), LinearSVC(class_weight=weight, random_state=SEED))
        plain.fit(training.documents, training.kinds)
        figures[name] = weighted_f1(tested.kinds, plain.predict(tested.documents))
    return figures


def predict_types(path: Path) -> tuple[Array, Array, float]:
    """Return the types that the written weights predict for a file, with probability and time."""
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    model = load_classifier()
    results = [model.recognise(row["title"], row["abstract"]) for row in rows]
    return (
        np.array([result.study_type for result in results]),
        np.array([result.confidence for result in results]),
        _cost(rows),
    )


def _cost(rows: Sequence[Mapping[str, str]]) -> float:
    """Return the mean time per abstract in ms, taking the minimum of all passes for each one."""
    model, least = load_classifier(), [float("inf")] * len(rows)
    for _ in range(PASSES):
        for row_number, row in enumerate(rows):
            started = time.perf_counter()
            model.recognise(row["title"], row["abstract"])
            least[row_number] = min(least[row_number], 1000 * (time.perf_counter() - started))
    return float(np.mean(least))


def page(training: Sample, data: Path, crossed: Sequence[float]) -> str:
    """Return the figures for the validation file in the format of the docs."""
    tested = read(data / VALIDATION)
    guesses, sure, took = predict_types(data / VALIDATION)
    plain = baselines(training, tested)
    right = guesses == tested.kinds
    spread = _resample(tested.kinds, guesses)
    lines = [
        f"Fitted on {len(training.kinds):,} abstracts and evaluated on {len(tested.kinds)}.",
        "",
        "| | weighted F1 |",
        "|---|---|",
        (
            f"| the classifier | **{weighted_f1(tested.kinds, guesses):.3f}** ({spread[0]:.3f} to"
            f" {spread[1]:.3f}) |"
        ),
        f"| the classifier, macro-F1 | {f1_score(tested.kinds, guesses, average='macro'):.3f} |",
        *(
            f"| plain TF-IDF and linear SVM, {name} | {figure:.3f} |"
            for name, figure in plain.items()
        ),
        f"| the classifier, cross-validated on the training file | {np.mean(crossed):.3f} |",
        "",
        (
            f"The accuracy is {right.mean():.3f}. The range in parentheses is the middle 95% of"
            " 2,000 resamplings of the validation file."
        ),
        f"The weights take up {WEIGHTS.stat().st_size / 1e6:.2f} MB.",
        f"Time per abstract, including the words the result is based on: {took:.2f} ms {LEAST}.",
        "",
        *_by_type(tested.kinds, guesses),
        "",
        *_matrix(tested.kinds, guesses),
        "",
        *_calibration(right, sure),
    ]
    return "\n".join(lines)


def _resample(kinds: Array, guesses: Array) -> Array:
    chance = np.random.default_rng(SEED)
    draws = [chance.integers(0, len(kinds), len(kinds)) for _ in range(2000)]
    figures: Array = np.percentile(
        [weighted_f1(kinds[draw], guesses[draw]) for draw in draws], [2.5, 97.5]
    )
    return figures


def _by_type(kinds: Array, guesses: Array) -> list[str]:
    precision, recall, f1, counts = precision_recall_fscore_support(
        kinds, guesses, labels=list(STUDY_TYPES), zero_division=0
    )
    rows = zip(STUDY_TYPES, counts, precision, recall, f1, strict=True)
    return [
        "| type | abstracts | precision | recall | F1 |",
        "|---|---|---|---|---|",
        *(f"| {kind} | {count} | {p:.2f} | {r:.2f} | {f:.2f} |" for kind, count, p, r, f in rows),
    ]


def _matrix(kinds: Array, guesses: Array) -> list[str]:
    counts = confusion_matrix(kinds, guesses, labels=list(STUDY_TYPES))
    numbers = " | ".join(str(number) for number in range(1, len(STUDY_TYPES) + 1))
    return [
        "Rows are people's labels, and columns are the predicted types in the same order.",
        "",
        f"| | {numbers} |",
        "|---" * (len(STUDY_TYPES) + 1) + "|",
        *(
            f"| {number} {kind} | "
            + " | ".join(str(count) if count else "·" for count in row)
            + " |"
            for number, (kind, row) in enumerate(zip(STUDY_TYPES, counts, strict=True), start=1)
        ),
    ]


def _calibration(right: Array, sure: Array) -> list[str]:
    lines = [
        "| share of the predicted type | abstracts | mean share | correct |",
        "|---|---|---|---|",
    ]
    for low, high in ((0.0, 0.4), (0.4, 0.6), (0.6, 0.8), (0.8, 0.95), (0.95, 1.01)):
        here = (sure >= low) & (sure < high)
        if here.any():
            means = f"{sure[here].mean():.2f} | {right[here].mean():.2f}"
            lines.append(f"| {low:.2f} to {min(high, 1):.2f} | {here.sum()} | {means} |")
    return lines


def main() -> int:
    """Fit the types, print the figures and write the weights; with --report, write the page too."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--data", type=Path, required=True, help="folder with the labelled abstracts"
    )
    parser.add_argument("--out", type=Path, default=WEIGHTS, help="where to write the weights")
    parser.add_argument(
        "--report",
        action="store_true",
        help="judge the validation file and write docs/screening.md",
    )
    chosen = parser.parse_args()
    training = read(chosen.data / TRAINING)
    with threadpool_limits(1):
        deals = left_out(training)
        degree = temperature(training.kinds, deals)
        fitted = Fitted(training, np.arange(len(training.kinds)))
    stored: dict[str, Any] = export_weights(fitted, degree)
    np.savez_compressed(chosen.out, **stored)
    crossed = [weighted_f1(training.kinds, joined_scores(scores)) for scores in deals]
    print(
        f"cross-validated weighted F1 {np.mean(crossed):.4f} {np.round(crossed, 4)}, temperature"
        f" {degree:.2f}"
    )
    print(f"{chosen.out}: {chosen.out.stat().st_size:,} bytes")
    if chosen.report:
        figures = page(training, chosen.data, crossed)
        print(figures)
        marked = PAGE.read_text(encoding="utf-8")
        block = f"<!-- figures -->\n{figures}\n<!-- end of figures -->"
        replaced = re.sub(
            r"<!-- figures -->.*<!-- end of figures -->", lambda _: block, marked, flags=re.DOTALL
        )
        PAGE.write_text(replaced, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())

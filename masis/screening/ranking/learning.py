"""Orders unread abstracts by a person's decisions, and proposes when to stop reading.

Active learning for systematic reviews, as in ASReview (van de Schoot et al., Nature Machine
Intelligence 2021;3:125): a linear classifier on TF-IDF learns from the decisions so far, and the
abstract most likely to be included is read next. Before ``LEAST_DECISIONS`` decisions, the order is
that of relevance to the question. Later relevance still counts, the less the more decisions there
are.

**Expected recall** is a lower estimate: the abstracts that are left are at most as likely to be
included as the last ``RECENT`` ones, because the likeliest are read first.

**The stopping rule** is the quasi-sampling criterion of Callaghan and Müller-Hansen (Systematic
Reviews 2020;9:273): a run of decisions at the end counts as a random sample of what was unread. If
a recall under 95% would make so few inclusions in any such run improbable (p < 0.05,
hypergeometric), stopping is proposed. A person decides.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from masis.schema.screening import Abstract, Grade, GradeAgreement, Override
from masis.schema.wording import count_noun

LEAST_DECISIONS = 10
"""Decisions before the classifier orders the rest."""
RECENT = 50
"""The last decisions that the expected recall is estimated from."""
TARGET_RECALL = 0.95
ERROR = 0.05
"""The greatest probability of a lower recall at which stopping is proposed."""
PRIOR_DECISIONS = 20
"""How many decisions the relevance to the question counts as, next to the classifier."""
ASSUMED_EXCLUDED, ASSUMED_WEIGHT = 10, 0.5
"""The least relevant unread abstracts count as excluded until so many are, at this weight, because
the first abstracts that a person reads may all be relevant.
"""


class ReadingOrder(NamedTuple):
    """The order of the unread abstracts, and how many relevant ones are expected among them.

    ``recall`` is the expected share of the relevant abstracts that have been included, None without
    decisions. ``should_stop`` proposes to stop, and ``why`` explains it.
    """

    ids: tuple[str, ...]
    included: int
    excluded: int
    learned: bool
    recall: float | None
    should_stop: bool
    why: str

    @property
    def summary(self) -> str:
        """The state of the reading in sentences: decisions, order, expected recall, proposal."""
        decided = self.included + self.excluded
        by = "people's decisions" if self.learned else "relevance to the question"
        recall = (
            ""
            if self.recall is None
            else f" Expected recall so far: {self.recall:.0%} of the relevant abstracts."
        )
        return (
            f"{self.included} included and {self.excluded} excluded of"
            f" {decided + len(self.ids)} abstracts; the rest is ordered by {by}.{recall} {self.why}"
        )


def reading_order(
    abstracts: Sequence[Abstract],
    relevance: Mapping[str, float | None],
    decisions: Mapping[str, bool],
) -> ReadingOrder:
    """Return the unread abstracts in the order in which to read them.

    Args:
        abstracts: All abstracts of a screening.
        relevance: The relevance of each to the question, by id; None if it has no score.
        decisions: Whether a person included an abstract, by id, in the order of the decisions.

    """
    known = {abstract.id for abstract in abstracts}
    decisions = {key: included for key, included in decisions.items() if key in known}
    scores = np.array([relevance.get(abstract.id) or 0.0 for abstract in abstracts])
    is_unread = np.array([abstract.id not in decisions for abstract in abstracts], dtype=bool)
    learned = len(decisions) >= LEAST_DECISIONS and any(decisions.values())
    if learned and is_unread.any():
        scores = _learned_scores(abstracts, scores, decisions, is_unread)
    order = np.argsort(-scores, kind="stable")
    labels = list(decisions.values())
    unread = int(is_unread.sum())
    should_stop, why = stopping_proposal(labels, unread)
    return ReadingOrder(
        tuple(abstracts[index].id for index in order if is_unread[index]),
        sum(labels),
        len(labels) - sum(labels),
        learned,
        expected_recall(labels, unread),
        should_stop,
        why,
    )


def decisions_of(
    grades: Sequence[Grade], overrides: Sequence[Override], agreements: Sequence[GradeAgreement]
) -> dict[str, bool]:
    """Return whether people included each abstract that they decided on, in the order in time.

    A decision is a recommendation that a person set to keep or discard, or agreed with. ``grades``
    have people's overrides applied.
    """
    by_id = {grade.abstract_id: grade for grade in grades}
    latest: dict[str, str] = {}
    entries: list[Override | GradeAgreement] = [*overrides, *agreements]
    for entry in sorted(entries, key=lambda entry: entry.at):
        agreed = isinstance(entry, GradeAgreement) and entry.agrees
        grade = by_id.get(entry.abstract_id)
        if agreed or (grade is not None and grade.rule == "person"):
            latest[entry.abstract_id] = entry.at
        elif isinstance(entry, GradeAgreement):
            latest.pop(entry.abstract_id, None)
    return {
        abstract_id: by_id[abstract_id].recommendation == "keep"
        for abstract_id in latest
        if abstract_id in by_id and by_id[abstract_id].recommendation != "needs_more"
    }


def expected_recall(labels: Sequence[bool], unread: int) -> float | None:
    """Return the expected share of relevant abstracts that are included already.

    Args:
        labels: Whether each decision was an inclusion, in their order.
        unread: How many abstracts are left.

    """
    if not any(labels):
        return None
    recent = labels[-RECENT:]
    # Jeffreys' prior: without an inclusion in a run the share isn't known to be 0.
    expected = unread * (sum(recent) + 0.5) / (len(recent) + 1)
    return sum(labels) / (sum(labels) + expected)


def stopping_proposal(labels: Sequence[bool], unread: int) -> tuple[bool, str]:
    """Return whether to propose to stop after these decisions, and why."""
    from scipy import stats

    if len(labels) < LEAST_DECISIONS or not any(labels):
        return False, f"Decide on at least {LEAST_DECISIONS} abstracts, one of them included."
    if not unread:
        return True, "Every abstract is decided."
    total, found = len(labels) + unread, np.cumsum([0, *labels])
    # The fewest relevant abstracts there would be if the recall were under the target.
    relevant = math.floor(found[-1] / TARGET_RECALL) + 1
    if relevant - found[-1] > unread:
        return True, (
            f"A recall under {TARGET_RECALL:.0%} is impossible: {relevant - found[-1]:,} more"
            f" abstracts would have to be relevant, but {unread:,} {'is' if unread == 1 else 'are'}"
            " left. You can stop here."
        )
    starts = np.arange(len(labels))
    left_at_start, relevant_left = total - starts, relevant - found[:-1]
    distribution: Any = stats
    probabilities = distribution.hypergeom.cdf(
        found[-1] - found[:-1], left_at_start, relevant_left, len(labels) - starts
    )
    lowest = float(np.min(probabilities))
    chance = f"A recall under {TARGET_RECALL:.0%} has a probability of {lowest:.3f}"
    if lowest < ERROR:
        return True, f"{chance}, less than {ERROR:.2f}. You can stop here."
    left = count_noun(unread, "abstract is", "abstracts are")
    return False, f"{chance}, not less than {ERROR:.2f}. Read on: {left} left."


def _learned_scores(
    abstracts: Sequence[Abstract],
    relevance: np.ndarray[Any, np.dtype[Any]],
    decisions: Mapping[str, bool],
    is_unread: np.ndarray[Any, np.dtype[Any]],
) -> np.ndarray[Any, np.dtype[Any]]:
    """Return the mean rank (0 to 1) by the classifier and by relevance, weighted by decisions."""
    from scipy.stats import rankdata
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.linear_model import LogisticRegression

    texts = [f"{abstract.title} {abstract.text}" for abstract in abstracts]
    # scikit-learn has no types.
    vectorizer_class: Any = TfidfVectorizer
    vectorizer = vectorizer_class(sublinear_tf=True, stop_words="english")
    try:
        features = vectorizer.fit_transform(texts)
    except ValueError:  # scikit-learn's error for texts without a word that counts
        return relevance
    position = {abstract.id: index for index, abstract in enumerate(abstracts)}
    rows = [position[abstract_id] for abstract_id in decisions]
    labels = [int(included) for included in decisions.values()]
    weights = [1.0] * len(rows)
    unread = np.flatnonzero(is_unread)
    assumed = unread[np.argsort(relevance[unread], kind="stable")]
    assumed = assumed[: max(0, ASSUMED_EXCLUDED - labels.count(0))]
    rows += assumed.tolist()
    labels += [0] * len(assumed)
    weights += [ASSUMED_WEIGHT] * len(assumed)
    if len(set(labels)) < 2:
        return relevance
    classifier_class: Any = LogisticRegression
    classifier = classifier_class(C=10.0, class_weight="balanced", max_iter=500)
    classifier.fit(features[rows], labels, sample_weight=weights)
    share = PRIOR_DECISIONS / (PRIOR_DECISIONS + len(decisions))
    by_decisions = rankdata(classifier.decision_function(features)) / len(abstracts)
    combined: np.ndarray[Any, np.dtype[Any]] = (1 - share) * by_decisions + share * rankdata(
        relevance
    ) / len(abstracts)
    return combined

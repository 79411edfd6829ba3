"""Proposes groups of similar texts. The same texts give the same groups.

Texts come as patterns (``masis/store/reviews/observations.py``), most of which stand for many
observations. The most frequent ones and a random sample of the others are compared by their meaning
and by the kinds of faults that they may name (``concepts.py``), and clustered. Every other pattern
joins the group whose words it shares most. So the time hardly depends on the number of
observations. A group is a proposal for a person, who confirms, renames or ignores it.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from masis.services.modes.concepts import Concepts, Floats, load_concepts, normalize_rows

_NUMBER = "5"

VERSION = 3
"""Stored proposals and vectors of another version are made again."""

MOST_FREQUENT = 350
DRAWN = 150
"""How many patterns are clustered: the most frequent ones, and a random sample of the others.

Encoding one takes about 3 ms, and the first proposal should take less than 5 s.
"""

DISTANCE = 0.7
"""The average cosine distance up to which clusters are merged.

It and the certainty of the kinds were chosen on ``benchmarks/grouping_notes/tuned.txt``. Short
notes in free words are far apart: with 0.55 on uncentered vectors, four of five were in no group.
"""

REMARK = 0.5
"""A text with at least this probability is a remark that doesn't name a fault. It joins no group.
"""

TITLED = 0.35
"""The minimum mean probability for a kind of fault to give a group its title."""

LEAST_OVERLAP = 0.35
"""The minimum cosine similarity of words for a pattern to join a group."""

LEAST_OBSERVATIONS = 3
"""A group with fewer observations isn't proposed, or with fewer than two if all are few."""

_FEW = 30
"""Up to this number of observations, two that are alike are a group."""

MOST_GROUPS = 100
NAME_WORDS = 3
_LEAST_WEIGHT = 0.1
"""A word with less than this share of the weight of a group's best word doesn't name it."""

_WORD = r"(?u)\b[^\W\d]{3,}\b"
"""Matches the words that a name may contain: letters, at least three."""

_SAYS_NOTHING = (
    *("answer", "answers", "evidence", "source", "text"),
    *("aren", "couldn", "didn", "doesn", "don", "hasn", "isn"),
    *("shouldn", "wasn", "won", "wouldn"),
)
"""Words that tell no groups apart, as most notes may have them: what is audited, and the beginnings
of contractions, whose ends patterns separate.
"""

FEATURES = 2**14
"""Columns of the hashed word counts. Two words rarely share one of 16,384."""

_NAMED_BY = 200
"""How many patterns of a group give it its name: the typical ones, then the frequent ones."""

_AT_ONCE = 20_000
"""Patterns that are compared with the groups at once, which takes about 10 MB for 100 groups."""

SEED = 0
"""The same patterns give the same groups."""


class PatternText(NamedTuple):
    """A pattern: its number, its text and how many observations have it."""

    seq: int
    text: str
    observations: int


class PatternGroup(NamedTuple):
    """Patterns that may show the same failure mode.

    ``title`` is the kind of fault that most of them name, or "" if none is likely, and ``name`` is
    made of the words that distinguish them from other groups. The patterns are sorted: most typical
    ones first if they were clustered, then the others by frequency.
    """

    title: str
    name: str
    patterns: tuple[int, ...]
    observations: int

    @property
    def heading(self) -> str:
        """The title and the words."""
        return group_heading(self.title, self.name)


def group_heading(title: str, name: str) -> str:
    """Return the heading of a group with a title, if it has one, and the words in its name."""
    return f"{title}: {name}" if title else name


def text_to_encode(pattern: str) -> str:
    """Return the text of a pattern for the encoder, which knows digits better than the sign #."""
    return pattern.replace("#", _NUMBER)


def group_patterns(
    patterns: Sequence[PatternText], encode: Callable[[Sequence[PatternText]], Floats]
) -> list[PatternGroup]:
    """Return proposed groups, largest first. A pattern is in one group at most.

    Args:
        patterns: All patterns, most frequent first.
        encode: Returns a vector for each pattern.

    """
    if not patterns:
        return []
    concepts = load_concepts()
    sample = _sample(patterns)
    vectors = normalize_rows(encode([patterns[place] for place in sample]))
    vectors = normalize_rows(vectors - concepts.center)
    kinds = concepts.probabilities(vectors)
    is_fault = kinds[:, concepts.titles.index("")] < REMARK
    # A pattern that isn't clustered, because it's a remark, joins no group by its words either.
    clusters = np.full(len(sample), -1)
    clusters[is_fault] = _cluster_vectors(_with_kinds(vectors, kinds)[is_fault])
    members: list[list[int]] = []
    titles: list[str] = []
    for cluster in range(int(clusters.max()) + 1):
        places = np.flatnonzero(clusters == cluster)
        if not concepts.titles[int(kinds[places].mean(axis=0).argmax())]:
            continue  # Most are remarks, though no single one is surely one.
        # A template of an issue may stand for hundreds of rows, and a note for one.
        rows = [patterns[sample[place]].observations for place in places]
        center = np.average(vectors[places], axis=0, weights=rows)
        nearest = places[np.argsort(-(vectors[places] @ center), kind="stable")]
        members.append([sample[place] for place in nearest])
        titles.append(_likely_title(concepts, kinds[places]))
    words = _word_counts([pattern.text for pattern in patterns])
    _join_nearest(words, members, set(sample))
    sizes = [sum(patterns[place].observations for place in group) for group in members]
    order = sorted(range(len(members)), key=lambda group: -sizes[group])
    are_few = sum(pattern.observations for pattern in patterns) <= _FEW
    least = 2 if are_few else LEAST_OBSERVATIONS
    chosen = [group for group in order if sizes[group] >= least][:MOST_GROUPS]
    names = _group_names([[patterns[place] for place in members[group]] for group in chosen])
    return [
        PatternGroup(
            titles[group],
            name,
            tuple(patterns[place].seq for place in members[group]),
            sizes[group],
        )
        for name, group in zip(names, chosen, strict=True)
    ]


def load_modules() -> None:
    """Load what grouping needs, which takes some seconds the first time.

    A page calls it in a thread when it's opened, so that the modules are there when a person asks
    for groups. Grouping works without it.
    """
    import sklearn.cluster
    import sklearn.feature_extraction.text  # noqa: F401

    load_concepts()


def _sample(patterns: Sequence[PatternText]) -> list[int]:
    """Return the places of the patterns to cluster."""
    first = list(range(min(len(patterns), MOST_FREQUENT)))
    others = range(len(first), len(patterns))
    return first + sorted(random.Random(SEED).sample(others, min(DRAWN, len(others))))


def meaning_of(vectors: Floats) -> Floats:
    """Return features of unit length, whose cosine says how far texts name the same fault.

    Args:
        vectors: The vectors of the texts from the encoder, a row each.

    """
    concepts = load_concepts()
    centered = normalize_rows(normalize_rows(vectors) - concepts.center)
    return normalize_rows(_with_kinds(centered, concepts.probabilities(centered)))


def _with_kinds(vectors: Floats, kinds: Floats) -> Floats:
    """Return features whose cosine is the mean of those of the vectors and of the kinds."""
    return np.hstack([vectors, normalize_rows(kinds)])


def _likely_title(concepts: Concepts, kinds: Floats) -> str:
    """Return the title of the kind of fault that most of a group's texts name, or ""."""
    mean = kinds.mean(axis=0)
    likeliest = int(mean.argmax())
    return concepts.titles[likeliest] if mean[likeliest] >= TITLED else ""


def _cluster_vectors(vectors: Floats) -> NDArray[np.int64]:
    if len(vectors) < 2:
        return np.zeros(len(vectors), dtype=np.int64)
    # Importing it takes a second, which other pages needn't wait for.
    from sklearn.cluster import AgglomerativeClustering

    clustering = AgglomerativeClustering(
        n_clusters=None, metric="cosine", linkage="average", distance_threshold=DISTANCE
    )
    return np.asarray(clustering.fit_predict(vectors), dtype=np.int64)


def _word_counts(texts: Sequence[str]) -> Any:
    """Return a sparse matrix with a row of unit length for each text."""
    from sklearn.feature_extraction.text import HashingVectorizer

    return HashingVectorizer(
        n_features=FEATURES, stop_words="english", alternate_sign=False, dtype=np.float32
    ).transform(texts)


def _join_nearest(words: Any, members: list[list[int]], grouped: set[int]) -> None:
    """Add each pattern outside of the sample to the group with the most similar words."""
    others = np.array([place for place in range(words.shape[0]) if place not in grouped])
    if not len(others) or not members:
        return
    centers = normalize_rows(
        np.vstack([np.asarray(words[group].mean(axis=0)).ravel() for group in members])
    )
    for start in range(0, len(others), _AT_ONCE):
        places = others[start : start + _AT_ONCE]
        similarity = words[places] @ centers.T
        nearest = similarity.argmax(axis=1)
        alike = similarity[np.arange(len(places)), nearest] >= LEAST_OVERLAP
        for place, group in zip(places[alike], nearest[alike], strict=True):
            members[int(group)].append(int(place))


def _group_names(groups: Sequence[Sequence[PatternText]]) -> list[str]:
    """Name each group by the words that are frequent in it and rare in the others.

    This is TF-IDF with a group as the document (c-TF-IDF, Grootendorst 2022, arXiv:2203.05794). A
    word that only one pattern of a group has says little about the group, so it comes after the
    shared ones. Of equal words, the first one in the most typical patterns comes first.
    """
    from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS, CountVectorizer

    if not groups:
        return []
    counter = CountVectorizer(
        stop_words=[*ENGLISH_STOP_WORDS, *_SAYS_NOTHING], token_pattern=_WORD, binary=True
    )
    groups = [group[:_NAMED_BY] for group in groups]
    try:
        counts = counter.fit_transform([pattern.text for group in groups for pattern in group])
    except ValueError:  # no text has a word
        return [f"group {number}" for number in range(1, len(groups) + 1)]
    vocabulary = counter.get_feature_names_out()
    split = counter.build_analyzer()
    starts = np.cumsum([0, *(len(group) for group in groups)])
    spans = list(itertools.pairwise(starts))
    by_group = np.vstack(
        [
            counts[start:end].T
            @ np.array([pattern.observations for pattern in group], dtype=np.float64)
            for (start, end), group in zip(spans, groups, strict=True)
        ]
    )
    share = by_group / np.maximum(by_group.sum(axis=1, keepdims=True), 1)
    rarity = np.log(1 + by_group.sum() / len(groups) / np.maximum(by_group.sum(axis=0), 1))
    names: list[str] = []
    for number, weights in enumerate(share * rarity):
        start, end = spans[number]
        is_shared = np.asarray(counts[start:end].sum(axis=0)).ravel() > 1
        weighed = dict(zip(vocabulary, zip(~is_shared, -weights, strict=True), strict=True))
        in_order = dict.fromkeys(word for one in groups[number] for word in split(one.text))
        best = [
            word
            for word in sorted(in_order, key=weighed.__getitem__)
            if -weighed[word][1] >= _LEAST_WEIGHT * weights.max()
        ]
        name = f"group {number + 1}"
        # More words tell groups apart that have the same first ones.
        for length in range(NAME_WORDS, len(best) + NAME_WORDS):
            name = ", ".join(best[:length])
            if name not in names:
                break
        names.append(name if name not in names else f"{name} {number + 1}")
    return names

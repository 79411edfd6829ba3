"""Proposes groups of similar texts. All functions are pure.

Texts come as patterns (``masis/store/reviews/observations.py``), most of which stand for many
observations. The most frequent ones and a random sample of the others are compared by meaning with
the sentence encoder and clustered. Every other pattern joins the group whose words it shares most.
So the time hardly depends on the number of observations. A group is a proposal for a person, who
confirms, renames or ignores it.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]

VERSION = 2
"""Stored proposals of another version are made again."""

MOST_FREQUENT = 350
DRAWN = 150
"""How many patterns are clustered: the most frequent ones, and a random sample of the others.

Encoding one takes about 3 ms, and the first proposal should take less than 5 s.
"""

DISTANCE = 0.55
"""The average cosine distance up to which clusters are merged."""

LEAST_OVERLAP = 0.35
"""The cosine similarity of words from which on a pattern joins a group."""

LEAST_OBSERVATIONS = 2
"""A group with fewer observations isn't proposed."""

MOST_GROUPS = 100
NAME_WORDS = 3
_WORD = r"(?u)\b[^\W\d]{3,}\b"
"""Matches the words that a name may contain: letters, at least three."""

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

    ``name`` is made of the words that distinguish them from other groups. The patterns are sorted:
    most typical ones first if they were clustered, then the others by frequency.
    """

    name: str
    patterns: tuple[int, ...]
    observations: int


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
    sample = _sample(patterns)
    vectors = _normalize_rows(encode([patterns[place] for place in sample]))
    clusters = _cluster_vectors(vectors)
    members: list[list[int]] = [[] for _ in range(int(clusters.max()) + 1)]
    for cluster in range(len(members)):
        places = np.flatnonzero(clusters == cluster)
        center = vectors[places].mean(axis=0)
        nearest = places[np.argsort(-(vectors[places] @ center), kind="stable")]
        members[cluster] = [sample[place] for place in nearest]
    words = _word_counts([pattern.text for pattern in patterns])
    _join_nearest(words, members, set(sample))
    sizes = [sum(patterns[place].observations for place in group) for group in members]
    order = sorted(range(len(members)), key=lambda group: -sizes[group])
    chosen = [group for group in order if sizes[group] >= LEAST_OBSERVATIONS][:MOST_GROUPS]
    names = _group_names([[patterns[place] for place in members[group]] for group in chosen])
    return [
        PatternGroup(name, tuple(patterns[place].seq for place in members[group]), sizes[group])
        for name, group in zip(names, chosen, strict=True)
    ]


def load_modules() -> None:
    """Import the modules that grouping needs, which takes a second or more the first time.

    A page calls it in a thread when it's opened, so that the modules are there when a person asks
    for groups. Grouping works without it.
    """
    import sklearn.cluster
    import sklearn.feature_extraction.text  # noqa: F401


def _sample(patterns: Sequence[PatternText]) -> list[int]:
    """Return the places of the patterns to cluster."""
    first = list(range(min(len(patterns), MOST_FREQUENT)))
    others = range(len(first), len(patterns))
    return first + sorted(random.Random(SEED).sample(others, min(DRAWN, len(others))))


def _normalize_rows(vectors: Floats) -> Floats:
    length = np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.asarray(vectors / np.maximum(length, 1e-12), dtype=np.float32)


def _cluster_vectors(vectors: Floats) -> NDArray[np.int64]:
    if len(vectors) == 1:
        return np.zeros(1, dtype=np.int64)
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
    if not len(others):
        return
    centers = _normalize_rows(
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

    This is TF-IDF with a group as the document (c-TF-IDF, Grootendorst 2022, arXiv:2203.05794).
    """
    from sklearn.feature_extraction.text import CountVectorizer

    if not groups:
        return []
    counter = CountVectorizer(stop_words="english", token_pattern=_WORD)
    groups = [group[:_NAMED_BY] for group in groups]
    texts = [pattern.text for group in groups for pattern in group]
    try:
        counts = counter.fit_transform(texts)
    except ValueError:  # no text has a word
        return [f"group {number}" for number in range(1, len(groups) + 1)]
    vocabulary = counter.get_feature_names_out()
    starts = np.cumsum([0, *(len(group) for group in groups)])
    by_group = np.vstack(
        [
            counts[start:end].T
            @ np.array([pattern.observations for pattern in group], dtype=np.float64)
            for start, end, group in zip(starts[:-1], starts[1:], groups, strict=True)
        ]
    )
    share = by_group / np.maximum(by_group.sum(axis=1, keepdims=True), 1)
    rarity = np.log(1 + by_group.sum() / len(groups) / np.maximum(by_group.sum(axis=0), 1))
    names: list[str] = []
    for number, weights in enumerate(share * rarity, 1):
        best = [
            str(vocabulary[place])
            for place in np.argsort(-weights, kind="stable")
            if weights[place] > 0
        ]
        name = f"group {number}"
        # More words tell groups apart that have the same first ones.
        for length in range(NAME_WORDS, len(best) + NAME_WORDS):
            name = ", ".join(best[:length])
            if name not in names:
                break
        names.append(name if name not in names else f"{name} {number}")
    return names

"""What kind of fault a note names, judging by example notes.

The sentence encoder measures what a text is about, so two notes about the same medicine are closer
than two notes that both say "outdated". Example notes of common kinds of faults
(``concepts.toml``) show which differences matter: a logistic regression over their vectors gives
each note a probability for each kind. A note of an unknown kind is spread over several of them and
is then compared by its meaning alone.
"""

from __future__ import annotations

import tomllib
from functools import cache
from importlib import resources
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from masis.offline.inference.encoder import load_encoder

Floats = NDArray[np.float32]

_CERTAINTY = 10.0
"""The inverse strength of the regularization (``C`` of scikit-learn). See docs/failure_modes.md."""


class Concepts(NamedTuple):
    """The trained kinds of faults.

    Attributes:
        titles: The title of each kind; "" for remarks that don't name a fault.
        center: The mean of the example vectors.
        classifier: Maps centered vectors to probabilities, in the order of ``titles``.

    """

    titles: tuple[str, ...]
    center: Floats
    classifier: Any

    def probabilities(self, centered: Floats) -> Floats:
        """Return the probability of each kind for centered vectors of unit length, a row each."""
        return np.asarray(self.classifier.predict_proba(centered), dtype=np.float32)


def normalize_rows(vectors: Floats) -> Floats:
    """Return the vectors with unit length; a vector of zeros stays as it is."""
    length = np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.asarray(vectors / np.maximum(length, 1e-12), dtype=np.float32)


@cache
def load_concepts() -> Concepts:
    """Train the kinds of faults from their example notes, which takes a second or two."""
    # Importing it takes a second, which other pages needn't wait for.
    from sklearn.linear_model import LogisticRegression

    file = resources.files("masis.services.modes") / "concepts.toml"
    listed = tomllib.loads(file.read_text(encoding="utf-8"))["concept"]
    encoder = load_encoder()
    vectors = normalize_rows(
        np.stack([encoder.encode(note) for concept in listed for note in concept["notes"]])
    )
    kinds = [number for number, concept in enumerate(listed) for _ in concept["notes"]]
    center = vectors.mean(axis=0)
    classifier: Any = LogisticRegression(C=_CERTAINTY, max_iter=1000)  # type: ignore[no-untyped-call]
    classifier.fit(normalize_rows(vectors - center), kinds)
    return Concepts(tuple(concept["title"] for concept in listed), center, classifier)

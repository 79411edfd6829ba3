"""Recognizes the type of a study (one of 14) from its abstract, with a linear classifier.

``tools/fit_study_types.py`` fits it on StudyTypeTeller's training file; docs/screening.md has its
accuracy. Its features are words and pairs of words, separately for title and text, each with the
value (1 + ln count) x inverse document frequency, and cues (``study_cues.txt``: animals, people,
drugs, chance, search, ...). Cues are counted in the title and in each quarter of the text, because
"patients" at the end of a study of mice is about future use, not about the sample.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import cache, lru_cache
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np

from masis.schema.screening import STUDY_TYPES, Abstract, AbstractWords, StudyType
from masis.screening.grading.wording import LONGEST_READ, read_word_lists

Array = np.ndarray[Any, np.dtype[Any]]
Place = Literal["title", "text"]

WEIGHTS = Path(__file__).parent / "study_types.npz"
CUES = read_word_lists(Path(__file__).parent / "study_cues.txt")
PHRASES = [phrase.strip() for phrase in " ".join(CUES.pop('"phrase')).split("|")]
DRUG_ENDINGS, NO_DRUGS = tuple(CUES.pop("*drug")), frozenset(CUES.pop("!drug"))
CUE_NAMES = (*CUES, "drug", "number")
_CUE_OF = {
    word: number for number, words in reversed([*enumerate(CUES.values())]) for word in words
}
PARTS = 4
"""The number of parts of equal length in which cues are counted."""
MAX_CUE_DEVIATION = 4.0
"""Standardized cues are clipped at this many standard deviations."""
MIN_WORDS = 3
"""With fewer known words no type is recognized, as in another language, numbers or no text."""
MAX_EXCERPTS = 4
"""The number of excerpts shown for a type."""
# A run of letters, a number with its separators ("1,204", "0·05"), or one of "%" and "=".
_WORD = re.compile(r"[^\W\d_]+|\d[\d.,·]*|[%=]")
_MIN_DRUG_LENGTH = 6
# Words that the classifier may use, but that explain nothing when they are shown as an excerpt.
_EMPTY_WORDS = frozenset(
    """
        a an the of and or in on at to for from by with without as is are was were be been has have
        had this that these those it its their our we which who than not no 0 % = also both all
        there after before during between
    """.split()
)


class RecognisedType(NamedTuple):
    """A recognized study type, or None if the abstract has too few known words.

    ``confidence`` is its probability among the 14 types, and ``words`` are the terms that
    contributed to it most.
    """

    study_type: StudyType | None = None
    confidence: float = 0.0
    words: tuple[AbstractWords, ...] = ()


def is_drug(word: str) -> bool:
    """Return whether a word in lower case has an ending that is typical of names of drugs."""
    return len(word) >= _MIN_DRUG_LENGTH and word not in NO_DRUGS and word.endswith(DRUG_ENDINGS)


@lru_cache(maxsize=50_000)
def _cue(word: str) -> int | None:
    """Return the number of a word's cue, or None if the word isn't a cue."""
    if word in _CUE_OF:
        return _CUE_OF[word]
    name = "number" if word == "0" else "drug" if is_drug(word) else ""
    return CUE_NAMES.index(name) if name else None


class AbstractTerms:
    """The words of a title or text in lower case, with their positions and counts.

    Every number is the word ``0``. ``terms`` counts words and pairs of neighboring words.
    """

    def __init__(self, text: str) -> None:
        self.text = text
        self.matches = list(_WORD.finditer(text, 0, LONGEST_READ))
        words = [match.group().lower() for match in self.matches]
        # Digits sort between "0" and "9", letters above, and "%" below "0".
        self.words = [word if word[0] > "9" else "0" if word[0] >= "0" else word for word in words]
        self.terms = Counter([*self.words, *map(" ".join, pairwise(self.words))])

    def find(self, term: str) -> tuple[int, int] | None:
        """Return the first and the end index of the words in which a term first occurs."""
        words = term.split()
        size = len(words)
        matches = (
            (start, start + size)
            for start in range(len(self.words))
            if self.words[start : start + size] == words
        )
        return next(matches, None)


def design_cues(title: AbstractTerms, text: AbstractTerms) -> Array:
    """Return the features from cues as one vector.

    They are the log counts of each cue by part and in the whole text, whether it occurs in text and
    title, its share of the words, the lengths of text and title, and the counts of each phrase.
    """
    size = len(text.words)
    counts = np.zeros((1 + PARTS, len(CUE_NAMES)))
    parts = [(0, word) for word in title.words] + [
        (1 + index * PARTS // size, word) for index, word in enumerate(text.words)
    ]
    for part, word in parts:
        if (cue := _cue(word)) is not None:
            counts[part, cue] += 1
    totals = counts[1:].sum(axis=0)
    lengths = [np.log1p(size), np.log1p(len(title.words)), float(size < 100), float(size < 50)]
    phrases = []
    for section in (title, text):
        joined = f" {' '.join(section.words)} "
        # Pairs of words are counted already. Longer phrases are searched in the joined text, where
        # the spaces around them keep them from matching parts of words.
        phrases += [
            section.terms[phrase] if phrase.count(" ") == 1 else joined.count(f" {phrase} ")
            for phrase in PHRASES
        ]
    cues = (
        np.log1p(counts).ravel(),
        np.log1p(totals),
        totals > 0,
        counts[0] > 0,
        20 * totals / max(size, 20),  # Per 20 words, so that the values are about as large as 1.
    )
    return np.concatenate([*cues, lengths, np.log1p(phrases)])


class TermBlock(NamedTuple):
    """The terms of titles or texts: their rows, inverse document frequencies and weights.

    ``weights`` has a row per term and a column per type. They are stored as integers of one byte,
    to be multiplied by the ``scale`` of their type.
    """

    rows: Mapping[str, int]
    idf: Array
    weights: Array
    scale: Array

    def contributions(self, terms_of_text: AbstractTerms) -> tuple[list[str], Array]:
        """Return the known terms of a text and the contribution of each to the score of each type.

        The vector of the terms' values has length 1, so that long texts don't score higher.
        """
        known_terms = {
            term: count for term, count in terms_of_text.terms.items() if term in self.rows
        }
        rows = [self.rows[term] for term in known_terms]
        values = (1 + np.log(np.array(list(known_terms.values()), dtype=np.float32))) * self.idf[
            rows
        ]
        values /= np.sqrt(values @ values) or 1.0
        return list(known_terms), values[:, None] * self.weights[rows] * self.scale


class StudyTypeClassifier(NamedTuple):
    """Fitted weights of the terms in title and text, and of the standardized cues."""

    version: str
    title: TermBlock
    text: TermBlock
    centre: Array
    spread: Array
    measured: Array
    intercept: Array

    def recognise(self, title: str, text: str) -> RecognisedType:
        """Return the type of a study from its title and abstract."""
        read: dict[Place, AbstractTerms] = {
            "title": AbstractTerms(title),
            "text": AbstractTerms(text),
        }
        terms = {place: getattr(self, place).contributions(part) for place, part in read.items()}
        if sum(term[0].isalpha() for names, _ in terms.values() for term in names) < MIN_WORDS:
            return RecognisedType()
        cues = np.clip(
            (design_cues(read["title"], read["text"]) - self.centre) / self.spread,
            -MAX_CUE_DEVIATION,
            MAX_CUE_DEVIATION,
        )
        scores = (
            self.intercept
            + cues @ self.measured
            + sum(parts.sum(axis=0) for _, parts in terms.values())
        )
        shares = np.exp(
            scores - scores.max()
        )  # Softmax; the maximum is subtracted to avoid overflow.
        shares /= shares.sum()
        best = int(np.argmax(shares))
        # A term speaks for a type by as much as it adds to it above the average of all types.
        supporting = [
            (float(strength), place, term)
            for place, (names, parts) in terms.items()
            for term, strength in zip(names, parts[:, best] - parts.mean(axis=1), strict=True)
            if strength > 0 and not _EMPTY_WORDS.issuperset(term.split())
        ]
        return RecognisedType(
            STUDY_TYPES[best],
            float(shares[best]),
            _strongest_terms(sorted(supporting, key=lambda entry: -entry[0]), read),
        )


def _strongest_terms(
    supporting: Sequence[tuple[float, Place, str]], read: Mapping[Place, AbstractTerms]
) -> tuple[AbstractWords, ...]:
    """Return the first terms as excerpts of title and text that don't overlap."""
    shown: list[AbstractWords] = []
    for _, place, term in supporting:
        if (found := read[place].find(term)) is None:
            continue
        matches = read[place].matches
        start, end = matches[found[0]].start(), matches[found[1] - 1].end()
        if not any(
            other.place == place and start < other.end and other.start < end for other in shown
        ):
            shown.append(
                AbstractWords(start=start, end=end, text=read[place].text[start:end], place=place)
            )
        if len(shown) == MAX_EXCERPTS:
            break
    return tuple(shown)


@cache
def load_classifier(path: Path = WEIGHTS) -> StudyTypeClassifier:
    """Return the fitted classifier, which is read once per process.

    Raises ``FileNotFoundError`` if the file is missing.
    """
    with np.load(path, allow_pickle=False) as stored:
        arrays = {name: stored[name] for name in stored.files}

    def block(name: Place) -> TermBlock:
        terms = bytes(arrays[f"{name}_terms"]).decode("utf-8").split("\n")
        rows = {term: row for row, term in enumerate(terms)}
        return TermBlock(rows, *(arrays[f"{name}_{part}"] for part in ("idf", "weights", "scale")))

    plain = (
        arrays[name].astype(np.float64) for name in ("centre", "spread", "measured", "intercept")
    )
    return StudyTypeClassifier(
        bytes(arrays["version"]).decode(), block("title"), block("text"), *plain
    )


def recognise(abstract: Abstract) -> RecognisedType:
    """Return the study type of an abstract, with the words that support it."""
    return load_classifier().recognise(abstract.title, abstract.text)


def version() -> str:
    """Return the version of the weights, which is recorded with every screening."""
    return load_classifier().version

"""Which of 14 types a study is, recognised from its abstract without a model.

A linear classifier, fitted by ``tools/fit_study_types.py`` on StudyTypeTeller's training file;
docs/screening.md says how well it does. It sees words and pairs of words, in title and text apart,
each valued as (1 + ln count) x inverse document frequency, and cues (``study_cues.txt``: animals,
people, drugs, chance, search, ...), counted in the title and in each quarter of the text:
"patients" at the end of a study of mice is its outlook, not its sample.
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
"""Into how many parts of equal length a text is cut."""
REACH = 4.0
"""How many standard deviations from the mean a measured cue counts."""
FEWEST_WORDS = 3
"""With fewer known terms of letters nothing is recognised: another language, numbers,
or no text.
"""
MOST_WORDS = 4
"""How many excerpts are shown for a type."""
# A run of letters, a number with its separators ("1,204", "0·05"), or one of "%" and "=".
_WORD = re.compile(r"[^\W\d_]+|\d[\d.,·]*|[%=]")
_SHORTEST_DRUG = 6
_EMPTY_WORDS = frozenset(
    """
        a an the of and or in on at to for from by with without as is are was were be been has have
        had this that these those it its their our we which who than not no 0 % = also both all
        there after before during between
    """.split()
)


class RecognisedType(NamedTuple):
    """A recognised study type; None where there is too little to recognise one from.

    ``confidence`` is its share among the 14, ``words`` what contributed to it most.
    """

    study_type: StudyType | None = None
    confidence: float = 0.0
    words: tuple[AbstractWords, ...] = ()


def is_drug(word: str) -> bool:
    """Return whether a word in lower case ends like the name of a drug."""
    return len(word) >= _SHORTEST_DRUG and word not in NO_DRUGS and word.endswith(DRUG_ENDINGS)


@lru_cache(maxsize=50_000)
def _cue(word: str) -> int | None:
    """Return the number of the cue that a word is; None where it is none."""
    if word in _CUE_OF:
        return _CUE_OF[word]
    name = "number" if word == "0" else "drug" if is_drug(word) else ""
    return CUE_NAMES.index(name) if name else None


class AbstractTerms:
    """The words of a title or text: in lower case, ``0`` for a number; their places; counts of
    words and pairs.
    """

    def __init__(self, text: str) -> None:
        self.text = text
        self.matches = list(_WORD.finditer(text, 0, LONGEST_READ))
        words = [match.group().lower() for match in self.matches]
        self.words = [word if word[0] > "9" else "0" if word[0] >= "0" else word for word in words]
        self.terms = Counter([*self.words, *map(" ".join, pairwise(self.words))])

    def find(self, term: str) -> tuple[int, int] | None:
        """Return the words, from one number up to another, in which a term first occurs."""
        looked_for = term.split()
        size = len(looked_for)
        found = (
            (at, at + size)
            for at in range(len(self.words))
            if self.words[at : at + size] == looked_for
        )
        return next(found, None)


def design_cues(title: AbstractTerms, text: AbstractTerms) -> Array:
    """Return the cues by place (logarithms of counts), in the whole text, whether they occur, their
    share; lengths of text and title; and how often each phrase occurs in them.
    """
    size = len(text.words)
    counts = np.zeros((1 + PARTS, len(CUE_NAMES)))
    parts = [(0, word) for word in title.words] + [
        (1 + at * PARTS // size, word) for at, word in enumerate(text.words)
    ]
    for part, word in parts:
        if (cue := _cue(word)) is not None:
            counts[part, cue] += 1
    whole = counts[1:].sum(axis=0)
    lengths = [np.log1p(size), np.log1p(len(title.words)), float(size < 100), float(size < 50)]
    phrases = []
    for read in (title, text):
        joined = f" {' '.join(read.words)} "
        phrases += [
            read.terms[each] if each.count(" ") == 1 else joined.count(f" {each} ")
            for each in PHRASES
        ]
    cues = (
        np.log1p(counts).ravel(),
        np.log1p(whole),
        whole > 0,
        counts[0] > 0,
        20 * whole / max(size, 20),
    )
    return np.concatenate([*cues, lengths, np.log1p(phrases)])


class TermBlock(NamedTuple):
    """The terms of a title or a text: row and inverse document frequency of each, and a weight for
    each type.

    ``weights`` are whole numbers of one byte each, to be multiplied by ``scale``, one for each
    type.
    """

    rows: Mapping[str, int]
    idf: Array
    weights: Array
    scale: Array

    def contributions(self, read: AbstractTerms) -> tuple[list[str], Array]:
        """Return the known terms of a text and what each speaks for each type; their values have
        length 1 together.
        """
        found = {term: count for term, count in read.terms.items() if term in self.rows}
        at = [self.rows[term] for term in found]
        values = (1 + np.log(np.array(list(found.values()), dtype=np.float32))) * self.idf[at]
        values /= np.sqrt(values @ values) or 1.0
        return list(found), values[:, None] * self.weights[at] * self.scale


class StudyTypeClassifier(NamedTuple):
    """Fitted weights: a block for the title, one for the text, and the measured cues with their
    mean and deviation.
    """

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
        terms = {place: getattr(self, place).contributions(each) for place, each in read.items()}
        if sum(term[0].isalpha() for names, _ in terms.values() for term in names) < FEWEST_WORDS:
            return RecognisedType()
        cues = np.clip(
            (design_cues(read["title"], read["text"]) - self.centre) / self.spread, -REACH, REACH
        )
        scores = (
            self.intercept
            + cues @ self.measured
            + sum(parts.sum(axis=0) for _, parts in terms.values())
        )
        shares = np.exp(scores - scores.max())
        shares /= shares.sum()
        best = int(np.argmax(shares))
        speaking = [
            (float(strength), place, term)
            for place, (names, parts) in terms.items()
            for term, strength in zip(names, parts[:, best] - parts.mean(axis=1), strict=True)
            if strength > 0 and not _EMPTY_WORDS.issuperset(term.split())
        ]
        return RecognisedType(
            STUDY_TYPES[best],
            float(shares[best]),
            _strongest_terms(sorted(speaking, key=lambda each: -each[0]), read),
        )


def _strongest_terms(
    speaking: Sequence[tuple[float, Place, str]], read: Mapping[Place, AbstractTerms]
) -> tuple[AbstractWords, ...]:
    """Return the strongest terms as places in title and text, none inside another."""
    shown: list[AbstractWords] = []
    for _, place, term in speaking:
        if (found := read[place].find(term)) is None:
            continue
        matches = read[place].matches
        start, end = matches[found[0]].start(), matches[found[1] - 1].end()
        if not any(each.place == place and start < each.end and each.start < end for each in shown):
            shown.append(
                AbstractWords(start=start, end=end, text=read[place].text[start:end], place=place)
            )
        if len(shown) == MOST_WORDS:
            break
    return tuple(shown)


@cache
def load_classifier(path: Path = WEIGHTS) -> StudyTypeClassifier:
    """Return the model as fitted; read once. Raises ``FileNotFoundError`` where the file is
    missing.
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
    """Return the study type of an abstract, with the words it rests on."""
    return load_classifier().recognise(abstract.title, abstract.text)


def version() -> str:
    """Return the version of the weights, recorded with what they judged."""
    return load_classifier().version

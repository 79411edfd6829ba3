"""Which of 14 types a study is, recognised from its abstract without a model.

A linear classifier over what ``study_features`` reads, fitted by ``tools/fit_study_types.py`` on StudyTypeTeller's
training file; docs/study-types.md says how well it does. Two levels are judged and joined: the type itself, and what
types have in common (who was studied, what was done to them, by which design), where the rare types learn from the
frequent ones:

    score(type) = log share(type) + weight x sum over questions of log share(the type's answer)

The shares of the 14 types are a softmax of the scores at the temperature that fitted best on left-out abstracts.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import islice, pairwise, repeat
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np

from masis.schema.screening import STUDY_TYPES, Abstract, StudyType, Words

# What of an abstract indicates its study type: its words and pairs of words, and the cues of ``study_cues.txt``.
#
# Words and pairs are counted in title and text apart. Cues (animals, people, drugs, chance, search, ...) are counted in
# the title and in each quarter of the text: "patients" at the end of a study of mice is its outlook, not its sample.

CUES = Path(__file__).parent / "study_cues.txt"
READ = 20_000
"""How many characters of a title or text are read."""
PARTS = 4
"""Into how many parts of equal length a text is cut."""

Array = np.ndarray[Any, np.dtype[Any]]
Place = Literal["title", "text"]

_WORD = re.compile(r"[^\W\d_]+|\d[\d.,·]*|[%=]")
_ASCII_WORD = re.compile(r"[A-Za-z]+|[0-9][0-9.,]*|[%=]")
"""The same on a text without other letters, in half the time."""
_SHORTEST_DRUG = 6
_UNSEEN = -2
_KEPT_WORDS = 50_000
"""How many words' cues are remembered."""


class Cues(NamedTuple):
    """The cue of each word, the endings of drug names, words that only end like one, the number of each phrase, and for
    the pairs of words that phrases of three begin with, those phrases.
    """

    names: tuple[str, ...]
    of_word: dict[str, int]
    endings: tuple[str, ...]
    no_drugs: frozenset[str]
    phrases: dict[str, int]
    threes: dict[str, list[str]]

    def of(self, words: Sequence[str]) -> Array:
        """Return the number of the cue each word is; -1 where it is none."""
        numbers = np.fromiter(map(self.of_word.get, words, repeat(_UNSEEN)), dtype=np.intp, count=len(words))
        for at in np.flatnonzero(numbers == _UNSEEN):
            numbers[at] = self._new(words[int(at)])
        return numbers

    def _new(self, word: str) -> int:
        drug = len(word) >= _SHORTEST_DRUG and word not in self.no_drugs and word.endswith(self.endings)
        cue = self.names.index("drug") if drug else -1
        if len(self.of_word) < _KEPT_WORDS:
            self.of_word[word] = cue
        return cue


@cache
def cues() -> Cues:
    """Return the cues as the file lists them."""
    lines = [line for line in CUES.read_text(encoding="utf-8").splitlines() if line and not line.startswith("#")]
    listed: dict[str, str] = {}
    name = ""
    for line in lines:
        if not line.startswith(" "):
            name, _, line = line.partition(":")
        listed[name] = f"{listed.get(name, '')} {line.strip()}"
    plain = [name for name in listed if name[0].isalpha()]
    names = (*plain, "drug", "number")
    of_word = {word: number for number, name in reversed([*enumerate(plain)]) for word in listed[name].split()}
    of_word["0"] = names.index("number")
    phrases = [phrase.strip() for phrase in listed['"phrase'].split("|")]
    threes: dict[str, list[str]] = {}
    for phrase in phrases:
        if phrase.count(" ") == 2:
            threes.setdefault(phrase.rpartition(" ")[0], []).append(phrase)
    return Cues(
        names,
        of_word,
        tuple(listed["*drug"].split()),
        frozenset(listed["!drug"].split()),
        {phrase: number for number, phrase in enumerate(phrases)},
        threes,
    )


def _pattern(text: str) -> re.Pattern[str]:
    return _ASCII_WORD if text.isascii() else _WORD


def words_of(text: str) -> list[str]:
    """Return the words of a text in lower case, in order, ``0`` for a number; hyphens separate words."""
    found = _pattern(text).findall(text, 0, READ)
    if not found:
        return []
    lowered = "\n".join(found).lower().split("\n")
    return [word if word[0] > "9" else "0" if word[0] >= "0" else word for word in lowered]


def spans_of(text: str, words: int) -> list[tuple[int, int]]:
    """Return the characters of each of the first so many words."""
    return [found.span() for found in islice(_pattern(text).finditer(text, 0, READ), words)]


@dataclass(frozen=True, slots=True)
class Features:
    """What was read of an abstract: its words, counts of words and pairs of words, and the measured cues."""

    title: list[str]
    text: list[str]
    title_terms: dict[str, int]
    text_terms: dict[str, int]
    measured: Array


def features(title: str, text: str) -> Features:
    """Return the features of an abstract. Takes time linear in its length."""
    in_title, in_text = words_of(title), words_of(text)
    title_cues, text_cues = cues().of(in_title), cues().of(in_text)
    title_terms, text_terms = Counter(terms_of(in_title)), Counter(terms_of(in_text))
    measured = np.concatenate(
        [_cues_measured(title_cues, text_cues), _phrases(in_title, title_terms), _phrases(in_text, text_terms)]
    )
    return Features(in_title, in_text, title_terms, text_terms, measured)


def terms_of(words: Sequence[str]) -> list[str]:
    """Return the words, then the pairs of words, in order."""
    return [*words, *map(" ".join, pairwise(words))]


def _cues_measured(title: Array, text: Array) -> Array:
    """Return the cues by place (logarithms of counts), in the whole text, whether they occur, their share; lengths."""
    size, width = len(text), len(cues().names) + 1  # the last column takes what is no cue
    in_title, in_text = title % width, text % width
    part = np.arange(size) * PARTS // max(size, 1)
    counts = np.bincount(np.concatenate([in_title, in_text + width * (1 + part)]), minlength=width * (1 + PARTS))
    counts = counts.reshape(1 + PARTS, width)[:, :-1]
    whole = counts[1:].sum(axis=0)
    lengths = [math.log1p(size), math.log1p(len(title)), float(size < 100), float(size < 50)]
    return np.concatenate(
        [np.log1p(counts).ravel(), np.log1p(whole), whole > 0, counts[0] > 0, 20 * whole / max(size, 20), lengths]
    )


def _phrases(words: Sequence[str], terms: Mapping[str, int]) -> Array:
    """Return the logarithms of how often each phrase of two or three words occurs."""
    cue_lists = cues()
    counts = np.zeros(len(cue_lists.phrases))
    for phrase in cue_lists.phrases.keys() & terms.keys():
        counts[cue_lists.phrases[phrase]] = terms[phrase]
    for pair in cue_lists.threes.keys() & terms.keys():
        for phrase in cue_lists.threes[pair]:
            counts[cue_lists.phrases[phrase]] = _times(phrase.split(), words)
    return np.log1p(counts)


def _times(phrase: Sequence[str], words: Sequence[str]) -> int:
    """Return how often the words of a phrase stand in a row."""
    times, at, size = 0, -1, len(phrase)
    for _ in range(words.count(phrase[0])):
        at = words.index(phrase[0], at + 1)
        times += words[at : at + size] == phrase
    return times


WEIGHTS = Path(__file__).parent / "study_types.npz"

REACH = 4.0
"""How many standard deviations from the mean a measured cue counts."""
FEWEST_WORDS = 3
"""With fewer known terms of letters nothing is recognised: another language, numbers, or no text."""
MOST_WORDS = 4
"""How many excerpts are shown for a type."""


_EMPTY_WORDS = frozenset(
    """a an the of and or in on at to for from by with without as is are was were be been has have had this that these
    those it its their our we which who than not no 0 % = also both all there after before during between""".split()
)


@dataclass(frozen=True, slots=True)
class RecognisedType:
    """A recognised study type; None where there is too little to recognise one from.

    ``confidence`` is its share among the 14, ``shares`` those of all, ``words`` what contributed to it most.
    """

    study_type: StudyType | None
    confidence: float
    shares: dict[StudyType, float]
    words: tuple[Words, ...]


NOTHING = RecognisedType(None, 0.0, {}, ())


@dataclass(frozen=True, slots=True)
class Heads:
    """The outputs of the classifier: column 0 to 13 the types, then the answers to each question.

    ``answers[q, t]`` is the column of type ``t``'s answer to question ``q``; ``bounds`` where each question's columns
    begin and end.
    """

    answers: Array
    bounds: tuple[tuple[int, int], ...]
    weight: float
    temperature: float

    def scores(self, logits: Array) -> Array:
        """Return the score of each type from the logits of all columns."""
        begins = [0, *(begin for begin, _ in self.bounds)]
        raised = logits - logits.max()
        sums = np.log(np.add.reduceat(np.exp(raised), begins))
        shares = raised - np.repeat(sums, np.diff([*begins, len(logits)]))
        scores: Array = shares[: len(STUDY_TYPES)] + self.weight * shares[self.answers].sum(axis=0)
        return scores

    def direction(self, type_index: int) -> Array:
        """Return how much each column speaks for a type rather than for the average of its rivals."""
        along = np.zeros(self.bounds[-1][1], dtype=np.float32)
        along[: len(STUDY_TYPES)] = -1 / len(STUDY_TYPES)
        along[type_index] += 1
        for (begin, end), columns in zip(self.bounds, self.answers, strict=True):
            along[begin:end] = -self.weight / (end - begin)
            along[columns[type_index]] += self.weight
        return along


@dataclass(frozen=True, slots=True)
class Block:
    """The terms of a title or a text: row and inverse document frequency of each, and the block's weights.

    ``weights`` are whole numbers of one byte each, to be multiplied by ``scale``, one for each column.
    """

    rows: Mapping[str, int]
    idf: Array
    weights: Array
    scale: Array

    def lookup(self, counts: Mapping[str, int]) -> Terms:
        """Return the terms of an abstract that were fitted, with their values: (1 + ln count) x idf, of length 1
        together.
        """
        at = np.fromiter(map(self.rows.get, counts, repeat(-1)), dtype=np.intp, count=len(counts))
        indices = np.flatnonzero(at >= 0)
        at = at[indices]
        times = np.fromiter(counts.values(), dtype=np.float32, count=len(counts))[indices]
        values = (1 + np.log(times)) * self.idf[at]
        norm = float(np.sqrt(values @ values))
        return Terms(list(counts), indices, values / norm if norm else values, self.weights[at].astype(np.float32))


class Terms(NamedTuple):
    """The terms of a title or text; of those that are known their numbers, values, and rows of the weights."""

    terms: list[str]
    indices: Array
    values: Array
    weights: Array

    def words_up_to(self, most: int) -> int:
        """Return how many known terms begin with a letter; counting ends at ``most``."""
        return sum(1 for _ in islice((at for at in self.indices if self.terms[at][0].isalpha()), most))


@dataclass(frozen=True, slots=True)
class StudyTypeClassifier:
    """Fitted weights: a block for the title, one for the text, the measured cues, and the heads."""

    version: str
    title: Block
    text: Block
    centre: Array
    spread: Array
    measured: Array
    intercept: Array
    heads: Heads

    def recognise(self, title: str, text: str) -> RecognisedType:
        """Return the type of a study from its title and abstract."""
        read = features(title, text)
        in_title, in_text = self.title.lookup(read.title_terms), self.text.lookup(read.text_terms)
        if in_title.words_up_to(FEWEST_WORDS) + in_text.words_up_to(FEWEST_WORDS) < FEWEST_WORDS:
            return NOTHING
        cues_read = np.clip((read.measured - self.centre) / self.spread, -REACH, REACH)
        logits = (
            self.intercept
            + (in_title.values @ in_title.weights) * self.title.scale
            + (in_text.values @ in_text.weights) * self.text.scale
            + cues_read @ self.measured
        )
        scores = self.heads.scores(logits)
        shares = np.exp(_log_shares(scores / self.heads.temperature))
        best = int(np.argmax(shares))
        along = self.heads.direction(best)
        contributions = [
            *_top_terms(in_title, along * self.title.scale, "title"),
            *_top_terms(in_text, along * self.text.scale, "text"),
        ]
        return RecognisedType(
            STUDY_TYPES[best],
            float(shares[best]),
            dict(zip(STUDY_TYPES, map(float, shares), strict=True)),
            _shown(contributions, title, text, read),
        )


class Contribution(NamedTuple):
    """How much a term contributed to the type, and where."""

    strength: float
    what: str
    place: Place


def _log_shares(logits: Array) -> Array:
    shifted = logits - logits.max()
    lowered: Array = shifted - np.log(np.exp(shifted).sum())
    return lowered


def _top_terms(found: Terms, along: Array, place: Place) -> list[Contribution]:
    """Return the terms of a block that contributed most, function words left out."""
    strengths = found.values * (found.weights @ along)
    best = _strongest(strengths, 2 * MOST_WORDS)
    contributions = [Contribution(float(strengths[index]), found.terms[found.indices[index]], place) for index in best]
    return [each for each in contributions if each.strength > 0 and not _EMPTY_WORDS.issuperset(each.what.split())]


def _strongest(strengths: Array, most: int) -> list[int]:
    """Return the places of the greatest values; of equal ones the first."""
    if len(strengths) <= most:
        return [int(at) for at in np.argsort(-strengths, kind="stable")]
    least = np.partition(strengths, len(strengths) - most)[len(strengths) - most]
    among = np.flatnonzero(strengths >= least)
    return [int(at) for at in among[np.argsort(-strengths[among], kind="stable")][:most]]


def _shown(contributions: Sequence[Contribution], title: str, text: str, read: Features) -> tuple[Words, ...]:
    """Return the strongest contributions as places in title and text, none inside another, in order of strength."""
    chosen: list[tuple[Place, int, int]] = []
    for item in sorted(contributions, key=lambda item: -item.strength):
        first, after = _first_place(item, read)
        taken = any(place == item.place and first < end and begin < after for place, begin, end in chosen)
        if first < after and not taken:
            chosen.append((item.place, first, after))
        if len(chosen) == MOST_WORDS:
            break
    wholes = {"title": title, "text": text}
    spans = {
        place: spans_of(whole, max((after for where, _, after in chosen if where == place), default=0))
        for place, whole in wholes.items()
    }
    shown = []
    for place, first, after in chosen:
        start, end = spans[place][first][0], spans[place][after - 1][1]
        shown.append(Words(start=start, end=end, text=wholes[place][start:end], place=place))
    return tuple(shown)


def _first_place(item: Contribution, read: Features) -> tuple[int, int]:
    """Return the words, from one number up to another, in which a term first occurs; empty where it does not."""
    words = read.title if item.place == "title" else read.text
    term = item.what.split()
    at = -1
    for _ in range(words.count(term[0])):
        at = words.index(term[0], at + 1)
        if words[at : at + len(term)] == term:
            return at, at + len(term)
    return 0, 0


@cache
def load_classifier(path: Path = WEIGHTS) -> StudyTypeClassifier:
    """Return the model as fitted; read once. Raises ``FileNotFoundError`` where the file is missing."""
    with np.load(path, allow_pickle=False) as stored:
        arrays = {name: stored[name] for name in stored.files}
    bounds = tuple((int(begin), int(end)) for begin, end in arrays["bounds"])
    heads = Heads(arrays["answers"].astype(np.intp), bounds, float(arrays["weight"]), float(arrays["temperature"]))
    return StudyTypeClassifier(
        version=bytes(arrays["version"]).decode(),
        title=_block(arrays, "title"),
        text=_block(arrays, "text"),
        centre=arrays["centre"].astype(np.float64),
        spread=arrays["spread"].astype(np.float64),
        measured=arrays["measured"].astype(np.float64),
        intercept=arrays["intercept"].astype(np.float64),
        heads=heads,
    )


def _block(arrays: Mapping[str, Array], name: Place) -> Block:
    terms = bytes(arrays[f"{name}_terms"]).decode("utf-8").split("\n")
    return Block(
        rows={term: row for row, term in enumerate(terms)},
        idf=arrays[f"{name}_idf"],
        weights=arrays[f"{name}_weights"],
        scale=arrays[f"{name}_scale"],
    )


def recognise(abstract: Abstract) -> RecognisedType:
    """Return the study type of an abstract, with the words it rests on."""
    return load_classifier().recognise(abstract.title, abstract.text)


def version() -> str:
    """Return the version of the weights, recorded with what they judged."""
    return load_classifier().version


__all__ = ["RecognisedType", "StudyTypeClassifier", "load_classifier", "recognise", "version"]

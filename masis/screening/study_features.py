"""What of an abstract tells its study type: its words and pairs of words, and the cues of ``study_cues.txt``.

Words and pairs are counted in title and text apart. Cues (animals, people, drugs, chance, search, ...) are counted in
the title and in each quarter of the text: "patients" at the end of a study of mice is its outlook, not its sample.
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
        """The number of the cue each word is; -1 where it is none."""
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
    """The cues as the file lists them."""
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
    """The words of a text in lower case, in order, ``0`` for a number; hyphens part words."""
    found = _pattern(text).findall(text, 0, READ)
    if not found:
        return []
    lowered = "\n".join(found).lower().split("\n")
    return [word if word[0] > "9" else "0" if word[0] >= "0" else word for word in lowered]


def spans_of(text: str, words: int) -> list[tuple[int, int]]:
    """The characters of each of the first so many words."""
    return [found.span() for found in islice(_pattern(text).finditer(text, 0, READ), words)]


@dataclass(frozen=True, slots=True)
class Features:
    """What was read of an abstract: its words, the cue of each (-1 for none), counts of words and pairs of words, and
    the measured cues.
    """

    title: list[str]
    text: list[str]
    title_cues: Array
    text_cues: Array
    title_terms: dict[str, int]
    text_terms: dict[str, int]
    measured: Array


def features(title: str, text: str) -> Features:
    """The features of an abstract. Takes time linear in its length."""
    in_title, in_text = words_of(title), words_of(text)
    title_cues, text_cues = cues().of(in_title), cues().of(in_text)
    title_terms, text_terms = Counter(terms_of(in_title)), Counter(terms_of(in_text))
    measured = np.concatenate(
        [_cues_measured(title_cues, text_cues), _phrases(in_title, title_terms), _phrases(in_text, text_terms)]
    )
    return Features(in_title, in_text, title_cues, text_cues, title_terms, text_terms, measured)


def terms_of(words: Sequence[str]) -> list[str]:
    """Words, then pairs of words, in order."""
    return [*words, *map(" ".join, pairwise(words))]


class Measure(NamedTuple):
    """What one number of ``Features.measured`` counts: a cue or a phrase, and where; length has neither."""

    cue: int | None
    phrase: str | None
    place: Place


@cache
def measures() -> tuple[Measure, ...]:
    """What each number of ``Features.measured`` counts."""
    known = cues()
    numbers = range(len(known.names))
    title: Place = "title"
    text: Place = "text"
    of_cues = [Measure(cue, None, place) for place in (title, *[text] * (PARTS + 2), title, text) for cue in numbers]
    lengths = [Measure(None, None, place) for place in (text, title, text, text)]
    of_phrases = [Measure(None, phrase, place) for place in (title, text) for phrase in known.phrases]
    return (*of_cues, *lengths, *of_phrases)


def _cues_measured(title: Array, text: Array) -> Array:
    """Cues by place (logarithms of counts), in the whole text, whether they occur, their share; lengths."""
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
    """Logarithms of how often each phrase of two or three words occurs."""
    known = cues()
    counts = np.zeros(len(known.phrases))
    for phrase in known.phrases.keys() & terms.keys():
        counts[known.phrases[phrase]] = terms[phrase]
    for pair in known.threes.keys() & terms.keys():
        for phrase in known.threes[pair]:
            counts[known.phrases[phrase]] = _times(phrase.split(), words)
    return np.log1p(counts)


def _times(phrase: Sequence[str], words: Sequence[str]) -> int:
    """How often the words of a phrase stand in a row."""
    times, at, size = 0, -1, len(phrase)
    for _ in range(words.count(phrase[0])):
        at = words.index(phrase[0], at + 1)
        times += words[at : at + size] == phrase
    return times

"""Which of 14 types a study is, recognised from its abstract without a model.

A linear classifier over what ``study_features`` reads, fitted by ``tools/fit_study_types.py`` on StudyTypeTeller's
training file; docs/study-types.md says how well it does. Two levels are judged and joined: the type itself, and what
types have in common (who was studied, what was done to them, by which design), where the rare types learn from the
frequent ones:

    score(type) = log share(type) + weight x sum over questions of log share(the type's answer)

The shares of the 14 types are a softmax of the scores at the temperature that fitted best on left-out abstracts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import islice, repeat
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from masis.schema.screening import STUDY_TYPES, Abstract, StudyType, Words
from masis.screening.study_features import Features, Place, features, measures, spans_of

WEIGHTS = Path(__file__).parent / "study_types.npz"

REACH = 4.0
"""How many standard deviations from the mean a measured cue counts."""
FEWEST_WORDS = 3
"""With fewer known terms of letters nothing is recognised: another language, numbers, or no text."""
MOST_WORDS = 4
"""How many stretches of words are shown for a type."""

Array = np.ndarray[Any, np.dtype[Any]]

_EMPTY_WORDS = frozenset(
    """a an the of and or in on at to for from by with without as is are was were be been has have had this that these
    those it its their our we which who than not no 0 % = also both all there after before during between""".split()
)


@dataclass(frozen=True, slots=True)
class Recognised:
    """A recognised study type; None where there is too little to recognise one from.

    ``confidence`` is its share among the 14, ``shares`` those of all, ``words`` what spoke for it most.
    """

    study_type: StudyType | None
    confidence: float
    shares: dict[StudyType, float]
    words: tuple[Words, ...]


NOTHING = Recognised(None, 0.0, {}, ())


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
        """The score of each type from the logits of all columns."""
        begins = [0, *(begin for begin, _ in self.bounds)]
        raised = logits - logits.max()
        sums = np.log(np.add.reduceat(np.exp(raised), begins))
        shares = raised - np.repeat(sums, np.diff([*begins, len(logits)]))
        scores: Array = shares[: len(STUDY_TYPES)] + self.weight * shares[self.answers].sum(axis=0)
        return scores

    def direction(self, type_index: int) -> Array:
        """How much each column speaks for a type rather than for the average of its rivals."""
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

    def known(self, counts: Mapping[str, int]) -> Terms:
        """The terms of an abstract that were fitted, with their values: (1 + ln count) x idf, of length 1 together."""
        at = np.fromiter(map(self.rows.get, counts, repeat(-1)), dtype=np.intp, count=len(counts))
        kept = np.flatnonzero(at >= 0)
        at = at[kept]
        times = np.fromiter(counts.values(), dtype=np.float32, count=len(counts))[kept]
        values = (1 + np.log(times)) * self.idf[at]
        norm = float(np.sqrt(values @ values))
        return Terms(list(counts), kept, values / norm if norm else values, self.weights[at].astype(np.float32))


class Terms(NamedTuple):
    """The terms of a title or text; of those that are known their numbers, values, and rows of the weights."""

    terms: list[str]
    kept: Array
    values: Array
    weights: Array

    def words_up_to(self, most: int) -> int:
        """How many known terms begin with a letter; counting ends at ``most``."""
        return sum(1 for _ in islice((at for at in self.kept if self.terms[at][0].isalpha()), most))


@dataclass(frozen=True, slots=True)
class Model:
    """Fitted weights: a block for the title, one for the text, the measured cues, and the heads."""

    version: str
    title: Block
    text: Block
    centre: Array
    spread: Array
    measured: Array
    intercept: Array
    heads: Heads

    def recognise(self, title: str, text: str) -> Recognised:
        """The type of a study from its title and abstract."""
        read = features(title, text)
        in_title, in_text = self.title.known(read.title_terms), self.text.known(read.text_terms)
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
        spoken = [
            *_terms_spoken(in_title, along * self.title.scale, "title"),
            *_terms_spoken(in_text, along * self.text.scale, "text"),
            *_cues_spoken(cues_read * (self.measured @ along)),
        ]
        return Recognised(
            STUDY_TYPES[best],
            float(shares[best]),
            dict(zip(STUDY_TYPES, map(float, shares), strict=True)),
            _shown(spoken, title, text, read),
        )


class Spoken(NamedTuple):
    """How much a stretch of words spoke for the type: words or a cue, and where."""

    strength: float
    what: str | int
    place: Place


def _log_shares(logits: Array) -> Array:
    shifted = logits - logits.max()
    lowered: Array = shifted - np.log(np.exp(shifted).sum())
    return lowered


def _terms_spoken(found: Terms, along: Array, place: Place) -> list[Spoken]:
    """The terms of a block that spoke most, without those that only hold a sentence together."""
    strengths = found.values * (found.weights @ along)
    best = _strongest(strengths, 2 * MOST_WORDS)
    spoken = [Spoken(float(strengths[index]), found.terms[found.kept[index]], place) for index in best]
    return [each for each in spoken if each.strength > 0 and not _EMPTY_WORDS.issuperset(str(each.what).split())]


def _strongest(strengths: Array, most: int) -> list[int]:
    """The places of the greatest values; of equal ones the first."""
    if len(strengths) <= most:
        return [int(at) for at in np.argsort(-strengths, kind="stable")]
    least = np.partition(strengths, len(strengths) - most)[len(strengths) - most]
    among = np.flatnonzero(strengths >= least)
    return [int(at) for at in among[np.argsort(-strengths[among], kind="stable")][:most]]


@cache
def _kinds_of_measures() -> tuple[Array, list[tuple[str | int, Place]]]:
    """For each measured number which cue or phrase it counts, and where; all measures of one have one number."""
    kinds: dict[tuple[str | int, Place], int] = {}
    numbers = []
    for measure in measures():
        what = measure.cue if measure.cue is not None else measure.phrase
        numbers.append(kinds.setdefault(("" if what is None else what, measure.place), len(kinds)))
    return np.array(numbers), list(kinds)


def _cues_spoken(strengths: Array) -> list[Spoken]:
    """The cues and phrases that spoke most, all measures of one in one place taken together."""
    numbers, kinds = _kinds_of_measures()
    together = np.bincount(numbers, weights=strengths)
    best = _strongest(together, 2 * MOST_WORDS)
    return [
        Spoken(float(together[index]), *kinds[index]) for index in best if together[index] > 0 and kinds[index][0] != ""
    ]


def _shown(spoken: Sequence[Spoken], title: str, text: str, read: Features) -> tuple[Words, ...]:
    """The strongest stretches as places in title and text, none inside another, in order of strength."""
    chosen: list[tuple[Place, int, int]] = []
    for item in sorted(spoken, key=lambda item: -item.strength):
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


def _first_place(item: Spoken, read: Features) -> tuple[int, int]:
    """The words, from one number up to another, in which a term or cue first occurs; empty where it does not."""
    words, cues_there = (read.title, read.title_cues) if item.place == "title" else (read.text, read.text_cues)
    if isinstance(item.what, int):
        found = np.flatnonzero(cues_there == item.what)
        return (int(found[0]), int(found[0]) + 1) if len(found) else (0, 0)
    term = item.what.split()
    at = -1
    for _ in range(words.count(term[0])):
        at = words.index(term[0], at + 1)
        if words[at : at + len(term)] == term:
            return at, at + len(term)
    return 0, 0


@cache
def load(path: Path = WEIGHTS) -> Model:
    """The model as fitted; read once. Raises ``FileNotFoundError`` where the file is gone."""
    with np.load(path, allow_pickle=False) as stored:
        held = {name: stored[name] for name in stored.files}
    bounds = tuple((int(begin), int(end)) for begin, end in held["bounds"])
    heads = Heads(held["answers"].astype(np.intp), bounds, float(held["weight"]), float(held["temperature"]))
    return Model(
        version=bytes(held["version"]).decode(),
        title=_block(held, "title"),
        text=_block(held, "text"),
        centre=held["centre"].astype(np.float64),
        spread=held["spread"].astype(np.float64),
        measured=held["measured"].astype(np.float64),
        intercept=held["intercept"].astype(np.float64),
        heads=heads,
    )


def _block(held: Mapping[str, Array], name: Place) -> Block:
    terms = bytes(held[f"{name}_terms"]).decode("utf-8").split("\n")
    return Block(
        rows={term: row for row, term in enumerate(terms)},
        idf=held[f"{name}_idf"],
        weights=held[f"{name}_weights"],
        scale=held[f"{name}_scale"],
    )


def recognise(abstract: Abstract) -> Recognised:
    """The study type of an abstract, with the words it rests on."""
    return load().recognise(abstract.title, abstract.text)


def version() -> str:
    """The version of the weights, recorded with what they judged."""
    return load().version


__all__ = ["Model", "Recognised", "load", "recognise", "version"]

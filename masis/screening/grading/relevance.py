"""How far an abstract is about the question: which of its concepts it mentions and where, then its
meaning.

**In words**, relevance is the geometric mean of how far each concept is met, weighed by how rare
its words are, so that many common words can't make up for the one thing the question is about. A
concept met in the title or at least twice counts whole, met once a little less, met in part by the
share of its words, not at all ``MISSING``. An abbreviation is also met by words whose initials
spell it.

Where the concepts are not all there, **the likeness of meaning** decides: the greatest cosine
between the question and a passage of the abstract, by the sentence encoder that ships with the
package (``masis/offline/inference/minilm``). So other words for a thing never discard an abstract
by themselves:

- concepts met (0.50 or more): relevant, unless the meaning is far off;
- else, of one meaning with the question: relevant, unless the question names a drug and the
  abstract only others;
- else, neither in words nor in meaning: about something else;
- anything between is left open, and so is another language than the question's.

The bounds were fitted on titles and abstracts of StudyTypeTeller's training file (a title taken for
the question, 700 own abstracts, 4,900 of others; ``tools/fit_relevance.py``); no abstract of the
benchmarks was looked at for them.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from masis.audit.text.language import detect_language, language_name
from masis.offline.inference.encoder import Array, load_encoder
from masis.offline.text.tokens import prefix_key, tokens
from masis.schema.screening import Abstract, AbstractWords, GradeReason
from masis.screening.grading import rubric
from masis.screening.grading.designs import is_drug
from masis.screening.grading.question import RARE_ENOUGH, Concept, Part, Question
from masis.screening.grading.wording import LONGEST_READ

MISSING = 0.12
"""What a concept counts that is nowhere met: not 0, since an abstract may say it in words nobody
listed.
"""
ONCE = 0.85
"""A concept named once in the text may be an aside; twice, or in the title, it is a matter of the
study.
"""
SCATTERED = 0.8
"""Factor for a concept whose words are never close together, such as "blood" and "pressure"."""
KIN = 0.5
"""A word met only by the beginning of its stem ("cardiology" for "cardiac")."""
_NEAR = 6
_SHOWN = 2

LIKE = 0.60
"""From this likeness on the meaning is one: 95% of own abstracts reach it, 0.5% of near ones (same
field) do.
"""
FAR = 0.30
"""Under this the meaning is another, whatever words are shared: 0.1% of own abstracts, 20% of near
ones.
"""
WORDS, LIKENESS, OFFSET = 9.45, 15.30, -10.55
"""Log odds of relevance = WORDS x score of the concepts + LIKENESS x cosine + OFFSET (logistic
regression).
"""
MOST_PROMOTED = 0.90
"""Relevance by meaning alone is lower than that of concepts that occur in the abstract."""
_PASSAGE = 600
"""Characters of a passage: some 120 word pieces, half of what the encoder reads."""
_PASSAGES = 8
_SEEN = 4_000
"""Characters that a language is detected from."""
# Three to ten letters with at least two capitals: "COPD", "mRNA", "HbAC".
_ABBREVIATION = re.compile(r"(?=(?:[a-z]*[A-Z]){2})[A-Za-z]{3,10}")
_EMPTY = frozenset("a an and for in of on or the to with by".split())
_SENTENCE_END = re.compile(r"(?<=[.!?])\s+")


_EXCLUDED = re.compile(
    r"[^.;\d]{0,200}\b(?:(?:was|were) (?:excluded|not (?:included|eligible|studied))|[Ee]xclusion"
    r" criteria)\b"
    r"[^.;\d]{0,200}"
)
"""What is said of those who were left out: the study is not about them ("people with a stroke were
excluded").

With a number it counts drop-outs: "of 300 adults given aspirin, 12 were excluded".
"""


class ConceptMatch(NamedTuple):
    """How far a concept is met (0 to 1), and where."""

    concept: Concept
    share: float
    words: tuple[AbstractWords, ...] = ()


class Relevance(NamedTuple):
    """How far an abstract is about a question; ``score`` None where there is nothing to compare.

    ``unmatched`` where there is, but in a language that can't be compared with the question's.
    """

    score: float | None
    met: tuple[ConceptMatch, ...]
    reason: GradeReason
    unmatched: bool = False


def relevance_by_meaning(question: Question, abstract: Abstract) -> Relevance:
    """Return how far the abstract is about the question, in words and in meaning, and why."""
    in_words = relevance(question, abstract)
    if in_words.score is None:
        return in_words
    if language := other_language(f"{abstract.title} {abstract.text}"):
        text = (
            f"It could not be matched: the text reads like {language}, and concepts are looked for"
            " in English."
        )
        return Relevance(None, in_words.met, GradeReason(text=text), unmatched=True)
    score, why = _combine_scores(
        in_words.score, in_words, abstract, likeness_of(question.text, abstract)
    )
    # what could not be looked for may be missing: never kept on the rest
    if left_open := _unsearchable_concepts(question):
        score, why = min(score, rubric.KEEP_RELEVANCE - 0.01), f"{why} {left_open}".strip()
    reason = GradeReason(text=f"{in_words.reason.text} {why}".strip(), words=in_words.reason.words)
    return Relevance(score, in_words.met, reason)


def relevance(question: Question, abstract: Abstract) -> Relevance:
    """Return how far the abstract is about the question in words, where it says so, and what of it
    is left open.
    """
    if not question.concepts:
        return Relevance(
            None, (), GradeReason(text="The question names nothing that could be looked for.")
        )
    if not (abstract.title.strip() or abstract.text.strip()):
        return Relevance(None, (), GradeReason(text="There is neither a title nor a text to read."))
    looked_for = [concept for concept in question.concepts if concept.stems]
    if not looked_for:
        return Relevance(
            None, (), GradeReason(text=_unsearchable_concepts(question)), unmatched=True
        )
    read = _IndexedAbstract(abstract)
    met = tuple(read.match(concept) for concept in looked_for)
    weight = sum(each.concept.weight for each in met)
    mean = math.exp(
        sum(each.concept.weight * math.log(max(MISSING, each.share)) for each in met) / weight
    )
    # so that no concept at all scores 0
    score = round(min(1.0, max(0.0, (mean - MISSING) / (1 - MISSING))), 4)
    return Relevance(score, met, _relevance_reason(met))


def _unsearchable_concepts(question: Question) -> str:
    """Say which concepts have no word that could be looked for in an English abstract; empty where
    all have.
    """
    named = ", ".join(f"{each.name} ({each.part})" for each in question.concepts if not each.stems)
    return f"Not matched: {named}, which holds no word that could be looked for." if named else ""


def _relevance_reason(met: tuple[ConceptMatch, ...]) -> GradeReason:
    named: dict[str, list[str]] = {"Met": [], "in part": [], "not met": []}
    for each in met:
        how = (
            "not met"
            if each.share <= MISSING
            else "in part"
            if each.share < ONCE * SCATTERED
            else "Met"
        )
        named[how].append(f"{each.concept.name} ({each.concept.part})")
    text = "; ".join(f"{how}: {', '.join(names)}" for how, names in named.items() if names) + "."
    return GradeReason(
        text=text[0].upper() + text[1:], words=tuple(word for each in met for word in each.words)
    )


class _IndexedAbstract:
    """An abstract's words in order, those of the title (the first ``titled``) first, and where each
    stem stands.
    """

    def __init__(self, abstract: Abstract) -> None:
        title = tokens(abstract.title[:LONGEST_READ])
        self.abstract, self.titled = abstract, len(title)
        # Blanks of the same length keep the places of all other words in the text.
        text = _EXCLUDED.sub(lambda match: " " * len(match[0]), abstract.text[:LONGEST_READ])
        self.words = (*title, *tokens(text))
        self.at: dict[str, list[int]] = {}
        for index, word in enumerate(self.words):
            self.at.setdefault(word.stem, []).append(index)

    def match(self, concept: Concept) -> ConceptMatch:
        """Return how far a concept is met, in the question's own words or others for it."""
        best = ConceptMatch(concept, 0.0) if self._places(concept.stems) else self._in_part(concept)
        for stems in (
            concept.stems,
            *(each.stems for each in concept.others),
            *self._spelt_out(concept.name),
        ):
            found = self._places(stems)
            if found and self._often(found) > best.share:
                shown = tuple(self._words_at(start, len(stems)) for start in found[:_SHOWN])
                best = ConceptMatch(concept, self._often(found), shown)
        return best

    def _spelt_out(self, name: str) -> Iterator[tuple[str, ...]]:
        """Yield the words whose initials spell an abbreviation of the question: fewer than three
        letters spell much.
        """
        if _ABBREVIATION.fullmatch(name):
            letters = name.removesuffix("s").lower()
            content = [
                index for index, word in enumerate(self.words) if word.text.lower() not in _EMPTY
            ]
            at = "".join(self.words[index].text[0].lower() for index in content).find(letters)
            if at >= 0:
                yield tuple(
                    word.stem
                    for word in self.words[content[at] : content[at + len(letters) - 1] + 1]
                )

    def _in_part(self, concept: Concept) -> ConceptMatch:
        """Return how far the question's own words for a concept are there one by one, scattered or
        not all.
        """
        places = [self.at.get(root, []) for root in concept.stems]
        share = 0.0
        for root, weight, found in zip(concept.stems, concept.rarities, places, strict=True):
            key = prefix_key(root)
            kin = key is not None and any(prefix_key(other) == key for other in self.at)
            share += weight * (1.0 if found else KIN if kin else 0.0) / sum(concept.rarities)
        if len(concept.stems) > 1 and not _are_near(places):
            share *= SCATTERED
        words = tuple(self._words_at(found[0], 1) for found in places if found)[:_SHOWN]
        return ConceptMatch(
            concept,
            share * min((self._often(found) for found in places if found), default=1.0),
            words,
        )

    def _places(self, stems: tuple[str, ...]) -> list[int]:
        """Return where the phrase begins, its words one after another within the title or within
        the text.
        """
        length = len(stems)
        return [
            start
            for start in (self.at.get(stems[0], []) if stems else [])
            if tuple(word.stem for word in self.words[start : start + length]) == stems
            and not start < self.titled < start + length
        ]

    def _often(self, found: list[int]) -> float:
        return 1.0 if len(found) > 1 or found[0] < self.titled else ONCE

    def _words_at(self, first: int, length: int) -> AbstractWords:
        start, end = self.words[first].start, self.words[first + length - 1].end
        title = first < self.titled
        source = self.abstract.title if title else self.abstract.text
        return AbstractWords(
            start=start, end=end, text=source[start:end], place="title" if title else "text"
        )


def _are_near(places: list[list[int]]) -> bool:
    """Return whether all words of a concept occur within a few words of each other somewhere."""
    return all(places) and any(
        all(any(abs(other - start) <= _NEAR for other in found) for found in places[1:])
        for start in places[0][:20]
    )


# The likeness of meaning.


def likeness_of(question: str, abstract: Abstract) -> float:
    """Return the greatest cosine between the question and the title or a passage of the abstract,
    -1 to 1.
    """
    vectors: list[Array] = [
        load_encoder().encode(text) for text in (question[:LONGEST_READ], *_passages(abstract))
    ]
    asked, *said = (vector / (np.linalg.norm(vector) + 1e-9) for vector in vectors)
    return max((float(asked @ each) for each in said), default=0.0)


def _combine_scores(
    score: float, in_words: Relevance, abstract: Abstract, likeness: float
) -> tuple[float, str]:
    share = f"likeness of meaning {likeness:.2f}"
    left_open = rubric.KEEP_RELEVANCE - 0.01
    unnamed = _unnamed_part(in_words.met)
    if unnamed and (likeness >= LIKE or score >= rubric.KEEP_RELEVANCE):
        why = f"It says nothing of the {unnamed} that the question names ({share})."
        return min(max(score, rubric.DISCARD_RELEVANCE), left_open), why
    if score >= rubric.KEEP_RELEVANCE:
        if likeness >= FAR:
            return score, ""
        return left_open, f"It shares words, but means something else ({share})."
    if likeness >= LIKE:
        # Two drugs for one disease are alike in meaning and answer different questions.
        missed = next(
            (
                each.concept.name
                for each in in_words.met
                if not each.words and _drug(each.concept.name)
            ),
            None,
        )
        if missed and _drug(f"{abstract.title} {abstract.text}"):
            why = f"The question names {missed}, and the abstract other drugs ({share})."
            return max(score, rubric.DISCARD_RELEVANCE), why
        raised = rubric.KEEP_RELEVANCE + (MOST_PROMOTED - rubric.KEEP_RELEVANCE) * (
            likeness - LIKE
        ) / (1 - LIKE)
        return round(max(score, raised), 4), f"In other words it is about the question ({share})."
    odds = WORDS * score + LIKENESS * likeness + OFFSET
    if score < rubric.DISCARD_RELEVANCE and 1 / (1 + math.exp(-odds)) < rubric.DISCARD_RELEVANCE:
        return score, f"Neither its words nor its meaning are the question's ({share})."
    return (
        max(score, rubric.DISCARD_RELEVANCE),
        f"Its words are not all the question's, nor clearly others ({share}).",
    )


def _unnamed_part(met: Sequence[ConceptMatch]) -> Part | None:
    """Return the population or outcome of which the abstract names no concept, though one is rare
    enough to be named.

    "Adults" need not be. Of 261 questions of PubMedQA (even rows) few have an own abstract of which
    this is true, of 783 near abstracts of other questions one in five.
    """
    for part in ("population", "outcome"):
        asked = [each for each in met if each.concept.part == part]
        if any(each.concept.weight >= RARE_ENOUGH for each in asked) and not any(
            each.share for each in asked
        ):
            return part
    return None


def _drug(text: str) -> bool:
    return any(map(is_drug, re.findall(r"[a-z]{6,}", text[:LONGEST_READ].lower())))


def other_language(text: str) -> str | None:
    """Return the name of the language of a text that is surely not English; else None."""
    code = detect_language(text[:_SEEN])
    return None if code in (None, "en") else language_name(code)


def _passages(abstract: Abstract) -> list[str]:
    passages = [""]
    for sentence in _SENTENCE_END.split(abstract.text[:LONGEST_READ]):
        if passages[-1] and len(passages[-1]) + len(sentence) > _PASSAGE:
            if len(passages) == _PASSAGES:
                break
            passages.append("")
        passages[-1] = f"{passages[-1]} {sentence}".strip()[: 2 * _PASSAGE]
    return [each for each in (abstract.title[:_PASSAGE].strip(), *passages) if each]

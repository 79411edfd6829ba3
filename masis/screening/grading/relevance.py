"""Scores how far an abstract is about the question, by its concepts and then by its meaning.

**By words**, relevance is the geometric mean of the matches of all concepts, weighted by the rarity
of their words, so that many common words can't outweigh the main concept. A concept counts fully if
it is in the title or occurs at least twice, and slightly less if it occurs once. If only some of
its words occur, their share counts, and if none occur, ``MISSING``. An abbreviation also matches
words whose initials spell it.

**By meaning**, it is the greatest cosine between the question and a passage of the abstract, by the
sentence encoder that is part of the package (``masis/offline/inference/minilm``). So an abstract
isn't discarded just because it uses other words:

- If the concepts match (0.50 or more), it is relevant, unless its meaning is very different.
- Otherwise, if its meaning is similar, it is relevant, unless the question names a drug that the
  abstract doesn't name.
- If no concept but an outcome is named and the meaning is different, it is about something else.
- In all other cases, and in another language than the question, the relevance is left open.

Among the relevant and among the unclear ones, the score orders by a probability from the similarity
and the **concept frequency**: how often the names of each concept occur, saturated and normalized
by length as in BM25.

The bounds of similarity were fitted on StudyTypeTeller's training file, with titles as questions
(``tools/fit_relevance.py``), and the probability on four public reviews
(``benchmarks/screening_reviews.py``).
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from masis.audit.text.language import detect_language, language_name
from masis.offline.inference.encoder import Array, load_encoder
from masis.offline.text.tokens import prefix_key, tokens
from masis.schema.screening import Abstract, AbstractWords, GradeReason
from masis.screening.grading import rubric
from masis.screening.grading.designs import is_drug
from masis.screening.grading.question import (
    DISTINCTIVE_FROM,
    MIN_WEIGHT,
    Concept,
    Part,
    Question,
    rarity,
)
from masis.screening.grading.vocabulary import Phrase, has_ending, word_stem
from masis.screening.grading.wording import LONGEST_READ

MISSING = 0.12
"""The match of a concept that doesn't occur. It isn't 0, because synonyms may be missing."""
ONCE = 0.85
"""The match of a concept that occurs once in the text, where it may be an aside."""
SCATTERED = 0.8
"""The factor for a concept whose words are far apart, such as "blood" and "pressure"."""
TITLE_WEIGHT = 3
"""How often a name in the title counts, as in a corpus search (``docs/screening.md``)."""
PARTIAL_COUNT = 0.5
"""How often single words of a name count if the whole name doesn't occur."""
SATURATION, LENGTH_SHARE, MEAN_LENGTH = 1.2, 0.75, 220
"""The constants k1 and b of BM25 (Robertson and Zaragoza 2009), and the mean number of words of an
abstract in the reviews that the weights were fitted on.
"""
MENTIONED = 0.6
"""The most that an intervention matches that is named without a role in the study: not in the
title, and not near words such as "assigned to" or "received".
"""
_ROLE_DISTANCE = 8
_ROLE_CUES = frozenset(
    """
        assigned allocated randomised randomized received receiving receive given treated treatment
        therapy administered administration added dose doses mg daily versus vs placebo compared
        effect effects efficacy use used users exposure exposed intake intervention underwent
        undergoing after before implemented program programme group groups arm association
        associated
    """.split()
)
RELATED_WORD = 0.5
"""The match of a word that shares only the beginning of its stem ("cardiology" for "cardiac")."""
# Words between parts of a concept that count as near, and excerpts shown for each concept.
_MAX_DISTANCE = 6
_MAX_EXCERPTS = 2

SIMILAR_FROM = 0.60
"""The least similarity of the same meaning. 95% of abstracts reach it for their own title, and 0.5%
for another title of the same field.
"""
DIFFERENT_BELOW = 0.30
"""A lower similarity means another meaning, no matter which words are shared. 0.1% of abstracts are
below it for their own title, and 20% for another title of the same field.
"""
WORDS_WEIGHT, SIMILARITY_WEIGHT, OFFSET = 2.3, 5.3, -3.6
"""Coefficients of a logistic regression: log odds of relevance = WORDS_WEIGHT x concept frequency +
SIMILARITY_WEIGHT x cosine + OFFSET (``benchmarks/screening_reviews.py --fit``).
"""
# Characters of a passage: about 120 word pieces, half of what the encoder reads.
_PASSAGE = 600
_PASSAGES = 8
# Characters used to detect the language.
_LANGUAGE_SAMPLE = 4_000
# Three to ten letters with at least two capitals: "COPD", "mRNA", "HbAC".
_ABBREVIATION = re.compile(r"(?=(?:[a-z]*[A-Z]){2})[A-Za-z]{3,10}")
_EMPTY = frozenset("a an and for in of on or the to with by".split())
_SENTENCE_END = re.compile(r"(?<=[.!?])\s+")


# Statements about excluded people, which the study isn't about ("people with a stroke were
# excluded").
#
# A statement with a number is about dropouts, so it doesn't match: "of 300 adults given aspirin, 12
# were excluded".
_EXCLUDED = re.compile(
    r"[^.;\d]{0,200}\b(?:(?:was|were) (?:excluded|not (?:included|eligible|studied))|[Ee]xclusion"
    r" criteria)\b"
    r"[^.;\d]{0,200}"
)


class ConceptMatch(NamedTuple):
    """How far an abstract mentions a concept, from 0 to 1, and the words.

    ``is_named`` says whether one of its names occurs, not only single words of one.
    ``occurrences`` is the number of times, where one in the title counts ``TITLE_WEIGHT`` times.
    """

    concept: Concept
    share: float
    words: tuple[AbstractWords, ...] = ()
    is_named: bool = False
    occurrences: float = 0.0


class Relevance(NamedTuple):
    """How far an abstract is about a question; ``score`` is None if they can't be compared.

    ``unmatched`` is true if that is because of their languages. ``frequency`` is how often the
    concepts occur for the length of the abstract, from 0 to 1.
    """

    score: float | None
    met: tuple[ConceptMatch, ...]
    reason: GradeReason
    unmatched: bool = False
    frequency: float = 0.0


def relevance_by_meaning(question: Question, abstract: Abstract) -> Relevance:
    """Return how far the abstract is about the question by its words and its meaning, and why."""
    by_words = relevance(question, abstract)
    if by_words.score is None:
        return by_words
    if language := other_language(f"{abstract.title} {abstract.text}"):
        text = (
            f"It couldn't be matched, because the text seems to be in {language}, and concepts are"
            " searched in English."
        )
        return Relevance(None, by_words.met, GradeReason(text=text), unmatched=True)
    score, why = _combine_scores(
        by_words.score, by_words, abstract, similarity_of(question.compared_text, abstract)
    )
    # A concept that can't be searched may be missing, so the others aren't enough to keep it.
    if unsearchable := _unsearchable_concepts(question):
        score, why = min(score, rubric.KEEP_RELEVANCE - 0.01), f"{why} {unsearchable}".strip()
    reason = GradeReason(text=f"{by_words.reason.text} {why}".strip(), words=by_words.reason.words)
    return Relevance(score, by_words.met, reason)


def relevance(question: Question, abstract: Abstract) -> Relevance:
    """Return how far the abstract is about the question by its words alone, and where."""
    if not question.concepts:
        return Relevance(None, (), GradeReason(text="The question has no concept to search for."))
    if not (abstract.title.strip() or abstract.text.strip()):
        return Relevance(None, (), GradeReason(text="The record has neither a title nor a text."))
    searchable = [concept for concept in question.concepts if concept.stems]
    if not searchable:
        return Relevance(
            None, (), GradeReason(text=_unsearchable_concepts(question)), unmatched=True
        )
    indexed = _IndexedAbstract(abstract)
    matches = tuple(indexed.match(concept) for concept in searchable)
    weight = sum(match.concept.weight for match in matches)
    mean = math.exp(
        sum(match.concept.weight * math.log(max(MISSING, match.share)) for match in matches)
        / weight
    )
    # Scale the range from MISSING to 1 to the range from 0 to 1.
    score = round(min(1.0, max(0.0, (mean - MISSING) / (1 - MISSING))), 4)
    frequency = _concept_frequency(matches, len(indexed.words))
    return Relevance(score, matches, _relevance_reason(matches), frequency=frequency)


def _concept_frequency(matches: Sequence[ConceptMatch], length: int) -> float:
    """Return the mean saturated frequency of the concepts by their rarity: BM25 by concepts."""
    norm = SATURATION * (1 - LENGTH_SHARE + LENGTH_SHARE * length / MEAN_LENGTH)
    weight = sum(match.concept.weight for match in matches)
    return (
        sum(
            match.concept.weight * match.occurrences / (match.occurrences + norm)
            for match in matches
        )
        / weight
    )


def _unsearchable_concepts(question: Question) -> str:
    """Return a sentence about concepts without an English word to search for, or ""."""
    named = ", ".join(
        f"{concept.name} ({concept.part})" for concept in question.concepts if not concept.stems
    )
    return f"Not matched: {named}, which has no word that can be searched for." if named else ""


def _relevance_reason(matches: tuple[ConceptMatch, ...]) -> GradeReason:
    names_by_result: dict[str, list[str]] = {"Met": [], "in part": [], "not met": []}
    for match in matches:
        result = (
            "not met"
            if match.share <= MISSING
            else "in part"
            if match.share < ONCE * SCATTERED
            else "Met"
        )
        names_by_result[result].append(f"{match.concept.name} ({match.concept.part})")
    text = (
        "; ".join(
            f"{result}: {', '.join(names)}" for result, names in names_by_result.items() if names
        )
        + "."
    )
    return GradeReason(
        text=text[0].upper() + text[1:],
        words=tuple(word for match in matches for word in match.words),
    )


class _IndexedAbstract:
    """The words of an abstract and the positions of each stem.

    The first ``titled`` words are those of the title.
    """

    def __init__(self, abstract: Abstract) -> None:
        title = tokens(abstract.title[:LONGEST_READ])
        self.abstract, self.titled = abstract, len(title)
        # Exclusions become spaces of the same length, so that offsets of other words stay valid.
        text = _EXCLUDED.sub(lambda match: " " * len(match[0]), abstract.text[:LONGEST_READ])
        self.words = (*title, *tokens(text))
        self.stems = tuple(word_stem(word.text) for word in self.words)
        self.positions: dict[str, list[int]] = {}
        for index, root in enumerate(self.stems):
            self.positions.setdefault(root, []).append(index)
        self.prefixes = {key for key in map(prefix_key, self.positions) if key is not None}

    def match(self, concept: Concept) -> ConceptMatch:
        """Return how far the abstract mentions a concept by any of its names."""
        spans = self._named_spans(concept)
        if not spans:
            listed = (concept, *(_as_concept(concept, other) for other in concept.alternatives))
            return max(map(self._partial_match, listed), key=lambda match: match.share)._replace(
                concept=concept
            )
        positions = sorted(spans)
        excerpts = tuple(self._words_at(start, spans[start]) for start in positions[:_MAX_EXCERPTS])
        share = self._share_of(positions)
        if concept.part == "intervention" and not self._is_studied(positions):
            share = min(share, MENTIONED)
        in_title = sum(start < self.titled for start in positions)
        count = TITLE_WEIGHT * in_title + len(positions) - in_title
        return ConceptMatch(concept, share, excerpts, True, float(count))

    def _named_spans(self, concept: Concept) -> dict[int, int]:
        """Return where any name of a concept begins, with the number of its words."""
        names = [
            stems
            for first, listed in _names_by_first_stem(concept.stems, concept.others).items()
            if first in self.positions
            for stems in listed
        ]
        spans = {
            start: len(stems)
            for stems in (*names, *self._expansions(concept.name))
            for start in self._phrase_positions(stems)
        }
        return dict.fromkeys(self._drug_positions(concept.endings), 1) | spans

    def _is_studied(self, positions: list[int]) -> bool:
        """Return whether an intervention has a role in the study: in the title, or near a cue."""
        if positions[0] < self.titled or not self.titled:
            return True
        return any(
            self.words[near].text.lower() in _ROLE_CUES
            for start in positions
            for near in range(max(0, start - _ROLE_DISTANCE), start + _ROLE_DISTANCE)
            if near < len(self.words)
        )

    def _drug_positions(self, endings: tuple[str, ...]) -> list[int]:
        """Return the positions of names of drugs with these endings."""
        if not endings:
            return []
        return [
            index
            for index, word in enumerate(self.words)
            if has_ending(word.text.lower().removesuffix("s"), endings)
        ]

    def _expansions(self, name: str) -> Iterator[tuple[str, ...]]:
        """Yield the stems of words whose initials spell an abbreviation.

        An abbreviation has at least three letters, because shorter ones match by chance.
        """
        if _ABBREVIATION.fullmatch(name):
            letters = name.removesuffix("s").lower()
            content = [
                index for index, word in enumerate(self.words) if word.text.lower() not in _EMPTY
            ]
            start = "".join(self.words[index].text[0].lower() for index in content).find(letters)
            if start >= 0:
                yield self.stems[content[start] : content[start + len(letters) - 1] + 1]

    def _partial_match(self, concept: Concept) -> ConceptMatch:
        """Return the match of the single words of a concept, if its whole phrase doesn't occur."""
        positions = [self.positions.get(root, []) for root in concept.stems]
        share = 0.0
        for root, weight, root_positions in zip(
            concept.stems, concept.rarities, positions, strict=True
        ):
            key = prefix_key(root)
            is_related = key is not None and key in self.prefixes
            share += (
                weight
                * (1.0 if root_positions else RELATED_WORD if is_related else 0.0)
                / sum(concept.rarities)
            )
        if len(concept.stems) > 1 and not _are_near(positions):
            share *= SCATTERED
        words = tuple(
            self._words_at(root_positions[0], 1) for root_positions in positions if root_positions
        )[:_MAX_EXCERPTS]
        share *= min(
            (self._share_of(root_positions) for root_positions in positions if root_positions),
            default=1.0,
        )
        return ConceptMatch(concept, share, words, False, PARTIAL_COUNT * share)

    def _phrase_positions(self, stems: tuple[str, ...]) -> list[int]:
        """Return the indices at which a phrase begins in the title or in the text."""
        length = len(stems)
        return [
            start
            for start in (self.positions.get(stems[0], []) if stems else [])
            if self.stems[start : start + length] == stems
            and not start < self.titled < start + length
        ]

    def _share_of(self, positions: list[int]) -> float:
        """Return the match of a phrase at these positions; one in the title counts fully."""
        return 1.0 if len(positions) > 1 or positions[0] < self.titled else ONCE

    def _words_at(self, first: int, length: int) -> AbstractWords:
        start, end = self.words[first].start, self.words[first + length - 1].end
        in_title = first < self.titled
        source = self.abstract.title if in_title else self.abstract.text
        return AbstractWords(
            start=start, end=end, text=source[start:end], place="title" if in_title else "text"
        )


@lru_cache(maxsize=512)
def _names_by_first_stem(
    stems: tuple[str, ...], others: tuple[Phrase, ...]
) -> dict[str, list[tuple[str, ...]]]:
    """Return the names of a concept by their first stem, because a class may have 1,500 names."""
    names: dict[str, list[tuple[str, ...]]] = {}
    for name in (stems, *(other.stems for other in others)):
        if name:
            names.setdefault(name[0], []).append(name)
    return names


def _as_concept(concept: Concept, name: Phrase) -> Concept:
    """Return a concept with another of its names in place of the first."""
    rarities = tuple(max(MIN_WEIGHT, rarity(root)) for root in name.stems)
    return concept._replace(name=name.text, stems=name.stems, rarities=rarities)


def _are_near(positions: list[list[int]]) -> bool:
    """Return whether all words of a concept occur close together at least once."""
    return all(positions) and any(
        all(
            any(abs(other - start) <= _MAX_DISTANCE for other in others) for others in positions[1:]
        )
        for start in positions[0][:20]
    )


# The similarity of meaning.


def similarity_of(question: str, abstract: Abstract) -> float:
    """Return the greatest cosine (-1 to 1) of the question and the title or a passage."""
    vectors: list[Array] = [
        load_encoder().encode(text) for text in (question[:LONGEST_READ], *_passages(abstract))
    ]
    question_vector, *passages = (vector / (np.linalg.norm(vector) + 1e-9) for vector in vectors)
    return max((float(question_vector @ passage) for passage in passages), default=0.0)


def _combine_scores(
    score: float, in_words: Relevance, abstract: Abstract, likeness: float
) -> tuple[float, str]:
    """Return the relevance of an abstract from its words and its meaning, and why.

    The rules decide between relevant, unclear and off topic. Within these, the order is that of the
    probability by concept frequency and similarity.
    """
    similarity_text = f"similarity of meaning {likeness:.2f}"
    odds = WORDS_WEIGHT * in_words.frequency + SIMILARITY_WEIGHT * likeness + OFFSET
    probability = 1 / (1 + math.exp(-odds))
    unclear = _between(rubric.DISCARD_RELEVANCE, rubric.KEEP_RELEVANCE, probability)
    # How far the words alone match counts too: a concept that is missing lowers the relevance.
    words_share = max(0.0, score - rubric.KEEP_RELEVANCE) / (1 - rubric.KEEP_RELEVANCE)
    relevant = _between(rubric.KEEP_RELEVANCE, 1.0, (probability + words_share) / 2)
    matches_words, matches_meaning = score >= rubric.KEEP_RELEVANCE, likeness >= SIMILAR_FROM
    missing_part = _unnamed_part(in_words.met)
    # It may study other people or another outcome, so it is neither kept nor discarded.
    if missing_part and (matches_words or matches_meaning):
        return (
            unclear,
            f"It doesn't mention the {missing_part} in the question ({similarity_text}).",
        )
    if matches_words:
        if likeness >= DIFFERENT_BELOW:
            return relevant, ""
        return (
            unclear,
            f"It shares words with the question, but its topic differs ({similarity_text}).",
        )
    if matches_meaning:
        # Two drugs for one disease are similar in meaning but answer different questions.
        missing_drug = next(
            (
                match.concept.name
                for match in in_words.met
                if not match.is_named and _mentions_drug(match.concept.name)
            ),
            None,
        )
        if missing_drug:
            why = (
                f"The question names {missing_drug}, but the abstract doesn't ({similarity_text})."
            )
            return unclear, why
        return relevant, f"It is about the question in other words ({similarity_text})."
    subject_named = any(match.is_named for match in in_words.met if match.concept.part != "outcome")
    if not subject_named and likeness < DIFFERENT_BELOW:
        why = f"Neither its words nor its meaning match the question ({similarity_text})."
        return _between(0.0, rubric.DISCARD_RELEVANCE, probability), why
    return (
        unclear,
        f"Only some of its words match the question, so this is unclear ({similarity_text}).",
    )


def _between(least: float, limit: float, share: float) -> float:
    """Return the score at a share of the way from ``least`` up to, but not including, ``limit``."""
    return round(least + (limit - 0.0001 - least) * share, 4)


def _unnamed_part(matches: Sequence[ConceptMatch]) -> Part | None:
    """Return the part (population or outcome) that the abstract doesn't mention at all, if any.

    The part must have a concept that is rare enough: an abstract needn't mention "adults". Of 261
    questions of PubMedQA (even rows), few miss a part in their own abstract. Of 783 abstracts on
    similar questions, one in five does.
    """
    for part in ("population", "outcome"):
        part_matches = [match for match in matches if match.concept.part == part]
        if any(match.concept.weight >= DISTINCTIVE_FROM for match in part_matches) and not any(
            match.share for match in part_matches
        ):
            return part
    return None


def _mentions_drug(text: str) -> bool:
    return any(map(is_drug, re.findall(r"[a-z]{6,}", text[:LONGEST_READ].lower())))


def other_language(text: str) -> str | None:
    """Return the name of a text's language if it clearly isn't English, else None."""
    code = detect_language(text[:_LANGUAGE_SAMPLE])
    return None if code in (None, "en") else language_name(code)


def _passages(abstract: Abstract) -> list[str]:
    """Return the title and passages of whole sentences, each short enough for the encoder."""
    passages = [""]
    for sentence in _SENTENCE_END.split(abstract.text[:LONGEST_READ]):
        if passages[-1] and len(passages[-1]) + len(sentence) > _PASSAGE:
            if len(passages) == _PASSAGES:
                break
            passages.append("")
        passages[-1] = f"{passages[-1]} {sentence}".strip()[: 2 * _PASSAGE]
    return [text for text in (abstract.title[:_PASSAGE].strip(), *passages) if text]

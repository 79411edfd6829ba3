"""Scores how far an abstract is about the question, by its concepts and then by its meaning.

**By words**, relevance is the geometric mean of the matches of all concepts, weighted by the rarity
of their words, so that many common words can't outweigh the main concept. A concept counts fully if
it is in the title or occurs at least twice, and slightly less if it occurs once. If only some of
its words occur, their share counts, and if none occur, ``MISSING``. An abbreviation also matches
words whose initials spell it.

If some concepts are missing, **the similarity of meaning** decides: the greatest cosine between the
question and a passage of the abstract, by the sentence encoder that is part of the package
(``masis/offline/inference/minilm``). So an abstract isn't discarded just because it uses other
words:

- If the concepts match (0.50 or more), it is relevant, unless its meaning is very different.
- Otherwise, if its meaning is similar, it is relevant, unless the question names a drug and the
  abstract names only other drugs.
- If neither matches, it is about something else.
- In all other cases, and in another language than the question, the relevance is left open.

The bounds were fitted on StudyTypeTeller's training file, with titles as questions, 700 abstracts
of those titles and 4,900 of other titles (``tools/fit_relevance.py``). Abstracts of the benchmarks
weren't used.
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
from masis.screening.grading.question import DISTINCTIVE_FROM, Concept, Part, Question
from masis.screening.grading.wording import LONGEST_READ

MISSING = 0.12
"""The match of a concept that doesn't occur. It isn't 0, because synonyms may be missing."""
ONCE = 0.85
"""The match of a concept that occurs once in the text, where it may be an aside."""
SCATTERED = 0.8
"""The factor for a concept whose words are far apart, such as "blood" and "pressure"."""
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
WORDS_WEIGHT, SIMILARITY_WEIGHT, OFFSET = 9.45, 15.30, -10.55
"""Coefficients of a logistic regression: log odds of relevance = WORDS_WEIGHT x concept score +
SIMILARITY_WEIGHT x cosine + OFFSET (``tools/fit_relevance.py``).
"""
MAX_BY_MEANING = 0.90
"""The highest relevance by meaning alone, lower than with matching words."""
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
    """How far an abstract mentions a concept, from 0 to 1, and the words."""

    concept: Concept
    share: float
    words: tuple[AbstractWords, ...] = ()


class Relevance(NamedTuple):
    """How far an abstract is about a question; ``score`` is None if they can't be compared.

    ``unmatched`` is true if that is because of their languages.
    """

    score: float | None
    met: tuple[ConceptMatch, ...]
    reason: GradeReason
    unmatched: bool = False


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
        by_words.score, by_words, abstract, similarity_of(question.text, abstract)
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
    return Relevance(score, matches, _relevance_reason(matches))


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
        self.positions: dict[str, list[int]] = {}
        for index, word in enumerate(self.words):
            self.positions.setdefault(word.stem, []).append(index)

    def match(self, concept: Concept) -> ConceptMatch:
        """Return how far the abstract mentions a concept by any of its names."""
        best = (
            ConceptMatch(concept, 0.0)
            if self._phrase_positions(concept.stems)
            else self._partial_match(concept)
        )
        for stems in (
            concept.stems,
            *(other.stems for other in concept.others),
            *self._expansions(concept.name),
        ):
            positions = self._phrase_positions(stems)
            if positions and self._share_of(positions) > best.share:
                excerpts = tuple(
                    self._words_at(start, len(stems)) for start in positions[:_MAX_EXCERPTS]
                )
                best = ConceptMatch(concept, self._share_of(positions), excerpts)
        return best

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
                yield tuple(
                    word.stem
                    for word in self.words[content[start] : content[start + len(letters) - 1] + 1]
                )

    def _partial_match(self, concept: Concept) -> ConceptMatch:
        """Return the match of the single words of a concept, if its whole phrase doesn't occur."""
        positions = [self.positions.get(root, []) for root in concept.stems]
        share = 0.0
        for root, weight, root_positions in zip(
            concept.stems, concept.rarities, positions, strict=True
        ):
            key = prefix_key(root)
            is_related = key is not None and any(
                prefix_key(other) == key for other in self.positions
            )
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
        return ConceptMatch(
            concept,
            share
            * min(
                (self._share_of(root_positions) for root_positions in positions if root_positions),
                default=1.0,
            ),
            words,
        )

    def _phrase_positions(self, stems: tuple[str, ...]) -> list[int]:
        """Return the indices at which a phrase begins in the title or in the text."""
        length = len(stems)
        return [
            start
            for start in (self.positions.get(stems[0], []) if stems else [])
            if tuple(word.stem for word in self.words[start : start + length]) == stems
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
    similarity_text = f"similarity of meaning {likeness:.2f}"
    below_keep = rubric.KEEP_RELEVANCE - 0.01
    missing_part = _unnamed_part(in_words.met)
    # It may study other people or another outcome, so it is neither kept nor discarded.
    if missing_part and (likeness >= SIMILAR_FROM or score >= rubric.KEEP_RELEVANCE):
        why = f"It doesn't mention the {missing_part} in the question ({similarity_text})."
        return min(max(score, rubric.DISCARD_RELEVANCE), below_keep), why
    if score >= rubric.KEEP_RELEVANCE:
        if likeness >= DIFFERENT_BELOW:
            return score, ""
        return (
            below_keep,
            f"It shares words with the question, but its topic differs ({similarity_text}).",
        )
    if likeness >= SIMILAR_FROM:
        # Two drugs for one disease are similar in meaning but answer different questions.
        missing_drug = next(
            (
                match.concept.name
                for match in in_words.met
                if not match.words and _mentions_drug(match.concept.name)
            ),
            None,
        )
        if missing_drug and _mentions_drug(f"{abstract.title} {abstract.text}"):
            why = (
                f"The question names {missing_drug}, but the abstract names other drugs"
                f" ({similarity_text})."
            )
            return max(score, rubric.DISCARD_RELEVANCE), why
        # Maps SIMILAR_FROM..1 to KEEP_RELEVANCE..MAX_BY_MEANING.
        raised = rubric.KEEP_RELEVANCE + (MAX_BY_MEANING - rubric.KEEP_RELEVANCE) * (
            likeness - SIMILAR_FROM
        ) / (1 - SIMILAR_FROM)
        return round(
            max(score, raised), 4
        ), f"It is about the question in other words ({similarity_text})."
    odds = WORDS_WEIGHT * score + SIMILARITY_WEIGHT * likeness + OFFSET
    if score < rubric.DISCARD_RELEVANCE and 1 / (1 + math.exp(-odds)) < rubric.DISCARD_RELEVANCE:
        return score, f"Neither its words nor its meaning match the question ({similarity_text})."
    return (
        max(score, rubric.DISCARD_RELEVANCE),
        f"Only some of its words match the question, so this is unclear ({similarity_text}).",
    )


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

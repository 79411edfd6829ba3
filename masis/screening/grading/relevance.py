"""How far an abstract is about the question: which of its concepts it mentions, and where.

Relevance is the geometric mean of how far each concept is met, weighed by how rare its words are, so that many common
words can't make up for the one thing the question is about. A concept met in the title or at least twice counts whole,
met once a little less, met in part by the share of its words, not at all ``MISSING``.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from masis.offline.text.tokens import Token, prefix_key, tokens
from masis.schema.screening import Abstract, Reason, Words
from masis.screening.grading.abbreviations import definitions, is_abbreviation, spelt_by_initials
from masis.screening.grading.question import Concept, Phrase, Question, phrase_of
from masis.screening.grading.wording import LONGEST_READ

MISSING = 0.12
"""What a concept counts that is nowhere met: not 0, since an abstract may say it in words nobody listed."""
ONCE = 0.85
"""A concept named once in the text may be an aside; twice, or in the title, it is a matter of the study."""
SCATTERED = 0.8
"""The words of one concept never near each other: "blood" here, "pressure" there."""
KIN = 0.5
"""A word met only by the beginning of its stem ("cardiology" for "cardiac")."""
_NEAR = 6
_SHOWN = 2


class ConceptMatch(NamedTuple):
    """How far a concept is met (0 to 1), and where."""

    concept: Concept
    share: float
    words: tuple[Words, ...]


class Relevance(NamedTuple):
    """How far an abstract is about a question; ``score`` None where there is nothing to compare.

    ``unmatched`` where there is, but in a language that can't be compared with the question's.
    """

    score: float | None
    met: tuple[ConceptMatch, ...]
    reason: Reason
    unmatched: bool = False


class TokenizedAbstract(NamedTuple):
    """An abstract's words in order, those of the title (the first ``titled``) before the text's, and where each stem
    stands.
    """

    abstract: Abstract
    words: tuple[Token, ...]
    titled: int
    at: dict[str, list[int]]
    defined: tuple[tuple[Phrase, Phrase], ...]

    def in_title(self, index: int) -> bool:
        """Return whether a word stands in the title: its offsets are the title's then."""
        return index < self.titled

    def holds_kin(self, root: str) -> bool:
        """Return whether any word begins like this stem."""
        key = prefix_key(root)
        return key is not None and any(prefix_key(other) == key for other in self.at)


def read_abstract(abstract: Abstract) -> TokenizedAbstract:
    """Return the words of an abstract, ready to be asked for concepts."""
    title = tokens(abstract.title[:LONGEST_READ])
    words = (*title, *tokens(abstract.text[:LONGEST_READ]))
    at: dict[str, list[int]] = {}
    for index, word in enumerate(words):
        at.setdefault(word.stem, []).append(index)
    defined = tuple(
        (phrase_of(short), phrase_of(long))
        for source in (abstract.title, abstract.text)
        for short, long in definitions(source[:LONGEST_READ])
    )
    return TokenizedAbstract(abstract, words, len(title), at, defined)


def relevance(question: Question, abstract: Abstract) -> Relevance:
    """Return how far the abstract is about the question, the words it rests on, and what of the question it leaves
    open.
    """
    if not question.concepts:
        return Relevance(None, (), Reason(text="The question names nothing that could be looked for."))
    if not (abstract.title.strip() or abstract.text.strip()):
        return Relevance(None, (), Reason(text="There is neither a title nor a text to read."))
    read = read_abstract(abstract)
    looked_for = [concept for concept in question.concepts if concept.stems]
    if not looked_for:
        return Relevance(None, (), Reason(text=without_words(question)), unmatched=True)
    met = tuple(_met(concept, read, _also_written(concept, read)) for concept in looked_for)
    weight = sum(each.concept.weight for each in met)
    mean = math.exp(sum(each.concept.weight * math.log(max(MISSING, each.share)) for each in met) / weight)
    return Relevance(_rescaled(mean), met, _reason(met))


def without_words(question: Question) -> str:
    """Say which concepts have no word that could be looked for in an English abstract; empty where all have."""
    named = ", ".join(f"{each.name} ({each.part})" for each in question.concepts if not each.stems)
    return f"Not matched: {named}, which holds no word that could be looked for." if named else ""


def _rescaled(mean: float) -> float:
    """Rescale ``MISSING`` .. 1 to 0 .. 1, so that an abstract without any concept scores 0."""
    return round(min(1.0, max(0.0, (mean - MISSING) / (1 - MISSING))), 4)


def _reason(met: tuple[ConceptMatch, ...]) -> Reason:
    def names(chosen: list[ConceptMatch]) -> str:
        return ", ".join(f"{each.concept.name} ({each.concept.part})" for each in chosen)

    whole = [each for each in met if each.share >= ONCE * SCATTERED]
    partly = [each for each in met if MISSING < each.share < ONCE * SCATTERED]
    nowhere = [each for each in met if each.share <= MISSING]
    parts = [
        f"{says}: {names(chosen)}"
        for says, chosen in (("Met", whole), ("in part", partly), ("not met", nowhere))
        if chosen
    ]
    text = "; ".join(parts) + "."
    words = tuple(word for each in met for word in each.words)
    return Reason(text=text[0].upper() + text[1:], words=words)


def _also_written(concept: Concept, read: TokenizedAbstract) -> tuple[Phrase, ...]:
    """Return other phrases for a concept by the abbreviations that the abstract itself defines or spells out."""
    own = {concept.stems, *(phrase.stems for phrase in concept.others)}
    found: list[Phrase] = []
    for short, long in read.defined:
        if short.stems in own:
            found.append(long)
        elif any(stems and long.stems[-len(stems) :] == stems for stems in own):
            found.append(short)
    if not found and is_abbreviation(concept.name):
        for words in (read.words[: read.titled], read.words[read.titled :]):
            place = spelt_by_initials(concept.name, [word.text for word in words])
            if place is not None:
                spelt = words[place[0] : place[1]]
                found.append(Phrase(" ".join(word.text for word in spelt), tuple(word.stem for word in spelt)))
    return tuple(found)


def _met(concept: Concept, read: TokenizedAbstract, written: tuple[Phrase, ...]) -> ConceptMatch:
    best = _as_named(concept, read)
    for phrase in (*concept.others, *written):
        if best.share >= 1.0:
            break
        found = _phrase(phrase.stems, read)
        if found:
            other = ConceptMatch(concept, _often(found, read), _shown(found, len(phrase.stems), read))
            best = max(best, other, key=lambda each: each.share)
    return best


def _as_named(concept: Concept, read: TokenizedAbstract) -> ConceptMatch:
    """Return the concept in the question's own words: together, scattered, or in part."""
    together = _phrase(concept.stems, read)
    if together:
        return ConceptMatch(concept, _often(together, read), _shown(together, len(concept.stems), read))
    places = [read.at.get(root, []) for root in concept.stems]
    total = sum(concept.rarities)
    share = 0.0
    for root, weight, found in zip(concept.stems, concept.rarities, places, strict=True):
        if found:
            share += weight / total
        elif read.holds_kin(root):
            share += KIN * weight / total
    if share == 0.0:
        return ConceptMatch(concept, 0.0, ())
    if len(concept.stems) > 1 and not _near(places):
        share *= SCATTERED
    first = [found[0] for found in places if found]
    words = tuple(_words(index, index, read) for index in first[:_SHOWN])
    twice = all(_often(found, read) == 1.0 for found in places if found)
    return ConceptMatch(concept, share * (1.0 if twice else ONCE), words)


def _near(places: list[list[int]]) -> bool:
    """Return whether all words of a concept stand within a few words of each other somewhere."""
    if not all(places):
        return False
    return any(
        all(any(abs(other - start) <= _NEAR for other in found) for found in places[1:]) for start in places[0][:20]
    )


def _phrase(stems: tuple[str, ...], read: TokenizedAbstract) -> list[int]:
    """Return where the phrase begins, its words one after another within the title or within the text."""
    if not stems or any(root not in read.at for root in stems):
        return []
    words, length = read.words, len(stems)
    return [
        start
        for start in read.at[stems[0]]
        if start + length <= len(words)
        and all(words[start + i].stem == stems[i] for i in range(1, length))
        and read.in_title(start) == read.in_title(start + length - 1)
    ]


def _often(found: list[int], read: TokenizedAbstract) -> float:
    return 1.0 if len(found) > 1 or read.in_title(found[0]) else ONCE


def _shown(found: list[int], length: int, read: TokenizedAbstract) -> tuple[Words, ...]:
    return tuple(_words(start, start + length - 1, read) for start in found[:_SHOWN])


def _words(first: int, last: int, read: TokenizedAbstract) -> Words:
    start, end, title = read.words[first].start, read.words[last].end, read.in_title(first)
    source = read.abstract.title if title else read.abstract.text
    return Words(start=start, end=end, text=source[start:end], place="title" if title else "text")

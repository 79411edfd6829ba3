"""Where the claims that a model lists stand in the answer, and what of the answer no claim covers.

Nothing that a model listed is dropped: words that the answer doesn't have fall back to the sentence
that the row names, or to the one most like them. Nothing that the answer asserts is passed over: a
sentence in which no claim stands becomes one, and so do words of a sentence that none of its claims
says.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

from masis.audit.languages import is_function_word, is_negation
from masis.audit.revision import content_keys
from masis.audit.text.assertions import (
    citations_by_sentence,
    claim_within,
    is_assertion,
    plain_claim,
)
from masis.audit.text.comparison import sentence_form
from masis.audit.text.quotes import QuotePosition, locate_quote
from masis.llm.roles.replies import JudgedClaim, ListedClaim
from masis.llm.roles.verdicts import number_of
from masis.schema.audit import CitationAudit, Claim, Sentence

ALIKE_FROM = 0.5
"""The share of a row's content words that a sentence must have, so that the row is taken to speak
of it.
"""
STRETCH_LEAST = 3
"""Words that an uncovered stretch must have to be judged by itself; a shorter one is judged with
its sentence.
"""

_LEAD = re.compile(r"\W*\d{0,3}\W*")
"""What opens a list item and says nothing."""
_WORD = re.compile(r"\d+(?:[.,]\d+)*|[^\W\d_]+(?:['’][^\W\d_]+)*")
_WIDE = re.compile(r"[\u2e80-\u9fff\uac00-\ud7af\uf900-\ufaff]")
_WIDE_LEAST = 4
"""Characters that an uncovered stretch must have in scripts that set no blanks, about two words."""
_STEM = 5
"""Letters by which words are compared, so that ``opened`` and ``opening`` are one."""
_NO_NEGATION = re.compile(r"\b(?:sin embargo|no obstante)\b")
"""Spanish for "however": a negation by its words alone."""
_EDGES = " \t\n,;:.!?()[]–—-，、；：。"


def place_claims(found: Sequence[ListedClaim], answer: str, audit: CitationAudit) -> list[Claim]:
    """Return a claim for each row of a model's list, in the order of the list.

    A row whose words the answer has gives these words; one whose words it doesn't have gives the
    whole sentence, with the row's own words as its statement; one that fits no sentence gives a
    claim without a place.
    """
    places = _Places(answer, audit)
    return [places.claim(row) for row in found]


def in_order(claims: Iterable[Claim]) -> tuple[Claim, ...]:
    """Return the claims as they stand in the answer, each once; those without a place come last."""

    def place(claim: Claim) -> tuple[bool, int, int]:
        return claim.start is None, claim.start or 0, claim.end or 0

    return tuple(sorted(dict.fromkeys(claims), key=place))


def passed_over(claims: Iterable[Claim], audit: CitationAudit) -> list[Claim]:
    """Return what the answer asserts and none of these claims says.

    A sentence that asserts something and in which no claim stands is returned whole. Of a sentence
    in which some stand, the words are returned that lie outside of them and that none of them has
    in its statement either. Words that assert nothing by themselves (function words, a single
    article between two claims) are no gap.
    """
    inside, by_sentence = citations_by_sentence(audit), _by_sentence(claims, audit.sentences)
    said_by: dict[tuple[Claim, ...], _ClaimWords] = {}  # a claim over many sentences is read once
    gaps = []
    for number, sentence in enumerate(audit.sentences):
        if not is_assertion(sentence):
            continue
        whole = claim_within(number, sentence.text, sentence.start, inside[number])
        within = tuple(by_sentence[number])
        if not within:
            gaps.append(whole)
            continue
        if within not in said_by:
            said_by[within] = _claim_words(within)
        statement = plain_claim(whole)
        for start, end in _uncovered_stretches(whole, within, said_by[within]):
            text = sentence.text[start:end]
            if len(_WORD.findall(text)) < STRETCH_LEAST and not _WIDE.search(text):
                gaps.append(whole)
                # a word or two say nothing alone: the sentence is judged whole, which covers all
                # gaps
                break
            gaps.append(
                claim_within(number, text, sentence.start + start, inside[number], statement)
            )
    return gaps


def _by_sentence(
    claims: Iterable[Claim], sentences: Sequence[Sentence]
) -> Mapping[int, list[Claim]]:
    """Return the claims that stand in each sentence or reach into it, by the sentence's number."""
    found: dict[int, list[Claim]] = defaultdict(list)
    for claim in claims:
        if claim.start is not None and claim.end is not None:
            for number in _overlapped_sentences(sentences, claim.start, claim.end):
                found[number].append(claim)
    return found


def _overlapped_sentences(sentences: Sequence[Sentence], start: int, end: int) -> range:
    """Return the numbers of the sentences that a stretch of the answer overlaps; they stand in
    order.
    """
    first = bisect_right(sentences, start, key=lambda each: each.end)
    return range(first, bisect_left(sentences, end, lo=first, key=lambda each: each.start))


class _Places:
    """Finds the place of listed claims in one answer."""

    def __init__(self, answer: str, audit: CitationAudit) -> None:
        self._answer, self._audit = answer, audit
        self._inside = citations_by_sentence(audit)
        self._unmarked = _blank_markers(answer, audit)
        self._markers = [(each.marker_start, each.marker_end) for each in audit.citations]
        self._keys: Mapping[int, frozenset[str]] | None = None

    def claim(self, row: ListedClaim) -> Claim:
        """Return the row as a claim with its place, sentence, markers and citations."""
        number = number_of(row.sentence)
        named = (
            number - 1 if number is not None and 1 <= number <= len(self._audit.sentences) else None
        )
        statement, words = row.meaning.strip(), row.words.strip()
        if not words and not statement and named is None and isinstance(row, JudgedClaim):
            words = next(
                filter(None, (passage.claim_words.strip() for passage in row.evidence)), ""
            )
        place = self._of_words(words, named)
        if place is None:
            named = self._most_like(f"{words} {statement}") if named is None else named
            if named is None:
                return Claim(text=words or statement, statement=statement)
            place = self._of_sentence(named)
            statement = statement or words
        numbers = self._sentences_at(place)
        if not numbers:  # a heading, or a cell of a table, which the list of sentences doesn't hold
            text = self._answer[place.start : place.end]
            return Claim(text=text, statement=statement, start=place.start, end=place.end)
        place = self._widen(place, [self._audit.sentences[each] for each in numbers])
        text = self._answer[place.start : place.end]
        alone = "" if sentence_form(statement) == sentence_form(text) else statement
        cited = [citation for each in numbers for citation in self._inside[each]]
        return claim_within(numbers[0], text, place.start, cited, alone)

    def _of_words(self, words: str, named: int | None) -> QuotePosition | None:
        """Return where the words stand: in the sentence that was named, else anywhere; the sentence
        without words.
        """
        if not words:
            return None if named is None else self._of_sentence(named)
        if named is not None:
            sentence = self._audit.sentences[named]
            shifted = [
                (start - sentence.start, end - sentence.start)
                for start, end in self._markers
                if start >= sentence.start
            ]
            if place := locate_quote(words, self._answer[sentence.start : sentence.end], shifted):
                return QuotePosition(sentence.start + place.start, sentence.start + place.end)
        return locate_quote(words, self._answer, self._markers)

    def _of_sentence(self, number: int) -> QuotePosition:
        sentence = self._audit.sentences[number]
        return QuotePosition(sentence.start, sentence.end)

    def _most_like(self, words: str) -> int | None:
        """Return the sentence that has most of these words, where one has enough of them."""
        wanted = frozenset(content_keys(words))
        if not wanted:
            return None
        if self._keys is None:
            sentences = enumerate(self._audit.sentences)
            self._keys = {number: frozenset(content_keys(each.text)) for number, each in sentences}
        best = max(self._keys, key=lambda number: len(wanted & self._keys[number]), default=None)  # type: ignore[index]
        if best is None or len(wanted & self._keys[best]) < ALIKE_FROM * len(wanted):
            return None
        return best

    def _sentences_at(self, place: QuotePosition) -> list[int]:
        return list(_overlapped_sentences(self._audit.sentences, place.start, place.end))

    def _widen(self, place: QuotePosition, sentences: Sequence[Sentence]) -> QuotePosition:
        """Return the whole sentence where all of it is quoted but markers, stops and the number of
        a list item.
        """
        start, end = sentences[0].start, sentences[-1].end
        before, behind = self._unmarked[start : place.start], self._unmarked[place.end : end]
        whole = _LEAD.fullmatch(before) is not None and not any(map(str.isalnum, behind))
        return QuotePosition(start, end) if whole else place


def _blank_markers(answer: str, audit: CitationAudit) -> str:
    """Return the answer with blanks for its markers."""
    parts, at = [], 0
    for start, end in sorted({(each.marker_start, each.marker_end) for each in audit.citations}):
        parts.append(answer[at:start])
        parts.append(" " * (end - max(start, at)))
        at = max(at, end)
    return "".join(parts) + answer[at:]


class _ClaimWords(NamedTuple):
    """What the claims of a sentence say: their words by stem, whether one negates, and pairs of
    wide characters.
    """

    stems: frozenset[str]
    negates: bool
    pairs: frozenset[str]


def _claim_words(claims: Sequence[Claim]) -> _ClaimWords:
    texts = dict.fromkeys(text for claim in claims for text in (claim.text, claim.statement))
    words = {word for text in texts for word in _WORD.findall(text.casefold())}
    pairs = frozenset(pair for text in texts for pair in _wide_pairs(text))
    return _ClaimWords(
        frozenset(word[:_STEM] for word in words), any(map(is_negation, words)), pairs
    )


def _is_new_word(word: str, said: _ClaimWords) -> bool:
    """Return whether a word says something that no claim of its sentence says."""
    if word[:_STEM] in said.stems or _WIDE.match(word):
        return False
    if is_negation(word):
        return not said.negates
    return word[0].isdecimal() or (len(word) > 2 and not is_function_word(word))


def _uncovered_stretches(
    sentence: Claim, claims: Sequence[Claim], said: _ClaimWords
) -> Iterator[tuple[int, int]]:
    """Yield the stretches of a sentence's text that none of the claims says, from one claim to the
    next.
    """
    first, text = sentence.start or 0, sentence.text
    covered = sorted(
        [(max(0, (claim.start or 0) - first), (claim.end or 0) - first) for claim in claims]
        + list(sentence.markers)
    )
    at = 0
    for (_, before), (start, _) in pairwise([(0, 0), *covered, (len(text), len(text))]):
        at = max(at, before)
        if start <= at:
            continue
        gap = text[at:start]
        if _wide_gap(gap, said) or any(_is_new_word(word, said) for word in _words_of_gap(gap)):
            lead = len(gap) - len(gap.lstrip(_EDGES))
            yield at + lead, at + len(gap.rstrip(_EDGES))


def _words_of_gap(text: str) -> list[str]:
    return _WORD.findall(_NO_NEGATION.sub(" ", text.casefold()))


def _wide_pairs(text: str) -> list[str]:
    return [
        text[at : at + 2]
        for at in range(len(text) - 1)
        if _WIDE.match(text[at]) and _WIDE.match(text[at + 1])
    ]


def _wide_gap(gap: str, said: _ClaimWords) -> bool:
    """Return whether a gap in a script without blanks says more than its claims do."""
    if len(_WIDE.findall(gap)) < _WIDE_LEAST:
        return False
    pairs = _wide_pairs(gap)
    return sum(pair not in said.pairs for pair in pairs) > len(pairs) / 2

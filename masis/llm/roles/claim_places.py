"""Locates a model's claims in the answer, and finds the assertions that no claim covers.

Every listed claim is kept. If the answer doesn't have its words, it gets the sentence that the
model named, or the most similar one. Every assertion of the answer is covered, because a sentence
without a claim becomes a claim, and so do words of a sentence that none of its claims contains.
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

MIN_SIMILARITY = 0.5
"""The share of a claim's content words that a sentence needs to be taken as its position."""
MIN_STRETCH_WORDS = 3
"""Minimum number of words of an uncovered stretch that is judged alone; a shorter one is judged
with its sentence.
"""

_LEAD = re.compile(r"\W*\d{0,3}\W*")
"""The opening of a list item: "- ", "3. "."""
# Figures with separators ("1,500", "3.5") and words with apostrophes ("don't").
_WORD = re.compile(r"\d+(?:[.,]\d+)*|[^\W\d_]+(?:['’][^\W\d_]+)*")
# Han, kana and Hangul.
_WIDE = re.compile(r"[\u2e80-\u9fff\uac00-\ud7af\uf900-\ufaff]")
_MIN_WIDE_CHARACTERS = 4
"""Minimum number of characters of an uncovered stretch in scripts without spaces, about two words.
"""
_STEM_LETTERS = 5
"""The number of letters by which words are compared, so that ``opened`` equals ``opening``."""
_NO_NEGATION = re.compile(r"\b(?:sin embargo|no obstante)\b")
"""Spanish for "however", which contains a negation only literally."""
_EDGES = " \t\n,;:.!?()[]–—-，、；：。"


def place_claims(rows: Sequence[ListedClaim], answer: str, audit: CitationAudit) -> list[Claim]:
    """Return a claim for each row of a model's list, in the order of the list.

    If the answer has the row's words, the claim is those words. Otherwise it's the whole sentence,
    with the row's words as its statement, or a claim without a position if no sentence fits.
    """
    locator = _ClaimLocator(answer, audit)
    return [locator.claim(row) for row in rows]


def in_order(claims: Iterable[Claim]) -> tuple[Claim, ...]:
    """Return the claims without duplicates in the order of the answer; unlocated ones are last."""

    def position(claim: Claim) -> tuple[bool, int, int]:
        return claim.start is None, claim.start or 0, claim.end or 0

    return tuple(sorted(dict.fromkeys(claims), key=position))


def uncovered_assertions(claims: Iterable[Claim], audit: CitationAudit) -> list[Claim]:
    """Return the assertions of the answer that none of these claims covers.

    An asserting sentence without a claim is returned whole. Of a sentence with claims, the words
    are returned that are outside of them and in none of their statements. Words that assert nothing
    alone, such as an article between two claims, are ignored.
    """
    citations, by_sentence = citations_by_sentence(audit), _by_sentence(claims, audit.sentences)
    # Cached, so that a claim that spans many sentences is read only once.
    words_of: dict[tuple[Claim, ...], _ClaimWords] = {}
    gaps = []
    for number, sentence in enumerate(audit.sentences):
        if not is_assertion(sentence):
            continue
        sentence_claim = claim_within(number, sentence.text, sentence.start, citations[number])
        sentence_claims = tuple(by_sentence[number])
        if not sentence_claims:
            gaps.append(sentence_claim)
            continue
        if sentence_claims not in words_of:
            words_of[sentence_claims] = _claim_words(sentence_claims)
        statement = plain_claim(sentence_claim)
        for start, end in _uncovered_stretches(
            sentence_claim, sentence_claims, words_of[sentence_claims]
        ):
            text = sentence.text[start:end]
            if len(_WORD.findall(text)) < MIN_STRETCH_WORDS and not _WIDE.search(text):
                # One or two words mean nothing alone, so the whole sentence is judged.
                gaps.append(sentence_claim)
                break
            gaps.append(
                claim_within(number, text, sentence.start + start, citations[number], statement)
            )
    return gaps


def _by_sentence(
    claims: Iterable[Claim], sentences: Sequence[Sentence]
) -> Mapping[int, list[Claim]]:
    """Return the claims that overlap each sentence, by the sentence's number."""
    by_number: dict[int, list[Claim]] = defaultdict(list)
    for claim in claims:
        if claim.start is not None and claim.end is not None:
            for number in _overlapped_sentences(sentences, claim.start, claim.end):
                by_number[number].append(claim)
    return by_number


def _overlapped_sentences(sentences: Sequence[Sentence], start: int, end: int) -> range:
    """Return the numbers of the sentences that a stretch of the answer overlaps."""
    # Sentences are sorted and don't overlap, so two binary searches find them. A scan of all
    # sentences for each claim would take quadratic time.
    first = bisect_right(sentences, start, key=lambda sentence: sentence.end)
    return range(first, bisect_left(sentences, end, lo=first, key=lambda sentence: sentence.start))


class _ClaimLocator:
    """Locates listed claims in one answer."""

    def __init__(self, answer: str, audit: CitationAudit) -> None:
        self._answer, self._audit = answer, audit
        self._citations = citations_by_sentence(audit)
        self._unmarked = _blank_markers(answer, audit)
        self._markers = [
            (citation.marker_start, citation.marker_end) for citation in audit.citations
        ]
        self._keys: Mapping[int, frozenset[str]] | None = None

    def claim(self, row: ListedClaim) -> Claim:
        """Return the row as a claim with its position, sentence, markers and citations."""
        number = number_of(row.sentence)
        sentence_index = (
            number - 1 if number is not None and 1 <= number <= len(self._audit.sentences) else None
        )
        statement, words = row.meaning.strip(), row.words.strip()
        # A model may omit all words of a claim but quote the words that the evidence
        # denies.
        if not words and not statement and sentence_index is None and isinstance(row, JudgedClaim):
            words = next(
                filter(None, (passage.claim_words.strip() for passage in row.evidence)), ""
            )
        span = self._locate_words(words, sentence_index)
        if span is None:
            sentence_index = (
                self._most_similar_sentence(f"{words} {statement}")
                if sentence_index is None
                else sentence_index
            )
            if sentence_index is None:
                return Claim(text=words or statement, statement=statement)
            span = self._sentence_span(sentence_index)
            statement = statement or words
        numbers = _overlapped_sentences(self._audit.sentences, span.start, span.end)
        if not numbers:  # a heading or a cell of a table, which isn't in the list of sentences
            text = self._answer[span.start : span.end]
            return Claim(text=text, statement=statement, start=span.start, end=span.end)
        span = self._widen(span, [self._audit.sentences[number] for number in numbers])
        text = self._answer[span.start : span.end]
        own_statement = "" if sentence_form(statement) == sentence_form(text) else statement
        cited = [citation for number in numbers for citation in self._citations[number]]
        return claim_within(numbers[0], text, span.start, cited, own_statement)

    def _locate_words(self, words: str, sentence_index: int | None) -> QuotePosition | None:
        """Return the position of the words in the named sentence, else anywhere; without words, the
        named sentence.
        """
        if not words:
            return None if sentence_index is None else self._sentence_span(sentence_index)
        if sentence_index is not None:
            sentence = self._audit.sentences[sentence_index]
            shifted = [
                (start - sentence.start, end - sentence.start)
                for start, end in self._markers
                if start >= sentence.start
            ]
            if span := locate_quote(words, self._answer[sentence.start : sentence.end], shifted):
                return QuotePosition(sentence.start + span.start, sentence.start + span.end)
        return locate_quote(words, self._answer, self._markers)

    def _sentence_span(self, number: int) -> QuotePosition:
        sentence = self._audit.sentences[number]
        return QuotePosition(sentence.start, sentence.end)

    def _most_similar_sentence(self, words: str) -> int | None:
        """Return the number of the most similar sentence, or None if none is similar enough."""
        claim_keys = frozenset(content_keys(words))
        if not claim_keys:
            return None
        if self._keys is None:
            sentences = enumerate(self._audit.sentences)
            self._keys = {
                number: frozenset(content_keys(sentence.text)) for number, sentence in sentences
            }
        shared = {number: len(claim_keys & keys) for number, keys in self._keys.items()}
        best = max(shared, key=shared.__getitem__, default=None)
        return None if best is None or shared[best] < MIN_SIMILARITY * len(claim_keys) else best

    def _widen(self, span: QuotePosition, sentences: Sequence[Sentence]) -> QuotePosition:
        """Return the whole sentence if the span lacks only markers, punctuation and the number of
        a list item.
        """
        start, end = sentences[0].start, sentences[-1].end
        before, after = self._unmarked[start : span.start], self._unmarked[span.end : end]
        covers_sentence = _LEAD.fullmatch(before) is not None and not any(map(str.isalnum, after))
        return QuotePosition(start, end) if covers_sentence else span


def _blank_markers(answer: str, audit: CitationAudit) -> str:
    """Return the answer with spaces for its markers."""
    parts, copied = [], 0
    markers = {(citation.marker_start, citation.marker_end) for citation in audit.citations}
    for start, end in sorted(markers):
        parts.append(answer[copied:start])
        # Spaces keep the offsets. Markers may overlap, since a range gives several citations.
        parts.append(" " * (end - max(start, copied)))
        copied = max(copied, end)
    return "".join(parts) + answer[copied:]


class _ClaimWords(NamedTuple):
    """The words of a sentence's claims by stem, whether one negates, and pairs of characters in
    scripts without spaces.
    """

    stems: frozenset[str]
    negates: bool
    pairs: frozenset[str]


def _claim_words(claims: Sequence[Claim]) -> _ClaimWords:
    texts = dict.fromkeys(text for claim in claims for text in (claim.text, claim.statement))
    words = {word for text in texts for word in _WORD.findall(text.casefold())}
    pairs = frozenset(pair for text in texts for pair in _wide_pairs(text))
    return _ClaimWords(
        frozenset(word[:_STEM_LETTERS] for word in words), any(map(is_negation, words)), pairs
    )


def _is_new_word(word: str, claim_words: _ClaimWords) -> bool:
    """Return whether a word adds something to the claims of its sentence."""
    if word[:_STEM_LETTERS] in claim_words.stems or _WIDE.match(word):
        return False
    # A negation left out of all claims turns an assertion around, however short it is.
    if is_negation(word):
        return not claim_words.negates
    return word[0].isdecimal() or (len(word) > 2 and not is_function_word(word))


def _uncovered_stretches(
    sentence: Claim, claims: Sequence[Claim], claim_words: _ClaimWords
) -> Iterator[tuple[int, int]]:
    """Yield the stretches of a sentence's text that none of its claims contains."""
    first, text = sentence.start or 0, sentence.text
    covered = sorted(
        [(max(0, (claim.start or 0) - first), (claim.end or 0) - first) for claim in claims]
        + list(sentence.markers)
    )
    position = 0
    for (_, before), (start, _) in pairwise([(0, 0), *covered, (len(text), len(text))]):
        position = max(position, before)
        if start <= position:
            continue
        gap = text[position:start]
        words = _WORD.findall(_NO_NEGATION.sub(" ", gap.casefold()))
        if _is_new_wide_text(gap, claim_words) or any(
            _is_new_word(word, claim_words) for word in words
        ):
            leading = len(gap) - len(gap.lstrip(_EDGES))
            yield position + leading, position + len(gap.rstrip(_EDGES))


def _wide_pairs(text: str) -> list[str]:
    return [
        text[index : index + 2]
        for index in range(len(text) - 1)
        if _WIDE.match(text[index]) and _WIDE.match(text[index + 1])
    ]


def _is_new_wide_text(gap: str, claim_words: _ClaimWords) -> bool:
    """Return whether a gap in a script without spaces says more than the claims do."""
    if len(_WIDE.findall(gap)) < _MIN_WIDE_CHARACTERS:
        return False
    pairs = _wide_pairs(gap)
    # Without spaces there are no words to compare. Neighboring characters serve as words, and a
    # paraphrase still shares about half of them.
    return sum(pair not in claim_words.pairs for pair in pairs) > len(pairs) / 2

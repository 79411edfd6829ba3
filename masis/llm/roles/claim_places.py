"""Finds the places of a model's claims in the answer, and the assertions that no claim covers.

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

ALIKE_FROM = 0.5
"""The share of a claim's content words that a sentence needs to count as its place."""
STRETCH_LEAST = 3
"""The fewest words of an uncovered stretch that is judged alone; a shorter one is judged with its
sentence.
"""

_LEAD = re.compile(r"\W*\d{0,3}\W*")
"""The opening of a list item: "- ", "3. "."""
# Figures with separators ("1,500", "3.5") and words with apostrophes ("don't").
_WORD = re.compile(r"\d+(?:[.,]\d+)*|[^\W\d_]+(?:['’][^\W\d_]+)*")
# Han, kana and Hangul.
_WIDE = re.compile(r"[\u2e80-\u9fff\uac00-\ud7af\uf900-\ufaff]")
_WIDE_LEAST = 4
"""The fewest characters of an uncovered stretch in scripts without blanks, about two words."""
_STEM = 5
"""The number of letters by which words are compared, so that ``opened`` equals ``opening``."""
_NO_NEGATION = re.compile(r"\b(?:sin embargo|no obstante)\b")
"""Spanish for "however", which contains a negation only literally."""
_EDGES = " \t\n,;:.!?()[]–—-，、；：。"


def place_claims(rows: Sequence[ListedClaim], answer: str, audit: CitationAudit) -> list[Claim]:
    """Return a claim for each row of a model's list, in the order of the list.

    If the answer has the row's words, the claim is those words. Otherwise it's the whole sentence,
    with the row's words as its statement, or a claim without a place if no sentence fits.
    """
    places = _Places(answer, audit)
    return [places.claim(row) for row in rows]


def in_order(claims: Iterable[Claim]) -> tuple[Claim, ...]:
    """Return the claims without duplicates in the order of the answer; those without place last."""

    def place(claim: Claim) -> tuple[bool, int, int]:
        return claim.start is None, claim.start or 0, claim.end or 0

    return tuple(sorted(dict.fromkeys(claims), key=place))


def passed_over(claims: Iterable[Claim], audit: CitationAudit) -> list[Claim]:
    """Return the assertions of the answer that none of these claims covers.

    An asserting sentence without a claim is returned whole. Of a sentence with claims, the words
    are returned that are outside of them and in none of their statements. Words that assert nothing
    alone, such as an article between two claims, are ignored.
    """
    inside, by_sentence = citations_by_sentence(audit), _by_sentence(claims, audit.sentences)
    # Cached, so that a claim that spans many sentences is read only once.
    said_by: dict[tuple[Claim, ...], _ClaimWords] = {}
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
                # A word or two mean nothing alone, so the whole sentence is judged, with all gaps.
                gaps.append(whole)
                break
            gaps.append(
                claim_within(number, text, sentence.start + start, inside[number], statement)
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


class _Places:
    """Finds the places of listed claims in one answer."""

    def __init__(self, answer: str, audit: CitationAudit) -> None:
        self._answer, self._audit = answer, audit
        self._inside = citations_by_sentence(audit)
        self._unmarked = _blank_markers(answer, audit)
        self._markers = [
            (citation.marker_start, citation.marker_end) for citation in audit.citations
        ]
        self._keys: Mapping[int, frozenset[str]] | None = None

    def claim(self, row: ListedClaim) -> Claim:
        """Return the row as a claim with its place, sentence, markers and citations."""
        number = number_of(row.sentence)
        named = (
            number - 1 if number is not None and 1 <= number <= len(self._audit.sentences) else None
        )
        statement, words = row.meaning.strip(), row.words.strip()
        # A model may leave out all of a claim's own words but quote the ones that the evidence
        # denies.
        if not words and not statement and named is None and isinstance(row, JudgedClaim):
            words = next(
                filter(None, (passage.claim_words.strip() for passage in row.evidence)), ""
            )
        span = self._of_words(words, named)
        if span is None:
            named = self._most_like(f"{words} {statement}") if named is None else named
            if named is None:
                return Claim(text=words or statement, statement=statement)
            span = self._of_sentence(named)
            statement = statement or words
        numbers = _overlapped_sentences(self._audit.sentences, span.start, span.end)
        if not numbers:  # a heading or a cell of a table, which isn't in the list of sentences
            text = self._answer[span.start : span.end]
            return Claim(text=text, statement=statement, start=span.start, end=span.end)
        span = self._widen(span, [self._audit.sentences[number] for number in numbers])
        text = self._answer[span.start : span.end]
        alone = "" if sentence_form(statement) == sentence_form(text) else statement
        cited = [citation for number in numbers for citation in self._inside[number]]
        return claim_within(numbers[0], text, span.start, cited, alone)

    def _of_words(self, words: str, named: int | None) -> QuotePosition | None:
        """Return the place of the words in the named sentence, else anywhere; without words, the
        named sentence.
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
            if span := locate_quote(words, self._answer[sentence.start : sentence.end], shifted):
                return QuotePosition(sentence.start + span.start, sentence.start + span.end)
        return locate_quote(words, self._answer, self._markers)

    def _of_sentence(self, number: int) -> QuotePosition:
        sentence = self._audit.sentences[number]
        return QuotePosition(sentence.start, sentence.end)

    def _most_like(self, words: str) -> int | None:
        """Return the number of the most similar sentence, or None if none is similar enough."""
        wanted = frozenset(content_keys(words))
        if not wanted:
            return None
        if self._keys is None:
            sentences = enumerate(self._audit.sentences)
            self._keys = {
                number: frozenset(content_keys(sentence.text)) for number, sentence in sentences
            }
        shared = {number: len(wanted & keys) for number, keys in self._keys.items()}
        best = max(shared, key=shared.__getitem__, default=None)
        return None if best is None or shared[best] < ALIKE_FROM * len(wanted) else best

    def _widen(self, span: QuotePosition, sentences: Sequence[Sentence]) -> QuotePosition:
        """Return the whole sentence if the place lacks only markers, punctuation and the number of
        a list item.
        """
        start, end = sentences[0].start, sentences[-1].end
        before, behind = self._unmarked[start : span.start], self._unmarked[span.end : end]
        whole = _LEAD.fullmatch(before) is not None and not any(map(str.isalnum, behind))
        return QuotePosition(start, end) if whole else span


def _blank_markers(answer: str, audit: CitationAudit) -> str:
    """Return the answer with blanks for its markers."""
    parts, copied = [], 0
    markers = {(citation.marker_start, citation.marker_end) for citation in audit.citations}
    for start, end in sorted(markers):
        parts.append(answer[copied:start])
        # Blanks keep the offsets. Markers may overlap, since a range gives several citations.
        parts.append(" " * (end - max(start, copied)))
        copied = max(copied, end)
    return "".join(parts) + answer[copied:]


class _ClaimWords(NamedTuple):
    """The words of a sentence's claims by stem, whether one negates, and pairs of characters in
    scripts without blanks.
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
    """Return whether a word adds something to the claims of its sentence."""
    if word[:_STEM] in said.stems or _WIDE.match(word):
        return False
    # A negation left out of all claims turns an assertion around, however short it is.
    if is_negation(word):
        return not said.negates
    return word[0].isdecimal() or (len(word) > 2 and not is_function_word(word))


def _uncovered_stretches(
    sentence: Claim, claims: Sequence[Claim], said: _ClaimWords
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
        if _wide_gap(gap, said) or any(_is_new_word(word, said) for word in words):
            lead = len(gap) - len(gap.lstrip(_EDGES))
            yield position + lead, position + len(gap.rstrip(_EDGES))


def _wide_pairs(text: str) -> list[str]:
    return [
        text[index : index + 2]
        for index in range(len(text) - 1)
        if _WIDE.match(text[index]) and _WIDE.match(text[index + 1])
    ]


def _wide_gap(gap: str, said: _ClaimWords) -> bool:
    """Return whether a gap in a script without blanks says more than the claims do."""
    if len(_WIDE.findall(gap)) < _WIDE_LEAST:
        return False
    pairs = _wide_pairs(gap)
    # Without blanks there are no words to compare. Neighboring characters serve as words, and a
    # paraphrase still shares about half of them.
    return sum(pair not in said.pairs for pair in pairs) > len(pairs) / 2

"""An index of a case's evidence that checks claims and returns verdicts with supporting passages.

    index = EvidenceIndex([("chunk_1", "The firm grew by 12% in 2021.")])
    index.assess("The firm grew by 21% in 2021.").verdict      # "contradicted"

docs/models.md explains the checks. The same input always gives the same verdict, and no network is
used. Scores of the encoder differ in the third digit between kinds of CPU.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Literal, TypeVar

from masis.audit.sentences import split_sentences
from masis.offline.checks.copies import CopyIndex, CopyMatch, without_section_heading
from masis.offline.checks.figures import FactTable, Quotable, check_figures, numerals_in
from masis.offline.checks.opposites import find_opposite
from masis.offline.inference.encoder import SentenceEncoder, load_encoder
from masis.offline.matching.overlap import NAMED, Match, closeness, match_sentence, restrict
from masis.offline.matching.passages import (
    LONGEST_PASSAGE,
    EvidencePassage,
    ParsedSentence,
    passages,
)
from masis.offline.parsing.facts import Fact, extract
from masis.offline.text.tokens import Token, loose_keys, tokens
from masis.schema.audit import AbsentFigure, Contradiction, Quote

# Matches the end of a sentence inside a text: ". " or a line break, but not a final "." or "3.5".
_INNER_STOP = re.compile(r"[.!?][\"”’)]?\s|\n")
# Matches a sentence that refuses to answer: "I don't know", "I'm sorry", "I cannot help".
_REFUSAL = re.compile(
    r"\b(?:i (?:don['’]?t|do not) know|idk|no idea|as an ai"
    r"|i (?:couldn['’]?t|could not|can(?:no|['’])t) (?:find|answer|provide|help)"
    r"|i['’]?m sorry|i am sorry)",
    re.IGNORECASE,
)
# Matches a sentence about missing evidence: "The text does not mention a date". "The text mentions
# no date" doesn't match.
_MISSING_EVIDENCE = re.compile(
    r"\b(?:(?:insufficient|not enough) (?:evidence|information|context)"
    r"|cannot be (?:determined|answered)"
    r"|(?:context|source|evidence|passage|document|text|reference|information|excerpt"
    r"|article)s?\b[^.]{0,120}"
    r"\b(?:does|do|did|is|are|was|were) (?:not|n['’]t) (?:explicitly |directly |clearly )?"
    r"(?:provid|contain|mention|specif|say|state|address|give|given|includ|availab|found))",
    re.IGNORECASE,
)
# Matches the beginning of a question: "Is it ...", "And why ...". A sentence that only ends in a
# question mark may end in the title of a song or book.
_QUESTION_START = re.compile(
    r"\W*(?:(?:and|but|so|or)"
    r" )?(?:who|whom|whose|what|when|where|which|why|how|is|are|was|were|do|does|did|can|could|"
    r"will|would|should|shall|may|might|has|have|had|am|any|isn['’]t|aren['’]t|don['’]t|doesn['’]t"
    r"|didn['’]t)\b",
    re.IGNORECASE,
)
_COPY_SUPPORT = 0.97
"""Minimum support of a claim that is a copy of the evidence."""
_FLAGGED_SUPPORT = 0.2
"""Maximum support of a flagged claim. It makes the issue serious (DRAFT-CRITIQUE-SEVERITY) even if
the rest of the claim is close to the evidence.
"""
OPPOSITE_STRENGTH = 0.9
"""The strength of an opposite: below that of a figure, because words have more than one meaning."""
_BACK_REFERENCES = frozenset(
    "it its he she they his her their them this these that those such both the there here one"
    " another".split()
)
"""First words of a sentence whose subject is in the sentences before it."""
_SUBJECT_WORDS = 3
"""The number of words at the beginning of a sentence that may name its subject."""
_LOOK_BACK = 3
"""The number of passages before a copy that are searched for the name of its subject."""
Part = tuple[int, Match]
"""A sentence of a claim, or a piece of one: its offset in the claim, and its match."""
ALWAYS_JUDGED = 1000
"""The longest claim, in characters, that is checked against evidence of any length."""
MOST_COMPARED = 12_000_000
"""The limit for longer claims: their characters, times the sentences of the evidence plus its words
(at most `_WORDS_COMPARED`). It equals 5 s of processor time (benchmarks/slow_strings.py). A claim
beyond it is left unverifiable, because readers would take a verdict on a part of it for one on
the whole.
"""
_WORDS_COMPARED = 350
"""The approximate number of evidence words that are compared with those of a sentence."""
TOO_LONG = "long"
"""The code for a claim that was too long to check."""

Verdict = Literal["supported", "contradicted", "unsupported", "unverifiable"]


@dataclass(frozen=True, slots=True)
class ClaimAssessment:
    """The result of checking one claim against the evidence.

    Attributes:
        support: How close the evidence is to the claim, from 0 to 1. It orders the queue and isn't
            a probability. None if there is no evidence to check against.
        verdict: The verdict.
        confidence: How sure the verdict is, from 0 to 1.
        signals: Flags with the value that the evidence has instead.
        absent: Flags for quotations that aren't in the evidence. Their `evidence_id` and
            `evidence_text` are empty.
        figures: Figures that aren't in the evidence. They don't flag the claim, because they may
            have been calculated.
        vetoes: Codes for the reasons why a copy wasn't confirmed.
        change: The words in which a near-copy differs from the evidence: those of the claim, then
            those of the evidence.
        supporting: At most three passages, the best first, each with the share of the claim's
            content that it has. If the claim is confirmed, the passages that it copies.
        uncovered: The spans of the claim that no evidence covers, or the spans of the flagged
            quotations.

    """

    support: float | None
    verdict: Verdict
    confidence: float
    signals: tuple[Contradiction, ...] = ()
    absent: tuple[Contradiction, ...] = ()
    figures: tuple[AbsentFigure, ...] = ()
    vetoes: tuple[str, ...] = ()
    change: tuple[str, str] | None = None
    supporting: tuple[Quote, ...] = ()
    uncovered: tuple[tuple[int, int], ...] = ()


_NOTHING_ASSERTED = ClaimAssessment(None, "unverifiable", 0.8)


class EvidenceIndex:
    """An index of the evidence of one case. Assessments are cached."""

    def __init__(
        self,
        evidence: Iterable[tuple[str, str]],
        encoder: SentenceEncoder | None = None,
        *,
        origins: Sequence[str] = (),
    ) -> None:
        """Index the evidence.

        Args:
            evidence: Pairs of id and text, in the order of the case; texts may be empty.
            encoder: The sentence encoder. By default the one in the package, which is loaded for
                the first claim.
            origins: The origins of the chunks (title, date ...) as text. Figures in them aren't
                flagged.

        """
        self._encoder = encoder
        self._chunks = list(evidence)
        self.passages: list[EvidencePassage] = []
        self._documents: dict[str, list[int]] = {}
        for document, (evidence_id, text) in enumerate(self._chunks):
            self._documents.setdefault(evidence_id, []).append(document)
            self.passages.extend(passages(document, evidence_id, text))
        # Postings: the indices of the passages that have each content stem, and each looser key.
        self._exact: dict[str, list[int]] = {}
        self._loose: dict[str, list[int]] = {}
        for number, passage in enumerate(self.passages):
            for root in passage.content:
                self._exact.setdefault(root, []).append(number)
        for root, passage_numbers in self._exact.items():
            for key in loose_keys(root):
                self._loose.setdefault(key, []).extend(passage_numbers)
        self._facts = FactTable(self.passages)
        self._origins = tuple(origins)
        self._sizes = Counter(passage.document for passage in self.passages)
        self._copies = CopyIndex([text for _, text in self._chunks])
        self._quotable = Quotable([text for _, text in self._chunks])
        # A capital doesn't show a name in the first word of a sentence, so that word is skipped.
        later_words = (word for passage in self.passages for word in passage.words[1:])
        self._names = frozenset(
            word.stem for word in later_words if word.weight >= NAMED and word.text[0].isupper()
        )
        self._matched_claims: dict[str, list[Part]] = {}
        self._assessments: dict[tuple[str, frozenset[int] | None, str, str], ClaimAssessment] = {}

    def assess(
        self,
        claim: str,
        only: Collection[str] | None = None,
        *,
        question: str = "",
        before: str = "",
    ) -> ClaimAssessment:
        """Check a claim against the evidence. Repeated calls are answered from a cache.

        Args:
            claim: The text of the claim, one sentence or several, without citation markers.
            only: The ids of the chunks to check against, or None for all. Unknown ids are ignored.
            question: The question of the case. Its figures aren't flagged, and a claim that names
                no subject is taken to be about it.
            before: The sentence of the answer before the claim.

        Returns:
            The verdict with support and confidence (0 to 1), flags, supporting passages and
            the spans of the claim that no evidence covers. Support is None if there is nothing
            to check, or if claim and evidence are too long to compare (`MOST_COMPARED`).

        """
        allowed = None
        if only is not None:
            documents = frozenset(
                d for name in only for d in self._documents.get(name, ()) if d in self._sizes
            )
            allowed = None if len(documents) == len(self._sizes) else documents
        key = (claim, allowed, question, before)
        if key not in self._assessments:
            self._assessments[key] = self._assess(claim, allowed, question, before)
        return self._assessments[key]

    def absent_figures(self, claim: str) -> tuple[AbsentFigure, ...]:
        """Return the figures of a claim that the evidence lacks, as ``assess`` does, but without
        the encoder, which takes most of its time.
        """
        if not self._sizes or self._too_long(claim):
            return ()
        parts = self._match_sentences(claim)
        if not parts or self._find_copies(claim, parts, None, "", "")[0]:
            return ()
        return self._find_conflicts(claim, parts, "")[1]

    def has_copy(self, claim: str) -> bool:
        """Return whether the evidence has the words of a claim and nothing speaks against them."""
        if not self._sizes or self._too_long(claim):
            return False
        parts = self._match_sentences(claim)
        if not parts:
            return False
        copied, vetoes = self._find_copies(claim, parts, None, "", "")
        return bool(copied) and not vetoes

    def _assess(
        self, claim: str, allowed: frozenset[int] | None, question: str, before: str
    ) -> ClaimAssessment:
        documents = self._sizes if allowed is None else allowed
        if not documents:
            return ClaimAssessment(None, "unverifiable", 1.0)
        if self._too_long(claim):
            return ClaimAssessment(None, "unverifiable", 0.5, vetoes=(TOO_LONG,))
        parts = self._match_sentences(claim)
        if allowed is not None:
            parts = [(offset, restrict(whole, allowed)) for offset, whole in parts]
        if not parts:
            return _NOTHING_ASSERTED
        encoder = self._encoder or load_encoder()
        weight = sum(match.total for _, match in parts)
        # The closeness of the claim is the mean over its sentences, weighted by their content.
        closeness_score = round(
            sum(match.total * closeness(match, encoder) for _, match in parts) / weight, 4
        )
        copied, vetoes = self._find_copies(claim, parts, allowed, question, before)
        if copied and not vetoes:
            spans = dict.fromkeys(span for copy in copied for span in copy.places)
            quotes = tuple(
                _quote(*self._chunks[span.document], span.start, span.end, 1.0) for span in spans
            )
            return ClaimAssessment(
                max(closeness_score, _COPY_SUPPORT), "supported", 0.95, supporting=quotes
            )
        flagged, figures = ([], ()) if copied else self._find_conflicts(claim, parts, question)
        supporting, uncovered = self._supporting(parts), _uncovered_spans(parts)
        if not flagged:
            change = (
                None if copied else next(self._copies.changes(claim, self._nearest(parts)), None)
            )
            return ClaimAssessment(
                closeness_score,
                "unverifiable",
                0.5,
                figures=figures,
                vetoes=vetoes,
                change=change.texts if change else None,
                supporting=supporting,
                uncovered=uncovered,
            )
        signals = tuple(signal for signal in flagged if signal.evidence_id)
        absent = tuple(signal for signal in flagged if not signal.evidence_id)
        return ClaimAssessment(
            support=min(closeness_score, _FLAGGED_SUPPORT),
            verdict="contradicted" if signals else "unsupported",
            confidence=round(0.5 + 0.5 * flagged[0].strength, 4),
            signals=signals,
            absent=absent,
            figures=figures,
            supporting=supporting,
            uncovered=tuple(sorted((signal.claim_start, signal.claim_end) for signal in absent)),
        )

    @cached_property
    def _numerals(self) -> set[str]:
        return set().union(
            *(numerals_in(text) for text in (*(text for _, text in self._chunks), *self._origins))
        )

    @cached_property
    def _figures_of_origins(self) -> list[Fact]:
        return [fact for origin in self._origins for fact in extract(origin)]

    def _too_long(self, claim: str) -> bool:
        if len(claim) <= ALWAYS_JUDGED:
            return False
        words = sum(len(passage.words) for passage in self.passages)
        return len(claim) * (len(self.passages) + min(_WORDS_COMPARED, words)) > MOST_COMPARED

    def _find_copies(
        self,
        claim: str,
        parts: Sequence[Part],
        allowed: frozenset[int] | None,
        question: str,
        before: str,
    ) -> tuple[tuple[CopyMatch, ...], tuple[str, ...]]:
        """Return the copies of all sentences of the claim, and the vetoes of them.

        A veto is a code for a reason not to confirm the claim. Both are empty if a sentence isn't a
        copy.
        """
        copies: list[CopyMatch] = []
        vetoes: list[str] = []
        nearest = self._nearest(parts)
        for sentence_start, sentence in _asserted_sentences(claim):
            copy = self._copies.find(sentence, allowed)
            if copy is None:
                return (), ()
            copies.append(copy)
            vetoes += [copy.veto] if copy.veto else []
            others = [
                (d, sentence_start)
                for d, sentence_start in nearest
                if not any(d == p[0] and p[1] <= sentence_start < p[2] for p in copy.places)
            ]
            if any(change.alters_meaning for change in self._copies.changes(sentence, others)):
                vetoes.append("disputed")
            if self._has_other_subject(
                sentence, copy, question, claim[:sentence_start].strip() or before
            ):
                vetoes.append("subject")
        return tuple(copies), tuple(dict.fromkeys(vetoes))

    def _nearest(self, parts: Sequence[Part]) -> list[tuple[int, int]]:
        passage_numbers = dict.fromkeys(number for _, match in parts for number in match.top)
        return [
            (self.passages[number].document, self.passages[number].start)
            for number in passage_numbers
        ]

    def _supporting(self, parts: list[Part]) -> tuple[Quote, ...]:
        best: dict[int, float] = defaultdict(float)
        for _, match in parts:
            for number in match.top[:3]:
                best[number] = max(best[number], match.coverage((number,)))
        ranked = sorted(best.items(), key=lambda item: (-item[1], item[0]))
        best_score = ranked[0][1] if ranked else 0.0
        supporting_passages = [
            (self.passages[number], round(score, 4))
            for number, score in ranked[:3]
            if score >= max(0.2, 0.5 * best_score)
        ]
        return tuple(
            _quote(*self._chunks[passage.document], passage.start, passage.end, score)
            for passage, score in supporting_passages
        )

    def _has_other_subject(
        self, sentence: str, copy: CopyMatch, question: str, before: str
    ) -> bool:
        """Return whether a copy may be about another subject than the question and the answer.

        The subject is the name at the beginning of the sentence. If the sentence refers back ("It
        is 80 meters long"), it's the last name before it in the evidence. Question and answer
        must have that name.
        """
        words = tokens(sentence)
        context = {word.stem for word in tokens(f"{question} {before}")}
        question_names = {
            word.stem for word in tokens(question) if word.text[0].isupper()
        } & self._names
        if not context or not words:
            return False
        sentence_names = self._named_tokens(words)
        if sentence_names and sentence_names[0] in words[:_SUBJECT_WORDS]:
            return bool(question_names) and sentence_names[0].stem not in context
        if words[0].text.lower() not in _BACK_REFERENCES or any(
            word.stem in context for word in sentence_names
        ):
            return False
        span = copy.places[0]
        earlier = [
            passage_
            for passage_ in self.passages
            if passage_.document == span.document and passage_.end <= span.start
        ]
        for passage in reversed(earlier[-_LOOK_BACK:]):
            if named_tokens := self._named_tokens(passage.words):
                return named_tokens[0].stem not in context
        return False

    def _named_tokens(self, words: Sequence[Token]) -> list[Token]:
        return [word for word in words if word.text[0].isupper() and word.stem in self._names]

    def _find_conflicts(
        self, claim: str, parts: Sequence[Part], question: str
    ) -> tuple[list[Contradiction], tuple[AbsentFigure, ...]]:
        """Return the flags, the strongest first, and the figures that aren't in the evidence."""
        question_figures = extract(question)
        flagged = list(self._quotable.find_absent(claim, question))
        absent: list[AbsentFigure] = []
        for offset, match in parts:
            result = check_figures(
                match, self._facts, question_figures, self._numerals, self._figures_of_origins
            )
            flagged += (_shift_signal(signal, offset) for signal in result.contradictions)
            if (opposite := self._find_opposite(match)) is not None:
                flagged.append(_shift_signal(opposite, offset))
            absent += (_shift_signal(figure, offset) for figure in result.absent)
        return sorted(
            flagged, key=lambda signal: (not signal.evidence_id, -signal.strength)
        ), tuple(absent)

    def _find_opposite(self, match: Match) -> Contradiction | None:
        """Return the nearest sentence that the claim plainly negates, if any."""
        asserted = [
            passage
            for passage in (self.passages[number] for number in match.top)
            if self._copies.is_asserted(passage.document, passage.start)
        ]
        claim = match.sentence.text
        texts = [without_section_heading(passage.text) for passage in asserted]
        opposite = find_opposite(claim, texts)
        if opposite is None:
            return None
        index, words = opposite
        passage = asserted[index]
        claim_text = claim[words.claim_start : words.claim_end]
        evidence_text = texts[index][words.evidence_start : words.evidence_end]
        text_start = passage.end - len(texts[index])
        return Contradiction(
            kind="opposite",
            claim_start=words.claim_start,
            claim_end=words.claim_end,
            claim_text=claim_text,
            evidence_id=passage.evidence_id,
            evidence_start=text_start + words.evidence_start,
            evidence_end=text_start + words.evidence_end,
            evidence_text=evidence_text,
            reason=f"the evidence has “{evidence_text}” where the claim has “{claim_text}”",
            strength=OPPOSITE_STRENGTH,
        )

    def _match_sentences(self, claim: str) -> list[Part]:
        """Return the matches of the sentences that assert something. Long ones are in pieces."""
        if claim not in self._matched_claims:
            parts = (
                (offset, match_sentence(parsed, self.passages, self._exact, self._loose))
                for start, sentence in _asserted_sentences(claim)
                for offset, parsed in _split_long_sentence(start, sentence)
            )
            self._matched_claims[claim] = [
                (offset, part) for offset, part in parts if part.total >= 1.0
            ]
        return self._matched_claims[claim]


_WithOffsets = TypeVar("_WithOffsets", Contradiction, AbsentFigure)


def _shift_signal(signal: _WithOffsets, offset: int) -> _WithOffsets:
    """Return a flag or figure with offsets into the claim instead of one of its sentences."""
    offsets = {"claim_start": signal.claim_start + offset, "claim_end": signal.claim_end + offset}
    return signal.model_copy(update=offsets)


def _asserted_sentences(claim: str) -> Iterator[tuple[int, str]]:
    """Yield the sentences that assert something, with their offsets.

    Questions, refusals and statements about missing evidence are skipped.
    """
    spans = [(0, claim)]
    if _INNER_STOP.search(claim):
        spans = [(span.start, claim[span.start : span.end]) for span in split_sentences(claim)]
    for start, sentence in spans:
        is_question = sentence.rstrip().endswith("?") and _QUESTION_START.match(sentence)
        if sentence.strip() and not (
            is_question or _REFUSAL.search(sentence) or _MISSING_EVIDENCE.search(sentence)
        ):
            yield start, sentence


def _split_long_sentence(start: int, sentence: str) -> Iterator[tuple[int, ParsedSentence]]:
    """Yield a sentence, or its pieces if it's very long, with their offsets in the claim."""
    words = tokens(sentence)
    boundaries = [
        0,
        *(
            words[word_number].start
            for word_number in range(LONGEST_PASSAGE, len(words), LONGEST_PASSAGE)
        ),
        len(sentence),
    ]
    for piece_start, piece_end in pairwise(boundaries):
        text = sentence[piece_start:piece_end]
        yield (
            start + piece_start,
            ParsedSentence(
                text, tokens(text) if piece_start or piece_end < len(sentence) else words
            ),
        )


def _quote(evidence_id: str, text: str, start: int, end: int, score: float) -> Quote:
    return Quote(evidence_id=evidence_id, start=start, end=end, text=text[start:end], score=score)


def _uncovered_spans(parts: Sequence[Part]) -> tuple[tuple[int, int], ...]:
    """Return the spans of content words that no evidence has. Neighboring words form one span."""
    spans: list[tuple[int, int]] = []
    for offset, match in parts:
        text, covered, last_end = match.sentence.text, match.joint_hits(match.hits), -1
        for index in match.weights:
            word = match.sentence.words[index]
            if index in covered:
                last_end = -1
                continue
            if last_end >= 0 and text[last_end : word.start].strip() == "":
                spans[-1] = (spans[-1][0], word.end + offset)
            else:
                spans.append((word.start + offset, word.end + offset))
            last_end = word.end
    return tuple(spans)

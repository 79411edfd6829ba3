"""An answer and its evidence, parsed for planting a fault.

`ReadAnswer` has the sentences of the answer, their references and the passages that they copy.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from masis.audit.citations.engine import audit_citations
from masis.audit.text.assertions import sentence_claims
from masis.audit.text.language import detect_language
from masis.offline.checks.figures import FactTable, numerals_in
from masis.offline.matching.key_points import origin_of, plain_text
from masis.offline.matching.passages import EvidencePassage, ParsedSentence, passages
from masis.offline.parsing.facts import Fact, extract
from masis.offline.text.tokens import tokens
from masis.schema.audit import Citation, Claim
from masis.schema.case import Evidence

NEAR_COPY = 0.8
"""Minimum share of a sentence's content words in a passage that makes it a near copy of it."""
FEWEST_WORDS = 4
"""Minimum number of content words of a sentence. Many passages have most words of a shorter one."""
LONGEST_ANSWER = 20_000
"""The longest answer, in characters. Reviewers must read it all to find the fault."""
MOST_EVIDENCE = 300_000
"""Maximum length of the evidence, in characters. Each sentence is compared with all passages."""


@dataclass(frozen=True)
class AnswerSentence:
    """A sentence of the answer that asserts something.

    ``text`` has spaces instead of citation markers, so that offsets stay valid.
    """

    claim: Claim
    start: int
    text: str
    parsed: ParsedSentence

    def to_answer_offsets(self, start: int, end: int) -> tuple[int, int]:
        """Convert offsets into the sentence to offsets into the answer."""
        return self.start + start, self.start + end


class ReadAnswer:
    """An answer with its evidence. Each property is computed on first use."""

    def __init__(self, answer: str, evidence: Sequence[Evidence], question: str = "") -> None:
        self.answer, self.evidence, self.question = answer, tuple(evidence), question
        self.audit = audit_citations(answer, self.evidence)
        self.number_of = {chunk.id: number for number, chunk in enumerate(self.evidence)}

    def replace_words(self, start: int, end: int, words: str) -> ReadAnswer:
        """Return the answer with `answer[start:end]` replaced by other words."""
        return ReadAnswer(
            self.answer[:start] + words + self.answer[end:], self.evidence, self.question
        )

    @cached_property
    def sentences(self) -> list[AnswerSentence]:
        """The sentences that assert something, in order."""
        sentences_found = []
        for claim in sentence_claims(self.audit):
            text = plain_text(claim)
            sentences_found.append(
                AnswerSentence(claim, claim.start or 0, text, ParsedSentence(text, tokens(text)))
            )
        return sentences_found

    @cached_property
    def passages(self) -> list[EvidencePassage]:
        """The passages of all evidence."""
        return [
            passage
            for number, chunk in enumerate(self.evidence)
            for passage in passages(number, chunk.id, chunk.text)
        ]

    @cached_property
    def table(self) -> FactTable:
        """The figures of all evidence."""
        return FactTable(self.passages)

    @cached_property
    def numerals(self) -> frozenset[str]:
        """The numerals of all evidence, without commas."""
        return frozenset().union(*(numerals_in(chunk.text) for chunk in self.evidence))

    @cached_property
    def own_figures(self) -> list[Fact]:
        """The figures of the answer."""
        return [fact for sentence in self.sentences for fact in sentence.parsed.facts]

    @cached_property
    def language(self) -> str | None:
        """The two-letter code of the answer's language, or None if it isn't certain."""
        return detect_language(self.answer)

    @cached_property
    def repeatable_facts(self) -> list[Fact]:
        """The figures of the question and of the evidence's origins, which an answer may repeat."""
        return [
            *extract(self.question),
            *(fact for chunk in self.evidence for fact in extract(origin_of(chunk))),
        ]

    def cited_by(self, sentence: AnswerSentence) -> frozenset[int] | None:
        """Return the indices of the chunks that a sentence cites, or None if it cites none."""
        cited = frozenset(
            self.number_of[chunk_id]
            for chunk_id in sentence.claim.cited
            if chunk_id in self.number_of
        )
        return cited or None

    def source_of(self, sentence: AnswerSentence) -> EvidencePassage | None:
        """Return the passage that the sentence is a near copy of, or None.

        If the sentence cites chunks, only their passages count.
        """
        passage, share = self.nearest(sentence, self.cited_by(sentence))
        return passage if share >= NEAR_COPY else None

    def nearest(
        self, sentence: AnswerSentence, allowed: frozenset[int] | None = None
    ) -> tuple[EvidencePassage | None, float]:
        """Return the passage that has most of a sentence's content words, and their share.

        If ``allowed`` is given, only passages of these chunks count.
        """
        content = sentence.parsed.content
        candidates = [
            passage for passage in self.passages if allowed is None or passage.document in allowed
        ]
        if len(content) < FEWEST_WORDS or not candidates:
            return None, 0.0
        best = max(candidates, key=lambda passage: len(content & passage.content))
        return best, len(content & best.content) / len(content)

    def citations_in(self, sentence: AnswerSentence) -> list[Citation]:
        """Return the references in a sentence."""
        return [
            citation
            for citation in self.audit.citations
            if citation.sentence == sentence.claim.sentence
        ]

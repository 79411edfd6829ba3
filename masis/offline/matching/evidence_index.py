"""The evidence of a case as an index that judges claims: verdict, flags, supporting passages,
closeness.

    index = EvidenceIndex([("chunk_1", "The firm grew by 12% in 2021.")])
    index.assess("The firm grew by 21% in 2021.").verdict      # "contradicted"

docs/models.md explains how it judges. The same input gives the same answer, without a network;
scores of the encoder differ in the third digit between kinds of CPU.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Literal, TypeVar

from masis.audit.sentences import split_sentences
from masis.offline.checks.copies import CopyIndex, CopyMatch
from masis.offline.checks.figures import FactTable, Quotable, check_figures, numerals_in
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

_INNER_STOP = re.compile(r"[.!?][\"”’)]?\s|\n")
_REFUSES = re.compile(
    r"\b(?:i (?:don['’]?t|do not) know|idk|no idea|as an ai"
    r"|i (?:couldn['’]?t|could not|can(?:no|['’])t) (?:find|answer|provide|help)"
    r"|i['’]?m sorry|i am sorry)",
    re.IGNORECASE,
)
"""A sentence that declines to assert."""
_SILENT = re.compile(
    r"\b(?:(?:insufficient|not enough) (?:evidence|information|context)"
    r"|cannot be (?:determined|answered)"
    r"|(?:context|source|evidence|passage|document|text|reference|information|excerpt"
    r"|article)s?\b[^.]{0,120}"
    r"\b(?:does|do|did|is|are|was|were) (?:not|n['’]t) (?:explicitly |directly |clearly )?"
    r"(?:provid|contain|mention|specif|say|state|address|give|given|includ|availab|found))",
    re.IGNORECASE,
)
"""A sentence that says that the evidence is silent."""
_ASKS = re.compile(
    r"\W*(?:(?:and|but|so|or)"
    r" )?(?:who|whom|whose|what|when|where|which|why|how|is|are|was|were|do|does|did|can|could|"
    r"will|would|should|shall|may|might|has|have|had|am|any|isn['’]t|aren['’]t|don['’]t|doesn['’]t"
    r"|didn['’]t)\b",
    re.IGNORECASE,
)
"""How a question begins; what only ends in a question mark may be the name of a song."""
_COPY_SUPPORT = 0.97
"""The least support of a claim that is a copy."""
_ACCUSED_SUPPORT = 0.2
"""The most support of a claim that is flagged: of high severity by DRAFT-CRITIQUE-SEVERITY, however
close the rest.
"""
_REFERRING = frozenset(
    "it its he she they his her their them this these that those such both the there here one"
    " another".split()
)
"""First words of a sentence that takes its subject from before it."""
_SUBJECT_WORDS = 3
"""First words of a sentence among which its subject is named."""
_LOOK_BACK = 3
"""Passages before a copy in which its subject is looked for."""
Part = tuple[int, Match]
"""A sentence of a claim, or a piece of one: where it begins, and its overlap with the evidence."""
ALWAYS_JUDGED = 1000
"""Characters of a claim that is judged however long the evidence is."""
MOST_COMPARED = 12_000_000
"""Characters of a longer claim, times sentences of the evidence and its words (up to
`_WORDS_COMPARED`), that are compared: 5 s of processor time (benchmarks/slow_strings.py). Beyond,
the claim is left unverifiable: a verdict on a part of it would be taken for one on all of it."""
_WORDS_COMPARED = 350
"""Words of the evidence that the words of a sentence are compared with one by one, about: those of
the best runs.
"""
TOO_LONG = "long"
"""The code of what kept such a claim from being judged."""

Verdict = Literal["supported", "contradicted", "unsupported", "unverifiable"]


@dataclass(frozen=True, slots=True)
class ClaimAssessment:
    """How far the evidence supports one claim.

    `support` says how close the evidence comes, 0..1, None where there is nothing to check against:
    an order for the queue, no probability. `confidence` is how sure the verdict is, 0..1. `signals`
    flag with what the evidence has instead, `absent` with quotations that the evidence lacks
    (their `evidence_id` and `evidence_text` are empty). `figures` flag nobody: the evidence lacks
    them, and they may be calculated. `vetoes` are codes of what kept a copy from being confirmed,
    `change` the words in which a near-copy differs from its sentence: those of the claim, those of
    the evidence. `supporting` holds at most three passages, the best first, each with the share of
    the claim's content that it covers; of a confirmed claim the ones that it copies. `uncovered`
    are the spans of the claim that no evidence covers, or the flagged ones alone.
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
    """The evidence of one case, ready to assess claims.

    Assessments are cached, so a repeated question costs nothing.
    """

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
            origins: Where the chunks are from (title, date ...), in words: nobody is flagged of a
                figure of theirs.
            encoder: The sentence encoder; the one that ships where None, opened when the first
                claim is judged.

        """
        self._encoder = encoder
        self._chunks = list(evidence)
        self.passages: list[EvidencePassage] = []
        self._documents: dict[str, list[int]] = {}
        for document, (evidence_id, text) in enumerate(self._chunks):
            self._documents.setdefault(evidence_id, []).append(document)
            self.passages.extend(passages(document, evidence_id, text))
        # The passages that have each content stem, and each looser key.
        self._exact: dict[str, list[int]] = {}
        self._loose: dict[str, list[int]] = {}
        for at, passage in enumerate(self.passages):
            for root in passage.content:
                self._exact.setdefault(root, []).append(at)
        for root, where in self._exact.items():
            for key in loose_keys(root):
                self._loose.setdefault(key, []).extend(where)
        self._facts = FactTable(self.passages)
        self._origins = tuple(origins)
        self._sizes = Counter(passage.document for passage in self.passages)
        self._copies = CopyIndex([text for _, text in self._chunks])
        self._quotable = Quotable([text for _, text in self._chunks])
        inner = (word for passage in self.passages for word in passage.words[1:])
        self._names = frozenset(
            word.stem for word in inner if word.weight >= NAMED and word.text[0].isupper()
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
        """Judge a claim against the evidence; repeated calls are answered from a cache.

        Args:
            claim: The text of the claim, one sentence or several, without citation markers.
            only: The evidence ids to judge against; all evidence where None. Unknown ids are
                ignored.
            question: What the answer is to: its figures are not flagged, and a claim that names
                nothing is about it.
            before: What the answer says just before the claim.

        Returns:
            The verdict with support and confidence (0 to 1), flags, supporting passages and
            the spans of the claim that no evidence covers. Support is None where there is nothing
            to check, and where claim and evidence are too long to be compared (`MOST_COMPARED`).

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
            parts = [(at, restrict(whole, allowed)) for at, whole in parts]
        if not parts:
            return _NOTHING_ASSERTED
        encoder = self._encoder or load_encoder()
        weight = sum(match.total for _, match in parts)
        close = round(
            sum(match.total * closeness(match, encoder) for _, match in parts) / weight, 4
        )
        copied, objections = self._find_copies(claim, parts, allowed, question, before)
        if copied and not objections:
            places = dict.fromkeys(place for found in copied for place in found.places)
            quotes = tuple(
                _quote(*self._chunks[place.document], place.start, place.end, 1.0)
                for place in places
            )
            return ClaimAssessment(max(close, _COPY_SUPPORT), "supported", 0.95, supporting=quotes)
        flagged, figures = ([], ()) if copied else self._find_conflicts(claim, parts, question)
        supporting, uncovered = self._supporting(parts), _uncovered_spans(parts)
        if not flagged:
            change = (
                None if copied else next(self._copies.changes(claim, self._nearest(parts)), None)
            )
            return ClaimAssessment(
                close,
                "unverifiable",
                0.5,
                figures=figures,
                vetoes=objections,
                change=change.texts if change else None,
                supporting=supporting,
                uncovered=uncovered,
            )
        signals = tuple(signal for signal in flagged if signal.evidence_id)
        absent = tuple(signal for signal in flagged if not signal.evidence_id)
        return ClaimAssessment(
            support=min(close, _ACCUSED_SUPPORT),
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
        """Return where the evidence says every sentence of the claim, if so, and what speaks
        against confirming it.
        """
        found: list[CopyMatch] = []
        objections: list[str] = []
        near = self._nearest(parts)
        for at, sentence in _asserting(claim):
            copy = self._copies.find(sentence, allowed)
            if copy is None:
                return (), ()
            found.append(copy)
            objections += [copy.objection] if copy.objection else []
            others = [
                (d, at)
                for d, at in near
                if not any(d == p[0] and p[1] <= at < p[2] for p in copy.places)
            ]
            if any(change.turns for change in self._copies.changes(sentence, others)):
                objections.append("disputed")
            if self._about_another(sentence, copy, question, claim[:at].strip() or before):
                objections.append("subject")
        return tuple(found), tuple(dict.fromkeys(objections))

    def _nearest(self, parts: Sequence[Part]) -> list[tuple[int, int]]:
        near = dict.fromkeys(i for _, match in parts for i in match.top)
        return [(self.passages[i].document, self.passages[i].start) for i in near]

    def _supporting(self, parts: list[Part]) -> tuple[Quote, ...]:
        best: dict[int, float] = defaultdict(float)
        for _, found in parts:
            for i in found.top[:3]:
                best[i] = max(best[i], found.coverage((i,)))
        ranked = sorted(best.items(), key=lambda item: (-item[1], item[0]))
        leader = ranked[0][1] if ranked else 0.0
        near = [
            (self.passages[i], round(score, 4))
            for i, score in ranked[:3]
            if score >= max(0.2, 0.5 * leader)
        ]
        return tuple(
            _quote(*self._chunks[each.document], each.start, each.end, score)
            for each, score in near
        )

    def _about_another(self, sentence: str, copy: CopyMatch, question: str, before: str) -> bool:
        """Return whether a copy may be about something else than the question and the answer so
        far.

        Its subject is the name that it begins with, or, of "It is 80 metres long", the name that
        the evidence has just before; where question and answer name something, that has to be among
        it.
        """
        words = tokens(sentence)
        context = {word.stem for word in tokens(f"{question} {before}")}
        asked = {word.stem for word in tokens(question) if word.text[0].isupper()} & self._names
        if not context or not words:
            return False
        own = self._named_tokens(words)
        if own and own[0] in words[:_SUBJECT_WORDS]:
            return bool(asked) and own[0].stem not in context
        if words[0].text.lower() not in _REFERRING or any(word.stem in context for word in own):
            return False
        place = copy.places[0]
        earlier = [
            p for p in self.passages if p.document == place.document and p.end <= place.start
        ]
        for passage in reversed(earlier[-_LOOK_BACK:]):
            if named := self._named_tokens(passage.words):
                return named[0].stem not in context
        return False

    def _named_tokens(self, words: Sequence[Token]) -> list[Token]:
        return [word for word in words if word.text[0].isupper() and word.stem in self._names]

    def _find_conflicts(
        self, claim: str, parts: Sequence[Part], question: str
    ) -> tuple[list[Contradiction], tuple[AbsentFigure, ...]]:
        """Return the flags, the strongest first, and the figures that the evidence lacks."""
        asked = extract(question)
        flagged = list(self._quotable.find_absent(claim, question))
        absent: list[AbsentFigure] = []
        for offset, match in parts:
            found = check_figures(
                match, self._facts, asked, self._numerals, self._figures_of_origins
            )
            flagged += (_shift_signal(signal, offset) for signal in found.contradictions)
            absent += (_shift_signal(figure, offset) for figure in found.absent)
        return sorted(
            flagged, key=lambda signal: (not signal.evidence_id, -signal.strength)
        ), tuple(absent)

    def _match_sentences(self, claim: str) -> list[Part]:
        """Return the sentences that assert something, matched with the evidence, long ones in
        pieces.
        """
        if claim not in self._matched_claims:
            parts = (
                (offset, match_sentence(parsed, self.passages, self._exact, self._loose))
                for at, sentence in _asserting(claim)
                for offset, parsed in _bounded_parts(at, sentence)
            )
            self._matched_claims[claim] = [
                (offset, part) for offset, part in parts if part.total >= 1.0
            ]
        return self._matched_claims[claim]


_Placed = TypeVar("_Placed", Contradiction, AbsentFigure)


def _shift_signal(signal: _Placed, offset: int) -> _Placed:
    """Return what is said of a sentence with its place in the whole claim."""
    place = {"claim_start": signal.claim_start + offset, "claim_end": signal.claim_end + offset}
    return signal.model_copy(update=place)


def _asserting(claim: str) -> Iterator[tuple[int, str]]:
    """Yield the sentences that assert something: no question, no refusal, nothing on what the
    evidence lacks.
    """
    spans = [(0, claim)]
    if _INNER_STOP.search(claim):
        spans = [(span.start, claim[span.start : span.end]) for span in split_sentences(claim)]
    for at, sentence in spans:
        asks = sentence.rstrip().endswith("?") and _ASKS.match(sentence)
        if sentence.strip() and not (asks or _REFUSES.search(sentence) or _SILENT.search(sentence)):
            yield at, sentence


def _bounded_parts(start: int, sentence: str) -> Iterator[tuple[int, ParsedSentence]]:
    """Yield the sentence, or pieces of one that runs on, to be judged one by one: nothing is
    truncated.
    """
    words = tokens(sentence)
    cuts = [
        0,
        *(words[i].start for i in range(LONGEST_PASSAGE, len(words), LONGEST_PASSAGE)),
        len(sentence),
    ]
    for begin, end in pairwise(cuts):
        text = sentence[begin:end]
        yield (
            start + begin,
            ParsedSentence(text, tokens(text) if begin or end < len(sentence) else words),
        )


def _quote(evidence_id: str, text: str, start: int, end: int, score: float) -> Quote:
    return Quote(evidence_id=evidence_id, start=start, end=end, text=text[start:end], score=score)


def _uncovered_spans(parts: Sequence[Part]) -> tuple[tuple[int, int], ...]:
    spans: list[tuple[int, int]] = []
    for offset, match in parts:
        text, covered, last = match.sentence.text, match.joint_hits(match.hits), -1
        for at in match.weights:
            word = match.sentence.words[at]
            if at in covered:
                last = -1
                continue
            if last >= 0 and text[last : word.start].strip() == "":
                spans[-1] = (spans[-1][0], word.end + offset)
            else:
                spans.append((word.start + offset, word.end + offset))
            last = word.end
    return tuple(spans)

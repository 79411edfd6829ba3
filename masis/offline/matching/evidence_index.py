"""The evidence of a case as an index that judges claims: support, verdict, contradictions, supporting passages.

    index = EvidenceIndex([("chunk_1", "The firm grew by 12% in 2021.")])
    index.assess("The firm grew by 21% in 2021.").verdict      # "contradicted"

docs/offline.md explains how it judges. Deterministic, without a network, in pure Python.
"""

import math
import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from itertools import islice
from typing import NamedTuple

from masis.audit.sentences import split_sentences
from masis.offline.contradictions.collect import signals as find_signals
from masis.offline.contradictions.collect import value_denied
from masis.offline.contradictions.variants import MOST_UNITS, Unit, units
from masis.offline.inference.features import combine_features, sentence_features
from masis.offline.inference.support_classifier import SupportClassifier, contradiction_strength, load_classifier
from masis.offline.matching.assessment import Assessment, Signal, SignalKind, SupportingPassage, Verdict
from masis.offline.matching.fact_table import FactTable
from masis.offline.matching.overlap import Match, match_sentence, restrict
from masis.offline.matching.passages import LONGEST_PASSAGE, Passage, names_in, passages, postings
from masis.offline.parsing.facts import Fact
from masis.offline.parsing.parsed_sentence import ParsedSentence
from masis.offline.text.tokens import Token, stem, tokens

__all__ = ["Assessment", "EvidenceIndex", "Signal", "SignalKind", "SupportingPassage", "Verdict"]

_META_WORDS = """context contexts source sources evidence passage document text reference information excerpt article
provide provided contain mention mentioned specify say state address give given include available found determine
determined answer answered insufficient enough question direct possible""".split()
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
    r"|(?:context|source|evidence|passage|document|text|reference|information|excerpt|article)s?\b[^.]{0,120}"
    r"\b(?:does|do|did|is|are|was|were) (?:not|n['’]t) (?:explicitly |directly |clearly )?"
    r"(?:provid|contain|mention|specif|say|state|address|give|given|includ|availab|found))",
    re.IGNORECASE,
)
"""A sentence that says that the evidence is silent."""
_ASKS = re.compile(
    r"\W*(?:(?:and|but|so|or) )?(?:who|whom|whose|what|when|where|which|why|how|is|are|was|were|do|does|did|can|could|"
    r"will|would|should|shall|may|might|has|have|had|am|any|isn['’]t|aren['’]t|don['’]t|doesn['’]t|didn['’]t)\b",
    re.IGNORECASE,
)
"""How a question begins; what only ends in a question mark may be the name of a song."""
_META = frozenset(map(stem, _META_WORDS))
_SILENCE_WORTH = 0.5
"""What is left of the support of a sentence that says the evidence is silent: no passage can support it."""
_LEAST_COVERAGE = 0.15
"""Below this share of the claim's words found anywhere, no probability makes it supported."""
_PARTIAL_COVERAGE = 0.5
_NOTHING_ASSERTED = Assessment(None, "unverifiable", 0.8)
Part = tuple[int, Match]
"""A sentence of a claim, or a piece of one: where it begins, and its overlap with the evidence."""
LONGEST_PART = 2000
"""Characters weighed as one part: work grows with the square of its words, and no sentence people write is as long."""


class _MatchedClaim(NamedTuple):
    """A claim matched with all evidence; `silent` where it only says that the evidence is silent."""

    parts: list[Part]
    silent: bool


class EvidenceIndex:
    """The evidence of one case, ready to assess claims.

    Assessments are cached, so a repeated question costs nothing.
    """

    def __init__(self, evidence: Iterable[tuple[str, str]], model: SupportClassifier | None = None) -> None:
        """`evidence` are pairs of id and text, in the order of the case; texts may be empty."""
        self.model = model or load_classifier()
        self.passages: list[Passage] = []
        self._documents: dict[str, list[int]] = {}
        for document, (evidence_id, text) in enumerate(evidence):
            self._documents.setdefault(evidence_id, []).append(document)
            self.passages.extend(passages(document, evidence_id, text))
        self._exact, self._loose = postings(self.passages)
        names = names_in(self.passages)
        for at, passage in enumerate(self.passages):
            passage.known_names, passage.at = names, at
        self._names = names
        self._facts = FactTable(self.passages)
        count = len(self.passages)
        self._idf = {root: math.log((count + 1) / (len(where) + 0.5)) + 0.3 for root, where in self._exact.items()}
        self._unseen = math.log((count + 1) / 0.5) + 0.3
        self._sizes = Counter(passage.document for passage in self.passages)
        self._units: dict[Fact, tuple[Unit, ...]] = {}
        self._matched_claims: dict[str, _MatchedClaim] = {}
        self._assessments: dict[tuple[str, frozenset[int] | None], Assessment] = {}

    def units(self, fact: Fact) -> tuple[Unit, ...]:
        """Return the parts of the evidence that give a value of this kind, the first `MOST_UNITS`."""
        key = fact._replace(start=0, end=0)
        cached = self._units.get(key)
        if cached is None:
            cached = self._units[key] = tuple(islice(units(fact, self.passages), MOST_UNITS))
        return cached

    def assess(self, claim: str, only: Collection[str] | None = None) -> Assessment:
        """Judge a claim against the evidence; repeated calls are answered from a cache.

        Args:
            claim: The text of the claim, one sentence or several, without citation markers.
            only: The evidence ids to judge against; all evidence where None. Unknown ids are ignored.

        Returns:
            The verdict with support and confidence (0 to 1), signals of contradiction, supporting passages and the
            spans of the claim that no evidence covers. Support is None where there is nothing to check.

        """
        allowed = self._allowed(only)
        cached = self._assessments.get((claim, allowed))
        if cached is None:
            cached = self._assessments[claim, allowed] = self._assess(claim, allowed)
        return cached

    def plainly_contradicted(self, claim: str, only: Collection[str] | None = None) -> bool:
        """Return whether a single value or name of the claim already makes it "contradicted".

        This is much cheaper than the whole assessment. False leaves the verdict open.
        """
        allowed = self._allowed(only)
        cached = self._assessments.get((claim, allowed))
        if cached is not None:
            return cached.verdict == "contradicted"
        matched = self._matched(claim)
        least = self.model.contradicted
        return not matched.silent and any(
            value_denied(found, self._facts, least, self.model.calibration)
            for _, found in _parts_within(matched, allowed)
        )

    def _allowed(self, only: Collection[str] | None) -> frozenset[int] | None:
        """Return the documents under these ids; None where they are all."""
        if only is None:
            return None
        allowed = frozenset(d for name in only for d in self._documents.get(name, ()) if d in self._sizes)
        return None if len(allowed) == len(self._sizes) else allowed

    def _matched(self, claim: str) -> _MatchedClaim:
        matched = self._matched_claims.get(claim)
        if matched is None:
            matched = self._matched_claims[claim] = self._match(claim)
        return matched

    def _assess(self, claim: str, allowed: frozenset[int] | None) -> Assessment:
        documents = self._sizes if allowed is None else allowed
        if not documents:
            return Assessment(None, "unverifiable", 1.0)
        matched = self._matched(claim)
        if not matched.parts:
            return _NOTHING_ASSERTED
        parts = _parts_within(matched, allowed)
        measured, signals = [], []
        for offset, found in parts:
            here = [] if matched.silent else find_signals(found, self._facts, self.model.calibration)
            measured.append((found.total, sentence_features(found, here, self._idf, self._unseen)))
            signals += [_shifted(signal, offset) for signal in here]
        words = sum(len(found.bits) for _, found in parts)
        features = combine_features(measured, words, sum(self._sizes[d] for d in documents), len(documents))
        signals.sort(key=lambda signal: -signal.strength)
        return self._judged(parts, features, signals, _SILENCE_WORTH if matched.silent else 1.0)

    def all_signals(self, claim: str) -> Iterator[tuple[int, Match, Signal]]:
        """Yield every signal that the rules raise on a claim, however unsure, for fitting the calibration.

        Each comes with where its part of the claim begins, the part, and the signal with offsets into the part.
        """
        matched = self._match(claim)
        for offset, found in () if matched.silent else matched.parts:
            yield from ((offset, found, signal) for signal in find_signals(found, self._facts))

    def _match(self, claim: str) -> _MatchedClaim:
        """Match what the claim asserts with all evidence; if it asserts nothing, what it calls the evidence silent
        about.
        """
        parts = self._parts(claim)
        return (
            _MatchedClaim(parts, silent=False) if parts else _MatchedClaim(self._parts(claim, silent=True), silent=True)
        )

    def _parts(self, claim: str, *, silent: bool = False) -> list[Part]:
        """Return the sentences to weigh; with `silent` only those that say the evidence is silent, as far as they name
        what about.
        """
        spans = [(0, claim)]
        if _INNER_STOP.search(claim):
            spans = [(span.start, claim[span.start : span.end]) for span in split_sentences(claim)]
        spans = [(offset + at, piece) for offset, text in spans for at, piece in _pieces(text)]
        found = []
        for start, sentence in spans:
            if _asks(sentence) or _REFUSES.search(sentence) or bool(_SILENT.search(sentence)) != silent:
                continue
            for offset, text, words in _bounded_parts(start, sentence):
                weighed = [w._replace(weight=0.0) if w.stem in _META else w for w in words] if silent else words
                part = match_sentence(
                    ParsedSentence(text, weighed, self._names), self.passages, self._exact, self._loose
                )
                if part.total >= 1.0:
                    found.append((offset, part))
        return found

    def _judged(self, parts: list[Part], features: dict[str, float], found: list[Signal], worth: float) -> Assessment:
        support = worth * self.model.support(features)
        verdict = self._verdict(support, features)
        strongest = found[0].strength if found else 0.0
        sure = max(strongest, 1 - support) if verdict == "contradicted" else abs(support - 0.5) * 2
        return Assessment(
            support=round(support, 4),
            verdict=verdict,
            confidence=round(0.5 + 0.5 * min(1.0, sure), 4),
            signals=tuple(found),
            supporting=_supporting(parts),
            uncovered=_uncovered(parts),
            features=features,
        )

    def _verdict(self, support: float, features: dict[str, float]) -> Verdict:
        if contradiction_strength(features) >= self.model.contradicted:
            return "contradicted"
        if features["cover_all"] < _LEAST_COVERAGE:
            return "unsupported"
        if support >= self.model.supported:
            return "supported"
        is_partial = support >= self.model.partial and features["cover_window"] >= _PARTIAL_COVERAGE
        return "partial" if is_partial else "unsupported"


def _parts_within(matched: _MatchedClaim, allowed: frozenset[int] | None) -> list[Part]:
    return matched.parts if allowed is None else [(at, restrict(whole, allowed)) for at, whole in matched.parts]


def _asks(sentence: str) -> bool:
    return sentence.rstrip().endswith("?") and bool(_ASKS.match(sentence))


def _pieces(text: str) -> Iterator[tuple[int, str]]:
    """Yield the text in pieces of at most `LONGEST_PART` characters, cut behind a comma or a blank."""
    at = 0
    while len(text) - at > LONGEST_PART:
        piece = text[at : at + LONGEST_PART]
        cut = max(piece.rfind(", "), piece.rfind("; ")) + 2
        if cut < LONGEST_PART // 2:
            cut = piece.rfind(" ") + 1 or LONGEST_PART
        yield at, text[at : at + cut]
        at += cut
    yield at, text[at:]


def _bounded_parts(start: int, sentence: str) -> list[tuple[int, str, list[Token]]]:
    """Return the sentence, or pieces of one that runs on, to be judged one by one: nothing is truncated."""
    words = tokens(sentence)
    if len(words) <= LONGEST_PASSAGE:
        return [(start, sentence, words)]
    cuts = [words[i].start for i in range(0, len(words), LONGEST_PASSAGE)]
    pieces = [(begin, sentence[begin:end]) for begin, end in zip(cuts, [*cuts[1:], len(sentence)], strict=True)]
    return [(start + begin, text, tokens(text)) for begin, text in pieces]


def _shifted(signal: Signal, offset: int) -> Signal:
    if not offset:
        return signal
    start, end = signal.claim_span
    return Signal(
        signal.kind,
        (start + offset, end + offset),
        signal.claim_text,
        signal.evidence_id,
        signal.evidence_start,
        signal.evidence_end,
        signal.evidence_text,
        signal.reason,
        signal.strength,
    )


def _supporting(parts: list[Part]) -> tuple[SupportingPassage, ...]:
    best: dict[int, float] = {}
    for _, found in parts:
        for i in found.top[:3]:
            best[i] = max(best.get(i, 0.0), found.coverage((i,)))
    ranked = sorted(best.items(), key=lambda item: (-item[1], item[0]))
    leader = ranked[0][1] if ranked else 0.0
    found_passages = parts[0][1].passages
    return tuple(
        SupportingPassage(
            found_passages[i].evidence_id, found_passages[i].start, found_passages[i].end, round(score, 4)
        )
        for i, score in ranked[:3]
        if score >= max(0.2, 0.5 * leader)
    )


def _uncovered(parts: list[Part]) -> tuple[tuple[int, int], ...]:
    spans: list[tuple[int, int]] = []
    for offset, found in parts:
        text = found.sentence.text
        exact, loose = found.covered(list(found.score))
        last: Token | None = None
        for b, i in enumerate(found.bits):
            word = found.words[i]
            if (exact | loose) >> b & 1:
                last = None
                continue
            if last is not None and spans and text[last.end : word.start].strip() == "":
                spans[-1] = (spans[-1][0], word.end + offset)
            else:
                spans.append((word.start + offset, word.end + offset))
            last = word
    return tuple(spans)

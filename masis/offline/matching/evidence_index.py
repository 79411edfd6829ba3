"""The evidence of a case as an index that judges claims: support, verdict, contradictions, supporting passages.

    index = EvidenceIndex([("chunk_1", "The firm grew by 12% in 2021.")])
    index.assess("The firm grew by 21% in 2021.").verdict      # "contradicted"

docs/offline.md explains how it judges. The same input gives the same answer, without a network; scores of the encoder
differ in the third digit between kinds of CPU.
"""

import math
import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence

from masis.audit.sentences import split_sentences
from masis.offline.contradictions.direction_conflicts import direction_signals
from masis.offline.contradictions.fact_conflicts import fact_signals
from masis.offline.inference.checks import accusations, vetoes
from masis.offline.inference.encoder import Encoder, load_encoder
from masis.offline.inference.features import combine_features, sentence_features
from masis.offline.inference.semantic_features import semantic_features
from masis.offline.inference.support_classifier import SupportClassifier, load_classifier
from masis.offline.matching.assessment import Assessment, Signal, SignalKind, SupportingPassage, Verdict
from masis.offline.matching.fact_table import FactTable
from masis.offline.matching.overlap import Match, match_sentence, restrict
from masis.offline.matching.passages import LONGEST_PASSAGE, Passage, names_in, passages, postings
from masis.offline.parsing.parsed_sentence import ParsedSentence
from masis.offline.text.tokens import Token, tokens

__all__ = ["Assessment", "EvidenceIndex", "Signal", "SignalKind", "SupportingPassage", "Verdict"]

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
_COPY_SUPPORT = 0.97
"""The least support of a claim that is a sentence of the evidence, word for word."""
_COPY_WORDS = 4
"""Words that such a sentence needs: a shorter one may answer a question that the evidence asks."""
_UNRELATED_COVERAGE, _UNRELATED_COSINE = 0.15, 0.2
"""A claim is about something else where the evidence has fewer of its words and nothing nearer in meaning."""
_NOTHING_ASSERTED = Assessment(None, "unverifiable", 0.8)
Part = tuple[int, Match]
"""A sentence of a claim, or a piece of one: where it begins, and its overlap with the evidence."""
LONGEST_PART = 2000
"""Characters weighed as one part: work grows with the square of its words, and no sentence people write is as long."""
ALWAYS_JUDGED = 1000
"""Characters of a claim that is judged however long the evidence is."""
MOST_COMPARED = 12_000_000
"""Characters of a longer claim, times sentences of the evidence and its words (up to `_WORDS_COMPARED`), that are
compared: 5 s of processor time (benchmarks/slow_strings.py). Beyond, the claim is left unverifiable: a verdict on a
part of it would be taken for one on all of it."""
_WORDS_COMPARED = 350
"""Words of the evidence that the words of a sentence are compared with one by one, about: those of the best runs."""
TOO_LONG = "long"
"""The code of what kept such a claim from being judged."""


class EvidenceIndex:
    """The evidence of one case, ready to assess claims.

    Assessments are cached, so a repeated question costs nothing.
    """

    def __init__(
        self,
        evidence: Iterable[tuple[str, str]],
        model: SupportClassifier | None = None,
        encoder: Encoder | None = None,
    ) -> None:
        """Index the evidence.

        Args:
            evidence: Pairs of id and text, in the order of the case; texts may be empty.
            model: The weights to judge by; those that ship where None.
            encoder: The sentence encoder; the one that ships where None, opened when the first claim is judged.

        """
        self.model = model or load_classifier()
        self._encoder = encoder
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
        self._copies: dict[str, set[int]] = {}
        for passage in self.passages:
            self._copies.setdefault(_plain(passage.text), set()).add(passage.document)
        self._matched_claims: dict[str, list[Part]] = {}
        self._assessments: dict[tuple[str, frozenset[int] | None], Assessment] = {}

    def assess(self, claim: str, only: Collection[str] | None = None) -> Assessment:
        """Judge a claim against the evidence; repeated calls are answered from a cache.

        Args:
            claim: The text of the claim, one sentence or several, without citation markers.
            only: The evidence ids to judge against; all evidence where None. Unknown ids are ignored.

        Returns:
            The verdict with support and confidence (0 to 1), signals of contradiction, supporting passages and the
            spans of the claim that no evidence covers. Support is None where there is nothing to check, and where claim
            and evidence are too long to be compared (`MOST_COMPARED`).

        """
        allowed = self._allowed(only)
        cached = self._assessments.get((claim, allowed))
        if cached is None:
            cached = self._assessments[claim, allowed] = self._assess(claim, allowed)
        return cached

    def _allowed(self, only: Collection[str] | None) -> frozenset[int] | None:
        """Return the documents under these ids; None where they are all."""
        if only is None:
            return None
        allowed = frozenset(d for name in only for d in self._documents.get(name, ()) if d in self._sizes)
        return None if len(allowed) == len(self._sizes) else allowed

    def _matched(self, claim: str) -> list[Part]:
        matched = self._matched_claims.get(claim)
        if matched is None:
            matched = self._matched_claims[claim] = self._parts(claim)
        return matched

    def _assess(self, claim: str, allowed: frozenset[int] | None) -> Assessment:
        documents = self._sizes if allowed is None else allowed
        if not documents:
            return Assessment(None, "unverifiable", 1.0)
        if self._too_long(claim):
            return Assessment(None, "unverifiable", 0.5, vetoes=(TOO_LONG,))
        parts = _parts_within(self._matched(claim), allowed)
        if not parts:
            return _NOTHING_ASSERTED
        encoder = self._encoder or load_encoder()
        measured: list[tuple[float, dict[str, float]]] = []
        signals: list[Signal] = []
        objections: list[str] = []
        for offset, match in parts:
            conflicts = [*fact_signals(match, self._facts), *direction_signals(match)] if match.top else []
            features = sentence_features(match, conflicts, semantic_features(match, encoder), self._idf, self._unseen)
            measured.append((match.total, features))
            signals += [_shifted(signal, offset) for signal in accusations(match, self._facts)]
            objections += vetoes(match, self._facts, features)
        words = sum(len(match.bits) for _, match in parts)
        combined = combine_features(measured, words, sum(self._sizes[d] for d in documents), len(documents))
        signals.sort(key=lambda signal: -signal.strength)
        support = self.model.support(combined)
        if self._copied(claim, documents):
            support, signals, objections = max(support, _COPY_SUPPORT), [], []
        unrelated = combined["cover_all"] < _UNRELATED_COVERAGE and combined["cos_window"] < _UNRELATED_COSINE
        verdict = self._verdict(0.0 if unrelated else support, signals, objections)
        return Assessment(
            support=round(support, 4),
            verdict=verdict,
            confidence=round(_confidence(verdict, support, signals), 4),
            signals=tuple(signals) if verdict == "contradicted" else (),
            vetoes=tuple(dict.fromkeys(objections)) if verdict == "unverifiable" else (),
            supporting=_supporting(parts),
            uncovered=_uncovered(parts),
            features=combined,
        )

    def _too_long(self, claim: str) -> bool:
        if len(claim) <= ALWAYS_JUDGED:
            return False
        words = sum(len(passage.words) for passage in self.passages)
        return len(claim) * (len(self.passages) + min(_WORDS_COMPARED, words)) > MOST_COMPARED

    def _copied(self, claim: str, documents: Collection[int]) -> bool:
        """Return whether the claim is a sentence of these documents, word for word."""
        plain = _plain(claim)
        return plain.count(" ") >= _COPY_WORDS - 1 and not self._copies.get(plain, set()).isdisjoint(documents)

    def _verdict(self, support: float, signals: Collection[Signal], objections: Collection[str]) -> Verdict:
        if signals:
            return "contradicted"
        if support <= self.model.accuse:
            return "unsupported"
        return "supported" if support >= self.model.confirm and not objections else "unverifiable"

    def _parts(self, claim: str) -> list[Part]:
        """Return the sentences that assert something: no question, no refusal, nothing on what the evidence lacks."""
        spans = [(0, claim)]
        if _INNER_STOP.search(claim):
            spans = [(span.start, claim[span.start : span.end]) for span in split_sentences(claim)]
        spans = [(offset + at, piece) for offset, text in spans for at, piece in _pieces(text)]
        found = []
        for start, sentence in spans:
            if _asks(sentence) or _REFUSES.search(sentence) or _SILENT.search(sentence):
                continue
            for offset, text, words in _bounded_parts(start, sentence):
                part = match_sentence(ParsedSentence(text, words, self._names), self.passages, self._exact, self._loose)
                if part.total >= 1.0:
                    found.append((offset, part))
        return found


def _confidence(verdict: Verdict, support: float, signals: Sequence[Signal]) -> float:
    """Return how sure a verdict is, 0.5 to 1; an abstention is sure of nothing."""
    if verdict == "unverifiable":
        return 0.5
    strongest = signals[0].strength if signals else 0.0
    return 0.5 + 0.5 * min(1.0, max(strongest, abs(support - 0.5) * 2))


def _plain(text: str) -> str:
    """Return the words of a text alone: in lower case, without the marks at its end."""
    return " ".join(text.casefold().split()).rstrip(" .!;:")


def _parts_within(parts: list[Part], allowed: frozenset[int] | None) -> list[Part]:
    return parts if allowed is None else [(at, restrict(whole, allowed)) for at, whole in parts]


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

"""What the classifier sees of a claim: the nearest windows of evidence, one number for each feature, and checks.

A window is one to three neighbouring sentences of one piece of evidence. Windows are ranked by word overlap plus cosine
similarity; the checks compare numbers, dates, units, antonyms, negation, strong words and word order with the nearest.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from tools.train_verifier.encoder import Array, Encoded, Encoder
from tools.train_verifier.facts import DERIVED_FIGURE, FRACTION, Fact, FactTable, facts, is_derivable, same_fact
from tools.train_verifier.text import PLAIN_WORD, Lexicon, Word, sentences, words

MAX_WINDOWS = 3
"""Windows of evidence kept for a claim."""
MAX_WINDOW_SENTENCES = 3
"""Neighbouring sentences that a window may have."""
CANDIDATE_SENTENCES = 8
"""Sentences with the largest word overlap that are encoded for a claim, each with its neighbours."""
MIN_COVERAGE = 0.5
"""Share of a claim's words that a window must have before a figure that no evidence has counts as an accusation."""
LOOSE_MATCH_WEIGHT = 0.65
"""Weight of a match by prefix or synonym, against 1 for the same stem."""

_NEGATION = re.compile(
    r"\b(?:not|no|never|none|neither|nor|nobody|nothing|cannot|without|unable|fail(?:s|ed|ing)?|lack(?:s|ed|ing)?|hardly"
    r"|barely|refus(?:e|es|ed|ing)|den(?:y|ies|ied|ying)|declin(?:e|es|ed|ing) to|prohibit(?:s|ed)?|forbid(?:s|den)?"
    r"|exclud(?:e|es|ed|ing)|rule[sd]? out|free of|absence of|rather than|instead of|unlike|except)\b|n['’]t\b",
    re.IGNORECASE,
)
_STRENGTH = re.compile(
    r"\b(?:all|every|always|entirely|never|none|only|must|everyone|everything|completely|guarantee[sd]?|certainly"
    r"|definitely|any|universally|prove[sdn]?|cures?|solely|exclusively|first|sole|best|largest|highest|lowest|least"
    r"|most|may|might|can|could|should|required|optional|mandatory|before|after|cause[sd]?|because|more|less|fewer"
    r"|greater|smaller|higher|lower|increase[sd]?|decrease[sd]?|reduce[sd]?|than)\b",
    re.IGNORECASE,
)
"""Words that change what is asserted while most other words stay; a confirmed claim has them from the evidence."""
_VERBAL = ("ing", "ed", "ly", "es", "ize", "ise", "ate", "ify")

AVERAGED = (
    "cover_one", "cover_window", "cover_three", "cover_all", "exact_window", "exact_all", "idf_window", "in_two",
    "in_three", "pairs", "plain", "absent_specific", "names_window", "names_all", "numbers_window", "numbers_all",
    "cos_window", "cos_sentence", "cos_top", "soft_mean", "soft_low", "soft_absent", "top_margin", "inverted",
)  # fmt: skip
"""Features of a claim of several sentences that are the mean over them, weighted by their words."""
MINIMA = ("cover_window", "cover_all", "in_two", "cos_window", "soft_mean", "soft_low")
"""Features of which the sentence with the lowest value is also taken, as `NAME_low`."""
SUMMED = (
    "absent_words", "absent_named", "absent_numeric", "absent_verbal", "absent_other", "kin", "synonyms", "polar",
    "names_missing", "numbers_missing", "dates_missing", "rival_number", "antonym", "negation", "new_strong",
    "substituted",
)  # fmt: skip
"""Counts, added up over the sentences of a claim."""
FEATURE_NAMES = (
    *AVERAGED,
    *(f"{name}_low" for name in MINIMA),
    *SUMMED,
    "claim_words",
    "parts",
    "evidence_sentences",
    "chunks",
)
FEATURE_GROUPS: dict[str, tuple[str, ...]] = {
    "overlap in a window": (
        "cover_one", "cover_window", "cover_three", "exact_window", "idf_window", "top_margin", "cover_window_low",
    ),
    "overlap with everything": ("cover_all", "exact_all", "plain", "cover_all_low"),
    "runs of words": ("in_two", "in_three", "pairs", "in_two_low", "inverted", "substituted"),
    "kinds of absent words": (
        "absent_specific", "absent_words", "absent_named", "absent_numeric", "absent_verbal", "absent_other",
    ),
    "synonyms and prefixes": ("kin", "synonyms", "polar"),
    "names": ("names_window", "names_all", "names_missing"),
    "numbers and dates": ("numbers_window", "numbers_all", "numbers_missing", "dates_missing", "rival_number"),
    "antonym, negation, strong words": ("antonym", "negation", "new_strong"),
    "cosine": ("cos_window", "cos_sentence", "cos_top", "cos_window_low"),
    "soft alignment": ("soft_mean", "soft_low", "soft_absent", "soft_mean_low", "soft_low_low"),
    "sizes": ("claim_words", "parts", "evidence_sentences", "chunks"),
}  # fmt: skip
"""The features by what they come from: what the ablation switches off in turn."""


@dataclass(slots=True)
class Sentence:
    """A sentence of the evidence; offsets are into the text of its chunk."""

    chunk: int
    evidence_id: str
    start: int
    end: int
    text: str
    words: list[Word]
    positions: dict[str, list[int]]
    negations: int


class Window(NamedTuple):
    """A span of evidence that is close to a claim; `score` is overlap plus cosine, higher is closer."""

    evidence_id: str
    start: int
    end: int
    score: float
    overlap: float
    cosine: float


class ClaimFeatures(NamedTuple):
    """The features of a claim in the order of `FEATURE_NAMES`, the best windows, and what the checks found.

    A veto keeps a claim from being confirmed; an accusation decides against it.
    """

    features: Array
    windows: tuple[Window, ...]
    vetoes: tuple[str, ...]
    accusations: tuple[str, ...]


class EvidenceIndex:
    """The evidence of one case, cut into sentences and indexed."""

    def __init__(self, evidence: Iterable[tuple[str, str]], lexicon: Lexicon) -> None:
        """Cut and index the evidence.

        Args:
            evidence: Pairs of id and text, in the order of the case; texts may be empty.
            lexicon: The word lists for looser matches.

        """
        self.lexicon = lexicon
        self.sentences: list[Sentence] = []
        texts = []
        for chunk, (evidence_id, text) in enumerate(evidence):
            texts.append(text)
            for start, end in sentences(text):
                body = text[start:end]
                body_words = words(body)
                positions: dict[str, list[int]] = {}
                for i, word in enumerate(body_words):
                    positions.setdefault(word.stem, []).append(i)
                negations = len(_NEGATION.findall(body))
                self.sentences.append(Sentence(chunk, evidence_id, start, end, body, body_words, positions, negations))
        self.facts = FactTable(texts)
        self.plain_words = frozenset(PLAIN_WORD.findall("\n".join(texts).casefold()))
        self.sentences_by_stem: dict[str, list[int]] = {}
        for i, sentence in enumerate(self.sentences):
            for root in sentence.positions:
                self.sentences_by_stem.setdefault(root, []).append(i)
        self._stems_by_key: dict[str, set[str]] = {}
        for root in self.sentences_by_stem:
            for key in lexicon.keys(root):
                self._stems_by_key.setdefault(key, set()).add(root)
        count = len(self.sentences)
        self._idf = {
            root: math.log((count + 1) / (len(places) + 0.5)) + 0.3 for root, places in self.sentences_by_stem.items()
        }
        self._idf_of_unseen = math.log((count + 1) / 0.5) + 0.3
        self.chunks = len({sentence.chunk for sentence in self.sentences})

    def idf(self, root: str) -> float:
        """Return how rare a stem is among the sentences of the evidence."""
        return self._idf.get(root, self._idf_of_unseen)

    def related_stems(self, root: str) -> set[str]:
        """Return the stems of the evidence that share a prefix or a synonym group with the stem."""
        related: set[str] = set()
        for key in self.lexicon.keys(root):
            related |= self._stems_by_key.get(key, set())
        related.discard(root)
        return related


class _WordSets:
    """Weights of sets of a claim's content words, each set a bit mask."""

    def __init__(self, weights: Sequence[float]) -> None:
        self.weights = weights
        self._sums: dict[int, float] = {0: 0.0}

    def weight(self, exact: int, loose: int = 0) -> float:
        """Return the weight of the words in the masks, looser matches at `LOOSE_MATCH_WEIGHT`."""
        return self._sum(exact) + LOOSE_MATCH_WEIGHT * self._sum(loose & ~exact)

    @staticmethod
    def union(masks: Mapping[int, int], numbers: Iterable[int]) -> int:
        """Return the words that any of these sentences has."""
        result = 0
        for number in numbers:
            result |= masks.get(number, 0)
        return result

    def _sum(self, mask: int) -> float:
        total = self._sums.get(mask)
        if total is None:
            total, rest = 0.0, mask
            while rest:
                low = rest & -rest
                total += self.weights[low.bit_length() - 1]
                rest ^= low
            self._sums[mask] = total
        return total


@dataclass(slots=True)
class _ClaimSentence:
    """A sentence of a claim, matched with the sentences of the evidence.

    `content` has the positions of its content words. `exact` and `loose` say for a sentence of the evidence (by number)
    which of them it has, as a bit mask over `content`; `overlaps` has the weight of both.
    """

    text: str
    words: list[Word]
    content: list[int]
    total: float
    word_sets: _WordSets
    exact: dict[int, int]
    loose: dict[int, int]
    overlaps: dict[int, float]
    encoded: Encoded


class _Run(NamedTuple):
    """A run of neighbouring sentences of the evidence, by number, as compared with a sentence of a claim."""

    score: float
    overlap: float
    cosine: float
    first: int
    length: int

    @property
    def numbers(self) -> range:
        return range(self.first, self.first + self.length)


class _Part(NamedTuple):
    """The features of one sentence of a claim; `total` is the weight of its words."""

    values: dict[str, float]
    total: float
    windows: list[Window]
    vetoes: list[str]
    accusations: list[str]


class FeatureExtractor:
    """Compares claims with one index of evidence."""

    def __init__(self, index: EvidenceIndex, encoder: Encoder) -> None:
        self.index, self.encoder = index, encoder

    def extract(self, claim: str) -> ClaimFeatures | None:
        """Return the features of a claim; None where there is no evidence, or no content word in the claim."""
        parts = [part for start, end in sentences(claim) if (part := self._part(claim[start:end])) is not None]
        if not parts:
            return None
        total = sum(part.total for part in parts)
        values = {name: sum(part.total * part.values[name] for part in parts) / total for name in AVERAGED}
        values |= {f"{name}_low": min(part.values[name] for part in parts) for name in MINIMA}
        values |= {name: min(6.0, sum(part.values[name] for part in parts)) for name in SUMMED}
        values["claim_words"] = math.log1p(sum(part.values["count"] for part in parts))
        values["parts"] = min(4.0, float(len(parts)))
        values["evidence_sentences"] = math.log1p(len(self.index.sentences))
        values["chunks"] = math.log1p(self.index.chunks)
        best: dict[tuple[str, int, int], Window] = {}
        for part in parts:
            for window in part.windows:
                best.setdefault((window.evidence_id, window.start, window.end), window)
        ranked = sorted(best.values(), key=lambda window: -window.score)[:MAX_WINDOWS]
        return ClaimFeatures(
            np.array([values[name] for name in FEATURE_NAMES]),
            tuple(ranked),
            tuple(dict.fromkeys(code for part in parts for code in part.vetoes)),
            tuple(dict.fromkeys(code for part in parts for code in part.accusations)),
        )

    def _part(self, text: str) -> _Part | None:
        claim = self._match(text)
        if claim is None:
            return None
        runs = self._runs(claim)
        chosen = _disjoint(runs)
        values, vetoes, accusations = self._values(claim, runs, chosen)
        return _Part(values, claim.total, [self._window(run) for run in chosen], vetoes, accusations)

    def _match(self, text: str) -> _ClaimSentence | None:
        index = self.index
        claim_words = words(text)
        content = [i for i, word in enumerate(claim_words) if word.weight > 0]
        if not content or not index.sentences:
            return None
        exact: dict[int, int] = {}
        loose: dict[int, int] = {}
        for bit, i in enumerate(content):
            root = claim_words[i].stem
            for number in index.sentences_by_stem.get(root, ()):
                exact[number] = exact.get(number, 0) | 1 << bit
            for related in index.related_stems(root):
                for number in index.sentences_by_stem[related]:
                    loose[number] = loose.get(number, 0) | 1 << bit
        weights = [claim_words[i].weight for i in content]
        word_sets = _WordSets(weights)
        overlaps = {
            number: word_sets.weight(exact.get(number, 0), loose.get(number, 0))
            for number in exact.keys() | loose.keys()
        }
        encoded = self.encoder.encode(text)
        return _ClaimSentence(text, claim_words, content, sum(weights), word_sets, exact, loose, overlaps, encoded)

    def _candidates(self, overlaps: Mapping[int, float]) -> list[int]:
        """Return the sentences with most overlap and their neighbours; all of them where there are few."""
        count = len(self.index.sentences)
        if count <= 3 * CANDIDATE_SENTENCES:
            return list(range(count))
        top = sorted(overlaps, key=lambda number: (-overlaps[number], number))[:CANDIDATE_SENTENCES]
        top += list(range(CANDIDATE_SENTENCES - len(top)))
        candidates = set(top)
        for number in top:
            for neighbour in (number - 1, number + 1):
                if (
                    0 <= neighbour < count
                    and self.index.sentences[neighbour].chunk == self.index.sentences[number].chunk
                ):
                    candidates.add(neighbour)
        return sorted(candidates)

    def _runs(self, claim: _ClaimSentence) -> list[_Run]:
        """Return every run of candidate sentences, best first."""
        candidates = self._candidates(claim.overlaps)
        sums = {number: self.encoder.encode(self.index.sentences[number].text).total for number in candidates}
        claim_vector = claim.encoded.total
        claim_length = float(np.linalg.norm(claim_vector)) + 1e-9
        spans, vectors = [], []
        for first in candidates:
            vector, exact, loose = np.zeros_like(claim_vector), 0, 0
            for length in range(1, MAX_WINDOW_SENTENCES + 1):
                number = first + length - 1
                if number not in sums or self.index.sentences[number].chunk != self.index.sentences[first].chunk:
                    break
                # The vector of a window is the sum over its sentences: encoded jointly they rank no better.
                vector = vector + sums[number]
                exact, loose = exact | claim.exact.get(number, 0), loose | claim.loose.get(number, 0)
                spans.append((claim.word_sets.weight(exact, loose) / claim.total, first, length))
                vectors.append(vector)
        stacked = np.stack(vectors)
        cosines = stacked @ claim_vector / (np.linalg.norm(stacked, axis=1) + 1e-9) / claim_length
        runs = [
            _Run(overlap + cosine - 0.02 * length, overlap, cosine, first, length)
            for (overlap, first, length), cosine in zip(spans, cosines.tolist(), strict=True)
        ]
        runs.sort(key=lambda run: (-run.score, run.first, run.length))
        return runs

    def _window(self, run: _Run) -> Window:
        first, last = self.index.sentences[run.first], self.index.sentences[run.numbers[-1]]
        scores = round(run.score, 4), round(run.overlap, 4), round(run.cosine, 4)
        return Window(first.evidence_id, first.start, last.end, *scores)

    def _values(
        self, claim: _ClaimSentence, runs: Sequence[_Run], chosen: Sequence[_Run]
    ) -> tuple[dict[str, float], list[str], list[str]]:
        """Return the features of a sentence of a claim, its vetoes and its accusations."""
        index, lexicon = self.index, self.index.lexicon
        claim_words, content, sets, total = claim.words, claim.content, claim.word_sets, claim.total
        top = max(runs, key=lambda run: run.overlap - 0.02 * run.length)
        inside = sorted({number for run in chosen for number in run.numbers})
        window_exact, window_loose = sets.union(claim.exact, top.numbers), sets.union(claim.loose, top.numbers)
        all_exact, all_loose = sets.union(claim.exact, claim.exact), sets.union(claim.loose, claim.loose)
        three_exact, three_loose = sets.union(claim.exact, inside), sets.union(claim.loose, inside)
        nearest = [index.sentences[number] for number in inside]
        in_two, in_three = _shared_runs(claim_words, nearest)
        pairs = 0
        for mask in claim.exact.values():
            pairs |= mask & mask >> 1
        absent = [bit for bit in range(len(content)) if not (all_exact | all_loose) >> bit & 1]
        ranked = sorted(claim.overlaps.values(), reverse=True)
        rarity = [index.idf(claim_words[i].stem) for i in content]
        rarity_matched = sum(
            value * (1.0 if window_exact >> bit & 1 else LOOSE_MATCH_WEIGHT if window_loose >> bit & 1 else 0.0)
            for bit, value in enumerate(rarity)
        )
        sentence_cosines = sorted((run.cosine for run in runs if run.length == 1), reverse=True)
        alignment = self._alignment(claim, inside)
        absent_from_windows = [bit for bit in range(len(content)) if not three_exact >> bit & 1]
        plain = set(PLAIN_WORD.findall(claim.text.casefold()))
        names = [bit for bit, i in enumerate(content) if i > 0 and claim_words[i].text[0].isupper()]
        name_weights = [sets.weights[bit] for bit in names]
        absent_specific = [bit for bit in absent if claim_words[content[bit]].stem not in lexicon.groups]
        values = {
            "cover_one": (ranked[0] if ranked else 0.0) / total,
            "cover_window": sets.weight(window_exact, window_loose) / total,
            "cover_three": sets.weight(three_exact, three_loose) / total,
            "cover_all": sets.weight(all_exact, all_loose) / total,
            "exact_window": sets.weight(window_exact) / total,
            "exact_all": sets.weight(all_exact) / total,
            "idf_window": rarity_matched / (sum(rarity) or 1.0),
            "in_two": in_two / len(claim_words),
            "in_three": in_three / len(claim_words),
            "pairs": pairs.bit_count() / max(1, len(content) - 1),
            "plain": len(plain & index.plain_words) / len(plain) if plain else 1.0,
            "absent_specific": sum(sets.weights[bit] for bit in absent_specific) / total,
            "names_window": _share(name_weights, [bool(three_exact >> bit & 1) for bit in names]),
            "names_all": _share(name_weights, [bool(all_exact >> bit & 1) for bit in names]),
            "cos_window": max(run.cosine for run in runs),
            "cos_sentence": sentence_cosines[0],
            "cos_top": float(np.mean(sentence_cosines[:3])),
            "soft_mean": float(alignment.mean()),
            "soft_low": float(np.sort(alignment)[:3].mean()),
            "soft_absent": float((1 - alignment[absent_from_windows]).sum() / len(content))
            if absent_from_windows
            else 0.0,
            "top_margin": ((ranked[0] if ranked else 0.0) - (ranked[1] if len(ranked) > 1 else 0.0)) / total,
            "inverted": _inverted(claim_words, index.sentences[top.first]),
            "count": float(len(content)),
            "absent_words": min(4.0, sum(sets.weights[bit] >= 1 for bit in absent)),
            "names_missing": min(3.0, sum(not (all_exact | all_loose) >> bit & 1 for bit in names)),
            "substituted": min(3.0, _substituted(claim, three_exact | three_loose, three_exact, nearest)),
        }
        values |= _word_kinds(claim, all_exact, all_loose, lexicon)
        fact_values, vetoes, accusations = self._check_facts(claim.text, nearest, values["cover_window"])
        word_values, word_vetoes = self._check_words(claim, index.sentences[top.first : top.first + top.length])
        values |= fact_values | word_values
        vetoes += word_vetoes
        if values["names_missing"]:
            vetoes.append("name_absent")
        return values, vetoes, accusations

    def _alignment(self, claim: _ClaimSentence, inside: Sequence[int]) -> Array:
        """Return for each content word of the claim the cosine of the nearest word in the windows."""
        claim_vectors = claim.encoded.by_word[list(claim.content)].astype(np.float32)
        evidence_vectors = np.concatenate(
            [self.encoder.encode(self.index.sentences[number].text).by_word for number in inside]
        )
        if not len(evidence_vectors):
            return np.zeros(len(claim.content))
        nearest: Array = (claim_vectors @ evidence_vectors.astype(np.float32).T).max(axis=1)
        return nearest

    def _check_facts(
        self, text: str, nearest: Sequence[Sentence], coverage: float
    ) -> tuple[dict[str, float], list[str], list[str]]:
        """Compare the numbers, dates and units of a claim with the evidence."""
        vetoes: list[str] = []
        accusations: list[str] = []
        claim_facts = facts(text)
        window_facts = [fact for sentence in nearest for fact in facts(sentence.text)]
        fractions = any(FRACTION.search(sentence.text) for sentence in nearest)
        absent = {"number": 0.0, "date": 0.0}
        in_window = rivals = 0.0
        for fact in claim_facts:
            in_window += any(same_fact(fact, other) for other in window_facts)
            if self.index.facts.contains(fact, text):
                continue
            absent[fact.kind] += 1
            vetoes.append(f"{fact.kind}_absent")
            # A figure of the same kind in the windows that the claim does not mention: what it may have replaced.
            has_rival = any(
                other.kind == fact.kind
                and other.dimension == fact.dimension
                and not any(same_fact(claimed, other) for claimed in claim_facts)
                for other in window_facts
            )
            rivals += has_rival
            if (
                has_rival
                and coverage >= MIN_COVERAGE
                and (code := self._accusation(text, fact, window_facts, fractions))
            ):
                accusations.append(code)
        count = len(claim_facts)
        values = {
            "numbers_window": in_window / count if count else 1.0,
            "numbers_all": 1 - sum(absent.values()) / count if count else 1.0,
            "numbers_missing": min(3.0, absent["number"]),
            "dates_missing": min(3.0, absent["date"]),
            "rival_number": min(3.0, rivals),
        }
        return values, vetoes, accusations

    def _accusation(self, text: str, fact: Fact, window_facts: Sequence[Fact], fractions: bool) -> str:
        """Return the reason code if no computation explains a fact that the evidence lacks; else an empty string."""
        if fact.kind == "date":
            return "date_absent" if fact.day[0] and fact.dimension != "decade" else ""
        if (fact.value <= 12 and not fact.dimension) or fact.dimension == "ordinal":
            return ""
        context = text[max(0, fact.start - 40) : fact.end + 30]
        if DERIVED_FIGURE.search(context) or is_derivable(fact, window_facts, fractions):
            return ""
        if fact.dimension and any(
            other.dimension == fact.dimension and 0.85 < other.value / (fact.value or 1.0) < 1.18
            for other in window_facts
        ):
            return ""  # rounded, or converted from another unit
        return "unit_differs" if self.index.facts.has_numeral(fact, text) else "number_absent"

    def _check_words(self, claim: _ClaimSentence, window: Sequence[Sentence]) -> tuple[dict[str, float], list[str]]:
        """Compare antonyms, negation, strong words and word order of a claim with the best window."""
        vetoes: list[str] = []
        antonyms = self._antonyms(claim.words, window)
        negations = len(_NEGATION.findall(claim.text))
        body = " ".join(sentence.text for sentence in window).casefold()
        stems = {word.stem for word in claim.words}
        nearest = max(window, key=lambda sentence: len(stems & sentence.positions.keys()))
        strong = Counter(match.group().casefold() for match in _STRENGTH.finditer(claim.text))
        if antonyms:
            vetoes.append("antonym")
        if negations != nearest.negations:
            vetoes.append("negation")
        if _more_often(strong, nearest.text.casefold()):
            vetoes.append("strength")
        if _inverted(claim.words, nearest):
            vetoes.append("order")
        values = {
            "antonym": min(3.0, antonyms),
            "negation": float((negations > 0) != (window[0].negations > 0)),
            "new_strong": min(4.0, float(_more_often(strong, body))),
        }
        return values, vetoes

    def _antonyms(self, claim_words: Sequence[Word], window: Sequence[Sentence]) -> float:
        """Return how many antonyms the window has of words of the claim that it lacks itself."""
        opposites, count = self.index.lexicon.opposites, 0
        claim_stems = {word.stem for word in claim_words}
        for word in claim_words:
            others = opposites.get(word.stem)
            if others and not any(word.stem in sentence.positions for sentence in window):
                count += any(other in sentence.positions for other in others - claim_stems for sentence in window)
        return float(count)


def _more_often(counts: Mapping[str, int], text: str) -> int:
    """Return how many of the words occur less often in the text than counted."""
    return sum(len(re.findall(rf"\b{word}\b", text)) < count for word, count in counts.items())


def _disjoint(runs: Sequence[_Run]) -> list[_Run]:
    """Return the best runs that share no sentence."""
    chosen: list[_Run] = []
    used: set[int] = set()
    for run in runs:
        if used.isdisjoint(run.numbers):
            chosen.append(run)
            used.update(run.numbers)
            if len(chosen) == MAX_WINDOWS:
                break
    return chosen


def _share(weights: Sequence[float], matched: Sequence[bool]) -> float:
    total = sum(weights)
    return sum(weight for weight, match in zip(weights, matched, strict=True) if match) / total if total else 1.0


def _shared_runs(claim_words: Sequence[Word], nearest: Sequence[Sentence]) -> tuple[int, int]:
    """Return how many words of the claim are in a run of two or more, and of three or more, that a sentence shares."""
    best = [0] * len(claim_words)
    for sentence in nearest:
        previous: dict[int, int] = {}
        for i, word in enumerate(claim_words):
            current = {place: previous.get(place - 1, 0) + 1 for place in sentence.positions.get(word.stem, ())}
            if current:
                best[i] = max(best[i], *current.values())
            previous = current
    two, three = [False] * len(claim_words), [False] * len(claim_words)
    for i, length in enumerate(best):
        if length >= 2:
            two[i] = two[i - 1] = True
        if length >= 3:
            three[i] = three[i - 1] = three[i - 2] = True
    return sum(two), sum(three)


def _inverted(claim_words: Sequence[Word], sentence: Sentence) -> float:
    """Return the share of neighbouring shared words that the sentence has in the other order."""
    places = [
        positions[0]
        for word in claim_words
        if word.weight > 0 and len(positions := sentence.positions.get(word.stem, [])) == 1
    ]
    if len(places) < 2:
        return 0.0
    return sum(first > second for first, second in pairwise(places)) / (len(places) - 1)


def _substituted(claim: _ClaimSentence, matched: int, exact: int, nearest: Sequence[Sentence]) -> float:
    """Count the content words that the windows lack although both their neighbours are close together there."""
    content, count = claim.content, 0
    for bit in range(1, len(content) - 1):
        if matched >> bit & 1 or not (exact >> (bit - 1) & 1 and exact >> (bit + 1) & 1):
            continue
        left, right = claim.words[content[bit - 1]].stem, claim.words[content[bit + 1]].stem
        count += any(
            0 < second - first <= 5
            for sentence in nearest
            for first in sentence.positions.get(left, ())
            for second in sentence.positions.get(right, ())
        )
    return float(count)


def _word_kinds(claim: _ClaimSentence, exact: int, loose: int, lexicon: Lexicon) -> dict[str, float]:
    """Count the words of the claim by how the evidence matches them, and those it lacks by kind."""
    values = dict.fromkeys(
        ("absent_named", "absent_numeric", "absent_verbal", "absent_other", "kin", "synonyms", "polar"), 0.0
    )
    for bit, i in enumerate(claim.content):
        word = claim.words[i]
        if exact >> bit & 1:
            continue
        if loose >> bit & 1:
            values["synonyms" if word.stem in lexicon.groups else "kin"] += 1
        elif word.stem[0].isdigit():
            values["absent_numeric"] += 1
        elif word.text[0].isupper() and i > 0:
            values["absent_named"] += 1
        elif word.text.endswith(_VERBAL):
            values["absent_verbal"] += 1
        else:
            values["absent_other"] += 1
        values["polar"] += word.stem in lexicon.opposites
    return values

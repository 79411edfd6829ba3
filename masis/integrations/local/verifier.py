"""The verifier role filled by a local model, which scores each claim against at most three windows
of evidence.

Code derives the verdict from the scores, and abstains between the thresholds (docs/models.md):

    supported      a window supports it from ``local_supported_from`` on, and none contradicts it
    contradicted   a window that shares words with it contradicts it from
                   ``local_contradicted_from`` on, and none supports it
    unsupported    no window supports it beyond ``local_unsupported_to``
    unverifiable   everything else; the model can't decide, which doesn't mean the claim is wrong

A window that is too long for the model together with the claim isn't scored. It confirms nothing,
and no claim counts as unsupported while a chosen window is unread.

A window is a run of neighboring sentences of one chunk, sized for such models and chosen by the
words it shares with the claim. In scripts without spaces between words, each character counts as a
word.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

from masis.audit.claims import ClaimResults, one_check_each
from masis.audit.sentences import split_sentences
from masis.audit.text.assertions import sentence_claims
from masis.errors import StepError
from masis.integrations.local.scoring import LocalScorer
from masis.llm.roles.verdicts import unscored_batch, unverifiable
from masis.llm.roles.verifier import without_markers
from masis.schema.audit import (
    CitationAudit,
    Claim,
    ClaimCheck,
    Contradiction,
    JudgedBy,
    MissingPoint,
    Quote,
    ReferenceCheck,
    ReferenceFinding,
)
from masis.schema.case import ClaimVerdict, Evidence
from masis.schema.run import LocalModel
from masis.settings import Settings

MOST = 3
"""Maximum number of windows scored for each claim."""
WINDOW_WORDS = 180
"""Maximum number of words per window. With a claim that's about 300 tokens, within the 512 that
most such models were trained on.
"""
STRIDE = 0.5
"""The offset between windows as a share of a window. Text at the end of one is in the middle of the
next.
"""

_WORD = re.compile(r"[぀-ヿ㐀-䶿一-鿿฀-๿]|[^\W_]+")


class Window(NamedTuple):
    """A part of a chunk, where ``evidence.text[start:end] == text``. ``shared`` is the share (0 to
    1) of the claim's words in it.

    ``supports`` and ``contradicts`` are the model's scores for the claim, once it was scored.
    """

    evidence_id: str
    start: int
    end: int
    text: str
    shared: float = 0.0
    words: frozenset[str] = frozenset()
    supports: float = 0.0
    contradicts: float | None = None


def words_of(text: str) -> list[str]:
    """Return the words of a text, case folded."""
    return [word.casefold() for word in _WORD.findall(text)]


@lru_cache(maxsize=256)
def _evidence_windows(evidence_id: str, text: str) -> tuple[Window, ...]:
    pieces = [
        piece for span in split_sentences(text) for piece in _pieces(text, span.start, span.end)
    ]
    windows, first = list[Window](), 0
    while first < len(pieces):
        last, count = first, 0
        while last < len(pieces) and (last == first or count + pieces[last][2] <= WINDOW_WORDS):
            count += pieces[last][2]
            last += 1
        start, end = pieces[first][0], pieces[last - 1][1]
        words = frozenset(words_of(text[start:end]))
        windows.append(Window(evidence_id, start, end, text[start:end], words=words))
        if last >= len(pieces):
            break
        skipped, following = 0, first
        while following < last - 1 and skipped < count * STRIDE:
            skipped += pieces[following][2]
            following += 1
        first = max(following, first + 1)
    return tuple(windows)


def _pieces(text: str, start: int, end: int) -> Iterator[tuple[int, int, int]]:
    """Yield a sentence with its number of words, split into pieces if it's longer than a window."""
    words = list(_WORD.finditer(text, start, end))
    if len(words) <= WINDOW_WORDS:
        if words:
            yield start, end, len(words)
        return
    for first in range(0, len(words), WINDOW_WORDS):
        part = words[first : first + WINDOW_WORDS]
        yield part[0].start(), part[-1].end(), len(part)


def choose(
    claim: str, evidence: Sequence[Evidence], cited: Sequence[str] = ()
) -> tuple[Window, ...]:
    """Choose the windows to score a claim against, in order of shared words.

    Rare words count more than common ones. The best window is always included, then the best window
    of each cited chunk, so that a verdict on a citation is based on the cited chunk, then the next
    best.
    """
    windows = [
        window
        for chunk in evidence
        if chunk.text.strip()
        for window in _evidence_windows(chunk.id, chunk.text)
    ]
    claim_words = set(words_of(claim))
    if not windows or not claim_words:
        return ()
    having = Counter(word for window in windows for word in window.words & claim_words)
    weight = {
        word: (
            math.log(1 + len(windows) / having[word])
            if word in having
            else math.log(2 + len(windows))
        )
        for word in claim_words
    }
    total_weight = sum(weight.values())
    scored = [
        window._replace(
            shared=sum(weight[word] for word in window.words & claim_words) / total_weight
        )
        for window in windows
    ]
    ranked = sorted(range(len(scored)), key=lambda index: (-scored[index].shared, index))
    selected = ranked[:1]
    best_of: dict[str, int] = {}
    for index in ranked:
        best_of.setdefault(scored[index].evidence_id, index)
    best_cited = sorted(
        (best_of[chunk] for chunk in dict.fromkeys(cited) if chunk in best_of), key=ranked.index
    )
    selected += [index for index in best_cited if index not in selected][: MOST - len(selected)]
    selected += [index for index in ranked if index not in selected][: MOST - len(selected)]
    return tuple(scored[index] for index in selected)


# The verdicts.

VERSION = "2"
"""Increased whenever the same scores lead to different windows or verdicts."""


def version_of(sha256: str) -> str:
    """Return the version recorded with verdicts, made of the version of these rules and the digest
    of the weights.
    """
    return f"local/{VERSION}+{sha256[:12]}"


SHARED_LEAST = 0.3
"""Minimum share of a claim's weighted words that a contradicting window must contain. Entailment
models call texts about different things contradictory, because SNLI and MNLI consist of pairs about
one scene.
"""
DISAGREE_FROM = 0.5
"""From this contradiction score on, the windows of a supported claim disagree, and the verdict is
an abstention.
"""

UNSUPPORTED_MOST = 0.5
TOO_LONG = (
    "Not confirmed: a passage is longer, with the claim, than the verifier model reads at once."
)

Missing = Callable[[str, str, Sequence[ClaimCheck], Sequence[Evidence]], tuple[MissingPoint, ...]]
"""Finds the points missing from an answer, from question, answer, checks and evidence."""


@dataclass(frozen=True)
class LocalRole:
    """The common parts of all local verifiers.

    ``missing`` finds the points left out of an answer, without the model.
    """

    scorer: LocalScorer
    settings: Settings
    missing: Missing | None = None

    @property
    def judged_by(self) -> JudgedBy:
        """The model with the version of the rules, and the start of its digest."""
        return JudgedBy(model=self.scorer.model.name, version=version_of(self.scorer.model.sha256))

    @property
    def languages(self) -> frozenset[str] | None:
        """The languages of the model's card, or None if it lists none and any may be used."""
        model_languages = self.scorer.model.languages
        return None if model_languages is None else frozenset(model_languages)

    @property
    def local_model(self) -> LocalModel:
        """The record of the model's file for a run."""
        return self.scorer.model

    def extract(self, answer: str, audit: CitationAudit, query: str) -> tuple[Claim, ...]:
        """Return a claim for each sentence that asserts something."""
        return sentence_claims(audit)

    def add_missing_points(
        self,
        checks: tuple[ClaimCheck, ...],
        query: str,
        answer: str,
        evidence: Sequence[Evidence],
        *,
        completeness: bool,
    ) -> ClaimResults:
        """Return the checks, with the missing points if ``completeness`` is requested."""
        return ClaimResults(
            checks,
            self.missing(query, answer, checks, evidence) if completeness and self.missing else (),
        )


@dataclass(frozen=True)
class LocalVerifier(LocalRole):
    """Judges each sentence that asserts something.

    ``settings`` hold the thresholds: ``local_supported_from``, ``local_unsupported_to``,
    ``local_contradicted_from``.
    """

    def verify(
        self, claims: Sequence[Claim], evidence: Sequence[Evidence]
    ) -> tuple[ClaimCheck, ...]:
        """Return one check for each claim, in order. Claims are unscored if the model fails on
        them.
        """
        windows_of = [choose(statement_of(claim), evidence, claim.cited) for claim in claims]
        pairs = [
            (window.text, statement_of(claim))
            for claim, windows in zip(claims, windows_of, strict=True)
            for window in windows
        ]
        try:
            scores = iter(self.scorer.score(pairs))
        except StepError as error:
            return tuple(
                judgement.check
                for judgement in unscored_batch(claims, error, self.scorer.model.name)
            )
        checks = []
        for claim, windows in zip(claims, windows_of, strict=True):
            scored_windows = [(window, next(scores)) for window in windows]
            scored = [
                window._replace(**score._asdict())
                for window, score in scored_windows
                if score is not None
            ]
            unread = frozenset(
                window.evidence_id for window, score in scored_windows if score is None
            )
            checks.append(self._check(claim, scored, evidence, unread))
        return tuple(checks)

    def check(
        self,
        claims: Sequence[Claim],
        query: str,
        answer: str,
        evidence: Sequence[Evidence],
        *,
        completeness: bool,
    ) -> ClaimResults:
        """Check every claim and, if requested, list the missing points."""
        checks = one_check_each(claims, self.verify(claims, evidence))
        return self.add_missing_points(checks, query, answer, evidence, completeness=completeness)

    def _check(
        self,
        claim: Claim,
        scored: Sequence[Window],
        evidence: Sequence[Evidence],
        unread: frozenset[str],
    ) -> ClaimCheck:
        if not scored:
            nothing = unverifiable((claim,), self.scorer.model.name)[0].check
            return nothing.model_copy(update={"issue": TOO_LONG}) if unread else nothing
        verdict = verdict_of(scored, self.settings)
        if verdict == "unsupported" and unread:
            verdict = "unverifiable"
        fields: dict[str, Any] = {
            "claim": claim,
            "verdict": verdict,
            "references": tuple(
                self._reference(cited, claim, scored, evidence, unread) for cited in claim.cited
            ),
            "judged_by": self.scorer.model.name,
            "confidence": None,
        }
        best, worst = max(window.supports for window in scored), _most_contradicting(scored)
        # A negative verdict never has more than 0.5 support.
        fields["support"] = (
            min(best, UNSUPPORTED_MOST) if verdict in ("contradicted", "unsupported") else best
        )
        highest, supported_from = f"highest support {best:.2f}", self.settings.local_supported_from
        if verdict == "supported":
            supporting = self._supporting(scored)
            fields["confidence"] = best
            fields["sources"] = tuple(dict.fromkeys(window.evidence_id for window in supporting))
            fields["quotes"] = tuple(
                Quote(
                    evidence_id=window.evidence_id,
                    start=window.start,
                    end=window.end,
                    text=window.text,
                    score=window.supports,
                )
                for window in supporting
            )
        elif verdict == "contradicted" and worst is not None:
            fields["confidence"] = worst.contradicts
            fields["sources"] = (worst.evidence_id,)
            fields["contradictions"] = (_stated_contradiction(claim, worst),)
            fields["issue"] = (
                "The verifier model reads a passage of the evidence as a contradiction of this."
            )
        elif verdict == "unsupported":
            fields["confidence"] = 1 - best
            fields["issue"] = (
                f"No passage of the evidence supports this by the verifier model ({highest})."
            )
        elif unread:
            fields["issue"] = TOO_LONG
        elif best >= supported_from:
            fields["issue"] = (
                "Not confirmed: one passage supports this and another contradicts it, by the"
                " verifier model."
            )
        else:
            fields["issue"] = (
                f"Not confirmed: the verifier model can't decide ({highest}; it confirms from"
                f" {supported_from:.2f} on)."
            )
        return ClaimCheck(**fields)

    def _supporting(self, scored: Sequence[Window]) -> list[Window]:
        supporting = [
            window for window in scored if window.supports >= self.settings.local_supported_from
        ]
        return sorted(supporting, key=lambda window: -window.supports)

    def _reference(
        self,
        cited: str,
        claim: Claim,
        scored: Sequence[Window],
        evidence: Sequence[Evidence],
        unread: frozenset[str],
    ) -> ReferenceCheck:
        cited_windows = [window for window in scored if window.evidence_id == cited]
        best = max((window.supports for window in cited_windows), default=None)

        def finding(
            name: ReferenceFinding, reason: str, better: str | None = None
        ) -> ReferenceCheck:
            return ReferenceCheck(
                evidence_id=cited, finding=name, support=best, better=better, reason=reason
            )

        verdict = verdict_of(cited_windows, self.settings) if cited_windows else None
        if cited in unread and verdict in (None, "unsupported"):
            return finding(
                "unchecked",
                "A passage of this chunk is longer than the verifier model reads at once.",
            )
        if best is None:
            text = next((chunk.text for chunk in evidence if chunk.id == cited), "")
            return finding(
                "unchecked",
                (
                    "At most three passages are checked for each claim, and none of this chunk was"
                    " among them."
                    if text.strip()
                    else "This chunk has no text to check against."
                ),
            )
        if verdict == "supported":
            return finding("supports", "It supports this.")
        supporting = self._supporting(scored)
        others = [window.evidence_id for window in supporting if window.evidence_id in claim.cited]
        if verdict == "contradicted":
            return finding("contradicts", "It contradicts this.")
        if others and verdict == "unsupported":
            return finding("redundant", f"{others[0]} supports this without it.")
        if verdict == "unsupported" and supporting:
            better = supporting[0].evidence_id
            return finding(
                "misattributed", f"{cited} does not support this; {better} does.", better
            )
        if verdict == "unsupported":
            return finding("unsupported", "It does not support this.")
        return finding("unchecked", "The model could not decide whether it supports this.")


def statement_of(claim: Claim) -> str:
    """Return the claim without citation markers, in its self-contained wording if it has one."""
    return claim.statement or " ".join(without_markers(claim).split())


def verdict_of(scored: Sequence[Window], settings: Settings) -> ClaimVerdict:
    """Derive the verdict from the scores of a claim's windows and the thresholds."""
    best = max(window.supports for window in scored)
    worst = _most_contradicting(scored)
    against = worst.contradicts or 0.0 if worst else 0.0
    if best >= settings.local_supported_from:
        return "supported" if against < DISAGREE_FROM else "unverifiable"
    if worst is not None and against >= settings.local_contradicted_from and best < DISAGREE_FROM:
        return "contradicted"
    return "unsupported" if best <= settings.local_unsupported_to else "unverifiable"


def _most_contradicting(scored: Sequence[Window]) -> Window | None:
    """Return the most contradicting window among those about the same topic, or None."""
    related = [
        window
        for window in scored
        if window.contradicts is not None and window.shared >= SHARED_LEAST
    ]
    return max(related, key=lambda window: window.contradicts or 0.0, default=None)


def _stated_contradiction(claim: Claim, worst: Window) -> Contradiction:
    return Contradiction(
        kind="stated",
        claim_start=0,
        claim_end=len(claim.text),
        claim_text=claim.text,
        evidence_id=worst.evidence_id,
        evidence_start=worst.start,
        evidence_end=worst.end,
        evidence_text=worst.text,
        reason="The verifier model reads this passage as a contradiction of the claim.",
        strength=worst.contradicts or 0.0,
    )

"""Finds an answer's claims with a model, judges each one, and finds missing points.

For a short answer one call does all three, and its reply is a list of claims with their verdicts.
In steps, there is one call for the claims, one for each batch of verdicts and one for missing
points, in parallel. Draft critique always works in steps (DRAFT-CRITIQUE-EXTRACT,
DRAFT-CRITIQUE-VERIFY, DRAFT-CRITIQUE-COMPLETENESS; extractions are cached, DRAFT-CRITIQUE-CACHE;
DRAFT-CRITIQUE-TEMPERATURES), and so do long answers and evidence that exceeds the model's context.

Claims that the list leaves out and verdicts that can't be confirmed are asked for once more, and
stay "not confirmed" if the second reply is no better.
"""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple

from masis.audit.calculations import has_valid_calculation
from masis.audit.claims import ClaimResults
from masis.audit.control.concurrency import run_concurrently
from masis.audit.measures.scores import normalize_score
from masis.audit.text.assertions import is_assertion
from masis.audit.text.quotes import locate_quote
from masis.errors import ContextFull, StepError
from masis.llm.providers.provider_errors import LARGER_CONTEXT
from masis.llm.roles.claim_places import in_order, place_claims, uncovered_assertions
from masis.llm.roles.evidence_window import EvidenceWindow, ask_within_context
from masis.llm.roles.prompting import (
    Asker,
    RolePrompt,
    Section,
    answer,
    chunks,
    compose,
    load,
    question,
    question_and_evidence,
    rows,
)
from masis.llm.roles.replies import (
    CheckedClaimsReply,
    ClaimsReply,
    CompletenessReply,
    LeftOut,
    ListedClaim,
    VerdictsReply,
)
from masis.llm.roles.verdicts import (
    Chunks,
    ClaimJudgement,
    for_partial_evidence,
    judge,
    judge_by_number,
    merge_judgements,
    more_serious,
    unscored_batch,
    unverifiable,
    with_references,
)
from masis.schema.audit import (
    AbsentFigure,
    CitationAudit,
    Claim,
    ClaimCheck,
    JudgedBy,
    MissingPoint,
)
from masis.schema.base import Unscored
from masis.schema.case import Evidence
from masis.settings import Settings


class Extractions:
    """A thread-safe cache of the latest ``size`` extractions, by answer, question, model and
    prompt.

    The claims of an answer that was extracted before aren't extracted again (DRAFT-CRITIQUE-CACHE).
    """

    def __init__(self, size: int = 512) -> None:
        self._size = size
        self._cached: dict[str, Sequence[ListedClaim]] = {}
        self._lock = threading.Lock()

    @staticmethod
    def key(*parts: str) -> str:
        """The key for these texts."""
        return hashlib.sha256(
            "\0".join(f"{len(part)}:{part}" for part in parts).encode()
        ).hexdigest()

    def get(self, key: str) -> Sequence[ListedClaim] | None:
        """Return the cached extraction, or None if there is none."""
        with self._lock:
            if key in self._cached:
                self._cached[key] = self._cached.pop(
                    key
                )  # moved to the end, as the most recently used
            return self._cached.get(key)

    def keep(self, key: str, listed: Sequence[ListedClaim]) -> None:
        """Store an extraction; the least recently used one is dropped when the cache is full."""
        with self._lock:
            self._cached[key] = listed
            if len(self._cached) > self._size:
                del self._cached[next(iter(self._cached))]


def located_claims(
    listed: Sequence[ListedClaim], answer: str, audit: CitationAudit
) -> tuple[Claim, ...]:
    """Return the listed claims in the order of the answer, and assertions that the list omits."""
    located = place_claims(listed, answer, audit)
    return in_order([*located, *uncovered_assertions(located, audit)])


CLAIMS, EXTRACT, VERIFY, COMPLETENESS = "claims", "claims_extract", "claims_verify", "completeness"
MAX_MISSING = 8
CLAIMS_TOKENS, CLAIMS_TOKENS_PER_SENTENCE = 1_500, 700
MIN_EXTRACT_TOKENS, MAX_EXTRACT_TOKENS = 1_000, 8_000
VERIFY_TOKENS, VERIFY_TOKENS_PER_CLAIM = 300, 450
COMPLETENESS_TOKENS = 1_500
CLAIMS_TEMPERATURE = EXTRACT_TEMPERATURE = VERIFY_TEMPERATURE = 0.1
COMPLETENESS_TEMPERATURE = 0.2

EXTRACTIONS = Extractions()
"""The extractions of this process."""


AbsentFigures = Callable[[Sequence[Claim], Sequence[Evidence]], Sequence[tuple[AbsentFigure, ...]]]
"""Finds, for each claim, the figures that the evidence doesn't have."""


def in_digits(figures: Sequence[AbsentFigure]) -> tuple[AbsentFigure, ...]:
    """Return the figures that are written in digits."""
    return tuple(figure for figure in figures if any(map(str.isdigit, figure.claim_text)))


class _CallResult(NamedTuple):
    """The result of one of several parallel calls."""

    judged: tuple[ClaimJudgement, ...] = ()
    missing: tuple[MissingPoint, ...] = ()
    replied: bool = True


@dataclass(frozen=True)
class ModelVerifier:
    """Finds the assertions of an answer and judges each one by the evidence.

    The setting ``claims_batch`` limits the claims in one call; without ``check_factual`` no claims
    are extracted. With ``in_steps`` claims, verdicts and missing points always have separate calls.
    ``absent_figures`` finds figures of claims that the evidence lacks. If the model calls such a
    claim supported without a calculation, the figures are marked.
    """

    asker: Asker
    settings: Settings
    extractions: Extractions = field(default=EXTRACTIONS, repr=False)
    in_steps: bool = False
    absent_figures: AbsentFigures | None = field(default=None, repr=False)

    @property
    def judged_by(self) -> JudgedBy:
        """The model, and the version of the prompts."""
        return JudgedBy(
            model=self.asker.name, version=load(VERIFY if self.in_steps else CLAIMS).version
        )

    def check_answer(
        self,
        answer: str,
        audit: CitationAudit,
        query: str,
        evidence: Sequence[Evidence],
        *,
        completeness: bool,
    ) -> tuple[tuple[Claim, ...], ClaimResults]:
        """Return the claims of the answer with their verdicts and, on request, the missing points.

        One call does this if the answer and the evidence are short enough.

        Raises:
            ProviderFailed: The provider failed.
            BadReply: The reply has no list of claims (CRITIC-ERR-001).

        """
        case_chunks = Chunks(evidence)
        sentences = sum(map(is_assertion, audit.sentences))
        fits = 0 < sentences <= self.settings.claims_batch
        if fits and case_chunks.readable and self.settings.check_factual and not self.in_steps:
            # The calls in steps send as much of the evidence as fits.
            with suppress(ContextFull):
                return self._check_in_one_call(
                    answer, audit, query, evidence, case_chunks, completeness
                )
        claims = self.extract(answer, audit, query)
        return claims, self.check(claims, query, answer, evidence, completeness=completeness)

    def _check_in_one_call(
        self,
        text: str,
        audit: CitationAudit,
        query: str,
        evidence: Sequence[Evidence],
        case_chunks: Chunks,
        completeness: bool,
    ) -> tuple[tuple[Claim, ...], ClaimResults]:
        reply = self.asker.ask(
            claims_prompt(audit, question_and_evidence(query, evidence), self.asker.control.fence),
            CheckedClaimsReply,
            # A sentence can hold several claims, each with reasons and quotations.
            max_tokens=CLAIMS_TOKENS + CLAIMS_TOKENS_PER_SENTENCE * len(audit.sentences),
            temperature=CLAIMS_TEMPERATURE,
        )
        judgements: dict[Claim, ClaimJudgement] = {}
        for claim, row in zip(place_claims(reply.claims, text, audit), reply.claims, strict=True):
            judged = judge(claim, row, case_chunks, self.asker.name)
            # A row without words of the answer can't confirm any of them, but may deny one.
            if claim.text or judged.denies:
                judgements[claim] = more_serious(judgements.get(claim), judged)
        claims = in_order([*judgements, *uncovered_assertions(judgements, audit)])
        # Claims that the list omits, and verdicts that can't be confirmed, get a second call.
        # Otherwise a careless reply, or an answer that tells the model what to skip, could keep a
        # claim from being judged.
        open_claims = [
            claim for claim in claims if claim not in judgements or judgements[claim].doubt
        ]
        doubts = {claim: judged.doubt for claim, judged in judgements.items() if judged.doubt}
        parts = run_concurrently(self._batches(open_claims, query, evidence, case_chunks, doubts))
        for part in parts:
            if isinstance(part, _CallResult):
                for judged in part.judged:
                    claim = judged.check.claim
                    judgements[claim] = merge_judgements(judgements.get(claim), judged)
        missing = self._missing_points(reply.missing, case_chunks) if completeness else ()
        checks = with_references([judgements[claim] for claim in claims], case_chunks)
        return claims, ClaimResults(self._mark_figures(checks, evidence), missing)

    def _mark_figures(
        self, checks: Sequence[ClaimCheck], evidence: Sequence[Evidence]
    ) -> tuple[ClaimCheck, ...]:
        """Mark figures of supported claims that are in no chunk, unless they were calculated.

        Numbers in words are skipped, because "twelve years old" may restate an age that a chunk
        gives in digits.
        """
        if self.absent_figures is None:
            return tuple(checks)
        uncalculated = [
            check
            for check in checks
            if check.verdict == "supported" and not has_valid_calculation(check.steps)
        ]
        absent = (
            self.absent_figures([check.claim for check in uncalculated], evidence)
            if uncalculated
            else ()
        )
        figures_by_claim = dict(zip([check.claim for check in uncalculated], absent, strict=True))
        return tuple(
            (
                check.model_copy(update={"figures": figures})
                if (figures := in_digits(figures_by_claim.get(check.claim, ())))
                else check
            )
            for check in checks
        )

    def extract(self, answer: str, audit: CitationAudit, query: str) -> tuple[Claim, ...]:
        """Return the assertions of the answer, in order.

        Raises:
            ProviderFailed: The provider failed.
            BadReply: The reply has no list of claims (CRITIC-ERR-001).

        """
        if not self.settings.check_factual or not answer.strip():
            return ()
        key = Extractions.key(self.asker.name, load(EXTRACT).version, query, answer)
        listed = self.extractions.get(key)
        if listed is None:
            listed = self.asker.ask(
                extract_prompt(audit, query, self.asker.control.fence),
                ClaimsReply,
                max_tokens=min(MAX_EXTRACT_TOKENS, MIN_EXTRACT_TOKENS + len(answer)),
                temperature=EXTRACT_TEMPERATURE,
            ).claims
            self.extractions.keep(key, listed)
        return located_claims(listed, answer, audit)

    def verify(
        self, claims: Sequence[Claim], evidence: Sequence[Evidence]
    ) -> tuple[ClaimCheck, ...]:
        """Return one check for each claim, in order; the claims of a failed batch are unscored."""
        return self.check(claims, None, "", evidence, completeness=False).checks

    def check(
        self,
        claims: Sequence[Claim],
        query: str | None,
        answer: str,
        evidence: Sequence[Evidence],
        *,
        completeness: bool,
    ) -> ClaimResults:
        """Judge all claims in parallel calls and, on request, find the missing points."""
        case_chunks = Chunks(evidence)
        if not case_chunks.readable:
            return ClaimResults(
                tuple(judged.check for judged in unverifiable(claims, self.asker.name))
            )
        tasks = self._batches(claims, query, evidence, case_chunks)
        if completeness:
            tasks.append(
                partial(
                    self._missing, question_and_evidence(query or "", evidence), answer, case_chunks
                )
            )
        parts = run_concurrently(tasks)
        judged = [
            judgement
            for part in parts
            if isinstance(part, _CallResult)
            for judgement in part.judged
        ]
        checks = self._mark_figures(with_references(judged, case_chunks), evidence)
        last = parts[-1] if completeness else _CallResult()
        if isinstance(last, StepError):
            return ClaimResults(checks, (), Unscored.of(last))
        return ClaimResults(checks, last.missing)

    def _batches(
        self,
        claims: Sequence[Claim],
        query: str | None,
        evidence: Sequence[Evidence],
        case_chunks: Chunks,
        doubts: Mapping[Claim, str] | None = None,
    ) -> list[Callable[[], _CallResult]]:
        """Return a task for each batch of claims; ``doubts`` is given when they are judged for a
        second time.
        """
        size = self.settings.claims_batch
        ask = self._verdicts if doubts is None else partial(self._ask, doubts=doubts)
        return [
            partial(ask, claims[first : first + size], query, evidence, case_chunks)
            for first in range(0, len(claims), size)
        ]

    def _verdicts(
        self,
        batch: Sequence[Claim],
        query: str | None,
        evidence: Sequence[Evidence],
        case_chunks: Chunks,
    ) -> _CallResult:
        """Judge a batch of claims, and ask once more about verdicts that can't be confirmed."""
        first = self._ask(batch, query, evidence, case_chunks, {})
        doubts = {judged.check.claim: judged.doubt for judged in first.judged if judged.doubt}
        # If the call itself failed, its retries are used up already (``client/model.py``).
        if not doubts or not first.replied:
            return first
        retry = self._ask(list(doubts), query, evidence, case_chunks, doubts)
        second = {judged.check.claim: judged for judged in retry.judged}
        return _CallResult(
            tuple(
                merge_judgements(judged, second[claim])
                if (claim := judged.check.claim) in second
                else judged
                for judged in first.judged
            )
        )

    def _ask(
        self,
        batch: Sequence[Claim],
        query: str | None,
        evidence: Sequence[Evidence],
        case_chunks: Chunks,
        doubts: Mapping[Claim, str],
    ) -> _CallResult:
        def ask(window: EvidenceWindow) -> VerdictsReply:
            sent = window.evidence
            shared = chunks(sent) if query is None else question_and_evidence(query, sent)
            return self.asker.ask(
                verify_prompt(batch, shared, self.asker.control.fence, doubts),
                VerdictsReply,
                max_tokens=VERIFY_TOKENS + VERIFY_TOKENS_PER_CLAIM * len(batch),
                temperature=VERIFY_TEMPERATURE,
            )

        claim_texts = [claim.statement or without_markers(claim) for claim in batch]
        try:
            reply, window = ask_within_context(self.asker, evidence, claim_texts, ask)
        except StepError as error:
            return _CallResult(unscored_batch(batch, error, self.asker.name), replied=False)
        judgements = judge_by_number(batch, reply.verdicts, case_chunks, self.asker.name)
        if window.share >= 1.0:
            return _CallResult(judgements)
        self.asker.control.calls.warn(
            "evidence_cut",
            f"The evidence does not fit the context of {self.asker.name}: each claim was judged by"
            f" the passages that share most words with it, {window.share:.0%} of the evidence for"
            " the first. What no passage supports is not confirmed rather than unsupported."
            f" {LARGER_CONTEXT}",
        )
        return _CallResult(
            tuple(for_partial_evidence(judgement, window.share) for judgement in judgements)
        )

    def _missing(self, shared: Sequence[Section], text: str, case_chunks: Chunks) -> _CallResult:
        reply = self.asker.ask(
            completeness_prompt(text, shared, self.asker.control.fence),
            CompletenessReply,
            max_tokens=COMPLETENESS_TOKENS,
            temperature=COMPLETENESS_TEMPERATURE,
        )
        return _CallResult(missing=self._missing_points(reply.missing, case_chunks))

    def _missing_points(
        self, missing: Sequence[LeftOut], case_chunks: Chunks
    ) -> tuple[MissingPoint, ...]:
        points = (
            missing_point(point, case_chunks) for point in missing if point.description.strip()
        )
        return tuple(dict.fromkeys(points))[:MAX_MISSING]


def claims_prompt(audit: CitationAudit, shared: Sequence[Section], mark: str) -> RolePrompt:
    """Return the prompt that asks for claims, verdicts and missing points in one reply."""
    return compose(CLAIMS, mark, shared, [sentence_rows(audit, cites=True)])


def extract_prompt(audit: CitationAudit, query: str, mark: str) -> RolePrompt:
    """Return the prompt that asks for the claims; it has no evidence, so that the evidence can't
    color them.
    """
    return compose(EXTRACT, mark, [question(query)], [sentence_rows(audit, cites=False)])


def sentence_rows(audit: CitationAudit, *, cites: bool) -> Section:
    """Return the numbered sentences of an answer, so that a reply can refer to one by number."""
    listed = []
    for number, sentence in enumerate(audit.sentences, 1):
        row: dict[str, Any] = {"sentence": number, "text": sentence.text}
        if cites and sentence.citation_ids:
            row["cites"] = sentence.citation_ids
        listed.append(row if is_assertion(sentence) else row | {"asserts": False})
    return rows("ANSWER", listed)


def verify_prompt(
    batch: Sequence[Claim],
    shared: Sequence[Section],
    mark: str,
    doubts: Mapping[Claim, str] | None = None,
) -> RolePrompt:
    """Return the prompt that asks for verdicts on claims, numbered from 1 and without citation
    markers.

    ``doubts`` explains why the earlier verdict on a claim couldn't count.
    """
    listed = []
    for number, claim in enumerate(batch, 1):
        row = {
            "number": number,
            "claim": without_markers(claim),
            "meaning": claim.statement or None,
            "cites": claim.cited,
        }
        if doubt := (doubts or {}).get(claim):
            row["returned"] = doubt
        listed.append(row)
    return compose(VERIFY, mark, shared, [rows("CLAIMS", listed)])


def completeness_prompt(text: str, shared: Sequence[Section], mark: str) -> RolePrompt:
    """Return the prompt that asks for missing points."""
    return compose(COMPLETENESS, mark, shared, [answer(text)])


def without_markers(claim: Claim) -> str:
    """Return the claim's text without its citation markers."""
    parts, offset = [], 0
    for start, end in sorted(claim.markers):
        parts.append(claim.text[offset:start])
        offset = max(offset, end)
    return "".join([*parts, claim.text[offset:]]).strip()


def missing_point(left_out: LeftOut, case_chunks: Chunks) -> MissingPoint:
    """Return a missing point, with its position in the evidence if the named chunk contains the
    quotation.
    """
    chunk = case_chunks.id_of(left_out.evidence_id) if left_out.evidence_id else None
    position = (
        locate_quote(left_out.quote, case_chunks.texts[chunk]) if chunk and left_out.quote else None
    )
    weight = normalize_score("importance", left_out.importance).value
    return MissingPoint(
        description=left_out.description.strip(),
        evidence_id=chunk,
        start=position.start if position else None,
        end=position.end if position else None,
        weight=0.5 if weight is None else weight,
    )

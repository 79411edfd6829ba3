"""The verifier with a model: claims extracted, then verified in batches side by side, with what is missing beside them.

``specs/draft-critique.md``: extractClaims, verifyClaims, checkCompleteness; claims verified together where possible and
extractions kept (Performance Considerations). The temperatures are that spec's.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import NamedTuple

from masis.errors import StepError
from masis.llm import extraction
from masis.llm.extraction import Extracted, Extractions
from masis.llm.prompting import (
    Asker,
    Prompt,
    Section,
    answer,
    chunks,
    compose,
    load,
    question,
    question_and_evidence,
    rows,
)
from masis.llm.quotes import Chunks
from masis.llm.references import with_references
from masis.llm.replies import ClaimsReply, CompletenessReply, LeftOut, VerdictsReply
from masis.llm.verdicts import Judged, failed, judged, unverifiable
from masis.schema.audit import CitationAudit, Claim, ClaimCheck, JudgedBy, MissingPoint
from masis.schema.base import Unscored
from masis.schema.case import Evidence
from masis.settings import Settings
from masis.steps.claims import Checked
from masis.steps.conduct import together
from masis.steps.quotes import located
from masis.steps.scores import normalised

EXTRACT, VERIFY, COMPLETENESS = "claims_extract", "claims_verify", "completeness"
MISSING_MOST = 8
EXTRACT_TOKENS_LEAST, EXTRACT_TOKENS_MOST = 1_000, 8_000
VERIFY_TOKENS, VERIFY_TOKENS_A_CLAIM = 300, 450
COMPLETENESS_TOKENS = 1_500
EXTRACT_TEMPERATURE = VERIFY_TEMPERATURE = 0.1
COMPLETENESS_TEMPERATURE = 0.2

EXTRACTIONS = Extractions()
"""What was extracted in this process."""


class _Part(NamedTuple):
    """What one of the calls that go side by side gives."""

    judged: tuple[Judged, ...] = ()
    missing: tuple[MissingPoint, ...] = ()


@dataclass(frozen=True)
class ModelVerifier:
    """Finds what an answer asserts and judges each assertion by the evidence.

    ``claims_batch`` of the settings go into one call; without ``check_factual`` no claim is looked for.
    """

    asker: Asker
    settings: Settings
    extractions: Extractions = field(default=EXTRACTIONS, repr=False)

    @property
    def judged_by(self) -> JudgedBy:
        """The model, and the versions of the three prompts."""
        versions = ", ".join(load(name).version for name in (EXTRACT, VERIFY, COMPLETENESS))
        return JudgedBy(model=self.asker.name, version=versions)

    def extract(self, answer: str, audit: CitationAudit, query: str) -> tuple[Claim, ...]:
        """What the answer asserts, in its order.

        Raises ProviderFailed where the provider failed, BadReply (CRITIC-ERR-001) where no list of claims came.
        """
        if not self.settings.check_factual or not answer.strip():
            return ()
        key = Extractions.key(self.asker.name, load(EXTRACT).version, query, answer)
        found = self.extractions.get(key)
        if found is None:
            found = self._ask_for_claims(answer, query)
            self.extractions.keep(key, found)
        return extraction.claims(found, answer, audit)

    def verify(self, claims: Sequence[Claim], evidence: Sequence[Evidence]) -> tuple[ClaimCheck, ...]:
        """One check for each claim, in order; those of a batch that failed are unscored."""
        known = Chunks(evidence)
        if not known.readable:
            return tuple(each.check for each in unverifiable(claims, self.asker.name))
        parts = together(self._batches(claims, chunks(evidence), known))
        return self._checks(claims, parts, known)

    def check(
        self, claims: Sequence[Claim], query: str, answer: str, evidence: Sequence[Evidence], *, completeness: bool
    ) -> Checked:
        """Each claim judged and, if asked for, what is left out, all calls side by side."""
        known = Chunks(evidence)
        if not known.readable:
            return Checked(tuple(each.check for each in unverifiable(claims, self.asker.name)))
        shared = question_and_evidence(query, evidence)
        tasks = self._batches(claims, shared, known)
        if completeness:
            tasks.append(partial(self._missing, shared, answer, known))
        parts = together(tasks)
        checks = self._checks(claims, parts[: len(tasks) - completeness], known)
        if not completeness:
            return Checked(checks)
        last = parts[-1]
        if isinstance(last, StepError):
            return Checked(checks, (), Unscored(reason=str(last), code=last.code, raw=last.raw))
        return Checked(checks, last.missing)

    def _ask_for_claims(self, text: str, query: str) -> tuple[Extracted, ...]:
        reply = self.asker.ask(
            extract_prompt(text, query, self.asker.conduct.fence),
            ClaimsReply,
            max_tokens=min(EXTRACT_TOKENS_MOST, EXTRACT_TOKENS_LEAST + len(text)),
            temperature=EXTRACT_TEMPERATURE,
        )
        return tuple(Extracted(each.quote, each.claim) for each in reply.claims)

    def _batches(self, claims: Sequence[Claim], shared: Sequence[Section], known: Chunks) -> list[Callable[[], _Part]]:
        size = self.settings.claims_batch
        return [
            partial(self._verdicts, claims[first : first + size], shared, known)
            for first in range(0, len(claims), size)
        ]

    def _verdicts(self, batch: Sequence[Claim], shared: Sequence[Section], known: Chunks) -> _Part:
        try:
            reply = self.asker.ask(
                verify_prompt(batch, shared, self.asker.conduct.fence),
                VerdictsReply,
                max_tokens=VERIFY_TOKENS + VERIFY_TOKENS_A_CLAIM * len(batch),
                temperature=VERIFY_TEMPERATURE,
            )
        except StepError as error:
            return _Part(failed(batch, error, self.asker.name))
        return _Part(judged(batch, reply.verdicts, known, self.asker.name))

    def _checks(
        self, claims: Sequence[Claim], parts: Sequence[_Part | StepError], known: Chunks
    ) -> tuple[ClaimCheck, ...]:
        found = [each for part in parts if isinstance(part, _Part) for each in part.judged]
        return with_references(found, known)

    def _missing(self, shared: Sequence[Section], text: str, known: Chunks) -> _Part:
        reply = self.asker.ask(
            completeness_prompt(text, shared, self.asker.conduct.fence),
            CompletenessReply,
            max_tokens=COMPLETENESS_TOKENS,
            temperature=COMPLETENESS_TEMPERATURE,
        )
        points = (missing_point(each, known) for each in reply.missing if each.description.strip())
        return _Part(missing=tuple(dict.fromkeys(points))[:MISSING_MOST])


def extract_prompt(text: str, query: str, mark: str) -> Prompt:
    """What is sent to find the claims: question and answer; what the evidence says must not colour them."""
    return compose(EXTRACT, mark, [question(query)], [answer(text)])


def verify_prompt(batch: Sequence[Claim], shared: Sequence[Section], mark: str) -> Prompt:
    """What is sent to verify claims, numbered from 1, their markers left out."""
    listed = [
        {"number": number, "claim": unmarked(claim), "meaning": claim.statement or None, "cited": claim.cited}
        for number, claim in enumerate(batch, 1)
    ]
    return compose(VERIFY, mark, shared, [rows("CLAIMS", listed)])


def completeness_prompt(text: str, shared: Sequence[Section], mark: str) -> Prompt:
    """What is sent to find what is missing."""
    return compose(COMPLETENESS, mark, shared, [answer(text)])


def unmarked(claim: Claim) -> str:
    """The claim's words without its citation markers."""
    parts, at = [], 0
    for start, end in sorted(claim.markers):
        parts.append(claim.text[at:start])
        at = max(at, end)
    return "".join([*parts, claim.text[at:]]).strip()


def missing_point(left_out: LeftOut, known: Chunks) -> MissingPoint:
    """A point with its place in the evidence, where the chunk it names says what is quoted."""
    chunk = known.id_of(left_out.evidence_id) if left_out.evidence_id else None
    place = located(left_out.quote, known.texts[chunk]) if chunk and left_out.quote else None
    weight = normalised("importance", left_out.importance).value
    return MissingPoint(
        description=left_out.description.strip(),
        evidence_id=chunk,
        start=place.start if place else None,
        end=place.end if place else None,
        weight=0.5 if weight is None else weight,
    )

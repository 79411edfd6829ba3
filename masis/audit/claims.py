"""Claims: the assertions of an answer, the evidence for them, and the rules applied in code.

The rules are the report's confidence (DRAFT-CRITIQUE-CONFIDENCE), severity by support
(DRAFT-CRITIQUE-SEVERITY) and the strictness filter (compileIssues).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from statistics import fmean
from typing import Literal, NamedTuple, Protocol, runtime_checkable

from masis.schema.audit import (
    CitationAudit,
    Claim,
    ClaimCheck,
    ClaimReport,
    Escalation,
    MissingPoint,
    ReferenceCheck,
)
from masis.schema.base import Unscored
from masis.schema.case import Evidence, Severity

Strictness = Literal["lenient", "moderate", "strict"]

HIGH_BELOW = 0.3
MEDIUM_BELOW = 0.6
CONFIDENCE_WITHOUT_CLAIMS = 0.5


class ClaimResults(NamedTuple):
    """The verdicts on an answer's claims, and the points that the answer leaves out.

    Attributes:
        completeness_unscored: The reason if missing points could not be determined.
        escalation: The claims that a second verifier was asked about.

    """

    checks: tuple[ClaimCheck, ...]
    missing: tuple[MissingPoint, ...] = ()
    completeness_unscored: Unscored | None = None
    escalation: Escalation | None = None


class Verifier(Protocol):
    """Finds the claims of an answer and judges each against the evidence.

    A verifier that supports only some languages names them in an attribute ``languages``, a
    frozenset of two-letter codes; it is then asked only about those
    (``masis/audit/text/language.py``). None, or no such attribute, means any language.
    """

    def extract(self, answer: str, audit: CitationAudit, query: str) -> tuple[Claim, ...]:
        """Return the claims of the answer, in its order."""

    def verify(
        self, claims: Sequence[Claim], evidence: Sequence[Evidence]
    ) -> tuple[ClaimCheck, ...]:
        """Return one check for each claim, in the same order."""

    def check(
        self,
        claims: Sequence[Claim],
        query: str,
        answer: str,
        evidence: Sequence[Evidence],
        *,
        completeness: bool,
    ) -> ClaimResults:
        """Judge each claim as ``verify`` does and, if requested, find the points left out.

        The verifier decides whether to do both in parallel. A claim that could not be judged is
        unscored.

        Raises:
            StepError: Nothing could be judged at all.

        """


@runtime_checkable
class ChecksAnswers(Protocol):
    """A verifier that finds and judges the claims of an answer in one step, if that costs less."""

    def check_answer(
        self,
        answer: str,
        audit: CitationAudit,
        query: str,
        evidence: Sequence[Evidence],
        *,
        completeness: bool,
    ) -> tuple[tuple[Claim, ...], ClaimResults]:
        """Return the claims and the results, as ``Verifier.extract`` and ``Verifier.check`` do."""


def check_answer(
    verifier: Verifier,
    answer: str,
    audit: CitationAudit,
    query: str,
    evidence: Sequence[Evidence],
    *,
    completeness: bool,
    select_claims: Callable[[Sequence[Claim]], tuple[Claim, ...]] = tuple,
) -> tuple[tuple[Claim, ...], ClaimResults]:
    """Return all claims, and a check for each one that ``select_claims`` keeps.

    If ``completeness`` is requested, the results also have the points that the answer leaves out.

    Raises:
        StepError: Nothing could be judged at all.

    """
    if isinstance(verifier, ChecksAnswers):
        claims, results = verifier.check_answer(
            answer, audit, query, evidence, completeness=completeness
        )
        checked_claims = select_claims(claims)
    else:
        claims = verifier.extract(answer, audit, query)
        checked_claims = select_claims(claims)
        results = verifier.check(checked_claims, query, answer, evidence, completeness=completeness)
    return claims, results._replace(checks=one_check_each(checked_claims, results.checks))


def one_check_each(claims: Sequence[Claim], checks: Sequence[ClaimCheck]) -> tuple[ClaimCheck, ...]:
    """Match the checks to their claims; a claim without a check is unscored, never supported.

    Verdicts are matched by position only if claim and check agree on the words.
    """
    # A verifier's extra, repeated or reordered checks can't move a verdict to another claim.
    by_claim = {
        (check.claim.text, check.claim.start, check.claim.statement): check for check in checks
    }
    matches = [by_claim.get((claim.text, claim.start, claim.statement)) for claim in claims]
    return tuple(
        check
        or ClaimCheck(
            claim=claim,
            verdict="unscored",
            support=None,
            confidence=None,
            issue="The verifier gave no verdict on this claim.",
            unscored=Unscored(reason="the verifier gave no verdict on this claim"),
        )
        for claim, check in zip(claims, matches, strict=True)
    )


def report(
    checks: Sequence[ClaimCheck],
    missing: Sequence[MissingPoint] = (),
    unscored: Unscored | None = None,
    completeness_unscored: Unscored | None = None,
    escalation: Escalation | None = None,
    unchecked: tuple[str, ...] = (),
) -> ClaimReport:
    """Return the figures of a claim check.

    Undecided claims count as not verified and are excluded from the mean. If the claims could not
    even be found (``unscored``), there is no confidence.
    """
    supports = [
        check.support
        for check in checks
        if check.support is not None and check.verdict != "unverifiable"
    ]
    verified = sum(check.verified for check in checks)
    confidence = (
        (fmean(supports) + verified / len(checks)) / 2 if supports else CONFIDENCE_WITHOUT_CLAIMS
    )
    sources = dict.fromkeys(source for check in checks for source in check.sources)
    return ClaimReport(
        missing=tuple(missing),
        confidence=None if unscored else confidence,
        facts_checked=len(checks),
        facts_verified=verified,
        sources_used=tuple(sources),
        unscored=unscored,
        completeness_unscored=completeness_unscored,
        escalation=escalation,
        unchecked=unchecked,
    )


def withhold_verdict(
    check: ClaimCheck, code: Literal["language", "instruction", "limits"], reason: str
) -> ClaimCheck:
    """Return the check without its verdict.

    The support, quotes and findings are removed too, because they look like a verdict.
    """
    references = tuple(
        ReferenceCheck(
            evidence_id=reference.evidence_id, finding="unchecked", support=None, reason=reason
        )
        for reference in check.references
    )
    return check.model_copy(
        update={
            "verdict": "unverifiable",
            "support": None,
            "confidence": None,
            "sources": (),
            "quotes": (),
            "contradictions": (),
            "figures": (),
            "marked": (),
            "uncovered": (),
            "references": references,
            "issue": reason,
            "abstained": code,
        }
    )


def severity(check: ClaimCheck) -> Severity | None:
    """Return the severity of an unverified claim, or None for a verified one.

    Support under 0.3 is high, under 0.6 medium, else low (DRAFT-CRITIQUE-SEVERITY). A contradicted
    claim is at least high and one without a verdict medium. One that the verifier could not confirm
    is low, because that doesn't mean it's wrong.
    """
    if check.verified:
        return None
    if check.verdict == "unverifiable":
        return "low"
    if check.verdict == "contradicted":
        return "high"
    if check.support is None:
        return "medium"
    if check.support < HIGH_BELOW:
        return "high"
    return "medium" if check.support < MEDIUM_BELOW else "low"


def is_reported(grade: Severity, strictness: Strictness) -> bool:
    """Return whether an issue of this severity is reported.

    Strictness ``lenient`` reports high and above, ``moderate`` all but low, ``strict`` all.
    """
    if strictness == "lenient":
        return grade in ("critical", "high")
    return strictness == "strict" or grade != "low"

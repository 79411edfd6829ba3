"""Claims: what the answer asserts, which evidence supports it, and what follows in code.

The report's confidence (DRAFT-CRITIQUE-CONFIDENCE), severity by support (DRAFT-CRITIQUE-SEVERITY)
and the strictness filter (compileIssues).
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
    """What the evidence says of an answer's claims, and what the answer leaves out.

    ``completeness_unscored`` says why nobody could tell what is left out, where nobody could;
    ``escalation`` what a second verifier was asked for.
    """

    checks: tuple[ClaimCheck, ...]
    missing: tuple[MissingPoint, ...] = ()
    completeness_unscored: Unscored | None = None
    escalation: Escalation | None = None


class Verifier(Protocol):
    """Finds the claims of an answer and judges each against the evidence.

    One that supports only some languages names them in an attribute ``languages``, a frozenset of
    two-letter codes; it is then held to them (``masis/audit/text/language.py``). None, or no such
    attribute, means any.
    """

    def extract(self, answer: str, audit: CitationAudit, query: str) -> tuple[Claim, ...]:
        """What the answer asserts, in its order."""

    def verify(
        self, claims: Sequence[Claim], evidence: Sequence[Evidence]
    ) -> tuple[ClaimCheck, ...]:
        """One check for each claim, in the same order."""

    def check(
        self,
        claims: Sequence[Claim],
        query: str,
        answer: str,
        evidence: Sequence[Evidence],
        *,
        completeness: bool,
    ) -> ClaimResults:
        """Each claim judged as by ``verify`` and, if asked for, what the question asks for and the
        answer leaves out.

        Whether the two go side by side is the verifier's affair. A claim that could not be judged
        is unscored; only where nothing could be done at all is StepError raised.
        """


@runtime_checkable
class ChecksAnswers(Protocol):
    """A verifier that finds the claims of an answer and judges them in one go, where that costs
    less than in steps.
    """

    def check_answer(
        self,
        answer: str,
        audit: CitationAudit,
        query: str,
        evidence: Sequence[Evidence],
        *,
        completeness: bool,
    ) -> tuple[tuple[Claim, ...], ClaimResults]:
        """The claims, as ``Verifier.extract`` finds them, and what ``Verifier.check``
        says of them.
        """


def check_answer(
    verifier: Verifier,
    answer: str,
    audit: CitationAudit,
    query: str,
    evidence: Sequence[Evidence],
    *,
    completeness: bool,
    within: Callable[[Sequence[Claim]], tuple[Claim, ...]] = tuple,
) -> tuple[tuple[Claim, ...], ClaimResults]:
    """All claims; a check for each that ``within`` keeps and, if asked for, what is left out.
    Raises StepError.
    """
    if isinstance(verifier, ChecksAnswers):
        every, whole = verifier.check_answer(
            answer, audit, query, evidence, completeness=completeness
        )
        found = within(every)
    else:
        every = verifier.extract(answer, audit, query)
        found = within(every)
        whole = verifier.check(found, query, answer, evidence, completeness=completeness)
    return every, whole._replace(checks=one_check_each(found, whole.checks))


def one_check_each(claims: Sequence[Claim], checks: Sequence[ClaimCheck]) -> tuple[ClaimCheck, ...]:
    """The checks matched to their claims; a claim without one is unscored, never supported.

    Verdicts are matched by position only where claim and check agree on the words.
    """
    by_claim = {
        (check.claim.text, check.claim.start, check.claim.statement): check for check in checks
    }
    found = [by_claim.get((claim.text, claim.start, claim.statement)) for claim in claims]
    return tuple(
        check or _without_verdict(claim) for claim, check in zip(claims, found, strict=True)
    )


def _without_verdict(claim: Claim) -> ClaimCheck:
    return ClaimCheck(
        claim=claim,
        verdict="unscored",
        support=None,
        confidence=None,
        issue="The verifier gave no verdict on this claim.",
        unscored=Unscored(reason="the verifier gave no verdict on this claim"),
    )


def report(
    checks: Sequence[ClaimCheck],
    missing: Sequence[MissingPoint] = (),
    unscored: Unscored | None = None,
    completeness_unscored: Unscored | None = None,
    escalation: Escalation | None = None,
    unchecked: tuple[str, ...] = (),
) -> ClaimReport:
    """The claims in figures. Claims that could not be decided count as not verified, and not in the
    mean.

    Where claims could not even be found (``unscored``) there is no confidence.
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


def withheld(
    check: ClaimCheck, why: Literal["language", "instruction", "limits"], reason: str
) -> ClaimCheck:
    """Return the check without its verdict, and without what would look like one: support, quotes,
    findings.
    """
    references = tuple(
        ReferenceCheck(
            evidence_id=each.evidence_id, finding="unchecked", support=None, reason=reason
        )
        for each in check.references
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
            "abstained": why,
        }
    )


def severity(check: ClaimCheck) -> Severity | None:
    """Return the severity of an unverified claim; None for a verified one.

    Support under 0.3 is high, under 0.6 medium, else low (DRAFT-CRITIQUE-SEVERITY); a contradicted
    claim is at least high; one without a verdict is medium; one that the verifier could not confirm
    is low, which accuses nobody.
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
    """Whether an issue of this severity is kept: lenient keeps high and above, moderate all but
    low, strict all.
    """
    if strictness == "lenient":
        return grade in ("critical", "high")
    return strictness == "strict" or grade != "low"

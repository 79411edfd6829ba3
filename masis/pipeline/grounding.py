"""Checks whether an answer is supported by its evidence: for tests and gates.

    assert_grounded("It is 120 metres long [1].", documents)         # NotGrounded, an AssertionError, says what is not

Citations are looked up, and claims are checked against the evidence by the verifier of the settings
(offline by default). Claims pass by the same function as in an audit (``masis.audit.acceptance``).
Nobody criticises or scores: what passes here is supported, which does not make it a good answer.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

from masis.api import audits
from masis.api.roles import build_roles
from masis.audit.acceptance import claim_reasons
from masis.audit.claims import one_check_each
from masis.errors import InputError
from masis.pipeline.documents import evidence as evidence_of
from masis.schema.audit import CitationAudit, ClaimCheck
from masis.settings import Settings

MAX_QUOTED = 300
"""Characters of a sentence or a chunk that a failure shows."""
MAX_SHOWN = 20
"""Faults that a failure shows; the report has all."""
UNASKED = "What does the evidence say?"
"""The question where none is given: only models read it."""


@dataclass(frozen=True)
class Bounds:
    """What passes.

    ``min_support``: the support (0..1) from which a claim passes; None: where the verifier says
    that it is supported. ``allow_uncited``: sentences without a citation pass.
    ``allow_unverifiable``: claims pass that the verifier could not confirm. A reference to no
    evidence, a claim that some evidence contradicts and one without a verdict never do.
    """

    min_support: float | None = None
    allow_uncited: bool = True
    allow_unverifiable: bool = False

    def __post_init__(self) -> None:
        if self.min_support is not None and not 0 <= self.min_support <= 1:
            raise InputError(
                f"is {self.min_support}", hint="Give a share from 0 to 1.", field="min_support"
            )


class GroundingIssue(NamedTuple):
    """One thing that is not supported.

    ``what`` is the verdict or ``invalid reference`` or ``uncited``; ``sentence`` the answer's
    words; ``reference`` what it cites; ``source`` and ``evidence`` the chunk that decides and its
    words, "" where none does; ``why`` says more.
    """

    what: str
    sentence: str
    reference: str = ""
    source: str = ""
    evidence: str = ""
    support: float | None = None
    why: str = ""


@dataclass(frozen=True)
class Grounding:
    """What was found about one answer; ``issues`` is empty where it is grounded."""

    question: str
    answer: str
    citations: CitationAudit
    claims: tuple[ClaimCheck, ...]
    issues: tuple[GroundingIssue, ...]
    bounds: Bounds = field(default_factory=Bounds)
    judged_by: str = ""

    @property
    def grounded(self) -> bool:
        """Whether everything is supported."""
        return not self.issues

    def record(self) -> dict[str, Any]:
        """Return one line of a report, JSON-ready."""
        return {
            "grounded": self.grounded,
            "question": self.question,
            "answer": self.answer,
            "claims": len(self.claims),
            "verified": sum(check.verified for check in self.claims),
            "citations": len(self.citations.citations),
            "invalid_references": list(self.citations.invalid_citations),
            "uncited": list(self.citations.uncited_claims),
            "issues": [issue._asdict() for issue in self.issues],
            "judged_by": self.judged_by,
        }


class NotGrounded(AssertionError):
    """The answer is not supported by its evidence; the message says which sentence and why; see
    ``grounding``.
    """

    def __init__(self, grounding: Grounding) -> None:
        self.grounding = grounding
        super().__init__(message_of(grounding))


def grounding(
    answer: str,
    evidence: Any,
    *,
    question: str | None = None,
    bounds: Bounds | None = None,
    settings: Settings | None = None,
) -> Grounding:
    """Return what is not supported. ``evidence`` is whatever ``masis.pipeline.documents`` takes.

    Raises InputError for an empty answer or evidence, StepError where the verifier fails.
    """
    if not isinstance(answer, str) or not answer.strip():
        raise InputError("is empty", hint="Give the answer to be checked.", field="answer")
    chunks = evidence_of(evidence)
    if not chunks:
        raise InputError(
            "is empty", hint="Give what the answer was written from.", field="evidence"
        )
    settings, bounds = settings or Settings(), bounds or Bounds()
    verifier = build_roles(settings).verifier
    cited = audits.audit_citations(answer, chunks, settings)
    claims = verifier.extract(answer, cited, question or UNASKED)
    checks = one_check_each(claims, verifier.verify(claims, chunks))
    texts = {chunk.id: chunk.text for chunk in chunks}
    issues = (
        *_citation_grounding_issues(answer, cited, bounds),
        *_claim_grounding_issues(answer, checks, texts, bounds),
    )
    return Grounding(question or "", answer, cited, checks, issues, bounds, settings.verifier)


def assert_grounded(
    answer: str,
    evidence: Any,
    *,
    question: str | None = None,
    min_support: float | None = None,
    allow_uncited: bool = True,
    allow_unverifiable: bool = False,
    settings: Settings | None = None,
) -> Grounding:
    """Raise NotGrounded (an AssertionError) where the evidence does not support the answer; else
    return what was found.

    See ``Bounds`` for what passes, and ``grounding`` for what else is raised.
    """
    bounds = Bounds(min_support, allow_uncited, allow_unverifiable)
    found = grounding(answer, evidence, question=question, bounds=bounds, settings=settings)
    if not found.grounded:
        raise NotGrounded(found)
    return found


def message_of(found: Grounding) -> str:
    """Return the issues in plain text, a few lines each."""
    number = len(found.issues)
    lines = [
        (
            f"The answer is not grounded in its evidence: {number}"
            f" {'issue' if number == 1 else 'issues'}."
        )
    ]
    for place, issue in enumerate(found.issues[:MAX_SHOWN], 1):
        support = "" if issue.support is None else f" (support {issue.support:.2f})"
        cites = f"  cites [{issue.reference}]" if issue.reference else ""
        lines += [
            "",
            f"{place}. {issue.what}{support}{cites}",
            f"   sentence: {_terminal_line(issue.sentence)}",
        ]
        if issue.evidence:
            lines.append(f"   evidence: [{issue.source}] {_terminal_line(issue.evidence)}")
        if issue.why:
            lines.append(f"   why:      {_terminal_line(issue.why)}")
    if number > MAX_SHOWN:
        lines += ["", f"... and {number - MAX_SHOWN} more."]
    return "\n".join(lines)


def _citation_grounding_issues(
    answer: str, cited: CitationAudit, bounds: Bounds
) -> list[GroundingIssue]:
    found = []
    for citation in cited.citations:
        if citation.status == "invalid":
            inside = (s for s in cited.sentences if s.start <= citation.marker_start < s.end)
            sentence = next(
                (answer[s.start : s.end] for s in inside),
                answer[citation.marker_start : citation.marker_end],
            )
            found.append(
                GroundingIssue(
                    "invalid reference", sentence, citation.text, why="no evidence has this id"
                )
            )
    if not bounds.allow_uncited:
        found += [GroundingIssue("uncited", sentence) for sentence in cited.uncited_claims]
    return found


def _claim_grounding_issues(
    answer: str, checks: tuple[ClaimCheck, ...], texts: dict[str, str], bounds: Bounds
) -> list[GroundingIssue]:
    found = []
    for check in checks:
        what = _failing_verdict(check, bounds)
        if what is None:
            continue
        claim = check.claim
        sentence = claim.text if claim.start is None else answer[claim.start : claim.end]
        source = next(
            iter((*(quote.evidence_id for quote in check.quotes), *check.sources, *claim.cited)), ""
        )
        words = next((quote.text for quote in check.quotes), texts.get(source, ""))
        denied = "; ".join(each.reason for each in check.contradictions)
        why = check.issue or denied or (check.unscored.reason if check.unscored else "")
        found.append(
            GroundingIssue(
                what, sentence, ", ".join(claim.cited), source, words, check.support, why
            )
        )
    return found


def _failing_verdict(check: ClaimCheck, bounds: Bounds) -> str | None:
    """Return what keeps a claim from passing, None where it passes: the rule of acceptance, as far
    as bounds allow.

    The verdict of a claim that the evidence supports and contradicts is ``contradicted``.
    """
    if check.verdict == "unscored":
        return check.verdict
    codes = {reason.code for reason in claim_reasons([check])}
    if not codes:
        enough = bounds.min_support is None or (check.support or 0.0) >= bounds.min_support
        return None if enough else check.verdict
    if "contradicted_claim" in codes:
        return "contradicted"
    if codes <= {"unconfirmed_claim", "figure_not_in_evidence", "words_marked"}:
        return None if bounds.allow_unverifiable else "unverifiable"
    excused = bounds.min_support is not None and (check.support or 0.0) >= bounds.min_support
    return None if excused else check.verdict


def _terminal_line(text: str) -> str:
    """Return one line of a text from outside, safe for a terminal."""
    plain = " ".join("".join(sign if sign.isprintable() else " " for sign in text).split())
    return plain if len(plain) <= MAX_QUOTED else plain[: MAX_QUOTED - 3] + "..."

"""Checks whether an answer is supported by its evidence, for tests and gates.

    # raises NotGrounded, an AssertionError that says what isn't supported
    assert_grounded("It is 120 metres long [1].", documents)

Citations are resolved, and the verifier of the settings (offline by default) checks claims against
the evidence. The function that decides which claims pass is the one of an audit
(``masis.audit.acceptance``). There is no critic and no score: an answer that passes is supported,
which doesn't make it a good answer.
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
"""Maximum number of characters of a sentence or chunk in a failure message."""
MAX_SHOWN = 20
"""Maximum number of issues per failure message. The report contains all of them."""
UNASKED = "What does the evidence say?"
"""The question if none is given. Only models read it."""


@dataclass(frozen=True)
class Bounds:
    """The conditions under which an answer passes.

    A reference to no evidence, a claim that some evidence contradicts and one without a verdict
    never pass.

    Attributes:
        min_support: The support (0 to 1) that is enough for a claim. If None, the verifier's
            verdict counts.
        allow_uncited: Whether sentences without a citation pass.
        allow_unverifiable: Whether claims that the verifier could not confirm pass.

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
    """One part of an answer that isn't supported.

    Attributes:
        what: The verdict, or ``invalid reference`` or ``uncited``.
        sentence: The words of the answer.
        reference: What it cites.
        source: The chunk that the verdict is based on, "" if there is none.
        evidence: The words of that chunk.
        why: Further details.

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
    """The result for one answer. ``issues`` is empty if it is grounded."""

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
        """Return the result as one JSON-ready line of a report."""
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
    """The evidence doesn't support the answer. The message says which sentence and why.

    ``grounding`` is the full result.
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
    """Return the unsupported parts of an answer.

    Args:
        answer: The answer.
        evidence: Anything that ``masis.pipeline.documents`` accepts.
        question: The question, for verifiers that are models.
        bounds: The conditions under which it passes.
        settings: The settings of the verifier.

    Raises:
        InputError: The answer or the evidence is empty.
        StepError: The verifier failed.

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
    """Raise NotGrounded, an AssertionError, if the evidence doesn't support the answer; else return
    the result.

    See ``Bounds`` for the conditions, and ``grounding`` for other errors.
    """
    bounds = Bounds(min_support, allow_uncited, allow_unverifiable)
    result = grounding(answer, evidence, question=question, bounds=bounds, settings=settings)
    if not result.grounded:
        raise NotGrounded(result)
    return result


def message_of(result: Grounding) -> str:
    """Return the issues as plain text, a few lines each."""
    number = len(result.issues)
    lines = [
        (
            f"The answer is not grounded in its evidence: {number}"
            f" {'issue' if number == 1 else 'issues'}."
        )
    ]
    for place, issue in enumerate(result.issues[:MAX_SHOWN], 1):
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
    issues = []
    for citation in cited.citations:
        if citation.status == "invalid":
            sentences = (
                span for span in cited.sentences if span.start <= citation.marker_start < span.end
            )
            sentence = next(
                (answer[span.start : span.end] for span in sentences),
                answer[citation.marker_start : citation.marker_end],
            )
            issues.append(
                GroundingIssue(
                    "invalid reference", sentence, citation.text, why="no evidence has this id"
                )
            )
    if not bounds.allow_uncited:
        issues += [GroundingIssue("uncited", sentence) for sentence in cited.uncited_claims]
    return issues


def _claim_grounding_issues(
    answer: str, checks: tuple[ClaimCheck, ...], texts: dict[str, str], bounds: Bounds
) -> list[GroundingIssue]:
    issues = []
    for check in checks:
        verdict = _failing_verdict(check, bounds)
        if verdict is None:
            continue
        claim = check.claim
        sentence = claim.text if claim.start is None else answer[claim.start : claim.end]
        source = next(
            iter((*(quote.evidence_id for quote in check.quotes), *check.sources, *claim.cited)), ""
        )
        words = next((quote.text for quote in check.quotes), texts.get(source, ""))
        contradictions = "; ".join(contradiction.reason for contradiction in check.contradictions)
        explanation = (
            check.issue or contradictions or (check.unscored.reason if check.unscored else "")
        )
        issues.append(
            GroundingIssue(
                verdict, sentence, ", ".join(claim.cited), source, words, check.support, explanation
            )
        )
    return issues


def _failing_verdict(check: ClaimCheck, bounds: Bounds) -> str | None:
    """Return the verdict that keeps a claim from passing, None if it passes.

    The rule is that of acceptance, within the bounds. For a claim that the evidence both supports
    and contradicts, the verdict is ``contradicted``.
    """
    if check.verdict == "unscored":
        return check.verdict
    codes = {reason.code for reason in claim_reasons([check])}
    if not codes:
        is_enough = bounds.min_support is None or (check.support or 0.0) >= bounds.min_support
        return None if is_enough else check.verdict
    if "contradicted_claim" in codes:
        return "contradicted"
    if codes <= {"unconfirmed_claim", "figure_not_in_evidence", "words_marked"}:
        return None if bounds.allow_unverifiable else "unverifiable"
    is_excused = bounds.min_support is not None and (check.support or 0.0) >= bounds.min_support
    return None if is_excused else check.verdict


def _terminal_line(text: str) -> str:
    """Return a text from outside as one line that is safe for a terminal."""
    plain = " ".join(
        "".join(character if character.isprintable() else " " for character in text).split()
    )
    return plain if len(plain) <= MAX_QUOTED else plain[: MAX_QUOTED - 3] + "..."

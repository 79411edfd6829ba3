"""What an audit found about a draft, in the words of ``specs/draft-critique.md`` (compileIssues)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from masis.schema.audit import Issue
from masis.schema.drafts import CritiqueIssue, CritiqueOptions
from masis.steps.claims import passes
from masis.steps.issues import DRAFT_CRITIQUE_SEVERITY, DRAFT_CRITIQUE_TYPE

ASSUMED = "assumed_condition"
"""The rule of a finding that a claim holds under a condition it does not name."""
_SUPERSEDED = {"unsupported_claim", "partly_supported_claim", "contradicted_claim"}


def compiled(issues: Sequence[Issue], options: CritiqueOptions) -> Iterator[CritiqueIssue]:
    """The findings in the spec's words, filtered by strictness and by which checks are on.

    A draft need not cite. A claim that the sources contradict fails two checks: they do not bear it (factual), and they
    say otherwise (contradictions). Where a claim leaves out the condition it holds under, that is the finding, not that
    no source says it without.
    """
    assumed = [issue for issue in issues if _tells_what_is_left_out(issue)]
    for issue in issues:
        if issue.rule == "uncited_sentence" or _superseded(issue, assumed):
            continue
        for type_ in _types(issue):
            severity = DRAFT_CRITIQUE_SEVERITY[issue.severity]
            if _wanted(issue, type_, options) and passes(issue.severity, options.strictness):
                yield CritiqueIssue.model_validate(
                    {
                        "type": type_,
                        "severity": severity,
                        "description": _described(issue, type_),
                        "location": issue.quote,
                        "suggestion": issue.suggestion or None,
                        "related_source": issue.evidence_ids[0] if issue.evidence_ids else None,
                    }
                )


def _tells_what_is_left_out(issue: Issue) -> bool:
    incomplete = DRAFT_CRITIQUE_TYPE[issue.type] == "incomplete"
    return incomplete and issue.source == "critic" and issue.major and issue.start is not None


def _superseded(issue: Issue, assumed: Sequence[Issue]) -> bool:
    if issue.source != "claims" or issue.rule not in _SUPERSEDED or issue.start is None or issue.end is None:
        return False
    return any(
        (other.rule == ASSUMED or issue.rule != "contradicted_claim")
        and (other.start or 0) < issue.end
        and issue.start < (other.end or 0)
        for other in assumed
    )


def _types(issue: Issue) -> tuple[str, ...]:
    if issue.rule == "contradicted_claim":
        return ("unsupported", "contradiction")
    return (DRAFT_CRITIQUE_TYPE[issue.type],)


def _described(issue: Issue, type_: str) -> str:
    if issue.rule == "contradicted_claim" and type_ == "unsupported":
        return f"Claim not supported by sources: “{issue.quote}”"
    return issue.description


def _wanted(issue: Issue, type_: str, options: CritiqueOptions) -> bool:
    """Whether the check that the finding comes from is on; made-up references and unsafe advice always are told."""
    if issue.type in ("hallucination", "safety"):
        return True
    if type_ == "incomplete":
        return options.check_completeness
    return options.check_contradictions if type_ == "contradiction" else options.check_factual

"""Merges the issues from citations, claims and critic into one list.

``masis/schema/rules.py`` declares the rules, with the type and severity of their issues.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from itertools import count
from typing import NamedTuple

from masis.audit.claims import is_reported, severity
from masis.audit.critique import SOURCE_CONFLICT, Objection
from masis.audit.text.comparison import quotation_key
from masis.audit.text.instructions import find_instructions, instruction_text
from masis.audit.text.quotes import QuotePosition, locate_quote
from masis.schema.audit import CitationAudit, ClaimCheck, Issue, IssueSource, MissingPoint
from masis.schema.case import ClaimVerdict, Evidence, Severity
from masis.schema.rules import GROUNDLESS, RULES, IssueType
from masis.schema.wording import shorten
from masis.settings import Settings

DRAFT_CRITIQUE_SEVERITY: dict[Severity, str] = {
    "critical": "high",
    "high": "high",
    "medium": "medium",
    "low": "low",
}


def merge_issues(
    audit: CitationAudit,
    checks: Sequence[ClaimCheck],
    missing: Sequence[MissingPoint],
    settings: Settings,
    dropped: Sequence[ClaimCheck] = (),
    *,
    answer: str = "",
    evidence: Sequence[Evidence] = (),
) -> tuple[Issue, ...]:
    """Return the issues from citations and claims, citations first.

    They are numbered ``i1``, ``i2`` and so on.

    Args:
        audit: The citation audit of the answer.
        checks: The checked claims.
        missing: What the answer leaves out.
        settings: The enabled checks and the strictness.
        dropped: Supported claims that a revision lost (``masis/audit/revision.py``).
        answer: The answer, searched for text that instructs its reader.
        evidence: The evidence, searched for the same.

    """
    merged = [
        *_from_instructions(answer, evidence),
        *_from_citations(audit, evidence),
        *_from_claims(checks, missing, settings),
        *_from_revision(dropped, settings),
    ]
    return tuple(number_issues(merged))


class RaisedIssues(NamedTuple):
    """Objections as issues. Those with a quote that isn't in the answer are notes instead."""

    issues: tuple[Issue, ...]
    notes: tuple[str, ...]


def raise_issues(
    source: IssueSource,
    objections: Iterable[Objection],
    answer: str,
    earlier_issues: Sequence[Issue],
) -> RaisedIssues:
    """Return objections as issues, numbered after the earlier ones.

    An issue whose quote isn't in the answer has no position.
    """
    issues, notes = [], []
    contradicted_spans = [
        (issue.start, issue.end) for issue in earlier_issues if issue.type == "contradiction"
    ]
    for objection in objections:
        position = locate_quote(objection.quote, answer) if objection.quote else None
        if objection.quote and position is None:
            notes.append(
                f"{objection.description} (quoted, but not in the answer: {objection.quote})"
            )
        issues.append(
            _make_issue(
                source,
                objection.rule,
                objection.description,
                objection.reason,
                objection.suggestion,
                position=position,
                quote=answer[position.start : position.end] if position else None,
                evidence_ids=objection.evidence_ids,
                type_=objection.type,
                severity=_severity_of(objection, position, contradicted_spans),
            )
        )
    return RaisedIssues(tuple(number_issues(issues, len(earlier_issues) + 1)), tuple(notes))


def _severity_of(
    objection: Objection,
    position: QuotePosition | None,
    contradicted_spans: Sequence[tuple[int | None, int | None]],
) -> Severity:
    """Return the critic's severity, at least high if it quotes words that the evidence contradicts.

    They are contradicted if the critic says so, or if it finds no support for words that the claim
    check found contradicted (``contradicted_spans``).
    """
    if objection.severity == "critical" or position is None or objection.rule == SOURCE_CONFLICT:
        return objection.severity
    if objection.type == "contradiction":
        return "high"
    overlaps = any(
        (start or 0) < position.end and position.start < (end or 0)
        for start, end in contradicted_spans
    )
    return "high" if overlaps and objection.type in GROUNDLESS else objection.severity


INSTRUCTION_IN_ANSWER = "instruction_in_answer"
INSTRUCTION_IN_EVIDENCE = "instruction_in_evidence"
MAX_INSTRUCTIONS = 20
"""The most issues that one text raises. More of them wouldn't help a reviewer."""


def _from_instructions(answer: str, evidence: Sequence[Evidence]) -> Iterable[Issue]:
    for instruction in find_instructions(answer)[:MAX_INSTRUCTIONS]:
        yield _make_issue(
            "instructions",
            INSTRUCTION_IN_ANSWER,
            "The answer instructs a reader, a model or a tool:"
            f" “{instruction_text(answer, instruction)}”",
            f"Text of this kind ({instruction.label}) doesn't answer the question and may"
            " manipulate its reader.",
            "Remove it.",
            position=QuotePosition(instruction.start, instruction.end),
            quote=answer[instruction.start : instruction.end],
        )
    for chunk in evidence:
        for instruction in find_instructions(chunk.text)[:MAX_INSTRUCTIONS]:
            issue = _make_issue(
                "instructions",
                INSTRUCTION_IN_EVIDENCE,
                f"{chunk.id} instructs a reader, a model or a tool:"
                f" “{instruction_text(chunk.text, instruction)}”",
                f"Text of this kind ({instruction.label}) isn't evidence and may have manipulated"
                " the writer of the answer.",
                f"Don't rely on {chunk.id}, and find out how it got into the evidence.",
                evidence_ids=(chunk.id,),
            )
            yield issue.model_copy(
                update={"evidence_start": instruction.start, "evidence_end": instruction.end}
            )


def _from_citations(audit: CitationAudit, evidence: Sequence[Evidence]) -> Iterable[Issue]:
    # If no reference is an id of the evidence, the answer may number the chunks in their order.
    are_invalid = [citation.status == "invalid" for citation in audit.citations]
    references = {citation.reference for citation in audit.citations}
    may_be_positions = all(
        name.isdecimal() and len(name) < 4 and 1 <= int(name) <= len(evidence)
        for name in references
    )
    position_hint = _CHUNK_NUMBER_HINT if may_be_positions and all(are_invalid) else ""
    for citation in audit.citations:
        if citation.status == "invalid":
            yield _make_issue(
                "citations",
                "fabricated_reference",
                f"The reference {citation.reference!r} names no evidence of this case.",
                "No chunk has this id, neither to the letter nor by number or position.",
                f"Cite the chunk that says this, or drop the sentence.{position_hint}",
                # A citation attached to the answer has no marker, so the issue covers its sentence.
                position=(
                    QuotePosition(citation.marker_start, citation.marker_end)
                    if citation.marker_start < citation.marker_end
                    else QuotePosition(citation.start, citation.end)
                ),
                quote=citation.text,
            )
    yield from _from_quotes(audit)
    for sentence in audit.sentences:
        if sentence.status == "uncited":
            yield _make_issue(
                "citations",
                "uncited_sentence",
                "This sentence asserts something and cites nothing.",
                sentence.why,
                "Cite the chunk that says this, or drop the sentence.",
                position=QuotePosition(sentence.start, sentence.end),
                quote=sentence.text,
            )


_CHUNK_NUMBER_HINT = (
    " All references here are numbers that fit the count of chunks, though the chunks have ids of"
    " their own: where [1] means the first chunk, read the cases with --map evidence.id= (in Python"
    ' map={"evidence.id": None}).'
)


_QUOTE_ISSUES: dict[str, tuple[str, str, str]] = {
    "fabricated": (
        "fabricated_quote",
        "A citation quotes {id} with words that aren't in the evidence: “{quote}”",
        "The quote isn't in the cited chunk or in any other.",
    ),
    "spliced": (
        "spliced_quote",
        "A citation quotes {id} with words put together from several places: “{quote}”",
        "Its parts are in the evidence, but not next to each other.",
    ),
    "other_document": (
        "quote_from_another_document",
        "A citation quotes {id}, but the words are in {other}: “{quote}”",
        "The quote is in another document than the cited one.",
    ),
}


def _from_quotes(audit: CitationAudit) -> Iterable[Issue]:
    for check in audit.quotes:
        if check.finding == "verbatim":
            continue
        rule, template, reason = _QUOTE_ISSUES[check.finding]
        quote = shorten(check.quote, 200)
        yield _make_issue(
            "citations",
            rule,
            template.format(id=check.evidence_id, other=check.found_in, quote=quote),
            reason,
            "Quote the evidence word for word and cite the chunk that has the words, or remove the"
            " sentence.",
            position=QuotePosition(check.start, check.end) if check.start < check.end else None,
            evidence_ids=(check.found_in or check.evidence_id,),
        )


def _from_claims(
    checks: Sequence[ClaimCheck], missing: Sequence[MissingPoint], settings: Settings
) -> Iterable[Issue]:
    for check in checks:
        grade = severity(check)
        is_enabled = (
            settings.check_contradictions
            if check.verdict == "contradicted"
            else settings.check_factual
        )
        if grade is not None and is_enabled and is_reported(grade, settings.strictness):
            yield _unverified_issue(check, grade)
        yield from _reference_issues(check, settings)
    if settings.check_completeness and is_reported("medium", settings.strictness):
        for point in missing:
            yield _make_issue(
                "claims",
                "missing_information",
                f"Missing information: {point.description}",
                "The question asks for it and the evidence says it; the answer does not.",
                f"Consider adding: {point.description}",
                evidence_ids=(point.evidence_id,) if point.evidence_id else (),
                point=point.description,
            )


def _from_revision(dropped: Sequence[ClaimCheck], settings: Settings) -> Iterable[Issue]:
    if not is_reported("medium", settings.strictness):
        return
    for check in dropped:
        yield _make_issue(
            "claims",
            "dropped_content",
            f"The revision left this out: “{check.claim.text}”",
            "The evidence supports it, and no issue called for its removal.",
            "Put it back with its citation.",
            evidence_ids=check.sources,
        )


_UNVERIFIED: dict[ClaimVerdict, tuple[str, str]] = {
    "contradicted": ("contradicted_claim", "The evidence contradicts"),
    "unverifiable": ("unverifiable_claim", "Not confirmed"),
    "partial": ("partly_supported_claim", "Supported only in part"),
    "unscored": ("unscored_claim", "Not judged"),
    "unsupported": ("unsupported_claim", "Claim not supported by sources"),
}
"""Rule and beginning of the description, by verdict."""


def _unverified_issue(check: ClaimCheck, grade: Severity) -> Issue:
    rule, opening = _UNVERIFIED[check.verdict]
    default_reason = {
        "unverifiable": "The checks could not decide this.",
        "partial": "The evidence supports part of this claim, not all of it.",
        "unscored": "There is no verdict on this claim. That doesn't mean it's wrong.",
    }.get(check.verdict, "No evidence supports this claim.")
    if check.abstained == "either_way":
        opening = "Can be read either way"
    elif check.sources_disagree:
        opening = "The sources disagree"
    return _make_issue(
        "claims",
        rule,
        f"{opening}: “{check.claim.text}”",
        check.issue or default_reason,
        _claim_hint(check),
        position=_claim_position(check),
        quote=check.claim.text,
        evidence_ids=check.sources,
        severity=grade,
    )


def _claim_hint(check: ClaimCheck) -> str:
    if check.contradictions:
        contradiction = check.contradictions[0]
        claim_words = f"“{contradiction.claim_text}”"
        evidence_words = f"“{contradiction.evidence_text.rstrip(' .,;:')}”"
        if not contradiction.evidence_text:
            return f"Remove or verify {claim_words}: it isn't in the evidence."
        chunk_name = (
            f"[{contradiction.evidence_id}]"
            if contradiction.evidence_id.isdigit()
            else contradiction.evidence_id
        )
        source = (
            f"the source of {chunk_name} reads"
            if contradiction.kind == "source"
            else f"{chunk_name} says"
        )
        return f"Correct {claim_words}: {source} {evidence_words}."
    if check.figures:
        return f"See how {check.figures[0].claim_text} was calculated."
    if check.verdict == "unscored":
        return "Audit the answer again, or have a person decide this claim."
    if check.marked:
        return f"Look in the evidence for {check.marked[0].claim_text}."
    if check.verdict == "unverifiable":
        return "Have a verifier model or a person decide this claim."
    if check.verdict == "partial":
        return "Say only what the evidence says, or cite evidence for the rest."
    return "Remove or verify this claim."


def _reference_issues(check: ClaimCheck, settings: Settings) -> Iterable[Issue]:
    for reference in check.references:
        if reference.finding == "misattributed":
            yield _make_issue(
                "claims",
                "misattributed_reference",
                f"{reference.evidence_id} does not say this; {reference.better} does.",
                reference.reason,
                f"Cite {reference.better} instead of {reference.evidence_id}.",
                position=_claim_position(check),
                quote=check.claim.text,
                evidence_ids=(
                    reference.evidence_id,
                    *([reference.better] if reference.better else []),
                ),
            )
        elif reference.finding == "redundant" and is_reported("low", settings.strictness):
            yield _make_issue(
                "claims",
                "redundant_reference",
                f"{reference.evidence_id} does not support this; the other references support it"
                " alone.",
                reference.reason,
                f"Drop the reference to {reference.evidence_id}.",
                position=_claim_position(check),
                quote=check.claim.text,
                evidence_ids=(reference.evidence_id,),
            )


def _claim_position(check: ClaimCheck) -> QuotePosition | None:
    if check.claim.start is None or check.claim.end is None:
        return None
    return QuotePosition(check.claim.start, check.claim.end)


def _make_issue(
    source: IssueSource,
    rule: str,
    description: str,
    reason: str,
    suggestion: str,
    *,
    position: QuotePosition | None = None,
    quote: str | None = None,
    evidence_ids: tuple[str, ...] = (),
    point: str = "",
    type_: IssueType | None = None,
    severity: Severity | None = None,
) -> Issue:
    """Return an issue; its type and severity default to those of its rule."""
    words = quotation_key(quote or description)
    return Issue(
        id="",
        key=hashlib.sha256(f"{rule}\0{words}".encode()).hexdigest()[:16],
        source=source,
        type=type_ or RULES[rule].type,
        rule=rule,
        severity=severity or RULES[rule].severity,
        description=description,
        reason=reason,
        suggestion=suggestion,
        start=position.start if position else None,
        end=position.end if position else None,
        quote=quote,
        evidence_ids=evidence_ids,
        point=point,
    )


def number_issues(issues: Iterable[Issue], first: int = 1) -> Iterable[Issue]:
    """Yield the issues with the ids ``i1``, ``i2``... of one iteration, counted from ``first``."""
    for number, issue in zip(count(first), issues, strict=False):
        yield issue.model_copy(update={"id": f"i{number}"})

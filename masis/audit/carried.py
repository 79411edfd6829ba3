"""Issues that a revision leaves open: an issue is fixed only where what it accused is gone or confirmed.

A revision that takes the marker off an invented sentence has not mended it. So what an iteration accused is looked for
in the next answer: where the sentence still stands and no verdict confirms it, the issue is carried along with its
severity, and so is what it costs (the penalty of a fabricated reference, the bound on faithfulness).
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence

from masis.audit.assertions import asserts, citations_by_sentence
from masis.audit.citations import CITATION_NEEDED
from masis.audit.revision import content_keys
from masis.schema.audit import Citation, CitationAudit, ClaimCheck, Issue, Sentence
from masis.schema.run import Iteration

STANDS_FROM = 0.7
"""The share of an accused sentence's content words from which a sentence still says it: rewording is not mending."""
_WORDS_LEAST = 3
"""Content words that a quote needs to be recognised by itself; a shorter one is looked for within its sentence."""
NO_SOURCE = frozenset({"fabricated_reference", "fabricated_quote", "spliced_quote", "quote_from_another_document"})
"""Rules that accuse a sentence of resting on nothing: another figure in it gives it no source either."""
_ACCUSING = NO_SOURCE | {"contradicted_claim", "unsupported_claim", "partly_supported_claim"}
_OMISSIONS = frozenset({"missing_info", "incomplete", "incomplete_reasoning", "ambiguity"})
_SEVERITIES = ("low", "medium", "high", "critical")
_NEGATION = re.compile(r"\b(?:not|no|never|none|nor|neither|without|cannot)\b|n['’]t\b", re.IGNORECASE)


def carried(
    before: Iteration, audit: CitationAudit, checks: Sequence[ClaimCheck], found: Sequence[Issue]
) -> tuple[Issue, ...]:
    """Return the issues of the iteration before that are still open in an answer and that nobody raised again.

    Args:
        before: The iteration whose answer was revised.
        audit: The sentences of the new answer.
        checks: The verdicts on its claims.
        found: The issues that citations and claims raise in it.

    Returns:
        The issues as they were, placed in the new answer, with ``carried_from`` set; their ids are still to be given.

    """
    inside = citations_by_sentence(audit)
    new = [
        (sentence, frozenset(content_keys(_bare(sentence.text, sentence.start, inside[number]))))
        for number, sentence in enumerate(audit.sentences)
        if asserts(sentence)
    ]
    return tuple(
        _placed(issue, standing, before.iteration_number)
        for issue in before.issues
        for standing in _standing(issue, before, new)
        if not _confirmed(standing, checks) and not raised_again(issue, standing.start, standing.end, found)
    )


def with_carried(audit: CitationAudit, issues: Sequence[Issue], invalid_penalty: float) -> CitationAudit:
    """Return the audit of an answer with what a fabricated reference costs that an earlier answer had.

    ``invalid_penalty`` is applied once, whether the references are in this answer or were taken out of it.
    """
    references = tuple(i.quote or "" for i in issues if i.rule == "fabricated_reference" and i.carried_from is not None)
    if not references:
        return audit
    factor = audit.penalty_factor * (1.0 if audit.invalid_citations else invalid_penalty)
    return audit.model_copy(
        update={
            "carried_references": references,
            "hallucination_detected": True,
            "needs_retry": True,
            "penalty_factor": factor,
        }
    )


def with_raised(issues: Sequence[Issue], own: Sequence[Issue]) -> tuple[Issue, ...]:
    """Return the issues of an iteration with the critic's own, less those carried along that it raised again."""
    left = [
        issue
        for issue in issues
        if issue.carried_from is None
        or issue.source != "critic"
        or not raised_again(issue, issue.start or 0, issue.end or 0, own)
    ]
    return (*left, *own)


def raised_again(issue: Issue, start: int, end: int, found: Sequence[Issue]) -> bool:
    """Return whether one of these issues accuses ``start`` to ``end`` of the same, or of no less by the same source."""
    return any(
        other.start is not None
        and other.end is not None
        and other.start < end
        and start < other.end
        and (
            other.rule == issue.rule
            or (
                other.source == issue.source != "citations"
                and _SEVERITIES.index(other.severity) >= _SEVERITIES.index(issue.severity)
            )
        )
        for other in found
    )


def _standing(issue: Issue, before: Iteration, new: Sequence[tuple[Sentence, frozenset[str]]]) -> Iterator[Sentence]:
    """Yield the sentence of the new answer that says most of what an issue accused, if one still says it."""
    if issue.start is None or issue.end is None or not _accuses(issue):
        return
    audit = before.citation_audit
    at = bisect_right(audit.sentences, issue.start, key=lambda sentence: sentence.end)
    if at >= len(audit.sentences) or not asserts(audit.sentences[at]):
        return  # a fabricated entry in a list of sources accuses no statement
    sentence, inside = audit.sentences[at], [citation for citation in audit.citations if citation.sentence == at]
    whole = frozenset(content_keys(_bare(sentence.text, sentence.start, inside)))
    accused, required = whole, frozenset[str]()
    if issue.rule not in NO_SOURCE:
        stated = frozenset(content_keys(_bare(before.answer[issue.start : issue.end], issue.start, inside)))
        accused, required = (whole, stated) if len(stated) < _WORDS_LEAST else (stated, required)
        required |= {key for key in accused if key[0].isdecimal()}
    negated = bool(_NEGATION.search(sentence.text))
    standing = [
        (len(accused & keys), -number)
        for number, (other, keys) in enumerate(new)
        if accused
        and required <= keys
        and len(accused & keys) >= STANDS_FROM * len(accused)
        and (issue.rule in NO_SOURCE or bool(_NEGATION.search(other.text)) == negated)
    ]
    if standing:
        yield new[-max(standing)[1]][0]


def _accuses(issue: Issue) -> bool:
    """Return whether an issue objects to what a sentence says; what is left out is judged in each answer by itself."""
    return issue.rule in _ACCUSING or (issue.source == "critic" and issue.type not in _OMISSIONS)


def _bare(text: str, start: int, inside: Sequence[Citation]) -> str:
    """Return a stretch of an answer that begins at ``start``, without its markers and what asks for one."""
    end = start + len(text)
    spans = {(c.marker_start, c.marker_end) for c in inside if c.marker_start < end and c.marker_end > start}
    for first, last in sorted(spans, reverse=True):
        text = f"{text[: max(first - start, 0)]} {text[last - start :]}"
    return re.sub(re.escape(CITATION_NEEDED), " ", text, flags=re.IGNORECASE)


def _confirmed(sentence: Sentence, checks: Sequence[ClaimCheck]) -> bool:
    """Return whether the verifier supports every claim of the sentence, and it makes one."""
    verdicts = [
        check.verdict
        for check in checks
        if check.claim.start is not None
        and check.claim.end is not None
        and check.claim.start < sentence.end
        and sentence.start < check.claim.end
    ]
    return bool(verdicts) and all(verdict == "supported" for verdict in verdicts)


def _placed(issue: Issue, sentence: Sentence, number: int) -> Issue:
    since = issue.carried_from or number
    still = f"Raised in iteration {since}: the sentence still stands, and nothing confirms it."
    reason = issue.reason if issue.carried_from else f"{issue.reason} {still}".strip()
    quote = issue.quote if issue.rule == "fabricated_reference" else sentence.text
    update = {"start": sentence.start, "end": sentence.end, "quote": quote, "carried_from": since, "reason": reason}
    return issue.model_copy(update=update)

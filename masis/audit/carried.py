"""Issues that a revision leaves open: an issue is fixed only where what it accused is gone or
confirmed.

A revision that takes the marker off an invented sentence has not mended it. So what an iteration
accused is looked for in the next answer: where the sentence still stands and no verdict confirms
it, the issue is carried along with its severity, and so is what it costs (the penalty of a
fabricated reference, the bound on faithfulness).
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

from masis.audit.citations import CITATION_NEEDED
from masis.audit.revision import content_keys
from masis.audit.text.assertions import citations_by_sentence, is_assertion
from masis.schema.audit import Citation, CitationAudit, ClaimCheck, Issue
from masis.schema.run import Iteration

SAME_STATEMENT_SHARE = 0.7
"""The share of an accused sentence's content words from which a sentence still says it: rewording
is not mending.
"""
MAX_CARRIED = 500
"""Issues that are looked for in the next answer, serious ones first: with more it is no
less wrong.
"""
_MIN_WORDS = 3
"""Content words that a quote needs to be recognised by itself; a shorter one is looked for within
its sentence.
"""
UNSOURCED_RULES = frozenset(
    {"fabricated_reference", "fabricated_quote", "spliced_quote", "quote_from_another_document"}
)
"""Rules that accuse a sentence of resting on nothing: another figure in it gives it no source
either.
"""
_FLAGGING_RULES = UNSOURCED_RULES | {
    "contradicted_claim",
    "unsupported_claim",
    "partly_supported_claim",
}
_OMISSIONS = frozenset({"missing_info", "incomplete", "incomplete_reasoning", "ambiguity"})
_SEVERITIES = ("low", "medium", "high", "critical")
_NEGATION = re.compile(
    r"\b(?:not|no|never|none|nor|neither|without|cannot)\b|n['’]t\b", re.IGNORECASE
)


def issues_still_open(
    before: Iteration,
    answer: str,
    audit: CitationAudit,
    checks: Sequence[ClaimCheck],
    found: Sequence[Issue],
) -> tuple[Issue, ...]:
    """Return the issues of the iteration before that are still open in an answer and that nobody
    raised again.

    ``found`` are those that citations and claims raise in the new answer. The issues come as they
    were, placed in it, with ``carried_from`` set; their ids are still to be given.
    """
    revised = _RevisedAnswer(before, answer, audit)
    accusing = sorted(filter(_flags_statement, before.issues), key=lambda issue: not issue.major)[
        :MAX_CARRIED
    ]
    return tuple(
        _reopen_at(issue, standing, before.iteration_number)
        for issue in accusing
        if (standing := revised.find_statement(issue)) is not None
        and not _is_confirmed(standing, checks)
        and not raised_again(issue, standing.start, standing.end, found)
    )


class StatementSpan(NamedTuple):
    """A sentence of an answer, or two that follow one another, with what it says
    (``content_keys``).
    """

    start: int
    end: int
    text: str
    keys: frozenset[str]


def with_carried(
    audit: CitationAudit, issues: Sequence[Issue], invalid_penalty: float
) -> CitationAudit:
    """Return the audit of an answer with what a fabricated reference costs that an earlier answer
    had.

    ``invalid_penalty`` is applied once, whether the references are in this answer or were taken out
    of it.
    """
    references = tuple(
        i.quote or ""
        for i in issues
        if i.rule == "fabricated_reference" and i.carried_from is not None
    )
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
    """Return the issues of an iteration with the critic's own, less those carried along that it
    raised again.
    """
    left = [
        issue
        for issue in issues
        if issue.carried_from is None
        or issue.source != "critic"
        or not raised_again(issue, issue.start or 0, issue.end or 0, own)
    ]
    return (*left, *own)


def raised_again(issue: Issue, start: int, end: int, found: Sequence[Issue]) -> bool:
    """Return whether one of these issues accuses ``start`` to ``end`` of the same, or of no less by
    the same source.
    """
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


class _RevisedAnswer:
    """A new answer in which what an earlier iteration accused is looked for, each accused sentence
    once.
    """

    def __init__(self, before: Iteration, answer: str, audit: CitationAudit) -> None:
        self._answer, self._audit = before.answer, before.citation_audit
        self._ends = [sentence.end for sentence in self._audit.sentences]
        self._inside = citations_by_sentence(self._audit)
        self._sources: dict[int, StatementSpan | None] = {}
        inside = citations_by_sentence(audit)
        self._new = [
            StatementSpan(
                each.start,
                each.end,
                each.text,
                _stretch_keys(each.text, each.start, inside[number]),
            )
            for number, each in enumerate(audit.sentences)
            if is_assertion(each)
        ]
        self._pairs = [
            StatementSpan(a.start, b.end, answer[a.start : b.end], a.keys | b.keys)
            for a, b in pairwise(self._new)
        ]

    def find_statement(self, issue: Issue) -> StatementSpan | None:
        """Return the sentence that says most of what an issue accused, if one still says it.

        Where none does, two neighbours may: dividing a sentence is not mending it.
        """
        assert issue.start is not None
        assert issue.end is not None
        at = bisect_right(self._ends, issue.start)
        if at >= len(self._ends) or not is_assertion(self._audit.sentences[at]):
            return None  # a fabricated entry in a list of sources accuses no statement
        sentence = self._audit.sentences[at]
        if issue.rule in UNSOURCED_RULES:
            if at not in self._sources:
                self._sources[at] = self._best_match(
                    _stretch_keys(sentence.text, sentence.start, self._inside[at])
                )
            return self._sources[at]
        accused = _stretch_keys(
            self._answer[issue.start : issue.end], issue.start, self._inside[at]
        )
        required = frozenset[str]()
        if len(accused) < _MIN_WORDS:
            accused, required = (
                _stretch_keys(sentence.text, sentence.start, self._inside[at]),
                accused,
            )
        required |= {key for key in accused if key[0].isdecimal()}
        return self._best_match(accused, required, bool(_NEGATION.search(sentence.text)))

    def _best_match(
        self,
        accused: frozenset[str],
        required: frozenset[str] = frozenset(),
        negated: bool | None = None,
    ) -> StatementSpan | None:
        """Return the first of those that share most of the accused words, where any
        shares enough.
        """
        for among in (self._new, self._pairs) if accused else ():
            found = [
                each
                for each in among
                if required <= each.keys
                and len(accused & each.keys) >= SAME_STATEMENT_SHARE * len(accused)
                and (negated is None or bool(_NEGATION.search(each.text)) == negated)
            ]
            if found:
                return max(found, key=lambda each: len(accused & each.keys))
        return None


def _stretch_keys(text: str, start: int, inside: Sequence[Citation]) -> frozenset[str]:
    """Return what a stretch of an answer that begins at ``start`` says, its markers and what asks
    for one left out.
    """
    end = start + len(text)
    spans = {
        (c.marker_start, c.marker_end)
        for c in inside
        if c.marker_start < end and c.marker_end > start
    }
    for first, last in sorted(spans, reverse=True):
        text = f"{text[: max(first - start, 0)]} {text[last - start :]}"
    return frozenset(
        content_keys(re.sub(re.escape(CITATION_NEEDED), " ", text, flags=re.IGNORECASE))
    )


def _flags_statement(issue: Issue) -> bool:
    """Return whether an issue objects to what a sentence says; what is left out is judged in each
    answer by itself.
    """
    if issue.start is None or issue.end is None:
        return False
    return issue.rule in _FLAGGING_RULES or (
        issue.source == "critic" and issue.type not in _OMISSIONS
    )


def _is_confirmed(standing: StatementSpan, checks: Sequence[ClaimCheck]) -> bool:
    """Return whether the verifier supports every claim of the stretch, and it makes one."""
    verdicts = {
        check.verdict
        for check in checks
        if check.claim.start is not None
        and check.claim.end is not None
        and check.claim.start < standing.end
        and standing.start < check.claim.end
    }
    return verdicts == {"supported"}


def _reopen_at(issue: Issue, standing: StatementSpan, number: int) -> Issue:
    since = issue.carried_from or number
    still = f"Raised in iteration {since}: the sentence still stands, and nothing confirms it."
    reason = issue.reason if issue.carried_from else f"{issue.reason} {still}".strip()
    quote = issue.quote if issue.rule == "fabricated_reference" else standing.text
    update = {
        "start": standing.start,
        "end": standing.end,
        "quote": quote,
        "carried_from": since,
        "reason": reason,
    }
    return issue.model_copy(update=update)

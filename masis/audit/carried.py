"""Finds the issues that a revision leaves open.

An issue is fixed only if the flagged statement is gone or confirmed. A revision that removes the
marker from an invented sentence hasn't fixed it. Therefore the statements that an iteration flagged
are searched for in the next answer. If a sentence still says the same and no verdict confirms it,
its issue is carried over with its severity and its costs, which are the penalty for a fabricated
reference and the cap on faithfulness.
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
from masis.schema.rules import ISSUE_TYPES, rule_of
from masis.schema.run import Iteration

SAME_STATEMENT_SHARE = 0.7
"""The share of a flagged sentence's content words that a sentence with the same meaning must have.

It is below 1 because rewording a statement doesn't fix it.
"""
MAX_CARRIED = 500
"""Maximum number of issues that are searched for in the next answer, serious ones first.

Each issue is compared with every sentence, so without a limit the time would grow with the square
of the answer's length.
"""
_MIN_WORDS = 3
"""Minimum number of content words by which a flagged phrase can be recognized without its sentence.

A shorter phrase is searched for together with its sentence.
"""
# From the least serious, so that positions can be compared.
_SEVERITIES = ("low", "medium", "high", "critical")
# A sentence with a negation doesn't say the same as one without: "is", "isn't", "never is".
_NEGATION = re.compile(
    r"\b(?:not|no|never|none|nor|neither|without|cannot)\b|n['’]t\b", re.IGNORECASE
)


def issues_still_open(
    previous: Iteration,
    answer: str,
    audit: CitationAudit,
    checks: Sequence[ClaimCheck],
    new_issues: Sequence[Issue],
) -> tuple[Issue, ...]:
    """Return the previous iteration's issues that are still open and that no new issue repeats.

    They have positions in the new answer and ``carried_from`` set; their ids are assigned later.

    Args:
        previous: The previous iteration.
        answer: The new answer.
        audit: The citation audit of the new answer.
        checks: The checks of the claims of the new answer.
        new_issues: The issues of citations and claims in the new answer.

    """
    revised = _RevisedAnswer(previous, answer, audit)
    flagging_issues = sorted(
        filter(_flags_statement, previous.issues), key=lambda issue: not issue.major
    )[:MAX_CARRIED]
    return tuple(
        _reopen_at(issue, statement, previous.iteration_number)
        for issue in flagging_issues
        if (statement := revised.find_statement(issue)) is not None
        and not _is_confirmed(statement, checks)
        and not raised_again(issue, statement.start, statement.end, new_issues)
    )


class StatementSpan(NamedTuple):
    """A sentence of an answer, or two consecutive ones, with its content (``content_keys``)."""

    start: int
    end: int
    text: str
    keys: frozenset[str]


def add_carried_penalty(
    audit: CitationAudit, issues: Sequence[Issue], invalid_penalty: float
) -> CitationAudit:
    """Return the citation audit with the cost of a fabricated reference in an earlier answer.

    ``invalid_penalty`` is applied once, whether the references are in this answer or were removed.
    """
    references = tuple(
        issue.quote or ""
        for issue in issues
        if issue.rule == "fabricated_reference" and issue.carried_from is not None
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


def merge_raised_issues(issues: Sequence[Issue], raised: Sequence[Issue]) -> tuple[Issue, ...]:
    """Return the issues of an iteration with those that the critic raised.

    A carried issue that the critic raised again is dropped.
    """
    remaining = [
        issue
        for issue in issues
        if issue.carried_from is None
        or issue.source != "critic"
        or not raised_again(issue, issue.start or 0, issue.end or 0, raised)
    ]
    return (*remaining, *raised)


def raised_again(issue: Issue, start: int, end: int, new_issues: Sequence[Issue]) -> bool:
    """Return whether one of the new issues flags the same span for the same reason.

    It does if it has the same rule, or the same source (other than ``citations``) and at least the
    same severity.

    Args:
        issue: The earlier issue.
        start: The start of its statement in the new answer.
        end: The end of that statement, excluded.
        new_issues: The issues of the new answer.

    """
    return any(
        new_issue.start is not None
        and new_issue.end is not None
        and new_issue.start < end
        and start < new_issue.end
        and (
            new_issue.rule == issue.rule
            or (
                new_issue.source == issue.source != "citations"
                and _SEVERITIES.index(new_issue.severity) >= _SEVERITIES.index(issue.severity)
            )
        )
        for new_issue in new_issues
    )


class _RevisedAnswer:
    """A new answer, searched for the statements that an earlier iteration flagged."""

    def __init__(self, previous: Iteration, answer: str, audit: CitationAudit) -> None:
        self._answer, self._audit = previous.answer, previous.citation_audit
        self._ends = [sentence.end for sentence in self._audit.sentences]
        self._inside = citations_by_sentence(self._audit)
        self._sources: dict[int, StatementSpan | None] = {}
        new_citations = citations_by_sentence(audit)
        self._new = [
            StatementSpan(
                sentence.start,
                sentence.end,
                sentence.text,
                _content_without_markers(sentence.text, sentence.start, new_citations[number]),
            )
            for number, sentence in enumerate(audit.sentences)
            if is_assertion(sentence)
        ]
        self._pairs = [
            StatementSpan(
                first.start, second.end, answer[first.start : second.end], first.keys | second.keys
            )
            for first, second in pairwise(self._new)
        ]

    def find_statement(self, issue: Issue) -> StatementSpan | None:
        """Return the sentence that says most of a flagged statement, if one still says it.

        If none does, two adjacent sentences may, because splitting a sentence doesn't fix it.
        """
        assert issue.start is not None
        assert issue.end is not None
        index = bisect_right(self._ends, issue.start)
        if index >= len(self._ends) or not is_assertion(self._audit.sentences[index]):
            return None  # a fabricated entry in a list of sources flags no statement
        sentence = self._audit.sentences[index]
        if rule_of(issue.rule).carried_with == "sentence":
            if index not in self._sources:
                self._sources[index] = self._best_match(
                    _content_without_markers(sentence.text, sentence.start, self._inside[index])
                )
            return self._sources[index]
        flagged_keys = _content_without_markers(
            self._answer[issue.start : issue.end], issue.start, self._inside[index]
        )
        required = frozenset[str]()
        if len(flagged_keys) < _MIN_WORDS:
            flagged_keys, required = (
                _content_without_markers(sentence.text, sentence.start, self._inside[index]),
                flagged_keys,
            )
        required |= {key for key in flagged_keys if key[0].isdecimal()}
        return self._best_match(flagged_keys, required, bool(_NEGATION.search(sentence.text)))

    def _best_match(
        self,
        flagged_keys: frozenset[str],
        required: frozenset[str] = frozenset(),
        negated: bool | None = None,
    ) -> StatementSpan | None:
        """Return the sentence that shares the most flagged words, if it shares enough of them.

        If no sentence does, pairs of adjacent sentences are compared.
        """
        for candidates in (self._new, self._pairs) if flagged_keys else ():
            matches = [
                span
                for span in candidates
                if required <= span.keys
                and len(flagged_keys & span.keys) >= SAME_STATEMENT_SHARE * len(flagged_keys)
                and (negated is None or bool(_NEGATION.search(span.text)) == negated)
            ]
            if matches:
                return max(matches, key=lambda span: len(flagged_keys & span.keys))
        return None


def _content_without_markers(
    text: str, start: int, citations: Sequence[Citation]
) -> frozenset[str]:
    """Return the content keys of a part of an answer that begins at ``start``, without its markers.

    Otherwise a marker that a revision removed or replaced would make two statements differ.
    """
    end = start + len(text)
    spans = {
        (citation.marker_start, citation.marker_end)
        for citation in citations
        if citation.marker_start < end and citation.marker_end > start
    }
    for marker_start, marker_end in sorted(spans, reverse=True):
        text = f"{text[: max(marker_start - start, 0)]} {text[marker_end - start :]}"
    return frozenset(
        content_keys(re.sub(re.escape(CITATION_NEEDED), " ", text, flags=re.IGNORECASE))
    )


def _flags_statement(issue: Issue) -> bool:
    """Return whether an issue is about a statement that the next answer can repeat.

    Omissions aren't, because every audit checks for them.
    """
    if issue.start is None or issue.end is None:
        return False
    return rule_of(issue.rule).carried_with is not None or (
        issue.source == "critic" and ISSUE_TYPES[issue.type].is_about_statement
    )


def _is_confirmed(statement: StatementSpan, checks: Sequence[ClaimCheck]) -> bool:
    """Return whether the verifier supports every claim of the span, and the span has one."""
    verdicts = {
        check.verdict
        for check in checks
        if check.claim.start is not None
        and check.claim.end is not None
        and check.claim.start < statement.end
        and statement.start < check.claim.end
    }
    return verdicts == {"supported"}


def _reopen_at(issue: Issue, statement: StatementSpan, previous_number: int) -> Issue:
    first_number = issue.carried_from or previous_number
    note = (
        f"Raised in iteration {first_number}: the sentence is still there, and nothing confirms it."
    )
    reason = issue.reason if issue.carried_from else f"{issue.reason} {note}".strip()
    quote = issue.quote if issue.rule == "fabricated_reference" else statement.text
    update = {
        "start": statement.start,
        "end": statement.end,
        "quote": quote,
        "carried_from": first_number,
        "reason": reason,
    }
    return issue.model_copy(update=update)

"""Defines revisers, and finds claims that a revision lost (CRITIC-LOOP-REVISER-OUTPUT)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Protocol

from masis.audit.context import AuditContext
from masis.audit.text.assertions import plain_claim
from masis.audit.text.quotes import locate_quote
from masis.schema.audit import ClaimCheck, Critique, Issue, Revision
from masis.schema.case import ClaimVerdict
from masis.schema.rules import rule_of
from masis.schema.run import Iteration


class Reviser(Protocol):
    """Fixes the issues of an answer and keeps its correct parts."""

    def revise(
        self, context: AuditContext, critique: Critique, issues: Sequence[Issue]
    ) -> Revision:
        """Return a revision, equal to the answer if nothing can be improved.

        Raises:
            StepError: The reviser failed.

        """


# Claims that a revision lost: the evidence supports them, no issue touched them, and the new answer
# lacks them.
#
# A revision must keep correct information (REQ-CRITIC-012). Claims are recognized by their words
# and not by their meaning. A claim is kept if the new answer has its words in a row, or all of its
# numbers and enough of its content words anywhere.

KEPT_SHARE = 0.3
"""The share of a claim's content words that the new answer must have.

On the paraphrases in ``tests/offline/traps.json``, which change more than a reviser does, this
keeps 99 of 108 claims and notices 95 of 99 removed sentences.
"""
_STEM = 5
"""The number of letters by which words are compared, so that ``opened`` and ``opening`` match."""
_MIN_WORDS = 3
"""A claim without a number needs this many content words to be recognized as lost."""
_FLAGGED_VERDICTS = frozenset[ClaimVerdict]({"contradicted", "unsupported"})
"""Verdicts that leave a claim without any support."""

# "1,500", "2.5", or a run of letters.
_WORD = re.compile(r"\d+(?:[.,]\d+)*|[^\W\d_]+")
_WIDE = "\u2e80"
"""The first character of the scripts without spaces (CJK radicals)."""
# Frequent words of English, German, French and Spanish that don't identify the content.
_FUNCTION_WORDS = frozenset(
    """
        the and for are was were has have had been being not but with from that this these those
        which who whom whose its their there then than also such into onto over under about between
        through during after before while when where will would can could may might should must one
        some any all each other more most very they them his her him she our your you der die das
        und ist ein eine les des une est los las una del por con que
    """.split()
)


def dropped_claims(earlier: Sequence[Iteration], answer: str) -> tuple[ClaimCheck, ...]:
    """Return the supported claims of earlier iterations that this answer lacks, each once."""
    answer_keys = frozenset(content_keys(answer))
    claims = {
        plain_claim(check.claim): check
        for iteration in earlier
        for check in _claims_to_keep(iteration)
    }
    return tuple(check for text, check in claims.items() if not _is_kept(text, answer, answer_keys))


def _claims_to_keep(iteration: Iteration) -> Iterator[ClaimCheck]:
    """Yield the claims that the evidence supports and that no issue questions."""
    return (
        check
        for check in iteration.claims
        if check.verified and not _is_targeted(check, iteration.issues)
    )


def may_replace(revised: Iteration, earlier: Iteration) -> bool:
    """Return whether a revision may be chosen over an earlier answer, regardless of its score.

    It may if it has no more serious issues, keeps every supported claim together with the citations
    that support it, and cites something if the earlier answer cited any claim that isn't flagged. A
    judge's score alone isn't enough, because a judge that prefers fluent text may prefer an uncited
    answer about something else.
    """
    serious_count, earlier_serious_count = (
        sum(issue.major for issue in iteration.issues) for iteration in (revised, earlier)
    )
    if serious_count > earlier_serious_count or dropped_claims((earlier,), revised.answer):
        return False
    if _cites_supported(earlier) and not _cites_validly(revised):
        return False
    return all(_keeps_citations(check, revised) for check in _claims_to_keep(earlier))


def _cites_supported(iteration: Iteration) -> bool:
    """Return whether the answer cites evidence for a claim that isn't flagged."""
    if not iteration.claims:
        return _cites_validly(iteration)
    return any(
        check.claim.cited and check.verdict not in _FLAGGED_VERDICTS for check in iteration.claims
    )


def _cites_validly(iteration: Iteration) -> bool:
    return any(
        citation.status == "valid" for citation in iteration.citation_audit.citations
    ) or any(check.claim.cited for check in iteration.claims)


def _keeps_citations(check: ClaimCheck, revised: Iteration) -> bool:
    """Return whether a revision still cites every chunk that supports a claim for its words."""
    supporting = _supporting_chunks(check)
    if not supporting:
        return True
    claim = plain_claim(check.claim)
    keys = frozenset(content_keys(claim))
    cited: set[str] = set()
    for revised_check in revised.claims:
        revised_claim = plain_claim(revised_check.claim)
        if claim in revised_claim or len(
            keys & frozenset(content_keys(revised_claim))
        ) >= KEPT_SHARE * len(keys):
            cited.update(revised_check.claim.cited)
    return supporting <= cited


def _supporting_chunks(check: ClaimCheck) -> frozenset[str]:
    """Return the cited chunks that support a claim.

    These are all cited chunks if they weren't checked one by one.
    """
    if not check.references:
        return frozenset(check.claim.cited)
    supporting_findings = ("supports", "partly_supports", "unchecked")
    return frozenset(
        reference.evidence_id
        for reference in check.references
        if reference.finding in supporting_findings
    )


def _is_targeted(check: ClaimCheck, issues: Sequence[Issue]) -> bool:
    """Return whether an issue asks for a change of the claim's words."""
    start, end = check.claim.start, check.claim.end
    if start is None or end is None:
        return True
    return any(
        issue.start is not None
        and issue.end is not None
        and issue.start < end
        and issue.end > start
        for issue in issues
        if not rule_of(issue.rule).is_fixed_by_citing
    )


def _is_kept(claim: str, answer: str, answer_keys: frozenset[str]) -> bool:
    if claim in answer or locate_quote(claim, answer) is not None:
        return True
    keys = frozenset(content_keys(claim))
    if any(key[0].isdecimal() and key not in answer_keys for key in keys):
        return False
    return len(keys) < _MIN_WORDS or len(keys & answer_keys) >= KEPT_SHARE * len(keys)


def content_keys(text: str) -> Iterator[str]:
    """Yield the content of a text as comparable keys.

    The keys are numbers, word stems and, in scripts without spaces, pairs of characters.
    """
    for word in _WORD.findall(text.casefold()):
        if word[0].isdecimal():
            yield word.replace(",", "")
        elif word[0] > _WIDE:
            yield from (word[position : position + 2] for position in range(max(1, len(word) - 1)))
        elif len(word) > 2 and word not in _FUNCTION_WORDS:
            yield word[:_STEM]

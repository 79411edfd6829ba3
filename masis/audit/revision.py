"""Revision: a better answer, saying what was changed and why (CRITIC-LOOP-REVISER-OUTPUT)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Protocol

from masis.audit.context import AuditContext
from masis.audit.text.assertions import plain_claim
from masis.audit.text.quotes import locate_quote
from masis.schema.audit import ClaimCheck, Critique, Issue, Revision
from masis.schema.run import Iteration


class Reviser(Protocol):
    """Improves an answer on the issues found, keeping what was right."""

    def revise(
        self, context: AuditContext, critique: Critique, issues: Sequence[Issue]
    ) -> Revision:
        """A revision; equal to the answer where nothing can be improved. Raises StepError on
        failure.
        """


# What a revision lost: claims that the evidence supports, that no issue touched, and that the new
# answer lacks.
#
# REQ-CRITIC-012: correct information is preserved. Recognised by words, not by meaning: a claim is
# kept where the new answer has its words in a row, or all of its numbers and enough of its content
# words anywhere.

KEPT_SHARE = 0.3
"""The share of a claim's content words that the new answer must have.

On the paraphrases in ``tests/offline/traps.json``, which go further than a reviser does, this keeps
99 of 108 claims and notices 95 of 99 sentences taken out."""
_STEM = 5
"""Letters by which words are compared, so that ``opened`` and ``opening`` are one."""
_MIN_WORDS = 3
"""Content words that a claim without a number needs for its loss to be distinguished from a change
of wording.
"""
_REFERENCE_RULES = frozenset(
    {"redundant_reference", "misattributed_reference", "fabricated_reference", "uncited_sentence"}
)
"""Issues that call for another citation and leave the statement as it is."""
_FLAGGED_RULES = frozenset({"contradicted", "unsupported"})
UNDECIDED_RULES = frozenset({"unverifiable_claim", "unscored_claim"})
"""Rules of issues that say only that nothing was confirmed: no revision is made because of them."""

_WORD = re.compile(r"\d+(?:[.,]\d+)*|[^\W\d_]+")
_WIDE = "\u2e80"
_EMPTY = frozenset(
    """
        the and for are was were has have had been being not but with from that this these those
        which who whom whose its their there then than also such into onto over under about between
        through during after before while when where will would can could may might should must one
        some any all each other more most very they them his her him she our your you der die das
        und ist ein eine les des une est los las una del por con que
    """.split()
)


def dropped_claims(earlier: Sequence[Iteration], answer: str) -> tuple[ClaimCheck, ...]:
    """The claims of earlier iterations that this answer should still make and does not,
    each once.
    """
    said = frozenset(content_keys(answer))
    claims = {
        plain_claim(check.claim): check for iteration in earlier for check in _to_keep(iteration)
    }
    return tuple(check for text, check in claims.items() if not _is_kept(text, answer, said))


def _to_keep(iteration: Iteration) -> Iterator[ClaimCheck]:
    """Yield the claims that the evidence supports and that no issue called in question."""
    return (
        check
        for check in iteration.claims
        if check.verified and not _is_targeted(check, iteration.issues)
    )


def may_replace(revised: Iteration, earlier: Iteration) -> bool:
    """Return whether a revision may be chosen over an earlier answer, whatever its score.

    It may where it has no more serious issues, keeps every claim that the evidence supports
    together with the citations that support it, and cites something if the earlier answer cited
    anything that is not accused. A judge's score alone decides nothing: one that likes fluent text
    prefers an uncited answer about something else.
    """
    serious, before = (sum(issue.major for issue in each.issues) for each in (revised, earlier))
    if serious > before or dropped_claims((earlier,), revised.answer):
        return False
    if _cites_supported(earlier) and not _cites_validly(revised):
        return False
    return all(_keeps_citations(check, revised) for check in _to_keep(earlier))


def _cites_supported(iteration: Iteration) -> bool:
    """Return whether a citation of the answer stands for something that is not accused."""
    if not iteration.claims:
        return _cites_validly(iteration)
    return any(
        check.claim.cited and check.verdict not in _FLAGGED_RULES for check in iteration.claims
    )


def _cites_validly(iteration: Iteration) -> bool:
    return any(
        citation.status == "valid" for citation in iteration.citation_audit.citations
    ) or any(check.claim.cited for check in iteration.claims)


def _keeps_citations(check: ClaimCheck, revised: Iteration) -> bool:
    """Return whether the words of a claim are still cited to every chunk that supports it."""
    wanted = _supporting(check)
    if not wanted:
        return True
    claim = plain_claim(check.claim)
    keys = frozenset(content_keys(claim))
    cited: set[str] = set()
    for other in revised.claims:
        own = plain_claim(other.claim)
        if claim in own or len(keys & frozenset(content_keys(own))) >= KEPT_SHARE * len(keys):
            cited.update(other.claim.cited)
    return wanted <= cited


def _supporting(check: ClaimCheck) -> frozenset[str]:
    """Return the chunks that a claim cites and that support it; all it cites where nobody checked
    one by one.
    """
    if not check.references:
        return frozenset(check.claim.cited)
    right = ("supports", "partly_supports", "unchecked")
    return frozenset(
        reference.evidence_id for reference in check.references if reference.finding in right
    )


def _is_targeted(check: ClaimCheck, issues: Sequence[Issue]) -> bool:
    """Whether an issue called for a change of the claim's words."""
    start, end = check.claim.start, check.claim.end
    if start is None or end is None:
        return True
    return any(
        issue.start is not None
        and issue.end is not None
        and issue.start < end
        and issue.end > start
        for issue in issues
        if issue.rule not in _REFERENCE_RULES
    )


def _is_kept(claim: str, answer: str, said: frozenset[str]) -> bool:
    if claim in answer or locate_quote(claim, answer) is not None:
        return True
    keys = frozenset(content_keys(claim))
    if any(key[0].isdecimal() and key not in said for key in keys):
        return False
    return len(keys) < _MIN_WORDS or len(keys & said) >= KEPT_SHARE * len(keys)


def content_keys(text: str) -> Iterator[str]:
    """Yield what a text says, by number, by stem, and by pairs of characters in scripts that set no
    blanks.
    """
    for found in _WORD.findall(text.casefold()):
        if found[0].isdecimal():
            yield found.replace(",", "")
        elif found[0] > _WIDE:
            yield from (found[at : at + 2] for at in range(max(1, len(found) - 1)))
        elif len(found) > 2 and found not in _EMPTY:
            yield found[:_STEM]

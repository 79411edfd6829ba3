"""Explains why each sentence, reference and claim of an answer has its mark. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Literal, NotRequired, TypedDict

from masis.schema.audit import Citation, ClaimCheck, ReferenceCheck, ResolvedBy
from masis.schema.run import Iteration
from masis.schema.wording import describe_absent_figures, describe_marked_words, shorten
from masis.settings import OFFLINE
from masis.views.marks import cited_claims, contradicting_chunks, written_references
from masis.views.words import REFERENCE, LabelData, label, model_words, verdict_word

LONGEST_CLAIM = 300
WITHOUT_PASSAGE = "The check confirmed it, but there's no passage to cite."
"""Shown for a supported claim without a specific chunk, usually one about a gap in the evidence."""

RESOLVED: dict[ResolvedBy, str] = {
    "exact": "It matches {id} exactly.",
    "normalised": "It matches {id}, ignoring case and spaces.",
    "suffix": "{written} means {id}, the only id that ends in {number}.",
    "given": "A citation supplied with the answer refers to {id}.",
    "position": "{written} means {id}, number {number} in the list of evidence.",
    "source": "It matches the source of {id}.",
}
SUPPORTS = {
    "supports": "{id} supports this",
    "partly_supports": "{id} supports part of this",
    "misattributed": "{id} does not support this",
    "redundant": "{id} adds nothing to the other references",
    "unsupported": "{id} does not support this",
    "contradicts": "{id} contradicts this",
    "unchecked": "{id} could not be checked",
}


class ReferenceData(TypedDict):
    """One reference of the answer with its result.

    ``claims`` are the indices of the claims that it is for and on which its chunk bears. ``target``
    is its row among the labels of the form.
    """

    text: str
    label: LabelData
    evidence: str
    says: list[str]
    claims: list[int]
    target: str


class ClaimData(TypedDict):
    """One claim of the answer with its verdict.

    ``says`` explains the verdict. ``by`` names the model that judged it and is empty for offline
    rules. ``target`` is the claim's row among the labels of the form; a claim without a position
    has none.
    """

    text: str
    label: LabelData
    says: list[str]
    by: str
    support: NotRequired[float]
    target: NotRequired[str]


def target_key(kind: Literal["claim", "reference", "sentence"], start: int, end: int) -> str:
    """Return the key under which labels on a span of the answer are stored."""
    return f"{kind}:{start}-{end}"


def references_data(iteration: Iteration, marks: dict[int, str]) -> list[ReferenceData]:
    """Return all references of an answer in order; ``marks`` holds the mark of each."""
    checks = {
        (check.claim.sentence, reference.evidence_id): reference
        for check in iteration.claims
        for reference in check.references
    }
    written, cited = written_references(iteration), cited_claims(iteration)
    data: list[ReferenceData] = []
    for index, citation in enumerate(iteration.citation_audit.citations):
        claims = [(claim, iteration.claims[claim]) for claim in cited[index]]
        check = checks.get((citation.sentence, citation.evidence_id or ""))
        data.append(
            {
                "text": written[index],
                "label": label(REFERENCE[marks[index]]),
                "evidence": citation.evidence_id or "",
                "says": _reference_says(
                    citation, written[index], check, [check for _, check in claims]
                ),
                "claims": [
                    claim
                    for claim, check in claims
                    if citation.evidence_id in contradicting_chunks(check)
                    or citation.evidence_id in check.sources
                    or any(quote.evidence_id == citation.evidence_id for quote in check.quotes)
                ],
                "target": target_key("reference", citation.start, citation.end),
            }
        )
    return data


def _reference_says(
    citation: Citation, written: str, check: ReferenceCheck | None, claims: Sequence[ClaimCheck]
) -> list[str]:
    """Say which chunk a reference means, and what the chunk says about the claims it is cited for.

    The check of a reference concerns one claim. Where the chunk decides the claims differently,
    each is quoted.
    """
    chunk = citation.evidence_id
    if chunk is None:
        return [f"No evidence of this case has the id “{shorten(citation.reference, 80)}”."]
    resolved = []
    if citation.resolved_by:
        is_range = written.strip("[]()【】") != citation.reference and _RANGE.search(written)
        named = f"“{written}” is a range. Its {citation.reference}" if is_range else f"“{written}”"
        words = RESOLVED[citation.resolved_by]
        resolved = [words.format(id=chunk, written=named, number=citation.reference)]
    denied = [claim for claim in claims if chunk in contradicting_chunks(claim)]
    backed = [
        claim
        for claim in claims
        if claim.verdict == "supported"
        and chunk in claim.sources
        and chunk not in contradicting_chunks(claim)
    ]
    if len(claims) > 1 and (denied or (backed and len(backed) < len(claims))):
        return [
            *resolved,
            *([f"{chunk} contradicts {_quoted_claims(denied)}."] if denied else []),
            *([f"{chunk} supports {_quoted_claims(backed)}."] if backed else []),
        ]
    if denied:
        return [*resolved, f"{chunk} contradicts this."]
    return [*resolved, *_check_says(check)] if check else resolved


# "1-3", "1–3", "1 to 3"
_RANGE = re.compile(r"\d\s*(?:[-–—]|to|through)\s*\d")


def _quoted_claims(checks: Sequence[ClaimCheck]) -> str:
    quoted = [f"“{shorten(check.claim.text, 120)}”" for check in checks[:3]]
    if more := len(checks) - len(quoted):
        quoted.append(f"{more} more")
    return " and ".join(filter(None, (", ".join(quoted[:-1]), quoted[-1])))


def _check_says(check: ReferenceCheck) -> list[str]:
    words = SUPPORTS[check.finding].format(id=check.evidence_id)
    # Verifiers may only repeat the finding: "It supports this."
    repeats = check.reason.removeprefix("It ").rstrip(".") in words
    if check.better:
        words += f"; {check.better} does"
    if check.support is not None:
        words += f" (support {check.support:.2f})"
    return [f"{words}.", *([_sentence(check.reason)] if check.reason and not repeats else [])]


def claims_data(iteration: Iteration) -> list[ClaimData]:
    """Return all claims of an answer in order."""
    return [_claim_data(check) for check in iteration.claims]


def _claim_data(check: ClaimCheck) -> ClaimData:
    data: ClaimData = {
        "text": shorten(check.claim.text, LONGEST_CLAIM),
        "label": label(verdict_word(check)),
        "says": list(_claim_says(check)),
        "by": "" if check.judged_by == OFFLINE else model_words(check.judged_by),
    }
    if check.support is not None:
        data["support"] = check.support
    start, end = check.claim.start, check.claim.end
    if start is not None and end is not None and start < end:
        data["target"] = target_key("claim", start, end)
    return data


def _claim_says(check: ClaimCheck) -> list[str]:
    if check.unscored:
        return [_sentence(check.unscored.reason)]
    says = [
        _sentence(contradiction.reason)
        for contradiction in check.contradictions
        if contradiction.reason
    ]
    if not says and check.issue:
        says = [_sentence(check.issue)]
    # A reason may already contain the sentence about figures or marks, which is then moved.
    if check.figures:
        figures = f"{describe_absent_figures([figure.claim_text for figure in check.figures])}."
        says = [*(line for line in says if line != figures), _sentence(figures)]
    if check.marked:
        marked = _sentence(
            f"{describe_marked_words([words.claim_text for words in check.marked])}."
        )
        says = [*(line for line in says if line != marked), marked]
    if not says or check.verified:
        unnamed = check.verdict == "supported" and not check.sources
        says = [WITHOUT_PASSAGE if unnamed else f"{verdict_word(check).meaning}.", *says]
    if check.steps:
        says.append(_sentence(check.steps))
    if check.claim.statement:
        says.insert(0, f"Read as “{shorten(check.claim.statement, LONGEST_CLAIM)}”")
    missing = [
        text for start, end in check.uncovered if (text := check.claim.text[start:end].strip())
    ]
    if missing and not check.issue and check.verdict in ("partial", "unsupported"):
        says.append(
            "Not found in any evidence: "
            + ", ".join(f"“{shorten(words, 80)}”" for words in missing[:4])
            + "."
        )
    # A reason may repeat what another line says.
    return list(dict.fromkeys(says))


def _sentence(text: str) -> str:
    # capitalize() would change the rest to lower case, such as names.
    return shorten(text[:1].upper() + text[1:], LONGEST_CLAIM)

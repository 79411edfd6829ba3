"""Explains why each sentence, reference and claim of an answer has its mark. Pure."""

from __future__ import annotations

from typing import Literal, NotRequired, TypedDict

from masis.schema.audit import Citation, ClaimCheck, ReferenceCheck, ResolvedBy
from masis.schema.run import Iteration
from masis.schema.wording import describe_absent_figures, describe_marked_words, shorten
from masis.settings import OFFLINE
from masis.views.words import REFERENCE, LabelData, label, model_words, verdict_word

LONGEST_CLAIM = 300
WITHOUT_PASSAGE = "The check found it right without a passage to cite."
"""Shown for a supported claim without a specific chunk, usually one about a gap in the evidence."""

RESOLVED: dict[ResolvedBy, str] = {
    "exact": "It names {id} exactly.",
    "normalised": "It names {id}, apart from case and blanks.",
    "suffix": "It is a bare number, and {id} is the only id that ends in it.",
    "given": "A citation supplied with the answer names {id}.",
    "position": "It is a bare number, and {id} is at this position in the list of evidence.",
    "source": "It names the source of {id}.",
}
SUPPORTS = {
    "supports": "{id} supports the sentence",
    "partly_supports": "{id} supports part of the sentence",
    "misattributed": "{id} does not support this",
    "redundant": "{id} adds nothing to the other references",
    "unsupported": "{id} does not support this",
    "contradicts": "{id} contradicts this",
    "unchecked": "{id} could not be checked",
}


class ReferenceData(TypedDict):
    """One reference of the answer with its result.

    ``target`` is its row among the labels of the form.
    """

    text: str
    label: LabelData
    evidence: str
    says: list[str]
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
    return [
        {
            "text": citation.text,
            "label": label(REFERENCE[marks[index]]),
            "evidence": citation.evidence_id or "",
            "says": _reference_says(
                citation, checks.get((citation.sentence, citation.evidence_id or ""))
            ),
            "target": target_key("reference", citation.start, citation.end),
        }
        for index, citation in enumerate(iteration.citation_audit.citations)
    ]


def _reference_says(citation: Citation, check: ReferenceCheck | None) -> list[str]:
    if citation.evidence_id is None:
        return [f"No evidence of this case has the id “{shorten(citation.reference, 80)}”."]
    says = (
        [RESOLVED[citation.resolved_by].format(id=citation.evidence_id)]
        if citation.resolved_by
        else []
    )
    return [*says, *_check_says(check)] if check else says


def _check_says(check: ReferenceCheck) -> list[str]:
    words = SUPPORTS[check.finding].format(id=check.evidence_id)
    if check.better:
        words += f"; {check.better} does"
    if check.support is not None:
        words += f" (support {check.support:.2f})"
    return [f"{words}.", *([_sentence(check.reason)] if check.reason else [])]


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

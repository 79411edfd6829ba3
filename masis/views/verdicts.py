"""Why each sentence, reference and claim of an answer is marked as it is, in words. Pure."""

from __future__ import annotations

from typing import Literal, NotRequired, TypedDict

from masis.schema.audit import Citation, ClaimCheck, ReferenceCheck, ResolvedBy
from masis.schema.run import Iteration
from masis.schema.wording import describe_absent_figures, describe_marked_words, shorten
from masis.settings import OFFLINE
from masis.views.words import REFERENCE, LabelData, label, model_words, verdict_word

LONGEST_CLAIM = 300
WITHOUT_PASSAGE = "The check found it right without a passage to cite."
"""Said of a claim that is supported by no chunk in particular: as a rule it says what the evidence
lacks.
"""

RESOLVED: dict[ResolvedBy, str] = {
    "exact": "It names {id} exactly.",
    "normalised": "It names {id}, apart from case and blanks.",
    "suffix": "A bare number, and {id} is the one id that ends in it.",
    "given": "A citation that came beside the answer names {id}.",
    "position": "A bare number: {id} is at this position in the list of evidence.",
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
    """One reference of the answer and what became of it; ``target`` names its row among the labels
    of the form.
    """

    text: str
    label: LabelData
    evidence: str
    says: list[str]
    target: str


class ClaimData(TypedDict):
    """One claim of the answer with its verdict. ``says`` is why, ``by`` who judged it (empty:
    rules).

    ``target`` names its row among the labels of the form; a claim without a place in the answer has
    none.
    """

    text: str
    label: LabelData
    says: list[str]
    by: str
    support: NotRequired[float]
    target: NotRequired[str]


def target_key(kind: Literal["claim", "reference", "sentence"], start: int, end: int) -> str:
    """Return the name of what stands at a place of the answer, as labels on it are kept under."""
    return f"{kind}:{start}-{end}"


def references(iteration: Iteration, marks: dict[int, str]) -> list[ReferenceData]:
    """Return every reference of an answer, in its order; ``marks`` say what each is."""
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


def claims(iteration: Iteration) -> list[ClaimData]:
    """Return every claim of an answer, in its order."""
    return [_claim(check) for check in iteration.claims]


def _claim(check: ClaimCheck) -> ClaimData:
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
    says = [_sentence(each.reason) for each in check.contradictions if each.reason]
    if not says and check.issue:
        says = [_sentence(check.issue)]
    if check.figures:
        figures = f"{describe_absent_figures([figure.claim_text for figure in check.figures])}."
        says = [*(each for each in says if each != figures), _sentence(figures)]
    if check.marked:
        marked = _sentence(
            f"{describe_marked_words([words.claim_text for words in check.marked])}."
        )
        says = [*(each for each in says if each != marked), marked]
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
    return list(dict.fromkeys(says))


def _sentence(text: str) -> str:
    return shorten(text[:1].upper() + text[1:], LONGEST_CLAIM)

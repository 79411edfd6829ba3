"""The causes of labelled faults, which follow from what the labelled words cite.

Pages, exports and the counts of failure modes all use these functions.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from masis.audit.citations.engine import audit_citations
from masis.schema.audit import CitationAudit
from masis.schema.case import Case
from masis.schema.causes import Cause, cause_of_label
from masis.schema.labels import TargetLabel


def causes_of_labels(
    labels: Sequence[TargetLabel], audit: CitationAudit | None
) -> list[Cause | None]:
    """Return where the fault of each label comes from.

    Args:
        labels: All labels of one decision.
        audit: The citations of the decided answer, or None if the answer isn't at hand. Then
            supporting passages and the right reference show nothing, because the cause depends on
            what the words cite.

    """
    missing = any(label.label == "passage_missing" for label in labels)
    return [
        None
        if audit is None and depends_on_citations(label)
        else cause_of_label(
            label, find_cited(label, audit) if audit else (), passage_missing=missing
        )
        for label in labels
    ]


def depends_on_citations(label: TargetLabel) -> bool:
    """Return whether the cause of a label depends on what its words cite."""
    return bool(label.passages("supports")) or label.right_reference is not None


def audit_decided_answer(
    case: Case, answer: str | None, labels: Iterable[TargetLabel]
) -> CitationAudit | None:
    """Return the citations of a decided answer, or None if the labels are on another answer."""
    if answer is None or any(
        answer[label.start : label.end] != label.text for label in labels if label.start is not None
    ):
        return None
    given = case.given_citations if answer == case.answer else ()
    return audit_citations(answer, case.evidence, given=given)


def find_cited(label: TargetLabel, audit: CitationAudit) -> Collection[str]:
    """Return the evidence that labelled words cite.

    A reference cites its own chunk. Other words have the citations of the sentences that they are
    in, because a marker follows what it cites.
    """
    if label.start is None or label.end is None:
        return ()
    start, end = label.start, label.end
    sentences = {
        place
        for place, sentence in enumerate(audit.sentences)
        if sentence.start < end and start < sentence.end
    }
    return {
        citation.evidence_id
        for citation in audit.citations
        if citation.evidence_id is not None
        and (
            (citation.start < end and start < citation.end)
            or (label.target != "reference" and citation.sentence in sentences)
        )
    }

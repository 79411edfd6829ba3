"""Words the labels of a decision, with their passages and the cause of a fault. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from masis.audit.citations.label_causes import audit_decided_answer, causes_of_labels
from masis.schema.audit import CitationAudit
from masis.schema.case import Case
from masis.schema.causes import CAUSES, Cause
from masis.schema.labels import Stance, TargetLabel, is_fault
from masis.schema.review import Decision
from masis.schema.rules import OMISSIONS
from masis.schema.run import Run
from masis.schema.wording import shorten
from masis.views.headline import written_markers
from masis.views.words import (
    CHUNK_LABEL,
    PART_LABELS,
    PASSAGE_MISSING,
    REPORT_STANCE,
    STANCE,
    SUPPORT_KIND,
)

LONGEST_PASSAGE = 400


class LabelLine(NamedTuple):
    """A label in words.

    Attributes:
        text: The labelled part, the label and the note.
        details: The passages, the right reference, the kind of support and the cause of a fault.
        reports: Whether the label reports an issue.

    """

    text: str
    details: list[str]
    reports: bool


def chunk_name(evidence_id: str | None) -> str:
    """Name a chunk by its id; many ids start with "chunk" themselves."""
    name = evidence_id or ""
    return name if name.lower().startswith("chunk") else f"chunk {name}"


def label_lines(
    decision: Decision | None, case: Case | None, run: Run | None, *, with_causes: bool = True
) -> list[LabelLine]:
    """Return the labels of a decision in words.

    Args:
        decision: The decision. None, for a redacted one, has no labels.
        case: The case, or None if it isn't known.
        run: A run of the case that the reader may see, or None.
        with_causes: Whether to name the causes of faults, which the reviewer hasn't chosen.

    Returns:
        A line for each label. The cause of a fault is named if the decided answer is that of
        ``case`` or ``run``, because it depends on what the labelled words cite.

    """
    if decision is None or not decision.labels:
        return []
    audit = _audit_of_answer(decision, case, run)
    causes = (
        causes_of_labels(decision.labels, audit)
        if audit is not None and with_causes
        else [None] * len(decision.labels)
    )
    return [
        LabelLine(
            _label_text(label, audit),
            _details(label, cause if is_fault(label) else None),
            label.reports,
        )
        for label, cause in zip(decision.labels, causes, strict=True)
    ]


def _audit_of_answer(
    decision: Decision, case: Case | None, run: Run | None
) -> CitationAudit | None:
    """Return the citations of the decided answer, or None if it isn't at hand."""
    if case is None:
        return None
    answer = case.answer
    if run is not None and run.id == decision.run_id:
        at = (decision.iteration or 1) - 1
        if not 0 <= at < len(run.iterations):
            return None
        answer = run.iterations[at].answer
    elif (decision.iteration or 1) != 1:
        return None
    return audit_decided_answer(case, answer, decision.labels)


def _label_text(target: TargetLabel, audit: CitationAudit | None) -> str:
    note = f" ({target.note})" if target.note else ""
    if target.target == "case":
        return f"{PASSAGE_MISSING.text}{note}"
    if target.target == "evidence":
        word = CHUNK_LABEL.get(target.label)
        says = word.text if word and target.conflicts_with is None else target.label
        if target.conflicts_with is not None:
            says = f"contradicts {target.conflicts_with}"
        return f"{chunk_name(target.evidence_id)}: {says}{note}"
    if target.reports:
        about = f"“{target.text}”" if target.text else "the whole answer"
        return f"{about}: {target.label}, {target.severity}{note}"
    words = PART_LABELS.get(target.target, {}).get(target.label)
    said = words.text if words else target.label
    return f"{target.target} “{_name_part(target, audit)}”: {said}{note}"


def _name_part(target: TargetLabel, audit: CitationAudit | None) -> str:
    """Return the labelled words; a number that is a marker of its own is named with its marker."""
    for citation in audit.citations if audit and target.target == "reference" else ():
        if (citation.start, citation.end) == (target.start, target.end):
            named = citation.evidence_id or citation.reference
            marker = written_markers(audit).get(named, "") if audit else ""
            return marker if target.text in marker else target.text
    return target.text


def _details(target: TargetLabel, cause: Cause | None) -> list[str]:
    details = [
        f"{passage.evidence_id} {_stance_text(target, passage.stance)}:"
        f" “{shorten(passage.text, LONGEST_PASSAGE)}”"
        for passage in target.evidence
    ]
    if target.right_reference is not None:
        details.append(f"right reference: {target.right_reference}")
    if target.kind is not None:
        details.append(f"kind of support: {SUPPORT_KIND[target.kind].text}")
    if cause is not None:
        row = CAUSES[cause]
        details.append(f"derived cause: {row.name.lower()} ({row.meaning})")
    return details


def _stance_text(target: TargetLabel, stance: Stance) -> str:
    if not target.reports:
        return STANCE[stance].text
    omits = target.label in OMISSIONS
    subject = "omission" if omits else "words" if target.target == "span" else "answer"
    return REPORT_STANCE[subject].get(stance, STANCE[stance].text)


def flat_lines(lines: Sequence[LabelLine]) -> list[str]:
    """Return each label on one line, with its details."""
    return ["; ".join((line.text, *line.details)) for line in lines]

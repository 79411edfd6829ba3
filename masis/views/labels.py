"""Words the labels of a decision, with their passages and the cause of a fault. Pure."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import NamedTuple

from masis.audit.citations import audit_citations
from masis.schema.audit import CitationAudit
from masis.schema.case import Case
from masis.schema.causes import CAUSES
from masis.schema.labels import TargetLabel, fault_cause
from masis.schema.review import Decision
from masis.schema.run import Run
from masis.schema.wording import shorten
from masis.views.words import CHUNK_LABEL, PASSAGE_MISSING, STANCE, SUPPORT_KIND

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


def label_lines(decision: Decision | None, case: Case | None, run: Run | None) -> list[LabelLine]:
    """Return the labels of a decision in words.

    Args:
        decision: The decision. None, for a redacted one, has no labels.
        case: The case, or None if it isn't known.
        run: A run of the case that the reader may see, or None.

    Returns:
        A line for each label. The cause of a fault is named if the decided answer is that of
        ``case`` or ``run``, because it depends on what the labelled words cite.

    """
    if decision is None or not decision.labels:
        return []
    audit = _audit_of_answer(decision, case, run)
    missing = any(label.label == "passage_missing" for label in decision.labels)
    return [
        LabelLine(
            _label_text(target), _details(target, audit, passage_missing=missing), target.reports
        )
        for target in decision.labels
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
    if answer is None or any(
        answer[target.start : target.end] != target.text
        for target in decision.labels
        if target.start is not None
    ):
        return None
    given = case.given_citations if answer == case.answer else ()
    return audit_citations(answer, case.evidence, given=given)


def _cited_by(target: TargetLabel, audit: CitationAudit) -> Collection[str]:
    """Return the evidence that labelled words cite.

    A reference cites its own chunk. Other words have the citations of the sentences that they are
    in, because a marker follows what it cites.
    """
    if target.start is None or target.end is None:
        return ()
    start, end = target.start, target.end
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
            or (target.target != "reference" and citation.sentence in sentences)
        )
    }


def _label_text(target: TargetLabel) -> str:
    note = f" ({target.note})" if target.note else ""
    if target.target == "case":
        return f"{PASSAGE_MISSING.text}{note}"
    if target.target == "evidence":
        word = CHUNK_LABEL.get(target.label)
        says = word.text if word and target.conflicts_with is None else target.label
        if target.conflicts_with is not None:
            says = f"contradicts {target.conflicts_with}"
        return f"chunk {target.evidence_id}: {says}{note}"
    if target.reports:
        about = f"“{target.text}”" if target.text else "the whole answer"
        return f"{about}: {target.label}, {target.severity}{note}"
    return f"{target.target} “{target.text}”: {target.label}{note}"


def _details(
    target: TargetLabel, audit: CitationAudit | None, *, passage_missing: bool
) -> list[str]:
    details = [
        f"{passage.evidence_id} {STANCE[passage.stance].text}:"
        f" “{shorten(passage.text, LONGEST_PASSAGE)}”"
        for passage in target.evidence
    ]
    if target.right_reference is not None:
        details.append(f"right reference: {target.right_reference}")
    if target.kind is not None:
        details.append(f"kind of support: {SUPPORT_KIND[target.kind].text}")
    cause = (
        fault_cause(target, _cited_by(target, audit), passage_missing=passage_missing)
        if audit is not None
        else None
    )
    if cause is not None:
        row = CAUSES[cause]
        details.append(f"cause: {row.name.lower()} ({row.meaning})")
    return details


def flat_lines(lines: Sequence[LabelLine]) -> list[str]:
    """Return each label on one line, with its details."""
    return ["; ".join((line.text, *line.details)) for line in lines]

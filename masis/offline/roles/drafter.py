"""The offline drafter, which answers a question with cited sentences of the evidence.

If the evidence comes from a screening, each chunk has the study's finding and its direction
(``masis.screening.handover``). The draft then lists the finding of every study by direction, and
says whether the studies conflict.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from masis.audit.text.instructions import find_instructions
from masis.offline.matching.key_points import (
    JUDGED_BY,
    KeyPoint,
    index_of,
    key_points,
    share_covered,
    stems,
)
from masis.schema.audit import Draft
from masis.schema.case import Evidence

SENTENCES_MOST = 5
"""Maximum number of sentences per draft."""
REPEATS = 0.7
"""A passage is left out if the sentences before it have at least this share of its words."""
NOTHING_FOUND = "The evidence provided is insufficient to answer this question."


DIRECTION_LEADS = {
    "effect": "These studies found the effect in question:",
    "no_clear_effect": "These studies found no clear effect:",
    "opposite": "These studies found the opposite effect:",
    "comparable": "These studies found it comparable to another treatment:",
    "unclear": "The direction of these studies is unclear:",
}
"""The line before the findings of each direction, in the order of the draft."""
CONFLICT = "The kept studies conflict, with these findings on each side:"


class StudyFinding(NamedTuple):
    """The finding of one study that a screening kept, with its direction."""

    evidence_id: str
    text: str
    direction: str


class OfflineDrafter:
    """Drafts an answer from passages of the evidence, without any words of its own."""

    def draft(self, query: str, evidence: Sequence[Evidence]) -> Draft:
        """Return the most relevant passages in the order of the evidence, without repeats.

        If a screening marked the findings of its studies, the draft has these instead.
        """
        if studies := study_findings(evidence):
            return _draft_from_studies(studies, evidence)
        index = index_of(evidence)
        place = {chunk.id: number for number, chunk in enumerate(evidence)}
        taken: list[KeyPoint] = []
        covered: frozenset[str] = frozenset()
        for point in key_points(query, index):
            # An instruction in the evidence ("Ignore the above ...") doesn't answer the question
            # and may be an attack on a model.
            instructions = find_instructions(point.passage.text)
            if (
                not instructions
                and len(taken) < SENTENCES_MOST
                and share_covered(point.passage, covered) < REPEATS
            ):
                taken.append(point)
                covered |= stems(point.passage.text)
        taken.sort(key=lambda point: (place[point.passage.evidence_id], point.passage.start))
        sentences = [
            cited_sentence(point.passage.text, point.passage.evidence_id) for point in taken
        ]
        steps = tuple(
            f"{p.passage.evidence_id} is about the question (relevance {p.relevance:.2f})."
            for p in taken
        )
        return Draft(
            answer=" ".join(sentences) or NOTHING_FOUND, reasoning_steps=steps, judged_by=JUDGED_BY
        )


def study_findings(evidence: Sequence[Evidence]) -> tuple[StudyFinding, ...]:
    """Return the findings that a screening marked.

    The result is empty if a chunk isn't marked, or if its mark isn't within its text. Findings that
    contain instructions are left out.
    """
    found = [_marked_finding(chunk) for chunk in evidence]
    if None in found:
        return ()
    return tuple(
        study for study in found if study and study.text and not find_instructions(study.text)
    )


def _marked_finding(chunk: Evidence) -> StudyFinding | None:
    """Return the marked finding of a chunk, or None if the chunk has no valid mark.

    If the screening recognized a direction but no sentence, the finding is the whole text.
    """
    extra = chunk.model_extra or {}
    direction, place = extra.get("direction"), extra.get("finding")
    if not isinstance(direction, str) or direction not in DIRECTION_LEADS:
        return None
    if place is None:
        return StudyFinding(chunk.id, chunk.text, direction)
    start, end = (place.get("start"), place.get("end")) if isinstance(place, dict) else (None, None)
    if not (type(start) is int and type(end) is int and 0 <= start < end <= len(chunk.text)):
        return None
    return StudyFinding(chunk.id, chunk.text[start:end], direction)


def _draft_from_studies(studies: Sequence[StudyFinding], evidence: Sequence[Evidence]) -> Draft:
    groups = [
        (name, found)
        for name in DIRECTION_LEADS
        if (found := [study for study in studies if study.direction == name])
    ]
    # The direction with most studies is first, and "unclear" is last.
    groups.sort(key=lambda group: (group[0] == "unclear", -len(group[1])))
    conflict = any((chunk.model_extra or {}).get("findings_conflict") is True for chunk in evidence)
    parts = [CONFLICT] if conflict else []
    for name, found in groups:
        lines = [cited_sentence(study.text, study.evidence_id) for study in found]
        if len(groups) == 1:
            parts.append(" ".join(lines))
        else:
            parts.append("\n".join([DIRECTION_LEADS[name], "", *(f"- {line}" for line in lines)]))
    steps = tuple(
        f"{study.evidence_id} was kept by the screening; direction: {study.direction}."
        for study in studies
    )
    return Draft(answer="\n\n".join(parts), reasoning_steps=steps, judged_by=JUDGED_BY)


def cited_sentence(text: str, evidence_id: str) -> str:
    """Return a passage as a sentence with its citation: ``It grew by 12% [chunk_1].``"""
    words = " ".join(text.split())
    return f"{words.rstrip('.!?;: ')} [{evidence_id}]."

"""The drafter without a model: the sentences of the evidence that the question asks for, each with
its citation.

Evidence that a screening kept names the finding of each study and its direction
(``masis.screening.handover``). Then every study's finding is in the draft, by direction, and the
draft says where they conflict.
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
REPEATS = 0.7
"""A passage is left out when earlier ones already cover this share of it."""
NOTHING_FOUND = "The evidence provided is insufficient to answer this question."


DIRECTION_LEADS = {
    "effect": "An effect as asked was found by these studies:",
    "no_clear_effect": "No clear effect was found by these studies:",
    "opposite": "The opposite was found by these studies:",
    "unclear": "The direction of these studies was not recognised:",
}
CONFLICT = "The kept studies conflict, and each side follows:"


class StudyFinding(NamedTuple):
    """The finding of one study that a screening kept."""

    evidence_id: str
    text: str
    direction: str


class OfflineDrafter:
    """Extracts, never invents: every sentence of the draft is a passage of the evidence."""

    def draft(self, query: str, evidence: Sequence[Evidence]) -> Draft:
        """Return the most relevant passages in the order of the evidence, without repeats.

        Of studies that a screening kept, the finding of each one.
        """
        if studies := study_findings(evidence):
            return _draft_of_studies(studies, evidence)
        index = index_of(evidence)
        place = {chunk.id: number for number, chunk in enumerate(evidence)}
        taken: list[KeyPoint] = []
        covered: frozenset[str] = frozenset()
        for point in key_points(query, index):
            # what orders somebody to do something tells nothing
            orders = find_instructions(point.passage.text)
            if (
                not orders
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
    """Return the findings that a screening marked; nothing where a chunk has none, or one that is
    not in its text.

    What instructs its reader is left out.
    """
    found = [_marked_finding(chunk) for chunk in evidence]
    if None in found:
        return ()
    return tuple(each for each in found if each and each.text and not find_instructions(each.text))


def _marked_finding(chunk: Evidence) -> StudyFinding | None:
    """Return the finding of a chunk; an empty one where the screening found none to mark; None
    without any mark.
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


def _draft_of_studies(studies: Sequence[StudyFinding], evidence: Sequence[Evidence]) -> Draft:
    groups = [
        (name, found)
        for name in DIRECTION_LEADS
        if (found := [study for study in studies if study.direction == name])
    ]
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
    """Return a passage as a sentence of an answer: ``It grew by 12% [chunk_1].``"""
    words = " ".join(text.split())
    return f"{words.rstrip('.!?;: ')} [{evidence_id}]."

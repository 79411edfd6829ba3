"""The drafter without a model: the sentences of the evidence that the question asks for, each with its citation."""

from __future__ import annotations

from collections.abc import Sequence

from masis.audit.instructions import find_instructions
from masis.offline.matching.key_points import JUDGED_BY, KeyPoint, index_of, key_points, share_covered, stems
from masis.schema.audit import Draft
from masis.schema.case import Evidence

SENTENCES_MOST = 5
REPEATS = 0.7
"""A passage is left out when earlier ones already cover this share of it."""
NOTHING_FOUND = "The evidence provided is insufficient to answer this question."


class OfflineDrafter:
    """Extracts, never invents: every sentence of the draft is a passage of the evidence."""

    def draft(self, query: str, evidence: Sequence[Evidence]) -> Draft:
        """Return the most relevant passages in the order of the evidence, without repeats."""
        index = index_of(evidence)
        place = {chunk.id: number for number, chunk in enumerate(evidence)}
        taken: list[KeyPoint] = []
        covered: frozenset[str] = frozenset()
        for point in key_points(query, index):
            if find_instructions(point.passage.text):
                continue  # it orders somebody to do something, and tells nothing
            if len(taken) < SENTENCES_MOST and share_covered(point.passage, covered) < REPEATS:
                taken.append(point)
                covered |= stems(point.passage.text)
        taken.sort(key=lambda point: (place[point.passage.evidence_id], point.passage.start))
        sentences = [cited_sentence(point.passage.text, point.passage.evidence_id) for point in taken]
        return Draft(
            answer=" ".join(sentences) or NOTHING_FOUND,
            reasoning_steps=tuple(
                f"{point.passage.evidence_id} is about the question (relevance {point.relevance:.2f})."
                for point in taken
            ),
            judged_by=JUDGED_BY,
        )


def cited_sentence(text: str, evidence_id: str) -> str:
    """Return a passage as a sentence of an answer: ``It grew by 12% [chunk_1].``"""
    words = " ".join(text.split())
    return f"{words.rstrip('.!?;: ')} [{evidence_id}]."

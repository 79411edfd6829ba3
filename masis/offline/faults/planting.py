"""Plant one certain fault in a copy of a sound answer, the same one for the same seed, or say why
it can't be done.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass

from masis.audit.text.language import language_name
from masis.offline.faults.changes import CHANGES, NOTHING_CERTAIN, FaultChange, languages_of
from masis.offline.faults.sentences import LONGEST_ANSWER, MOST_EVIDENCE, AnswerSentence, ReadAnswer
from masis.schema.case import Evidence
from masis.schema.faults import FaultKind, PlantedFault

MOST_TRIED = 60
"""Sentences that are tried, drawn at random: what none of so many allows, the others seldom do."""


@dataclass(frozen=True)
class FaultyAnswer:
    """A sound answer with one fault planted in it."""

    answer: str
    fault: PlantedFault


@dataclass(frozen=True)
class NoCertainFault:
    """Why no fault of a kind can be planted in an answer, in words."""

    kind: FaultKind
    reason: str


def plant_fault(
    answer: str, evidence: Sequence[Evidence], kind: FaultKind, *, seed: int = 0, question: str = ""
) -> FaultyAnswer | NoCertainFault:
    """Return a copy of a sound answer with one certain fault, or why none of this kind can be made.

    Args:
        answer: An answer that people found sound: nothing here asks whether it is.
        evidence: The chunks that it rests on.
        kind: What is changed.
        seed: Draws place and words. The same seed gives the same fault.
        question: The question; its figures and names are not changed into.

    """
    if len(answer) > LONGEST_ANSWER:
        return NoCertainFault(kind, f"the answer has more than {LONGEST_ANSWER:,} characters")
    if sum(len(chunk.text) for chunk in evidence) > MOST_EVIDENCE:
        return NoCertainFault(kind, f"the evidence has more than {MOST_EVIDENCE:,} characters")
    read = ReadAnswer(answer, evidence, question)
    languages = languages_of(kind)
    if languages is not None and read.language not in languages:
        known = ", ".join(map(language_name, languages))
        return NoCertainFault(
            kind, f"it can be made in {known} only, and the answer is in none of them for sure"
        )
    draw = random.Random(f"{kind}:{seed}")
    for sentence in draw.sample(read.sentences, min(len(read.sentences), MOST_TRIED)):
        for change in CHANGES[kind](read, sentence, draw):
            if (planted := _plant_fault(read, sentence, change, kind, seed)) is not None:
                return planted
    return NoCertainFault(kind, NOTHING_CERTAIN[kind])


def _plant_fault(
    read: ReadAnswer, sentence: AnswerSentence, change: FaultChange, kind: FaultKind, seed: int
) -> FaultyAnswer | None:
    """Return the altered answer; None where the change would move more than the words
    it is about.
    """
    altered = read.replace_words(change.start, change.end, change.words)
    if len(altered.audit.sentences) != len(read.audit.sentences):
        return None  # a stop or a capital too many: the sentences around it would read otherwise
    end = change.start + len(change.words)
    number = sentence.claim.sentence or 0
    fault = PlantedFault(
        kind=kind,
        start=change.start,
        end=end,
        before=read.answer[change.start : change.end],
        after=change.words,
        original_start=change.start,
        original_end=change.end,
        sentence=altered.audit.sentences[number].text,
        evidence_ids=change.evidence_ids,
        seed=seed,
    )
    return FaultyAnswer(altered.answer, fault)

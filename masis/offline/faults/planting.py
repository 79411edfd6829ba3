"""Plants one certain fault in a copy of a correct answer.

The same seed gives the same fault. If no certain fault is possible, the result has the reason.
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
"""Maximum number of sentences that are tried, in random order. If they all fail, others rarely
succeed.
"""


@dataclass(frozen=True)
class FaultyAnswer:
    """A copy of a correct answer with one fault planted in it."""

    answer: str
    fault: PlantedFault


@dataclass(frozen=True)
class NoCertainFault:
    """The reason, as text, why no certain fault of a kind can be planted in an answer."""

    kind: FaultKind
    reason: str


def plant_fault(
    answer: str, evidence: Sequence[Evidence], kind: FaultKind, *, seed: int = 0, question: str = ""
) -> FaultyAnswer | NoCertainFault:
    """Return a copy of a correct answer with one certain fault, or the reason why there is none.

    Args:
        answer: An answer that people judged to be correct. It isn't checked here.
        evidence: The chunks of the case.
        kind: The kind of the fault.
        seed: The seed for the random choice of position and words.
        question: The question. Its figures and names aren't used as replacements.

    """
    if len(answer) > LONGEST_ANSWER:
        return NoCertainFault(kind, f"the answer has more than {LONGEST_ANSWER:,} characters")
    if sum(len(chunk.text) for chunk in evidence) > MOST_EVIDENCE:
        return NoCertainFault(kind, f"the evidence has more than {MOST_EVIDENCE:,} characters")
    read = ReadAnswer(answer, evidence, question)
    languages = languages_of(kind)
    if languages is not None and read.language not in languages:
        language_names = ", ".join(map(language_name, languages))
        return NoCertainFault(
            kind,
            f"only {language_names} are supported, and the answer isn't certainly in one of them",
        )
    random_source = random.Random(f"{kind}:{seed}")
    for sentence in random_source.sample(read.sentences, min(len(read.sentences), MOST_TRIED)):
        for change in CHANGES[kind](read, sentence, random_source):
            if (faulty_answer := _plant_fault(read, sentence, change, kind, seed)) is not None:
                return faulty_answer
    return NoCertainFault(kind, NOTHING_CERTAIN[kind])


def _plant_fault(
    read: ReadAnswer, sentence: AnswerSentence, change: FaultChange, kind: FaultKind, seed: int
) -> FaultyAnswer | None:
    """Return the altered answer, or None if the change would affect other sentences."""
    altered = read.replace_words(change.start, change.end, change.words)
    if len(altered.audit.sentences) != len(read.audit.sentences):
        return None  # a point or capital in the new words changes where sentences end
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

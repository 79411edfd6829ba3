"""Faults planted on purpose in copies of sound answers, to measure how many are found."""

from __future__ import annotations

from typing import Literal, get_args

from masis.schema.base import Record
from masis.schema.team import TeamRecord

FaultKind = Literal["figure", "negation", "citation", "name"]
"""The changed part: a figure, a negation, a citation's target, or a name."""

FAULT_KINDS: tuple[FaultKind, ...] = get_args(FaultKind)


class PlantedFault(Record):
    """One known fault in a copy of an answer.

    Attributes:
        start: Offset in the altered answer.
        end: Offset in the altered answer.
        original_start: Offset of the same place in the sound answer.
        original_end: Offset of the same place in the sound answer.
        before: The words of the sound answer; empty if words were added.
        after: The words of the altered answer; empty if words were removed.
        sentence: The whole altered sentence.
        evidence_ids: The chunks that support the sound answer here.
        seed: Reproduces the same fault for the same answer and evidence.

    """

    kind: FaultKind
    start: int
    end: int
    before: str
    after: str
    original_start: int
    original_end: int
    sentence: str
    evidence_ids: tuple[str, ...] = ()
    seed: int = 0


class PlantingRecord(TeamRecord):
    """Records that copies were planted, or that undecided ones were withdrawn.

    ``case_ids`` are the ids of the copies.
    """

    kind = "planting"
    act: Literal["planted", "withdrawn"] = "planted"
    seed: int | None = None
    case_ids: tuple[str, ...] = ()

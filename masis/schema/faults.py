"""Faults that were put into a copy of a sound answer on purpose, to measure who finds them."""

from __future__ import annotations

from typing import Literal, get_args

from masis.schema.base import Record
from masis.schema.team import TeamRecord

FaultKind = Literal["figure", "negation", "citation", "name"]
"""What was changed: a figure, a negation added or removed, what a citation names, one name for
another.
"""

FAULT_KINDS: tuple[FaultKind, ...] = get_args(FaultKind)


class PlantedFault(Record):
    """One certain fault in the copy of an answer.

    ``start`` and ``end`` are offsets into the altered answer, ``original_start`` and
    ``original_end`` the same place in the sound one. ``before`` and ``after`` are the words at
    these places; either may be empty, where a word was added or removed. ``sentence`` is the whole
    altered sentence. ``evidence_ids`` are the chunks that say what the sound answer said. ``seed``
    with the answer and its evidence gives the same fault again.
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
    """That copies were planted, or that those nobody had decided were withdrawn: ``case_ids`` are
    the copies.
    """

    kind = "planting"
    act: Literal["planted", "withdrawn"] = "planted"
    seed: int | None = None
    case_ids: tuple[str, ...] = ()

"""Words for planted faults and their results, shared by pages and commands."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from masis.schema.faults import FaultKind, PlantedFault

FAULT: Mapping[FaultKind, str] = {
    "figure": "Figure",
    "negation": "Negation",
    "citation": "Citation",
    "name": "Name",
}
"""The kinds of planted faults."""

FAULT_MEANS: Mapping[FaultKind, str] = {
    "figure": (
        "A figure of the cited evidence is replaced by one that isn't in the evidence and can't be"
        " calculated from it."
    ),
    "negation": (
        "A sentence that is nearly the same in the evidence is negated, or its negation is removed."
    ),
    "citation": (
        "A reference is changed to a chunk that doesn't support the sentence or doesn't exist."
    ),
    "name": (
        "A name is replaced by another name in the case, about which the evidence doesn't say this."
    ),
}
"""What each kind of fault changes."""

AUDIT_MADE: Mapping[Literal["flagged", "left_to_people", "accepted"], str] = {
    "flagged": "Flagged the words",
    "left_to_people": "Left it to people",
    "accepted": "Accepted it",
}
"""How the audit treated a planted fault."""


def fault_words(fault: PlantedFault) -> str:
    """Describe the change in the copy, or say that it was redacted."""
    if not fault.before and not fault.after:
        return "The change is redacted."
    nouns = {
        "figure": "the figure",
        "negation": "the negation",
        "citation": "the reference",
        "name": "the name",
    }
    return f"{nouns[fault.kind].capitalize()} was changed from “{fault.before}” to “{fault.after}”."


def revealed_words(fault: PlantedFault) -> str:
    """Tell a reviewer, after they decide a copy, that its fault was planted."""
    return f"This was a copy of a correct answer with a planted fault. {fault_words(fault)}"

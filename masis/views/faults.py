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
        "A figure of the cited evidence becomes one that no evidence has and that follows from"
        " none."
    ),
    "negation": (
        "A sentence that the evidence says nearly in these words is negated, or loses its negation."
    ),
    "citation": (
        "A reference names a chunk that doesn't say the sentence, or one that doesn't exist."
    ),
    "name": "A name becomes another name of the case, of which the evidence doesn't say it.",
}
"""What each kind of fault changes."""

AUDIT_MADE: Mapping[Literal["flagged", "left_to_people", "accepted"], str] = {
    "flagged": "Flagged the words",
    "left_to_people": "Left it to people",
    "accepted": "Accepted it",
}
"""How the audit treated a planted fault."""


def fault_words(fault: PlantedFault) -> str:
    """Say what was changed in the copy, or that the change was redacted."""
    if not fault.before and not fault.after:
        return "What was changed is redacted."
    nouns = {
        "figure": "the figure",
        "negation": "the negation",
        "citation": "the reference",
        "name": "the name",
    }
    return f"{nouns[fault.kind].capitalize()} was changed from “{fault.before}” to “{fault.after}”."


def revealed_words(fault: PlantedFault) -> str:
    """Tell a reviewer, after they decide a copy, that its fault was planted."""
    return f"This was a copy of a sound answer with a planted fault. {fault_words(fault)}"

"""Where faults come from: one table for labels, issues, reasons and the counts of them."""

from __future__ import annotations

from collections.abc import Collection
from typing import Literal, NamedTuple

from masis.schema.labels import TargetLabel, is_fault
from masis.schema.rules import OMISSIONS

Cause = Literal["retrieval", "citation", "generation", "question"]


class CauseRow(NamedTuple):
    """A cause of faults: its name, and the types of observations that show it.

    A type is the rule of an issue, the code of a reason, or the name of a label.
    """

    name: str
    meaning: str
    types: tuple[str, ...]


CAUSES: dict[Cause, CauseRow] = {
    "retrieval": CauseRow(
        "Retrieval",
        "no passage of the evidence settles it",
        (
            *("needs_evidence", "sources_conflict", "source_conflict", "instruction_in_evidence"),
            *("unsupported_claim", "unsupported", "passage_missing", "conflicting"),
        ),
    ),
    "citation": CauseRow(
        "Citation",
        "the cited chunk isn't the one that settles it",
        (
            *("fabricated_reference", "fabricated_quote", "spliced_quote"),
            *("quote_from_another_document", "misattributed_reference", "redundant_reference"),
            *("uncited_sentence", "fabricated_citation", "wrong_citation", "uncited"),
            *("fabricated citation", "fabricated", "misattributed", "redundant"),
        ),
    ),
    "generation": CauseRow(
        "Generation",
        "the evidence settles it, and the answer says something else",
        (
            *("contradicted_claim", "partly_supported_claim"),
            *("missing_information", "dropped_content", "instruction_in_answer"),
            *("contradicted", "contradicts", "partial"),
        ),
    ),
    "question": CauseRow(
        "Question", "the question can't be answered as it was asked", ("question_unclear",)
    ),
}
"""The causes of faults, for labels, issues, reasons and counts alike.

A fault of a type in none of the rows has no known cause: that an answer is unsafe, incomplete or
unclear doesn't say whether the evidence settles the question. Passages that a label names come
before its type (``cause_of_label``).
"""

CRITIC_RULE = "critic_"
"""The beginning of the rules of the critic's issues. The critic reads the answer, so their cause is
``generation``."""


def cause_of(observation_type: str) -> Cause | None:
    """Return the cause that a type of observation shows, or None if it isn't known."""
    if observation_type.startswith(CRITIC_RULE):
        return "generation"
    return _CAUSE_BY_TYPE.get(observation_type)


_CAUSE_BY_TYPE: dict[str, Cause] = {
    name: cause for cause, row in CAUSES.items() for name in row.types
}


def cause_of_label(
    label: TargetLabel, cited: Collection[str], *, passage_missing: bool = False
) -> Cause | None:
    """Return where a labelled fault comes from, as far as the labels say.

    Args:
        label: The label.
        cited: The ids of the evidence that the labelled words cite.
        passage_missing: Whether the same person labelled the case ``passage_missing``.

    Returns:
        The cause: by the passages and the reference that the label names, else by the missing
        passage, else the default of its type in ``CAUSES``. A right reference that the words cite
        already shows nothing, and a reference that doesn't support its sentence is a wrong one. A
        label that names no fault of the answer, such as ``passage_missing`` itself, has the
        default. A reported omission with a passage that says what is missing comes from the
        generation. None if nothing says where the fault comes from.

    Example:
        A claim that cites ``c1``, labelled unsupported with a supporting passage of ``c2``, has the
        cause ``citation``.

    """
    is_wrong_reference = label.target == "reference" and label.label == "unsupported"
    by_type = "citation" if is_wrong_reference else cause_of(label.label)
    if not is_fault(label):
        return by_type
    if label.reports and label.label in OMISSIONS and label.evidence:
        return "generation"
    if label.right_reference is not None and label.right_reference not in cited:
        return "citation"
    supporting = {passage.evidence_id for passage in label.passages("supports")}
    if supporting and not supporting & set(cited):
        return "citation"
    if label.evidence:
        # Passages don't repair a citation that is wrong in itself, such as an invented one.
        return "citation" if by_type == "citation" else "generation"
    return "retrieval" if passage_missing and by_type != "citation" else by_type

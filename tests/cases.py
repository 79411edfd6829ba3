"""Create cases for tests in one line."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from masis.schema.case import Case


def case_of(
    answer: str | None,
    evidence: Mapping[str, str],
    *,
    case_id: str = "bridge",
    query: str = "How long is the bridge?",
    **fields: Any,
) -> Case:
    """Return a case whose evidence is given as texts by id."""
    chunks = [{"id": name, "text": text} for name, text in evidence.items()]
    return Case.model_validate(
        {"id": case_id, "query": query, "answer": answer, "evidence": chunks, **fields}
    )


COPIED = {
    "Service and retrofit revenue grew by 41.2% to NOK 2,184 million in 2023": (
        "Service and retrofit revenue was NOK 2,184 million (2022: NOK 1,912 million), an increase"
        " of 41.2%"
    ),
    "Quillbase itself stops an export request after 30 seconds": (
        "A single export request is stopped after 30 seconds"
    ),
}


def with_copied_figure(case: Case) -> Case:
    """Return a demo case whose wrong figure is in an otherwise exact copy of the evidence.

    Only in a copy are the offline checks certain that a figure is wrong, and is the reviser certain
    of the right one.
    """
    answer = case.answer
    for wrong, copied in COPIED.items():
        answer = answer and answer.replace(wrong, copied)
    return case.model_copy(update={"answer": answer})

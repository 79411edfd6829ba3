"""A case in one line, for tests of what is done with it."""

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
    """A case whose evidence is given as texts by their ids."""
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
    """Return a demo case with its wrong figure in a sentence that is else a copy of the evidence.

    Only there are the offline checks sure that it is wrong, and the reviser what it should be.
    """
    answer = case.answer
    for wrong, copied in COPIED.items():
        answer = answer and answer.replace(wrong, copied)
    return case.model_copy(update={"answer": answer})

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
    return Case.model_validate({"id": case_id, "query": query, "answer": answer, "evidence": chunks, **fields})


def with_copied_figure(case: Case) -> Case:
    """Return the demo case ``strategy-01-fabricated`` with its wrong figure in a sentence that is else a copy.

    Only there is the offline reviser sure what the figure should be, so that its revision is better than the answer.
    """
    wrong = "Service and retrofit revenue grew by 41.2% to NOK 2,184 million in 2023"
    copied = "Service and retrofit revenue was NOK 2,184 million (2022: NOK 1,912 million), an increase of 41.2%"
    return case.model_copy(update={"answer": (case.answer or "").replace(wrong, copied)})

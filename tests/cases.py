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

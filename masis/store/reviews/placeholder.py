"""The content of a redacted case, which pages can still show."""

from __future__ import annotations

import json

from masis.schema.case import Case

REDACTED = "[redacted]"
"""The text shown as the question of a redacted case."""

_KEPT = ("field", "dataset", "system")
"""The keys of a case's metadata that outlive its redaction."""


def placeholder(case: Case) -> Case:
    """Return a valid case without texts, with the id and the data set of a case."""
    kept = {name: case.metadata[name] for name in _KEPT if name in case.metadata}
    return Case.from_stored(
        {
            "id": case.id,
            "query": REDACTED,
            "evidence": [{"id": "redacted", "text": ""}],
            "metadata": kept | {"redacted": True},
        }
    )


def is_placeholder(payload: str | None) -> bool:
    """Return whether the stored text of a case is a placeholder."""
    try:
        case = Case.from_stored(json.loads(payload or ""))
    except ValueError:
        return False
    return case == placeholder(case)

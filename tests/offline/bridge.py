"""A small case for tests of the offline roles."""

from __future__ import annotations

from collections.abc import Sequence

import masis
from masis import Case, Run, Settings
from masis.schema.case import Evidence

EVIDENCE = (
    Evidence(
        id="chunk_1",
        text=(
            "The Halden suspension bridge is 410 metres long and was opened to traffic in 1931. "
            "It was designed by the engineer Marta Lindqvist."
        ),
    ),
    Evidence(
        id="chunk_2",
        text=(
            "Lorries above 12 tonnes are not allowed on the bridge. The toll is 3 euros for a car."
        ),
    ),
    Evidence(
        id="chunk_3",
        text=(
            "In 2019 the council spent 4.2 million euros on repairing the main cables of the"
            " bridge."
        ),
    ),
)
QUESTION = "How long is the Halden bridge, when was it opened and who designed it?"


def audited(
    answer: str | None,
    evidence: Sequence[Evidence] = EVIDENCE,
    iterations: int = 3,
    question: str = QUESTION,
) -> Run:
    """Return the run of an answer about the bridge."""
    case = Case(id="bridge", query=question, answer=answer, evidence=tuple(evidence))
    return masis.run_audit(case, Settings(max_iterations=iterations))

"""Which answer stands once somebody has decided about a run."""

from __future__ import annotations

from masis.schema.review import Decision
from masis.schema.run import Run


def settled_answer(decision: Decision | None, run: Run | None) -> str | None:
    """The answer that a decision lets stand: the corrected one, else the one decided about.

    None where nothing is decided, where the decision rejects or escalates, and where it takes one back.
    """
    if decision is None or decision.kind in ("undo", "redaction") or decision.verdict in ("reject", "escalate"):
        return None
    if decision.corrected_answer is not None:
        return decision.corrected_answer
    if run is None:
        return None
    at = decision.iteration
    return run.iterations[at - 1].answer if at is not None and 1 <= at <= len(run.iterations) else run.final_answer

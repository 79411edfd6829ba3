"""Create approved sound answers, for tests of planted faults."""

from __future__ import annotations

from masis.schema.case import Case
from masis.services import Workbench
from tests.reviewing import ADA, decide

_TOWNS = ("Alder", "Birch", "Cedar", "Damson", "Elm", "Fir")


def a_sound_case(number: int) -> Case:
    """Return a case whose answer nearly copies its first chunk."""
    town, length = _TOWNS[number % len(_TOWNS)], 317 + 111 * number
    said = f"The old bridge at {town} carries 4 lanes across the river and is {length} metres long."
    return Case.model_validate(
        {
            "id": f"bridge-{number + 1:02d}",
            "query": f"What is known about the bridge at {town}?",
            "answer": (
                f"The old bridge at {town} carries 4 lanes across the river and is {length} metres"
                " long [1]."
            ),
            "evidence": [
                {"id": "1", "text": said},
                {
                    "id": "2",
                    "text": "Tickets for the museum railway are sold on board, in cash only.",
                },
            ],
            "metadata": {"field": "Engineering", "dataset": "made for tests"},
        }
    )


def fill_with_approved(workbench: Workbench, cases: int = 4) -> None:
    """Store and audit sound answers, and have Ada approve each."""
    for number in range(cases):
        case = a_sound_case(number)
        workbench.cases.add_one(ADA, case)
        workbench.audits.audit(ADA, case)
        decide(workbench, case.id)


def audit_copies(workbench: Workbench) -> list[str]:
    """Audit all unaudited cases, and return the ids of the copies with a planted fault."""
    for copy in workbench.store.planted.copies():
        if copy.state == "new":
            workbench.audits.audit(ADA, workbench.store.cases.get(copy.case_id))
    return [copy.case_id for copy in workbench.store.planted.copies()]

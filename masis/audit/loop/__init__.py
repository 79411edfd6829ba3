"""The loop: the only place that knows the order of the steps.

    draft (if there is no answer) -> [citations -> claims -> critique -> evaluation] -> stop? -> revision -> [...]

An iteration is one audited answer; between each two stands a revision (REQ-CRITIC-015).
The loop takes the five roles as values, yields events and returns the run; it never sees a store, a page or an SDK.
"""

from __future__ import annotations

from collections.abc import Callable, Generator

from masis.audit.loop.audit_run import AuditRun
from masis.audit.loop.inputs import Audit, Clock, Events, Progress, Roles, new_run_id
from masis.schema.audit import Draft
from masis.schema.case import Case
from masis.schema.run import Event, Iteration, Run, StepsDone
from masis.settings import Settings

__all__ = ["Audit", "Clock", "Events", "Progress", "Roles", "audit", "new_run_id"]


def audit(
    case: Case,
    roles: Roles,
    settings: Settings,
    *,
    run_id: str,
    case_digest: str = "",
    cancelled: Callable[[], bool] = lambda: False,
    progress: Progress | None = None,
    keep: Callable[[Draft | Iteration | StepsDone], None] = lambda finished: None,
    clock: Clock | None = None,
) -> Generator[Event, None, Run]:
    """Audit one case, yielding an event as each thing happens, and return the run.

    ``cancelled`` is asked between steps, while a step waits for a model, and between claims that are checked without
    one; ``keep`` is handed the draft, each iteration and, where a step may cost something, each step as it is finished;
    ``progress`` continues from what was kept. A step that fails is recorded on the run, never raised. At the depth
    ``quick`` no critic, judge or reviser is asked.
    """
    run = AuditRun(case, roles, settings.at_depth(), run_id, case_digest, cancelled, keep, clock or Clock())
    return (yield from run.run(progress or Progress()))

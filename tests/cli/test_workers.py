"""A stop asked for while audits are under way: those are finished, and no further one begins."""

from __future__ import annotations

import threading
from typing import Any

from masis.cli.workers import AUDITS_A_CALL, Job, audit_in_threads
from masis.schema.case import Case


def test_no_queued_audit_begins_after_a_stop() -> None:
    begun: list[str] = []
    stop, full = threading.Event(), threading.Barrier(AUDITS_A_CALL, timeout=20)

    def audit(case: Case, cancelled: Any) -> Any:
        begun.append(case.id)
        full.wait()
        stop.set()
        return case.id

    jobs = [
        Job(n, n, Case(id=str(n), query="Why?", evidence=({"id": "1"},)), True)  # type: ignore[arg-type]
        for n in range(3 * AUDITS_A_CALL)
    ]
    done = list(audit_in_threads(iter(jobs), audit, concurrency=1, stopping=stop.is_set))
    assert sorted(begun) == sorted(str(n) for n in range(AUDITS_A_CALL))
    assert len(done) == AUDITS_A_CALL

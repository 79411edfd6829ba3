"""An audit by models that was broken off anywhere and is resumed from the database ends as one that
never was.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from masis.schema.actor import Actor
from masis.schema.run import Event, Run
from masis.services import Workbench
from masis.settings import Settings
from tests.cases import case_of
from tests.served_replies import Behaviour, Request, Script, faulty
from tests.serving_models import ModelServer
from tests.store.factories import a_case

WHO = Actor(name="Ada")
UNCHANGED = "The bridge opened on 19 March 1932 [1]."
"""What the scripted models find fault with, and can't put better."""


def _a_verdict_too_few(request: Request) -> Behaviour | None:
    return faulty("a verdict too few", request) if request.schema_name == "verdicts_reply" else None


SCRIPTS: dict[str, tuple[Script, str | None]] = {
    "a revision that changes nothing": (lambda request: None, UNCHANGED),
    "claims without a verdict": (_a_verdict_too_few, UNCHANGED),
}


@pytest.fixture(params=SCRIPTS)
def audited(
    request: pytest.FixtureRequest, tmp_path: Path
) -> Iterator[tuple[Workbench, str | None]]:
    script, answer = SCRIPTS[request.param]
    with ModelServer(script, issues="always", keep=False) as server:
        roles = dict.fromkeys(
            ("drafter", "verifier", "critic", "reviser", "evaluator"), "scripted:m"
        )
        scripted = {"kind": "openai", "address": server.address}
        settings = Settings.model_validate(
            {"providers": {"scripted": scripted}, "max_retries": 0, **roles}
        )
        workbench = Workbench.open(tmp_path / "masis.db", settings)
        yield workbench, answer
        workbench.close()


def _came_to(run: Run) -> dict[str, Any]:
    own = {
        "id",
        "case_id",
        "case_digest",
        "started_at",
        "finished_at",
        "iterations",
        "draft",
        "loose_calls",
        "usage",
    }
    iterations = [
        iteration.model_dump(exclude={"step_ms", "calls"}) for iteration in run.iterations
    ]
    return {
        **run.model_dump(exclude=own),
        "iterations": iterations,
        "draft": run.draft and run.draft.answer,
    }


@pytest.mark.slow
def test_an_audit_interrupted_after_any_event_resumes_to_the_same_result(
    audited: tuple[Workbench, str | None],
) -> None:
    workbench, answer = audited
    events: list[Event] = []

    def audit(name: str, break_off_at: int = 0) -> Run:
        case, heard = a_case(name, answer=answer), list[Event]()

        def on_event(event: Event) -> None:
            heard.append(event)
            if len(heard) == break_off_at:
                raise KeyboardInterrupt
            if not break_off_at:
                events.append(event)

        workbench.cases.add_one(WHO, case)
        return workbench.audits.audit(WHO, case, on_event=on_event)

    expected = _came_to(audit("whole"))
    kinds = [(event.kind, event.step) for event in events]
    for cut, kind in enumerate(kinds, 1):
        try:
            audit(f"cut-{cut}", break_off_at=cut)
        except KeyboardInterrupt:
            pass
        else:  # what a server can't do is reported once: later audits have fewer events
            assert cut > 15
            break
        (cut_short,) = workbench.runs.for_case(f"cut-{cut}")
        assert cut_short.state == "interrupted"
        resumed = audit(f"cut-{cut}")
        assert resumed.id == cut_short.id
        assert _came_to(resumed) == expected, f"broken off after event {cut}, {kind}"


ADA = Actor(name="Ada")
CASE = case_of(
    "The bridge opened on 19 March 1932 [1].",
    {"1": "The bridge opened on 19 March 1932."},
    case_id="sound",
    query="When was the bridge opened?",
)
KILLED = """
import os, sys
from pathlib import Path
from masis.services import Workbench
from masis.store.reviews.decisions import Decisions
from tests.services.test_resuming import ADA, CASE
Decisions.append = lambda *_, **__: os._exit(9)
workbench = Workbench.open(Path(sys.argv[1]))
workbench.cases.add(ADA, [CASE])
workbench.audits.audit(ADA, CASE)
"""


@pytest.mark.slow
def test_a_kill_before_acceptance_leaves_no_unexplained_review(
    tmp_path: Path,
) -> None:
    database = tmp_path / "masis.db"
    killed = subprocess.run(
        [sys.executable, "-c", KILLED, str(database)],
        cwd=Path(__file__).parents[2],
        env={**os.environ, "PYTHONPATH": "."},
        check=False,
        timeout=100,
    )
    assert killed.returncode == 9
    workbench = Workbench.open(database)
    assert workbench.store.cases.summary("sound").state == "interrupted"
    assert not workbench.audits.audit(ADA, CASE).needs_review
    assert workbench.store.cases.summary("sound").state == "accepted"
    assert workbench.store.check().ok
